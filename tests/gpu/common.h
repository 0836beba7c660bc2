/* common: helpers of the GPU tests: counting failures, random corpora, and tables of every rule in every place. */
#ifndef SPTX_TESTS_GPU_COMMON_H
#define SPTX_TESTS_GPU_COMMON_H

#include "corpus/huffman.h"
#include "kernels/backend.h"
#include "base/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int passed, failed, skipped;
extern char directory[256]; /* directory for temporary files */

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            passed++;                                                                                                  \
        else {                                                                                                         \
            failed++;                                                                                                  \
            printf("FAILED %s:%d: ", __func__, __LINE__);                                                              \
            printf(__VA_ARGS__);                                                                                       \
            printf("%s%s\n", *report_sentence() ? " | " : "", report_sentence());                                      \
            report_clear();                                                                                            \
        }                                                                                                              \
    } while (0)

/* Prints what this machine has no space for, and counts it as skipped. */
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        skipped++;                                                                                                     \
        printf("skipped: ");                                                                                           \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
    } while (0)

void *need(uint64_t bytes); /* returns zeroed memory; ends the program if there is none */
void random_seed(uint64_t seed); /* seeds random_bits() and random_float() */
uint64_t random_bits(void);
float random_float(void); /* returns a number from -0.5 to 0.5 */
double now(void);         /* returns the time in seconds */

/* ---- a corpus ---- */

struct corpus {
    uint32_t *ids, *keep;
    uint64_t *starts, tokens, sentences, rows;
    struct alias *alias;
    uint64_t *nodes; /* [rows + 1] made by source_walks(): index of each row's first arc; NULL: not made */
    uint32_t *neighbours;
    struct alias *weights;
    uint32_t *labels, *begins;
    uint64_t *word_starts; /* [rows + 1] made by source_shares(): index of each word's first row; NULL: not made */
    uint32_t *word_rows;
    float *item_weights; /* [tokens] made by source_weigh(); NULL: not made */
    struct huffman tree; /* made by source_paths(); all zeros: not made */
};

/* Makes sentences of 1 to `longest` ids. Low ids are more frequent: an id is rows x u^slope for a uniform u; slope is 3 for
 * corpus_make(). */
void corpus_make(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest);
void corpus_make_sloped(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest, double slope);
uint64_t corpus_longest(const struct corpus *c); /* sentence, in ids */
void corpus_free(struct corpus *c);
struct example_source source_of(const struct corpus *c, enum example_mode mode);
/* Makes the examples of a source windows over walks. The graph has a node for each row of the corpus, and arcs between ids that
 * are neighbours in the corpus. There are as many walks as sentences. Bits of `kind`: 1: arcs have weights; 2 and 4: which p and
 * q; 8: directed; 16: arcs have labels and no weights, and walks begin only at every second node. */
void source_walks(struct example_source *s, struct corpus *c, uint32_t length, unsigned kind);

/* Gives each token a weight of 0.2 to 2.2, used where it is a positive. s->weight_scale = 1 / 1.2 makes the mean near 1. */
void source_weigh(struct example_source *s, struct corpus *c);

/* Gives each word its own row and up to seven rows that words share, some words up to seventy: more than a warp looks up at
 * once. The shared rows are shared_rows() rows after the corpus' rows. by_window: 1: the rows of the window's words are pooled;
 * 0: those of the word in the middle. */
void source_shares(struct example_source *s, struct corpus *c, int by_window);

/* Lets the source predict the corpus' words by the nodes of their tree paths, without negatives. */
void source_paths(struct example_source *s, struct corpus *c);
/* Turns the corpus' ids into triples, three ids a triple, whose batches share their negatives: an eighth of the rows, at least two
 * and an even number, become relations. Needs eight rows and three ids. Its ids must not be used by other sources any more. */
void source_triples(struct example_source *s, struct corpus *c, const struct example_pool *pool, int reciprocal);
static inline uint64_t shared_rows(uint64_t rows) {
    return rows / 2 + 40;
}

/* ---- backends and tables ---- */

extern enum matmul_type matmul; /* type of matrix products of backends that are opened from now on */
struct backend *open_or_stop(const struct backend_ops *ops, unsigned depth); /* with two threads; or ends the program */
struct backend *open_with_threads(const struct backend_ops *ops, unsigned depth, unsigned threads);

struct rule_case {
    const char *name;
    struct rule_options options;
};

struct placing {
    const char *name;
    enum place weights, state;
    uint64_t hot_rows, first_row; /* as in table_spec */
};

struct tables {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *side[2];
    struct record_layout layout;
    uint64_t rows, first_row[2]; /* number of rows; first row of each side's table, which has rows first_row .. rows - 1 */
};

uint32_t *frozen_of(uint64_t rows, unsigned every); /* returns bits in which rows 0, every, 2 x every .. are set; the caller
                                                     * frees them */
struct rule_options options_of(int rule);
/* Returns a learning rate at which weights move by a good part of their size, and rounding errors shrink instead of grow.
 * summed: the largest number of pairs whose gradients are summed in a row; rules that do not divide by the gradient's size get a
 * lower rate for a larger number. */
double rate_of(const struct rule_options *rule, double summed);
int rule_cases(struct rule_case cases[32]); /* fills in every rule with its defaults, and rules with options once more with
                                             * these; returns the number of cases */
struct record_layout layout_of(const struct rule_options *rule, uint32_t dim);
int tables_open(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2]);
/* frozen: bits of each side's frozen rows, as in table_spec; NULL: none. */
int tables_open_frozen(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                       const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2],
                       const uint32_t *const frozen[2]);
void tables_close(struct tables *t);
/* Read and write column `column` of a part of a packed record: part 0 is the weights, the others are slots. A bfloat16 is set to
 * the nearest value. */
double value_of(const struct record_layout *layout, const char *record, uint32_t part, uint32_t column);
void set_value(const struct record_layout *layout, char *record, uint32_t part, uint32_t column, float value);
/* Returns the rounding of a side's table, which is the same in all tests. */
struct rounding rounding_of_side(int side);
/* Makes first records; equal rule, layout and rows give equal records. The caller frees them. */
char *first_records(const struct rule_options *rule, const struct record_layout *layout, uint64_t rows);
/* tables_fill() writes to each table its rows from an array of all rows' records; tables_read() reads a table's rows back to
 * their positions in such an array, and leaves all other records unchanged. */
int tables_fill(struct tables *t, const char *const records[2]);
int tables_read(const struct tables *t, int side, char *records);
/* Returns the records of all rows of a side, zeros for rows that the table lacks; the caller frees them. A failure of reading
 * counts as a failed check. */
char *tables_records(const struct tables *t, int side, const char *name);
int one_step(struct tables *t, unsigned stage, const struct step_request *request); /* with these tables */

enum { PLACE_PAIRS = 5 };
extern const struct placing PLACES[PLACE_PAIRS][2]; /* [pair][side] where targets and contexts are kept; in the first pair all
                                                     * rows are on the GPU */

/* ---- the tests, a file each ---- */

void test_refusals(void);
void test_rows(void);
void test_batches(void);
void test_batch_bounds(void);
void test_steps(void);
void test_wide_windows(void);
void test_frequent_rows(void);
void test_items(void);
void test_plain_items(void);
void test_turns(void);
void test_blocks(void);
void test_late_updates(void);
void test_losses(void);
void test_shared(void);
void test_frozen(void);
void test_halves(void);
void test_stages(void);
void test_snapshots(void);
void test_depths(void);
void test_hogwild(void);
void test_hogwild_worker(void);
void test_topk(void);
void test_filter(void);
void test_copies(void);
void test_fold_in(void);
void test_runs(void);
void test_order(void);
void test_far_rows(void); /* on the CPU */
void test_edge(void);     /* on both backends, if there is a GPU */
void test_estimate(void);
void test_random(const struct backend_ops *tested); /* compares the backend with itself and with the CPU */
void test_by_id(void);
void test_first_rows(const struct backend_ops *tested);
void speed(const char *which); /* which: "small" or "large" batches, or "all" */

#endif
