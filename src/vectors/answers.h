/* answers: which rows of a finished run answer, and which table they are asked by, where nobody says it.
 *
 *   a run of                                  rows    table     how a list's items choose others (list_scores.h)
 *   words            (window, cbow)           words   target    target
 *   items of lists   (list)                   items   target    target; trained by cosines: context-cosine
 *   lists with rows  (user)                   items   context   user; trained by cosines: user-cosine
 *   citations, links (adjacency)              all     sum       user: the paper's own row; of items by hand: sum
 *
 * Rows of lists are words of a run, too, and answer only where they are asked for. Rows trained by cosines lie near rows of
 * the other table and, unlike those trained by dot products, hardly near rows of their own (goodbooks, softmax: recall@20 0.020
 * by target, 0.106 by context-cosine). A paper has a row as what it cites and one as who cites it, and many have one of the two
 * alone; configs/README.md, "Citations, both ways", has the experiments.
 */
#ifndef SPTX_ANSWERS_H
#define SPTX_ANSWERS_H

#include "list_scores.h"

enum model_view answers_view(const struct model *model);
/* named: 1 where lists come with names, which may have rows of their own. */
enum list_score answers_score(const struct model *model, int named);
/* How many rows answer, from the first on: items, or with `lists` the lists behind them, too. 0 after fail(). */
uint64_t answers_rows(const struct model *model, int lists);
/* The table of that name, or, where it is NULL, the one above; -1 after fail_usage(). */
int answers_view_named(const struct model *model, const char *name);

#endif
