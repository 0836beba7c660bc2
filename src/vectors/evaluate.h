/* evaluate: measures the quality of vectors by the usual benchmarks, and counts how much of each file the run covers.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `first` most frequent words
 *   held_out   the corpus' own format                recall@k, NDCG@k, hit@k of held-out items among the k that suit the
 *                                                    list's training items (`known`) best (list_scores.h), without these
 *   groups     word TAB-or-blank its groups          share of a row's k nearest rows that are in its group
 *   labels     node TAB-or-blank its labels          micro and macro F1 of logistic regressions over a share of the nodes
 *   edges      node TAB-or-blank node                AUC against as many unlinked pairs; MRR and hits@10 of a link's
 *                                                    true end among 1,000 nodes that are not its neighbours (all if fewer exist)
 *   triples    head, relation, tail                  filtered MRR and hits@1, 3, 10 of tails and heads among all entities
 *
 * The measures agree with independent scorers: equal values share their mean rank, the first of equally near rows wins, words
 * are compared in lower case (only ASCII letters are changed), and a name means the first row that has it. Only float32 rounding
 * differs: it can swap two pairs whose cosines differ by less than 1e-7. That changes rho by one unit of its fourth decimal if
 * vectors are hardly trained.
 *
 * Whatever is measured, the answer is a list of named numbers (struct sptx_number in sptx.h): the program prints it, the library
 * hands it over, and the Python package makes a dict of it. A measure is a line of the table in evaluate.c and its function.
 */
#ifndef SPTX_EVALUATE_H
#define SPTX_EVALUATE_H

#include "corpus/held_out.h"
#include "corpus/numbered.h"
#include "list_scores.h"
#include "sptx.h"

/* ---- answers ---- */

struct answer {
    struct sptx_number *numbers; /* [count] owned, with their `part` and `text` */
    uint64_t count, capacity;
};

/* Adds a number: of a measure, `value` over `of` questions; or, if `of` is 0, a count. format: makes the number's text, in which # is
 * the number. Returns 0, or -1 after fail(). */
int answer_add(struct answer *answer, const char *part, const char *name, double value, uint64_t of, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Returns the number with this name; NaN if the answer has none. */
double answer_value(const struct answer *answer, const char *part, const char *name);
/* Prints a line for each part; lines whose text begins with a blank begin with `name`. */
void answer_print(const struct answer *answer, const char *path);
void answer_release(struct answer *answer); /* may be called on a struct of zeros */

/* ---- questions ---- */

/* The data that a run is judged by, and the options of the measure. Fields that the measure does not use are ignored. */
struct evaluate_request {
    const char *path, *known;                 /* paths of files, or the names of `data` and `known_data` in messages */
    const struct gathered *data, *known_data; /* data in memory, read instead of the files; NULL: the files are read */
    struct sptx_evaluate_options options;     /* `known` in it is ignored */
    struct corpus_options reading;            /* how files of lists and triples are read: as the run's corpus was */
    int look;              /* 1: whether a file has lists or pairs is guessed from the file (names.h); 0: `reading` says it */
    enum model_view view;  /* the table whose rows are judged, and the score of lists; evaluate() sets both by the options */
    enum list_score score;
};

/* One measure. */
struct measure {
    const char *name, *known; /* what its data, and the data that training had, are called; known: NULL: it takes none */
    int (*judge)(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
    const char *format; /* corpus.format of its data in memory; "": lists, pairs or adjacency; NULL: it is read from files only */
    int tables;         /* 1: it judges the rows of one table (view); 0: not */
    int wants_known;    /* 1: it cannot judge without what training had */
};
extern const struct measure evaluate_measures[]; /* all of them; the name after the last one is NULL */
/* Returns the measure with this name; NULL after fail_usage() if there is none. */
const struct measure *evaluate_named(const char *name);

/* Judges a run by the measure: checks the request and adds what was found to the answer, which the caller releases in any case. config:
 * device.* chooses the device (NULL: the CPU). Returns 0, or -1 after fail(), also if the data judges no row. */
int evaluate(struct answer *answer, struct model *model, const struct measure *measure, struct evaluate_request *request,
             const struct config *config);

int evaluate_pairs(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
int evaluate_analogies(struct answer *answer, const struct model *model, const struct evaluate_request *request,
                       const struct config *config);
int evaluate_lists(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
int evaluate_groups(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
int evaluate_labels(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
int evaluate_links(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
int evaluate_triples(struct answer *answer, const struct model *model, const struct evaluate_request *request,
                     const struct config *config);

/* One section of a file of analogies: the questions after a ": section" line, or before the first such line. */
struct analogies_section {
    char *name;    /* the text after ":" in the section's first line; "" before the first such line */
    int syntactic; /* 1: the section's name begins with "gram": its questions are syntactic */
    uint64_t total, covered, right;
};
/* Judges each section of the file separately, among the first `restrict_rows` rows (0: all). The caller frees *sections with
 * analogies_sections_free(), also after a failure. */
int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model,
                                enum model_view view, const char *path, uint64_t restrict_rows, const struct config *config);
void analogies_sections_free(struct analogies_section *sections, uint64_t count);

/* Scores a checkpoint during training by the items that were held out (train.held_out_items). Sets *recall to recall@JUDGE_PLACES of
 * these items, computed with the score that `evaluate` uses for the run, and *lists to the number of lists that were asked: at most
 * JUDGE_LISTS, evenly spaced among those that have a held-out item. Returns 0, or -1 after fail(). */
enum { JUDGE_PLACES = 20, JUDGE_LISTS = 10000 };
int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config);

#endif
