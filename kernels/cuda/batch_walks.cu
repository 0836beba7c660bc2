/* batch_walks: if the corpus is a graph, draws walks just before they are used: the walks that contain the positions of a batch,
 * or of a part of lock-free training. Kernels then read the walks as they read sentences. kernels/walks.h defines the draws;
 * each thread draws one walk. */
#include "cuda.cuh"

namespace {

enum { THREADS = 128 };

/* The newest nodes of a walk, at most eight. Eight nodes are written together, since memory writes at least 32 bytes. Between
 * two steps of a walk every thread reads random addresses, so a line with one new node would have left the cache before the next
 * node is written. */
struct held_places {
    enum { MOST = 8 };
    uint32_t *ids; /* where the walk's nodes are written */
    uint32_t held[MOST] = {};

    __device__ explicit held_places(uint32_t *places) : ids(places) {
    }
    __device__ void write(uint32_t step, uint32_t id) {
#pragma unroll
        for (int i = 0; i < MOST - 1; i++) held[i] = held[i + 1];
        held[MOST - 1] = id;
        if (step % MOST == MOST - 1) write_whole(ids + step - (MOST - 1));
    }
    __device__ void write_whole(uint32_t *to) const {
        if ((uintptr_t)to % sizeof(uint4) == 0) {
            ((uint4 *)to)[0] = make_uint4(held[0], held[1], held[2], held[3]);
            ((uint4 *)to)[1] = make_uint4(held[4], held[5], held[6], held[7]);
            return;
        }
#pragma unroll
        for (int i = 0; i < MOST; i++) to[i] = held[i];
    }
    /* Writes the nodes that are still held, fewer than eight. */
    __device__ void end(uint32_t length) const {
#pragma unroll
        for (uint32_t i = 1; i < MOST; i++)
            if (i <= length % MOST) ids[length - i] = held[MOST - i];
    }
};

__device__ void draw_walk(const struct walks &w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t *ids) {
    struct walk walk = walk_begin(&w, seed, number, epoch);
    struct held_places places(ids);
    places.write(0, walk.at.id);
    for (uint32_t step = 0; walk_go(&w, seed, epoch, &walk);)
        if (walk.step != step) places.write(step = walk.step, walk.at.id);
    for (uint32_t step = walk.step + 1; step < w.length; step++) places.write(step, DRAW_NONE);
    places.end(w.length);
}

/* Draws the walks of `s`, a source of cuda_walks_source(), into its ids and starts. */
__device__ void draw_walks(const struct example_source &s, uint32_t epoch) {
    uint64_t number = s.first_sentence + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t *ids = (uint32_t *)(uintptr_t)s.ids;
    uint64_t *starts = (uint64_t *)(uintptr_t)s.starts;
    if (number > s.sentences) return;
    starts[number] = number * s.walks.length;
    if (number < s.sentences) draw_walk(s.walks, s.seed, number, epoch, ids + number * s.walks.length);
}

/* Draws a batch's walks. The source is in memory, since a captured graph reads it there. It is copied to registers first: the
 * compiler must assume that writing walks could change it. */
__global__ void __launch_bounds__(THREADS) draw_for_batch(const struct example_request *request) {
    const struct example_source source = request->source;
    draw_walks(source, request->epoch);
}
/* Draws the walks of a part of lock-free training. Registers are limited so that nine thread blocks fit on a multiprocessor; the
 * code for exact steps, which is rarely used, would otherwise leave room for eight. */
__global__ void __launch_bounds__(THREADS, 9) draw_for_part(const struct example_source source, uint32_t epoch) {
    draw_walks(source, epoch);
}

/* Returns the number of thread blocks that draw every walk that may contain one of this number of positions. The last thread
 * stores where the last walk ends. */
unsigned blocks_of(const struct example_source *s, uint64_t positions) {
    return blocks_for(walks_at_most(&s->walks, positions) + 1, THREADS);
}

} // namespace

int cuda_walks_grow(struct backend *b, struct drawn_walks *drawn, uint64_t positions) {
    const struct walks *w = &b->source.view.walks;
    struct walks_bytes bytes = walks_bytes(w, positions);
    return gpu_grow(b, &drawn->ids, bytes.ids, "walks") || gpu_grow(b, &drawn->starts, bytes.starts, "walks") ? -1 : 0;
}

void cuda_walks_drop(struct backend *b, struct drawn_walks *drawn) {
    gpu_drop(b, &drawn->ids);
    gpu_drop(b, &drawn->starts);
}

struct example_source cuda_walks_source(const struct backend *b, const struct drawn_walks *drawn, uint64_t first,
                                        uint64_t count) {
    const struct example_source *s = &b->source.view;
    return example_of_walks(s, walks_of(&s->walks, first, count), (const uint32_t *)drawn->ids.data,
                            (const uint64_t *)drawn->starts.data);
}

int cuda_walks_draw_batch(const struct example_request *request, const struct example_request *on_host,
                          cudaStream_t stream) {
    draw_for_batch<<<blocks_of(&on_host->source, on_host->count), THREADS, 0, stream>>>(request);
    CK_LAUNCH("draw_for_batch");
    return 0;
}

int cuda_walks_draw_part(const struct example_source *source, uint32_t epoch, uint64_t count, cudaStream_t stream) {
    draw_for_part<<<blocks_of(source, count), THREADS, 0, stream>>>(*source, epoch);
    CK_LAUNCH("draw_for_part");
    return 0;
}

int cuda_draw_walks(struct backend *b, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids) {
    uint64_t length = b->source.view.walks.length, most = WALKED_AT_ONCE / length + 1;
    struct drawn_walks *drawn = &b->builders[0].scratch.walks;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b) || cuda_walks_grow(b, drawn, (count < most ? count : most) * length)) return -1;
    for (uint64_t at = 0; at < count; at += most) {
        uint64_t walks = count - at < most ? count - at : most;
        struct example_source source = cuda_walks_source(b, drawn, (first + at) * length, walks * length);
        if (cuda_walks_draw_part(&source, epoch, walks * length, b->compute)) return -1;
        if (!ids) continue;
        CK(cudaMemcpyAsync(ids + at * length, drawn->ids.data, walks * length * sizeof *ids, cudaMemcpyDeviceToHost,
                           b->compute));
        CK(cudaStreamSynchronize(b->compute)); /* the next part's walks are drawn into the same memory */
    }
    CK(cudaStreamSynchronize(b->compute));
    return 0;
}
