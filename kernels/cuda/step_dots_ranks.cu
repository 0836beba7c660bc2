/* step_dots_ranks: the kernels of step_dots.cuh and step_dots_held.cuh for ranks that share out the columns. */
#include "step_dots_held.cuh"
#include "step_dots_windows.cuh"

/* One kernel has every optimizer. */
template <int G, int VEC, int ROLES> struct held {
    static constexpr int READS = ROLES ? ANY_ROLES : 0;
    static struct held_kernels get(void) {
        if constexpr (G * VEC > HELD_QUADS) return {};
        else return {dot_held<G, VEC, READS, DOTS_NEAR>, dot_held<G, VEC, 0, DOTS_POST>, dot_held<G, VEC, READS, DOTS_COLLECT>};
    }
};

struct held_kernels dot_kernels_held(uint32_t quads, uint32_t roles) {
    return kernels_for_narrow<held>(quads, roles);
}

template <int G, int VEC, int ROLES> struct near_windows {
    static struct dot_kernels get(void) {
        if constexpr (G > 32) return {};
        else return {NULL, NULL, 0, dot_windows<G, VEC, DOTS_NEAR>, G};
    }
};

/* Ranks that exchange a block's terms in one pass must all take the same number of its contexts at a time. Some ranks have a quad
 * more than others: where that gives them smaller tiles, they exchange in two passes, of which the first waits for nobody. */
static bool has_smaller_tiles(uint32_t quads) {
    constexpr uint32_t TWO_A_THREAD = 64; /* quads of the widest rows that a warp holds so */
    static_assert(tile<1>::contexts == tile<2>::contexts && tile<3>::contexts == tile<4>::contexts,
                  "tiles change where a thread's third quad begins, and nowhere else");
    return quads == TWO_A_THREAD + 1;
}

struct dot_kernels dot_kernels_near(uint32_t quads) {
    if (has_smaller_tiles(quads)) return {};
    return kernels_for_short<near_windows>(quads, 0);
}

struct dot_kernels dot_kernels_post(uint32_t quads) {
    return dot_kernels_of<DOTS_POST>(quads, 0);
}
struct dot_kernels dot_kernels_collect(uint32_t quads, uint32_t roles) {
    return dot_kernels_of<DOTS_COLLECT>(quads, roles);
}
