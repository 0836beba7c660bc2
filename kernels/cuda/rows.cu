/* rows: where rows are stored, and how they move. Three parts:
 *
 *   tables          GPU memory within a budget, host memory that the GPU can address, and working files. Where a row is stored
 *                   is decided here once; not even managed memory migrates later
 *   row sets        host functions for the distinct rows that a batch or a call needs (drawn in cuda.cuh)
 *   moving rows     rows in host memory are copied to GPU memory of their batch before the step, and back after it
 */
#include "values.cuh"

extern "C" {
#include "base/machine.h"
}

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

#define GIB              1073741824.0
#define PIN_PIECE        ((uint64_t)64 << 30) /* number of bytes that one call pins */
#define TOUCH_PIECE      ((uint64_t)1 << 30)
#define TOUCH_SPARE      ((uint64_t)256 << 20) /* bytes of host memory that must stay free */
#define TOUCH_TRIES      20                    /* how many times to wait a tenth of a second for more free memory */

int cuda_failed(cudaError_t error, const char *call) {
    cudaGetLastError(); /* clears the error, which a later call would report otherwise */
    return fail("CUDA: %s: %s", call, cudaGetErrorString(error));
}

/* ---- the GPU's memory ---- */

int gpu_take(struct backend *b, void **data, uint64_t bytes, const char *what) {
    *data = NULL;
    if (!bytes) return 0;
    if (bytes > b->gpu_budget || b->gpu_used > b->gpu_budget - bytes)
        return fail("%.2f GiB of the GPU for %s on top of the %.2f GiB in use would pass the budget of %.2f GiB; raise "
                    "memory.gpu_budget, lower train.batch, or place fewer rows on the GPU",
                    bytes / GIB, what, b->gpu_used / GIB, b->gpu_budget / GIB);
    cudaError_t error = cudaMalloc(data, bytes);
    if (error != cudaSuccess) {
        size_t left = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&left, &total);
        *data = NULL;
        return fail("the GPU has no room of %.2f GiB for %s (%.2f of %.2f GiB free): %s; lower memory.gpu_budget or train.batch",
                    bytes / GIB, what, left / GIB, total / GIB, cudaGetErrorString(error));
    }
    b->gpu_used += bytes;
    return 0;
}

void gpu_give(struct backend *b, void *data, uint64_t bytes) {
    if (!data) return;
    cudaFree(data);
    b->gpu_used -= bytes;
}

int gpu_grow(struct backend *b, struct gpu_array *array, uint64_t bytes, const char *what) {
    if (bytes <= array->bytes) return 0;
    uint64_t capacity = round_up(bytes, GPU_ARRAY_ALIGN); /* allocates just what is asked for: callers that want a reserve for later batches ask
                                                           * for more */
    gpu_drop(b, array);
    if (gpu_take(b, &array->data, capacity, what)) return -1;
    array->bytes = capacity;
    b->layout++;
    return 0;
}

void gpu_drop(struct backend *b, struct gpu_array *array) {
    gpu_give(b, array->data, array->bytes); /* cudaFree waits for all work that still uses the array */
    array->data = NULL;
    array->bytes = 0;
}

int gpu_has_room(const struct backend *b, uint64_t bytes, int *fits) {
    const uint64_t left_free = 256 << 20; /* bytes for the driver */
    size_t free_bytes, all;
    CK(cudaMemGetInfo(&free_bytes, &all));
    *fits = bytes + left_free <= free_bytes && bytes + left_free <= b->gpu_budget - b->gpu_used;
    return 0;
}

/* Waits until the memory is filled: cudaMemset, and cudaMemcpy from memory that is not pinned, may return earlier, and this backend's streams do
 * not wait for the default stream. */
int gpu_fill(void *to, const void *from, uint64_t bytes) {
    if (!bytes) return 0;
    CK(from ? cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice) : cudaMemset(to, 0, bytes));
    CK(cudaStreamSynchronize(cudaStreamLegacy));
    return 0;
}

/* ---- host memory that the GPU reads ---- */

/* Returns the NUMA node whose memory is nearest to the GPU. */
static int near_node(int device) {
    char address[32];
    if (cudaDeviceGetPCIBusId(address, sizeof address, device) == cudaSuccess) return numa_near("/sys", address);
    cudaGetLastError();
    return NUMA_NONE;
}

static void unpin(char *host, uint64_t registered) {
    for (uint64_t at = 0; at < registered; at += PIN_PIECE) cudaHostUnregister(host + at);
}

/* Registers `bytes` at `host` with the driver, so that they are pinned. *registered: how many bytes were registered, even after an error. */
static int pin(char *host, uint64_t bytes, const char *what, uint64_t *registered) {
    for (uint64_t at = 0; at < bytes; at += PIN_PIECE) {
        uint64_t piece = bytes - at < PIN_PIECE ? bytes - at : PIN_PIECE;
        void *seen = NULL;
        cudaError_t error = cudaHostRegister(host + at, piece, cudaHostRegisterMapped | cudaHostRegisterPortable);
        if (error == cudaSuccess) {
            *registered = at + piece;
            error = cudaHostGetDevicePointer(&seen, host + at, 0);
        }
        if (error != cudaSuccess) {
            cudaGetLastError();
            return fail("cannot pin %.2f GiB of host memory for %s (%.2f GiB are pinned of it, %.2f GiB of the machine's "
                        "%.2f are free): %s; use fewer rows or columns, memory.hot_rows, or the place 'file'",
                        bytes / GIB, what, at / GIB, mem_available() / GIB, mem_total() / GIB, cudaGetErrorString(error));
        }
        if (seen != host + at) return fail("host memory for %s has another address on the GPU; this platform needs the place 'file' or 'gpu'", what);
    }
    return 0;
}

/* Returns memory that consists of whole huge pages; NULL if the system refuses. Maps one page too many, so that the memory can begin at a multiple
 * of the page size, and unmaps what is left at both ends. */
static char *map_huge(uint64_t bytes) {
    void *got = mmap(NULL, bytes + PINNED_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return NULL;
    char *base = (char *)got, *start = (char *)round_up((uint64_t)(uintptr_t)base, PINNED_PAGE);
    if (start > base) munmap(base, (uint64_t)(start - base));
    munmap(start + bytes, PINNED_PAGE - (uint64_t)(start - base));
    madvise(start, bytes, MADV_HUGEPAGE); /* huge pages are pinned faster; smaller ones would do as well */
    return start;
}

/* Writes to every page, part by part. A virtual machine may get memory from its host only when it uses it, so this waits until its free memory
 * grows. */
static int touch(struct backend *b, char *start, uint64_t bytes, const char *what) {
    for (uint64_t at = 0; at < bytes; at += TOUCH_PIECE) {
        uint64_t piece = bytes - at < TOUCH_PIECE ? bytes - at : TOUCH_PIECE;
        for (int tries = 0;; tries++) {
            uint64_t available = mem_available();
            if (!available || available > piece + TOUCH_SPARE) break;
            if (tries == TOUCH_TRIES)
                return fail("%s needs %.2f GiB of host memory; at %.2f of them %.2f of the machine's %.2f GiB are free; "
                            "use fewer rows or columns, more memory.hot_rows, or the place 'file'",
                            what, bytes / GIB, at / GIB, available / GIB, mem_total() / GIB);
            usleep(100000);
        }
        if (host_zero(b->pool, start + at, piece)) return -1;
    }
    return 0;
}

int pinned_take(struct backend *b, char **host, char **device, uint64_t bytes, const char *what) {
    uint64_t registered = 0, capacity = round_up(bytes, PINNED_PAGE);
    *host = *device = NULL;
    if (!bytes) return 0;
    char *start = map_huge(capacity);
    if (!start) return fail("not enough host memory for %s (%.2f GiB): %s", what, capacity / GIB, strerror(errno));
    numa_place(start, capacity, near_node(b->device));
    if (touch(b, start, capacity, what) || pin(start, capacity, what, &registered)) {
        unpin(start, registered);
        munmap(start, capacity);
        return -1;
    }
    b->host_used += capacity;
    *host = *device = start;
    return 0;
}

void pinned_give(struct backend *b, char *host, uint64_t bytes) {
    uint64_t capacity = round_up(bytes, PINNED_PAGE);
    if (!host) return;
    unpin(host, capacity);
    munmap(host, capacity);
    b->host_used -= capacity;
}

/* The kinds of location for cudaMemAdvise(), as CUDA numbers them. Toolkits before 12.2 have no names for the last two. */
enum { PLACE_DEVICE = 1, PLACE_HOST = 2, PLACE_HOST_NODE = 3 };

/* Returns a location for cudaMemAdvise(): a device number before CUDA 13, a struct from then on. node: NUMA node of the host, or NUMA_NONE. */
template <class Place> static Place place_of(int device, int node) {
    if constexpr (std::is_integral_v<Place>) {
        return device;
    } else {
        bool host = device == cudaCpuDeviceId;
        Place place;
        place.type = (decltype(place.type))(!host ? PLACE_DEVICE : node < 0 ? PLACE_HOST : PLACE_HOST_NODE);
        place.id = !host ? device : node < 0 ? 0 : node;
        return place;
    }
}

template <class Place>
static cudaError_t advise(cudaError_t (*call)(const void *, size_t, enum cudaMemoryAdvise, Place), void *memory, uint64_t bytes,
                          enum cudaMemoryAdvise advice, int device, int node) {
    return call(memory, bytes, advice, place_of<Place>(device, node));
}

/* Advises the driver to keep these pages on the host, if possible on the NUMA node near the GPU. */
static cudaError_t keep_on_host(void *memory, uint64_t bytes, int device) {
    const enum cudaMemoryAdvise stay = cudaMemAdviseSetPreferredLocation;
    int node = near_node(device);
    if (node >= 0 && advise(cudaMemAdvise, memory, bytes, stay, cudaCpuDeviceId, node) == cudaSuccess) return cudaSuccess;
    cudaGetLastError(); /* clears the error of the advice that the driver has refused */
    return advise(cudaMemAdvise, memory, bytes, stay, cudaCpuDeviceId, NUMA_NONE);
}

/* Returns managed memory that stays on the host and is mapped into the GPU; NULL if the driver refuses, with the reason in *error. */
static char *manage(int device, uint64_t bytes, cudaError_t *error) {
    char *got = NULL;
    *error = cudaMallocManaged((void **)&got, bytes);
    if (*error == cudaSuccess) *error = keep_on_host(got, bytes, device);
    if (*error == cudaSuccess) *error = advise(cudaMemAdvise, got, bytes, cudaMemAdviseSetAccessedBy, device, NUMA_NONE);
    if (*error == cudaSuccess) return got;
    cudaGetLastError();
    if (got) cudaFree(got);
    return NULL;
}

/* Returns 1 if the host can access this memory. Asks by a system call, since reading the memory could crash the program. */
static int host_reaches(char *memory) {
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    ssize_t came = fd < 0 ? -1 : read(fd, memory, 1);
    if (fd >= 0) close(fd);
    return came == 1;
}

int cuda_manages_rows(int device) {
    const char *pin = getenv("SPTX_PIN_ROWS");
    int at_once = 0;
    cudaError_t error = cudaDeviceGetAttribute(&at_once, cudaDevAttrConcurrentManagedAccess, device);
    if (error != cudaSuccess) cudaGetLastError();
    if (error != cudaSuccess || !at_once || (pin && *pin && strcmp(pin, "0"))) return 0;
    char *probe = manage(device, PINNED_PAGE, &error);
    int reached = probe && host_reaches(probe);
    if (probe) cudaFree(probe);
    return reached;
}

int cuda_host_pin(struct backend *b, void *memory, uint64_t bytes) {
    uint64_t registered = 0;
    CK(cudaSetDevice(b->device));
    if (!pin((char *)memory, bytes, "a shared table", &registered)) return 0;
    unpin((char *)memory, registered);
    return -1;
}

void cuda_host_unpin(struct backend *b, void *memory, uint64_t bytes) {
    cudaSetDevice(b->device);
    cudaDeviceSynchronize();
    unpin((char *)memory, bytes);
}

int cuda_host_copy(struct backend *b, void *to, const void *from, uint64_t bytes, void *stream) {
    CK(cudaSetDevice(b->device));
    CK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
    CK(cudaStreamSynchronize((cudaStream_t)stream));
    return 0;
}

int rows_take(struct backend *b, char **host, char **device, uint64_t bytes, const char *what) {
    uint64_t capacity = round_up(bytes, PINNED_PAGE);
    cudaError_t error;
    if (!b->manages_rows || !bytes) return pinned_take(b, host, device, bytes, what);
    *host = *device = NULL;
    char *got = manage(b->device, capacity, &error);
    if (!got)
        return fail("no %.2f GiB of managed memory for %s (%.2f GiB of the machine's %.2f are free): %s; use fewer rows or "
                    "columns, more memory.hot_rows, or the place 'file'",
                    capacity / GIB, what, mem_available() / GIB, mem_total() / GIB, cudaGetErrorString(error));
    if (touch(b, got, capacity, what)) {
        cudaFree(got);
        return -1;
    }
    b->host_used += capacity;
    *host = *device = got;
    return 0;
}

void rows_give(struct backend *b, char *host, uint64_t bytes) {
    if (!b->manages_rows || !host) {
        pinned_give(b, host, bytes);
        return;
    }
    cudaFree(host);
    b->host_used -= round_up(bytes, PINNED_PAGE);
}

int buffer_take(struct backend *b, void **host, uint64_t bytes) {
    int node = near_node(b->device);
    *host = NULL;
    numa_begin(node);
    cudaError_t error = cudaHostAlloc(host, bytes, cudaHostAllocMapped);
    numa_end(node);
    CK(error);
    b->host_used += bytes;
    return 0;
}

void buffer_give(struct backend *b, void *host, uint64_t bytes) {
    if (!host) return;
    cudaFreeHost(host);
    b->host_used -= bytes;
}

int buffer_grow(struct backend *b, void **host, uint64_t *have, uint64_t bytes) {
    if (bytes <= *have) return 0;
    buffer_give(b, *host, *have);
    *have = 0;
    if (buffer_take(b, host, bytes)) return -1;
    *have = bytes;
    return 0;
}

/* ---- working files ---- */

/* Creates a file without a name in the directory of `path`, and maps it. So it cannot be mistaken for another file, and the system removes it when
 * the process ends. */
static int map_file(struct store *store, const char *path, uint64_t bytes) {
    store->fd = file_open_unnamed(path);
    if (store->fd < 0) return -1;
    int error = retry_allocate(store->fd, bytes);
    if (error) return fail("cannot give a file beside '%s' %.2f GiB: %s", path, bytes / GIB, strerror(error));
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
    if (got == MAP_FAILED) return fail("cannot map %.2f GiB of a file beside '%s': %s", bytes / GIB, path, strerror(errno));
    store->host = (char *)got;
    return 0;
}

/* ---- stores and tables ---- */

static void store_close(struct backend *b, struct store *store) {
    if (store->place == PLACE_FILE) {
        if (store->host) munmap(store->host, store->bytes);
        if (store->fd >= 0) close(store->fd);
    } else if (store->given) {
        cuda_host_unpin(b, store->host, store->bytes);
    } else {
        rows_give(b, store->host, store->bytes);
    }
    gpu_give(b, store->gpu_memory, store->gpu_bytes);
    memset(store, 0, sizeof *store);
    store->fd = -1;
}

/* Opens a store. Rows below gpu_rows are stored on the GPU, the others on the host: in pinned memory, or in a file. */
static int store_open(struct backend *b, struct store *store, const struct table_spec *spec, const struct store_shape *shape, const char *suffix) {
    char what[128];
    snprintf(what, sizeof what, "the %s table's %s", spec->name, suffix + 1);
    store->place = shape->place;
    store->fd = -1;
    store->stride = shape->stride;
    store->gpu_rows = shape->gpu_rows;
    INVARIANT(spec->first_row <= shape->gpu_rows && shape->on_gpu + shape->on_host == spec->rows - spec->first_row);
    if (spec->rows > (uint64_t)INT64_MAX / store->stride)
        return fail("%s of %llu rows x %llu bytes is more than any machine addresses", what, (unsigned long long)spec->rows,
                    (unsigned long long)store->stride);
    store->bytes = shape->on_host * store->stride;
    store->gpu_bytes = shape->on_gpu * store->stride;
    if (gpu_take(b, (void **)&store->gpu_memory, store->gpu_bytes, what)) return -1;
    if (gpu_fill(store->gpu_memory, NULL, store->gpu_bytes)) return -1;
    if (store->gpu_memory) store->gpu = store->gpu_memory - spec->first_row * store->stride;
    if (!store->bytes) return 0;
    if (shape->place == PLACE_FILE) return map_file(store, spec->file_path, store->bytes);
    if (!spec->given) return rows_take(b, &store->host, &store->host_device, store->bytes, what);
    if (cuda_host_pin(b, spec->given, store->bytes)) return -1;
    store->given = 1;
    store->host = store->host_device = spec->given;
    return 0;
}

/* Returns, for kernels, where one part of the records (weights or state) is: `offset` bytes after the beginning of each record. */
static struct part_view part_of(const struct store *store, uint64_t rows, uint64_t offset) {
    struct part_view view;
    view.hot = store->gpu + offset;
    view.home = store->gpu_rows == rows ? view.hot : store->place == PLACE_FILE ? NULL : gpu_home_of(store) + offset;
    view.hot_rows = store->gpu_rows;
    view.stride = store->stride;
    return view;
}

/* Copies the bit map of the table's frozen rows to the GPU. */
static int copy_frozen(struct backend *b, struct backend_table *table) {
    uint64_t bytes = known_bytes(table->spec.rows);
    if (!table->spec.frozen) return 0;
    if (gpu_take(b, (void **)&table->frozen, bytes, "which rows are frozen")) return -1;
    return gpu_fill(table->frozen, table->spec.frozen, bytes);
}

/* Copies the numbers from which rows' random bits are mixed to the GPU. */
static int copy_numbers(struct backend *b, struct backend_table *table) {
    const struct record_layout *layout = &table->spec.layout;
    uint64_t bytes = table->spec.rows * sizeof *table->numbers;
    void *copy = NULL;
    if (!table->numbers || (!has_halves(layout) && !layout->coarse)) return 0;
    if (gpu_take(b, &copy, bytes, "the numbers by which rows are rounded")) return -1;
    table->spec.rounding.rows = (const uint32_t *)copy;
    return gpu_fill(copy, table->numbers, bytes);
}

/* Counts the open tables with layout.by_row. Captured graphs of batches depend on whether there are any, so they are made again. */
static void count_by_row(struct backend *b, const struct record_layout *layout, int change) {
    if (!layout->by_row) return;
    b->by_row += change;
    b->layout++;
}

int cuda_table_open(struct backend *b, const struct table_spec *spec, struct backend_table **out) {
    const struct record_layout *layout = &spec->layout;
    struct table_shape shape = table_shape(spec, 1);
    struct backend_table *table = (struct backend_table *)mem_zalloc(1, sizeof *table, "a table");
    *out = NULL;
    if (!table) return -1;
    if (state_halves(layout) && !has_halves(layout)) {
        free(table);
        return fail("on a GPU no table has bfloat16 state beside weights of another type");
    }
    table->stores[0].fd = table->stores[1].fd = -1;
    table->spec = *spec;
    table->spec.rounding.rows = NULL; /* set by copy_numbers() */
    table->numbers = spec->rounding.rows;
    count_by_row(b, layout, 1);
    table->name = mem_text(spec->name, strlen(spec->name), "a table's name");
    if (!table->name) {
        cuda_table_close(b, table);
        return -1;
    }
    table->spec.name = table->name;
    table->spec.file_path = NULL;
    table->shared = shape.stores == 1;
    table->state_offset = table->shared ? shape.weights : 0;
    table->parts = (int)shape.stores;
    int failed = cudaSetDevice(b->device) != cudaSuccess;
    failed = failed || store_open(b, &table->stores[0], spec, &shape.store[0], ".weights");
    failed = failed || (!table->shared && store_open(b, &table->stores[1], spec, &shape.store[1], ".state"));
    failed = failed || copy_frozen(b, table) || copy_numbers(b, table) || cuda_cache_open(b, table);
    if (failed) {
        cuda_table_close(b, table);
        return -1;
    }
    table->view.rows = spec->rows;
    table->view.dim = layout->dim;
    table->view.quads = record_quads(layout);
    table->view.slots = layout->slots;
    table->view.counted = layout->counted;
    table->view.slot_at = layout->slots ? (uint32_t)record_slot(layout, 0)->offset : 0;
    table->view.count_at = layout->counted ? (uint32_t)record_updates(layout)->offset : 0;
    table->view.weights = part_of(&table->stores[0], spec->rows, 0);
    if (shape.state)
        table->view.state = table->shared ? part_of(&table->stores[0], spec->rows, shape.weights) : part_of(&table->stores[1], spec->rows, 0);
    *out = table;
    return 0;
}

void cuda_table_close(struct backend *b, struct backend_table *table) {
    if (!table) return;
    cudaSetDevice(b->device); /* another thread may have opened the backend */
    cudaDeviceSynchronize();
    count_by_row(b, &table->spec.layout, -1);
    cuda_snapshot_end(b, table);
    cuda_cache_close(b, table);
    for (int i = 0; i < 2; i++) store_close(b, &table->stores[i]);
    gpu_give(b, table->frozen, known_bytes(table->spec.rows));
    gpu_give(b, (void *)(uintptr_t)table->spec.rounding.rows, table->spec.rows * sizeof *table->numbers);
    cuda_by_id_forget(b, table);
    for (int i = 0; i < BACKEND_STAGES; i++)
        for (struct row_set &side : b->stages[i].side)
            if (side.table == table) side.table = NULL;
    free(table->name);
    free(table);
}

/* ---- whole rows to and from the host ---- */

/* Sets *at to host memory with rows first .. first + count - 1 of a store: the store's own memory, or a copy in `transfer` if the rows are on the
 * GPU. The caller has checked the rows by host_check_rows(). */
static int rows_on_host(const struct store *store, uint64_t first, uint64_t count, char *transfer, int read, char **at) {
    if (first >= store->gpu_rows) {
        *at = store->host + (first - store->gpu_rows) * store->stride;
        return 0;
    }
    *at = transfer;
    if (read) CK(cudaMemcpy(transfer, store->gpu + first * store->stride, count * store->stride, cudaMemcpyDeviceToHost));
    return 0;
}

static int rows_from_host(const struct store *store, uint64_t first, uint64_t count, const char *transfer) {
    if (first >= store->gpu_rows) return 0;
    return gpu_fill(store->gpu + first * store->stride, transfer, count * store->stride);
}

/* Copies rows between a table and packed host memory. In each store the rows must be all on the GPU or all on the host. */
static int transfer_rows(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, char *packed, int write) {
    struct host_records records = {};
    char *at[2] = {NULL, NULL};
    for (int i = 0; i < table->parts; i++)
        if (rows_on_host(&table->stores[i], first, count, b->transfer[i], !write, &at[i])) return -1;
    records.weights = at[0];
    records.weights_stride = table->stores[0].stride;
    records.state = at[table->shared ? 0 : 1] + table->state_offset;
    records.state_stride = table->stores[table->parts - 1].stride;
    if (!write) return host_pack(b->pool, &table->spec.layout, &records, count, packed);
    if (host_unpack(b->pool, &table->spec.layout, &records, count, packed)) return -1;
    for (int i = 0; i < table->parts; i++)
        if (rows_from_host(&table->stores[i], first, count, at[i])) return -1;
    return 0;
}

/* Pins the transfer buffers if necessary. They stay pinned, since pinning takes longer than a copy. */
static int reserve_transfer(struct backend *b, const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++) {
        int used = table->stores[i].gpu_memory || (!i && table->spec.rounding.rows);
        if (used && !b->transfer[i] && buffer_take(b, (void **)&b->transfer[i], TRANSFER_BYTES)) return -1;
    }
    return 0;
}

static int transfer_all(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, char *packed, int write) {
    uint64_t end = first + count, widest = table->stores[0].stride;
    if (table->parts == 2 && table->stores[1].stride > widest) widest = table->stores[1].stride;
    CK(cudaSetDevice(b->device)); /* another thread may have opened the backend */
    if (host_check_rows(&table->spec, first, count) || cuda_drain(b) || reserve_transfer(b, table)) return -1;
    if (write ? cuda_cache_empty(b, table) : cuda_cache_send_home(b, table)) return -1;
    while (first < end) {
        uint64_t rows = end - first < TRANSFER_BYTES / widest ? end - first : TRANSFER_BYTES / widest;
        for (int i = 0; i < table->parts; i++) {
            uint64_t hot = table->stores[i].gpu_rows;
            if (first < hot && hot - first < rows) rows = hot - first;
        }
        if (transfer_rows(b, table, first, rows, packed, write)) return -1;
        first += rows;
        packed += rows * table->spec.layout.packed;
    }
    return 0;
}

int cuda_table_read(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, void *packed) {
    return transfer_all(b, table, first, count, (char *)packed, 0);
}

int cuda_table_write(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, const void *packed) {
    return transfer_all(b, table, first, count, (char *)(uintptr_t)packed, 1); /* the cast is safe, since `packed` is only read */
}

/* Copies the listed rows that are on the GPU from a store to records in pinned memory, or back. A warp copies one record. */
static __global__ void move_listed(char *gpu, uint64_t stride, uint64_t hot_rows, char *records, const uint32_t *row, uint64_t count, int write) {
    uint64_t i = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / 32;
    if (i >= count || row[i] >= hot_rows) return;
    uint4 *one = (uint4 *)(gpu + row[i] * stride), *other = (uint4 *)(records + i * stride);
    for (uint64_t at = threadIdx.x % 32; at < stride / sizeof *one; at += 32)
        if (write) one[at] = other[at];
        else other[at] = one[at];
}

static __global__ void set_numbers(uint32_t *numbers, const uint32_t *row, const uint32_t *number, uint64_t count) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < count) numbers[row[i]] = number[i];
}

static int move_all(struct backend *b, const struct backend_table *table, const struct host_records *records, uint64_t count, int write) {
    const unsigned threads = 256, of_block = threads / 32;
    for (int i = 0; i < table->parts; i++) {
        const struct store *store = &table->stores[i];
        uint32_t *numbers = !i && write ? (uint32_t *)(uintptr_t)table->spec.rounding.rows : NULL;
        if (!store->gpu_memory && !numbers) continue;
        uint32_t *row = (uint32_t *)(b->transfer[i] + count * store->stride), *number = row + count; /* behind the records */
        memcpy(row, records->row, count * sizeof *row);
        if (store->gpu_memory)
            move_listed<<<(unsigned)((count + of_block - 1) / of_block), threads>>>(store->gpu, store->stride, store->gpu_rows, b->transfer[i], row,
                                                                                    count, write);
        for (uint64_t k = 0; k < count && numbers; k++) number[k] = table->numbers[row[k]];
        if (numbers) set_numbers<<<(unsigned)((count + threads - 1) / threads), threads>>>(numbers, row, number, count);
        CK(cudaGetLastError());
    }
    CK(cudaStreamSynchronize(cudaStreamLegacy));
    return 0;
}

int cuda_table_move(struct backend *b, struct backend_table *table, const uint32_t *row, uint64_t count, void *packed, int write) {
    uint64_t widest = table->stores[0].stride, some;
    if (table->parts == 2 && table->stores[1].stride > widest) widest = table->stores[1].stride;
    CK(cudaSetDevice(b->device)); /* another thread may have opened the backend */
    for (uint64_t i = 0; i < count; i++)
        if (host_check_rows(&table->spec, row[i], 1)) return -1;
    if (cuda_drain(b) || reserve_transfer(b, table) || (write ? cuda_cache_empty(b, table) : cuda_cache_send_home(b, table))) return -1;
    for (uint64_t first = 0; first < count; first += some) {
        struct host_records records = {};
        const struct store *weights = &table->stores[0], *state = &table->stores[table->parts - 1];
        char *at = (char *)packed + first * table->spec.layout.packed;
        some = TRANSFER_BYTES / (widest + 2 * sizeof *row);
        if (some > count - first) some = count - first;
        records.weights = weights->host - weights->gpu_rows * weights->stride;
        records.state = state->host - state->gpu_rows * state->stride + table->state_offset;
        records.weights_stride = weights->stride;
        records.state_stride = state->stride;
        records.row = row + first;
        records.hot[0] = b->transfer[0];
        records.hot[1] = table->shared ? b->transfer[0] + table->state_offset : b->transfer[1];
        records.hot_rows[0] = weights->gpu_rows;
        records.hot_rows[1] = state->gpu_rows;
        if (write ? host_unpack(b->pool, &table->spec.layout, &records, some, at) || move_all(b, table, &records, some, 1)
                  : move_all(b, table, &records, some, 0) || host_pack(b->pool, &table->spec.layout, &records, some, at))
            return -1;
    }
    return 0;
}

/* ==== row sets: of batches, of calls, and of resident lists ==== */

/* ---- which stores are cold ---- */

int cuda_is_cold(const struct store *store) {
    return store->place != PLACE_GPU && store->host != NULL;
}

int cuda_in_file(const struct store *store) {
    return cuda_is_cold(store) && store->place == PLACE_FILE;
}

int cuda_has_cold(const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) return 1;
    return 0;
}

uint64_t cuda_hot_rows(const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) return table->stores[i].gpu_rows;
    return table->spec.rows;
}

char *cuda_home_of(const struct store *store) {
    return store->host - store->gpu_rows * store->stride;
}

/* ---- its arrays ---- */

int row_set_open(struct row_set *set, int side, int copies) {
    set->side = side;
    set->copies = copies;
    CK(cudaEventCreateWithFlags(&set->ticket, cudaEventDisableTiming));
    return 0;
}

void row_set_close(struct backend *b, struct row_set *set) {
    struct gpu_array *arrays[] = {&set->ids,   &set->distinct, &set->distinct_ids[0], &set->distinct_ids[1],
                                  &set->order, &set->forward,  &set->distinct_starts, &set->items,
                                  &set->longs, &set->slots[0], &set->slots[1]};
    for (struct gpu_array *array : arrays) gpu_drop(b, array);
    for (int part = 0; part < 2; part++) buffer_give(b, set->staging[part], set->staging_bytes[part]);
    buffer_give(b, set->host_ids, set->host_ids_bytes);
    buffer_give(b, set->host_counts, sizeof *set->host_counts);
    if (set->ticket) cudaEventDestroy(set->ticket);
}

int row_set_grow(struct backend *b, struct row_set *set, uint64_t count, const char *what) {
    struct row_set_bytes bytes = row_set_bytes(count);
    for (int copy = 0; copy < set->copies; copy++)
        if (gpu_grow(b, &set->distinct_ids[copy], bytes.distinct_ids, what)) return -1;
    return gpu_grow(b, &set->ids, bytes.ids, what) || gpu_grow(b, &set->distinct, bytes.distinct, what) ||
                   gpu_grow(b, &set->distinct_starts, bytes.distinct_starts, what) || gpu_grow(b, &set->order, bytes.order, what) ||
                   gpu_grow(b, &set->items, bytes.items, what) || gpu_grow(b, &set->longs, bytes.longs, what)
               ? -1
               : 0;
}

struct row_set_view row_set_view(const struct row_set *set) {
    struct row_set_view view;
    view.ids = (const uint32_t *)set->ids.data;
    view.distinct = (const uint32_t *)set->distinct.data;
    view.distinct_ids = (const uint32_t *)set->distinct_ids[set->copy].data;
    view.distinct_starts = (const uint32_t *)set->distinct_starts.data;
    view.order = (const uint32_t *)set->order.data;
    view.items = (const struct item *)set->items.data;
    view.longs = (const struct item *)set->longs.data;
    return view;
}

/* ---- rows that the host's threads move ---- */

void row_set_changes(struct row_set *set, int parts) {
    for (int part = 0; part < 2; part++) set->lands[part] = part < parts && part < set->table->parts && cuda_in_file(&set->table->stores[part]);
}

int row_set_send(struct backend *b, struct row_set *set, cudaStream_t stream) {
    const void *ids = set->distinct_ids[set->copy].data;
    if (buffer_grow(b, (void **)&set->host_ids, &set->host_ids_bytes, host_ids_bytes(set->capacity))) return -1;
    if (!set->host_counts && buffer_take(b, (void **)&set->host_counts, sizeof *set->host_counts)) return -1;
    CK(cudaMemcpyAsync(set->host_counts, set->counts, sizeof *set->counts, cudaMemcpyDeviceToHost, stream));
    CK(cudaMemcpyAsync(set->host_ids, ids, set->count * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
    return 0;
}

uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids) {
    uint32_t first = set->host_counts->cold_first[set->side];
    INVARIANT(first <= set->host_counts->distinct[set->side] && set->host_counts->distinct[set->side] <= set->count);
    *ids = set->host_ids + first;
    return set->host_counts->distinct[set->side] - first;
}

int row_set_read_file(struct backend *b, struct row_set *set, int part, uint64_t capacity) {
    const struct store *store = &set->table->stores[part];
    const uint32_t *ids;
    uint64_t count = row_set_cold(set, &ids);
    if (!count) return 0;
    if (buffer_grow(b, (void **)&set->staging[part], &set->staging_bytes[part], capacity * store->stride)) return -1;
    return host_gather(b->pool, set->staging[part], cuda_home_of(store), ids, count, store->stride);
}

int row_set_land(struct backend *b, struct row_set *set) {
    if (!set->table) return 0; /* the table has been closed */
    for (int part = 0; part < 2; part++) {
        const struct store *store = &set->table->stores[part];
        const uint32_t *ids;
        if (!set->lands[part]) continue;
        uint64_t count = row_set_cold(set, &ids);
        if (host_scatter(b->pool, cuda_home_of(store), set->staging[part], ids, count, store->stride)) return -1;
    }
    return 0;
}

/* ==== moving cold rows ====
 *
 * Copies cold rows (those on the host) to a stage's slots and back, so that they stay exact while several batches are in flight. stage.cu shows the
 * order of these steps.
 *
 *   plan     finds the cold rows, and which of them are in the slots of a batch in flight               builder's stream
 *   fetch    the other cold rows, host -> slots                                                        in stream
 *   forward  cold rows of batches in flight, their slots -> these slots, after the previous step      compute stream
 *   home     slots -> host; for a store in a file, which the GPU cannot access, slots -> staging      out stream
 *   land     staging -> file (row_set_land)                                                         the host's threads
 *
 * Rows of a store are copied back in the order of their batches. The kernels that copy rows have few thread blocks on purpose: more would only take
 * memory bandwidth from the step.
 *
 * While a batch in flight holds a row in its slots (from its fetch until its rows have landed), the row is not read from the host. If several batches
 * hold a row, the newest one has its value, since steps run one after another.
 */

enum {
    ROW_THREADS = 256,
    MOVE_THREADS = 128, /* threads of a thread block: few, so that it can start beside the thread blocks of a step */
    MOVED_ROWS = 8,     /* number of rows that a warp copies at a time */
    MOVED_CHUNKS = 8,   /* 16-byte chunks that each lane has in flight at once */
    GATHER_BLOCKS = 16,
    SCATTER_BLOCKS = 8,
    STAGING_BLOCKS = 8,
    SLOT_BITS = 28
};
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

/* ---- plan ---- */

/* The batches in flight that may hold rows of a new batch in their slots; the newest first. */
struct in_flight {
    int count;
    uint32_t stage[BACKEND_STAGES];
    const uint32_t *distinct_ids[BACKEND_STAGES];
    const struct batch_counts *counts[BACKEND_STAGES];
};

/* Returns the index of the first of the sorted ids[count] that is at least `id`. The lanes of a warp search together, 32 probes at a time. */
static __device__ uint32_t warp_lower_bound(const uint32_t *ids, uint32_t count, uint64_t id) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t step = (high - low + 31) / 32, probe = low + (threadIdx.x & 31) * step;
        uint32_t below = __popc(__ballot_sync(0xFFFFFFFFu, probe < high && ids[probe] < id));
        if (!below) return low;
        if (high - low > below * step) high = low + below * step;
        low += (below - 1) * step + 1;
    }
    return low;
}

static __global__ void find_forwards(const uint32_t *distinct_ids, uint64_t hot_rows, struct batch_counts *counts, int side,
                                     struct in_flight others, uint32_t *forward) {
    __shared__ uint32_t cold_first;
    if (threadIdx.x < 32) {
        uint32_t at = warp_lower_bound(distinct_ids, counts->distinct[side], hot_rows);
        if (threadIdx.x == 0) cold_first = at;
        if (threadIdx.x == 0 && blockIdx.x == 0) counts->cold_first[side] = at;
    }
    __syncthreads();
    uint32_t first = cold_first, end = counts->distinct[side], found = 0;
    for (uint32_t row = first + blockIdx.x * blockDim.x + threadIdx.x; row < end; row += gridDim.x * blockDim.x) {
        uint32_t id = distinct_ids[row], from = DRAW_NONE;
        for (int i = 0; i < others.count && from == DRAW_NONE; i++) {
            uint32_t low = others.counts[i]->cold_first[side], high = others.counts[i]->distinct[side];
            uint32_t at = lower_bound(others.distinct_ids[i], low, high, id);
            if (at < high && others.distinct_ids[i][at] == id) from = others.stage[i] << SLOT_BITS | (at - low);
        }
        forward[row - first] = from;
        found += from != DRAW_NONE;
    }
    if (found) atomicAdd(&counts->forwarded[side], found);
}

/* ---- moving rows ---- */

/* Records of one store to be copied. `home`: the host address of row 0, even if row 0 is not there. */
struct record_move {
    char *home, *slots;
    uint64_t stride;
    const uint32_t *distinct_ids, *forward;
    const struct batch_counts *counts;
    int side;
};

/* Returns the id of cold row number `row`; DRAW_NONE if its record is not to be copied here. */
template <bool OUT> static __device__ __forceinline__ uint32_t moved_id(const struct record_move &m, uint32_t first, uint64_t row, uint32_t rows) {
    if (row >= rows || (!OUT && m.forward[row] != DRAW_NONE)) return DRAW_NONE;
    return m.distinct_ids[first + row];
}

/* Copies records between slots and host. A warp copies several neighbouring records together: each lane has several chunks in flight, and already
 * the ids of the next records, so that the link always has requests to serve, even with short records. */
template <bool OUT> static __global__ void __launch_bounds__(MOVE_THREADS) move_records(struct record_move m) {
    uint32_t lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    uint32_t first = m.counts->cold_first[m.side], rows = m.counts->distinct[m.side] - first;
    uint32_t chunks = (uint32_t)(m.stride / CHUNK_BYTES), next = DRAW_NONE;
    uint64_t step = (uint64_t)warps * MOVED_ROWS, row = (uint64_t)warp * MOVED_ROWS;
    if (lane < MOVED_ROWS) next = moved_id<OUT>(m, first, row + lane, rows);
    for (; row < rows; row += step) {
        uint32_t ids = next;
        if (lane < MOVED_ROWS) next = moved_id<OUT>(m, first, row + step + lane, rows);
        for (uint32_t begin = 0; begin < MOVED_ROWS * chunks; begin += 32 * MOVED_CHUNKS) {
            uint4 value[MOVED_CHUNKS], *to[MOVED_CHUNKS];
#pragma unroll
            for (int i = 0; i < MOVED_CHUNKS; i++) {
                uint32_t at = begin + i * 32 + lane, of = at / chunks, chunk = at - of * chunks;
                uint32_t id = __shfl_sync(ALL_LANES, ids, of % MOVED_ROWS);
                to[i] = NULL;
                if (of >= MOVED_ROWS || id == DRAW_NONE) continue;
                uint4 *slot = (uint4 *)(m.slots + (row + of) * m.stride) + chunk, *home = (uint4 *)(m.home + id * m.stride) + chunk;
                value[i] = OUT ? *slot : *home;
                to[i] = OUT ? home : slot;
            }
#pragma unroll
            for (int i = 0; i < MOVED_CHUNKS; i++)
                if (to[i]) *to[i] = value[i];
        }
    }
}

/* Copies the records in the slots to staging, pinned memory with the same layout. */
static __global__ void copy_slots(uint4 *to, const uint4 *from, uint64_t chunks, const struct batch_counts *counts, int side) {
    uint64_t all = (counts->distinct[side] - counts->cold_first[side]) * chunks, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) to[i] = from[i];
}

struct all_slots {
    char *slots[BACKEND_STAGES];
};

static __global__ void forward_records(char *slots, struct all_slots from, uint64_t stride, const uint32_t *forward,
                                       const struct batch_counts *counts, int side) {
    uint32_t lane = threadIdx.x & 31, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    uint32_t rows = counts->distinct[side] - counts->cold_first[side], chunks = (uint32_t)(stride / CHUNK_BYTES);
    for (uint32_t row = warp; row < rows; row += warps) {
        uint32_t code = forward[row];
        if (code == DRAW_NONE) continue;
        const char *source = from.slots[code >> SLOT_BITS] + (code & SLOT_MASK) * stride;
        for (uint32_t i = lane; i < chunks; i += 32) copy_chunk(slots + row * stride, source, i);
    }
}

/* ---- plan, the host's side ---- */

/* Returns an upper bound of the number of cold rows among `ids` ids. */
static uint64_t most_cold(const struct row_set *set, uint64_t ids) {
    uint64_t cold = set->table->spec.rows - cuda_hot_rows(set->table);
    return ids < cold ? ids : cold;
}

static struct in_flight others_of(struct backend *b, const struct stage *stage, int side) {
    struct in_flight others;
    uint64_t below = UINT64_MAX;
    others.count = 0;
    for (;;) {
        struct stage *newest = NULL;
        for (unsigned i = 0; i < b->depth; i++) {
            struct stage *s = &b->stages[i];
            if (s == stage || !cuda_in_flight(s) || s->sequence >= below) continue;
            if (s->side[side].table != stage->side[side].table) continue;
            if (!newest || s->sequence > newest->sequence) newest = s;
        }
        if (!newest) return others;
        others.stage[others.count] = (uint32_t)(newest - b->stages);
        others.distinct_ids[others.count] = row_set_view(&newest->side[side]).distinct_ids;
        others.counts[others.count++] = newest->counts;
        below = newest->sequence;
    }
}

static int find_others(struct backend *b, struct stage *stage, int side, uint64_t rows) {
    struct row_set *set = &stage->side[side];
    cudaStream_t stream = stage->builder->stream;
    struct in_flight others = others_of(b, stage, side);
    /* Waits for each batch, since each may have another builder. Waiting for the newest is not enough: without cold rows it has not waited for
     * those before it. */
    for (int i = 0; i < others.count; i++) CK(cudaStreamWaitEvent(stream, b->stages[others.stage[i]].prepared, 0));
    find_forwards<<<blocks_for(rows, ROW_THREADS), ROW_THREADS, 0, stream>>>(row_set_view(set).distinct_ids, cuda_hot_rows(set->table), set->counts,
                                                                             side, others, (uint32_t *)set->forward.data);
    CK_LAUNCH("find_forwards");
    return 0;
}

/* Returns 1 if the set's table has a store in a file, whose rows the host's threads move: the host then needs the ids. */
static int needs_ids(const struct row_set *set) {
    for (int i = 0; i < set->table->parts; i++)
        if (cuda_in_file(&set->table->stores[i])) return 1;
    return 0;
}

int cuda_rows_plan(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    set->count = side == SIDE_TARGET ? stage->sizes.targets : stage->sizes.contexts;
    set->capacity = side == SIDE_TARGET ? stage->capacity.targets : stage->capacity.contexts;
    uint64_t rows = most_cold(set, set->count), capacity = most_cold(set, set->capacity);
    if (rows > SLOT_MASK) return fail("a batch of %llu host rows is more than 2^28; lower train.batch", (unsigned long long)rows);
    if (gpu_grow(b, &set->forward, forward_bytes(capacity), "a batch's rows")) return -1;
    for (int i = 0; i < set->table->parts; i++) {
        const struct store *store = &set->table->stores[i];
        if (cuda_is_cold(store) && gpu_grow(b, &set->slots[i], capacity * store->stride, "rows in flight")) return -1;
    }
    row_set_changes(set, rows && !stage->loss_only ? set->table->parts : 0);
    if (!rows) return 0;
    if (find_others(b, stage, side, rows)) return -1;
    return needs_ids(set) ? row_set_send(b, set, stage->builder->stream) : 0;
}

/* ---- fetch ---- */

static struct record_move move_of(const struct row_set *set, int part) {
    const struct store *store = &set->table->stores[part];
    struct record_move m;
    m.home = gpu_home_of(store);
    m.slots = (char *)set->slots[part].data;
    m.stride = store->stride;
    m.distinct_ids = row_set_view(set).distinct_ids;
    m.forward = (const uint32_t *)set->forward.data;
    m.counts = set->counts;
    m.side = set->side;
    return m;
}

/* Fetches rows of a file: the host's threads wait for the ids and read the rows into staging; the GPU copies these to the slots. Rows that will be
 * forwarded are read for nothing. */
static int fetch_file(struct backend *b, struct stage *stage, struct row_set *set, int part) {
    const uint32_t *ids;
    CK(cudaEventSynchronize(stage->prepared));
    if (row_set_read_file(b, set, part, most_cold(set, set->capacity))) return -1;
    uint64_t bytes = row_set_cold(set, &ids) * set->table->stores[part].stride;
    if (bytes) CK(cudaMemcpyAsync(set->slots[part].data, set->staging[part], bytes, cudaMemcpyHostToDevice, b->in));
    return 0;
}

int cuda_rows_fetch(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (!most_cold(set, set->count)) return 0;
    for (int part = 0; part < set->table->parts; part++) {
        const struct store *store = &set->table->stores[part];
        if (!cuda_is_cold(store)) continue;
        if (cuda_in_file(store)) {
            if (fetch_file(b, stage, set, part)) return -1;
            continue;
        }
        move_records<false><<<GATHER_BLOCKS, MOVE_THREADS, 0, b->in>>>(move_of(set, part));
        CK_LAUNCH("fetch");
    }
    CK(cudaEventRecord(set->ticket, b->in));
    return 0;
}

/* ---- forward ---- */

int cuda_rows_forward(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (!most_cold(set, set->count)) return 0;
    CK(cudaStreamWaitEvent(b->compute, set->ticket, 0));
    for (int part = 0; part < set->table->parts && b->depth > 1; part++) {
        const struct store *store = &set->table->stores[part];
        struct all_slots from;
        if (!cuda_is_cold(store)) continue;
        for (unsigned i = 0; i < b->depth; i++) from.slots[i] = (char *)b->stages[i].side[side].slots[part].data;
        forward_records<<<2 * b->processors, ROW_THREADS, 0, b->compute>>>((char *)set->slots[part].data, from, store->stride,
                                                                           (const uint32_t *)set->forward.data, set->counts, side);
        CK_LAUNCH("forward_records");
    }
    return 0;
}

/* ---- copying back ---- */

/* Copies the slots to staging. If blocks have one target, nearly all slots are in use, so the copy engine copies all of them without slowing the
 * step. Otherwise a kernel copies only the slots in use, whose number only the GPU knows. */
static int copy_to_staging(struct backend *b, const struct stage *stage, struct row_set *set, int part) {
    uint64_t stride = set->table->stores[part].stride;
    uint64_t most = most_cold(set, set->count) * stride, capacity = most_cold(set, set->capacity) * stride;
    const void *slots = set->slots[part].data;
    if (buffer_grow(b, (void **)&set->staging[part], &set->staging_bytes[part], capacity)) return -1;
    if (stage->one_target && set->side == SIDE_TARGET) {
        CK(cudaMemcpyAsync(set->staging[part], slots, most, cudaMemcpyDeviceToHost, b->out));
        return 0;
    }
    copy_slots<<<STAGING_BLOCKS, ROW_THREADS, 0, b->out>>>((uint4 *)set->staging[part], (const uint4 *)slots,
                                                           stride / CHUNK_BYTES, set->counts, set->side);
    CK_LAUNCH("copy_slots");
    return 0;
}

int cuda_rows_home(struct backend *b, struct stage *stage, int side) {
    struct row_set *set = &stage->side[side];
    if (stage->loss_only || !most_cold(set, set->count)) return 0;
    for (int part = 0; part < set->table->parts; part++) {
        if (!cuda_is_cold(&set->table->stores[part])) continue;
        if (set->lands[part]) {
            if (copy_to_staging(b, stage, set, part)) return -1;
            continue;
        }
        move_records<true><<<SCATTER_BLOCKS, MOVE_THREADS, 0, b->out>>>(move_of(set, part));
        CK_LAUNCH("home");
    }
    return 0;
}
