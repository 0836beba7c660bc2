/* blas: cuBLAS, loaded only when it is needed: by the first search on the GPU or the first step with shared negatives. It maps half a gigabyte and
 * needs 150 MB of resident memory, and a machine without it can do everything else. All products run on one stream, so a repeated product gives
 * the same bits. */
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

/* A factor of a matrix product. The product, enqueued on the compute stream, is: to [rows x columns] = a [rows x depth] times b [depth x columns].
 * Matrices are stored by columns, as cublasSgemm() expects; a flag says whether the stored matrix is the transposed one. */
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
/* Loads the library, so that later products need not wait for it. */
int cuda_blas_open(struct backend *backend);
void cuda_blas_close(struct backend *backend);

#endif
