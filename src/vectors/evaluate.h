/* evaluate: measures the quality of vectors by the usual benchmarks, and counts how much of each file the run covers.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `restrict` most frequent words
 *   lists      the corpus' own format                recall@k, NDCG@k, hit@k of held-out items among the k that suit the
 *                                                    list's training items best (list_scores.h), without these
 *   groups     word TAB-or-blank its groups          share of a row's k nearest rows that are in its group
 *   labels     node TAB-or-blank its labels          micro and macro F1 of logistic regressions over a share of the nodes
 *   links      node TAB-or-blank node                AUC against as many unlinked pairs; MRR and hits@10 of a link's
 *                                                    true end among 1,000 nodes that are not its neighbours (all if fewer exist)
 *   triples    head, relation, tail                  filtered MRR and hits@1, 3, 10 of tails and heads among all entities
 *
 * The measures agree with independent scorers: equal values share their mean rank, the first of equally near rows wins, words
 * are compared in lower case (only ASCII letters are changed), and a name means the first row that has it. Only float32 rounding
 * differs: it can swap two pairs whose cosines differ by less than 1e-7. That changes rho by one unit of its fourth decimal if
 * vectors are hardly trained.
 *
 * `view` is the table whose rows are judged. Each function returns 0, or -1 after fail(), also if the file judges no row. sptx.h
 * has the structs of scores and counts, and the limits of groups and shares.
 */
#ifndef SPTX_EVALUATE_H
#define SPTX_EVALUATE_H

#include "corpus/gathered.h"
#include "corpus/held_out.h"
#include "list_scores.h"
#include "sptx.h"

/* One section of a file of analogies: the questions after a ": section" line, or before the first such line. */
struct analogies_section {
    char *name;    /* the text after ":" in the section's first line; "" before the first such line */
    int syntactic; /* 1: the section's name begins with "gram": its questions are syntactic */
    uint64_t total, covered, right;
};
struct lists_request {
    const char *train, *held_out;  /* paths of files of lists, or of directories that contain such files */
    struct corpus_options reading; /* how files are read: as the run's corpus was; if the corpus was text, as files of lists */
    enum list_score score;
    uint32_t k;
    int look; /* 1: whether a file has lists or pairs is guessed from the file (names.h); 0: `reading` says it */
    /* data in memory, read instead of the files; `train` and `held_out` are then only names for error messages. NULL: files are
     * read */
    const struct gathered *train_data, *held_out_data;
};

struct groups_request {
    uint64_t met; /* only rows with at least this count in the corpus are asked; all rows up to the last one with that count are
                   * searched */
    uint64_t sample; /* at most this many rows are asked for their neighbours; equal numbers choose equal rows */
    uint32_t k;
};

enum { LABELS_SHUFFLES = 10 };

/* How a pair of nodes is scored. The first three scores use the rows of one view, the last two the rows of both tables. */
enum link_score {
    LINK_DOT,
    LINK_COSINE,
    LINK_HADAMARD, /* a logistic regression on the products of the two rows' columns, fitted to training links */
    LINK_CROSS,    /* dot product of the target row of one node and the context row of the other; for undirected links the sum of
                    * both directions */
    LINK_CROSS_COSINE,
    LINK_SCORES
};
const char *link_score_name(enum link_score score);
struct links_request {
    const char *held_out; /* path of a file whose lines begin with two nodes; further columns are ignored */
    const char *known;    /* path of a file of the links on which the run was trained; NULL: the links of the run's graph, if it
                           * has one */
    int directed;         /* 1: links have a direction, and only their heads are ranked. This is so, too, if the links of the
                           * run's graph are used and the graph is directed */
    const struct gathered *held_out_data, *known_data; /* edges in memory, read instead of the files; NULL: files */
};

struct triples_request {
    const char *held_out; /* path of a file of triples */
    const char *known;    /* paths of files of triples that are known to be true, as corpus.path names them; NULL: none */
    uint64_t sample;      /* entities that answers are ranked among; 0: all, or 10,000 if there are more than a million */
    struct look_keys look; /* how the files are read: as the run's corpus was */
    unsigned threads;     /* 0: one a core */
    const struct gathered *held_out_data, *known_data; /* triples in memory, read instead of the files; NULL: files */
};

int evaluate_pairs(struct sptx_pairs_score *score, const struct model *model, enum model_view view, const char *path);
int evaluate_analogies(struct sptx_analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config);
/* Judges each section of the file separately. The caller frees *sections with analogies_sections_free(), also after a failure. */
int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model,
                                enum model_view view, const char *path, uint64_t restrict_rows, const struct config *config);
void analogies_sections_free(struct analogies_section *sections, uint64_t count);
int evaluate_lists(struct sptx_lists_score *score, const struct model *model, const struct lists_request *request,
                   const struct config *config);
/* Judges lists as evaluate_lists() does, by the items that training left out. Asks at most EVALUATE_SPLIT_LISTS lists, evenly
 * spaced among all lists. Lists without a held-out item are skipped. */
enum { EVALUATE_SPLIT_LISTS = 10000 };
int evaluate_split(struct sptx_lists_score *score, const struct model *model, const struct held_out *held_out, uint32_t k,
                   const struct config *config);
/* Fills scores[..], of SPTX_GROUPS_MOST entries: one for each column of groups. Returns the number of columns, or -1 after
 * fail(). */
int evaluate_groups(struct sptx_groups_score *scores, const struct model *model, enum model_view view, const char *path,
                    const struct groups_request *request, const struct config *config);
/* Fills scores[count]: one for each of shares[count], which are between 0 and 1. */
int evaluate_labels(struct sptx_labels_score *scores, const struct model *model, enum model_view view, const char *path,
                    const double *shares, int count, const struct config *config);
/* Does the work of evaluate_labels() with (node, label) pairs in memory. `name`: their name in error messages. */
int evaluate_labels_of(struct sptx_labels_score *scores, const struct model *model, enum model_view view,
                       const struct gathered *data, const char *name, const double *shares, int count, const struct config *config);
/* Ranks the tails of held-out triples and, if the run has reciprocals, the heads. Other known answers are left out. */
int evaluate_triples(struct sptx_triples_score *score, const struct model *model, const struct triples_request *request,
                     const struct config *config);
/* Fills scores[LINK_SCORES]. */
int evaluate_links(struct sptx_links_score *scores, struct sptx_links_counts *counts, const struct model *model,
                   enum model_view view, const struct links_request *request, const struct config *config);

/* Scores a checkpoint during training by the items that were held out (train.held_out_items). Sets *recall to recall@JUDGE_PLACES of the held-out items, computed with the score that `evaluate` uses for the run, and
 * *lists to the number of lists that were asked. Returns 0, or -1 after fail(). */
enum { JUDGE_PLACES = 20 };
int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config);

#endif
