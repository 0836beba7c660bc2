/* evaluate: how good vectors are, by the field's measures, each with its coverage.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `restrict` most frequent words
 *   lists      the corpus' own format                recall@k, NDCG@k, hit@k of held-out items among the k that suit the
 *                                                    list's training items best (list_scores.h), its own left out
 *   groups     word TAB-or-blank its groups          share of a row's k nearest rows that are of its own group
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

struct pairs_score {
    double rho;
    uint64_t covered, total;
};
struct analogies_score {
    double accuracy, semantic, syntactic; /* semantic, syntactic: NaN where that part has no question */
    uint64_t covered, total;
};
struct lists_request {
    const char *train, *held_out;  /* files, or directories of them */
    struct corpus_options reading; /* as the run's corpus; where that is text, files are read as lists */
    enum list_score score;
    uint32_t k;
    int look; /* 1: each file is read as lists or as pairs, whichever it looks like (list_form.h); 0: by `reading` */
};
struct lists_score {
    double recall, ndcg, hit;
    uint64_t lists, unknown; /* lists scored; held-out items without a vector */
};

enum { GROUPS_MOST = 8 }; /* columns of groups that a file may have */
struct groups_request {
    uint64_t met; /* rows that the corpus names at least so often take part; all rows up to the last of them are searched */
    uint64_t sample; /* at most so many rows are asked for; which ones depends on this number only */
    uint32_t k;
};
struct groups_score {
    double share, chance; /* NaN where no row that was asked shares its group with another */
    uint64_t asked, rows; /* rows asked; rows that take part and stand in the file */
};

int evaluate_pairs(struct pairs_score *score, const struct model *model, enum model_view view, const char *path);
int evaluate_analogies(struct analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config);
int evaluate_lists(struct lists_score *score, const struct model *model, const struct lists_request *request,
                   const struct config *config);
/* Fills scores[GROUPS_MOST]. Returns how many columns there are, or -1 after fail(). */
int evaluate_groups(struct groups_score *scores, const struct model *model, enum model_view view, const char *path,
                    const struct groups_request *request, const struct config *config);

#endif
