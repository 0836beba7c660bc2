/* rows_memory: the memory of tables: GPU memory within a budget, host memory that the GPU can address, and working files. It is
 * decided here where each row is stored, and this never changes: even managed memory does not migrate. */
#include "cuda.cuh"

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
#define TOUCH_SPARE      ((uint64_t)256 << 20) /* number of bytes of host memory that must stay free */
#define TOUCH_TRIES      20                    /* how often to wait a tenth of a second for more free memory */

int cuda_failed(cudaError_t error, const char *call) {
    cudaGetLastError(); /* clears the error, which would otherwise be reported by a later call, too */
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
    uint64_t capacity =
        round_up(bytes, GPU_ARRAY_ALIGN); /* exactly this many bytes: callers that want a reserve for later batches ask for more */
    gpu_drop(b, array);
    if (gpu_take(b, &array->data, capacity, what)) return -1;
    array->bytes = capacity;
    b->layout++;
    return 0;
}

void gpu_drop(struct backend *b, struct gpu_array *array) {
    gpu_give(b, array->data, array->bytes); /* safe: cudaFree waits for the work that still uses the array */
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

/* Waits until the memory is filled: cudaMemset, and cudaMemcpy from memory that is not pinned, may return before they are done,
 * and the streams of this backend do not wait for the default stream. */
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

/* Registers `bytes` at `host` with the driver. Sets *registered to the number of bytes that were registered, even after an
 * error. */
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
                        bytes / GIB, what, at / GIB, mem_available() / GIB, mem_total() / GIB,
                        cudaGetErrorString(error));
        }
        if (seen != host + at)
            return fail("host memory for %s has another address on the GPU; this platform needs the place 'file' or 'gpu'", what);
    }
    return 0;
}

/* Returns memory of whole huge pages, or NULL if the system refuses. It maps one page more, so that the memory can begin at a
 * multiple of the page size, and then unmaps the bytes before and after it. */
static char *map_huge(uint64_t bytes) {
    void *got = mmap(NULL, bytes + PINNED_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return NULL;
    char *base = (char *)got, *start = (char *)round_up((uint64_t)(uintptr_t)base, PINNED_PAGE);
    if (start > base) munmap(base, (uint64_t)(start - base));
    munmap(start + bytes, PINNED_PAGE - (uint64_t)(start - base));
    madvise(start, bytes, MADV_HUGEPAGE); /* faster to pin than smaller pages, which would do as well */
    return start;
}

/* Writes to every page, part after part. A virtual machine may be given memory only as it uses memory; its free memory grows
 * only then, so this waits for it. */
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

/* The kinds of location for cudaMemAdvise(), as CUDA numbers them. Toolkits before 12.2 have no names for the two on the host. */
enum { PLACE_DEVICE = 1, PLACE_HOST = 2, PLACE_HOST_NODE = 3 };

/* Returns a location for cudaMemAdvise(): before CUDA 13 a device number, since then a struct. node: a NUMA node of the host, or
 * NUMA_NONE. */
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
    cudaGetLastError(); /* clears the error of the call whose advice the driver refused */
    return advise(cudaMemAdvise, memory, bytes, stay, cudaCpuDeviceId, NUMA_NONE);
}

/* Returns managed memory on the host, which stays there and is mapped into the GPU. Returns NULL if the driver refuses; *error
 * says why. */
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

/* Returns 1 if the host can access this memory. It asks the system by a call, since reading the memory could crash the program. */
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

/* Maps a new file without a name in the directory of `path`. Since it has no name, it is not confused with another file, and the
 * system removes it when the process ends. */
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
    } else {
        rows_give(b, store->host, store->bytes);
    }
    gpu_give(b, store->gpu_memory, store->gpu_bytes);
    memset(store, 0, sizeof *store);
    store->fd = -1;
}

/* Opens a store. Rows below gpu_rows are on the GPU; the other rows are on the host, in pinned memory or in a file. */
static int store_open(struct backend *b, struct store *store, const struct table_spec *spec, const struct store_shape *shape,
                      const char *suffix) {
    char what[128];
    snprintf(what, sizeof what, "the %s table's %s", spec->name, suffix + 1);
    store->place = shape->place;
    store->fd = -1;
    store->stride = shape->stride;
    store->gpu_rows = shape->gpu_rows;
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
    return rows_take(b, &store->host, &store->host_device, store->bytes, what);
}

/* Returns the kernels' view of a part of records (weights or state), `offset` bytes after the beginning of a record. */
static struct part_view part_of(const struct store *store, uint64_t rows, uint64_t offset) {
    struct part_view view;
    view.hot = store->gpu + offset;
    view.home = store->gpu_rows == rows    ? view.hot
                : store->place == PLACE_FILE ? NULL
                                             : gpu_home_of(store) + offset;
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

/* Counts the tables with layout.by_row. Captured graphs index a batch's rows as the count requires, so they are made anew. */
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
        return fail("on a GPU no table has bfloat16 state beside float32 weights");
    }
    table->stores[0].fd = table->stores[1].fd = -1;
    table->spec = *spec;
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
    failed = failed || copy_frozen(b, table) || cuda_cache_open(b, table);
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
        table->view.state = table->shared ? part_of(&table->stores[0], spec->rows, shape.weights)
                                          : part_of(&table->stores[1], spec->rows, 0);
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
    cuda_by_id_forget(b, table);
    for (int i = 0; i < BACKEND_STAGES; i++)
        for (struct row_set &side : b->stages[i].side)
            if (side.table == table) side.table = NULL;
    free(table->name);
    free(table);
}

/* ---- whole rows to and from the host ---- */

/* Sets *at to host memory with rows first .. first + count - 1 of a store: the store's own memory or, if the rows are on the
 * GPU, a copy in `transfer`. host_check_rows() has refused rows that the table does not have. */
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

/* Transfers rows. In each store, they must be either all on the GPU or all on the host. */
static int transfer_rows(struct backend *b, struct backend_table *table, uint64_t first, uint64_t count, char *packed,
                         int write) {
    struct host_records records;
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

/* Pins the transfer buffers, if they are not pinned yet. They are kept, since pinning takes longer than a copy. */
static int reserve_transfer(struct backend *b, const struct backend_table *table) {
    for (int i = 0; i < table->parts; i++)
        if (table->stores[i].gpu_memory && !b->transfer[i] && buffer_take(b, (void **)&b->transfer[i], TRANSFER_BYTES)) return -1;
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
    return transfer_all(b, table, first, count, (char *)(uintptr_t)packed, 1); /* the cast is safe: `packed` is only read */
}
