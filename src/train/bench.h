/* bench: measures how fast the machine moves rows and does a run's steps, through the same backend that trains. Returns numbers;
 * cmd_bench prints them. */
#ifndef SPTX_BENCH_H
#define SPTX_BENCH_H

#include "kernels/bench.h"
#include "config/config.h"
#include "planner.h"

/* A backend that is open for measuring, and the machine's limits that it has measured. */
struct bench {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* when opened */
    struct bench_limits limits; /* with a GPU; zeros otherwise */
};
/* Opens the device that device.* of a resolved config names. The caller closes in any case. */
int bench_open(struct bench *bench, const struct config *config);
void bench_close(struct bench *bench); /* harmless on a zeroed one */

/* ---- transfer: rows between a table and a variable on the GPU ---- */

/* A table of `rows` rows of `dim` columns without state. `path`: its file, for PLACE_FILE. */
int bench_table_open(struct bench *bench, enum place place, uint64_t rows, uint32_t dim, const char *path,
                     struct backend_table **table);

/* ---- train: a run's steps, without a run directory's checkpoints ---- */

/* The step moves its rows, too. PHASE_ALONE: the same with no other rank waited for; of several ranks alone. */
enum bench_phase { PHASE_MAKE, PHASE_STEP, PHASE_ALONE, PHASES };

struct bench_training {
    struct plan plan;
    struct backend_info machine; /* with everything allocated */
    struct bench_limits limits;
    int gpu, hogwild;
    double loading;                              /* seconds from the call to the first step */
    double seconds;                              /* of the measured steps */
    uint64_t steps;                              /* measured; hogwild: calls */
    uint64_t words, examples, pairs, link_bytes; /* of the measured steps */
    uint64_t row_bytes;   /* hogwild: of the rows that examples name, read and written once each */
    double calling;       /* hogwild: seconds within its calls */
    double loss_pair;     /* of the last ones measured */
    double phase[PHASES]; /* seconds a step of each, one after the other, nothing overlapped; batch mode */
    uint64_t phase_steps; /* 0: not measured */
};

/* Runs the config's steps for about `seconds` after a tenth of that to warm up, or for `steps` steps where not 0. The
 * encoded corpus is kept and reused where train keeps it. ranks: that train together, each of which has its own measurements, but
 * for words and pairs, which are those of all; NULL: this process alone. */
int bench_train(struct bench_training *out, struct config *config, double seconds, uint64_t steps, struct ranks *ranks);

/* ---- walks: how fast they are drawn, when nothing is trained on them ---- */

struct bench_walks {
    struct backend_info machine;
    struct graph graph; /* its counts alone */
    uint32_t length;    /* nodes of a walk */
    int on_host;        /* 1: a GPU reads the neighbours in host memory */
    uint64_t walks;     /* measured */
    double seconds;
};
int bench_walks(struct bench_walks *out, struct config *config, double seconds);

/* ---- memory: the bytes of a pinned table ---- */

struct bench_memory {
    uint64_t rows, dim;
    uint64_t payload;               /* rows x dim x 4 */
    uint64_t host_bytes, gpu_bytes; /* that the table took, by the backend's count */
    uint64_t resident;              /* by the system's */
    double opening, checking;       /* seconds: to have it; to write and read back a sample of it */
};
int bench_memory(struct bench *bench, uint64_t rows, uint32_t dim, struct bench_memory *out);

#endif
