/* by_id_update: gradients by id summed by row, and the rule on each row where it lies: a group of threads a row, so
 * that records cross the link both ways at once.
 */
#include "by_id.cuh"
#include "rule.cuh"

#include <algorithm>
#include <string.h>

static __global__ void pad_values(struct value_view from, uint32_t quads, uint64_t count, float4 *to) {
    uint64_t all = count * quads, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step)
        to[i] = read_quad(from, (uint32_t)(i / quads), (uint32_t)(i % quads));
}

struct update {
    struct list_view ids;
    struct row_part weights, state;
    const struct item *items;
    const uint32_t *item_count;
    const float *summands;  /* gradients in the order of the ids, or partial sums: rows of span floats */
    const uint32_t *places; /* order of the gradients; NULL: partial sums lie as they are */
    float *partials;
};

/* A piece of a row's gradients summed in the order of the ids; the rule, where the piece is all of it. The same sums in
 * the same order as a step's accumulate. */
template <int G, int VEC, int NS>
static __global__ void __launch_bounds__(CTA)
    update_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    constexpr uint32_t GROUPS = CTA / G;
    uint32_t tid = threadIdx.x % G, count = *u.item_count, cold_first = u.ids.counts->cold_first[0];
    for (uint32_t at = blockIdx.x * GROUPS + threadIdx.x / G; at < count; at += gridDim.x * GROUPS) {
        struct item item = u.items[at];
        uint32_t id = u.ids.rows.distinct_ids[item.row];
        char *weights = row_at(u.weights, id, item.row, cold_first), *state = row_at(u.state, id, item.row, cold_first);
        struct held_row<VEC, NS> held;
        float4 w[VEC], sum[VEC];
        begin_piece<G, VEC, NS>(item.partial == DRAW_NONE, w, held, weights, state, tid, v);
        clear_row<VEC>(sum);
        for (uint32_t i = 0; i < item.count; i++) {
            uint32_t place = u.places ? u.places[item.first + i] : item.first + i;
            float4 row[VEC];
            read_row<G, VEC>(row, (const char *)(u.summands + place * v.span), tid, v.quads);
            add_row<VEC>(sum, 1, row);
        }
        group_wait<G>();
        float squares = sum_squares<G, VEC>(sum, v);
        end_piece<G, VEC, NS>(item, u.ids.rows.distinct_starts, sum, squares, w, held, weights, state, u.partials, tid, v);
    }
}

typedef void update_kernel(const struct step_view, const struct update);
struct updates {
    update_kernel *kernel;
    uint32_t group;
};
template <int G, int VEC, int NS> struct update_family {
    static struct updates get(void) {
        return {update_rows<G, VEC, NS>, G};
    }
};

static int launch_updates(struct backend *b, struct by_id *own, const struct rows_request *r, const float *gradients,
                          cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    struct updates k = kernels_for<update_family>(layout->span / 4, layout->slots);
    uint64_t count = r->count, pieces = most_partials(count);
    struct step_view v;
    struct update u;
    memset(&v, 0, sizeof v);
    v.quads = layout->span / 4;
    v.dim = layout->dim;
    v.span = layout->span;
    if (gpu_grow(b, &own->partials, pieces * layout->span * 4, "a call's partial sums") ||
        cuda_prepare_rule(b, r->rule, r->lr, r->global_step, layout->counted, stream, &v.rule))
        return -1;
    u.ids = list_view(&own->set);
    u.weights = by_id_weights(&own->set);
    u.state = by_id_state(&own->set);
    u.items = u.ids.rows.items;
    u.item_count = &own->set.counts->items[0];
    u.summands = gradients;
    u.places = u.ids.rows.order;
    u.partials = (float *)own->partials.data;
    uint32_t groups = CTA / k.group, most = 16 * (uint32_t)b->processors;
    k.kernel<<<std::min(blocks_for(count, groups), most), CTA, 0, stream>>>(v, u);
    CK_LAUNCH("update_rows");
    if (count <= UPDATE_PIECE) return 0;
    u.items = u.ids.rows.longs;
    u.item_count = &own->set.counts->longs[0];
    u.summands = u.partials;
    u.places = NULL;
    k.kernel<<<std::min(blocks_for(count / UPDATE_PIECE + 1, groups), most), CTA, 0, stream>>>(v, u);
    CK_LAUNCH("update_rows");
    return 0;
}

int by_id_update_rows(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view given,
                      cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    if (given.whole) return launch_updates(b, own, r, given.data, stream);
    if (gpu_grow(b, &own->padded, r->count * layout->span * 4, "a call's values")) return -1;
    float4 *padded = (float4 *)own->padded.data;
    pad_values<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(given, layout->span / 4, r->count, padded);
    CK_LAUNCH("pad_values");
    return launch_updates(b, own, r, (const float *)padded, stream);
}
