/* dots_near: the kernels of dots.cuh for ranks that hand over parts while rows are in registers. */
#include "dots.cuh"

template <int G, int VEC, int NS> struct near_family {
    static struct dot_kernels get(void) {
        return dot_kernels_of<G, VEC, NS, DOTS_NEAR>();
    }
};

struct dot_kernels dot_kernels_near(uint32_t quads, uint32_t slots) {
    return kernels_for<near_family>(quads, slots);
}
