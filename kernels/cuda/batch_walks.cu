/* batch_walks: where the corpus is a graph, draws the walks that hold a batch's positions, or those of a part of lock-free
 * training, just before they are used. Kernels then read them as they read sentences. kernels/walks.h says what is drawn; here each
 * thread draws a walk.
 */
#include "cuda.cuh"

namespace {

enum { THREADS = 128 };

/* Draws the walks that a source has at hand, where its ids and starts are. */
__device__ void draw_walks(const struct example_source &s, uint32_t epoch) {
    uint64_t number = s.first_sentence + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t *ids = (uint32_t *)(uintptr_t)s.ids;
    uint64_t *starts = (uint64_t *)(uintptr_t)s.starts;
    if (number > s.sentences) return;
    starts[number] = number * s.walks.length;
    if (number < s.sentences) walk_draw(&s.walks, s.seed, number, epoch, ids + number * s.walks.length);
}

/* A batch's source is read from memory, as a captured graph needs it, and once: what walks write might otherwise be it. */
__global__ void __launch_bounds__(THREADS) draw_for_batch(const struct example_request *request) {
    const struct example_source source = request->source;
    draw_walks(source, request->epoch);
}
__global__ void __launch_bounds__(THREADS) draw_for_part(const struct example_source source, uint32_t epoch) {
    draw_walks(source, epoch);
}

/* Thread blocks for the walks that hold so many positions, wherever these begin, and for where the last one ends. */
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

struct example_source cuda_walks_source(const struct backend *b, const struct drawn_walks *drawn, uint64_t first, uint64_t count) {
    const struct example_source *s = &b->source.view;
    return example_of_walks(s, walks_of(&s->walks, first, count), (const uint32_t *)drawn->ids.data,
                            (const uint64_t *)drawn->starts.data);
}

int cuda_walks_draw_batch(const struct example_request *request, const struct example_request *on_host, cudaStream_t stream) {
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
        CK(cudaMemcpyAsync(ids + at * length, drawn->ids.data, walks * length * sizeof *ids, cudaMemcpyDeviceToHost, b->compute));
        CK(cudaStreamSynchronize(b->compute)); /* the next walks are drawn in the same place */
    }
    CK(cudaStreamSynchronize(b->compute));
    return 0;
}
