/* list_scores: finds the items that suit a list best, from the items that it contains.
 *
 *   score             query of a list             row of an item     compared by   what it finds
 *   target            mean of unit target rows    target row         cosine        items of the same lists
 *   context           mean of target rows         context row        dot product   what training itself compared
 *   context-cosine    mean of unit target rows    context row        cosine        what training compared by cosines
 *   normsum           mean of unit w              w = u/|u| + v/|v|  cosine
 *   sum               mean of unit w              w = u + v          cosine
 *   propagated        mean of unit w              w spread over the  cosine        nodes near in the graph
 *                                                 run's graph
 *   context-context   mean of unit context rows   context row        cosine        items that occur with the same items
 *   user              the list's own row          context row        dot product   what training itself compared
 *   user-cosine       the list's own row          context row        cosine        what training compared by cosines
 *
 * u and v are an item's target and context row. The query of the last two scores is the list's own row:
 *
 *   trained list                        its row; with examples.own below 1, as in training: examples.own x its row + (1 -
 *                                       examples.own) x the mean of its items' target rows
 *   list that was not trained           the row that training would have given it: the list is folded in (below)
 *   line of citations                   the target row of the paper that begins the line
 *   list in a run with examples.own = 0 the mean of its items' target rows
 *   list without a row in other runs    the mean of its items' context rows
 *
 * Lists are answered in blocks, so that memory does not grow with their number.
 */
#ifndef SPTX_LIST_SCORES_H
#define SPTX_LIST_SCORES_H

#include "base/pool.h"
#include "base/progress.h"
#include "corpus/numbered.h"
#include "kernels/backend.h"
#include "known.h"
#include "names.h"
#include "search.h"

/* fold_in: computes a row for a list that was never trained, by the run's loss (kernels/finished.h).
 *
 *   negatives   the same FOLD_NEGATIVES items for all lists, chosen by the weights of negatives.law; if negatives.exclude is set, a
 *               list's own items are left out
 *   steps       FOLD_STEPS, or twice as many for few negatives
 *   length      1 if scores are cosines; otherwise the root mean square length of the run's trained lists
 *
 * Lists that were not in training score as well as trained lists; configs/notes/items.md has the
 * figures. A list's row has the same bits whatever other lists are solved in the same call, and for any number of threads.
 */

enum {
    FOLD_NEGATIVES = 8192, /* number of negatives. NDCG@20 of new lists of gowalla: 0.149 with 1,024, 0.154 with 4,096, 0.156
                            * with 8,192, 0.159 with all 40,980; trained lists have 0.1596 */
    FOLD_NEGATIVES_BPR = 1024, /* number of negatives for bpr; fewer, since bpr compares each positive with each negative */
    FOLD_STEPS = 4 /* number of steps. Gowalla with all items as negatives: 3 steps give 0.1573, 4 give 0.1589, 6 give 0.1590, 10
                    * give 0.1593. With FOLD_NEGATIVES / 2 negatives or fewer, twice as many steps (100 items, NDCG@5 of trained
                    * lists 0.442: 4 steps give 0.384, 8 give 0.446) */
};

struct fold_in {
    const struct model *model;
    const struct backend_ops *ops;
    struct backend *own;         /* a CPU backend, which is opened if the caller's GPU does not have enough memory; otherwise
                                  * NULL */
    struct backend_fold *solver; /* the solver that `own` or the caller's backend has opened */
    struct pool *pool;           /* threads that read the rows of items */
    struct fold_problem problem; /* its rows of negatives are freed after opening, since the solver has a copy */
    uint32_t *ids;               /* [problem.count] the item that each negative is; rising */
    uint32_t *places;            /* [items] 1 + index of the item's row in the current call; 0: no list of the call has the item */
};

/* Returns 1 if new lists can be folded in: lists of the run have rows (examples.mode = user, examples.own above 0), and the run
 * was trained with negatives. */
int fold_in_is_for(const struct model *model);

/* Chooses the negatives and reads their rows. Uses the caller's backend until fold_in_close(). threads: number of threads; 0:
 * one a core. Returns 0, or -1 after fail(). */
int fold_in_open(struct fold_in *fold, const struct model *model, const struct backend_ops *ops, struct backend *backend,
                 unsigned threads);
void fold_in_close(struct fold_in *fold); /* may be called on a struct of zeros */

/* A list whose row is to be computed. */
struct fold_list {
    const uint64_t *codes; /* [count] rows of its items; numbers that are no row of an item are ignored */
    uint64_t count;
    float *row; /* result: [dim]; zeros if the list has no known item, or if all its items' rows are zeros */
};
/* Computes the row of each list. Returns 0, or -1 after fail(). */
int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count);

/* ---- scores ---- */

enum list_score {
    LIST_SCORE_TARGET,
    LIST_SCORE_CONTEXT,
    LIST_SCORE_CONTEXT_COSINE,
    LIST_SCORE_NORMSUM,
    LIST_SCORE_SUM,
    LIST_SCORE_PROPAGATED,
    LIST_SCORE_CONTEXT_CONTEXT,
    LIST_SCORE_USER,
    LIST_SCORE_USER_COSINE,
    LIST_SCORES
};

const char *list_score_name(enum list_score score);
/* Returns the name of a score, for output. folded: 1: lists were folded in ("user-cosine folded"). */
const char *list_score_said(enum list_score score, int folded);
int list_score_named(const char *name); /* returns an enum list_score; -1 after fail_usage() for an unknown name */
/* Returns the score that compares rows of one table by cosine. */
enum list_score list_score_of_view(enum model_view view);

struct list_scores {
    const struct model *model;
    enum list_score score;
    struct search search;
    uint32_t *candidates; /* [search.rows] rows of the model that are searched, rising; owned; NULL: rows 0 .. search.rows - 1 */
    struct fold_in fold; /* opened by the first question for which a list is folded in */
    unsigned threads;    /* number of threads for `fold`; 0: one a core */
    struct graph graph; /* the run's graph, opened by the first question with `seen` = 0, which excludes the items of lists;
                         * empty if the run has no graph */
};

/* Returns 1 if the score uses the lists' own rows (list_question.rows). */
int list_score_of_users(enum list_score score);

/* Returns 1 if the list must be folded in: it has no row (row = -1), the score uses rows of lists, and the run's lists can be
 * folded in. */
int list_score_folds(const struct model *model, enum list_score score, int64_t row);

/* The items that may be recommended. */
struct list_candidates {
    uint64_t first;       /* only the first `first` rows may be recommended; 0: all items. Not used if `rows` is set */
    const uint64_t *rows; /* [count] only these rows may be recommended; rows of lists among them are ignored. NULL: `first` says
                           * which */
    uint64_t count;
};
/* Opens a search among the candidates, on the device that device.* of `config` chooses (NULL: defaults). */
int list_scores_open(struct list_scores *scores, const struct model *model, enum list_score score,
                     const struct list_candidates *candidates, const struct config *config);
void list_scores_close(struct list_scores *scores); /* may be called on a struct of zeros */

/* A question: which lists to answer, and how. */
struct list_question {
    const uint64_t *starts; /* items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1] */
    const uint64_t *codes; /* rows of the model; numbers >= model->rows stand for unknown items, which are skipped */
    const uint64_t *lists; /* [count] indexes of the lists to answer; NULL: lists 0 .. count - 1 */
    const int64_t *rows; /* by list: its own row, or -1 if it has none; NULL: no list has a row */
    uint64_t count;
    uint32_t k;
    int seen; /* 1: the answer may contain items of the list; 0: it may not. In a run of a graph, with 0, it may not contain the
               * neighbours of the list's items, either; or, if the list is a node, the neighbours of that node */
    struct progress *progress; /* live line to update after each block; NULL: none */
};

/* Called with the answer to one list. found->banned: rows that are left out of the answer because the list contains them; none if
 * `seen` is 1, or if the candidates were given as rows. Returns 0, or -1 to stop. */
typedef int list_answer(void *user, uint64_t list, const struct search_found *found);

/* Answers all lists in order. A list without a known item is equally similar to all items, so its answer is the first rows.
 * Returns 0, or -1 after fail() or as soon as answer() returns -1. */
int list_scores_ask(struct list_scores *scores, const struct list_question *question, list_answer *answer, void *user);

/* answers: the defaults of questions to a finished run: which rows are searched, in which table, and how lists are scored.
 *
 *   a run of                                  rows    table     score of lists (below)
 *   words            (window, cbow)           words   target    target
 *   items of lists   (list)                   items   target    target; trained by cosines: context-cosine
 *   lists with rows  (user)                   items   context   user; trained by cosines: user-cosine
 *   documents        (user)                   words   context   user
 *   documents, words (cbow, or                words   target    user
 *                     examples.words = yes)
 *   citations, links (adjacency)              all     sum       user (by the paper's row); sum for items given by hand
 *   entities         (triple)                 all     context   (none: known.h)
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

/* propagate: spreads the rows of nodes over their graph, as ProNE does (Zhang et al. 2019, "ProNE: Fast and Scalable
 * Network Representation Learning", its second half).
 *
 *   F         the rows after the filter of kernels/finished.h
 *   result    U sqrt(S) of F = U S V^T, each row of length 2
 *
 * ProNE scales rows to length 1. They get length 2 here, since normsum rows are up to 2 long and a logistic regression, whose
 * penalty is on its weights, fits shorter rows worse: on cora by one and a half to two points of micro-F1. Cosines do not depend
 * on the length.
 *
 * S and V are computed from F^T F in float64 by Jacobi rotations: seconds for 512 columns, a minute or two for 1,024.
 */

/* Replaces the rows x [graph->nodes x dim] by their spread rows. The filter runs on the backend `ops`, or on the CPU if the GPU
 * lacks memory for it; the pool does everything else. Equal rows, graph and backend give equal bits for any number of threads.
 * Returns 0, or -1 after fail(). */
int propagate(float *x, uint32_t dim, const struct graph *graph, const struct backend_ops *ops, struct pool *pool);

/* list_items: reads files of lists (a user's books, a basket, the papers that a paper cites) and gives each item's row in a
 * model.
 *
 * A file is read as the run's corpus was: a line is a list's name and its items, or, with corpus.format = pairs, a
 * list's name and one item. If a list occurs again, its items are appended; an item that occurs twice is stored twice.
 */

struct list_items {
    uint64_t *starts;       /* [lists + 1] items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1] */
    uint64_t *codes;        /* the row of each item in the model; model->rows or more: an item that the model does not know */
    unsigned char *met;     /* [lists] 1: the file contains the list. NULL if all lists are read */
    uint64_t count;         /* number of codes */
    struct list_item *item; /* while a file is read: its items, in the order of the file */
    uint64_t capacity;
};

/* Reads lists from a file, or from `data` unless it is NULL (asked_read). add: 1: all lists are read, and their names added to `lists`
 * in the order of the data; 0: only lists whose names are in `lists` already, and `met` is set for each of them that the data contains.
 * An item that the model does not know is added to `unknown`, and its code is model->rows + its number there; if `unknown` is NULL, its
 * code is model->rows. */
int list_items_read(struct list_items *items, const char *path, const struct gathered *data, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, int add, struct names *unknown);

void list_items_release(struct list_items *items); /* may be called on a struct of zeros */

#endif
