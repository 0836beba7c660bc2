/* bench: measures how fast the machine moves rows and trains, by the backend that training would use. cmd_bench prints the results. */
#ifndef SPTX_BENCH_H
#define SPTX_BENCH_H

#include "config/config.h"
#include "kernels/backend.h"
#include "planner.h"

/* rates: how many bytes a second plain copies move between this machine and its GPU. Measuring takes a second, so the result is
 * stored in the user's cache directory ($XDG_CACHE_HOME/sptx-w2v, otherwise ~/.cache/sptx-w2v), in one small file for each
 * combination of GPU, driver, link and processor.
 *
 * These functions neither fail nor print. If rates cannot be stored, they are measured each time; if they cannot be measured, they are zeros
 * (unknown).
 */

/* Finds the stored rates of this GPU. Returns 1 and sets *rates; returns 0 and sets zeros if none are stored or the file is damaged. */
int rates_find(const struct backend_info *info, struct bench_limits *rates);

/* Stores measured rates. Where an older rate is higher, that one is kept, since copies are slower while the machine does other work. */
void rates_keep(const struct backend_info *info, const struct bench_limits *rates);

/* Sets *rates to the stored rates, or, if there are none, to those that `measure` returns, which it stores. If another process is measuring, waits
 * a few seconds for it: two processes that measure at once would each find half the rate. Zeros if nothing is known. */
typedef int rates_measure(struct backend *backend, struct bench_limits *limits); /* type of backend_ops.bench_limits */
void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates);

/* An open backend to be measured, and the limits of the machine as they were measured when it was opened. */
struct bench {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* description of the machine, from when the backend was opened */
    struct bench_limits limits; /* measured limits of the GPU; zeros without a GPU */
};
/* Opens the backend, on the device that device.* of a resolved config names. Call bench_close() even if this fails. */
int bench_open(struct bench *bench, const struct config *config);
void bench_close(struct bench *bench); /* may be called on a struct of zeros */

/* ---- transfer: rows between a table and a variable on the GPU ---- */

/* Opens a table of `rows` rows of `dim` float32 weights without optimizer state. `path`: the table's file if `place` is
 * PLACE_FILE. */
int bench_table_open(struct bench *bench, enum place place, uint64_t rows, uint32_t dim, const char *path,
                     struct backend_table **table);

/* ---- train: a run's steps, without a run directory's checkpoints ---- */

/* Parts of a step that are timed one by one: making the batch's examples; the step itself and moving its rows; the step without waiting for other
 * ranks (PHASE_ALONE, only with several ranks). */
enum bench_phase { PHASE_MAKE, PHASE_STEP, PHASE_ALONE, PHASES };

/* The results of measuring a run's steps. */
struct bench_training {
    struct plan plan;
    struct backend_info machine; /* the machine after everything was allocated */
    struct bench_limits limits;
    int gpu, hogwild;
    double loading;                              /* seconds from the call until the first step */
    double seconds;                              /* seconds that the measured steps took */
    uint64_t steps;                              /* number of measured steps, or, if lock-free, of calls of the backend */
    uint64_t words, examples, pairs, link_bytes; /* sums over the measured steps */
    uint64_t row_bytes;   /* lock-free: bytes of the rows of all trained blocks; each is read and written */
    double calling;       /* lock-free: seconds spent in calls of the backend */
    double loss_pair;     /* mean loss of a pair in the last batch or call that was measured */
    double phase[PHASES]; /* exact steps: seconds of each phase of a step, measured without overlap */
    uint64_t phase_steps; /* number of steps over which `phase` is averaged; 0: phases were not measured */
};

/* Trains for about a tenth of `seconds` to warm up; then measures training for about `seconds`, or for `steps` steps if that is not 0. The encoded
 * corpus is stored and reused as `train` does. `ranks`: the processes that train together; NULL: this process alone. Each rank measures its own
 * times; words and pairs are sums over all ranks. */
int bench_train(struct bench_training *out, struct config *config, double seconds, uint64_t steps, struct ranks *ranks);

/* ---- walks: how fast they are drawn, when nothing is trained on them ---- */

/* How fast walks are drawn: the results of bench_walks(). */
struct bench_walks {
    struct backend_info machine;
    struct graph graph; /* only its counts of nodes and arcs are set */
    uint32_t length;    /* number of nodes of a walk */
    int on_host;        /* 1: the GPU reads the arcs from host memory */
    uint64_t walks;     /* number of measured walks */
    double seconds;
};
int bench_walks(struct bench_walks *out, struct config *config, double seconds);

/* ---- memory: how many bytes a table in pinned host memory takes ---- */

/* How much memory a table in pinned host memory needs: the results of bench_memory(). */
struct bench_memory {
    uint64_t rows, dim;
    uint64_t payload;               /* bytes of the weights alone: rows x dim x 4 */
    uint64_t host_bytes, gpu_bytes; /* bytes that the backend has allocated for the table */
    uint64_t resident;              /* bytes by which the process's resident memory has grown, as the system reports it */
    double opening, checking;       /* seconds: opening: to allocate the table; checking: to write sample rows and read them back */
};
int bench_memory(struct bench *bench, uint64_t rows, uint32_t dim, struct bench_memory *out);

#endif
