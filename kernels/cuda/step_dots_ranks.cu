/* step_dots_ranks: compiles the kernels of step_dots.cuh and step_dots_held.cuh for several ranks, each of which has some
 * columns. */
#include "step_dots_held.cuh"
#include "step_dots_windows.cuh"

template <class F> struct of_form {
    template <int G, int VEC, bool STATE> struct near {
        static dot_kernel *get(void) {
            if constexpr (G * VEC > HELD_QUADS) return NULL;
            else return dot_held<F, G, VEC, STATE, DOTS_NEAR>;
        }
    };
    template <int G, int VEC, bool> struct near_plain : near<G, VEC, false> {}; /* as one_plain in step_dots_windows.cuh */
    template <int G, int VEC, bool STATE> struct passes {
        static struct held_kernels get(void) {
            if constexpr (G * VEC > HELD_QUADS) return {};
            else return {NULL, dot_held<F, G, VEC, false, DOTS_POST>, dot_held<F, G, VEC, STATE, DOTS_COLLECT>};
        }
    };
    template <int G, int VEC, bool> struct near_windows {
        static struct dot_kernels get(void) {
            if constexpr (G > 32) return {};
            else return {NULL, NULL, 0, dot_windows<F, G, VEC, DOTS_NEAR>, G};
        }
    };
};

/* Narrow rows of bfloat16, such as one of four ranks has, get as many threads as `few` gives them, so the bits are the same. But
 * each thread has two quads instead of four, two of which would be past the row's end. That takes fewer registers, so more warps
 * run at once. */
struct held_kernels dot_kernels_held(const struct step_view *v) {
    typedef of_form<float32_rows> floats;
    typedef of_form<bfloat16_rows> halves;
    constexpr uint32_t NARROW = 16; /* Eight threads hold a row of up to this many quads, two quads each. */
    bool state = v->rule.slots > 0;
    struct held_kernels kernels = v->halves ? kernels_for_few_halves<halves::passes>(v->quads, state)
                                            : kernels_for_few<floats::passes>(v->quads, state);
    if (v->halves && v->quads <= NARROW) kernels.near = kernels_by_state<halves::near, 8, 2>(state);
    else if (v->halves) kernels.near = kernels_for_few_halves<halves::near>(v->quads, state);
    else if (state) kernels.near = kernels_for_few<floats::near>(v->quads, true);
    else kernels.near = kernels_for_narrow<floats::near_plain>(v->quads, false);
    return kernels;
}

/* Returns true if some ranks hold smaller tiles than others. Ranks that exchange a block's terms in one pass must all hold the
 * same number of its contexts at a time. If some ranks have one chunk of columns more than others, and so smaller tiles, terms
 * are exchanged in two passes; the first pass waits for no rank. */
static bool has_smaller_tiles(uint32_t quads, uint32_t chunk) {
    constexpr uint32_t TWO_A_THREAD = 64; /* A warp holds a row of up to this many quads, two quads a thread. */
    static_assert(tile<1>::contexts == tile<2>::contexts && tile<3>::contexts == tile<4>::contexts,
                  "tiles change where a thread's third quad begins, and nowhere else");
    return quads == TWO_A_THREAD + chunk;
}

struct dot_kernels dot_kernels_near(const struct step_view *v) {
    if (has_smaller_tiles(v->quads, v->halves ? bfloat16_rows::QUADS : float32_rows::QUADS)) return {};
    if (v->halves) return kernels_for_short_halves<of_form<bfloat16_rows>::near_windows>(v->quads, false);
    return kernels_for_short<of_form<float32_rows>::near_windows>(v->quads, false);
}

struct dot_kernels dot_kernels_post(const struct step_view *v) {
    return dot_kernels_of<DOTS_POST>(v->halves, v->quads, false);
}
struct dot_kernels dot_kernels_collect(const struct step_view *v) {
    return dot_kernels_of<DOTS_COLLECT>(v->halves, v->quads, v->rule.slots > 0);
}
