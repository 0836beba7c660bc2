/* evaluate: measures the quality of vectors by the usual benchmarks, and counts how much of each file the run covers.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `first` most frequent words
 *   held_out   the corpus' own format                recall@k, NDCG@k, hit@k: held-out items among the k other items that suit
 *                                                    the list's training items (`known`) best (list_scores.h)
 *   groups     word TAB-or-blank its groups          share of a row's k nearest rows that are in its group
 *   labels     node TAB-or-blank its labels          micro and macro F1 of logistic regressions over a share of the nodes
 *   edges      node TAB-or-blank node                AUC against as many unlinked pairs; MRR and hits@10 of a link's
 *                                                    true end among 1,000 nodes that are not its neighbours (all if fewer exist)
 *   triples    head, relation, tail                  filtered MRR and hits@1, 3, 10 of tails and heads among all entities
 *   labelled   head, relation, tail, 1 or -1         accuracy and F1 of a threshold a relation, chosen by other labelled triples (`known`)
 *
 * The measures agree with those of other programs: equal values share their mean rank, of equally near rows the first one wins, words are compared in
 * lower case (ASCII letters only), and a name stands for the first row with that name. Only float32 rounding may differ, and swap two pairs whose
 * cosines differ by less than 1e-7; with hardly trained vectors that changes the fourth decimal of rho by one.
 *
 * The answer of every measure is a list of named numbers (struct sptx_number in sptx.h): the program prints it, the library returns it, and the
 * Python package makes a dict of it. A measure is a line of the table in evaluate.c, and a function.
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

/* Adds a number to the answer: the mean `value` of `of` questions or, if `of` is 0, a count. format: text to be printed, with # for the number.
 * Returns 0, or -1 after fail(). */
int answer_add(struct answer *answer, const char *part, const char *name, double value, uint64_t of, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Returns the number with this name; NaN if the answer does not contain it. */
double answer_value(const struct answer *answer, const char *part, const char *name);
/* Prints a line for each part; before a text that begins with a blank, prints `path`. */
void answer_print(const struct answer *answer, const char *path);
void answer_release(struct answer *answer); /* may be called on a struct of zeros */

/* ---- questions ---- */

/* The data by which a run is judged, and the options of the measure, which ignores those that it does not use. */
struct evaluate_request {
    const char *path, *known;                 /* paths of the two files, or what messages call `data` and `known_data` */
    const struct gathered *data, *known_data; /* data in memory that is read in place of the files; NULL: the files are read */
    struct sptx_evaluate_options options;     /* `known` in it is ignored */
    struct corpus_options reading;            /* how files of lists and triples are read; the same as the run's corpus */
    struct features_asked features; /* of items, for lists */
    int look;              /* 1: whether a file contains lists or pairs is guessed from its lines (names.h); 0: `reading` says it */
    enum model_view view;  /* table whose rows are judged, and score of lists; evaluate() chooses both by the options */
    enum list_score score;
};

/* One measure. */
struct measure {
    const char *name, *known; /* names in messages: of the measure's data, and of further data that it needs, such as that of training
                               * (known; NULL: it needs none) */
    int (*judge)(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config);
    const char *format; /* corpus.format of its data in memory; "": lists, pairs or adjacency; NULL: only files are read */
    int tables;         /* 1: it judges the rows of one table, chosen by `view` */
    int wants_known;    /* 1: it needs the further data, too */
};
extern const struct measure evaluate_measures[]; /* all measures; after the last one, a name of NULL */
/* Returns the measure with this name; NULL after fail_usage() if there is none. */
const struct measure *evaluate_named(const char *name);

/* Judges a run by a measure: checks the request, and adds numbers to the answer, which the caller releases in any case. config: device.* chooses
 * the device (NULL: the CPU). Returns 0, or -1 after fail(), also if the run knows none of the data's names. */
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
int evaluate_labelled(struct answer *answer, const struct model *model, const struct evaluate_request *request,
                      const struct config *config);

/* A section of a file of analogies: the questions after a ": section" line, or those before the first such line. */
struct analogies_section {
    char *name;    /* the text after ":" in the section's first line; "" before the first such line */
    int syntactic; /* 1: the section's name begins with "gram", so its questions are about grammar */
    uint64_t total, covered, right;
};
/* Judges each section of the file on its own. Answers are searched among the first `restrict_rows` rows (0: all). The caller frees *sections with
 * analogies_sections_free(), also after a failure. */
int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model,
                                enum model_view view, const char *path, uint64_t restrict_rows, const struct config *config);
void analogies_sections_free(struct analogies_section *sections, uint64_t count);

struct triples_job;
/* Ranks the triples of train.evaluate by the rows of a run in training (model_live). found: MRR, hits@10, number of triples, and of entities among
 * which they are ranked; NULL: nothing is ranked. The first call, with *kept = NULL, reads the triples, for which the model's words must be
 * indexed, finds their known answers and draws the sample. *kept has all three for later calls; a last call, with model = NULL, frees it. Returns 0, or -1 after fail(). */
int evaluate_live(struct triples_job **kept, const struct model *model, double found[4]);

/* Scores a checkpoint during training by the items that were held out (train.held_out_items). *recall: recall@JUDGE_PLACES of these items, by the
 * score that `evaluate` uses for the run. *lists: number of lists that were judged: at most JUDGE_LISTS, evenly spaced among those with a held-out
 * item. Returns 0, or -1 after fail(). */
enum { JUDGE_PLACES = 20, JUDGE_LISTS = 10000 };
int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config);

#endif
