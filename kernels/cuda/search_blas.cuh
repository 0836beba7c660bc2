/* search_blas: cuBLAS, loaded when the first search on the GPU asks for it. The library maps half a gigabyte and costs 150 MB
 * of resident memory at start-up; training never needs it, and a machine without it can still run the program.
 */
#ifndef SPTX_CUDA_SEARCH_BLAS_CUH
#define SPTX_CUDA_SEARCH_BLAS_CUH

#include <cublas_v2.h>

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

/* Returns the calls, which are loaded once for the process; NULL after fail(). */
const struct cuda_blas *cuda_blas_load(void);

#endif
