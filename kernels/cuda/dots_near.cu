/* dots_near: the kernels of dots.cuh for ranks that hand over parts while rows are in registers. */
#include "dots.cuh"

struct dot_kernels dot_kernels_near(uint32_t quads, uint32_t slots) {
    return dot_kernels_of<DOTS_NEAR>(quads, slots);
}
