/* evaluate: how good vectors are, by the field's three measures, each with its coverage. Written to agree with independent
 * scorers: ties share ranks, a search's first row wins among equals, words are compared in lower case (ASCII letters; other
 * bytes as they are) and the first row of a name is meant. What is left is float32 rounding, which can swap two pairs whose
 * cosines differ by less than 1e-7: a unit of rho's fourth decimal where vectors are hardly trained.
 *
 *   pairs      word TAB-or-blank word score          Spearman's rho of cosine against score
 *   analogies  ": section" lines, then a b c d       3CosAdd accuracy among the `restrict` most frequent words
 *   lists      name item item..                      recall@k, NDCG@k, hit@k of held-out items; a list is the mean of its
 *                                                    training items' unit vectors, its own items left out
 *
 * `view` is the table whose rows are judged.
 */
#ifndef SPTX_EVALUATE_H
#define SPTX_EVALUATE_H

#include "search.h"

struct pairs_score {
    double rho;
    uint64_t covered, total;
};
struct analogies_score {
    double accuracy, semantic, syntactic; /* NaN where a part has no question */
    uint64_t covered, total;
};
struct lists_score {
    double recall, ndcg, hit;
    uint64_t lists, unknown; /* lists scored; held-out items without a vector */
};

int evaluate_pairs(struct pairs_score *score, const struct model *model, enum model_view view, const char *path);
int evaluate_analogies(struct analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config);
int evaluate_lists(struct lists_score *score, const struct model *model, enum model_view view, const char *train,
                   const char *held_out, uint32_t k, const struct config *config);

#endif
