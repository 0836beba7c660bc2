/* common: shared by the GPU's tests: counting, random corpora, tables of every rule in every place. */
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
extern char directory[256]; /* scratch */

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

/* Says what this machine has no space for, and counts it. */
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        skipped++;                                                                                                     \
        printf("skipped: ");                                                                                           \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
    } while (0)

void *need(uint64_t bytes); /* zeroed; ends the program where there is none */
void random_seed(uint64_t seed); /* the seed of random_bits() and random_float() */
uint64_t random_bits(void);
float random_float(void); /* -0.5 to 0.5 */
double now(void);         /* seconds */

/* ---- a corpus ---- */

struct corpus {
    uint32_t *ids, *keep;
    uint64_t *starts, tokens, sentences, rows;
    struct alias *alias;
    uint64_t *nodes; /* [rows + 1] of source_walks(): where the arcs of a row begin; NULL: it was not asked */
    uint32_t *neighbours;
    struct alias *weights;
    uint64_t *word_starts; /* [rows + 1] of source_shares(): where the rows of a word begin; NULL: it was not asked */
    uint32_t *word_rows;
    struct huffman tree; /* of source_paths(); all zeros: it was not asked */
};

/* Makes sentences of 1 to `longest` ids, low ones frequent: row u^slope x rows of a uniform u; slope is 3 unless
 * given. */
void corpus_make(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest);
void corpus_make_sloped(struct corpus *c, uint64_t rows, uint64_t sentences, uint64_t longest, double slope);
uint64_t corpus_longest(const struct corpus *c); /* sentence, in ids */
void corpus_free(struct corpus *c);
struct example_source source_of(const struct corpus *c, enum example_mode mode);
/* Makes the examples of a source windows over walks: of as many nodes as the corpus has rows, joined where the corpus
 * has them side by side. The source has as many walks as the corpus has sentences. By the bits of `kind`: 1 with
 * weights, 2 and 4 with biases, 8 directed. */
void source_walks(struct example_source *s, struct corpus *c, uint32_t length, unsigned kind);

/* Gives each word of the corpus its own row and up to seven of those that words share, some words up to seventy: more than a warp
 * looks up at a time. They are shared_rows() rows behind the corpus' own. The window's words are pooled, or with by_window 0 the
 * word in the middle. */
void source_shares(struct example_source *s, struct corpus *c, int by_window);

/* Makes the corpus' words predicted by the nodes of their paths in a tree, without negatives. */
void source_paths(struct example_source *s, struct corpus *c);
static inline uint64_t shared_rows(uint64_t rows) {
    return rows / 2 + 40;
}

/* ---- backends and tables ---- */

extern enum matmul_type matmul; /* of the backends that are opened */
struct backend *open_or_stop(const struct backend_ops *ops, unsigned depth); /* with two threads */
struct backend *open_with_threads(const struct backend_ops *ops, unsigned depth, unsigned threads);

struct rule_case {
    const char *name;
    struct rule_options options;
};

struct placing {
    const char *name;
    enum place weights, state;
    uint64_t hot_rows, first_row; /* as table_spec has them */
};

struct tables {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *side[2];
    struct record_layout layout;
    uint64_t rows, first_row[2]; /* by side: rows [first_row, rows) are there */
};

uint32_t *frozen_of(uint64_t rows, unsigned every); /* bits of rows 0, every, 2 x every ..; the caller frees them */
struct rule_options options_of(int rule);
/* Returns a rate at which weights move by a good part of their size, and training forgets a rounding instead of
 * magnifying it. `summed`: how many pairs' gradients add up in the longest ones; rules that do not divide by that get a
 * lower rate. */
double rate_of(const struct rule_options *rule, double summed);
int rule_cases(struct rule_case cases[32]); /* every rule plain, and rules with options also with these */
struct record_layout layout_of(const struct rule_options *rule, uint32_t dim);
int tables_open(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2]);
/* frozen: by side, as table_spec has it. */
int tables_open_frozen(struct tables *t, const struct backend_ops *ops, struct backend *backend,
                       const struct rule_options *rule, uint32_t dim, uint64_t rows, const struct placing placing[2],
                       const uint32_t *const frozen[2]);
void tables_close(struct tables *t);
/* Column `column` of a part of a packed record: part 0 is the weights, the others are slots. A bfloat16 takes the nearest value. */
double value_of(const struct record_layout *layout, const char *record, uint32_t part, uint32_t column);
void set_value(const struct record_layout *layout, char *record, uint32_t part, uint32_t column, float value);
/* Returns how a side's table rounds: the same in all tests. */
struct rounding rounding_of_side(int side);
/* Makes first records, which are the same for all tables of a shape; the caller frees them. */
char *first_records(const struct rule_options *rule, const struct record_layout *layout, uint64_t rows);
/* Each table takes the rows that it has from records of all rows; and gives them back in their places, where the others stay. */
int tables_fill(struct tables *t, const char *const records[2]);
int tables_read(const struct tables *t, int side, char *records);
/* Returns all records of a side, zeros where the table has no row; the caller frees them. Reading them is a check as well. */
char *tables_records(const struct tables *t, int side, const char *name);
int one_step(struct tables *t, unsigned stage, const struct step_request *request); /* with the tables put into the request */

enum { PLACE_PAIRS = 5 };
extern const struct placing PLACES[PLACE_PAIRS][2]; /* of targets and contexts; in the first pair all rows lie on the GPU */

/* ---- the tests, a file each ---- */

void test_refusals(void);
void test_rows(void);
void test_batches(void);
void test_batch_bounds(void);
void test_steps(void);
void test_wide_windows(void);
void test_frequent_rows(void);
void test_pieces(void);
void test_plain_pieces(void);
void test_turns(void);
void test_blocks(void);
void test_late_updates(void);
void test_losses(void);
void test_shared(void);
void test_frozen(void);
void test_halves(void);
void test_stages(void);
void test_depths(void);
void test_hogwild(void);
void test_hogwild_worker(void);
void test_topk(void);
void test_filter(void);
void test_runs(void);
void test_order(void);
void test_far_rows(void); /* the CPU's */
void test_edge(void);     /* of both backends, where there is a GPU */
void test_estimate(void);
void test_random(const struct backend_ops *tested); /* compares it with itself and with the CPU */
void test_by_id(void);
void test_first_rows(const struct backend_ops *tested);
void speed(const char *which); /* "small", "large" batches, or all */

#endif
