/* sums_learned: the kernels of sums.cuh for steps that take the passes of learn.cuh. */
#include "sums.cuh"

accumulate_kernel *accumulate_learned(uint32_t quads, uint32_t slots) {
    return kernels_for_short<accumulate_of<true>::family>(quads, slots);
}
