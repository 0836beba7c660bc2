/* sptx: rows of huge tables for anyone's model. This header is the manual of libsptx.
 *
 * A table holds float32 rows with the state of their optimizer beside them. It may be larger than a GPU's memory: rows lie
 * in host memory that a GPU reaches and visit the GPU only for the calls that name them. Four verbs:
 *
 *     fetch      ids -> the rows' values          a forward pass reads them
 *     update     ids, gradients -> new rows       one optimizer step for each distinct row
 *     store      ids, values -> the rows          overwritten, the optimizer's state stays
 *     prefetch   ids that a later fetch will ask for: their rows start moving now
 *
 * A model of two tables, one step (any language's floats will do for the gradients):
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
 * Status. Every call that can fail returns an enum sptx_status; sptx_error(context) is the sentence that says what was
 * seen and what was wanted. A call that fails because it was called wrongly (SPTX_USAGE) has changed nothing.
 *
 * Output. The library prints nothing, ends no process, installs no signal handler and keeps no state outside its handles.
 *
 * Floating point. Calls compute in the default mode (rounded to nearest, denormal numbers kept, no traps), whatever mode the
 * calling thread has set, so that results depend neither on it nor on the number of threads. Its own mode is back when a call
 * returns; callbacks run in the default one.
 *
 * Threads. A context with its tables and runs is used by one thread at a time; different contexts by different threads at
 * once. After fork() only the parent goes on using its handles; the child opens its own, before it touches CUDA. Rows that a GPU
 * reaches are not in the child's memory: one that looks at a view of them is ended by SIGSEGV.
 *
 * Sizes. Arrays lie at a multiple of their elements' size; a call names at most 4,294,967,295 ids, queries or lists.
 * Counts and bytes are 64-bit. Rows are numbered from 0; a table has at most 4,294,967,294 of them.
 *
 * Growth. Structs of options begin with their size: a program built against an older header goes on working.
 */
#ifndef SPTX_H
#define SPTX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* only what this header declares is exported */

#define SPTX_VERSION "1.0.0"

/* Returns the library's version, "MAJOR.MINOR.PATCH". A library whose MAJOR is this header's can be used with it. */
const char *sptx_version(void);

enum sptx_status {
    SPTX_OK = 0,
    SPTX_FAILED = 1,  /* a failure outside of the call: memory, a disk, a GPU, a file's contents */
    SPTX_USAGE = 2,   /* the call itself was wrong: an id past the rows, an unknown name, a NULL handle */
    SPTX_STOPPED = 3, /* sptx_train: the callback or sptx_stop() asked for it; where training had begun, a checkpoint is written */
};

/* The memory that a caller passes. The numbers are DLPack's device types. */
enum sptx_memory {
    SPTX_HOST = 1, /* any host memory */
    SPTX_CUDA = 2, /* the context's GPU, or host memory that it can address */
};

struct sptx_context;
struct sptx_table;
struct sptx_run;

/* ---- limits ---- */

#define SPTX_ROWS_MOST    4294967294u /* of a table */
#define SPTX_COLUMNS_MOST 4096        /* of a row */
#define SPTX_THREADS_MOST 4096        /* of a context */

/* ---- a context: the machine ---- */

struct sptx_context_options {
    uint64_t size;       /* sizeof (struct sptx_context_options) */
    const char *device;  /* "auto": the first GPU where there is one, otherwise the CPU; "cpu"; "cuda"; "cuda:1" */
    uint32_t threads;    /* of the host, up to SPTX_THREADS_MOST; 0: all cores that the process may use */
    uint32_t reserved;   /* 0 */
    uint64_t gpu_budget; /* bytes of the GPU that may be taken; 0: all free ones less a reserve */
    void (*warning)(void *user, const char *text); /* or NULL: warnings are dropped. It runs in the calling thread */
    void *user;
};
#define SPTX_CONTEXT_OPTIONS {sizeof(struct sptx_context_options), "auto", 0, 0, 0, 0, 0}

/* Opens a context. *context is set even where opening fails, so that sptx_error() can say why; close it in either case.
 * It is NULL only where there is no memory for it. */
enum sptx_status sptx_open(struct sptx_context **context, const struct sptx_context_options *options);

/* Closes a context, with the tables and runs that are still open in it, after waiting for all that runs. Harmless on
 * NULL. */
void sptx_close(struct sptx_context *context);

/* Returns the sentence of the last call in this context that failed, "" where none did. Valid until the next call in
 * it. */
const char *sptx_error(const struct sptx_context *context);

/* Returns the device of the context, "cpu" or "cuda:0"; valid as long as the context is open. */
const char *sptx_device(const struct sptx_context *context);

/* Waits for all that was asked of the context's tables. Fails where ids in the GPU's memory were past a table's rows:
 * only the GPU checks those, and it leaves out what such ids named. */
enum sptx_status sptx_wait(struct sptx_context *context);

/* ---- a table ---- */

enum sptx_place {
    SPTX_PINNED = 0, /* host memory that the GPU reaches; plain memory without one. It is CUDA's managed memory, told to stay on
                        the host: the GPU finds random rows there up to three times as fast as in memory that is pinned in
                        CUDA's narrow sense. Where a system cannot do that (WSL), or the environment has SPTX_PIN_ROWS=1 when
                        the context is opened, it is pinned instead */
    SPTX_GPU = 1,    /* the GPU's own memory; plain memory where there is no GPU */
    SPTX_FILE = 2,   /* a mapped working file, removed when the table is closed */
};

/* Rules, their options' names and defaults are PyTorch's (torch.optim). Options that a rule does not read are ignored; NaN means
 * the rule's default. The two rules without weight_decay (sparse_adam, rprop) refuse it. After a change of lr two rules differ
 * from PyTorch's: asgd uses the new rate at once, PyTorch's one update later; rprop's step sizes begin with the lr that the
 * table is opened with. */
/* How a table keeps numbers. Arithmetic is float32. A bfloat16 is the upper half of a float32; what an update or a store writes
 * is rounded up or down at random, with the chances that make the mean right. The draws are of the seed, the row and the calls
 * before, so that the same calls give the same bytes. */
enum sptx_dtype { SPTX_FLOAT32 = 0, SPTX_BFLOAT16 = 1, SPTX_AS_WEIGHTS = 2 };

struct sptx_table_options {
    uint64_t size;          /* sizeof (struct sptx_table_options) */
    uint64_t rows;          /* 1 .. SPTX_ROWS_MOST */
    uint32_t dim;           /* columns, 1 .. SPTX_COLUMNS_MOST */
    uint32_t weights;       /* enum sptx_place, of the values */
    uint32_t state;         /* enum sptx_place, of the optimizer's state */
    uint32_t seed;          /* of the first values */
    uint64_t hot_rows;      /* number of first rows that are kept on the GPU if the others are pinned or in a file */
    const char *optimizer;  /* sgd adagrad adadelta rmsprop adam adamw sparse_adam adamax asgd rprop; "none": no update */
    const char *init;       /* first values: "zeros", "uniform LO HI", "normal MEAN SD", "word2vec" (uniform +-0.5/dim) */
    const char *directory;  /* the directory for working files; NULL: the current one */
    double lr, momentum, weight_decay, lr_decay, initial_accumulator, eps, rho, alpha, beta1, beta2, lambd, t0;
    double eta_minus, eta_plus, step_min, step_max;
    double clip;            /* longest gradient of a row that comes more than once in an update; 0: no bound */
    uint32_t nesterov, centered, amsgrad; /* 0 or 1 */
    uint32_t count_rows;    /* 1: bias corrections count a row's own updates; 0: the table's, as PyTorch does */
    uint32_t dtype;         /* enum sptx_dtype of the stored weights; values that calls read and write are float32 */
    uint32_t state_dtype;   /* the same of the optimizer's state; SPTX_AS_WEIGHTS by default */
};
/* Sets every field to its default (rows and dim to 0: these are yours to set). size: sizeof *options. */
void sptx_table_defaults(struct sptx_table_options *options, uint64_t size);

/* Lists the names that `optimizer` can have, and the names of the fields above that an optimizer reads beside lr and
 * clip. `index` counts from 0; NULL comes after the last name. Any thread may call these. */
const char *sptx_optimizer(uint32_t index);
const char *sptx_optimizer_option(const char *optimizer, uint32_t index);

/* Opens a table with its first values; the same options and seed give the same values everywhere. */
enum sptx_status sptx_table_open(struct sptx_context *context, const struct sptx_table_options *options,
                                 struct sptx_table **table);
void sptx_table_close(struct sptx_table *table); /* harmless on NULL */

uint64_t sptx_table_rows(const struct sptx_table *table);
uint32_t sptx_table_dim(const struct sptx_table *table);

/* The learning rate of the updates from now on, to read and to set, for schedules. */
double sptx_table_lr(const struct sptx_table *table);
enum sptx_status sptx_table_set_lr(struct sptx_table *table, double lr);

/* The number of sptx_update() calls so far, which bias corrections count with count_rows = 0. Set it after loading, to
 * go on (up to 2^63 - 1). */
uint64_t sptx_table_steps(const struct sptx_table *table);
enum sptx_status sptx_table_set_steps(struct sptx_table *table, uint64_t steps);

/* Saves to and loads from a NumPy file of a structured type, like that of a checkpoint: weights, the rule's slots by
 * PyTorch's names, and the rows' update counts. A file is saved whole or not at all. Loading demands the table's own
 * rows, columns and slots. */
enum sptx_status sptx_table_save(struct sptx_table *table, const char *path);
enum sptx_status sptx_table_load(struct sptx_table *table, const char *path);

/* ---- rows ----
 *
 * `stream` is a cudaStream_t (NULL: the default stream). The call takes its place in that stream's order, as if it were a kernel
 * launched on it, and returns before it is done where everything it was given lies in the GPU's memory. Memory of the host may be
 * used again as soon as the call returns. Without a GPU `stream` is ignored and every call is done when it returns. Ids and values
 * must lie outside of the table's own memory (sptx_table_view), and nobody may change them during a call.
 */
struct sptx_ids {
    const void *data; /* [count] int32 or int64 */
    uint64_t count;
    uint32_t bits;    /* 32 or 64 */
    uint32_t memory;  /* enum sptx_memory */
};

/* Fetches out[i] = row ids[i], [count x dim]. Ids may come in any order and repeat. */
enum sptx_status sptx_fetch(struct sptx_table *table, const struct sptx_ids *ids, float *out, enum sptx_memory memory,
                            void *stream);

/* Announces a fetch of the same ids in the same order: their rows begin to move now. If a row is updated or stored before that
 * fetch, the fetch gives its new value. Two announced lists are kept; a third replaces the oldest. A list that is announced and
 * never fetched costs time and changes nothing. */
enum sptx_status sptx_prefetch(struct sptx_table *table, const struct sptx_ids *ids, void *stream);

/* Updates rows by gradients [count x dim]. The gradients of one row are summed in the order of the ids; then each
 * distinct row gets one update by the table's rule. The result is the same to the bit whatever the thread count and the
 * place. */
enum sptx_status sptx_update(struct sptx_table *table, const struct sptx_ids *ids, const float *gradients,
                             enum sptx_memory memory, void *stream);

/* Stores row ids[i] = values[i], [count x dim]. If an id repeats, its last values are stored. A bfloat16 table keeps values that
 * bfloat16 can hold unchanged. */
enum sptx_status sptx_store(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                            enum sptx_memory memory, void *stream);

/* ---- the rows as memory ---- */

/* A part of the table's own memory: the rows on the host of the weights, or of one slot of the state, without a copy.
 * Row r >= first is at data + (r - first) * stride bytes. Valid until the table is closed. Changes show at once, after
 * the calls were waited for (sptx_wait). */
struct sptx_view {
    uint64_t size;   /* sizeof (struct sptx_view), set by the caller */
    float *data;     /* NULL if no row is on the host; points to bfloat16 if dtype says so */
    uint64_t first;  /* rows below this number are hot: they are on the GPU. A run's table has no hot rows */
    uint64_t rows;   /* rows of the view */
    uint64_t stride; /* bytes between two rows */
    uint32_t dim;
    uint32_t cuda;   /* 1: the GPU reaches `data` at the same address */
    uint32_t dtype;  /* SPTX_FLOAT32 or SPTX_BFLOAT16 */
    uint32_t reserved;
};
/* Fills a view of a field: "weights", or a slot by PyTorch's name ("exp_avg"). */
enum sptx_status sptx_table_view(struct sptx_table *table, const char *field, struct sptx_view *view);

/* Names the fields of the table's records: "weights", then its slots. Returns NULL past the last. */
const char *sptx_table_field(const struct sptx_table *table, uint32_t index);

/* ---- training and finished runs ---- */

struct sptx_progress {
    uint64_t size; /* sizeof (struct sptx_progress) of the library */
    uint64_t step, epoch;
    double done;                              /* the share of the run, 0..1 */
    double loss, lr;                          /* loss: of an example, since the last report */
    double words_per_second, pairs_per_second; /* 0 where they have no meaning */
    double seconds;                           /* seconds of training so far, earlier parts of the run included */
    const char *line;                         /* all of this as `sptx-w2v train` shows it; valid during the call */
};
/* Returns 0 to go on; another value writes a checkpoint and stops. */
typedef int sptx_progress_fn(void *user, const struct sptx_progress *progress);

/* These say what becomes of a run that is at run.dir already. */
enum sptx_beginning {
    SPTX_ANEW = 0,      /* training is refused */
    SPTX_RESUME = 1,    /* training goes on from its newest checkpoint */
    SPTX_OVERWRITE = 2, /* the new run takes its place as soon as it has a checkpoint of its own */
};

/* Trains, as `sptx-w2v train` does. config: an INI file, or NULL; settings: `count` texts "section.key=value", which
 * override the file. beginning: enum sptx_beginning. Returns SPTX_STOPPED where the callback stopped it. */
enum sptx_status sptx_train(struct sptx_context *context, const char *config, const char *const *settings,
                            uint64_t count, int beginning, sptx_progress_fn *progress, void *user);

/* Returns the directory of the run that this context has trained last, "" where none was. Valid until the next call in
 * the context. */
const char *sptx_trained(const struct sptx_context *context);

/* Asks the sptx_train() that runs in the context to end as soon as it can: it writes a checkpoint, where training has
 * begun, and returns SPTX_STOPPED. Where none runs, the next one stops at once. Any thread may call it, and so may a
 * signal's handler, while the context is open. Harmless on NULL. */
void sptx_stop(struct sptx_context *context);

/* ---- training on data that the program has ----
 *
 * A corpus under construction takes blocks of tokens, of integers, or of numbers of a dictionary, and trains on them as
 * on a file that holds the same: the same vocabulary, the same bytes of vectors. Data may come only once and need not
 * fit memory as text: each different word is kept, and 4 bytes for each token (8 for a pair or an edge).
 *
 *     const char *settings[] = {"corpus.format=text", "run.dir=runs/my"};
 *     struct sptx_corpus *corpus;
 *     if (sptx_corpus_open(context, NULL, settings, 2, &corpus)) die(sptx_error(context));
 *     while (more()) // a block: "the cat sat", as bytes and where tokens begin and end
 *         sptx_corpus_sentences(corpus, &tokens, starts, sentences, NULL);
 *     sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL);
 *     sptx_corpus_close(corpus);
 */
struct sptx_corpus;

enum sptx_token_kind {
    SPTX_TEXT = 0,    /* bytes: token i is data[offsets[i] .. offsets[i + 1]), blanks included; an empty token is refused */
    SPTX_NUMBERS = 1, /* integers from 0, each a word of decimal digits */
    SPTX_KNOWN = 2,   /* integers that number the words given to sptx_corpus_words(), from 0 */
};
struct sptx_tokens {
    uint32_t kind;       /* enum sptx_token_kind */
    uint32_t bits;       /* of an integer, or of an offset: 32 or 64 */
    const void *data;    /* bytes, or integers [count] */
    const void *offsets; /* [count + 1] of text; NULL otherwise */
    uint64_t count;
};

/* Opens a corpus for a run of these settings (as for sptx_train; corpus.path stays empty). The settings are checked before data
 * is read. corpus.format selects the calls: text, lists and adjacency are given as sentences, pairs as pairs, a graph as edges.
 * Nothing is written before sptx_corpus_train(). */
enum sptx_status sptx_corpus_open(struct sptx_context *context, const char *config, const char *const *settings,
                                  uint64_t count, struct sptx_corpus **corpus);
void sptx_corpus_close(struct sptx_corpus *corpus); /* harmless on NULL; before its context is closed */

/* Appends words to the dictionary: words of items (lists = 0), or names of lists (1). Only words that sentences, pairs or edges
 * then use are counted. */
enum sptx_status sptx_corpus_words(struct sptx_corpus *corpus, uint32_t lists, const struct sptx_tokens *words);

/* Takes `count` sentences, or lists, or targets with their contexts behind them: number i is the tokens from starts[i]
 * up to starts[i + 1] (starts: [count + 1]). names: the names of lists, [count]; NULL: they are called 0, 1, 2.. */
enum sptx_status sptx_corpus_sentences(struct sptx_corpus *corpus, const struct sptx_tokens *tokens,
                                       const uint64_t *starts, uint64_t count, const struct sptx_tokens *names);

/* Returns the meaning of a column of this name in a table of pairs: 0 the list ("user_id"), 1 the item ("movieId"), 2 the
 * rating; -1: none of these. Any thread may call. */
int sptx_column(const char *name);
/* Returns the same in a table of a graph's edges: 0 the node that an edge leaves ("source"), 1 the one that it leads to ("dst"), 2
 * the weight; -1: none of these. Any thread may call. */
int sptx_edge_column(const char *name);

/* Takes pairs: lists[i] has items[i], rated ratings[i] (NULL, or NaN: not rated). corpus.min_rating leaves lower ones out;
 * corpus.weights weighs pairs by their ratings. Where either is set, a pair that is not rated is refused. */
enum sptx_status sptx_corpus_pairs(struct sptx_corpus *corpus, const struct sptx_tokens *lists,
                                   const struct sptx_tokens *items, const double *ratings);

/* Takes edges of a graph: from[i] to to[i], with the weight weights[i]; weights [count], or NULL in every call: edges have no
 * weights. Edges from a node to itself and edges of weight 0 are left out; graph.directed and graph.weights work as for a file. */
enum sptx_status sptx_corpus_edges(struct sptx_corpus *corpus, const struct sptx_tokens *from, const struct sptx_tokens *to,
                                   const double *weights);

/* Trains once on the data that the corpus was given, as sptx_train() does. A call that returns SPTX_USAGE does not count: it leaves
 * the corpus as it was. Fails if an earlier call that gives data has failed halfway. */
enum sptx_status sptx_corpus_train(struct sptx_corpus *corpus, enum sptx_beginning beginning,
                                   sptx_progress_fn *progress, void *user);

/* ---- finding keys ---- */

struct sptx_tune_options {
    uint64_t size;     /* sizeof (struct sptx_tune_options) */
    double minutes;    /* how long it may take; 0: until the trials are done */
    uint64_t trials;   /* how many begin; 0: as many as there is time for */
    const char *out;   /* a file that gets the best keys as an INI; NULL: none */
    const char *const *pairs, *const *analogies; /* files that words are judged by; NULL: the held-out loss judges */
    uint64_t pair_count, analogy_count;
};
#define SPTX_TUNE_OPTIONS {sizeof(struct sptx_tune_options), 5, 0, 0, 0, 0, 0, 0}

struct sptx_tuned {
    uint64_t trials, epochs; /* epochs: of the best trial */
    double score, own;       /* the best trial's; that of the keys as they were, NaN where there was no time for it */
    const char *measure;     /* "recall@20"; this and the next are valid until the next call in the context */
    const char *keys;        /* the best trial's, but for its epochs: "model.dim=256 optimizer.lr=0.001", or none of this form */
};

/* Finds keys, as `sptx-w2v tune` does: trains on most of the data and judges by the rest. config, settings: as for sptx_train();
 * keys that they set are kept. It writes its results to a directory named run.dir with ".tune" appended. progress (or NULL) is
 * called after each training: step is the trial, epoch its epochs, loss its score (NaN: it failed), line a line of the program's
 * table. If it, or sptx_stop(), ends the search, the best trial so far is the answer. */
enum sptx_status sptx_tune(struct sptx_context *context, const char *config, const char *const *settings, uint64_t count,
                           const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user,
                           struct sptx_tuned *tuned);
/* Does the same on the data of a corpus, which can still be trained on. */
enum sptx_status sptx_corpus_tune(struct sptx_corpus *corpus, const struct sptx_tune_options *options, sptx_progress_fn *progress,
                                  void *user, struct sptx_tuned *tuned);

/* ---- words of text, numbered ----
 *
 * A dictionary gives each different word of text a number, by first appearance from 0, for programs that count words or choose
 * among them before they give a corpus its sentences (as SPTX_NUMBERS). Calls on one dictionary come one after the other. */
struct sptx_words;

enum sptx_status sptx_words_open(struct sptx_context *context, struct sptx_words **words);
void sptx_words_close(struct sptx_words *words); /* harmless on NULL; before its context is closed */

/* Numbers the words of text [bytes]: blanks part them, line feeds end sentences, and the end of the text ends the last. grow: 1: a
 * new word gets the next number; 0: its number is -1. numbers: [bytes / 2 + 1], filled as far as there are words. starts: [line
 * feeds of the text + 2], filled with where each sentence begins and the last one ends. A call that fails may have added words. */
enum sptx_status sptx_words_number(struct sptx_words *words, uint32_t grow, const char *text, uint64_t bytes, int32_t *numbers,
                                   uint64_t *starts, uint64_t *sentences);
/* Shows the words from number `first` on as text, each followed by one NUL that its offsets count; valid until the next call. */
enum sptx_status sptx_words_from(struct sptx_words *words, uint64_t first, struct sptx_tokens *tokens);

/* ---- finished runs ---- */

/* Opens a finished run, or one checkpoint of it, for reading; its files are mapped. */
enum sptx_status sptx_run_open(struct sptx_context *context, const char *path, struct sptx_run **run);
void sptx_run_close(struct sptx_run *run); /* harmless on NULL */
uint64_t sptx_run_rows(const struct sptx_run *run);
uint32_t sptx_run_dim(const struct sptx_run *run);
/* Returns the word of a row, NUL-terminated; NULL past the rows. It may hold other NULs: *length gets its bytes; length
 * may be NULL. */
const char *sptx_run_word(const struct sptx_run *run, uint64_t row, uint64_t *length);
uint64_t sptx_run_count(const struct sptx_run *run, uint64_t row); /* returns how often the corpus has it; 0 past the rows */
/* Finds the row of a word. SPTX_USAGE for an unknown word, with the nearest word in the sentence. */
enum sptx_status sptx_run_find(struct sptx_run *run, const char *word, uint64_t *row);
/* A table is "target", "context", "sum", "normsum" (each of unit length first) or "propagated" (of a graph: normsum, spread over
 * it), or NULL: the default, which depends on what the run was trained on. It is target for words and items of lists; context for
 * items whose lists have rows of their own (examples.mode = user); sum for citations and links (examples.mode = adjacency);
 * propagated for nodes of a graph, or normsum if the graph has more than 4 million nodes and arcs or its file is gone.
 * `sptx-w2v help nearest` tells more. */
/* Copies vectors as `sptx-w2v export` writes them: those of rows[count] (NULL: the first `count`) in a table, to out
 * [count x dim].
 *
 * Where lists have rows of their own, a list is trained only as a target, and an item only as a context unless
 * examples.own is below 1: that one vector stands for it in every table. A vector that was never trained adds nothing
 * to a sum. SPTX_FAILED for a vector of NaN or infinity, and for a list that is only the mean of its items
 * (examples.own = 0). Such lists are the last rows; sptx_run_vector_rows() counts the others.
 */
enum sptx_status sptx_run_vectors(struct sptx_run *run, const char *table, const uint64_t *rows, uint64_t count, float *out);
/* Writes the vector of a word that has no row to out [dim]: where words share rows of their n-grams (examples.subwords, and models
 * of fastText), the mean of its n-grams' rows of the target table. SPTX_USAGE where it, or the table, has none. */
enum sptx_status sptx_run_unseen(struct sptx_run *run, const char *table, const char *word, float *out);
uint64_t sptx_run_vector_rows(const struct sptx_run *run);
/* Returns the number of rows that are words or items. The rows of lists follow them. */
uint64_t sptx_run_items(const struct sptx_run *run);
/* Warns of a row that was never trained in a table, and so still has its first values. In a run of citations or links this is
 * SPTX_FAILED instead, since another table can answer. */
enum sptx_status sptx_run_check_trained(struct sptx_run *run, const char *table, uint64_t row);
/* Maps the stored weights of a table, "target" or "context", including rows that were trained only in the other table. If lists
 * have rows of their own and items are not targets, the target table begins with the first list (view->first), and the context
 * table ends before it. */
enum sptx_status sptx_run_view(struct sptx_run *run, const char *table, struct sptx_view *view);
struct sptx_nearest_options {
    uint64_t size;            /* sizeof (struct sptx_nearest_options) */
    const char *table;        /* the table that is searched; NULL: the default */
    const char *metric;       /* "cosine" or "dot" (the dot product); NULL: cosine */
    const uint32_t *excluded; /* [count] for each query a row that its answer leaves out; NULL: none */
    uint64_t lists;           /* 1: the rows of lists are searched, too; 0: only words or items */
};
#define SPTX_NEAREST_OPTIONS {sizeof(struct sptx_nearest_options), 0, 0, 0, 0}
/* Finds the k rows most similar to each of `count` queries [count x dim], best first: rows [count x k] (UINT32_MAX where fewer are
 * left), scores [count x k]. options: NULL for the defaults. */
enum sptx_status sptx_run_nearest(struct sptx_run *run, const float *queries, uint64_t count,
                                  const struct sptx_nearest_options *options, uint32_t k, uint32_t *rows, float *scores);
/* Answers "asked[0] is to asked[1] as asked[2] is to ?", as `sptx-w2v analogy` does: the k words or items nearest by
 * cosine to asked[1] - asked[0] + asked[2] of unit rows. The three are not among them. rows, scores: [k], as in
 * sptx_run_nearest(). */
enum sptx_status sptx_run_analogy(struct sptx_run *run, const char *table, const uint64_t asked[3], uint32_t k,
                                  uint32_t *rows, float *scores);
struct sptx_recommend_options {
    uint64_t size;                  /* sizeof (struct sptx_recommend_options) */
    const char *score;              /* how a list chooses items: "target", "context", "context-cosine", "normsum", "sum",
                                       "context-context" or another score of `sptx-w2v help recommend`; NULL: the run's default */
    const char *const *names;       /* [count] names[i]: list i is this list that the run was trained on: its row answers, and the
                                       items that it was trained with are added to those given; NULL: list i is only the items
                                       given. names = NULL: no list is named */
    const uint64_t *candidates;     /* [candidate_count] only these rows are recommended; NULL: see `among` */
    uint64_t candidate_count;
    uint64_t among;                 /* only the first `among` rows, the most frequent ones, are recommended; 0: all */
    uint64_t seen;                  /* 1: a list's own items may be in its answer */
};
#define SPTX_RECOMMEND_OPTIONS {sizeof(struct sptx_recommend_options), 0, 0, 0, 0, 0, 0}
/* Finds the k items that suit each of `count` lists best. List i has the rows items[starts[i]] up to items[starts[i + 1]] (starts:
 * [count + 1], not falling; numbers past the run's rows are skipped). rows, scores: as in sptx_run_nearest(); a list without a row
 * of the run gets no answer. options: NULL for the defaults. Returns SPTX_USAGE for an unknown name.
 *
 * In a run whose lists have rows (examples.mode = user) the default score, "user" and "user-cosine" fold each list in that is not
 * named: they compute the row that minimizes the run's loss against the fixed rows of the items. That row is the same to the bit
 * whatever other lists are asked with it. */
enum sptx_status sptx_run_recommend(struct sptx_run *run, const uint64_t *starts, const uint64_t *items, uint64_t count,
                                    const struct sptx_recommend_options *options, uint32_t k, uint32_t *rows, float *scores);

/* ---- judging a run: what `sptx-w2v evaluate` prints; its help describes the files ---- */

/* Data that a run is judged by: a file (corpus is NULL) or a corpus filled by calls (path is NULL). The corpus stays the caller's,
 * who can still train on it. */
struct sptx_data {
    const char *path;
    struct sptx_corpus *corpus;
};

struct sptx_pairs_score {
    double rho;              /* Spearman's, of cosines against the file's scores */
    uint64_t covered, total; /* pairs whose two words the run has; pairs of the file */
};
enum sptx_status sptx_run_evaluate_pairs(struct sptx_run *run, const char *table, const char *path,
                                         struct sptx_pairs_score *score);

struct sptx_analogies_score {
    double accuracy, semantic, syntactic; /* the last two: NaN where the file has no such part */
    uint64_t covered, total;              /* questions whose four words take part; questions of the file */
};
/* Only the `first` most frequent words take part; 0: all. */
enum sptx_status sptx_run_evaluate_analogies(struct sptx_run *run, const char *table, const char *path, uint64_t first,
                                             struct sptx_analogies_score *score);

struct sptx_lists_score {
    double recall, ndcg, hit; /* of held-out items among the k that suit a list's training items best */
    uint64_t lists, unknown;  /* number of lists scored; number of held-out items that the run does not know */
    uint64_t held_out;        /* number of held-out items of the lists that `train` has; includes `trained` */
    uint64_t trained;         /* number of held-out items left out: their list has them in `train`, and no answer repeats those */
    uint64_t cold;            /* number of lists left out: they have held-out items, but no line in `train` */
    uint64_t without_row;     /* number of lists without a row in the run, if the score uses such rows: folded in, or items' mean */
};
/* train, held_out: files of lists, or directories of them. format: as corpus.format; NULL: lists or pairs, whichever
 * each file looks like. score: as of sptx_run_recommend(); NULL: the one that compares rows of `table`, or, where that
 * is NULL too, the run's default. Held-out items that `train` has in the same list are left out: if they are most, returns
 * SPTX_FAILED; if they are some, the context's warning() is called. */
enum sptx_status sptx_run_evaluate_lists(struct sptx_run *run, const char *table, const char *train,
                                         const char *held_out, const char *format, const char *score, uint32_t k,
                                         struct sptx_lists_score *result);

/* Does the same with files or with corpora. The corpus.format of a corpus must be lists, pairs or adjacency; `format` applies to
 * files only. */
enum sptx_status sptx_run_evaluate_lists_of(struct sptx_run *run, const char *table, const struct sptx_data *train,
                                            const struct sptx_data *held_out, const char *format, const char *score, uint32_t k,
                                            struct sptx_lists_score *result);

struct sptx_groups_score {
    double share,
        chance; /* of a row's k nearest rows that are of its own group; of all rows. NaN where no row could be asked */
    uint64_t asked, rows;
};
#define SPTX_GROUPS_MOST 8 /* columns of groups that a file may have */
/* Fills scores[SPTX_GROUPS_MOST], one for each of the *columns of groups that the file has. Rows that the corpus names
 * at least `met` times take part, and at most `sample` of them are asked. */
enum sptx_status sptx_run_evaluate_groups(struct sptx_run *run, const char *table, const char *path, uint64_t met,
                                          uint64_t sample, uint32_t k, struct sptx_groups_score *scores,
                                          uint32_t *columns);

struct sptx_labels_score {
    double share;                                    /* of the labelled nodes that the regressions are trained on */
    double micro, micro_spread, macro, macro_spread; /* F1: means and standard deviations over ten shuffles of the nodes */
    uint64_t covered, total, labels;                 /* labelled nodes that the run has; labelled nodes; different labels */
};
#define SPTX_SHARES_MOST 16 /* shares that one call takes */
/* A line of the file is a node and its labels. Fills scores[count], one a share of shares[count], each between 0 and 1. */
enum sptx_status sptx_run_evaluate_labels(struct sptx_run *run, const char *table, const char *path, const double *shares,
                                          uint32_t count, struct sptx_labels_score *scores);

/* Does the same with a file or with a corpus of pairs (corpus.format = pairs): each pair is a node, as its list, and a label, as
 * its item. */
enum sptx_status sptx_run_evaluate_labels_of(struct sptx_run *run, const char *table, const struct sptx_data *labels,
                                             const double *shares, uint32_t count, struct sptx_labels_score *scores);

struct sptx_links_score {
    double auc, mrr, hits; /* hits: of 10. NaN if the score needs training links and the call has none */
};
struct sptx_links_counts {
    uint64_t links, asked;   /* number of held-out links judged; number of link ends ranked */
    uint64_t nodes, unknown; /* number of distinct nodes; number of those nodes that the run does not know */
    uint64_t left_out;       /* number of held-out links left out, because the run does not know one of their nodes */
    uint64_t trained;        /* number of held-out links left out, because they are training links */
    uint64_t among;          /* largest number of nodes that any end is ranked among: 1,000 drawn ones, or all if there are fewer */
    uint64_t all;            /* number of ends ranked among all nodes that are not linked to the other end */
};
#define SPTX_LINK_SCORES 5 /* dot, cosine, hadamard, cross, cross-cosine, in this order */
/* A line of a file is two nodes. known: the links that the run was trained on; NULL: not given. directed: 1 or 0. Fills
 * scores[SPTX_LINK_SCORES]. Returns SPTX_FAILED if most held-out links are training links. */
enum sptx_status sptx_run_evaluate_links(struct sptx_run *run, const char *table, const char *held_out, const char *known,
                                         uint32_t directed, struct sptx_links_score *scores,
                                         struct sptx_links_counts *counts);

/* Does what sptx_run_evaluate_links() does, but both arguments may be files or corpora of edges (corpus.format = graph). */
enum sptx_status sptx_run_evaluate_links_of(struct sptx_run *run, const char *table, const struct sptx_data *held_out,
                                            const struct sptx_data *known, uint32_t directed, struct sptx_links_score *scores,
                                            struct sptx_links_counts *counts);

/* ---- a run for others ---- */

/* Writes vectors to a file, as `sptx-w2v export` does. format: "word2vec-bin", "word2vec-text" and the others that its
 * help lists. lists: 1 writes the rows of lists, too. A file at the path stays until the new one is whole. */
enum sptx_status sptx_run_export(struct sptx_run *run, const char *table, uint32_t lists, const char *format,
                                 const char *path);
/* Does the same with a choice of number type: "f32" (or NULL); for npy, fbin and safetensors also "bf16" or "f16", which take half
 * the bytes. */
enum sptx_status sptx_run_export_as(struct sptx_run *run, const char *table, uint32_t lists, const char *format,
                                    const char *type, const char *path);

struct sptx_report_options {
    uint64_t size;                  /* sizeof (struct sptx_report_options) */
    const char *run;                /* the run as the page's commands name it; NULL: its directory */
    const char *table;              /* NULL: the one that suits the run */
    const char *titles;             /* a file of lines "id TAB title", or NULL */
    const char *const *evaluations; /* [evaluation_count] files that hold what `sptx-w2v evaluate` printed */
    uint64_t evaluation_count;
    uint64_t top;    /* rows of the map: the most frequent ones */
    uint64_t listed; /* rows whose nearest rows can be searched in the page */
    uint64_t lists;  /* 1: rows of lists are shown, too */
    const char *labels; /* a file of lines of a row and its labels, by which the map is coloured; NULL: it is by clusters */
};
#define SPTX_REPORT_OPTIONS                                                                                            \
    { sizeof(struct sptx_report_options), 0, 0, 0, 0, 0, 5000, 20000, 0, 0 }
/* Writes one page of HTML that shows the run, as `sptx-w2v report` does. options: NULL for the defaults. */
enum sptx_status sptx_run_report(struct sptx_run *run, const char *path, const struct sptx_report_options *options);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
