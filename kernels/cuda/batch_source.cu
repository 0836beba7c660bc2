/* batch_source: puts what examples are made of where the GPU finds it: the id stream and its sentences in the GPU's own
 * memory or, where they would take too much of it, in the host's; subsampling, the negatives' table and known rows
 * always in its own. */
#include "cuda.cuh"

#include <string.h>
#include <unistd.h>

static int copy_to_gpu(struct backend *b, void **owned, uint64_t *owned_bytes, const void *from, uint64_t bytes,
                       const char *what) {
    if (gpu_take(b, owned, bytes, what)) return -1;
    *owned_bytes = bytes;
    return gpu_fill(*owned, from, bytes);
}

/* Makes an array that the GPU reads over the link: the caller's memory where the driver takes it, a pinned copy
 * otherwise. */
static int share_with_gpu(struct backend *b, int which, const void *from, uint64_t bytes, const char *what,
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

/* Places a part of the stream; over the link where the caller wants it on the host. */
static int place_stream(struct backend *b, int which, const void *from, uint64_t bytes, const char *what,
                        const void **seen) {
    struct cuda_source *source = &b->source;
    if (!source->host.stream_on_host) {
        if (copy_to_gpu(b, &source->owned[which], &source->owned_bytes[which], from, bytes, what)) return -1;
        *seen = source->owned[which];
        return 0;
    }
    return share_with_gpu(b, which, from, bytes, what, seen);
}

void cuda_source_drop(struct backend *b) {
    struct cuda_source *source = &b->source;
    for (int i = 0; i < 5; i++) gpu_give(b, source->owned[i], source->owned_bytes[i]);
    for (int i = 0; i < 2; i++) {
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
    for (uint64_t i = 0; i < from->sentences && !from->longest; i++) {
        uint64_t length = from->starts[i + 1] - from->starts[i];
        if (length > longest) longest = length;
    }
    return longest;
}

int cuda_source_set(struct backend *b, const struct example_source *from) {
    struct cuda_source *source = &b->source;
    const void *seen = NULL;
    CK(cudaSetDevice(b->device));
    if (cuda_drain(b)) return -1;
    cuda_source_drop(b);
    b->layout++; /* captured graphs refer to arrays that are gone */
    b->capacity = cuda_sizes(&from->capacity);
    if (cuda_use_builders(b, from)) return -1;
    source->host = source->view = *from;
    source->host.longest = longest_sentence(from);
    source->view.keep = NULL;
    source->view.alias = NULL;
    source->view.known = NULL;
    if (place_stream(b, 0, from->ids, from->tokens * 4, "the id stream", &seen)) return -1;
    source->view.ids = (const uint32_t *)seen;
    if (place_stream(b, 1, from->starts, (from->sentences + 1) * 8, "the sentences", &seen)) return -1;
    source->view.starts = (const uint64_t *)seen;
    if (from->keep) {
        if (copy_to_gpu(b, &source->owned[2], &source->owned_bytes[2], from->keep, from->rows * 4, "subsampling"))
            return -1;
        source->view.keep = (const uint32_t *)source->owned[2];
    }
    if (from->alias) {
        if (copy_to_gpu(b, &source->owned[3], &source->owned_bytes[3], from->alias, from->rows * sizeof *from->alias,
                        "the negatives' table"))
            return -1;
        source->view.alias = (const struct alias *)source->owned[3];
    }
    if (from->known) {
        if (copy_to_gpu(b, &source->owned[4], &source->owned_bytes[4], from->known, known_bytes(from->rows), "known rows"))
            return -1;
        source->view.known = (const uint32_t *)source->owned[4];
    }
    source->ready = 1;
    return 0;
}
