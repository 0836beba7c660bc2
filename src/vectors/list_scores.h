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
 * u and v are an item's target row and context row. For the last two scores, the list's own row is:
 *
 *   trained list                        its row; with examples.own below 1, as in training: examples.own x its row + (1 -
 *                                       examples.own) x the mean of its items' target rows
 *   new list                            the row that training would have given it: the list is folded in (below)
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
#include "features.h"
#include "known.h"
#include "names.h"
#include "search.h"

/* fold_in: computes the row that a new list would have got in training, by the run's loss (kernels/finished.h).
 *
 *   negatives   the same FOLD_NEGATIVES items for all lists, chosen by the weights of negatives.law; if negatives.exclude is set, a
 *               list's own items are left out
 *   steps       FOLD_STEPS, or twice as many for few negatives
 *   length      1 if scores are cosines; otherwise the root mean square length of the run's trained lists
 *
 * Lists that were not in training score as well as trained lists; configs/notes/items.md has the figures. A list's row does not depend on the other
 * lists of the same call or on the number of threads.
 */

enum {
    FOLD_NEGATIVES = 8192, /* number of negatives. New lists of gowalla have NDCG@20 0.149 with 1,024, 0.154 with 4,096, 0.156 with 8,192 and 0.159
                            * with all 40,980; trained lists have 0.1596 */
    FOLD_NEGATIVES_BPR = 1024, /* number of negatives with bpr: fewer, since it compares each positive with each negative */
    FOLD_STEPS = 4 /* number of steps; twice as many with FOLD_NEGATIVES / 2 negatives or fewer. Gowalla, all items as negatives: 0.1573 after 3
                    * steps, 0.1589 after 4, 0.1590 after 6, 0.1593 after 10. 100 items: NDCG@5 0.384 after 4, 0.446 after 8; trained lists 0.442 */
};

struct fold_in {
    const struct model *model;
    const struct backend_ops *ops;
    struct backend *own;         /* a CPU backend, opened if the caller's GPU has too little memory; otherwise NULL */
    struct backend_fold *solver; /* the solver, opened on `own` or on the caller's backend */
    struct pool *pool;           /* threads that read the rows of items */
    struct fold_problem problem; /* its rows of negatives are freed once the solver has copied them */
    uint32_t *ids;               /* [problem.count] item of each negative, rising */
    uint32_t *places;            /* [items] 1 + index of the item's row in the current call; 0: no list of the call contains it */
};

/* Returns 1 if new lists can be folded in: the run's lists have rows (examples.mode = user, examples.own above 0), and it was trained with
 * negatives. */
int fold_in_is_for(const struct model *model);

/* Chooses the negatives and reads their rows. Uses the caller's backend until fold_in_close(). threads = 0: one for each core. Returns 0, or -1
 * after fail(). */
int fold_in_open(struct fold_in *fold, const struct model *model, const struct backend_ops *ops, struct backend *backend,
                 unsigned threads);
void fold_in_close(struct fold_in *fold); /* may be called on a struct of zeros */

/* A list whose row is to be computed. */
struct fold_list {
    const uint64_t *codes; /* [count] rows of its items; numbers that are not items are ignored */
    uint64_t count;
    float *row; /* result [dim]; zeros if no item of the list is known, or if all items' rows are zeros */
};
/* Computes the row of each list. Returns 0, or -1 after fail(). */
int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count);

/* ---- scores ---- */

/* The features of a new list weigh as much as this number of its items. recall@20 of 300 planted people with 1, 4, 8 items: items alone .096 .157
 * .198; features as 1 item .147 .174 .206, as 2 .156 .182 .216, as 4 .156 .182 .210, as 8 .156 .176 .208; as 2, features exchanged at random .097
 * .165 .208. */
enum { FEATURES_ITEMS = 2 };

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
/* Returns a score's name for output. folded = 1: lists were folded in ("user-cosine folded"). */
const char *list_score_said(enum list_score score, int folded);
int list_score_named(const char *name); /* returns an enum list_score; -1 after fail_usage() for an unknown name */
/* Returns the score that compares rows of one table by cosine. */
enum list_score list_score_of_view(enum model_view view);

struct list_scores {
    const struct model *model;
    enum list_score score;
    struct search search;
    uint32_t *candidates; /* [search.rows] the rows of the model that are searched, rising; owned; NULL: rows 0 .. search.rows - 1 */
    int chosen; /* 1: the caller chose the candidates; answers then do not name the rows that a list bans */
    struct fold_in fold; /* opened when the first list must be folded in */
    unsigned threads;    /* threads for `fold` and `pool`; 0: one for each core */
    struct pool *pool;   /* opened when content is first added to answers */
    struct graph graph; /* the run's graph, opened by the first question with seen = 0; empty if the run has no graph */
};

/* Returns 1 if the score uses the lists' own rows (list_question.rows). */
int list_score_of_users(enum list_score score);

/* Returns 1 if the list must be folded in: it has no row (row = -1), the score uses lists' rows, and the run allows it. */
int list_score_folds(const struct model *model, enum list_score score, int64_t row);

/* The items that may be recommended. */
struct list_candidates {
    uint64_t first;       /* only rows below `first` may be recommended; 0: all items. Ignored if `rows` is set */
    const uint64_t *rows; /* [count] only these rows may be recommended, without those of lists. NULL: see `first` */
    uint64_t count;
    int only_new; /* 1: only new items (features.h), if `rows` and `first` are not set */
};
/* Adds new items and features to the model for answers by this score: features_open_of(). */
int list_scores_features(struct model *model, const struct features_asked *asked, enum list_score score, unsigned threads);
/* Opens a search among the candidates, on the device that device.* of `config` chooses (NULL: defaults). */
int list_scores_open(struct list_scores *scores, const struct model *model, enum list_score score,
                     const struct list_candidates *candidates, const struct config *config);
void list_scores_close(struct list_scores *scores); /* may be called on a struct of zeros */
int list_scores_fold(struct list_scores *scores, const struct fold_list *lists, uint64_t count); /* fold_in_solve(), by the opened search's backend */

/* A question: which lists get recommendations, and how. */
struct list_question {
    const uint64_t *starts; /* items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1] */
    const uint64_t *codes; /* rows of the model; numbers >= model_end() are unknown items, and skipped */
    const uint64_t *lists; /* [count] indices of the lists to answer; NULL: lists 0 .. count - 1 */
    const int64_t *rows; /* [list] its own row, or -1 if it has none; NULL: no list has one */
    uint64_t count;
    uint32_t k;
    int seen; /* 1: answers may contain items of the list. 0: they may not; in a run of a graph nor neighbours of these items, or, if the list is a
               * node, of that node */
    struct progress *progress; /* progress line, updated after each block; NULL: none */
};

/* Called with the answer to a list. found->banned: rows left out of the answer because the list contains them; empty if `seen` is 1 or the
 * candidates were given as rows. Returns 0, or -1 to stop. */
typedef int list_answer(void *user, uint64_t list, const struct search_found *found);

/* Answers all lists in order. If no item of a list is known, all items suit it equally, so its answer is the first rows. Returns 0, or -1 after
 * fail() or as soon as answer() returns -1. */
int list_scores_ask(struct list_scores *scores, const struct list_question *question, list_answer *answer, void *user);

/* answers: the defaults for questions to a finished run: which rows are searched, in which table, and by which score of lists.
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
 * Lists: lists' rows are in the vocabulary, too, but are searched only if the user asks for lists. Cosines: after training by cosines, rows are near
 * rows of the other table but hardly near related rows of their own table, unlike after training by dot products (goodbooks, softmax: recall@20 0.020
 * by target, 0.106 by context-cosine). Citations: a paper's target row is trained by the papers it cites, its context row by the papers that cite it.
 * Many papers have only one of the two; configs/notes/citations.md has the experiments. Nodes: propagated rows tell classes of nodes apart best
 * (labels of planted blogs, 20 walks: target .22, normsum .24, propagated .39). Each command computes them anew; if that would take more than some
 * seconds, or the graph's file is gone, normsum is used. Linked nodes are found best by comparing a target row with context rows, as training did
 * (recall@20 of a node's held-out links, cora: normsum 0.48, propagated 0.53, context 0.57; citeseer 0.57, 0.61, 0.65).
 */

/* Returns the default score. named: 1 if each list has a name, and so may have its own row. */
enum list_score answers_score(const struct model *model, int named);
/* Returns how many rows are searched, from row 0 on: the items; with lists = 1 also the lists, which follow. Returns 0 after fail(). */
uint64_t answers_rows(const struct model *model, int lists);
/* Returns the first row to search: 0; with lists = 1 in a run of documents or triples the first document or relation, since these are compared
 * only with each other. */
uint64_t answers_first(const struct model *model, int lists);
/* In some runs words have rows in one table and documents have rows in the other; the same is true of items and lists. Training fits the dot products
 * of two such rows, and not their cosines. Warns if questions and answers are compared in this way by cosines. rows: [count] rows of the questions;
 * DRAW_NONE: a question has only a vector; NULL: all have, which may be a document's or a list's. query, among: views from which the questions' and
 * the answers' rows are taken. */
void answers_warn_of_tables(const struct model *model, const uint32_t *rows, uint64_t count, enum model_view query, enum model_view among,
                            int lists, enum search_metric metric);
/* Return the table, or the score, with this name; NULL: the default (above). -1 after fail_usage(). The table `propagated` is computed at its
 * first use, by this number of threads (0: one for each core); -1 after fail() if the run has no graph. */
int answers_view_named(struct model *model, const char *name, unsigned threads);
int answers_score_named(struct model *model, const char *name, int named, unsigned threads);

/* propagate: spreads the rows of nodes over their graph, as ProNE does (Zhang et al. 2019, "ProNE: Fast and Scalable
 * Network Representation Learning", its second half).
 *
 *   F         the rows after the filter of kernels/finished.h
 *   result    U sqrt(S) of F = U S V^T, each row of length 2
 *
 * ProNE scales rows to length 1. Here it is 2, since a logistic regression penalizes large weights, and so fits shorter rows worse (on cora by one
 * and a half to two points of micro-F1), and rows of normsum, the alternative, are up to 2 long. Cosines do not depend on the length.
 *
 * S and V are computed from F^T F in float64 by Jacobi rotations: seconds for 512 columns, a minute or two for 1,024.
 */

/* Replaces the rows x [graph->nodes x dim] by rows spread over the graph. The backend `ops` does the filter (the CPU if the GPU lacks memory for
 * it), and the pool everything else. The result does not depend on the number of threads. Returns 0, or -1 after fail(). */
int propagate(float *x, uint32_t dim, const struct graph *graph, const struct backend_ops *ops, struct pool *pool);

/* list_items: reads files of lists (a user's books, a basket, the papers that a paper cites), and finds the row of each item in a model.
 *
 * A file is read as the run's corpus was: a line is a list's name and its items, or, with corpus.format = pairs, a
 * list's name and one item. If a list occurs again, its items are appended; an item that occurs twice is stored twice.
 */

struct list_items {
    uint64_t *starts;       /* [lists + 1] items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1] */
    uint64_t *codes;        /* row of each item in the model; model_end() or more: the model does not know the item */
    unsigned char *met;     /* [lists] 1: the file contains the list. NULL: all lists of the file are read */
    uint64_t count;         /* number of codes */
    struct list_item *item; /* while a file is read: its items, in the file's order */
    uint64_t capacity;
};

/* Reads lists from a file, or from `data` unless it is NULL (asked_read). add = 1: reads all lists, and adds their names to `lists` in the order
 * of the data; add = 0: reads only lists whose names are in `lists`, and sets `met` for those that the data contains. The code of an item that the
 * model does not know is model_end() + its number in `unknown`, to which it is added; model_end() if `unknown` is NULL. */
int list_items_read(struct list_items *items, const char *path, const struct gathered *data, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, int add, struct names *unknown);

void list_items_release(struct list_items *items); /* may be called on a struct of zeros */

#endif
