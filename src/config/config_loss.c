/* config_loss: the loss: resolves, checks and returns train.loss, train.score and the keys that change them. */
#include "config_keys.h"

#include "base/memory.h"
#include "base/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int config_has_tree(const struct config *c) {
    return c->train_loss == LOSS_HIERARCHICAL;
}

static int is_cosine(const struct config *c) {
    return c->train_score == SCORE_COSINE;
}

void config_choose_real(double *value, double chosen) {
    if (isnan(*value)) *value = chosen;
}

static int choose_text(char **text, const char *chosen) {
    if (strcmp(*text, "auto")) return 0;
    free(*text);
    *text = mem_text(chosen, strlen(chosen), "a key's text");
    return *text ? 0 : -1;
}

/* If scores are cosines, contexts must not be zeros at the beginning: the cosine of a row of zeros has no gradient. */
static int choose_inits(struct config *c) {
    const char *of_triples = "normal 0 0.001";
    int triples = c->examples_mode == MODE_TRIPLE;
    return choose_text(&c->model_target_init, triples ? of_triples : "word2vec") ||
                   choose_text(&c->model_context_init, triples ? of_triples : is_cosine(c) ? "word2vec" : "zeros")
               ? -1
               : 0;
}

int config_resolve_loss(struct config *c) {
    int softmax = c->train_loss == LOSS_SOFTMAX, contrastive = c->train_loss == LOSS_CONTRASTIVE;
    int triples = c->examples_mode == MODE_TRIPLE;
    if (c->train_score == SCORE_AUTO) c->train_score = !triples && (softmax || contrastive) ? SCORE_COSINE : SCORE_DOT;
    int user = config_has_lists(c), cosines = softmax && is_cosine(c), weighted = !isnan(c->train_negative_weight);
    config_choose_real(&c->train_temperature, !cosines ? 1 : user ? config_effort(c)->temperature : 0.1);
    config_choose_real(&c->train_negative_power, cosines && user && !weighted ? 1.15 : 0);
    config_choose_real(&c->train_margin, contrastive ? 0.8 : 0);
    config_choose_real(&c->train_negative_weight, contrastive ? 150 : 1);
    config_choose_real(&c->train_n3, triples ? 0.05 : 0);
    return choose_inits(c);
}

/* ---- what cannot work ---- */

static int is_zeros(const char *init) {
    return !strcmp(init, "zeros");
}

static int check_tree(const struct config *c) {
    if (!config_has_tree(c)) return 0;
    if (!config_is_window(c))
        return fail("train.loss = hierarchical predicts words of windows: it works with examples.mode = window, cbow and walk, and it "
                    "is %s",
                    config_choice_name("examples", "mode", c->examples_mode));
    if (c->negatives_count || c->negatives_per != PER_EXAMPLE)
        return fail("train.loss = hierarchical draws no negatives: a word is told from all others by a tree; leave negatives.count "
                    "and negatives.per out, or set train.loss = logistic");
    if (is_cosine(c) || c->train_temperature != 1)
        return fail("train.loss = hierarchical has the dot product as its score, and no temperature; leave train.%s out",
                    is_cosine(c) ? "score" : "temperature");
    if (c->train_freeze == FREEZE_CONTEXT && !*c->train_from)
        return fail("train.freeze = context with train.loss = hierarchical keeps the rows of a tree as they begin, which is untrained; "
                    "set train.from to a run of the same tree");
    return 0;
}

int config_check_loss(const struct config *c) {
    const char *loss = config_choice_name("train", "loss", c->train_loss);
    int softmax = c->train_loss == LOSS_SOFTMAX, contrastive = c->train_loss == LOSS_CONTRASTIVE;
    if (contrastive && c->train_temperature != 1)
        return fail("train.temperature = %g: the contrastive loss has a margin and no temperature; leave it at 1",
                    c->train_temperature);
    if (!contrastive && c->train_margin != 0)
        return fail("train.margin = %g works with train.loss = contrastive only, and it is %s", c->train_margin, loss);
    if (!contrastive && !softmax && c->train_negative_weight != 1)
        return fail("train.negative_weight = %g works with train.loss = softmax or contrastive only, and it is %s",
                    c->train_negative_weight, loss);
    if (!softmax && c->train_negative_power != 0)
        return fail("train.negative_power = %g works with train.loss = softmax only, and it is %s", c->train_negative_power, loss);
    if (softmax && c->train_negative_weight == 0)
        return fail("train.negative_weight = 0 leaves a softmax nothing to tell a positive from; set it above 0");
    if (c->train_negative_power > 0 && c->train_negative_weight != 1)
        return fail("train.negative_weight = %g changes nothing beside train.negative_power = %g, which takes the negatives' mean; "
                    "leave it at 1",
                    c->train_negative_weight, c->train_negative_power);
    if (is_cosine(c) && (is_zeros(c->model_target_init) || is_zeros(c->model_context_init)))
        return fail("model.%s_init = zeros with train.score = cosine: a row of zeros has no direction and never moves; set it "
                    "to word2vec", is_zeros(c->model_target_init) ? "target" : "context");
    if (check_tree(c)) return -1;
    if (c->train_loss != LOSS_LOGISTIC && !config_has_tree(c) && c->negatives_count == 0)
        return fail("train.loss = %s tells a positive from negatives, and negatives.count is 0", loss);
    return 0;
}

struct loss_options config_loss(const struct config *c) {
    return (struct loss_options){.kind = config_has_tree(c) ? LOSS_LOGISTIC : (enum loss_kind)c->train_loss,
                                 .score = (enum loss_score)c->train_score,
                                 .temperature = (float)c->train_temperature,
                                 .margin = (float)c->train_margin,
                                 .negative_weight = (float)c->train_negative_weight,
                                 .negative_power = (float)c->train_negative_power,
                                 .cubes = (float)c->train_n3,
                                 .weighted = c->corpus_weights != PAIR_WEIGHTS_NONE};
}
