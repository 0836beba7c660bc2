/* step_dots_alone: the kernels of step_dots.cuh for a rank that has all columns. */
#include "step_dots_windows.cuh"

struct dot_kernels dot_kernels_alone(const struct step_view *v) {
    return dot_kernels_of<DOTS_ALONE>(v->halves, v->quads, v->rule.roles);
}
