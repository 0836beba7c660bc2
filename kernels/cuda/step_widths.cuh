/* step_widths: chooses a step's kernels by the width of a row. A kernel has G threads a row, each with VEC quads of it, and is
 * compiled for records with state or without (step_rule.cuh). Family<G, VEC, STATE>::get() returns the kernels of one width.
 *
 * With more widths kernels are faster, since fewer threads have quads past the row's end, but compiling takes longer, most of all
 * for records with state, which includes every rule. So work that waits for memory, or that is rare, has few widths.
 *
 *   float32     up to 256 columns                                wider
 *   short       8 x 1, 16 x 1, 32 x 1, 32 x 2                    32 x 3, 32 x 4, 128 x 2, 128 x 4, 128 x 8
 *   narrow      8 x 1, 8 x 2, 8 x 3, 8 x 4, 16 x 3, 16 x 4       the same
 *   few         8 x 1, 8 x 2, 8 x 4, 16 x 4                      32 x 4, 128 x 2, 128 x 4, 128 x 8
 *   whole       32 x 1, 32 x 2                                   32 x 4, 128 x 8
 *
 *   bfloat16
 *   short       8 x 2, 16 x 2, 32 x 2                            32 x 4, 128 x 8
 *   narrow      8 x 2, 8 x 4, 8 x 6 (no state), 16 x 4           the same
 *   few         8 x 4, 16 x 4                                    the same
 *   whole       32 x 4                                           the same
 *
 * short: a row has as many threads as it can fill. narrow, few: a warp works on several rows at once, so that a sum over a
 * row's threads takes fewer rounds, for all rows together, and each coefficient is computed once instead of by the whole warp.
 * For float32, narrow and few use equally many threads a row, and so give the same bits. whole: a warp never works on two rows.
 */
#ifndef SPTX_CUDA_STEP_WIDTHS_CUH
#define SPTX_CUDA_STEP_WIDTHS_CUH

#include <stdint.h>

template <template <int, int, bool> class Family, int G, int VEC> auto kernels_by_state(bool state) {
    return state ? Family<G, VEC, true>::get() : Family<G, VEC, false>::get();
}

/* ---- rows of float32 ---- */

/* Chooses kernels for rows of more than 512 columns, which four warps share. */
template <template <int, int, bool> class Family> auto kernels_for_four_warps(uint32_t quads, bool state) {
    if (quads <= 256) return kernels_by_state<Family, 128, 2>(state);
    if (quads <= 512) return kernels_by_state<Family, 128, 4>(state);
    return kernels_by_state<Family, 128, 8>(state);
}
/* Chooses kernels for rows of more than 256 columns. */
template <template <int, int, bool> class Family> auto kernels_for_wide(uint32_t quads, bool state) {
    if (quads <= 96) return kernels_by_state<Family, 32, 3>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_for_four_warps<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_short(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 16, 1>(state);
    if (quads <= 32) return kernels_by_state<Family, 32, 1>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    return kernels_for_wide<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_narrow(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 24) return kernels_by_state<Family, 8, 3>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 48) return kernels_by_state<Family, 16, 3>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_wide<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_few(uint32_t quads, bool state) {
    if (quads <= 8) return kernels_by_state<Family, 8, 1>(state);
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_for_four_warps<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_whole(uint32_t quads, bool state) {
    if (quads <= 32) return kernels_by_state<Family, 32, 1>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    if (quads <= 128) return kernels_by_state<Family, 32, 4>(state);
    return kernels_by_state<Family, 128, 8>(state);
}

/* ---- rows of bfloat16 ---- */

template <template <int, int, bool> class Family> auto kernels_for_whole_halves(uint32_t quads, bool state) {
    return quads <= 128 ? kernels_by_state<Family, 32, 4>(state) : kernels_by_state<Family, 128, 8>(state);
}
template <template <int, int, bool> class Family> auto kernels_for_short_halves(uint32_t quads, bool state) {
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 16, 2>(state);
    if (quads <= 64) return kernels_by_state<Family, 32, 2>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}
/* Six quads are compiled only without state, since with their state they would not fit into a thread's registers. */
template <template <int, int, bool> class Family> auto kernels_for_narrow_halves(uint32_t quads, bool state) {
    if (quads <= 16) return kernels_by_state<Family, 8, 2>(state);
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 48 && !state) return Family<8, 6, false>::get();
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}
template <template <int, int, bool> class Family> auto kernels_for_few_halves(uint32_t quads, bool state) {
    if (quads <= 32) return kernels_by_state<Family, 8, 4>(state);
    if (quads <= 64) return kernels_by_state<Family, 16, 4>(state);
    return kernels_for_whole_halves<Family>(quads, state);
}

#endif
