/* backend: opens and closes the backend of one NVIDIA GPU, and describes the machine's GPUs. The table of its functions is in ops.c; cuda.cuh says
 * how the files work together. */
#include "blas.cuh"
#include "ranks.cuh"

extern "C" {
#include "base/machine.h"
#include "base/text.h"
#include "kernels/ranks.h"
}

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is ---- */

enum { LEAST_CAPABILITY = 75 }; /* lowest compute capability, times ten, that older_cards.cuh supports */

/* Never launched: if its attributes can be read, the program contains kernels for the card. */
static __global__ void no_work(void) {
}

/* Returns 1 if the program contains kernels for the current card. */
static int has_kernels(void) {
    struct cudaFuncAttributes attributes;
    int found = cudaFuncGetAttributes(&attributes, no_work) == cudaSuccess;
    cudaGetLastError();
    return found;
}

static int say_no_kernels(const struct cudaDeviceProp *card, char *why, size_t capacity) {
    return snprintf(why, capacity,
                    "%.100s has compute capability %d.%d, for which this program holds no kernels; it wants 7.5 or later, and a "
                    "build for this card (make CUDA_ARCH=all)",
                    card->name, card->major, card->minor);
}

/* Returns 1 if at least one card is new enough; otherwise returns 0, and writes the first card's name and capability to `why`. Opens no card:
 * opening one uses some of its memory, and every rank would do so. */
static int find_card(int count, char *why, size_t capacity) {
    int major = 0, minor = 0;
    struct cudaDeviceProp card;
    for (int i = 0; i < count; i++) {
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i);
        if (10 * major + minor >= LEAST_CAPABILITY) return 1;
    }
    if (count > 0 && why && cudaGetDeviceProperties(&card, 0) == cudaSuccess) say_no_kernels(&card, why, capacity);
    return 0;
}

int cuda_present(char *why, size_t capacity) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (why && pci_without_nvidia())
        snprintf(why, capacity, "this machine has no NVIDIA GPU; use device.backend = cpu");
    else if (why)
        snprintf(why, capacity, "no GPU can be used: %s; check nvidia-smi and the driver, or use device.backend = cpu",
                 error == cudaSuccess ? "the system has none" : cudaGetErrorString(error));
    cudaGetLastError();
    return error == cudaSuccess && find_card(count, why, capacity);
}

static void read_line(const char *path, char *out, size_t capacity) {
    out[0] = 0;
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (!fgets(out, (int)capacity, file)) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    fclose(file);
}

static void read_of_device(const char *bus, const char *name, char *out, size_t capacity) {
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, name);
    read_line(path, out, capacity);
}

/* Describes the GPU's PCIe connection ("PCIe 5.0 x16"); "" if it is unknown. */
static void describe_link(int device, char *out, size_t capacity) {
    static const struct {
        const char *speed, *name;
    } generations[] = {{"64", "6.0"}, {"32", "5.0"}, {"16", "4.0"}, {"8", "3.0"}, {"5", "2.0"}, {"2.5", "1.0"}};
    char bus[32], speed[64], width[32];
    out[0] = 0;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) return;
    for (char *p = bus; *p; p++) *p = (char)tolower((unsigned char)*p);
    read_of_device(bus, "max_link_speed", speed, sizeof speed);
    read_of_device(bus, "max_link_width", width, sizeof width);
    double giga = numbers_read(speed, NULL);
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if (giga > 0 && giga == numbers_read(generations[i].speed, NULL)) snprintf(out, capacity, "PCIe %s x%d", generations[i].name, atoi(width));
}

static int describe(int device, struct backend_info *info) {
    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    memset(info, 0, sizeof *info);
    CK(cudaGetDeviceProperties(&properties, device));
    CK(cudaSetDevice(device));
    CK(cudaMemGetInfo(&available, &total));
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    info->gpu_total = total;
    info->gpu_free = available;
    info->processors = (unsigned)properties.multiProcessorCount;
    info->runs = has_kernels();
    describe_link(device, info->link, sizeof info->link);
    read_line("/sys/module/nvidia/version", info->driver, sizeof info->driver);
    return 0;
}

int cuda_devices(struct backend_info *info, int capacity) {
    int count = 0, before = 0;
    if (!cuda_present(NULL, 0)) return 0;
    CK(cudaGetDeviceCount(&count));
    CK(cudaGetDevice(&before));
    for (int i = 0; i < count && i < capacity; i++) {
        CK(cudaSetDevice(i));
        int managed = cuda_manages_rows(i); /* asked before the free memory is, since the driver needs memory for its answer */
        if (describe(i, &info[i])) return -1;
        info[i].managed = managed;
    }
    CK(cudaSetDevice(before));
    return count;
}

/* ---- opening ---- */

static int open_device(struct backend *b, const struct backend_options *options) {
    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    int count = 0;
    char why[512];
    if (!cuda_present(why, sizeof why)) return fail("%s", why);
    CK(cudaGetDeviceCount(&count));
    if (options->index >= (unsigned)count) return fail("device.index %u: this machine has %d GPU%s", options->index, count, count == 1 ? "" : "s");
    /* Ranks get the machine's GPUs in turn, from device.index on; with more ranks than GPUs, some ranks share one. */
    unsigned place = options->ranks ? options->ranks->place : 0, local = options->ranks ? options->ranks->local : 1;
    b->device = (int)((options->index + place) % (unsigned)count);
    b->sharers = (local - place % (unsigned)count + (unsigned)count - 1) / (unsigned)count;
    CK(cudaGetDeviceProperties(&properties, b->device));
    CK(cudaSetDevice(b->device));
    if (!has_kernels()) {
        say_no_kernels(&properties, why, sizeof why);
        return fail("%s, or device.backend = cpu", why);
    }
    b->manages_rows = cuda_manages_rows(b->device); /* asked before the free memory is, since the driver needs memory for its answer */
    CK(cudaMemGetInfo(&available, &total));
    snprintf(b->name, sizeof b->name, "%.*s", (int)sizeof b->name - 1, properties.name);
    b->processors = properties.multiProcessorCount;
    b->shared_most = (uint32_t)properties.sharedMemPerBlockOptin;
    b->gpu_budget = options->gpu_budget;
    if (options->gpu_budget == UINT64_MAX) b->gpu_budget = backend_gpu_budget(available / b->sharers);
    return 0;
}

/* Opens a stream. first = 1: for the work of steps, which has priority over the making of batches and the copying of rows on the other streams. */
static int open_stream(cudaStream_t *stream, int first) {
    int least = 0, greatest = 0;
    CK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CK(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, first ? greatest : least));
    return 0;
}

static void drop_scratch(struct backend *b, struct scratch *s) {
    cuda_walks_drop(b, &s->walks);
    for (struct gpu_array *array : {&s->sizes, &s->offsets, &s->words, &s->scanning, &s->iota.numbers}) gpu_drop(b, array);
    s->iota.count = 0;
    for (struct sorting &sorting : s->sorting) cuda_drop_sorting(b, &sorting);
}

/* Opens more builders of batches if the source needs them. No batch may be in the making. */
int cuda_use_builders(struct backend *b, const struct example_source *source) {
    b->builders_in_use = batch_builders(source, b->depth);
    for (unsigned i = 0; i < b->builders_in_use; i++) {
        struct batch_builder *builder = &b->builders[i];
        if (builder->stream) continue;
        if (open_stream(&builder->stream, 1) || open_stream(&builder->beside, 1)) return -1;
        CK(cudaEventCreateWithFlags(&builder->forked, cudaEventDisableTiming));
        CK(cudaEventCreateWithFlags(&builder->joined, cudaEventDisableTiming));
    }
    for (unsigned i = b->builders_in_use; i < b->depth; i++) drop_scratch(b, &b->builders[i].scratch);
    return 0;
}

static int open_streams(struct backend *b) {
    if (open_stream(&b->in, 1) || open_stream(&b->out, 1) || open_stream(&b->compute, 0)) return -1;
    cudaEvent_t *events[] = {&b->sized, &b->last_forward};
    for (cudaEvent_t *event : events) CK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    if (cuda_use_builders(b, &b->source.view)) return -1; /* the source is not known yet, so the fewest builders are opened */
    return buffer_take(b, (void **)&b->counted, sizeof *b->counted);
}

static int open_stage(struct backend *b, struct stage *stage) {
    cudaEvent_t *events[] = {&stage->prepared, &stage->stepped, &stage->done};
    if (gpu_take(b, (void **)&stage->both_counts, 2 * sizeof *stage->counts, "a batch's counts") ||
        gpu_take(b, (void **)&stage->request, sizeof *stage->request, "a batch's request"))
        return -1;
    if (buffer_take(b, (void **)&stage->request_host, sizeof *stage->request_host) || buffer_take(b, (void **)&stage->result, sizeof *stage->result))
        return -1;
    memset(stage->request_host, 0, sizeof *stage->request_host);
    if (gpu_fill(stage->both_counts, NULL, 2 * sizeof *stage->counts)) return -1;
    stage->builder = b->builders;
    memset(stage->result, 0, sizeof *stage->result);
    for (cudaEvent_t *event : events) CK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    for (int side = 0; side < 2; side++)
        if (row_set_open(&stage->side[side], side, 2)) return -1;
    cuda_stage_use(stage, 0);
    return 0;
}

static void close_stage(struct backend *b, struct stage *stage) {
    struct gpu_array *arrays[] = {&stage->target_starts, &stage->context_starts, &stage->term_starts,  &stage->positives,
                                  &stage->block_example, &stage->block_slot,     &stage->coefficients, &stage->losses,
                                  &stage->weights,       &stage->block_of[0],    &stage->block_of[1]};
    cudaEvent_t events[] = {stage->prepared, stage->stepped, stage->done};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (struct row_set &side : stage->side) row_set_close(b, &side);
    for (cudaEvent_t event : events)
        if (event) cudaEventDestroy(event);
    gpu_give(b, stage->both_counts, 2 * sizeof *stage->counts);
    gpu_give(b, stage->request, sizeof *stage->request);
    buffer_give(b, stage->request_host, sizeof *stage->request_host);
    for (struct making &making : stage->making)
        if (making.graph) cudaGraphExecDestroy(making.graph);
    buffer_give(b, stage->result, sizeof *stage->result);
    for (void *memory : stage->view_memory) free(memory);
}

void cuda_close(struct backend *b) {
    if (!b) return;
    struct gpu_array *arrays[] = {&b->gradients, &b->context_gradients, &b->partials,    &b->row_sums,      &b->scores,         &b->lengths,
                                  &b->pooled,    &b->corrections,       &b->shared_rows, &b->shared_scores, &b->shared_lengths, &b->shared_gains};
    cudaStream_t streams[] = {b->in, b->compute, b->out};
    cudaEvent_t events[] = {b->sized, b->last_forward};
    cudaSetDevice(b->device); /* another thread may have opened the backend */
    cudaDeviceSynchronize();
    cuda_hogwild_close(b);
    cuda_topk_close(b);
    cuda_blas_close(b);
    cuda_by_id_close(b);
    cuda_source_drop(b);
    exchange_close(b);
    for (unsigned i = 0; i < BACKEND_STAGES; i++) close_stage(b, &b->stages[i]);
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (struct batch_builder &builder : b->builders) {
        drop_scratch(b, &builder.scratch);
        for (cudaEvent_t event : {builder.forked, builder.joined})
            if (event) cudaEventDestroy(event);
        for (cudaStream_t stream : {builder.stream, builder.beside})
            if (stream) cudaStreamDestroy(stream);
    }
    buffer_give(b, b->counted, sizeof *b->counted);
    for (char *transfer : b->transfer) buffer_give(b, transfer, TRANSFER_BYTES);
    for (cudaEvent_t event : events)
        if (event) cudaEventDestroy(event);
    for (cudaStream_t stream : streams)
        if (stream) cudaStreamDestroy(stream);
    host_pool_close(b->pool);
    free(b);
}

int cuda_open(struct backend **out, const struct backend_options *options) {
    struct backend *b = (struct backend *)mem_zalloc(1, sizeof *b, "the CUDA backend");
    *out = NULL;
    if (!b) return -1;
    b->ops = &backend_cuda;
    b->depth = options->depth < 1 ? 1 : options->depth > BACKEND_STAGES ? BACKEND_STAGES : options->depth;
    b->matmul = options->matmul;
    int failed = open_device(b, options) || open_streams(b);
    for (unsigned i = 0; i < b->depth && !failed; i++) failed = open_stage(b, &b->stages[i]);
    failed = failed || exchange_open(b, options) || !(b->pool = host_pool_open(options->threads));
    if (failed) {
        cuda_close(b);
        return -1;
    }
    *out = b;
    return 0;
}

int cuda_info(struct backend *b, struct backend_info *out) {
    if (describe(b->device, out)) return -1;
    out->gpu_free /= b->sharers;
    out->managed = b->manages_rows;
    out->threads = host_pool_threads(b->pool);
    out->gpu_used = b->gpu_used;
    out->host_used = b->host_used;
    return 0;
}
