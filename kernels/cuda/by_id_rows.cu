/* by_id_rows: the kernels of rows by id, and their launches. They copy rows of a list between the table and the caller's values (in the order of
 * the ids, in the order of the table, or by claims), or update rows by gradients. In the last two ways each row crosses the link once. by_id.cu
 * chooses the way; nothing here waits for the GPU. */
#include "by_id.cuh"
#include "step.cuh"

#include <algorithm>
#include <string.h>

/* A sorted list of ids. */
struct sorted_view {
    struct list_view list;
    const uint32_t *keys, *ranks; /* [count] keys: sorted ids; ranks: 1 + the place of each id in distinct_ids, set only if the list is indexed */
};

static struct sorted_view sorted_view(const struct by_id *own) {
    return {list_view(&own->set), (const uint32_t *)own->sorting.keys.data, (const uint32_t *)own->sorting.ranks.data};
}

/* Returns the address of row number `at` of the sorted list. If rows are in staging, the list must be indexed, since a row in
 * staging is found by its place among the distinct rows. */
static __device__ __forceinline__ char *sorted_row(const struct sorted_view &v, const struct row_part &part, uint32_t at) {
    return row_at(part, v.keys[at], part.staged ? v.ranks[at] - 1 : 0, part.staged ? v.list.counts->cold_first[0] : 0);
}

/* ---- in the order of the ids ---- */

template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_plain(struct id_view ids, const uint32_t *owners, const uint32_t *skip, const __grid_constant__ struct lookups lookups,
                struct row_part part, uint32_t chunks, struct value_view out) {
    uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    for (uint32_t i = 0; skip && i < RESIDENTS; i++)
        if (skip[i]) return;
    for (uint64_t first = (uint64_t)warp * 2; first < ids.count; first += (uint64_t)warps * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = (uint32_t)first + i, id = first + i < ids.count ? read_id(ids, at) : DRAW_NONE;
            bool moves = id != DRAW_NONE && (!owners || owners[at] == at);
            const char *newer = moves && lookups.count ? resident_record(lookups, id) : NULL;
            pair.row[i] = newer ? (char *)newer : moves ? row_at(part, id, 0, 0) : NULL;
            pair.place[i] = at;
        }
        fetch_pair<F>(pair, chunks, out);
    }
}

/* Stores a list of at most FEW rows. Each thread block has all ids in shared memory, and checks for every place whether a later
 * place has the same row. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    store_few(struct id_view ids, struct row_part part, uint32_t chunks, struct value_view from, struct rounding_keys rounding) {
    __shared__ uint32_t all[FEW];
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t i = threadIdx.x; i < ids.count; i += THREADS) all[i] = read_id(ids, i);
    __syncthreads();
    for (uint32_t first = (blockIdx.x * WARPS + threadIdx.x / 32) * 2; first < ids.count; first += gridDim.x * WARPS * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = first + i, id = at < ids.count ? all[at] : DRAW_NONE;
            bool again = false;
            for (uint32_t later = at + 1 + lane; later < ids.count; later += 32) again |= all[later] == id;
            bool moves = !__any_sync(ALL_LANES, again) && id != DRAW_NONE;
            pair.row[i] = moves ? row_at(part, id, 0, 0) : NULL;
            pair.id[i] = known_row(part, id);
            pair.place[i] = at;
        }
        store_pair<F>(pair, chunks, from, rounding);
    }
}

/* ---- in the order of the table ---- */

/* One of 32 neighbouring places of a sorted list, which the lanes of a warp examine together. */
struct lane_place {
    uint32_t at, key, place; /* at: index in the sorted list; key: the row's id, or DRAW_NONE; place: place in the caller's list */
    bool head;               /* true: this is the first place of its row in the sorted list */
};

static __device__ __forceinline__ struct lane_place place_of_lane(const struct sorted_view &v, uint32_t first) {
    uint32_t lane = threadIdx.x & 31;
    struct lane_place p = {first + lane, DRAW_NONE, 0, false};
    if (lane >= v.list.count - first) return p;
    p.key = v.keys[p.at];
    p.place = v.list.rows.order[p.at];
    p.head = p.key != DRAW_NONE && (p.at == 0 || v.keys[p.at - 1] != p.key);
    return p;
}

/* Fetches the rows that are on the host. Each crosses the link once, to its first place in `out`. block: number of this thread block among the
 * `blocks` that fetch. */
template <class F>
static __device__ __forceinline__ void fetch_heads(const struct sorted_view &v, const struct row_part &part, uint32_t chunks,
                                                   const struct value_view &out, uint32_t block, uint32_t blocks) {
    for (uint64_t first = (uint64_t)(block * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += blocks * WARPS * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool cold = p.head && !is_on_gpu(part, p.key);
        char *row = cold ? sorted_row(v, part, p.at) : NULL;
        uint32_t left = __ballot_sync(ALL_LANES, cold);
        while (left) {
            struct row_pair pair;
            for (int i = 0; i < 2; i++) {
                int lane = left ? __ffs((int)left) - 1 : 0;
                char *found = (char *)__shfl_sync(ALL_LANES, (unsigned long long)row, lane);
                pair.place[i] = __shfl_sync(ALL_LANES, p.place, lane);
                pair.row[i] = left ? found : NULL;
                left &= left - 1; /* if no place is left, `left` stays 0 */
            }
            fetch_pair<F>(pair, chunks, out);
        }
    }
}

/* Copies the rows that are on the GPU to all their places in `out`. */
template <class F>
static __device__ __forceinline__ void fetch_hot(const struct sorted_view &v, const struct row_part &part, uint32_t chunks,
                                                 const struct value_view &out, uint32_t block, uint32_t blocks) {
    for (uint64_t first = (uint64_t)(block * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += blocks * WARPS * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool hot = p.key != DRAW_NONE && is_on_gpu(part, p.key);
        char *row = hot ? row_at(part, p.key, 0, 0) : NULL;
        for (uint32_t left = __ballot_sync(ALL_LANES, hot); left; left &= left - 1) {
            int next = __ffs((int)left) - 1;
            uint32_t to = __shfl_sync(ALL_LANES, p.place, next);
            const char *found = (const char *)__shfl_sync(ALL_LANES, (unsigned long long)row, next);
            for (uint32_t c = threadIdx.x & 31; c < chunks; c += 32) give_chunk<F>(out, to, c, read_chunk(found, c), scale_of<F>(found));
        }
    }
}

/* The first LINK_BLOCKS thread blocks fetch rows over the link. At the same time the other blocks copy the rows that are on the
 * GPU, which needs only the GPU's memory. */
template <class F>
static __global__ void __launch_bounds__(THREADS)
    fetch_rows(struct sorted_view v, struct row_part part, uint32_t chunks, struct value_view out) {
    if (blockIdx.x < LINK_BLOCKS) fetch_heads<F>(v, part, chunks, out, blockIdx.x, LINK_BLOCKS);
    else fetch_hot<F>(v, part, chunks, out, blockIdx.x - LINK_BLOCKS, gridDim.x - LINK_BLOCKS);
}

/* Copies each row of the host from its first place in `out`, which fetch_rows() has filled, to its other places. A warp handles 32 places at a
 * time, however often a row is named. */
static __global__ void __launch_bounds__(THREADS) spread_heads(struct sorted_view v, struct row_part part, uint32_t quads, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    for (uint64_t first = (uint64_t)(blockIdx.x * WARPS + threadIdx.x / 32) * 32; first < v.list.count; first += warps * 32ull) {
        struct lane_place p = place_of_lane(v, (uint32_t)first);
        bool again = p.key != DRAW_NONE && !p.head && !is_on_gpu(part, p.key);
        uint32_t heads = __ballot_sync(ALL_LANES, p.head) & (~0u >> (31 - lane));
        uint32_t source = __shfl_sync(ALL_LANES, p.place, heads ? 31 - __clz((int)heads) : 0);
        if (!heads && again) /* the row's first place belongs to an earlier warp */
            source = v.list.rows.order[lower_bound(v.keys, 0, (uint32_t)first, p.key)];
        for (uint32_t left = __ballot_sync(ALL_LANES, again); left; left &= left - 1) {
            int next = __ffs((int)left) - 1;
            uint32_t to = __shfl_sync(ALL_LANES, p.place, next), from = __shfl_sync(ALL_LANES, source, next);
            for (uint32_t q = lane; q < quads; q += 32) give_quad(out, to, q, take_quad(out, from, q));
        }
    }
}

template <class F>
static __global__ void __launch_bounds__(THREADS)
    store_sorted(struct sorted_view v, struct row_part part, uint32_t chunks, struct value_view from, struct rounding_keys rounding) {
    uint32_t warps = gridDim.x * WARPS;
    for (uint32_t at = blockIdx.x * WARPS + threadIdx.x / 32; at < v.list.count; at += warps) {
        uint32_t key = v.keys[at];
        if (key == DRAW_NONE || (at + 1 < v.list.count && v.keys[at + 1] == key)) continue; /* this was the last of the row's places */
        struct row_pair one = {{sorted_row(v, part, at), NULL}, {known_row(part, key), DRAW_NONE}, {v.list.rows.order[at], 0}};
        store_pair<F>(one, chunks, from, rounding);
    }
}

/* ---- launching ---- */

int by_id_fetch_plain(struct backend *b, struct by_id *own, const struct id_view *ids, const uint32_t *owners,
                      const uint32_t *skip, const struct lookups *lookups, struct value_view out, cudaStream_t stream) {
    auto kernel = BY_FORM(own, fetch_plain);
    struct lookups none;
    none.count = 0;
    kernel<<<row_blocks(b, own->set.table, ids->count), THREADS, 0, stream>>>(*ids, owners, skip, lookups ? *lookups : none,
                                                                              by_id_weights(&own->set), row_chunks(own), out);
    CK_LAUNCH("fetch_plain");
    return 0;
}

int by_id_store_few(struct backend *b, struct by_id *own, const struct id_view *ids, struct value_view from, cudaStream_t stream) {
    auto kernel = BY_FORM(own, store_few);
    kernel<<<row_blocks(b, own->set.table, ids->count), THREADS, 0, stream>>>(*ids, by_id_weights(&own->set), row_chunks(own), from,
                                                                              rounding_of_store(own));
    CK_LAUNCH("store_few");
    return 0;
}

int by_id_fetch_sorted(struct backend *b, struct by_id *own, struct value_view out, cudaStream_t stream) {
    auto fetch = BY_FORM(own, fetch_rows);
    struct sorted_view v = sorted_view(own);
    struct row_part part = by_id_weights(&own->set);
    unsigned blocks = std::min(blocks_for(v.list.count, THREADS), 8 * (unsigned)b->processors);
    bool hot = part.places || part.hot_rows > own->set.table->spec.first_row;
    fetch<<<LINK_BLOCKS + (hot ? blocks : 0), THREADS, 0, stream>>>(v, part, row_chunks(own), out);
    CK_LAUNCH("fetch_rows");
    spread_heads<<<blocks, THREADS, 0, stream>>>(v, part, blocks_for(out.dim, 4), out);
    CK_LAUNCH("spread_heads");
    return 0;
}

int by_id_store_sorted(struct backend *b, struct by_id *own, struct value_view from, cudaStream_t stream) {
    auto kernel = BY_FORM(own, store_sorted);
    kernel<<<row_blocks(b, own->set.table, own->set.count), THREADS, 0, stream>>>(
        sorted_view(own), by_id_weights(&own->set), row_chunks(own), from, rounding_of_store(own));
    CK_LAUNCH("store_sorted");
    return 0;
}

/* ==== claims ====
 *
 * For lists whose rows need no order, but must be copied only once each. If the link is equally fast in any order,
 * hashing the ids needs one kernel, while sorting them needs about ten.
 *
 *   slots   [a power of two, twice the ids at least] row << 32 | place in the list; or EMPTY
 *   owners  [count] for a fetch: the place that fetches the row, which is the first that claimed its slot
 *                   for a store: the row's slot, which contains the last of its places
 *
 * A fetch is three kernels: claim, fetch, and a copy on the GPU from each row's owner to its other places. A store
 * is two. Between a claim and the next one the slots are emptied.
 */

#define EMPTY  (~0ull)
#define CLAIMS "claims of a list of ids" /* what gpu_take() says the memory is for */

struct claim_view {
    unsigned long long *slots;
    uint32_t *ids, *owners; /* [count] */
    uint32_t count, bits;   /* count: number of ids; bits: the hash table has 1 << bits slots */
};

/* ---- kernels ---- */

/* Claims row `id` for a place of the list. Returns the value of `owners` for that place. */
template <bool LAST> static __device__ uint32_t claim_row(const struct claim_view &to, uint32_t id, uint32_t place) {
    const volatile unsigned long long *slots = to.slots;
    unsigned long long mine = (unsigned long long)id << 32 | place;
    uint32_t mask = (1u << to.bits) - 1, slot = id * 2654435769u >> (32 - to.bits);
    for (;;) {
        unsigned long long found = slots[slot]; /* first read without an atomic operation: another place with the same row may already have claimed
                                                 * the slot */
        if (found == EMPTY) found = atomicCAS(&to.slots[slot], EMPTY, mine);
        if (found == EMPTY) return LAST ? slot : place;
        if ((uint32_t)(found >> 32) == id) {
            if (LAST && found < mine) atomicMax(&to.slots[slot], mine);
            return LAST ? slot : (uint32_t)found;
        }
        slot = (slot + 1) & mask;
    }
}

/* Claims the rows of a list. Within a warp, only the last place of each row makes a claim, for all of them; otherwise, in a list that repeats one
 * row, all places would wait for its slot one after the other. */
template <bool LAST> static __global__ void __launch_bounds__(THREADS) claim_rows(struct id_view from, struct claim_view to) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x & 31;
    uint32_t id = i < from.count ? read_id(from, i) : DRAW_NONE;
    uint32_t last = 31 - __clz((int)__match_any_sync(ALL_LANES, id)), owner = DRAW_NONE;
    if (lane == last && id != DRAW_NONE) owner = claim_row<LAST>(to, id, i);
    owner = __shfl_sync(ALL_LANES, owner, (int)last);
    if (i >= from.count) return;
    to.ids[i] = id;
    to.owners[i] = owner;
}

/* Copies each row from the place that fetched it to the row's other places. */
static __global__ void __launch_bounds__(THREADS) copy_claimed(struct claim_view v, uint32_t quads, struct value_view out) {
    uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
    for (uint32_t first = (blockIdx.x * WARPS + threadIdx.x / 32) * 32; first < v.count; first += warps * 32) {
        uint32_t at = first + lane, owner = at < v.count ? v.owners[at] : DRAW_NONE;
        uint32_t left = __ballot_sync(ALL_LANES, owner != DRAW_NONE && owner != at);
        for (; left; left &= left - 1) {
            int next = __ffs((int)left) - 1;
            uint32_t source = __shfl_sync(ALL_LANES, owner, next);
            for (uint32_t q = lane; q < quads; q += 32) give_quad(out, first + next, q, take_quad(out, source, q));
        }
    }
}

template <class F>
static __global__ void __launch_bounds__(THREADS)
    store_claimed(struct claim_view v, struct row_part part, uint32_t chunks, struct value_view from, struct rounding_keys rounding) {
    uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    for (uint32_t first = warp * 2; first < v.count; first += warps * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = first + i, id = at < v.count ? v.ids[at] : DRAW_NONE;
            bool moves = id != DRAW_NONE && (uint32_t)v.slots[v.owners[at]] == at;
            pair.row[i] = moves ? row_at(part, id, 0, 0) : NULL;
            pair.id[i] = known_row(part, id);
            pair.place[i] = at;
        }
        store_pair<F>(pair, chunks, from, rounding);
    }
}

/* ---- launching ---- */

static int grow_claims(struct backend *b, struct claims *claims, uint32_t count, struct claim_view *view) {
    view->count = count;
    view->bits = 1;
    while ((uint64_t)1 << view->bits < 2 * (uint64_t)count) view->bits++;
    if (gpu_grow(b, &claims->ids, count * sizeof(uint32_t), CLAIMS) || gpu_grow(b, &claims->owners, count * sizeof(uint32_t), CLAIMS) ||
        gpu_grow(b, &claims->slots, sizeof(unsigned long long) << view->bits, CLAIMS))
        return -1;
    view->ids = (uint32_t *)claims->ids.data;
    view->owners = (uint32_t *)claims->owners.data;
    view->slots = (unsigned long long *)claims->slots.data;
    return 0;
}

static int claim(struct backend *b, struct by_id *own, const struct rows_request *r, int last, struct claim_view *view, cudaStream_t stream) {
    struct id_view ids = by_id_given(own, r);
    if (grow_claims(b, &own->claims, (uint32_t)r->count, view)) return -1;
    CK(cudaMemsetAsync(view->slots, 0xFF, sizeof *view->slots << view->bits, stream));
    if (last)
        claim_rows<true><<<blocks_for(ids.count, THREADS), THREADS, 0, stream>>>(ids, *view);
    else
        claim_rows<false><<<blocks_for(ids.count, THREADS), THREADS, 0, stream>>>(ids, *view);
    CK_LAUNCH("claim_rows");
    return by_id_have_read(own, r, stream);
}

int by_id_fetch_claimed(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out, cudaStream_t stream) {
    struct claim_view v;
    if (claim(b, own, r, 0, &v, stream)) return -1;
    struct id_view ids = {v.ids, NULL, r->table->spec.first_row, r->table->spec.rows, v.count, id_view::TAKEN};
    if (by_id_fetch_plain(b, own, &ids, v.owners, NULL, NULL, out, stream)) return -1;
    unsigned blocks = std::min(blocks_for(v.count, THREADS), 8 * (unsigned)b->processors);
    copy_claimed<<<blocks, THREADS, 0, stream>>>(v, blocks_for(out.dim, 4), out);
    CK_LAUNCH("copy_claimed");
    return 0;
}

int by_id_store_claimed(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view from, cudaStream_t stream) {
    struct claim_view v;
    if (claim(b, own, r, 1, &v, stream)) return -1;
    auto kernel = BY_FORM(own, store_claimed);
    kernel<<<row_blocks(b, own->set.table, v.count), THREADS, 0, stream>>>(v, by_id_weights(&own->set), row_chunks(own), from,
                                                                           rounding_of_store(own));
    CK_LAUNCH("store_claimed");
    return 0;
}

/* ==== updates ====
 *
 * Sums the gradients of each row and updates the row by the rule. A warp works on one row at a time, so that records cross the link in both
 * directions at the same time. */

static __global__ void pad_values(struct value_view from, uint32_t quads, uint64_t count, float *to) {
    uint64_t all = count * quads, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        uint32_t row = (uint32_t)(i / quads), quad = (uint32_t)(i % quads);
        float4 value = 4 * quad < from.dim ? take_quad(from, row, quad) : make_float4(0, 0, 0, 0);
        write_quad(to + (uint64_t)row * 4 * quads, quad, value);
    }
}

enum { VISITS_SPAN = 512 }; /* the records of rows with at most this many columns are updated in shared memory */

struct update {
    struct list_view ids;
    struct row_part weights, state;
    const struct item *items;
    const uint32_t *item_count;
    const float *summands;  /* rows of span floats: gradients in the order of the ids (OF_PLACES), or partial sums (OF_PARTIALS) */
    const uint32_t *places; /* for OF_PLACES: the row set's order, which has the places of each row's gradients. Partial sums are read one after
                             * the other */
    float *partials;
    uint32_t chunks[2];  /* number of chunks of a record in each store: [0] weights, and the state if it is in the same store;
                          * [1] the state in a separate store */
    uint32_t code_chunks; /* of rows of codes: number of chunks of the scale and the codes */
    uint64_t state_here; /* offset of the state in bytes from the beginning of the record in shared memory */
};

/* Copies one part of a record from host memory to shared memory, where the record is updated. The part is copied whole, in requests of 512 bytes
 * that begin at a multiple of a cache line. If threads read only the columns they work on, requests would be smaller, and their headers would use
 * part of the link's rate. Copies that bypass registers (copy_quad) make still smaller requests, at half the speed. */
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

/* The kinds of summands of a work item. OF_PLACES: a row's gradients, in the order of the ids. OF_PARTIALS: the partial sums of a row that has
 * several work items. */
enum update_of { OF_PLACES, OF_PARTIALS };

/* A work item, with the values that were read for it so far. place: in each lane, where one of the summands is. Each read needs the result of the
 * one before; so reads for this item are made while earlier items are worked on. */
struct coming {
    struct item item;
    uint32_t id, place;
    bool real; /* true: the work item exists */
};

static __device__ __forceinline__ void take_item(struct coming &c, const struct update &u, uint32_t at, uint32_t count) {
    c.real = at < count;
    if (c.real) c.item = u.items[at];
}

template <enum update_of OF> static __device__ __forceinline__ void take_places(struct coming &c, const struct update &u) {
    uint32_t lane = threadIdx.x & 31;
    if (!c.real) return;
    c.id = u.ids.rows.distinct_ids[c.item.row];
    c.place = OF == OF_PLACES && lane < c.item.count ? u.places[c.item.first + lane] : 0;
}

/* Adds up some of the gradients of one row. Each thread adds B quads of four columns, and loads the next gradients early. Gradients are added in
 * the same order as in a training step (step.cu). */
template <class F, int B, enum update_of OF>
static __device__ __forceinline__ void sum_of_item(float4 (&sum)[B], const struct step_view &v, const struct update &u,
                                                    const struct coming &c, uint32_t chunk) {
    constexpr uint32_t U = 4; /* number of gradients loaded at the same time; most rows have fewer */
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

/* A warp takes one work item after the other: it sums the item's summands and, if the row has no other item, updates the row. VISITS: the record
 * is copied to shared memory, updated there, and copied back. */
template <class F, bool VISITS, enum update_of OF>
static __global__ void __launch_bounds__(CTA, VISITS || F::QUADS > 1 ? 4 : 5)
    update_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    constexpr uint32_t WARPS_HERE = CTA / 32;
    constexpr int B = F::QUADS; /* few quads a thread, so that many warps are resident */
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
        struct item_end to = {u.ids.rows.distinct_starts, u.partials, NULL};
        end_item<F, 32, B>(true, item, weights, state, {known_row(u.weights, id), SIDE_TARGET}, to, v,
                           [&](uint32_t chunk, float4(&sum)[B]) { sum_of_item<F, B, OF>(sum, v, u, now, chunk); });
        if (visits) {
            __syncwarp();
            send_part(here, home[0], u.chunks[0]);
            send_part(here + u.chunks[0] * CHUNK_BYTES, home[1], u.chunks[1]);
        }
    }
}

/* Updates rows as update_rows() does, but rows of codes, of form F. A warp copies a record to shared memory, converts its weights to float32
 * there, updates them by the float32 rule, converts them back, and copies the record back. */
template <class F, enum update_of OF>
static __global__ void __launch_bounds__(CTA) update_codes(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    extern __shared__ uint4 visited[];
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x & 31, stored = u.chunks[0] + u.chunks[1];
    uint32_t count = *u.item_count, cold_first = u.ids.counts->cold_first[0], step = gridDim.x * (blockDim.x / 32);
    uint32_t at = blockIdx.x * (blockDim.x / 32) + warp;
    char *here = (char *)(visited + warp * (stored + v.quads));
    float *opened = (float *)(here + stored * CHUNK_BYTES);
    struct coming now, next, later;
    take_item(now, u, at, count);
    take_item(next, u, at + step, count);
    take_places<OF>(now, u);
    for (; now.real; now = next, next = later, at += step) {
        take_item(later, u, at + 2 * step, count);
        take_places<OF>(next, u);
        const struct item item = now.item;
        uint32_t id = now.id;
        bool whole = item.partial == DRAW_NONE;
        char *home[2] = {row_at(u.weights, id, item.row, cold_first), row_at(u.state, id, item.row, cold_first)};
        if (whole) {
            __syncwarp(); /* the previous record has been copied back */
            bring_part(here, home[0], u.chunks[0]);
            bring_part(here + u.chunks[0] * CHUNK_BYTES, home[1], u.chunks[1]);
            __syncwarp();
            for (uint32_t c = 1 + lane; c < u.code_chunks; c += 32) {
                float4 x[4];
                open_codes<F>(x, read_chunk(here, c), scale_of<F>(here));
                for (uint32_t k = 0; k < 4 && 4 * (c - 1) + k < v.quads; k++) write_quad(opened, 4 * (c - 1) + k, x[k]);
            }
            __syncwarp();
        }
        struct item_end to = {u.ids.rows.distinct_starts, u.partials, NULL};
        end_item<float32_rows, 32, 1>(true, item, (char *)opened, here + u.state_here, {known_row(u.weights, id), SIDE_TARGET}, to, v,
                                      [&](uint32_t chunk, float4(&sum)[1]) { sum_of_item<float32_rows, 1, OF>(sum, v, u, now, chunk); });
        if (!whole) continue;
        __syncwarp();
        close_codes<F>(here, u.code_chunks, keys_of_row(v.rounding[SIDE_TARGET], known_row(u.weights, id)),
                       [&](uint32_t quad) { return quad < v.quads ? read_quad(opened, quad) : make_float4(0, 0, 0, 0); });
        __syncwarp();
        send_part(here, home[0], u.chunks[0]);
        send_part(here + u.chunks[0] * CHUNK_BYTES, home[1], u.chunks[1]);
    }
}

/* Does the same as update_rows() for narrow rows in the GPU's memory. G lanes update a row of at most G chunks, since a whole warp would leave most
 * of its lanes idle. */
template <class F, int G>
static __global__ void __launch_bounds__(CTA) update_groups(const __grid_constant__ struct step_view v, const __grid_constant__ struct update u) {
    constexpr uint32_t GROUPS = CTA / G;
    constexpr int B = F::QUADS;
    uint32_t count = *u.item_count, cold_first = u.ids.counts->cold_first[0], step = gridDim.x * GROUPS;
    uint32_t at = blockIdx.x * GROUPS + threadIdx.x / G;
    for (; __any_sync(ALL_LANES, at < count); at += step) {
        bool real = at < count;
        struct item item = {0, 0, 0, DRAW_NONE};
        if (real) item = u.items[at];
        uint32_t id = real ? u.ids.rows.distinct_ids[item.row] : 0;
        char *weights = real ? row_at(u.weights, id, item.row, cold_first) : NULL, *state = real ? row_at(u.state, id, item.row, cold_first) : NULL;
        struct item_end to = {u.ids.rows.distinct_starts, u.partials, NULL};
        end_item<F, G, B>(real, item, weights, state, {known_row(u.weights, id), SIDE_TARGET}, to, v, [&](uint32_t chunk, float4(&sum)[B]) {
            clear_row<B>(sum);
            for (uint32_t i = 0; i < item.count; i++) {
                float4 more[B];
                read_row<F, G, B>(more, u.summands + (uint64_t)u.places[item.first + i] * v.span, chunk, v.quads);
                add_row<B>(sum, 1, more);
            }
        });
    }
}

typedef void update_kernel(const struct step_view, const struct update);
template <class F> static update_kernel *const updates_of_codes[] = {update_codes<F, OF_PLACES>, update_codes<F, OF_PARTIALS>};
template <class F, bool VISITS> static update_kernel *const updates[] = {update_rows<F, VISITS, OF_PLACES>, update_rows<F, VISITS, OF_PARTIALS>};

/* The kernels of an update, with the sizes of their launches. */
struct launch {
    update_kernel *const *kernels; /* by update_of */
    update_kernel *narrow;         /* instead of kernels[OF_PLACES]; NULL: rows are not narrow, or not in the GPU's memory */
    uint32_t group;                /* narrow: lanes of a row */
    uint32_t most, bytes;          /* most: largest number of thread blocks; bytes: of shared memory for each thread block */
    cudaStream_t stream;
    uint32_t warps = CTA / 32;     /* of a thread block */
};

/* Sets the kernel for narrow rows, if these are. */
template <class F> static void choose_narrow(struct launch *l, const struct record_layout *layout) {
    uint32_t chunks = record_quads(layout) / F::QUADS;
    l->narrow = chunks <= 8 ? update_groups<F, 8> : chunks <= 16 ? update_groups<F, 16> : NULL;
    l->group = chunks <= 8 ? 8 : 16;
}

/* Returns 1 if at least half of the table's records are only in host memory. */
static bool is_mostly_cold(const struct backend_table *table) {
    return cuda_hot_rows(table) + table->spec.gpu_cache <= table->spec.rows / 2;
}

/* Chooses the launch. here: 1: the records are in a resident list's slots. Otherwise a few rows on each multiprocessor use the link's full rate.
 * Records of rows wider than VISITS_SPAN do not fit in shared memory. */
static struct launch launch_of(const struct backend *b, const struct backend_table *table, bool here, const struct update *u, cudaStream_t stream) {
    uint32_t processors = (uint32_t)b->processors, bytes = CTA / 32 * (u->chunks[0] + u->chunks[1]) * CHUNK_BYTES;
    bool halves = has_halves(&table->spec.layout);
    if (!here && table->spec.layout.span <= VISITS_SPAN && is_mostly_cold(table))
        return {halves ? updates<bfloat16_rows, true> : updates<float32_rows, true>, NULL, 32, 4 * processors, bytes, stream};
    struct launch l = {halves ? updates<bfloat16_rows, false> : updates<float32_rows, false>, NULL, 32, 16 * processors, 0, stream};
    bool on_gpu = here || cuda_hot_rows(table) == table->spec.rows;
    if (on_gpu && halves) choose_narrow<bfloat16_rows>(&l, &table->spec.layout);
    if (on_gpu && !halves) choose_narrow<float32_rows>(&l, &table->spec.layout);
    return l;
}

static int launch_items(const struct launch *l, enum update_of of, uint64_t items, const struct step_view *v, const struct update *u) {
    bool narrow = of == OF_PLACES && l->narrow;
    unsigned threads = narrow ? CTA : 32 * l->warps, blocks = std::min(blocks_for(items, narrow ? CTA / l->group : l->warps), l->most);
    (narrow ? l->narrow : l->kernels[of])<<<blocks, threads, l->bytes, l->stream>>>(*v, *u);
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
    u->code_chunks = weights / CHUNK_BYTES;
}

/* Changes the launch to one for rows of codes. If records are wide, thread blocks have fewer warps. */
static int launch_codes(const struct backend_table *table, const struct update *u, struct launch *l) {
    const uint32_t always = 48 << 10; /* bytes of shared memory that every thread block may have */
    uint32_t bytes = (u->chunks[0] + u->chunks[1] + record_quads(&table->spec.layout)) * CHUNK_BYTES;
    bool float8 = table->spec.layout.field[RECORD_WEIGHTS].type == VALUE_FLOAT8;
    l->narrow = NULL;
    l->kernels = float8 ? updates_of_codes<code_rows<true>> : updates_of_codes<code_rows<false>>;
    l->warps = std::min((uint32_t)CTA / 32, std::max(always / bytes, 1u));
    l->bytes = l->warps * bytes;
    l->most *= CTA / 32 / l->warps;
    for (int of = 0; l->bytes > always && of < 2; of++)
        CK(cudaFuncSetAttribute(l->kernels[of], cudaFuncAttributeMaxDynamicSharedMemorySize, (int)l->bytes));
    return 0;
}

static int launch_updates(struct backend *b, struct by_id *own, const struct row_set *set, const struct resident *resident,
                          const struct rows_request *r, const float *gradients, cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    uint64_t count = r->count, items = most_partials(count);
    struct step_view v;
    struct update u;
    memset(&v, 0, sizeof v);
    v.quads = record_quads(layout);
    v.dim = layout->dim;
    v.span = layout->span;
    v.rounding[SIDE_TARGET] = keys_of_step(&r->table->spec.rounding, DRAW_ROUND_WEIGHTS, r->global_step);
    if (gpu_grow(b, &own->partials, items * layout->span * sizeof(float), "a call's partial sums") ||
        cuda_prepare_rule(b, r->rule, r->lr, r->global_step, layout, stream, &v.rule))
        return -1;
    u.ids = list_view(set);
    u.weights = resident ? by_id_slots(resident, 0) : by_id_weights(set);
    u.state = resident && r->table->shared ? by_id_slots(resident, r->table->state_offset) : by_id_state(set);
    u.items = u.ids.rows.items;
    u.item_count = &set->counts->items[0];
    u.summands = gradients;
    u.places = u.ids.rows.order;
    u.partials = (float *)own->partials.data;
    set_parts(r->table, &u);
    struct launch l = launch_of(b, r->table, resident != NULL, &u, stream);
    if (layout->coarse && launch_codes(r->table, &u, &l)) return -1;
    if (launch_items(&l, OF_PLACES, count, &v, &u)) return -1;
    if (count <= ITEM_MOST) return 0;
    u.items = u.ids.rows.longs;
    u.item_count = &set->counts->longs[0];
    u.summands = u.partials;
    return launch_items(&l, OF_PARTIALS, count / ITEM_MOST + 1, &v, &u);
}

int by_id_update_rows(struct backend *b, struct by_id *own, const struct row_set *set, const struct resident *resident, const struct rows_request *r,
                      struct value_view given, cudaStream_t stream) {
    const struct record_layout *layout = &r->table->spec.layout;
    if (given.whole && layout->dim == layout->span) return launch_updates(b, own, set, resident, r, given.data, stream);
    if (gpu_grow(b, &own->padded, r->count * layout->span * sizeof(float), "a call's values")) return -1;
    float *padded = (float *)own->padded.data;
    pad_values<<<8 * (unsigned)b->processors, THREADS, 0, stream>>>(given, record_quads(layout), r->count, padded);
    CK_LAUNCH("pad_values");
    return launch_updates(b, own, set, resident, r, padded, stream);
}
