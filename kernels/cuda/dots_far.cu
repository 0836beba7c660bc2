/* dots_far: the kernels of dots.cuh in two passes, between which parts are summed over ranks. */
#include "dots.cuh"

template <int G, int VEC, int NS> struct post_family {
    static struct dot_kernels get(void) {
        return dot_kernels_of<G, VEC, 0, DOTS_POST>(); /* no state is read */
    }
};
template <int G, int VEC, int NS> struct collect_family {
    static struct dot_kernels get(void) {
        return dot_kernels_of<G, VEC, NS, DOTS_COLLECT>();
    }
};

struct dot_kernels dot_kernels_post(uint32_t quads) {
    return kernels_for<post_family>(quads, 0);
}
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t slots) {
    return kernels_for<collect_family>(quads, slots);
}
