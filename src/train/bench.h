/* bench: measures how fast the machine moves rows and trains, by the backend that training uses. It returns numbers, which
 * cmd_bench prints. */
#ifndef SPTX_BENCH_H
#define SPTX_BENCH_H

#include "config/config.h"
#include "kernels/backend.h"
#include "planner.h"

/* rates: how many bytes a second plain copies move between this machine and its GPU. Measuring takes a second, so the result is
 * stored in the user's cache directory ($XDG_CACHE_HOME/sptx-w2v, otherwise ~/.cache/sptx-w2v), in one small file for each
 * combination of GPU, driver, link and processor.
 *
 * No function here fails or prints. If rates cannot be stored, they are measured each time; if they cannot be measured, they are
 * unknown (zeros).
 */

/* Finds the stored rates of this GPU. Returns 1 with *rates; 0 with zeros if none are stored, or if the file is damaged. */
int rates_find(const struct backend_info *info, struct bench_limits *rates);

/* Stores measured rates. If a stored rate is higher than the measured one, the stored rate is kept, since a copy is slow while
 * the machine does other work. */
void rates_keep(const struct backend_info *info, const struct bench_limits *rates);

/* Sets *rates to the stored rates. If none are stored, calls `measure` and stores its result. If another process is measuring,
 * waits a few seconds for it: two processes that measure at once would each find half the rate. Zeros if nothing is known. */
typedef int rates_measure(struct backend *backend, struct bench_limits *limits); /* type of backend_ops.bench_limits */
void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates);

/* An open backend to measure, and the limits of the machine as measured at opening. */
struct bench {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* as the backend described it when it was opened */
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

/* Parts of a step whose times are measured one by one: making the batch's examples; the step itself, with the moving of rows;
 * and the step without waiting for other ranks (PHASE_ALONE), measured only if there are several ranks. */
enum bench_phase { PHASE_MAKE, PHASE_STEP, PHASE_ALONE, PHASES };

/* The results of measuring a run's steps. */
struct bench_training {
    struct plan plan;
    struct backend_info machine; /* the machine after everything was allocated */
    struct bench_limits limits;
    int gpu, hogwild;
    double loading;                              /* seconds from the call to the first step */
    double seconds;                              /* seconds that the measured steps took */
    uint64_t steps;                              /* number of measured steps; for lock-free training: number of calls of the
                                                  * backend */
    uint64_t words, examples, pairs, link_bytes; /* sums over the measured steps */
    uint64_t row_bytes;   /* lock-free training: bytes of the rows that the trained blocks name, each read and written */
    double calling;       /* lock-free training: seconds within calls of the backend */
    double loss_pair;     /* mean loss of a pair in the last measured batch or call */
    double phase[PHASES]; /* train.update = batch: seconds of a step in each phase, measured without overlap */
    uint64_t phase_steps; /* number of steps whose mean is `phase`; 0: phases were not measured */
};

/* Trains for about a tenth of `seconds` to warm up. Then measures for about `seconds` or, if `steps` is not 0, for `steps`
 * steps. The encoded corpus is stored and reused as `train` does. `ranks`: the processes that train together; NULL: this process
 * alone. Each rank measures its own times; words and pairs are sums over all ranks. */
int bench_train(struct bench_training *out, struct config *config, double seconds, uint64_t steps, struct ranks *ranks);

/* ---- walks: how fast they are drawn, when nothing is trained on them ---- */

/* The results of measuring how fast walks are drawn. */
struct bench_walks {
    struct backend_info machine;
    struct graph graph; /* of its fields only the counts are set */
    uint32_t length;    /* number of nodes of a walk */
    int on_host;        /* 1: the GPU reads the arcs from host memory */
    uint64_t walks;     /* number of measured walks */
    double seconds;
};
int bench_walks(struct bench_walks *out, struct config *config, double seconds);

/* ---- memory: the bytes of a pinned table ---- */

/* The results of measuring the memory of a pinned table. */
struct bench_memory {
    uint64_t rows, dim;
    uint64_t payload;               /* bytes of the numbers: rows x dim x 4 */
    uint64_t host_bytes, gpu_bytes; /* bytes allocated for the table, as the backend counts them */
    uint64_t resident;              /* bytes by which the process's resident memory grew, as the system counts it */
    double opening, checking;       /* opening: seconds to allocate the table; checking: seconds to write and read back sample
                                     * rows */
};
int bench_memory(struct bench *bench, uint64_t rows, uint32_t dim, struct bench_memory *out);

#endif
