/* dots_alone: the kernels of dots.cuh for a rank that has all columns. */
#include "dots_windows.cuh"

struct dot_kernels dot_kernels_alone(uint32_t quads, uint32_t roles) {
    return dot_kernels_of<DOTS_ALONE>(quads, roles);
}
