/* dots_alone: the kernels of dots.cuh for a rank that has all columns. */
#include "dots_windows.cuh"

struct dot_kernels dot_kernels_alone(uint32_t quads, uint32_t slots) {
    struct dot_kernels k = kernels_for_narrow<of_mode<DOTS_ALONE>::one>(quads, slots);
    struct dot_kernels many = kernels_for_short<of_mode<DOTS_ALONE>::many>(quads, 0);
    k.many = many.many;
    k.many_threads = many.many_threads;
    return k;
}
