/* answers: the defaults of questions to a finished run: which rows are searched, in which table, and how lists are scored.
 *
 *   a run of                                  rows    table     score of lists (list_scores.h)
 *   words            (window, cbow)           words   target    target
 *   items of lists   (list)                   items   target    target; trained by cosines: context-cosine
 *   lists with rows  (user)                   items   context   user; trained by cosines: user-cosine
 *   documents        (user)                   words   context   user
 *   documents, words (cbow, or                words   target    user
 *                     examples.words = yes)
 *   citations, links (adjacency)              all     sum       user (by the paper's row); sum for items given by hand
 *   entities         (triple)                 all     context   (none: triple_answers.h)
 *   nodes            (walk)                   nodes   propagated, user (by the node's row); context for nodes given
 *                                                      or normsum   by hand
 *   any of these     (train.loss =            as above as above  target, as the context rows belong to nodes of a tree,
 *                     hierarchical)                            not to words
 *
 * Lists: a list's row has a name in the vocabulary, too, but it is searched only if the user asks for lists.
 * Cosines: rows trained by cosines are similar to rows of the other table but hardly to related rows of their own table, unlike
 * rows trained by dot products (goodbooks, softmax: recall@20 0.020 by target, 0.106 by context-cosine).
 * Citations: a paper's target row is trained by the papers it cites, its context row by the papers that cite it. Many papers have
 * only one of the two; configs/notes/citations.md has the experiments.
 * Nodes: propagated rows tell classes of nodes apart best (labels of planted blogs, 20 walks: target .22, normsum .24, propagated
 * .39). Each command computes them anew; if that would take more than some seconds, or the graph's file is gone, normsum is used.
 * Linked nodes are found best by comparing a target row with context rows, as training did (recall@20 of a node's held-out links,
 * cora: normsum 0.48, propagated 0.53, context 0.57; citeseer 0.57, 0.61, 0.65).
 */
#ifndef SPTX_ANSWERS_H
#define SPTX_ANSWERS_H

#include "list_scores.h"

/* Returns the score that is used if the user names none. named: 1 if each list has a name, and so may have a row of its own. */
enum list_score answers_score(const struct model *model, int named);
/* Returns the number of rows to search, from row 0 on: the items or, if `lists` is 1, the items and the lists, which follow
 * them. Returns 0 after fail(). */
uint64_t answers_rows(const struct model *model, int lists);
/* Returns the first row to search: 0; or, if `lists` is 1 in a run of documents or triples, the first document or relation, since
 * these are compared with each other. */
uint64_t answers_first(const struct model *model, int lists);
/* Return the table, or the score, with this name; NULL: the default of the drawing above. Return -1 after fail_usage(). The
 * table `propagated` is computed at its first use by this number of threads (0: one a core); -1 after fail() if the run has no
 * graph. */
int answers_view_named(struct model *model, const char *name, unsigned threads);
int answers_score_named(struct model *model, const char *name, int named, unsigned threads);

#endif
