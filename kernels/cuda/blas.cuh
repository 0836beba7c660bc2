/* blas: cuBLAS. It is loaded by the first search on the GPU or the first step with shared negatives, because the library maps
 * half a gigabyte and needs 150 MB of resident memory; so a machine without it can run everything else. All products run on one
 * stream, so the same product gives the same bits on each call. */
#ifndef SPTX_CUDA_BLAS_CUH
#define SPTX_CUDA_BLAS_CUH

#include <cublas_v2.h>

#include "cuda.cuh"

#define CUDA_BLAS_CALLS(X)                                                                                             \
    X(create, cublasCreate_v2)                                                                                         \
    X(destroy, cublasDestroy_v2)                                                                                       \
    X(math, cublasSetMathMode)                                                                                         \
    X(stream, cublasSetStream_v2)                                                                                      \
    X(sgemm, cublasSgemm_v2)                                                                                           \
    X(text, cublasGetStatusString)

struct cuda_blas {
    void *library; /* NULL until loaded */
#define CUDA_BLAS_POINTER(name, symbol) decltype(&symbol) name;
    CUDA_BLAS_CALLS(CUDA_BLAS_POINTER)
#undef CUDA_BLAS_POINTER
};

/* Enqueues a product on the compute stream: to [rows x columns] = a b, with a [rows x depth] and b [depth x columns]. Matrices
 * are stored by columns, as cublasSgemm() expects; a flag says if the stored matrix is the transposed one. */
struct blas_matrix {
    const float *data;
    int stride;
    int transposed;
};
struct blas_product {
    struct blas_matrix a, b;
    float *to;
    int stride, rows, columns, depth;
    enum matmul_type type; /* TF32: factors are rounded to 11 bits, and products are summed in float32 */
};
int cuda_multiply(struct backend *backend, const struct blas_product *product);
/* Loads the library, so that no later product has to. */
int cuda_blas_open(struct backend *backend);
void cuda_blas_close(struct backend *backend);

#endif
