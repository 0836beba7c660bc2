#include "answers.h"

#include "base/report.h"

static int has_lists(const struct model *model) {
    return model->vocab.lists > 0;
}

enum model_view answers_view(const struct model *model) {
    if (has_lists(model)) return VIEW_CONTEXT;
    if (model->mode == MODE_WALK) return VIEW_NORMSUM;
    return model->mode == MODE_ADJACENCY ? VIEW_SUM : VIEW_TARGET;
}

enum list_score answers_score(const struct model *model, int named) {
    if (has_lists(model)) return model->cosine ? LIST_SCORE_USER_COSINE : LIST_SCORE_USER;
    if (model->mode == MODE_ADJACENCY) return named ? LIST_SCORE_USER : LIST_SCORE_SUM;
    if (model->mode == MODE_WALK) return named ? LIST_SCORE_USER : LIST_SCORE_NORMSUM;
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

int answers_view_named(const struct model *model, const char *name) {
    return name ? model_view_named(name) : (int)answers_view(model);
}
