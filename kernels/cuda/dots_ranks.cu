/* dots_ranks: the kernels of dots.cuh and dots_held.cuh for ranks that share out the columns. */
#include "dots_held.cuh"
#include "dots_windows.cuh"

template <int G> static struct held_kernels held(void) {
    return {dot_held<G, DOTS_NEAR>, dot_held<G, DOTS_POST>, dot_held<G, DOTS_COLLECT>,
            held_shape<G>::threads, held_shape<G>::resident, held_shape<G>::rows};
}

struct held_kernels dot_kernels_held(uint32_t quads, uint32_t slots) {
    if (slots || quads > 32) return {};
    return quads <= 8 ? held<8>() : quads <= 16 ? held<16>() : held<32>();
}

struct dot_kernels dot_kernels_post(uint32_t quads) {
    return dot_kernels_of<DOTS_POST>(quads, 0);
}
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t slots) {
    return dot_kernels_of<DOTS_COLLECT>(quads, slots);
}
