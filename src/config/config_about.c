/* config_about: answers to questions about a config that depend on several keys. */
#include "config.h"
#include "config_keys.h"

const char *config_lines(const struct config *c) {
    return corpus_formats[c->corpus_format].lines;
}

const char *config_key_at(int index, const char **choices) {
    if (index < 0 || index >= CONFIG_KEYS) return NULL;
    const struct config_key *key = &config_keys[index];
    *choices = key->type == TYPE_CHOICE ? key->list : key->type == TYPE_TRUTH ? "yes|no" : NULL;
    return key->name;
}

int config_has_documents(const struct config *c) {
    return corpus_formats[c->corpus_format].documents;
}

int config_trains_words(const struct config *c) {
    return !config_has_documents(c) || c->examples_mode == MODE_CBOW || c->examples_words;
}

int config_has_lists(const struct config *c) {
    return c->examples_mode == MODE_USER && !config_has_documents(c);
}

int config_predicts_window(const struct config *c) {
    return c->examples_mode == MODE_WINDOW && config_subwords(c).max;
}

int config_is_by_item(const struct config *c) {
    return config_has_lists(c) && c->examples_targets == TARGETS_ALL;
}

int config_is_window(const struct config *c) {
    return c->examples_mode == MODE_WINDOW || c->examples_mode == MODE_CBOW || c->examples_mode == MODE_WALK ||
           config_has_documents(c);
}

unsigned config_ranks(const struct config *c) {
    if (c->ranks) return c->ranks;
    return c->device_ranks ? (unsigned)c->device_ranks : c->device_gpus ? (unsigned)c->device_gpus : 1;
}

struct hogwild_asked config_hogwild(const struct config *c) {
    return (struct hogwild_asked){
        .rule = {.rule = c->optimizer_rule, .momentum = c->optimizer_momentum, .clip = c->optimizer_clip},
        .rule_name = config_choice_name("optimizer", "rule", c->optimizer_rule),
        .loss = config_loss(c),
        .loss_name = config_choice_name("train", "loss", c->train_loss),
        .score_name = config_choice_name("train", "score", c->train_score),
        .mean = c->train_reduction == REDUCTION_MEAN,
        .ranks = config_ranks(c),
        .frozen = c->train_freeze != FREEZE_NONE};
}

int config_refuses_hogwild(const struct config *c, int gpu, char why[HOGWILD_WHY]) {
    struct hogwild_asked asked = config_hogwild(c);
    asked.gpu = gpu;
    return c->train_update == UPDATE_HOGWILD && hogwild_refuses(&asked, why);
}
