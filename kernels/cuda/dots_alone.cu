/* dots_alone: the kernels of dots.cuh for a rank that has all columns. */
#include "dots_windows.cuh"

struct dot_kernels dot_kernels_alone(uint32_t quads, bool state) {
    return dot_kernels_of<DOTS_ALONE>(quads, state);
}
