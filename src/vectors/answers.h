/* answers: which rows of a finished run answer a question, and by which table, where the user does not say.
 *
 *   a run of                                  rows    table     how a list's items choose others (list_scores.h)
 *   words            (window, cbow)           words   target    target
 *   items of lists   (list)                   items   target    target; trained by cosines: context-cosine
 *   lists with rows  (user)                   items   context   user; trained by cosines: user-cosine
 *   citations, links (adjacency)              all     sum       user: the paper's own row; for items by hand: sum
 *   nodes            (walk)                   nodes   propagated, user: the node's own row; for nodes by hand: context
 *                                                      or normsum
 *   any of these     (train.loss =            as above as above  target: the context rows are no words'
 *                     hierarchical)
 *
 * A list's row has a name in the vocabulary, too; it answers only where lists are asked for. Rows trained by cosines lie near
 * rows of the other table and, unlike those trained by dot products, hardly near rows of their own (goodbooks, softmax:
 * recall@20 0.020 by target, 0.106 by context-cosine). A paper has a target row for what it cites and a context row for who
 * cites it, and many papers have only one of the two; configs/README.md, "Citations, both ways", has the experiments. Nodes of a
 * graph are told apart best by propagated rows (labels of planted blogs, 20 walks: target .22, normsum .24, propagated .39). Each
 * command computes these rows anew. If that would take more than some seconds, or the graph's file is gone, normsum answers. Linked
 * nodes are found by comparing a target row with context rows, as training did (recall@20 of a node's held-out links, cora: normsum
 * 0.48, propagated 0.53, context 0.57; citeseer 0.57, 0.61, 0.65).
 */
#ifndef SPTX_ANSWERS_H
#define SPTX_ANSWERS_H

#include "list_scores.h"

/* Returns the score. named: 1 where the lists come with names, which may have rows of their own. */
enum list_score answers_score(const struct model *model, int named);
/* Returns how many rows answer, from the first on: the items; with `lists` also the lists behind them. 0 after
 * fail(). */
uint64_t answers_rows(const struct model *model, int lists);
/* Each returns the table, or the score, of that name, or, for NULL, the default of the drawing above; -1 after fail_usage(). The
 * table `propagated` is made when it is first asked for, with this number of threads (0: one a core); -1 after fail() if the run
 * has no graph. */
int answers_view_named(struct model *model, const char *name, unsigned threads);
int answers_score_named(struct model *model, const char *name, int named, unsigned threads);

#endif
