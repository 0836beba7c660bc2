/* sums_learned: the kernels of sums.cuh for steps that take the passes of learn.cuh. */
#include "sums.cuh"

struct sum_kernels sum_kernels_learned(uint32_t quads, uint32_t slots) {
    return kernels_for_short<sums_of<true>::family>(quads, slots);
}
