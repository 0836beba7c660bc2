/* batch_source: copies a source's arrays to memory that the GPU can read. The id stream with its sentences and weights, or a
 * graph's arcs, are copied to the GPU or, if they would need too much of its memory, stay in host memory. All other arrays are
 * copied to the GPU: the chances of subsampling, the table from which negatives are drawn, the known rows, a graph's nodes, the
 * rows that words share, and paths in a tree. */
#include "cuda.cuh"

#include <string.h>
#include <unistd.h>

/* Copies a caller's array to the GPU. Sets *seen to the copy, or to NULL if the array is NULL. */
static int copy_to_gpu(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what,
                       const void **seen) {
    struct cuda_source *source = &b->source;
    *seen = NULL;
    if (!from) return 0;
    if (gpu_take(b, &source->owned[which], bytes, what)) return -1;
    source->owned_bytes[which] = bytes;
    *seen = source->owned[which];
    return gpu_fill(source->owned[which], from, bytes);
}

/* Lets the GPU read a caller's array over the link: registers the caller's memory, or makes a pinned copy if the driver refuses. */
static int share_with_gpu(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what,
                          const void **seen) {
    struct cuda_source *source = &b->source;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uint64_t)(uintptr_t)from, start = address / page * page;
    uint64_t length = (address + bytes - start + page - 1) / page * page;
    void *device = NULL;
    if (cudaHostRegister((void *)(uintptr_t)start, length, cudaHostRegisterMapped | cudaHostRegisterReadOnly) ==
        cudaSuccess) {
        source->pinned[which] = (void *)(uintptr_t)start;
        source->pinned_bytes[which] = length;
        source->registered[which] = 1;
        b->host_used += length;
        CK(cudaHostGetDevicePointer(&device, source->pinned[which], 0));
        *seen = (const char *)device + (address - start);
        return 0;
    }
    cudaGetLastError();
    char *host, *mapped;
    if (pinned_take(b, &host, &mapped, bytes, what)) return -1;
    memcpy(host, from, bytes);
    source->pinned[which] = host;
    source->pinned_bytes[which] = bytes;
    *seen = mapped;
    return 0;
}

/* Copies an array of the id stream or graph to the GPU or, if stream_on_host is set, lets the GPU read it over the link. */
static int place_stream(struct backend *b, enum source_array which, const void *from, uint64_t bytes, const char *what,
                        const void **seen) {
    if (!b->source.host.stream_on_host) return copy_to_gpu(b, which, from, bytes, what, seen);
    return share_with_gpu(b, which, from, bytes, what, seen);
}

static int place_corpus(struct backend *b, const struct example_source *from, struct example_source *view) {
    return place_stream(b, SOURCE_IDS, from->ids, from->tokens * sizeof *from->ids, "the id stream", (const void **)&view->ids) ||
                   (from->starts && place_stream(b, SOURCE_STARTS, from->starts, (from->sentences + 1) * sizeof *from->starts,
                                                 "the sentences", (const void **)&view->starts)) ||
                   (from->weights && place_stream(b, SOURCE_ITEM_WEIGHTS, from->weights, from->tokens * sizeof *from->weights,
                                                  "the weights of pairs", (const void **)&view->weights))
               ? -1
               : 0;
}

static int place_graph(struct backend *b, const struct walks *from, struct walks *view) {
    if (copy_to_gpu(b, SOURCE_NODES, from->starts, (from->nodes + 1) * sizeof *from->starts, "a graph's nodes",
                    (const void **)&view->starts) ||
        place_stream(b, SOURCE_NEIGHBOURS, from->neighbours, from->arcs * sizeof *from->neighbours, "a graph's arcs",
                     (const void **)&view->neighbours))
        return -1;
    return from->alias ? place_stream(b, SOURCE_WEIGHTS, from->alias, from->arcs * sizeof *from->alias, "a graph's weights",
                                      (const void **)&view->alias)
                       : 0;
}

static int place_subwords(struct backend *b, const struct example_subwords *from, struct example_subwords *view) {
    uint64_t starts = from->starts ? (from->words + 1) * sizeof *from->starts : 0;
    return copy_to_gpu(b, SOURCE_WORD_STARTS, from->starts, starts, "the rows of words", (const void **)&view->starts) ||
                   copy_to_gpu(b, SOURCE_WORD_ROWS, from->rows, from->listed * sizeof *from->rows, "the rows of words",
                               (const void **)&view->rows)
               ? -1
               : 0;
}

static int place_paths(struct backend *b, const struct example_paths *from, struct example_paths *view) {
    uint64_t starts = from->starts ? (2 * from->words + 1) * sizeof *from->starts : 0;
    return copy_to_gpu(b, SOURCE_PATH_STARTS, from->starts, starts, "the tree of words", (const void **)&view->starts) ||
                   copy_to_gpu(b, SOURCE_PATH_NODES, from->nodes, from->listed * sizeof *from->nodes, "the tree of words",
                               (const void **)&view->nodes)
               ? -1
               : 0;
}

void cuda_source_drop(struct backend *b) {
    struct cuda_source *source = &b->source;
    for (int i = 0; i < SOURCE_ARRAYS; i++) gpu_give(b, source->owned[i], source->owned_bytes[i]);
    for (int i = 0; i < SOURCE_STREAM_ARRAYS; i++) {
        if (source->registered[i]) {
            cudaHostUnregister(source->pinned[i]);
            b->host_used -= source->pinned_bytes[i];
        } else
            pinned_give(b, (char *)source->pinned[i], source->pinned_bytes[i]);
    }
    memset(source, 0, sizeof *source);
}

static uint64_t longest_sentence(const struct example_source *from) {
    uint64_t longest = from->longest;
    for (uint64_t i = 0; from->starts && i < from->sentences && !from->longest; i++) {
        uint64_t length = from->starts[i + 1] - from->starts[i];
        if (length > longest) longest = length;
    }
    return longest;
}

int cuda_source_set(struct backend *b, const struct example_source *from) {
    struct cuda_source *source = &b->source;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b)) return -1;
    cuda_source_drop(b);
    b->layout++; /* captured graphs contain the addresses of arrays that are now freed */
    b->capacity = cuda_sizes(&from->capacity);
    if (cuda_use_builders(b, from)) return -1;
    source->host = source->view = *from;
    source->host.longest = longest_sentence(from);
    if (from->walks.length ? place_graph(b, &from->walks, &source->view.walks) : place_corpus(b, from, &source->view)) return -1;
    if (place_subwords(b, &from->subwords, &source->view.subwords) || place_paths(b, &from->paths, &source->view.paths)) return -1;
    if (copy_to_gpu(b, SOURCE_KEEP, from->keep, from->rows * sizeof *from->keep, "subsampling",
                    (const void **)&source->view.keep) ||
        copy_to_gpu(b, SOURCE_ALIAS, from->alias, from->rows * sizeof *from->alias, "the negatives' table",
                    (const void **)&source->view.alias) ||
        copy_to_gpu(b, SOURCE_KNOWN, from->known, known_bytes(from->rows), "known rows", (const void **)&source->view.known))
        return -1;
    source->ready = 1;
    return 0;
}
