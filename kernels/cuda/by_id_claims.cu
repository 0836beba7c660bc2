/* by_id_claims: for lists whose rows need no order, but must be copied only once each. If the link is equally fast in any order,
 * hashing the ids needs one kernel, while sorting them needs about ten.
 *
 *   slots   [a power of two, twice the ids at least] row << 32 | place in the list; or EMPTY
 *   owners  [count] for a fetch: the place that fetches the row, which is the first that claimed its slot
 *                   for a store: the row's slot, which holds the last of its places
 *
 * A fetch is three kernels: claim, fetch (by_id_rows.cu), and a copy on the GPU from each row's owner to its other places. A store
 * is two. Between a claim and the next one the slots are emptied.
 */
#include "by_id.cuh"
#include "warp.cuh"

#include <algorithm>

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
        unsigned long long found = slots[slot]; /* read without an atomic operation first: another place with the same row may
                                                 * have claimed it */
        if (found == EMPTY) found = atomicCAS(&to.slots[slot], EMPTY, mine);
        if (found == EMPTY) return LAST ? slot : place;
        if ((uint32_t)(found >> 32) == id) {
            if (LAST && found < mine) atomicMax(&to.slots[slot], mine);
            return LAST ? slot : (uint32_t)found;
        }
        slot = (slot + 1) & mask;
    }
}

/* Claims the rows of a list. The last place of each row within a warp claims it for all its places; otherwise the places of a
 * list that repeats one row would wait for its slot one after the other. */
template <bool LAST>
static __global__ void __launch_bounds__(THREADS) claim_rows(struct id_view from, struct claim_view to) {
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
static __global__ void __launch_bounds__(THREADS)
    copy_claimed(struct claim_view v, uint32_t quads, struct value_view out) {
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
    store_claimed(struct claim_view v, struct row_part part, uint32_t chunks, struct value_view from,
                  struct rounding_keys rounding) {
    uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, warps = gridDim.x * WARPS;
    for (uint32_t first = warp * 2; first < v.count; first += warps * 2) {
        struct row_pair pair;
        for (int i = 0; i < 2; i++) {
            uint32_t at = first + i, id = at < v.count ? v.ids[at] : DRAW_NONE;
            bool moves = id != DRAW_NONE && (uint32_t)v.slots[v.owners[at]] == at;
            pair.row[i] = moves ? row_at(part, id, 0, 0) : NULL;
            pair.id[i] = id;
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
    if (gpu_grow(b, &claims->ids, count * sizeof(uint32_t), CLAIMS) ||
        gpu_grow(b, &claims->owners, count * sizeof(uint32_t), CLAIMS) ||
        gpu_grow(b, &claims->slots, sizeof(unsigned long long) << view->bits, CLAIMS))
        return -1;
    view->ids = (uint32_t *)claims->ids.data;
    view->owners = (uint32_t *)claims->owners.data;
    view->slots = (unsigned long long *)claims->slots.data;
    return 0;
}

static int claim(struct backend *b, struct by_id *own, const struct rows_request *r, int last, struct claim_view *view,
                 cudaStream_t stream) {
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

int by_id_fetch_claimed(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view out,
                        cudaStream_t stream) {
    struct claim_view v;
    if (claim(b, own, r, 0, &v, stream)) return -1;
    struct id_view ids = {v.ids, NULL, r->table->spec.first_row, r->table->spec.rows, v.count, id_view::TAKEN};
    if (by_id_fetch_plain(b, own, &ids, v.owners, NULL, out, stream)) return -1;
    unsigned blocks = std::min(blocks_for(v.count, THREADS), 8 * (unsigned)b->processors);
    copy_claimed<<<blocks, THREADS, 0, stream>>>(v, blocks_for(out.dim, 4), out);
    CK_LAUNCH("copy_claimed");
    return 0;
}

int by_id_store_claimed(struct backend *b, struct by_id *own, const struct rows_request *r, struct value_view from,
                        cudaStream_t stream) {
    struct claim_view v;
    if (claim(b, own, r, 1, &v, stream)) return -1;
    auto kernel = row_halves(own) ? store_claimed<bfloat16_rows> : store_claimed<float32_rows>;
    kernel<<<row_blocks(b, own->set.table, v.count), THREADS, 0, stream>>>(v, by_id_weights(&own->set), row_chunks(own), from,
                                                                           rounding_of_store(own));
    CK_LAUNCH("store_claimed");
    return 0;
}
