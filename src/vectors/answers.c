#include "answers.h"

#include "base/report.h"
#include "propagate.h"
#include "run_graph.h"

#include <stdlib.h>

static int has_lists(const struct model *model) {
    return model->vocab.lists > 0;
}

enum { SPREAD_AT_ONCE = 1 << 22 }; /* largest number of nodes and arcs of a graph for which `propagated` is the default table:
                                    * computing its rows takes 5 s on two cores */

/* Returns the default table (enum model_view), or -1 after fail(). */
static int default_view(const struct model *model) {
    if (has_lists(model)) return model->documents && model->item_targets ? VIEW_TARGET : VIEW_CONTEXT;
    if (model->mode == MODE_ADJACENCY) return VIEW_SUM;
    if (!run_has_graph(model)) return VIEW_TARGET;
    int within = run_graph_within(model, SPREAD_AT_ONCE);
    return within < 0 ? -1 : within ? VIEW_PROPAGATED : VIEW_NORMSUM;
}

/* Returns 0; -1 after fail() if the context rows do not belong to words. */
static int check_contexts(const struct model *model) {
    if (!model->tree) return 0;
    return fail("'%s' was trained with train.loss = hierarchical: its context rows are nodes of a tree, and no word has one; ask the "
                "table target",
                model->directory);
}

enum list_score answers_score(const struct model *model, int named) {
    if (model->tree) return LIST_SCORE_TARGET;
    if (has_lists(model)) return model->cosine ? LIST_SCORE_USER_COSINE : LIST_SCORE_USER;
    if (model->mode == MODE_ADJACENCY) return named ? LIST_SCORE_USER : LIST_SCORE_SUM;
    if (model->mode == MODE_WALK) return named ? LIST_SCORE_USER : LIST_SCORE_CONTEXT;
    return model->cosine ? LIST_SCORE_CONTEXT_COSINE : LIST_SCORE_TARGET;
}

static int check_rows(const struct model *model, int lists) {
    if (!lists) return model_items(model) ? 0 : fail("'%s' has no row but those of lists; wanted items", model->directory);
    if (!has_lists(model)) return fail("no list has a row in '%s': lists have some with examples.mode = user", model->directory);
    return model_check_list(model, model_items(model));
}

uint64_t answers_rows(const struct model *model, int lists) {
    return check_rows(model, lists) ? 0 : lists ? model->rows : model_items(model);
}

/* Computes each node's row of `normsum`, the sum of its unit target and context rows, and spreads these rows over the graph. */
static int make_propagated(struct model *model, struct pool *pool) {
    struct graph graph;
    if (run_graph_open(&graph, model, pool)) return -1;
    float *rows = model_matrix(model, VIEW_NORMSUM, 0, 0);
    int result = rows ? propagate(rows, model->dim, &graph, run_graph_backend(model), pool) : -1;
    graph_close(&graph);
    if (result)
        free(rows);
    else
        model->propagated = rows;
    return result;
}

/* Computes the table `propagated` at its first use; the other tables need no work. */
static int make_view(struct model *model, enum model_view view, unsigned threads) {
    if (view != VIEW_PROPAGATED || model->propagated) return 0;
    struct pool *pool = pool_open(threads);
    int result = pool ? make_propagated(model, pool) : -1;
    if (pool) pool_close(pool);
    return result;
}

uint64_t answers_first(const struct model *model, int lists) {
    return lists && (model->documents || model->relations) ? model_items(model) : 0;
}

int answers_view_named(struct model *model, const char *name, unsigned threads) {
    int view = name ? model_view_named(name) : default_view(model);
    if (view == VIEW_CONTEXT && check_contexts(model)) return -1;
    return view < 0 || make_view(model, (enum model_view)view, threads) ? -1 : view;
}

int answers_score_named(struct model *model, const char *name, int named, unsigned threads) {
    int score = name ? list_score_named(name) : (int)answers_score(model, named);
    if (score >= 0 && list_score_view((enum list_score)score) == VIEW_CONTEXT && check_contexts(model)) return -1;
    return score < 0 || make_view(model, list_score_view((enum list_score)score), threads) ? -1 : score;
}
