/* evaluate: how good vectors are, by the field's measures, each with its coverage.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `restrict` most frequent words
 *   lists      the corpus' own format                recall@k, NDCG@k, hit@k of held-out items among the k that suit the
 *                                                    list's training items best (list_scores.h), its own left out
 *   groups     word TAB-or-blank its groups          share of a row's k nearest rows that are of its own group
 *   labels     node TAB-or-blank its labels          micro and macro F1 of logistic regressions over a share of the nodes
 *   links      node TAB-or-blank node                AUC against as many pairs that are no links; MRR and hits@10 of a link's
 *                                                    true end among 1,000 nodes that are not its neighbours (all if fewer exist)
 *
 * The measures agree with independent scorers: ties share ranks, the first row wins among equals, words are compared in lower
 * case (ASCII letters; other bytes as they are), and a name stands for the first row that has it. What differs is float32
 * rounding: it can swap two pairs whose cosines differ by less than 1e-7, which is a unit of rho's fourth decimal where vectors
 * are hardly trained.
 *
 * `view` is the table whose rows are judged. Each returns 0, or -1 after fail(), also for a file by which no row can be judged.
 */
#ifndef SPTX_EVALUATE_H
#define SPTX_EVALUATE_H

#include "list_scores.h"
#include "corpus/gathered.h"
#include "corpus/held_out.h"

struct pairs_score {
    double rho;
    uint64_t covered, total;
};
struct analogies_score {
    double accuracy, semantic, syntactic; /* semantic, syntactic: NaN where that part has no question */
    uint64_t covered, total;
};
/* The questions below one ": section" line, or above the first. */
struct analogies_section {
    char *name;    /* "" above the first such line */
    int syntactic; /* its name begins with "gram" */
    uint64_t total, covered, right;
};
struct lists_request {
    const char *train, *held_out;  /* files, or directories of them */
    struct corpus_options reading; /* as the run's corpus; where that is text, files are read as lists */
    enum list_score score;
    uint32_t k;
    int look; /* 1: each file is read as lists or as pairs, whichever it looks like (list_form.h); 0: by `reading` */
    /* Data in memory, read instead of the files; `train` and `held_out` are then only its names in error messages. NULL: files. */
    const struct gathered *train_data, *held_out_data;
};
struct lists_score {
    double recall, ndcg, hit;
    uint64_t lists, unknown; /* number of lists scored; number of held-out items without a vector */
    uint64_t held_out;       /* number of held-out items of the lists that `train` has; includes `trained` */
    uint64_t trained;        /* number of held-out items left out: their list has them in `train`, and no answer repeats those */
    uint64_t cold;           /* number of lists left out: they have held-out items, but no line in `train` */
    uint64_t without_row;    /* number of lists without a row in the run, if the score uses such rows: folded in, or items' mean */
};

enum { GROUPS_MOST = 8 }; /* columns of groups that a file may have */
struct groups_request {
    uint64_t met; /* rows that the corpus names at least so often take part; all rows up to the last of them are searched */
    uint64_t sample; /* number of rows that are asked for, at most; this number alone decides which rows */
    uint32_t k;
};
struct groups_score {
    double share, chance; /* NaN where no row that was asked shares its group with another */
    uint64_t asked, rows; /* rows asked; rows that take part and occur in the file */
};

enum { LABELS_SHARES = 16 }; /* shares that one evaluation takes at most */
enum { LABELS_SHUFFLES = 10 };
struct labels_score {
    double share;                                    /* of the labelled nodes that the regressions are trained on */
    double micro, micro_spread, macro, macro_spread; /* F1: means and standard deviations over LABELS_SHUFFLES shuffles */
    uint64_t covered, total, labels;                 /* labelled nodes that the run knows; labelled nodes; different labels */
};

/* How a pair of nodes is scored. The first three take the view's rows, the others both tables. */
enum link_score {
    LINK_DOT,
    LINK_COSINE,
    LINK_HADAMARD, /* a logistic regression over the products of columns, fitted on training links */
    LINK_CROSS,    /* dot product of the one's target row and the other's context row; if not directed, both ways added */
    LINK_CROSS_COSINE,
    LINK_SCORES
};
const char *link_score_name(enum link_score score);
struct links_request {
    const char *held_out; /* a file of lines of two nodes; more columns are left alone */
    const char *known;    /* a file of the links that the run was trained on; NULL: the links of its graph, if it has one */
    int directed;         /* 1: a link has a head, which alone is asked for; so too where the run's graph is taken and directed */
    const struct gathered *held_out_data, *known_data; /* edges in memory, read instead of the files; NULL: files */
};
struct links_score {
    double auc, mrr, hits; /* NaN: hadamard without training links */
};
struct links_counts {
    uint64_t links, asked;   /* number of held-out links judged; number of link ends ranked: both ends of at most 20,000 links */
    uint64_t nodes, unknown; /* number of nodes in both files (without `known`: run and file); how many the run does not know */
    uint64_t left_out;       /* number of held-out links left out, because the run does not know one of their nodes */
    uint64_t trained;        /* number of held-out links left out, because they are training links */
    uint64_t among;          /* largest number of nodes that any end is ranked among */
    uint64_t all;            /* number of ends ranked among all nodes not linked to the other end, as there are at most 1,000 */
};

int evaluate_pairs(struct pairs_score *score, const struct model *model, enum model_view view, const char *path);
int evaluate_analogies(struct analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config);
/* Judges each section of the file. Stores the sections, which analogies_sections_free() frees in any case. */
int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model, enum model_view view,
                                const char *path, uint64_t restrict_rows, const struct config *config);
void analogies_sections_free(struct analogies_section *sections, uint64_t count);
int evaluate_lists(struct lists_score *score, const struct model *model, const struct lists_request *request,
                   const struct config *config);
/* Judges lists as evaluate_lists() does: by the items that training left out. At most EVALUATE_SPLIT_LISTS of them are asked,
 * evenly over all. A list without a held-out item is passed over. */
enum { EVALUATE_SPLIT_LISTS = 10000 };
int evaluate_split(struct lists_score *score, const struct model *model, const struct held_out *held_out, uint32_t k,
                   const struct config *config);
/* Fills scores[GROUPS_MOST]. Returns how many columns there are, or -1 after fail(). */
int evaluate_groups(struct groups_score *scores, const struct model *model, enum model_view view, const char *path,
                    const struct groups_request *request, const struct config *config);
/* Fills scores[count], one a share of shares[count], each between 0 and 1. */
int evaluate_labels(struct labels_score *scores, const struct model *model, enum model_view view, const char *path,
                    const double *shares, int count, const struct config *config);
/* Does the same for (node, label) pairs in memory; error messages call them `name`. */
int evaluate_labels_of(struct labels_score *scores, const struct model *model, enum model_view view, const struct gathered *data,
                       const char *name, const double *shares, int count, const struct config *config);
/* Fills scores[LINK_SCORES]. */
int evaluate_links(struct links_score *scores, struct links_counts *counts, const struct model *model,
                   enum model_view view, const struct links_request *request, const struct config *config);

#endif
