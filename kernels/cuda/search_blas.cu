#include "cuda.cuh"

#include "search_blas.cuh"

#include <dlfcn.h>
#include <stdio.h>

static void *open_library(void) {
    static const char *const forms[] = {"libcublas.so.%d", "/usr/local/cuda/lib64/libcublas.so.%d"};
    char name[64];
    void *library = NULL;
    for (int i = 0; i < 2 && !library; i++) {
        snprintf(name, sizeof name, forms[i], CUBLAS_VER_MAJOR);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
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
