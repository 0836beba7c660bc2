#include "cuda.cuh"

#include "search_blas.cuh"

#include <dlfcn.h>
#include <stdio.h>

/* The calls are the same in cuBLAS 11 to 13: where the Toolkit that compiled this file is not, another's may be, or the
 * one that PyTorch has loaded into this process. */
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

const struct cuda_blas *cuda_blas_load(void) {
    static struct cuda_blas blas;
    if (blas.library) return &blas;
    void *library = open_library();
    if (!library) {
        const char *why = dlerror();
        fail("cuBLAS cannot be loaded (%s); install the CUDA Toolkit's libraries or use --device.backend=cpu",
             why ? why : "no reason given");
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
