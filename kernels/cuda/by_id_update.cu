/* by_id_update: sums the gradients of each row and updates the row by the rule. A warp works on a row, so that records cross the
 * link in both directions at the same time. */
#include "by_id.cuh"
#include "step_rule.cuh"

#include <algorithm>
#include <string.h>

static __global__ void pad_values(struct value_view from, uint32_t quads, uint64_t count, float *to) {
    uint64_t all = count * quads, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        uint32_t row = (uint32_t)(i / quads), quad = (uint32_t)(i % quads);
        float4 value = 4 * quad < from.dim ? take_quad(from, row, quad) : make_float4(0, 0, 0, 0);
        write_quad(to + (uint64_t)row * 4 * quads, quad, value);
    }
}

enum { VISITS_SPAN = 512 }; /* rows with at most this many columns are worked on in shared memory */

struct update {
    struct list_view ids;
    struct row_part weights, state;
    const struct item *items;
    const uint32_t *item_count;
    const float *summands;  /* rows of span floats: gradients in the order of the ids (OF_PLACES), or partial sums (OF_PARTIALS) */
    const uint32_t *places; /* OF_PLACES: the row set's order: the places of each row's gradients. Partial sums are read one
                             * after the other */
    float *partials;
    uint32_t chunks[2];  /* number of chunks of a record in each store: [0] weights, and the state if it is in the same store;
                          * [1] the state in a separate store */
    uint64_t state_here; /* offset of the state in bytes from the beginning of the record in shared memory */
};

/* Copies one part of a record from host memory to shared memory, where the record is updated. It is copied as a whole, in
 * requests of 512 bytes that begin at a line. If instead the threads read the columns that they work on, requests would be
 * smaller, and their headers would use part of the link's rate. Copies that bypass registers (copy_quad) make still smaller
 * requests: half as fast. */
static __device__ __forceinline__ void bring_part(char *here, const char *home, uint32_t chunks) {
    constexpr uint32_t U = 8;
    for (uint32_t first = threadIdx.x & 31; first < chunks; first += 32 * U) {
        uint4 x[U];
#pragma unroll
        for (uint32_t u = 0; u < U; u++)
            if (first + 32 * u < chunks) x[u] = ((const uint4 *)home)[first + 32 * u];
#pragma unroll
        for (uint32_t u = 0; u < U; u++)
            if (first + 32 * u < chunks) ((uint4 *)here)[first + 32 * u] = x[u];
    }
}

static __device__ __forceinline__ void send_part(const char *here, char *home, uint32_t chunks) {
    for (uint32_t i = threadIdx.x & 31; i < chunks; i += 32) copy_chunk(home, here, i);
}

/* The summands of a piece of work: a row's gradients, in the order of the ids; or the partial sums of a row that has several
 * pieces. */
enum update_of { OF_PLACES, OF_PARTIALS };

/* A piece of work, with the values that have been read for it so far. place: each lane's: where one of the summands is. Each
 * read needs the result of the one before, so they are made while earlier pieces are worked on. */
struct coming {
    struct item item;
    uint32_t id, place;
    bool real; /* true: the piece exists */
};

static __device__ __forceinline__ void take_item(struct coming &c, const struct update &u, uint32_t at, uint32_t count) {
    c.real = at < count;
    if (c.real) c.item = u.items[at];
}

template <enum update_of OF>
static __device__ __forceinline__ void take_places(struct coming &c, const struct update &u) {
    uint32_t lane = threadIdx.x & 31;
    if (!c.real) return;
    c.id = u.ids.rows.distinct_ids[c.item.row];
    c.place = OF == OF_PLACES && lane < c.item.count ? u.places[c.item.first + lane] : 0;
}

/* Adds a piece's summands in B quads of a thread, several rows in flight at once. The order of the sum is the order of a step
 * (step_sums.cuh). */
template <class F, int B, enum update_of OF>
static __device__ __forceinline__ void sum_of_piece(float4 (&sum)[B], const struct step_view &v, const struct update &u,
                                                    const struct coming &c, uint32_t chunk) {
    constexpr uint32_t U = 4; /* number of rows in flight; most rows have fewer gradients */
    float4 more[U][B];
    clear_row<B>(sum);
    for (uint32_t i = 0; OF == OF_PLACES && i < c.item.count; i += U) {
#pragma unroll
        for (uint32_t k = 0; k < U; k++) {
            uint32_t place = __shfl_sync(ALL_LANES, c.place, i + k);
            if (i + k < c.item.count) read_row<F, 32, B>(more[k], u.summands + place * v.span, chunk, v.quads);
        }
#pragma unroll
        for (uint32_t k = 0; k < U; k++)
            if (i + k < c.item.count) add_row<B>(sum, 1, more[k]);
    }
    for (uint32_t share = 0; OF == OF_PARTIALS && share < PARTIAL_SHARES; share++) {
        add_share<F, 32, B>(more[0], u.summands + c.item.first * v.span, share, c.item.count, chunk, v);
        add_row<B>(sum, 1, more[0]);
    }
}

/* A warp works on one piece after the other: it sums the piece's summands and, if the row has no other piece, updates the row.
 * VISITS: the record is copied to shared memory, updated there, and copied back. */
template <class F, bool VISITS, enum update_of OF>
static __global__ void __launch_bounds__(CTA, VISITS || F::QUADS > 1 ? 4 : 5)
    update_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    constexpr uint32_t WARPS_HERE = CTA / 32;
    constexpr int B = F::QUADS; /* so few quads that many warps are resident */
    extern __shared__ uint4 visited[];
    uint32_t count = *u.item_count, cold_first = u.ids.counts->cold_first[0], step = gridDim.x * WARPS_HERE;
    uint32_t at = blockIdx.x * WARPS_HERE + threadIdx.x / 32;
    char *here = (char *)(visited + threadIdx.x / 32 * (u.chunks[0] + u.chunks[1]));
    struct coming now, next, later;
    take_item(now, u, at, count);
    take_item(next, u, at + step, count);
    take_places<OF>(now, u);
    for (; now.real; now = next, next = later, at += step) {
        take_item(later, u, at + 2 * step, count);
        take_places<OF>(next, u);
        const struct item item = now.item;
        uint32_t id = now.id;
        char *home[2] = {row_at(u.weights, id, item.row, cold_first), row_at(u.state, id, item.row, cold_first)};
        char *weights = VISITS ? here : home[0], *state = VISITS ? here + u.state_here : home[1];
        bool visits = VISITS && item.partial == DRAW_NONE;
        if (visits) {
            __syncwarp(); /* the previous record has been copied back */
            bring_part(here, home[0], u.chunks[0]);
            bring_part(here + u.chunks[0] * CHUNK_BYTES, home[1], u.chunks[1]);
            __syncwarp();
        }
        struct piece_end to = {u.ids.rows.distinct_starts, u.partials, NULL};
        end_piece<F, 32, B>(true, item, weights, state, {id, SIDE_TARGET}, to, v,
                            [&](uint32_t chunk, float4(&sum)[B]) { sum_of_piece<F, B, OF>(sum, v, u, now, chunk); });
        if (visits) {
            __syncwarp();
            send_part(here, home[0], u.chunks[0]);
            send_part(here + u.chunks[0] * CHUNK_BYTES, home[1], u.chunks[1]);
        }
    }
}

typedef void update_kernel(const struct step_view, const struct update);
template <class F, bool VISITS>
static update_kernel *const updates[] = {update_rows<F, VISITS, OF_PLACES>, update_rows<F, VISITS, OF_PARTIALS>};

/* The kernels of an update, with the sizes of their launches. */
struct launch {
    update_kernel *const *kernels; /* by update_of */
    uint32_t most, bytes;          /* most: largest number of thread blocks; bytes: of shared memory for each thread block */
    cudaStream_t stream;
};

/* Returns 1 if at least half of the table's records are only in host memory. */
static bool is_mostly_cold(const struct backend_table *table) {
    return cuda_hot_rows(table) + table->spec.gpu_cache <= table->spec.rows / 2;
}

/* Chooses the launch. A few rows on each multiprocessor use the link's full rate. Records of rows wider than VISITS_SPAN would
 * not fit into shared memory. */
static struct launch launch_of(const struct backend *b, const struct backend_table *table, const struct update *u,
                               cudaStream_t stream) {
    uint32_t processors = (uint32_t)b->processors, bytes = CTA / 32 * (u->chunks[0] + u->chunks[1]) * CHUNK_BYTES;
    bool halves = has_halves(&table->spec.layout);
    if (table->spec.layout.span > VISITS_SPAN || !is_mostly_cold(table))
        return {halves ? updates<bfloat16_rows, false> : updates<float32_rows, false>, 16 * processors, 0, stream};
    return {halves ? updates<bfloat16_rows, true> : updates<float32_rows, true>, 4 * processors, bytes, stream};
}

static int launch_pieces(const struct launch *l, enum update_of of, uint64_t pieces, const struct step_view *v,
                         const struct update *u) {
    l->kernels[of]<<<std::min(blocks_for(pieces, CTA / 32), l->most), CTA, l->bytes, l->stream>>>(*v, *u);
    CK_LAUNCH("update_rows");
    return 0;
}

/* Computes where a record's parts are stored in shared memory. */
static void set_parts(const struct backend_table *table, struct update *u) {
    uint64_t weights = record_weights_bytes(&table->spec.layout), state = record_state_bytes(&table->spec.layout);
    uint64_t first = table->shared ? table->state_offset + state : weights, second = table->shared ? 0 : state;
    u->chunks[0] = blocks_for(first, CHUNK_BYTES);
    u->chunks[1] = blocks_for(second, CHUNK_BYTES);
    u->state_here = table->shared ? table->state_offset : u->chunks[0] * CHUNK_BYTES;
}

static int launch_updates(struct backend *b, struct by_id *own, const struct rows_request *r, const float *gradients,
                          cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    uint64_t count = r->count, pieces = most_partials(count);
    struct step_view v;
    struct update u;
    memset(&v, 0, sizeof v);
    v.quads = record_quads(layout);
    v.dim = layout->dim;
    v.span = layout->span;
    v.rounding[SIDE_TARGET] = keys_of_step(&r->table->spec.rounding, DRAW_ROUND_WEIGHTS, r->global_step);
    if (gpu_grow(b, &own->partials, pieces * layout->span * sizeof(float), "a call's partial sums") ||
        cuda_prepare_rule(b, r->rule, r->lr, r->global_step, layout, stream, &v.rule))
        return -1;
    u.ids = list_view(&own->set);
    u.weights = by_id_weights(&own->set);
    u.state = by_id_state(&own->set);
    u.items = u.ids.rows.items;
    u.item_count = &own->set.counts->items[0];
    u.summands = gradients;
    u.places = u.ids.rows.order;
    u.partials = (float *)own->partials.data;
    set_parts(r->table, &u);
    struct launch l = launch_of(b, r->table, &u, stream);
    if (launch_pieces(&l, OF_PLACES, count, &v, &u)) return -1;
    if (count <= UPDATE_PIECE) return 0;
    u.items = u.ids.rows.longs;
    u.item_count = &own->set.counts->longs[0];
    u.summands = u.partials;
    return launch_pieces(&l, OF_PARTIALS, count / UPDATE_PIECE + 1, &v, &u);
}

int by_id_update_rows(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view given,
                      cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    if (given.whole && layout->dim == layout->span) return launch_updates(b, own, r, given.data, stream);
    if (gpu_grow(b, &own->padded, r->count * layout->span * sizeof(float), "a call's values")) return -1;
    float *padded = (float *)own->padded.data;
    pad_values<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(given, record_quads(layout), r->count, padded);
    CK_LAUNCH("pad_values");
    return launch_updates(b, own, r, padded, stream);
}
