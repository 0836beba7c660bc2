#include "cuda.cuh"

#include "blas.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Opens cuBLAS, preferably the version of the Toolkit that compiled this file. Versions 11 to 13 have the same functions, so any of them will do,
 * also one that PyTorch has loaded into this process. */
static void *open_library(void) {
    static const int versions[] = {CUBLAS_VER_MAJOR, 11, 12, 13};
    static const char *const forms[] = {"libcublas.so.%d", "/usr/local/cuda/lib64/libcublas.so.%d"};
    for (int version : versions)
        for (const char *form : forms) {
            char name[64];
            snprintf(name, sizeof name, form, version);
            void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (library) return library;
        }
    return NULL;
}

/* Loads cuBLAS once for the process, and returns its functions; NULL after fail(). */
static const struct cuda_blas *load(void) {
    static struct cuda_blas blas;
    if (blas.library) return &blas;
    void *library = open_library();
    if (!library) {
        const char *why = dlerror();
        fail("cuBLAS cannot be loaded (%s); install the CUDA Toolkit's libraries or use --device.backend=cpu", why ? why : "no reason given");
        return NULL;
    }
#define CUDA_BLAS_FIND(name, symbol)                                                                                   \
    blas.name = (decltype(blas.name))dlsym(library, #symbol);                                                          \
    if (!blas.name) {                                                                                                  \
        fail("cuBLAS has no " #symbol);                                                                                \
        dlclose(library);                                                                                              \
        return NULL;                                                                                                   \
    }
    CUDA_BLAS_CALLS(CUDA_BLAS_FIND)
#undef CUDA_BLAS_FIND
    blas.library = library;
    return &blas;
}

/* cuBLAS, as opened by one backend. */
struct blas {
    const struct cuda_blas *calls;
    cublasHandle_t handle;
};

static int blas_failed(const struct cuda_blas *calls, cublasStatus_t status, const char *call) {
    return fail("cuBLAS failed in %s: %s", call, calls->text(status));
}

int cuda_blas_open(struct backend *backend) {
    if (backend->blas) return 0;
    const struct cuda_blas *calls = load();
    struct blas *own = calls ? (struct blas *)mem_zalloc(1, sizeof *own, "cuBLAS") : NULL;
    if (!own) return -1;
    own->calls = calls;
    cublasStatus_t status = calls->create(&own->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        free(own);
        return blas_failed(calls, status, "cublasCreate");
    }
    calls->stream(own->handle, backend->compute);
    backend->blas = own;
    return 0;
}

int cuda_multiply(struct backend *backend, const struct blas_product *p) {
    const float one = 1, zero = 0;
    if (cuda_blas_open(backend)) return -1;
    const struct blas *own = (const struct blas *)backend->blas;
    own->calls->math(own->handle, p->type == MATMUL_TF32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH);
    cublasStatus_t status = own->calls->sgemm(own->handle, p->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                              p->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p->rows, p->columns, p->depth, &one,
                                              p->a.data, p->a.stride, p->b.data, p->b.stride, &zero, p->to, p->stride);
    return status == CUBLAS_STATUS_SUCCESS ? 0 : blas_failed(own->calls, status, "cublasSgemm");
}

void cuda_blas_close(struct backend *backend) {
    struct blas *own = (struct blas *)backend->blas;
    if (!own) return;
    own->calls->destroy(own->handle);
    free(own);
    backend->blas = NULL;
}
