/* step_dots_alone: the kernels of step_dots.cuh for a rank that has all columns. */
#include "step_dots_windows.cuh"

struct dot_kernels dot_kernels_alone(uint32_t quads, uint32_t roles) {
    return dot_kernels_of<DOTS_ALONE>(quads, roles);
}
