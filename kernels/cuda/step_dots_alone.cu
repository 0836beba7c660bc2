/* step_dots_alone: compiles the kernels of step_dots.cuh for a single rank, which has all columns. */
#include "step_dots_windows.cuh"

struct dot_kernels dot_kernels_alone(const struct step_view *v) {
    bool state = v->rule.slots > 0;
    struct dot_kernels kernels = dot_kernels_of<DOTS_ALONE>(v->halves, v->quads, state);
    if (!v->halves) kernels.wide = kernels_for_few<of_mode<float32_rows, DOTS_ALONE>::wide>(v->quads, state);
    return kernels;
}
