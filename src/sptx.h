/* sptx: huge tables of embedding rows, for any model. This header is the manual of libsptx.
 *
 * A table stores rows of floats, each with the state of its optimizer. It may be larger than a GPU's memory: the rows are
 * stored in host memory that the GPU can address, and only rows that a call names are copied to the GPU. Four calls:
 *
 *     fetch      ids -> values                    reads rows, for a forward pass
 *     update     ids, gradients                   does one optimizer step for each distinct row
 *     store      ids, values                      overwrites rows; their optimizer state is unchanged
 *     prefetch   ids                              announces a fetch, so that its rows begin to move now
 *
 * One step with a table of users (the caller's model computes the gradients, in any way):
 *
 *     struct sptx_context *context;
 *     struct sptx_context_options machine = SPTX_CONTEXT_OPTIONS;
 *     if (sptx_open(&context, &machine)) die(sptx_error(context));
 *
 *     struct sptx_table_options options;
 *     sptx_table_defaults(&options, sizeof options);
 *     options.rows = 5000000;
 *     options.dim = 64;
 *     options.optimizer = "adagrad";
 *     options.lr = 0.05;
 *     struct sptx_table *users;
 *     if (sptx_table_open(context, &options, &users)) die(sptx_error(context));
 *
 *     struct sptx_ids ids = {.data = user_ids, .count = n, .bits = 64, .memory = SPTX_HOST};
 *     sptx_fetch(users, &ids, values, SPTX_HOST, NULL);             // values: [n x 64]
 *     ...                                                           // gradients: [n x 64], your model's
 *     sptx_update(users, &ids, gradients, SPTX_HOST, NULL);
 *     sptx_table_save(users, "users.npy");
 *
 * Status. Every call that can fail returns an enum sptx_status; sptx_error(context) then says what was found and what was
 * expected. A call that returns SPTX_USAGE (its arguments were wrong) has changed nothing.
 *
 * Output. The library prints nothing (unless SPTX_TRACE=1 is in the environment), never exits, installs no signal handler and
 * keeps no state outside its handles.
 *
 * Floating point. Calls compute in the default mode (round to nearest, denormal numbers kept, no traps). A call restores the
 * calling thread's mode before it returns, and while a callback runs.
 *
 * Threads. A context with its tables and runs is used by one thread at a time; different contexts by different threads at
 * once. After fork() only the parent may use its handles; the child must open new ones, before it uses CUDA. Rows that the GPU can
 * address are not mapped in the child: reading a view of them there raises SIGSEGV.
 *
 * Sizes. An array must be aligned to the size of its elements. One call accepts at most 4,294,967,295 ids, queries or lists.
 * Counts and numbers of bytes are 64-bit. Rows are numbered from 0; a table has at most 4,294,967,294 rows.
 *
 * Compatibility. Structs of options begin with their size, so programs built with an older header still work.
 */
#ifndef SPTX_H
#define SPTX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* only what this header declares is exported */

#define SPTX_VERSION "1.0.0"

/* Returns the library's version, "MAJOR.MINOR.PATCH". A program that was built with this header works with every library of the same MAJOR. */
const char *sptx_version(void);

enum sptx_status {
    SPTX_OK = 0,
    SPTX_FAILED = 1,  /* the arguments were right, but the call failed because of memory, a disk, a GPU or a file's contents */
    SPTX_USAGE = 2,   /* an argument was wrong: an id past the rows, an unknown name, a NULL handle */
    SPTX_STOPPED = 3, /* the callback or sptx_stop() ended sptx_train(). If training had begun, a checkpoint was written */
};

/* Kind of memory that an array of the caller is in. The numbers are those of DLPack's device types. */
enum sptx_memory {
    SPTX_HOST = 1, /* any host memory */
    SPTX_CUDA = 2, /* memory of the context's GPU, or host memory that this GPU can address */
};

struct sptx_context;
struct sptx_table;
struct sptx_run;

/* ---- limits ---- */

#define SPTX_ROWS_MOST    4294967294u /* largest number of rows of a table */
#define SPTX_COLUMNS_MOST 4096        /* largest number of columns of a row */
#define SPTX_THREADS_MOST 4096        /* largest number of threads of a context */

/* ---- a context: the machine ---- */

struct sptx_context_options {
    uint64_t size;       /* sizeof (struct sptx_context_options) */
    const char *device;  /* "auto": the first GPU, or the CPU if there is no GPU; "cpu"; "cuda"; "cuda:1" */
    uint32_t threads;    /* number of host threads, up to SPTX_THREADS_MOST; 0: one for each core that the process may use */
    uint32_t reserved;   /* 0 */
    uint64_t gpu_budget; /* most bytes of GPU memory that the context uses; 0: all free bytes less a reserve */
    void (*warning)(void *user, const char *text); /* called with each warning, in the calling thread; NULL: no warnings */
    void *user;
};
#define SPTX_CONTEXT_OPTIONS {sizeof(struct sptx_context_options), "auto", 0, 0, 0, 0, 0}

/* Opens a context. If this fails, *context is still set, so that sptx_error() can say why, and the caller must close it. Only if there is no
 * memory for a context, *context is NULL. */
enum sptx_status sptx_open(struct sptx_context **context, const struct sptx_context_options *options);

/* Waits for all work of a context, then closes it with its open tables and runs. A NULL context is allowed. */
void sptx_close(struct sptx_context *context);

/* Returns the error message of this context's last failed call, or ""; valid until the next call in the context. */
const char *sptx_error(const struct sptx_context *context);

/* Returns the device of the context, "cpu" or "cuda:0"; valid as long as the context is open. */
const char *sptx_device(const struct sptx_context *context);

/* Waits until all calls on the context's tables are done. Ids in GPU memory are checked only by the GPU, which skips ids past a table's rows; this
 * call then fails. */
enum sptx_status sptx_wait(struct sptx_context *context);

/* ---- a table ---- */

enum sptx_place {
    SPTX_PINNED = 0, /* host memory that the GPU can address: CUDA's managed memory, kept on the host. It is page-locked memory if the system has
                      * no managed memory (WSL) or SPTX_PIN_ROWS=1 is in the environment, and ordinary memory if there is no GPU */
    SPTX_GPU = 1,    /* the GPU's own memory; ordinary memory if there is no GPU */
    SPTX_FILE = 2,   /* a working file, mapped into memory, and removed when the table is closed */
};

/* Number type of stored rows; arithmetic is always float32. A bfloat16 is the upper half of a float32. When one is written, the value is rounded
 * up or down at random, so that its expected value is exact. Equal calls on tables of equal seeds give equal bytes.
 *
 * int8 and float8 (OCP E4M3FN) are for weights only. A row has one byte for each column, and one float32 scale. A column's value is its code x the
 * scale. When a row is written, the scale becomes the row's largest absolute value / 127 (int8) or / 448 (float8), and codes are rounded up or
 * down at random. A row whose values are all smaller than 8e-31 becomes zeros, with scale 0. If a value of a row is NaN or infinite, the whole row
 * is read as NaN until it is stored again, and is not saved. These rows have no view (sptx_table_view). */
enum sptx_dtype { SPTX_FLOAT32 = 0, SPTX_BFLOAT16 = 1, SPTX_AS_WEIGHTS = 2, SPTX_INT8 = 3, SPTX_FLOAT8 = 4 };

/* A table of several processes of one machine, the ranks: each opens it with the same name and options, and sptx_table_open() returns when all
 * have opened it. The rows are stored once, in /dev/shm; any rank fetches any row, and its GPU reads them there. Nothing is left when the
 * ranks end, and what a kill has left the next start removes. Only with SPTX_PINNED weights and state, and without hot_rows and gpu_rows.
 *
 * If a rank dies, closes the table or is stopped (sptx_stop()), the other ranks' calls that wait for it fail with a sentence that names it. */
enum sptx_owner {
    SPTX_EXACT = 0,     /* sptx_update() and sptx_store() are made by all ranks together, in the same order; a rank may bring no ids. The rows get
                         * the bytes that one process gives them which makes the call with the ids of rank 0, then those of rank 1, and so on.
                         * If the call of one rank is wrong, all ranks' calls fail, and the table is unchanged */
    SPTX_LOCK_FREE = 1, /* each rank changes rows without waiting. Of changes of one row at the same time some may be lost */
};

/* How to make a table. Optimizers, their options' names and the defaults are those of PyTorch (torch.optim). Options that the
 * optimizer does not read are ignored; NaN means the optimizer's default. sparse_adam and rprop refuse weight_decay. After lr is
 * changed asgd uses the new rate one update earlier than PyTorch's, and rprop's step sizes still begin with the first lr. */
struct sptx_table_options {
    uint64_t size;          /* sizeof (struct sptx_table_options) */
    uint64_t rows;          /* 1 .. SPTX_ROWS_MOST */
    uint32_t dim;           /* columns, 1 .. SPTX_COLUMNS_MOST */
    uint32_t weights;       /* enum sptx_place of the weights */
    uint32_t state;         /* enum sptx_place of the optimizer's state */
    uint32_t seed;          /* seed of the first values */
    uint64_t hot_rows;      /* in a SPTX_PINNED or SPTX_FILE table, rows with numbers below this are kept on the GPU */
    const char *optimizer;  /* one of: sgd adagrad adadelta rmsprop adam adamw sparse_adam adamax asgd rprop rowwise_adagrad ftrl rowwise_adam;
                             * "none": the table cannot be updated */
    const char *init;       /* first values: "zeros", "uniform LO HI", "normal MEAN SD", "word2vec" (uniform +-0.5/dim) */
    const char *directory;  /* the directory for working files; NULL: the current one */
    double lr, momentum, weight_decay, lr_decay, initial_accumulator, eps, rho, alpha, beta1, beta2, lambd, t0;
    double eta_minus, eta_plus, step_min, step_max;
    double clip;            /* most length of a row's gradient, summed over the places of its id in an update: a longer sum is scaled down; 0: no
                             * limit */
    uint32_t nesterov, centered, amsgrad; /* 0 or 1 */
    uint32_t count_rows;    /* bias corrections use, 1: the number of updates of each row; 0: the number of updates of the whole table, as in
                             * PyTorch */
    uint32_t dtype;         /* enum sptx_dtype of the stored weights; calls take and give float32 in any case */
    uint32_t state_dtype;   /* enum sptx_dtype of the optimizer's state; default SPTX_AS_WEIGHTS. If the weights are int8 or float8 it must be
                             * float32. On a GPU it can be bfloat16 only if the weights are */
    uint64_t gpu_rows;      /* most rows of a pinned table that have a copy on the GPU because calls use them often; 0: none. The library counts
                             * which rows these are; results do not depend on it. Excludes hot_rows */
    uint32_t check_finite;  /* 1: sptx_update() refuses gradients that contain NaN or infinity, and leaves the table unchanged. Gradients must then
                             * be in host memory: if yours are on a GPU, check them there yourself. 0: such a gradient makes its row NaN or
                             * infinite; with most optimizers the row never recovers */
    uint32_t reserved;      /* 0 */
    double l1, l2, beta;    /* of ftrl, whose lr is McMahan's alpha. Its weights are computed from its state, which begins at 0; a first
                             * value, or one stored before a row's first update, counts as if it had been computed so. A value that is
                             * stored later lasts until the row's next update */
    const char *shared;     /* name of a table that several processes of this machine open together (see below); NULL: the table is this
                             * process's alone */
    uint32_t owner;         /* enum sptx_owner: how the processes of a shared table change its rows */
    uint32_t rank, ranks;   /* number of this process, from 0; number of processes, up to 256 (0: 1) */
    uint32_t reserved2;     /* 0 */
};
/* Sets every field to its default; rows and dim are 0, and the caller must set them. size: sizeof *options. */
void sptx_table_defaults(struct sptx_table_options *options, uint64_t size);

/* sptx_optimizer() returns the name of an optimizer, sptx_optimizer_option() the name of an option: a field of sptx_table_options that the
 * optimizer uses, other than lr and clip. index counts from 0; past the last name they return NULL. Any thread may call them. */
const char *sptx_optimizer(uint32_t index);
const char *sptx_optimizer_option(const char *optimizer, uint32_t index);

/* Opens a table and fills it with its first values. Equal options give equal values on every machine. Without a GPU, rows that begin as
 * zeros, with their state, take memory when they are first written. A shared table is filled by all ranks. */
enum sptx_status sptx_table_open(struct sptx_context *context, const struct sptx_table_options *options, struct sptx_table **table);
void sptx_table_close(struct sptx_table *table); /* NULL: does nothing */

uint64_t sptx_table_rows(const struct sptx_table *table);
uint32_t sptx_table_dim(const struct sptx_table *table);

/* sptx_table_lr() returns the learning rate of later updates; sptx_table_set_lr() changes it, for schedules. */
double sptx_table_lr(const struct sptx_table *table);
enum sptx_status sptx_table_set_lr(struct sptx_table *table, double lr);

/* sptx_table_steps() returns the number of sptx_update() calls so far, and sptx_table_set_steps() changes it (up to 2^63 - 1). Bias corrections
 * use it if count_rows is 0. To continue a training, set it after sptx_table_load(). */
uint64_t sptx_table_steps(const struct sptx_table *table);
enum sptx_status sptx_table_set_steps(struct sptx_table *table, uint64_t steps);

/* Save a table to, and load it from, a NumPy file with a structured type, as checkpoints have it: the weights, the optimizer's
 * state under PyTorch's names, and each row's number of updates. If saving fails, an older file at the path is unchanged.
 * Loading fails if the file's rows, columns or state differ from the table's.
 *
 * One rank saves a shared table. With SPTX_EXACT it may be any: no row changes before it has come to the next update. With
 * SPTX_LOCK_FREE the others must not change rows meanwhile: all call sptx_table_barrier() before and after. All ranks load together; rank 0
 * reads the file. */
enum sptx_status sptx_table_save(struct sptx_table *table, const char *path);
enum sptx_status sptx_table_load(struct sptx_table *table, const char *path);

/* Waits until all ranks of a shared table have called it, and their changes are done. Does nothing for another table. */
enum sptx_status sptx_table_barrier(struct sptx_table *table);

/* Begins to save a table, and returns at once. The file will have the bytes that sptx_table_save() would write now. Fetches,
 * updates and stores may go on during the save: before such a call changes a row that is not written yet, it copies the row. Refused for a
 * shared table, since no process sees when others change its rows.
 *
 * most: limit on the bytes of these copies; 0: an eighth of the table, but at least 64 MiB. A call that needs more waits for the disk. If part of
 * a table is in a file and the context has a GPU, calls that change the table wait until the save is done. Values that the caller writes through a
 * view (sptx_table_view) during the save may or may not be in the file.
 *
 * A table has one save at a time. The next save, sptx_table_load(), and closing the table or the context wait for it. Two saves to one path at a
 * time are refused. If a save fails, sptx_saving_wait() reports it, or the table's next save if nobody waited. If the process ends before the save
 * is done, an older file at the path is unchanged. */
struct sptx_saving;
enum sptx_status sptx_table_save_begin(struct sptx_table *table, const char *path, uint64_t most, struct sptx_saving **saving);

/* Any thread may call these, at the same time as other calls in the context. sptx_saving_done() returns 1 if the save has ended,
 * with success or failure. sptx_saving_wait() waits for the end, and returns the save's status; then sptx_saving_error() returns
 * its error message, which is valid until sptx_saving_close(). Closing does not stop the save. */
int sptx_saving_done(const struct sptx_saving *saving);
enum sptx_status sptx_saving_wait(struct sptx_saving *saving);
const char *sptx_saving_error(struct sptx_saving *saving);
void sptx_saving_close(struct sptx_saving *saving); /* NULL: does nothing */

/* ---- rows ----
 *
 * `stream` is a cudaStream_t (NULL: the default stream). A call is ordered in that stream like a kernel launched on it. If all its
 * arrays are in GPU memory, it returns before its work is done. Arrays in host memory may be reused as soon as the call returns.
 * Without a GPU `stream` is ignored, and the work is done when the call returns. Arrays of ids and values must not overlap the
 * table's memory (sptx_table_view), and no thread may change them during a call.
 */

/* The ids of rows that one call reads or changes. */
struct sptx_ids {
    const void *data; /* [count] int32 or int64 */
    uint64_t count;
    uint32_t bits;    /* 32 or 64 */
    uint32_t memory;  /* enum sptx_memory */
};

/* Copies rows: out[i] = row ids[i]; out is [count x dim]. Ids may be in any order and may repeat. */
enum sptx_status sptx_fetch(struct sptx_table *table, const struct sptx_ids *ids, float *out, enum sptx_memory memory,
                            void *stream);

/* Announces a coming fetch of exactly these ids in this order: their rows begin to move now. If a row is changed before that
 * fetch, the fetch gives its new value. Two announcements are kept; a third replaces the oldest. Does nothing for a shared table with
 * SPTX_EXACT; with SPTX_LOCK_FREE the fetch may lack changes that other ranks have made since. */
enum sptx_status sptx_prefetch(struct sptx_table *table, const struct sptx_ids *ids, void *stream);

/* Updates rows by gradients [count x dim]. The gradients of equal ids are summed in the order of the ids; then the table's optimizer updates each
 * distinct row once. The resulting bits depend neither on the number of threads nor on the table's place. Gradients are checked only if the table
 * has check_finite. */
enum sptx_status sptx_update(struct sptx_table *table, const struct sptx_ids *ids, const float *gradients, enum sptx_memory memory,
                             void *stream);

/* Overwrites rows: row ids[i] = values[i]; values is [count x dim]. If an id repeats, its last values are stored. A bfloat16 table stores a value
 * exactly if bfloat16 can represent it; an int8 or float8 table stores a row exactly if its values were fetched from such a table. */
enum sptx_status sptx_store(struct sptx_table *table, const struct sptx_ids *ids, const float *values, enum sptx_memory memory,
                            void *stream);

/* ---- rows that n-grams name ---- */

enum { SPTX_NGRAM_MOST = 1 << 20 }; /* most tokens of an n-gram */

/* How the n-grams of a language model's tokens are hashed to rows. parts = orders x heads; the rows of a table are divided evenly among the parts,
 * part_rows each. The n-gram of order number o whose last token is w[0], the one before it w[1] and so on, has in head h the row
 * p x part_rows + floor(y x part_rows / 2^31), where p = o x heads + h, and
 *
 *   x = (w[0] + 1) a[0] + (w[1] + 1) a[1] + .. + (w[n-1] + 1) a[n-1]  (mod 2^64); tokens before the sequence's first one are left out
 *   y = the highest 31 bits of (x XOR floor(x / 2^32)) 0x9E3779B97F4A7C15  (mod 2^64)
 *   a[i] = number p x (longest order) + i of SplitMix64 (Steele et al. 2014), begun with `seed`, made odd
 *
 * This is multiply-shift hashing of vectors (Dietzfelbinger 1996), mixed once more. */
struct sptx_ngram_law {
    uint64_t size;            /* sizeof(struct sptx_ngram_law) */
    uint64_t seed, part_rows; /* part_rows: 1 .. SPTX_ROWS_MOST */
    uint32_t orders, heads;   /* orders: 1 .. 32 */
    const uint32_t *order;    /* [orders] lengths of the n-grams, 1 .. SPTX_NGRAM_MOST */
};

/* Sets rows[batch x (length - skip) x parts] to the rows that n-grams name, one for each part, where each of the last length - skip tokens of a
 * sequence ends an n-gram. tokens: [batch x length] whole numbers. Tokens and rows are in the same memory; in CUDA memory this is one kernel on
 * `stream` (a cudaStream_t), which no call waits for. */
enum sptx_status sptx_ngrams(struct sptx_context *context, const struct sptx_ngram_law *law, const struct sptx_ids *tokens, uint64_t batch,
                             uint64_t skip, int64_t *rows, void *stream);

/* ---- the rows as memory ---- */

/* Where the weights, or one array of optimizer state, of the rows in host memory are, for access without a copy. Row r >= first begins at data +
 * (r - first) * stride bytes. Valid until the table is closed. After a call changed rows, wait for sptx_wait() before you read them here. */
struct sptx_view {
    uint64_t size;   /* sizeof (struct sptx_view), set by the caller */
    float *data;     /* NULL if no row is on the host, or if the table has gpu_rows. Points to bfloat16 if dtype says so */
    uint64_t first;  /* rows with numbers below this are hot: they are on the GPU. Tables of runs have no hot rows */
    uint64_t rows;   /* number of rows that can be read through the view */
    uint64_t stride; /* bytes from the beginning of one row to the beginning of the next */
    uint32_t dim;
    uint32_t cuda;   /* 1: the GPU can use the address `data`, too */
    uint32_t dtype;  /* SPTX_FLOAT32 or SPTX_BFLOAT16. Weights of int8 and float8 have no view, but their optimizer state has one */
    uint32_t reserved;
};
/* Fills a view of "weights", or of an array of optimizer state, which has PyTorch's name ("exp_avg"). */
enum sptx_status sptx_table_view(struct sptx_table *table, const char *field, struct sptx_view *view);

/* Writes the ids of rows that have a copy on the GPU now because of gpu_rows to ids[], at most `capacity`, in any order; their number to *count. */
enum sptx_status sptx_table_cached(struct sptx_table *table, uint32_t *ids, uint64_t capacity, uint64_t *count);

/* Returns the name of an array that sptx_table_view() accepts: "weights" at index 0, then the arrays of optimizer state; NULL past the last. */
const char *sptx_table_field(const struct sptx_table *table, uint32_t index);

/* ---- tables by key ----
 *
 * A keyed table has rows for 64-bit keys that come and go, such as hashes of users and words. It has `capacity` rows; a key gets one when a call
 * first names it. Otherwise it is like a table of numbered rows, with any number type, optimizer and place.
 *
 * First values. A new key's row begins with values that are drawn from (seed, key), and with the optimizer's first state. So its bytes depend neither
 * on the order in which keys come nor on the number of threads or the capacity. If a key has no row, a fetch gives its first values.
 *
 * Admission. With admit = n, a key gets its row when sptx_keyed_fetch() names it for the n-th time. The table counts these sights in 4 bytes for each
 * row of the capacity; several keys share a counter, and all counters are halved after 4 x capacity sights of keys without a row. So a key may get
 * its row too early, or, if its sights are far apart, too late.
 *
 * Full. If no row is free for a new key, other keys leave, as `evict` says: first the one with the least number, and of several the least key. A call
 * never evicts a key that it names. If `evict` is SPTX_EVICT_NONE, or if one call names more keys than the capacity, the call returns SPTX_USAGE and
 * has changed nothing. Only the calls decide which keys leave, and saving and loading do not change it.
 *
 * Keys are in host memory. The index takes about 150 bytes of host memory for each row of the capacity if keys can leave, otherwise 100. On a GPU,
 * rows for new keys are written one by one. No thread may use the context during a call.
 */
struct sptx_keyed;

#define SPTX_ADMIT_MOST 255

enum sptx_evict {
    SPTX_EVICT_NONE = 0,
    SPTX_EVICT_LRU = 1, /* evict the key whose last call of fetch, update or store is the oldest */
    SPTX_EVICT_LFU = 2, /* evict the key that was fetched least often since it got its row */
    SPTX_EVICT_AGE = 3, /* evict the key that got its row first */
};

struct sptx_keyed_options {
    uint64_t size;         /* sizeof (struct sptx_keyed_options) */
    uint32_t evict, admit; /* enum sptx_evict; 1 .. SPTX_ADMIT_MOST */
    uint64_t keep_evicted; /* most evicted rows that are kept for sptx_keyed_evicted(); UINT64_MAX: as many as 64 MiB hold */
};
/* Sets every field to its default: no key leaves, admit is 1. size: sizeof *options. */
void sptx_keyed_defaults(struct sptx_keyed_options *options, uint64_t size);

/* Opens an empty table by key. rows: the options of its rows; rows->rows is the capacity, at most SPTX_ROWS_MOST - 1024. options: NULL for the
 * defaults. With gpu_rows, each call that brings new keys first writes the rows on the GPU back to the host. */
enum sptx_status sptx_keyed_open(struct sptx_context *context, const struct sptx_table_options *rows, const struct sptx_keyed_options *options,
                                 struct sptx_keyed **keyed);
void sptx_keyed_close(struct sptx_keyed *keyed); /* NULL: does nothing */

/* Returns the table that contains the rows. Call only sptx_table_lr(), _set_lr(), _dim(), _field() and _steps() on it: the keyed table owns it. It
 * has some more rows than the capacity. */
struct sptx_table *sptx_keyed_table(struct sptx_keyed *keyed);

/* For keys that are text: sets keys[i] to the 64-bit XXH3 hash of the bytes offsets[i] .. offsets[i + 1] - 1. The probability that two of n
 * different texts get the same key is about n^2 / 2^65: 3 in 100 million for a million texts, 2.7% for a billion. */
enum sptx_status sptx_keyed_hash(const char *bytes, const uint64_t *offsets, uint64_t count, uint64_t *keys);

/* The calls of a table, by key. Keys may repeat and come in any order; values are [count x dim], in `memory`, ordered in `stream`. Keys are in host
 * memory or, if the context runs on a GPU, in that of the GPU.
 *
 *   fetch    counts a sight of each key, gives rows to new keys, and reads the rows
 *   find     reads rows (out = NULL: none), and sets found[i] to 1 if key i has a row (found = NULL: unwanted). Changes nothing
 *   update   sums the gradients of each different key, and updates its row once. A key without a row gets one if admit is 1;
 *            otherwise its gradients are dropped, and counted
 *   store    overwrites rows; each key gets a row
 *   remove   takes rows away from keys. Sets *removed to the number of keys that had one (NULL: unwanted)
 */
enum sptx_status sptx_keyed_fetch(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, enum sptx_memory memory,
                                  void *stream);
enum sptx_status sptx_keyed_find(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, uint8_t *found,
                                 enum sptx_memory memory, void *stream);
enum sptx_status sptx_keyed_update(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, const float *gradients,
                                   enum sptx_memory memory, void *stream);
enum sptx_status sptx_keyed_store(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, const float *values,
                                  enum sptx_memory memory, void *stream);
enum sptx_status sptx_keyed_remove(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, uint64_t *removed);

/* Writes the keys that have rows to keys[], in rising order, at most `capacity` of them, and sets *count to how many there are. */
enum sptx_status sptx_keyed_keys(struct sptx_keyed *keyed, uint64_t *keys, uint64_t capacity, uint64_t *count);

/* Sets counts[i] to the number of times that key i was fetched since it got its row; 0 if it has no row. */
enum sptx_status sptx_keyed_counts(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, uint64_t *counts);

/* Writes the keys that were evicted since the last call of this function to keys[*count], in the order in which they left, and their rows to
 * rows[*count x dim]; at most `capacity`. Only the newest keep_evicted rows are kept; `lost` of sptx_keyed_about() counts the others. */
enum sptx_status sptx_keyed_evicted(struct sptx_keyed *keyed, uint64_t *keys, float *rows, uint64_t capacity, uint64_t *count);

/* Save the table to a file. If saving fails, an older file at the path is unchanged. The keys in the file rise, so tables that had the same calls
 * have the same file, on any machine and with any number of threads.
 *
 * since: NULL: save the whole table. Otherwise a mark: save only changes since the mark: the keys that later calls named, with their rows, and the
 * keys that have left. Load such a file into a table that is in the state of the mark: one loaded from what was saved then, or brought there by
 * files of changes. It is then the same as this table, to the byte. To check the state, a hash of all calls is compared, with their keys, and with
 * values and gradients if they were in host memory.
 *
 * A table knows its two newest marks. From the first mark on it remembers keys that leave. */
struct sptx_mark {
    uint64_t call, chain; /* number of the last call before the mark, and a hash of all calls up to it */
};
enum sptx_status sptx_keyed_mark(struct sptx_keyed *keyed, struct sptx_mark *mark);
enum sptx_status sptx_keyed_save(struct sptx_keyed *keyed, const char *path, const struct sptx_mark *since);

/* Sets options to those of the table that was saved to a file. Set both structs to their defaults before. rows->init is valid until the context's
 * next call of this function. You may then change places, and if admit is 1 the capacity. */
enum sptx_status sptx_keyed_options_of(struct sptx_context *context, const char *path, struct sptx_table_options *rows,
                                       struct sptx_keyed_options *options);

/* Loads a whole table into a new one that has its options, or applies a file of changes. Refuses a file of changes that does not follow this
 * table's state, or a file of another kind of table; then nothing is changed. */
enum sptx_status sptx_keyed_load(struct sptx_keyed *keyed, const char *path);

/* Numbers of a keyed table. */
struct sptx_keyed_numbers {
    uint64_t size;            /* sizeof (struct sptx_keyed_numbers), set by the caller */
    uint64_t capacity, keys;  /* keys: those that have rows */
    uint64_t calls, chain;    /* number of calls that changed the table; a hash of all these calls, as in sptx_mark */
    uint64_t waiting;         /* number of times that a fetch gave a key's first values because it had no row */
    uint64_t dropped;         /* number of times that an update dropped a key's gradients because it had no row */
    uint64_t evictions;       /* keys that have left by eviction */
    uint64_t evicted, lost;   /* number of rows that sptx_keyed_evicted() will give; number of rows lost since its last call, which it can no
                               * longer give */
    uint32_t evict, admit;
};
enum sptx_status sptx_keyed_about(const struct sptx_keyed *keyed, struct sptx_keyed_numbers *numbers);

/* ---- training and finished runs ---- */

struct sptx_progress {
    uint64_t size; /* sizeof (struct sptx_progress), set by the library */
    uint64_t step, epoch;
    double done;                              /* finished share of the run, 0..1 */
    double loss, lr;                          /* loss: mean loss of an example since the last report */
    double words_per_second, pairs_per_second; /* 0 if the data has no words, or no pairs */
    double seconds;                           /* seconds of training so far, including those before a resume */
    const char *line;                         /* the live line that `sptx-w2v train` would print; valid during the call */
};
/* Called during training. Returns 0 to continue; any other value stops training after a checkpoint. */
typedef int sptx_progress_fn(void *user, const struct sptx_progress *progress);

/* How sptx_train() treats a run that run.dir already contains. */
enum sptx_beginning {
    SPTX_ANEW = 0,      /* it fails */
    SPTX_RESUME = 1,    /* it continues from the run's newest checkpoint */
    SPTX_OVERWRITE = 2, /* it removes the old run as soon as the new run has written a checkpoint */
};

/* Trains, as `sptx-w2v train` does. config: path of an INI file, or NULL. settings: `count` strings "section.key=value", which override values of
 * the file. beginning: enum sptx_beginning. Returns SPTX_STOPPED if the callback or sptx_stop() ended training. */
enum sptx_status sptx_train(struct sptx_context *context, const char *config, const char *const *settings, uint64_t count,
                            int beginning, sptx_progress_fn *progress, void *user);

/* Returns the directory of the run that this context trained last, or ""; valid until the next call in the context. */
const char *sptx_trained(const struct sptx_context *context);

/* Asks the sptx_train() that is running in the context, or else the next one, to end soon: it writes a checkpoint, if training has
 * begun, and returns SPTX_STOPPED. Also ends a call on a shared table that waits for other ranks. May be called by any thread and in a
 * signal handler. Harmless on NULL. */
void sptx_stop(struct sptx_context *context);

/* ---- training on data that the program has ----
 *
 * The program fills a corpus block by block with words of text, integers, or indexes into a dictionary. Training gives the same
 * vocabulary and the same bytes of vectors as training on a file with that content. A block need not be kept after its call:
 * the corpus stores each different word once, and 4 bytes for each token (8 for a pair or an edge).
 *
 *     const char *settings[] = {"corpus.format=text", "run.dir=runs/my"};
 *     struct sptx_corpus *corpus;
 *     if (sptx_corpus_open(context, NULL, settings, 2, &corpus)) die(sptx_error(context));
 *     while (more()) // a block: the bytes "the cat sat", and the offsets of its tokens
 *         sptx_corpus_sentences(corpus, &tokens, starts, sentences, NULL);
 *     sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL);
 *     sptx_corpus_close(corpus);
 */
struct sptx_corpus;

enum sptx_token_kind {
    SPTX_TEXT = 0,    /* bytes: token i is data[offsets[i] .. offsets[i + 1]), blanks included; an empty token is refused */
    SPTX_NUMBERS = 1, /* integers from 0; each counts as a word of decimal digits */
    SPTX_KNOWN = 2,   /* indexes, from 0, of words that sptx_corpus_words() has added */
};
struct sptx_tokens {
    uint32_t kind;       /* enum sptx_token_kind */
    uint32_t bits;       /* number of bits of an integer, or of an offset into text: 32 or 64 */
    const void *data;    /* the text's bytes, or [count] integers */
    const void *offsets; /* SPTX_TEXT: [count + 1] offsets into data; otherwise NULL */
    uint64_t count;
};

/* Opens a corpus for a run with these settings (as for sptx_train(); corpus.path stays empty), and checks them. corpus.format decides which calls
 * add the data: sptx_corpus_sentences() for text, lists and adjacency, _pairs() for pairs, _edges() for a graph, _triples() for triples. Nothing
 * is written to disk before sptx_corpus_train(). */
enum sptx_status sptx_corpus_open(struct sptx_context *context, const char *config, const char *const *settings, uint64_t count,
                                  struct sptx_corpus **corpus);
void sptx_corpus_close(struct sptx_corpus *corpus); /* must be called before the context is closed; NULL is allowed */

/* ---- what the columns mean ----
 *
 * For rows of fields, such as tuples or a table: before the rows are added, sptx_corpus_look() finds out what each column means, in the way it is
 * done for files. If no setting names corpus.format, it also finds out what the rows are. It says what it found in one line, "columns    ...", to
 * the context's warning function; the line is also written to the run's config.ini. */
enum sptx_field_kind {
    SPTX_FIELD_NONE = 0,    /* the row ends before this column */
    SPTX_FIELD_MISSING = 1, /* no value: a null, NaN */
    SPTX_FIELD_TEXT = 2,
    SPTX_FIELD_INTEGER = 3, /* text: its digits */
    SPTX_FIELD_REAL = 4,    /* text: "1.5" */
    SPTX_FIELD_TRUTH = 5,   /* text: "True" or "False" */
};
struct sptx_field {
    const char *text;
    uint64_t length; /* bytes of text */
    uint32_t kind;   /* enum sptx_field_kind */
    uint32_t reserved;
};
struct sptx_rows {
    uint64_t size;                   /* sizeof (struct sptx_rows) */
    const struct sptx_field *fields; /* [rows x columns], row after row */
    uint64_t rows, columns;          /* the first 2000 rows are enough; at most 64 columns */
    const char *const *names;        /* [columns] names of the columns; NULL: they have none */
    const char *what;                /* the data in messages: "the frame" */
};
struct sptx_looked {
    uint64_t size;      /* sizeof (struct sptx_looked), set by the caller */
    const char *format; /* what the rows are: a value of corpus.format, such as "pairs". The corpus has this format from now on */
    int32_t column[3];  /* indexes of the columns of: list, item, rating; or source, target, weight; or head, tail, relation; or a document's name,
                         * its text, more of its text. -1: no column */
    uint32_t events;    /* 1: the third column has names of kinds of events, such as "view"; corpus.events names the kinds that count */
};
enum sptx_status sptx_corpus_look(struct sptx_corpus *corpus, const struct sptx_rows *rows, struct sptx_looked *looked);
/* Reports what the data was taken for: "columns    " and a text of one line. For data whose type says what it is, such as a sparse matrix; then
 * sptx_corpus_look() is not called. */
enum sptx_status sptx_corpus_say(struct sptx_corpus *corpus, const char *text);

/* Adds words to the dictionary that SPTX_KNOWN tokens are indexes of. lists: 1: the words are names of lists; 0: words or items. A word is counted
 * only where sentences, pairs or edges contain it. */
enum sptx_status sptx_corpus_words(struct sptx_corpus *corpus, uint32_t lists, const struct sptx_tokens *words);

/* Adds `count` sentences, lists, or, with corpus.format = adjacency, targets each followed by its contexts. Number i consists of the tokens
 * starts[i] .. starts[i + 1] - 1; starts is [count + 1]. names: [count] names of the lists; NULL: they are named 0, 1, 2... */
enum sptx_status sptx_corpus_sentences(struct sptx_corpus *corpus, const struct sptx_tokens *tokens, const uint64_t *starts,
                                       uint64_t count, const struct sptx_tokens *names);

/* Adds lines of text, for corpus.format = text, or for documents, which are then named by their line's number from 0. Blanks separate words, a
 * line feed ends a sentence. All threads of the context count words. The text must end with a whole word; a line without a line feed goes on in
 * the next call. bytes = 0 ends that line. */
enum sptx_status sptx_corpus_text(struct sptx_corpus *corpus, const char *text, uint64_t bytes);

/* The counts of a corpus so far. The arrays are valid until the corpus' next call. */
struct sptx_counted {
    uint64_t size;             /* sizeof (struct sptx_counted), set by the caller */
    struct sptx_tokens words;  /* the different words as text, each with its NUL, in the order of their first occurrence; includes words that
                                * sptx_corpus_words() has added and no sentence contains */
    const uint64_t *counts;    /* [words.count] how often each occurs */
    uint64_t sentences, tokens;
};
enum sptx_status sptx_corpus_counted(struct sptx_corpus *corpus, struct sptx_counted *counted);

/* Changes settings for the next training, for example a vocabulary that you chose by sptx_corpus_counted(). Settings that change how data is read
 * are refused once the corpus contains data. */
enum sptx_status sptx_corpus_set(struct sptx_corpus *corpus, const char *const *settings, uint64_t count);

/* Adds pairs: list lists[i] contains items[i], with the rating ratings[i] (NaN: no rating; ratings = NULL: no pair has one).
 * Pairs rated below corpus.min_rating are left out; corpus.weights turns ratings into weights. If either key is set, a pair
 * without a rating is refused. */
enum sptx_status sptx_corpus_pairs(struct sptx_corpus *corpus, const struct sptx_tokens *lists, const struct sptx_tokens *items,
                                   const double *ratings);

/* Adds edges of a graph: from[i] to to[i], of weight weights[i]. weights: [count], or NULL in every call: edges have no weights.
 * Edges from a node to itself and edges of weight 0 are left out; graph.directed and graph.weights work as for a file. */
enum sptx_status sptx_corpus_edges(struct sptx_corpus *corpus, const struct sptx_tokens *from, const struct sptx_tokens *to,
                                   const double *weights);

/* Adds triples of a knowledge graph (corpus.format = triples): relations[i] leads from heads[i] to tails[i]. A triple that is added
 * again counts once. */
enum sptx_status sptx_corpus_triples(struct sptx_corpus *corpus, const struct sptx_tokens *heads, const struct sptx_tokens *relations,
                                     const struct sptx_tokens *tails);

/* Trains on the corpus's data, as sptx_train() does. The corpus keeps its data, and can be trained on again. Fails if an earlier call that added
 * data failed halfway. */
enum sptx_status sptx_corpus_train(struct sptx_corpus *corpus, enum sptx_beginning beginning, sptx_progress_fn *progress,
                                   void *user);

/* ---- finding keys ---- */

struct sptx_tune_options {
    uint64_t size;     /* sizeof (struct sptx_tune_options) */
    double minutes;    /* time limit; 0: none */
    uint64_t trials;   /* number of trials after which no further one begins; 0: only time ends the search */
    const char *out;   /* path of an INI file that the best keys are written to; NULL: none */
    const char *const *pairs, *const *analogies; /* paths of files that judge a run of words; without such files the held-out loss judges it */
    uint64_t pair_count, analogy_count;
};
#define SPTX_TUNE_OPTIONS {sizeof(struct sptx_tune_options), 5, 0, 0, 0, 0, 0, 0}

struct sptx_tuned {
    uint64_t trials, epochs; /* number of trials; number of epochs of the best one */
    double score, own;       /* score of the best trial; score of the keys as given, NaN if they have none */
    const char *measure;     /* name of the score, such as "recall@20"; valid, like `keys`, until the next call in the context */
    const char *keys;        /* the best trial's keys without its epochs, such as "model.dim=256 optimizer.lr=0.001"; may be "" */
};

/* Finds good values of keys, as `sptx-w2v tune` does: trains on most of the data with several values, and judges each trial by the rest. config,
 * settings: as for sptx_train(); keys that they set are not changed. Results are written to the directory run.dir + ".tune". progress (or NULL) is
 * called after each training, with step = the trial's number, epoch = its epochs, loss = its score (NaN: it failed) and line = a line of the
 * program's table. If progress or sptx_stop() ends the search, the best trial so far is the answer. */
enum sptx_status sptx_tune(struct sptx_context *context, const char *config, const char *const *settings, uint64_t count,
                           const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user,
                           struct sptx_tuned *tuned);
/* Finds good values of keys for the data of a corpus, as sptx_tune() does for files. The corpus can still be trained on. */
enum sptx_status sptx_corpus_tune(struct sptx_corpus *corpus, const struct sptx_tune_options *options, sptx_progress_fn *progress,
                                  void *user, struct sptx_tuned *tuned);

/* ---- finished runs ---- */

/* Opens a finished run, or one of its checkpoints, for reading. Its files are mapped into memory. */
enum sptx_status sptx_run_open(struct sptx_context *context, const char *path, struct sptx_run **run);
void sptx_run_close(struct sptx_run *run); /* harmless on NULL */
uint64_t sptx_run_rows(const struct sptx_run *run);
uint32_t sptx_run_dim(const struct sptx_run *run);
/* Returns the word of a row, or the name of a new item, NUL-terminated; NULL past the last row. The word may contain NULs: *length is set to its
 * number of bytes, unless length is NULL. */
const char *sptx_run_word(const struct sptx_run *run, uint64_t row, uint64_t *length);
uint64_t sptx_run_count(const struct sptx_run *run, uint64_t row); /* how often the corpus contains the row's word; 0 past the rows */
/* Returns the value of a key in the run's config.ini: for "corpus" and "format" for example "pairs". NULL: there is no such key. Valid until the
 * next call of this function. */
const char *sptx_run_key(struct sptx_run *run, const char *section, const char *key);
/* Gives the words of rows first .. first + count - 1 as text, each with its NUL. The text is not copied: it is valid until the run is closed.
 * offsets: space for [count + 1] offsets, which words->offsets will point to. counts: NULL, or space for [count] results of sptx_run_count(). */
enum sptx_status sptx_run_words(struct sptx_run *run, uint64_t first, uint64_t count, uint64_t *offsets, uint64_t *counts,
                                struct sptx_tokens *words);
/* Finds the row of a word. A relation "relation:NAME" is also found by NAME, unless an entity has this name. Returns SPTX_USAGE for an unknown
 * word; the error message then suggests the most similar one. */
enum sptx_status sptx_run_find(struct sptx_run *run, const char *word, uint64_t *row);
/* The argument `table` of the calls below: "target", "context", "sum" (target row plus context row), "normsum" (the sum of both
 * rows, each scaled to unit length first), "propagated" (normsum rows spread over the graph), or NULL: the default for the run's
 * data: target for words and items of lists; context for items whose lists have rows of their own (examples.mode = user); sum
 * for citations and links (examples.mode = adjacency); propagated for nodes of a graph, or normsum if the graph has more than 4
 * million nodes and arcs or its file is gone. `sptx-w2v help nearest` tells more. */
/* Copies the vectors of rows[count] (NULL: the first `count` rows) from a table to out [count x dim], with the values that
 * `sptx-w2v export` writes.
 *
 * If lists have rows of their own, a list is trained only in the target table, and an item only in the context table, unless
 * examples.own is below 1. A row that is trained in one table only has that vector in every table. A vector that was never
 * trained is left out of a sum. Returns SPTX_FAILED for a vector with NaN or infinity, and for a list that has no vector of
 * its own but is the mean of its items (examples.own = 0). These lists are the last rows; sptx_run_vector_rows() returns the
 * number of rows before them.
 */
enum sptx_status sptx_run_vectors(struct sptx_run *run, const char *table, const uint64_t *rows, uint64_t count, float *out);
/* Computes a vector, out [dim], for a word that has no row: the mean of the target rows of its n-grams. Works in runs with
 * examples.subwords and in models of fastText. Returns SPTX_USAGE if the word has no n-grams, or the table no rows for them. */
enum sptx_status sptx_run_unseen(struct sptx_run *run, const char *table, const char *word, float *out);
/* Writes the row number of each bucket of n-grams to rows [buckets]; buckets is the run's model.buckets. The rows are in the target table.
 * UINT32_MAX: no n-gram has used this bucket; its row counts as zeros. Fails for a run without n-grams. */
enum sptx_status sptx_run_buckets(struct sptx_run *run, uint32_t *rows, uint64_t buckets);
/* Returns the number of rows that have a vector: all rows, or all rows but those of lists if examples.own = 0. */
uint64_t sptx_run_vector_rows(const struct sptx_run *run);
/* Returns the number of rows of words or items. Rows of lists have higher numbers. */
uint64_t sptx_run_items(const struct sptx_run *run);
/* Returns the number of relations if the run was trained on triples, otherwise 0. Rows of relations follow the rows of entities, and with
 * triples.reciprocal = yes, as many rows of reciprocals follow. */
uint64_t sptx_run_relations(const struct sptx_run *run);
/* Warns if a row was never trained in a table, so that it still has its first values. In a run of citations or links it fails with SPTX_FAILED
 * instead, since the row may have been trained in the other table. */
enum sptx_status sptx_run_check_trained(struct sptx_run *run, const char *table, uint64_t row);
/* Fills a view of the stored weights of table "target" or "context". If lists have rows of their own and items are not targets, the target table
 * has only the rows of lists (from view->first), and the context table only the rows before them. */
enum sptx_status sptx_run_view(struct sptx_run *run, const char *table, struct sptx_view *view);
struct sptx_nearest_options {
    uint64_t size;            /* sizeof (struct sptx_nearest_options) */
    const char *table;        /* the table that is searched; NULL: the default */
    const char *metric;       /* "cosine" or "dot" (the dot product); NULL: cosine */
    const uint32_t *excluded; /* [count] excluded[i]: a row that must not be among the answers to query i, as a rule its own;
                               * NULL: no row is excluded */
    uint64_t lists;           /* 1: rows of lists are searched, too; 0: only rows of words or items */
};
#define SPTX_NEAREST_OPTIONS {sizeof(struct sptx_nearest_options), 0, 0, 0, 0}
/* Finds, for each of `count` queries [count x dim], the k most similar rows. rows: [count x k], the most similar first, UINT32_MAX in places past
 * the last answer; scores: [count x k]. options: NULL for the defaults. Warns if words are compared with documents, or items with lists, whose
 * cosines training does not fit. A query is of the kind of its excluded row; without one, vectors may be those of documents or lists. */
enum sptx_status sptx_run_nearest(struct sptx_run *run, const float *queries, uint64_t count,
                                  const struct sptx_nearest_options *options, uint32_t k, uint32_t *rows, float *scores);
/* Answers "asked[0] is to asked[1] as asked[2] is to ?", as `sptx-w2v analogy` does: finds the k words or items nearest by
 * cosine to asked[1] - asked[0] + asked[2], with all rows scaled to unit length. The three rows asked are never answers. rows,
 * scores: [k], as in sptx_run_nearest(). */
enum sptx_status sptx_run_analogy(struct sptx_run *run, const char *table, const uint64_t asked[3], uint32_t k, uint32_t *rows,
                                  float *scores);
/* Lets a run of lists answer with new items, and for new lists, by what files say about them (`sptx-w2v help keys`: corpus.item_features,
 * list_features). items, lists: paths of the files; NULL: the run's own, if its config.ini names one. words: columns of the files whose words are
 * features, separated by commas; NULL: the run's own. share: which share of the first places new items take, 0 to 1; below 0: the default.
 * Where items that are left out are found better by it, what items have in common with a list's items counts in the scores of sptx_run_recommend().
 *
 * added[0]: number of new items, which are rows sptx_run_rows() .. sptx_run_rows() + added[0] - 1 of sptx_run_word(), sptx_run_find() and
 * sptx_run_recommend(). added[1]: number of new lists, which sptx_recommend_options.names may name. sptx_run_unseen() has the vectors of new items and
 * of features, such as "genre:noir". Replaces what an earlier call has added; after a failure that stays. */
enum sptx_status sptx_run_add_features(struct sptx_run *run, const char *items, const char *lists, const char *words, double share,
                                       uint64_t added[2]);

struct sptx_recommend_options {
    uint64_t size;                  /* sizeof (struct sptx_recommend_options) */
    const char *score;              /* how a list chooses items: "target", "context", "context-cosine", "normsum", "sum",
                                       "context-context" or another score of `sptx-w2v help recommend`; NULL: the run's default */
    const char *const *names;       /* [count] names[i]: name of a list in training: list i then uses the row of that list, and its training items
                                     * are added to its given items; NULL: list i has only its given items. names = NULL: no list has a name */
    const uint64_t *candidates;     /* [candidate_count] rows: no other rows are recommended; NULL: `among` decides */
    uint64_t candidate_count;
    uint64_t among;                 /* only the most frequent rows, `among` of them, are recommended; 0: all */
    uint64_t seen;                  /* 1: items that a list already contains may be recommended for it */
    uint64_t only_new;              /* 1: only new items (sptx_run_add_features()) are recommended, if neither candidates nor among is set */
};
#define SPTX_RECOMMEND_OPTIONS {sizeof(struct sptx_recommend_options), 0, 0, 0, 0, 0, 0, 0}
/* Finds the k items that suit each of `count` lists best. List i contains the rows items[starts[i]] .. items[starts[i + 1] - 1];
 * starts is [count + 1] and never decreases; items past the run's rows and its new items are skipped. rows, scores: as in sptx_run_nearest(); a
 * list without any row of the run gets no answer. options: NULL for the defaults. Returns SPTX_USAGE if options->score or a name
 * in options->names is unknown. */
enum sptx_status sptx_run_recommend(struct sptx_run *run, const uint64_t *starts, const uint64_t *items, uint64_t count,
                                    const struct sptx_recommend_options *options, uint32_t k, uint32_t *rows, float *scores);

struct sptx_infer_options {
    uint64_t size;     /* sizeof (struct sptx_infer_options) */
    uint64_t epochs;   /* passes over each document; 0: as many as in the run's training */
    double lr, min_lr; /* learning rates of the first and the last step; lr = 0: the rates of the run */
};
#define SPTX_INFER_OPTIONS {sizeof(struct sptx_infer_options), 0, 0, 0}
/* Computes rows, out [count x dim], for new documents, in a run of documents (corpus.format = documents). Document i has the words (row numbers)
 * words[starts[i]] .. words[starts[i + 1] - 1], in order; starts is [count + 1] and never decreases. Rows that are not words are skipped; a
 * document without words gets zeros. Equal words always give equal rows. In a run whose lists have rows (examples.mode = user), the words are the
 * items of new lists, and the rows are those by which sptx_run_recommend() scores such lists; epochs and lr are then 0. */
enum sptx_status sptx_run_infer(struct sptx_run *run, const uint64_t *starts, const uint64_t *words, uint64_t count,
                                const struct sptx_infer_options *options, float *out);

/* ---- judging a run: the results of `sptx-w2v evaluate`, whose help describes the files ---- */

/* Data by which a run is judged: a file (corpus is NULL) or a corpus filled by calls (path is NULL). The caller still owns the corpus, and can
 * train on it. */
struct sptx_data {
    const char *path;
    struct sptx_corpus *corpus;
};

/* One number of what was found. */
struct sptx_number {
    const char *part; /* what part of the answer the number is of: a score of links ("dot", "cosine", "hadamard", "cross", "cross-cosine"), a
                       * column of groups or a share of labels ("1", "2" ..). "": the whole answer */
    const char *name; /* "rho" */
    double value;     /* NaN: nothing could be measured */
    uint64_t count;   /* number of questions over which `value` was measured; 0: `value` is itself a count */
    const char *text; /* the text that `sptx-w2v evaluate` prints for the number, with # in place of the number; a line feed in it begins a new
                       * line. "": the number is not printed */
};

struct sptx_evaluate_options {
    uint64_t size;                 /* sizeof (struct sptx_evaluate_options) */
    const struct sptx_data *known; /* held_out: the training items of the lists; edges: the links of training, or NULL; triples: more triples that
                                    * are known to be true, or NULL; labelled: the file by which thresholds are chosen */
    const char *table;    /* the table that is judged; NULL: the default */
    const char *score;    /* held_out: as sptx_recommend_options.score; NULL: the default, or if `table` is set, the score that compares rows of
                           * that table */
    const char *format;   /* held_out: the corpus.format of files: lists, pairs or adjacency; NULL: guessed from each file */
    uint64_t k;           /* held_out, groups: number of answers, from the first place on, that are compared with the right ones */
    uint64_t directed;    /* edges: 1: ranks only the second node of each link; 0: ranks both, or only the second if the run's graph is directed */
    uint64_t first;       /* analogies: only this many of the most frequent words are considered; 0: all words */
    uint64_t met, sample; /* groups: asks about rows that the corpus contains at least `met` times, at most `sample` of them (0: 2000). triples:
                           * `sample` is the number of entities to rank among; 0: all, or 10,000 if there are more than a million */
    const double *shares; /* labels: [share_count] shares of the labelled nodes to train the classifier on, between 0 and 1; NULL: 0.5 */
    uint64_t share_count;
};
#define SPTX_EVALUATE_OPTIONS {sizeof(struct sptx_evaluate_options), 0, 0, 0, 0, 20, 0, 30000, 5, 0, 0, 0}
/* Judges a run by a measure:
 *
 *   measure     data                                         numbers
 *   pairs       words and scores                             rho; covered, total
 *   analogies   questions of four words                      accuracy, semantic, syntactic; covered, total
 *   held_out    lists of items that training left out        recall, ndcg, hit (at k); lists, unknown, held_out, trained, cold, without_row
 *   groups      words and their groups                       part "1" .. of each column: share, chance; asked, rows
 *   labels      nodes and their labels                       part "1" .. of each share: share, micro, micro_spread, macro, macro_spread;
 *                                                            labels, covered, total
 *   edges       links                                        part of each score: auc, mrr, hits (at 10). Of all: links, asked, nodes,
 *                                                            unknown, among, all, left_out, trained
 *   triples     triples                                      mrr, hits1, hits3, hits10, mrr_tails, mrr_heads; triples, asked, unknown,
 *                                                            trained, among, entities, filtered_trained; mrr_known, hits1_known ..;
 *                                                            mrr_popular, mrr_random (two rankings without a model)
 *   labelled    triples with labels                          accuracy, f1; labelled, true, unknown, thresholds (of so many relations, of
 *                                                            their own), relations; accuracy_known, f1_known
 *
 * covered, lists, asked, links, triples: numbers of pairs, questions, lists, rows, ends that were judged. unknown: of items, nodes or
 * triples that the run does not know. trained: held-out items that `known` has, and links that the run was trained on, are left out: if
 * they are most, the call returns SPTX_FAILED. Held-out items that the run itself was trained on, and triples, are judged. In either
 * case it calls warning() of the context. cold: lists without a line in `known`;
 * without_row: lists without a row in the run. among: number of nodes or entities that an answer is ranked among. all: ends that were
 * ranked among all nodes. filtered_trained: 1: known answers include the training triples; 0: their file is gone. Triples with an
 * unknown name are misses, but not in mrr_known and hits.._known.
 *
 * data, options->known: a file, or a corpus: of lists, pairs or adjacency (held_out), pairs of a node and a label (labels), graph
 * (edges), triples (triples). Pairs, analogies, groups and labelled are files. *numbers: [*count], valid until the run's next call of this
 * function, or until it is closed. options: NULL for the defaults. */
enum sptx_status sptx_run_evaluate(struct sptx_run *run, const char *measure, const struct sptx_data *data,
                                   const struct sptx_evaluate_options *options, const struct sptx_number **numbers, uint64_t *count);

/* ---- triples: which tails a head has ---- */

struct sptx_answers_options {
    uint64_t size;  /* sizeof (struct sptx_answers_options) */
    uint64_t heads; /* 0: entities[i] are heads, and tails are wanted; 1: they are tails, and heads are wanted */
    uint64_t seen;  /* 1: answers may be triples of the training data; 0: these are left out */
};
#define SPTX_ANSWERS_OPTIONS {sizeof(struct sptx_answers_options), 0, 0}
/* Finds, in a run of triples, the k best tails for each head entities[i] and relation relations[i], or the k best heads for a tail, as `sptx-w2v
 * recommend --relation` does. entities, relations: [count] row numbers; a relation's row is that of the word "relation:NAME". rows, scores: [count
 * x k], as in sptx_run_nearest(). options: NULL for the defaults. */
enum sptx_status sptx_run_answers(struct sptx_run *run, const uint64_t *entities, const uint64_t *relations, uint64_t count,
                                  const struct sptx_answers_options *options, uint32_t k, uint32_t *rows, float *scores);

struct sptx_scored {
    double score;       /* of the tail as sptx_run_answers() gives it or, with reciprocals, the mean of this and of the head's; NaN: the run does not
                         * know one of the three names */
    double probability; /* that the triple is true; NaN: options->validation is NULL, or the score is NaN */
};
struct sptx_score_options {
    uint64_t size;                      /* sizeof (struct sptx_score_options) */
    const struct sptx_data *validation; /* true triples that the run was not trained on, by which probabilities are fitted; a file may have a fourth
                                         * column with labels. NULL: none are */
};
#define SPTX_SCORE_OPTIONS {sizeof(struct sptx_score_options), 0}
/* Scores triples, a file or a corpus, in a run of triples, as `sptx-w2v score` does; its help says how probabilities are fitted. *scored: [*count],
 * in the order of the triples, valid until the run's next call of this function, or until it is closed. options: NULL for the defaults. Returns
 * SPTX_FAILED if the run knows none of the validation triples. */
enum sptx_status sptx_run_score(struct sptx_run *run, const struct sptx_data *triples, const struct sptx_score_options *options,
                                const struct sptx_scored **scored, uint64_t *count);

/* ---- a run for others ---- */

struct sptx_export_options {
    uint64_t size;     /* sizeof (struct sptx_export_options) */
    const char *table; /* NULL: the default */
    const char *type;  /* number type: "f32", "bf16", "f16", "int8", "uint8" or "binary"; NULL: the format's first one */
    uint64_t lists;    /* 1: rows of lists are written, too */
    uint32_t columns;  /* number of columns that rows are reduced to, as with --columns; 0: rows keep their columns */
    uint32_t reserved; /* 0 */
    double *recall;    /* out [2], measured on the file's rows: the share of the true ten nearest rows that they find; and the share that they find
                        * among 100 rows, which are then ordered by their float32 vectors. NULL: not measured */
};
#define SPTX_EXPORT_OPTIONS {sizeof(struct sptx_export_options), 0, 0, 0, 0, 0, 0}
/* Writes vectors to a file, as `sptx-w2v export` does; its help explains the options. format: "word2vec-bin", "word2vec-text" or another format of
 * that help. An old file at the path is replaced only when the new file is complete. options: NULL for the defaults. */
enum sptx_status sptx_run_export(struct sptx_run *run, const char *format, const char *path, const struct sptx_export_options *options);

struct sptx_report_options {
    uint64_t size;                  /* sizeof (struct sptx_report_options) */
    const char *run;                /* path of the run in commands that the page shows; NULL: the run's directory */
    const char *table;              /* NULL: the default for the run's data */
    const char *titles;             /* path of a file of lines "id TAB title"; NULL: none */
    const char *const *evaluations; /* [evaluation_count] paths of files with the output of `sptx-w2v evaluate` */
    uint64_t evaluation_count;
    uint64_t top;    /* number of rows on the map; they are the most frequent rows */
    uint64_t listed; /* number of rows for which the page lists their nearest rows */
    uint64_t lists;  /* 1: rows of lists are shown, too */
    const char *labels; /* path of a file with one label a line, for rows; the map's colours show labels; NULL: they show clusters */
    const char *colour; /* column of a file of features, such as "genre", whose first value of each item is its label; NULL: none. Not with labels */
    const char *features, *words; /* path of that file, and its columns whose words are features; NULL: the run's own (corpus.item_features) */
};
#define SPTX_REPORT_OPTIONS {sizeof(struct sptx_report_options), 0, 0, 0, 0, 0, 5000, 20000, 0, 0, 0, 0, 0}
/* Writes one page of HTML that shows the run, as `sptx-w2v report` does. options: NULL for the defaults. */
enum sptx_status sptx_run_report(struct sptx_run *run, const char *path, const struct sptx_report_options *options);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
