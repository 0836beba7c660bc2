/* dots_far: the kernels of dots.cuh in two passes, between which parts are summed over ranks. */
#include "dots.cuh"

struct dot_kernels dot_kernels_post(uint32_t quads) {
    return dot_kernels_of<DOTS_POST>(quads, 0);
}
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t slots) {
    return dot_kernels_of<DOTS_COLLECT>(quads, slots);
}
