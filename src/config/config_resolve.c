/* config_effort: train.effort, which changes the defaults of other keys so that a run on lists, a graph or triples is quick or thorough.
 * The defaults for lists are set here; defaults_by_size.def has the defaults for graphs and triples. */

#include "config_keys.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/triples.h"
#include "rows/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* These values were found by experiment: configs/notes/gowalla.md. */
static const struct effort efforts[] = {
    [EFFORT_QUICK] = {.dim = 128, .epochs = 20, .negatives = 1000, .lr = 0.002, .temperature = 0.1, .shared = 0},
    [EFFORT_THOROUGH] = {.dim = 256, .epochs = 60, .negatives = 4000, .lr = 0.001, .temperature = 0.09, .shared = 1},
};

const struct effort *config_effort(const struct config *config) {
    return &efforts[config->train_effort];
}

/* Returns the effort for this machine: thorough with a GPU, which does in a minute what takes a CPU hours. */
static int effort_of_machine(const struct config *c) {
    const struct backend_ops *named = config_named_backend(c), *ops = named ? named : backend_best();
    return ops->has_gpu ? EFFORT_THOROUGH : EFFORT_QUICK;
}

/* Resolves train.effort; examples.mode must be resolved. Returns 0, or -1 after fail(). */
static int resolve_effort(struct config *c) {
    int has_effort = config_has_lists(c) || c->examples_mode == MODE_WALK || c->examples_mode == MODE_TRIPLE;
    if (c->train_effort == EFFORT_THOROUGH && !has_effort)
        return fail(
            "train.effort = thorough is for examples.mode = user, walk and triple, whose defaults it changes, and the mode is %s; leave it out",
            config_choice_name("examples", "mode", c->examples_mode));
    if (c->train_effort == EFFORT_AUTO) c->train_effort = has_effort ? effort_of_machine(c) : EFFORT_QUICK;
    return 0;
}

/* Copies the listed keys from `before`, except keys that the user has set. */
static void keep_value(struct config *config, const struct config *before, const char *const (*keys)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!config_is_given(config, keys[i][0], keys[i][1]))
            config_copy_value(config, before, config_find_key(keys[i][0], keys[i][1]));
}

/* Returns 1 if `before` was written by a version without train.effort; later versions write this key into every config.ini. */
static int is_older(const struct config *before) {
    return !config_is_given(before, "train", "effort");
}

void config_fill_older(struct config *before) {
    if (!is_older(before)) return;
    before->train_effort = EFFORT_QUICK;
    if (!config_is_given(before, "train", "negative_power")) before->train_negative_power = 0;
}

void config_keep_effort(struct config *config, const struct config *before) {
    static const char *const of_effort[][2] = {
        {"model", "dim"}, {"train", "epochs"}, {"train", "temperature"}, {"train", "effort"}};
    static const char *const of_sharing[][2] = {
        {"examples", "targets"}, {"examples", "positives"}, {"negatives", "per"}, {"negatives", "count"}, {"optimizer", "lr"}};
    static const char *const of_version[][2] = {{"train", "negative_power"}};
    int user = config->examples_mode == MODE_USER && before->examples_mode == MODE_USER;
    int other_effort = config->train_effort != before->train_effort;
    int other_sharing = user && config->per_auto && config->negatives_per != before->negatives_per; /* by other ranks, too */
    if (user && is_older(before)) keep_value(config, before, of_version, 1);
    if (other_effort && config_is_given(config, "train", "effort")) return;
    if (other_effort) keep_value(config, before, of_effort, sizeof of_effort / sizeof *of_effort);
    if (other_effort || other_sharing) keep_value(config, before, of_sharing, sizeof of_sharing / sizeof *of_sharing);
}

/* config_loss: the loss: resolves, checks and returns train.loss, train.score and the keys that change them. */

int config_has_tree(const struct config *c) {
    return c->train_loss == LOSS_HIERARCHICAL;
}

static int is_cosine(const struct config *c) {
    return c->train_score == SCORE_COSINE;
}
static int is_distance(const struct config *c) {
    return c->examples_mode == MODE_TRIPLE && product_is_distance(config_product(c));
}
enum example_product config_product(const struct config *c) {
    _Static_assert(PRODUCT_COMPLEX == 1 + (int)TRAIN_COMPLEX && PRODUCT_TRANSLATION == 1 + (int)TRAIN_TRANSLATION, "products in one order");
    return (enum example_product)(1 + c->train_product);
}
int config_has_complex(const struct config *c) {
    return c->examples_mode == MODE_TRIPLE && product_is_complex(config_product(c));
}

/* Sets *value to `chosen` if it is still "auto" (NaN). */
static void choose_real(double *value, double chosen) {
    if (isnan(*value)) *value = chosen;
}

static int choose_text(char **text, const char *chosen) {
    return strcmp(*text, "auto") ? 0 : config_put_text(text, chosen);
}

static int resolve_loss(struct config *c) {
    int softmax = c->train_loss == LOSS_SOFTMAX, contrastive = c->train_loss == LOSS_CONTRASTIVE;
    int triples = c->examples_mode == MODE_TRIPLE;
    int near = is_distance(c) && !softmax;
    if (c->train_score == SCORE_AUTO)
        c->train_score = is_distance(c) ? SCORE_DISTANCE : !triples && (softmax || contrastive) ? SCORE_COSINE : SCORE_DOT;
    int user = config_has_lists(c), cosines = softmax && is_cosine(c), weighted = !isnan(c->train_negative_weight);
    choose_real(&c->train_temperature, !cosines ? 1 : user ? config_effort(c)->temperature : 0.1);
    choose_real(&c->train_negative_power, cosines && user && !weighted ? 1.15 : 0);
    choose_real(&c->train_margin, contrastive ? 0.8 : near ? 9 : 0);
    choose_real(&c->train_adversarial, near);
    choose_real(&c->train_relations, 0);
    choose_real(&c->train_negative_weight, contrastive ? 150 : 1);
    choose_real(&c->train_n3, triples && !is_distance(c) ? 0.05 : 0);
    choose_real(&c->train_n3_warmup, 0);
    /* With cosines contexts must not begin as zeros: the cosine of a row of zeros has no gradient. */
    const char *of_triples = "normal 0 0.001";
    return choose_text(&c->model_target_init, triples ? of_triples : "word2vec") ||
                   choose_text(&c->model_context_init, triples ? of_triples : is_cosine(c) || config_has_counts(c) ? "word2vec" : "zeros") ||
                   choose_text(&c->model_relation_init, c->model_target_init)
               ? -1
               : 0;
}

/* ---- what cannot work ---- */

static int check_tree(const struct config *c) {
    if (!config_has_tree(c)) return 0;
    if (!config_is_window(c))
        return fail("train.loss = hierarchical predicts words of windows: it works with examples.mode = window, cbow and walk, and it is %s",
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

/* Refuses keys that do not apply to train.loss = glove, and its own keys without it. */
static int check_counts(const struct config *c) {
    const char *loss = config_choice_name("train", "loss", c->train_loss);
    if (!config_has_counts(c))
        return c->examples_mode == MODE_COUNTS ? fail("examples.mode = counts is trained with train.loss = glove, and that is %s", loss) : 0;
    if (c->optimizer_rule != RULE_ADAGRAD)
        return fail("train.loss = glove is trained with optimizer.rule = adagrad, whose sums keep its column of ones as it is, and that is %s",
                    config_choice_name("optimizer", "rule", c->optimizer_rule));
    if (c->negatives_count) return fail("negatives.count = %" PRIu64 ": train.loss = glove has no negatives; leave it out", c->negatives_count);
    if (is_cosine(c) || c->train_temperature != 1)
        return fail("train.%s: train.loss = glove fits dot products; leave it out", is_cosine(c) ? "score = cosine" : "temperature");
    if (c->optimizer_weight_decay != 0)
        return fail("optimizer.weight_decay = %g would shrink the column of ones of train.loss = glove; leave it out",
                    c->optimizer_weight_decay);
    if (config_columns(c) > COLUMNS_MOST)
        return fail("model.dim = %" PRIu64 ": with two columns of biases (train.loss = glove) it may be %d at most", c->model_dim,
                    COLUMNS_MOST - LOSS_GLOVE_BIASES);
    return 0;
}

static int check_loss(const struct config *c) {
    const char *loss = config_choice_name("train", "loss", c->train_loss);
    int softmax = c->train_loss == LOSS_SOFTMAX, contrastive = c->train_loss == LOSS_CONTRASTIVE;
    if (contrastive && c->train_temperature != 1)
        return fail("train.temperature = %g: the contrastive loss has a margin and no temperature; leave it at 1",
                    c->train_temperature);
    if (!contrastive && c->train_margin != 0 && (!is_distance(c) || softmax))
        return fail("train.margin = %g works with train.loss = contrastive, or logistic with distances, and it is %s", c->train_margin, loss);
    if (c->train_adversarial > 0 && (c->train_loss != LOSS_LOGISTIC || c->negatives_per != PER_BATCH))
        return fail("train.adversarial = %g works with train.loss = logistic and negatives.per = batch only, and they are %s and %s",
                    c->train_adversarial, loss, config_choice_name("negatives", "per", c->negatives_per));
    if (!contrastive && !softmax && c->train_negative_weight != 1)
        return fail("train.negative_weight = %g works with train.loss = softmax or contrastive only, and it is %s",
                    c->train_negative_weight, loss);
    if (!softmax && c->train_negative_power != 0)
        return fail("train.negative_power = %g works with train.loss = softmax only, and it is %s", c->train_negative_power, loss);
    if (softmax && c->train_negative_weight == 0)
        return fail("train.negative_weight = 0 leaves a softmax nothing to tell a positive from; set it above 0");
    if (c->train_negative_power > 0 && c->train_negative_weight != 1)
        return fail("train.negative_weight = %g changes nothing beside train.negative_power = %g, which takes the negatives' mean; leave it at 1",
                    c->train_negative_weight, c->train_negative_power);
    int zeros = !strcmp(c->model_target_init, "zeros");
    if (is_cosine(c) && (zeros || !strcmp(c->model_context_init, "zeros")))
        return fail("model.%s_init = zeros with train.score = cosine: a row of zeros has no direction and never moves; set it "
                    "to word2vec", zeros ? "target" : "context");
    if (check_tree(c) || check_counts(c)) return -1;
    if (c->train_loss != LOSS_LOGISTIC && !config_has_tree(c) && !config_has_counts(c) && c->negatives_count == 0)
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
                                 .relations = (float)c->train_relations,
                                 .adversarial = (float)c->train_adversarial,
                                 .x_max = (float)c->glove_x_max,
                                 .x_power = (float)c->glove_alpha,
                                 .weighted = c->corpus_weights != PAIR_WEIGHTS_NONE || config_has_counts(c)};
}

/* config_resolve: replaces "auto" by values, and refuses keys that do not work together. */

/* ---- "auto" ---- */

enum { USUAL_POSITIVES = 4 }; /* default of examples.positives, also for windows, which do not use it */
enum { POOLED_ITEMS = 100 }; /* items averaged for a list, as in SimpleX */
enum { SHARED_NEGATIVES = 8192 }; /* negatives shared by a batch; found by experiment, configs/notes/gowalla.md */

static void choose(int *value, int automatic, int chosen) {
    if (*value == automatic) *value = chosen;
}
static void choose_count(uint64_t *value, uint64_t chosen) {
    if (*value == COUNT_AUTO) *value = chosen;
}

/* Returns 1 for an encoded corpus, in which lists have lost their names; 0 for other corpora or none; -1 after fail(). */
static int is_encoded(const struct config *c) {
    char **paths, head[sizeof CORPUS_STREAM_MAGIC] = "";
    int64_t count = config_paths("corpus.path", c->corpus_path, &paths);
    int kind = count > 0 ? file_head(paths[0], head, sizeof head) : (int)count;
    mem_free_texts(paths, count);
    return kind < 0 ? -1 : !strcmp(head, CORPUS_STREAM_MAGIC);
}

/* Chooses examples.mode for lists: user, which distinguishes lists best, since each has a row; but list mode, which trains items against items, if
 * lists have no names or a key is set that does not work with rows of lists. Returns 0, or -1 after fail(). */
static int choose_mode_of_lists(struct config *c) {
    int items = c->train_update == UPDATE_HOGWILD || (c->examples_targets != TARGETS_AUTO && c->negatives_per != PER_BATCH);
    if (!items) items = is_encoded(c);
    c->examples_mode = items ? MODE_LIST : MODE_USER;
    return items < 0 ? -1 : 0;
}

/* Returns 1 if no key that the user has set prevents a batch from sharing its negatives. */
static int may_share(const struct config *c) {
    int each = c->examples_targets == TARGETS_AUTO || c->examples_targets == TARGETS_ALL;
    int one = c->examples_positives == COUNT_AUTO || c->examples_positives == 1;
    int softmax = c->train_loss == LOSS_AUTO || c->train_loss == LOSS_SOFTMAX;
    return each && one && softmax && c->examples_own == 1 && !c->examples_replacement && c->train_update != UPDATE_HOGWILD &&
           config_ranks(c) == 1;
}

/* Sets the keys of train.loss = glove. Its optimizer is GloVe's AdaGrad: a step is gradient / sqrt(400 + sum of squares), which is GloVe's
 * rate of 0.05 for gradients whose sum of squares begins at 1. */
static int resolve_counts(struct config *c) {
    const struct corpus_format_properties *format = &corpus_formats[c->corpus_format];
    const char *set = c->train_loss == LOSS_AUTO ? "examples.mode = counts" : "train.loss = glove";
    if (c->examples_mode != MODE_AUTO && c->examples_mode != MODE_COUNTS)
        return fail("train.loss = glove fits counts of pairs: it needs examples.mode = counts, and that is %s",
                    config_choice_name("examples", "mode", c->examples_mode));
    if (c->corpus_format != FORMAT_TEXT && !format->edges)
        return fail("%s needs corpus.format = text, or graph with weights, and it is %s", set, format->name);
    if (c->examples_shrink && config_is_given(c, "examples", "shrink"))
        return fail("examples.shrink = yes draws the sizes of windows, and %s counts whole ones; leave it out", set);
    c->examples_shrink = 0;
    c->train_loss = LOSS_GLOVE;
    choose(&c->examples_mode, MODE_AUTO, MODE_COUNTS);
    choose_count(&c->examples_window, 10);
    choose_count(&c->examples_positives, 16);
    choose_count(&c->negatives_count, 0);
    choose_real(&c->examples_subsample, 0);
    choose(&c->examples_shuffle, TRUTH_AUTO, 1);
    choose_count(&c->train_epochs, 15);
    if (!config_is_given(c, "corpus", "max_sentence")) c->corpus_max_sentence = config_find_key("corpus", "max_sentence")->most;
    if (c->optimizer_rule != RULE_AUTO && c->optimizer_rule != RULE_ADAGRAD) return 0; /* check_counts() refuses it */
    c->optimizer_rule = RULE_ADAGRAD;
    choose_real(&c->optimizer_lr, 1);
    if (!config_is_given(c, "optimizer", "initial_accumulator")) c->optimizer_initial_accumulator = 400;
    return 0;
}

static int resolve_examples(struct config *c) {
    const struct corpus_format_properties *format = &corpus_formats[c->corpus_format];
    int text = format->sentences, adjacency = format->targets;
    choose_count(&c->corpus_min_count, text ? 5 : 1);
    int counts = c->train_loss == (int)LOSS_GLOVE || (c->train_loss == LOSS_AUTO && c->examples_mode == MODE_COUNTS);
    if (counts && resolve_counts(c)) return -1;
    if (c->examples_mode == MODE_AUTO && format->triples) c->examples_mode = MODE_TRIPLE;
    if (c->examples_mode == MODE_AUTO && !text && !adjacency && !format->edges && choose_mode_of_lists(c)) return -1;
    choose(&c->examples_mode, MODE_AUTO, format->documents ? MODE_USER : text ? MODE_WINDOW : adjacency ? MODE_ADJACENCY : MODE_WALK);
    int window = config_is_window(c), user = config_has_lists(c), walks = c->examples_mode == MODE_WALK;
    int triples = c->examples_mode == MODE_TRIPLE;
    if (resolve_effort(c)) return -1;
    const struct effort *effort = config_effort(c);
    choose_count(&c->model_dim, user ? effort->dim : !triples ? 128 : c->train_effort == EFFORT_THOROUGH ? 1000 : 200);
    int subwords = config_subwords(c).max > 0;
    choose(&c->examples_pooled_gradient, POOLED_AUTO, c->examples_mode == MODE_CBOW || subwords ? POOLED_WHOLE : POOLED_MEAN);
    choose_real(&c->examples_subsample, format->documents ? 1e-3 : text && window ? 1e-4 : 0);
    c->per_auto |= c->negatives_per == PER_AUTO;
    if (triples || (user && effort->shared && may_share(c))) choose(&c->negatives_per, PER_AUTO, PER_BATCH);
    int shared = c->negatives_per == PER_BATCH, each = c->examples_mode == MODE_LIST ? !text && !adjacency : user && shared;
    choose(&c->examples_targets, TARGETS_AUTO, each ? TARGETS_ALL : TARGETS_ONE);
    choose(&c->model_tied, TRUTH_AUTO, triples && c->train_product != TRAIN_REAL);
    choose_count(&c->examples_pooled, c->examples_own < 1 ? POOLED_ITEMS : 0);
    choose_count(&c->examples_positives, config_is_by_item(c) || triples ? 1 : user || c->examples_mode == MODE_ADJACENCY ? 0 : USUAL_POSITIVES);
    choose(&c->examples_short, SHORT_AUTO, adjacency || user ? SHORT_REPEAT : SHORT_SKIP);
    choose(&c->examples_shuffle, TRUTH_AUTO, !window);
    choose(&c->examples_shuffle_items, TRUTH_AUTO, window && !text && !walks);
    choose(&c->graph_directed, TRUTH_AUTO, config_walks_triples(c));
    choose_count(&c->examples_window, walks ? 10 : 5);
    uint64_t of_lists = shared ? SHARED_NEGATIVES : effort->negatives;
    choose_count(&c->negatives_count, config_has_tree(c) ? 0 : triples ? COUNT_ALL : user ? of_lists : walks ? 1
                                      : config_predicts_window(c) ? 10 : 5);
    choose(&c->negatives_law, LAW_AUTO, user || triples ? NOISE_UNIFORM : NOISE_UNIGRAM);
    choose(&c->negatives_per, PER_AUTO, config_predicts_window(c) && !config_has_tree(c) ? PER_PAIR : PER_EXAMPLE);
    choose(&c->train_loss, LOSS_AUTO, user || triples ? LOSS_SOFTMAX : LOSS_LOGISTIC);
    return 0;
}

/* Good defaults for models of items, found by experiment (configs/notes/items.md). Learning rate and schedule are set only if the rule is chosen
 * here; a rule that the user sets has its own defaults. */
static void resolve_items(struct config *c) {
    int walks = c->examples_mode == MODE_WALK, adjacency = corpus_formats[c->corpus_format].targets;
    int items = !corpus_formats[c->corpus_format].sentences && !walks;
    int user = config_has_lists(c), shared = c->negatives_per == PER_BATCH, own_rule = c->optimizer_rule == RULE_AUTO;
    int tens = items || config_has_documents(c), triples = c->examples_mode == MODE_TRIPLE;
    choose_count(&c->train_epochs, adjacency ? 120 : triples ? 40 : user ? config_effort(c)->epochs : tens ? 10 : walks ? 2 : 5);
    choose(&c->optimizer_rule, RULE_AUTO, user ? RULE_ADAM : items ? RULE_ADAGRAD : RULE_SGD);
    if (!items || !own_rule) return;
    choose_real(&c->optimizer_lr, adjacency ? 0.05 : triples ? 0.1 : shared ? 0.001 : user ? config_effort(c)->lr : 0.25);
    choose(&c->optimizer_schedule, SCHEDULE_AUTO, SCHEDULE_LINEAR);
}

/* Values have torch.optim's defaults, except sgd's learning rates, which are word2vec's or were found by experiment
 * (configs/notes/rules.md). */
static void resolve_optimizer(struct config *c) {
    int rule = c->optimizer_rule;
    struct rule_options usual = rules_defaults(rule);
    choose(&c->model_state_precision, PRECISION_AUTO, c->model_precision);
    choose_real(&c->optimizer_lr, rule != RULE_SGD ? usual.lr : c->examples_mode == MODE_CBOW   ? 0.06
                                                    : c->examples_mode == MODE_WALK ? 0.01
                                                    : config_predicts_window(c)     ? 0.075
                                                    : config_has_documents(c)       ? 0.05
                                                                                    : 0.025);
    choose(&c->optimizer_schedule, SCHEDULE_AUTO, rule == RULE_SGD ? SCHEDULE_LINEAR : SCHEDULE_CONSTANT);
#define NUMBER(name, fallback, lowest, highest, rules, help)
#define BY_RULE(name, fallback, lowest, highest, rules, help) choose_real(&c->optimizer_##name, usual.name);
#define FLAG(name, rules, help)
#include "kernels/optimizers.def"
}

enum { CLIP_OF_SUMS = 30 }; /* for sgd in batches; found by experiment, configs/notes/rules.md */

/* Text and walks are trained lock-free with sgd if possible; several ranks train them in batches. In a batch the gradients of a row
 * are summed over all its places, and sgd, whose step is as long as that sum, diverges unless the sum is clipped. */
static void resolve_update(struct config *c) {
    char why[HOGWILD_WHY];
    int many = config_ranks(c) > 1, no_clip = isnan(c->optimizer_clip);
    struct hogwild_asked alone = config_hogwild(c);
    alone.ranks = 1;
    if (no_clip) alone.rule.clip = 0;
    int words = corpus_formats[c->corpus_format].sentences || c->examples_mode == MODE_WALK;
    int plain = words && c->optimizer_rule == RULE_SGD && !hogwild_refuses(&alone, why);
    c->update_auto |= c->train_update == UPDATE_AUTO;
    c->clip_auto |= no_clip;
    choose(&c->device_matmul, MATMUL_AUTO, c->examples_mode == MODE_TRIPLE ? MATMUL_TF32 : MATMUL_FLOAT32);
    if (config_has_counts(c)) plain = !(config_named_backend(c) ? config_named_backend(c) : backend_best())->has_gpu && !hogwild_refuses(&alone, why);
    choose(&c->train_update, UPDATE_AUTO, plain && !many ? UPDATE_HOGWILD : UPDATE_BATCH);
    int sums = c->optimizer_rule == RULE_SGD && c->train_update == UPDATE_BATCH && c->train_reduction == REDUCTION_SUM;
    choose_real(&c->optimizer_clip, sums ? CLIP_OF_SUMS : 0);
}

static int resolve_run(struct config *c) {
    struct config_times times;
    resolve_update(c);
    config_read_times(c->run_checkpoint_every, &times); /* cannot fail: the text was checked when it was set */
    c->checkpoint_seconds = times.seconds;
    c->checkpoint_share = times.share;
    c->checkpoint_steps = times.steps;
    c->checkpoint_epochs = times.epochs;
    if (*c->run_dir) return 0;
    if (!c->name && config_take_corpus_name(c)) return -1;
    char *directory = file_join("runs", c->name ? c->name : "run");
    if (!directory) return -1;
    free(c->run_dir);
    c->run_dir = directory;
    return 0;
}

/* ---- what cannot work ---- */

enum { FORMAT_NAMES = 64 };
static const size_t COLUMNS = offsetof(struct corpus_format_properties, columns),
                    RATINGS = offsetof(struct corpus_format_properties, ratings),
                    NAMES = offsetof(struct corpus_format_properties, names),
                    TARGETS = offsetof(struct corpus_format_properties, targets),
                    EDGES = offsetof(struct corpus_format_properties, edges),
                    TRIPLES = offsetof(struct corpus_format_properties, triples);

/* Lists the formats that have a property: "lists or pairs". `property`: offset in struct corpus_format_properties. */
static const char *formats_with(size_t property, char out[FORMAT_NAMES]) {
    size_t used = 0;
    for (int i = 0; i < CORPUS_FORMATS; i++)
        if (*(const int *)((const char *)&corpus_formats[i] + property))
            used = text_add(out, FORMAT_NAMES, used, "%s%s", used ? " or " : "", corpus_formats[i].name);
    return out;
}

/* Refuses keys that need a property which the corpus' format does not have. */
static int check_format(const struct config *c) {
    const struct corpus_format_properties *format = &corpus_formats[c->corpus_format];
    char others[FORMAT_NAMES];
    if (strcmp(c->corpus_min_rating, "none") && !format->ratings)
        return fail("corpus.min_rating = %s needs corpus.format = %s, whose lines have ratings, and it is %s",
                    c->corpus_min_rating, formats_with(RATINGS, others), format->name);
    if (c->corpus_weights && !format->ratings)
        return fail("corpus.weights = %s needs corpus.format = %s, whose lines have ratings, and it is %s%s",
                    config_choice_name("corpus", "weights", c->corpus_weights), formats_with(RATINGS, others), format->name,
                    format->edges ? "; graph.weights weighs edges" : "");
    if (c->corpus_weights && config_is_window(c))
        return fail("corpus.weights = %s weighs the positives of lists: it works with examples.mode = user and list, and the mode is %s",
                    config_choice_name("corpus", "weights", c->corpus_weights),
                    config_choice_name("examples", "mode", c->examples_mode));
    if (c->corpus_phrases && c->corpus_format != FORMAT_TEXT)
        return fail("corpus.phrases = yes needs corpus.format = text, and it is %s", format->name);
    if (strcmp(c->corpus_columns, "auto") && !format->columns)
        return fail("corpus.columns = %s needs corpus.format = %s, whose lines have columns, and it is %s", c->corpus_columns,
                    formats_with(COLUMNS, others), format->name);
    if (c->corpus_names != NAMES_AUTO && format->rows != LOOK_LISTS && !format->documents)
        return fail("corpus.names = %s needs corpus.format = lists or documents, and it is %s",
                    config_choice_name("corpus", "names", c->corpus_names), format->name);
    if (c->corpus_names == NAMES_FILE && !format->documents)
        return fail("corpus.names = file needs corpus.format = documents, and it is %s", format->name);
    if (*c->corpus_item_features && format->rows != LOOK_LISTS && format->rows != LOOK_PAIRS)
        return fail("corpus.item_features = %s is for lists of items: it needs corpus.format = lists or pairs, and that is %s",
                    c->corpus_item_features, format->name);
    if (*c->corpus_list_features && format->rows != LOOK_LISTS && format->rows != LOOK_PAIRS)
        return fail("corpus.list_features = %s is for lists: it needs corpus.format = lists or pairs, and that is %s", c->corpus_list_features,
                    format->name);
    if (*c->corpus_list_features && (c->examples_mode != MODE_USER || !(c->examples_own > 0)))
        return fail("corpus.list_features = %s is for lists that have rows of their own: it needs examples.mode = user, with examples.own above 0",
                    c->corpus_list_features);
    if (*c->corpus_feature_words && !*c->corpus_item_features && !*c->corpus_list_features)
        return fail("corpus.feature_words = %s are columns of corpus.item_features or list_features, and neither is set", c->corpus_feature_words);
    if (*c->corpus_events && !format->ratings)
        return fail("corpus.events = %s needs corpus.format = %s, and it is %s", c->corpus_events, formats_with(RATINGS, others), format->name);
    if (c->corpus_literals && !format->triples)
        return fail("corpus.literals = yes needs corpus.format = %s, and it is %s", formats_with(TRIPLES, others), format->name);
    if (format->rows == LOOK_TEXT && (c->corpus_header == HEADER_YES || c->corpus_separator != SEPARATOR_AUTO))
        return fail("corpus.%s is for rows of fields (lists, adjacency, pairs, graph), and corpus.format is %s",
                    c->corpus_header == HEADER_YES ? "header = yes" : "separator", format->name);
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (c->graph_directed && format->triples && c->examples_mode == MODE_TRIPLE)
        return fail("graph.directed = yes is for walks: it needs examples.mode = walk, and that is %s", mode);
    if (((c->graph_directed && !config_walks_triples(c)) || c->graph_weights != WEIGHTS_AUTO) && !format->edges)
        return fail("graph.%s = %s needs corpus.format = %s, whose lines are edges, and it is %s",
                    c->graph_weights == WEIGHTS_AUTO ? "directed" : "weights",
                    c->graph_weights == WEIGHTS_AUTO ? "yes" : config_choice_name("graph", "weights", c->graph_weights),
                    formats_with(EDGES, others), format->name);
    const struct config_key *longest = config_find_key("corpus", "max_sentence");
    char text[CONFIG_BYTES];
    if (!format->sentences && strcmp(config_text_of(c, longest, text), longest->fallback) &&
        !(config_has_counts(c) && c->corpus_max_sentence == longest->most))
        return fail("%s = %s splits sentences of text, and corpus.format is %s; leave it out", longest->name, text, format->name);
    if (!c->triples_reciprocal && !format->triples)
        return fail("triples.reciprocal = no needs corpus.format = %s, and it is %s", formats_with(TRIPLES, others), format->name);
    if (!c->triples_reciprocal && c->examples_mode == MODE_WALK)
        return fail("triples.reciprocal = no: walks over triples have no reciprocals; leave it out");
    if (!c->walks_relations && !config_walks_triples(c))
        return fail("walks.relations = no leaves relations of triples out of walks: it needs corpus.format = %s with examples.mode = walk, and they "
                    "are %s and %s", formats_with(TRIPLES, others), format->name, mode);
    if (format->triples ? c->examples_mode != MODE_TRIPLE && c->examples_mode != MODE_WALK : c->examples_mode == MODE_TRIPLE)
        return fail("examples.mode = %s with corpus.format = %s: triples (corpus.format = %s) are trained with examples.mode = triple or walk, "
                    "and nothing else is trained with triple", mode, format->name, formats_with(TRIPLES, others));
    if (c->examples_mode == MODE_USER && !format->names)
        return fail("examples.mode = user needs lists with names (corpus.format = %s), and corpus.format is %s",
                    formats_with(NAMES, others), format->name);
    if (c->examples_mode == MODE_ADJACENCY && format->sentences)
        return fail("examples.mode = adjacency needs lines of a target and its contexts, and corpus.format is %s; "
                    "set corpus.format = %s, or examples.mode = window",
                    format->name, formats_with(TARGETS, others));
    if (c->examples_mode != MODE_COUNTS && (format->edges || config_walks_triples(c)) != (c->examples_mode == MODE_WALK))
        return fail("examples.mode = %s with corpus.format = %s: a graph is walked (corpus.format = %s with examples.mode = walk; or triples), "
                    "and nothing else is", mode, format->name, formats_with(EDGES, others));
    return 0;
}

/* Refuses keys of a section that the run does not use, unless they have their defaults, as in the config.ini of every run. */
static int check_unused(const struct config *c) {
    for (const struct config_key *key = config_keys; key < config_keys + CONFIG_KEYS; key++) {
        char text[CONFIG_BYTES];
        const char *wanted = !strcmp(key->section, "walks") && c->examples_mode != MODE_WALK ? "examples.mode = walk"
                             : !strcmp(key->section, "glove") && !config_has_counts(c)      ? "train.loss = glove"
                                                                                            : NULL;
        const char *value = wanted ? config_text_of(c, key, text) : key->fallback;
        if (strcmp(value, key->fallback)) return fail("%s = %s has no effect without %s; leave it out", key->name, value, wanted);
    }
    return 0;
}

/* Checks the keys of documents, whose rows are targets beside words or alone. */
static int check_documents(const struct config *c) {
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (!config_has_documents(c))
        return c->examples_words ? fail("examples.words = yes trains the words of documents: it needs corpus.format = documents, and "
                                        "that is %s", corpus_formats[c->corpus_format].name) : 0;
    if (c->examples_mode != MODE_USER && c->examples_mode != MODE_CBOW)
        return fail("corpus.format = documents is trained with examples.mode = user (a document predicts its words, PV-DBOW) or cbow (a "
                    "document and a window's words predict a word, PV-DM), and the mode is %s", mode);
    if (c->examples_words && c->examples_mode == MODE_CBOW)
        return fail("examples.words = yes works with examples.mode = user only: with cbow words are always trained; leave it out");
    if (config_subwords(c).max)
        return fail("examples.subwords = %s is for corpus.format = text, and it is documents; set examples.subwords = none",
                    c->examples_subwords);
    if (c->examples_targets != TARGETS_ONE || c->examples_own < 1 || c->examples_shuffle_items)
        return fail("examples.targets, own and shuffle_items are for lists, and corpus.format is documents, whose words have an order; "
                    "leave them out");
    return 0;
}

/* Checks the keys of targets that are means of rows. */
static int check_pools(const struct config *c) {
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (c->examples_mode == MODE_CBOW && c->negatives_per == PER_PAIR)
        return fail("negatives.per = pair with examples.mode = cbow: a window's mean is one target and has one pair; set negatives.per = example");
    int subwords = config_subwords(c).max > 0;
    if (subwords && c->examples_mode != MODE_WINDOW && c->examples_mode != MODE_CBOW)
        return fail("examples.subwords = %s works with examples.mode = window and cbow only, and it is %s; set examples.subwords = none",
                    c->examples_subwords, mode);
    if (c->examples_pooled_gradient == POOLED_WHOLE && c->examples_mode != MODE_CBOW && !subwords)
        return fail("examples.pooled_gradient = whole works with examples.mode = cbow and with examples.subwords only, and the mode is %s",
                    mode);
    if (c->examples_pooled_gradient == POOLED_SUM && c->examples_mode != MODE_CBOW)
        return fail("examples.pooled_gradient = sum works with examples.mode = cbow only, and the mode is %s", mode);
    if (c->examples_own < 1 && c->examples_mode != MODE_USER)
        return fail("examples.own = %g weighs a list's own row: it works with examples.mode = user only, and it is %s",
                    c->examples_own, mode);
    if (c->examples_own < 1 && c->examples_replacement)
        return fail("examples.own = %g splits a list into positives and the items of a mean, and examples.replacement = yes "
                    "draws positives that leave no such rest; set one of the two",
                    c->examples_own);
    if (c->examples_own == 1 && c->examples_pooled)
        return fail("examples.pooled = %" PRIu64 " bounds a mean of items, and examples.own = 1 has none; set that below 1",
                    c->examples_pooled);
    return 0;
}

/* Checks a config in which each item of a list is an example. */
static int check_by_item(const struct config *c) {
    if (c->examples_own < 1)
        return fail("examples.own = %g sets a mean of a list's items against its positives, and with examples.targets = all each "
                    "item is an example by itself; set one of the two",
                    c->examples_own);
    if (c->examples_positives != 1 || c->examples_replacement)
        return fail("examples.targets = all with examples.mode = user makes an example of each item, its one positive: leave "
                    "examples.positives and examples.replacement out");
    if (c->train_update == UPDATE_HOGWILD)
        return fail("examples.targets = all with examples.mode = user is trained in batches; set train.update = batch");
    return 0;
}

/* Refuses keys of triples in other modes, and in triple mode keys of other modes. */
static int check_triples(const struct config *c) {
    int triples = c->examples_mode == MODE_TRIPLE;
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (!triples && c->negatives_count == COUNT_ALL)
        return fail("negatives.count = all works with examples.mode = triple only, and it is %s", mode);
    const char *product = config_choice_name("train", "product", c->train_product);
    if (!triples && c->train_product != TRAIN_COMPLEX)
        return fail("train.product = %s combines a triple's head and relation: it works with examples.mode = triple only, and it is %s", product,
                    mode);
    if (!triples && c->train_relations > 0)
        return fail("train.relations = %g works with examples.mode = triple only, and it is %s", c->train_relations, mode);
    if (is_distance(c) != (c->train_score == SCORE_DISTANCE))
        return fail("train.score = %s: triples are compared by distance with train.product = rotation or translation, and only then; leave it out",
                    config_choice_name("train", "score", c->train_score));
    if (!triples && c->model_tied)
        return fail("model.tied = yes works with examples.mode = triple only, and it is %s", mode);
    if (!triples && c->train_n3 > 0)
        return fail("train.n3 = %g works with examples.mode = triple only, and it is %s", c->train_n3, mode);
    if (!triples && strcmp(c->model_relation_init, c->model_target_init))
        return fail("model.relation_init = '%s' works with examples.mode = triple only, and it is %s", c->model_relation_init, mode);
    if (c->train_n3_warmup > 0 && c->train_n3 == 0)
        return fail("train.n3_warmup = %g raises the penalty train.n3, which is 0; leave it out", c->train_n3_warmup);
    if (!triples) return 0;
    if (config_has_complex(c) && c->model_dim % 2)
        return fail("model.dim = %" PRIu64 " is odd, and with train.product = %s two columns are a number; set it to %" PRIu64
                    ", or train.product = real",
                    c->model_dim, product, c->model_dim + 1);
    /* 1: these rows begin as zeros */
    int contexts = !strcmp(c->model_context_init, "zeros"), relations = !strcmp(c->model_relation_init, "zeros");
    int rotation = c->train_product == TRAIN_ROTATION, heads = c->model_tied ? contexts : !strcmp(c->model_target_init, "zeros");
    if (c->train_product == TRAIN_TRANSLATION ? heads && contexts && relations : heads || (rotation && relations))
        return fail("model.%s_init = zeros with train.product = %s: rows of %s that begin as zeros never move, for their gradients are 0; leave "
                    "it out",
                    heads && c->model_tied                                   ? "context"
                    : !heads && config_is_given(c, "model", "relation_init") ? "relation"
                                                                             : "target",
                    product, heads ? "heads" : "relations");
    if (is_distance(c) && c->train_n3 > 0)
        return fail("train.n3 = %g: train.product = %s has no penalty; leave it out", c->train_n3, product);
    if (is_cosine(c) && c->train_relations > 0)
        return fail("train.relations = %g works with dot products and distances, and train.score is cosine", c->train_relations);
    if (c->negatives_per != PER_BATCH)
        return fail("negatives.per = %s with examples.mode = triple: triples have the same negatives in the whole batch; leave it out",
                    config_choice_name("negatives", "per", c->negatives_per));
    if (c->examples_positives != 1 || c->examples_replacement || c->examples_own < 1)
        return fail("examples.%s is for lists: a triple's only positive is its tail; leave it out",
                    c->examples_own < 1 ? "own" : c->examples_replacement ? "replacement" : "positives");
    if (c->train_update == UPDATE_HOGWILD)
        return fail("examples.mode = triple is trained in batches; set train.update = batch");
    return 0;
}

/* With negatives.per = batch (all pairs of a batch have the same negatives): checks the other keys on which this depends. */
static int check_shared(const struct config *c) {
    int triples = c->examples_mode == MODE_TRIPLE;
    if (c->negatives_per != PER_BATCH) return 0;
    if (!triples && (c->examples_mode != MODE_USER || c->examples_targets != TARGETS_ALL))
        return fail("negatives.per = batch works with examples.mode = triple, and with user and examples.targets = all, and they are %s and %s",
                    config_choice_name("examples", "mode", c->examples_mode),
                    config_choice_name("examples", "targets", c->examples_targets));
    if (c->train_loss != LOSS_SOFTMAX && c->train_loss != LOSS_LOGISTIC)
        return fail("negatives.per = batch works with train.loss = softmax and logistic only, and it is %s",
                    config_choice_name("train", "loss", c->train_loss));
    if (!c->negatives_count)
        return fail("negatives.per = batch with negatives.count = 0 leaves a batch no negatives to share; set negatives.count above 0");
    if (config_ranks(c) > 1 && c->train_score == SCORE_COSINE)
        return fail("negatives.per = batch with train.score = cosine is trained by one process, and there are %u; set train.score = dot%s",
                    config_ranks(c), triples ? "" : ", or negatives.per = example");
    if (c->negatives_count != COUNT_ALL && c->train_batch != COUNT_AUTO && c->negatives_count &&
        c->train_batch > (uint64_t)INT32_MAX / c->negatives_count)
        return fail("negatives.per = batch with train.batch = %" PRIu64 " and negatives.count = %" PRIu64
                    " makes more than 2^31 scores a step; lower one of the two",
                    c->train_batch, c->negatives_count);
    return 0;
}

/* Checks that examples.subsample, examples.targets and the keys of shuffling work with examples.mode. */
static int check_draws(const struct config *c) {
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (c->examples_subsample > 0 && !config_is_window(c))
        return fail(
            "examples.subsample = %g works with examples.mode = window and cbow only, and it is %s; set examples.subsample = 0",
            c->examples_subsample, mode);
    if (c->examples_targets == TARGETS_ALL && c->examples_mode != MODE_LIST && c->examples_mode != MODE_USER)
        return fail("examples.targets = all makes an example of each item of a list: it works with examples.mode = list and user only, and it is %s",
                    mode);
    if (config_is_by_item(c) && check_by_item(c)) return -1;
    if (c->examples_targets == TARGETS_NEW && (c->train_freeze != FREEZE_KNOWN || c->examples_mode != MODE_LIST))
        return fail("examples.targets = new is for lists whose known items stay as they are: it needs examples.mode = list and "
                    "train.freeze = known, and they are %s and %s",
                    mode, config_choice_name("train", "freeze", c->train_freeze));
    if (c->examples_mode == MODE_WALK && (c->examples_shuffle || c->examples_shuffle_items))
        return fail("examples.%s = yes with examples.mode = walk: walks begin in a drawn order as it is, and go from neighbour to "
                    "neighbour; leave it out",
                    c->examples_shuffle ? "shuffle" : "shuffle_items");
    if (config_is_window(c) && c->examples_positives != USUAL_POSITIVES)
        return fail("examples.positives = %" PRIu64 " is for lists: a window's positives are all of its words, and examples.mode is %s; leave it out",
                    c->examples_positives, mode);
    if (c->examples_replacement && c->examples_positives == 0 && !config_is_window(c))
        return fail("examples.replacement = yes draws a number of positives, and examples.positives = 0 takes all; set one of the two");
    return 0;
}

static int check_optimizer(const struct config *c) {
    const char *rule = config_choice_name("optimizer", "rule", c->optimizer_rule);
    int adam = RULES_ALL_ADAMS >> c->optimizer_rule & 1;
    if (c->optimizer_rule == RULE_SGD && c->optimizer_nesterov && c->optimizer_momentum == 0)
        return fail("optimizer.nesterov = yes needs optimizer.momentum above 0");
    if (adam && (c->optimizer_beta1 == 1 || c->optimizer_beta2 == 1))
        return fail("optimizer.beta1 = %g and beta2 = %g: %s divides by 1 - beta, so both must be below 1",
                    c->optimizer_beta1, c->optimizer_beta2, rule);
    if (!rules_has(c->optimizer_rule, "weight_decay") && c->optimizer_weight_decay != 0)
        return fail("optimizer.weight_decay = %g: %s has no weight decay; set it to 0, or use %s",
                    c->optimizer_weight_decay, rule, c->optimizer_rule == RULE_SPARSE_ADAM || c->optimizer_rule == RULE_ROWWISE_ADAM ? "adam"
                                                     : RULE_BY_ROW(c->optimizer_rule)      ? "adagrad"
                                                     : c->optimizer_rule == RULE_FTRL      ? "optimizer.l2"
                                                                                           : "another rule");
    if (c->optimizer_rule == RULE_RPROP && c->optimizer_step_min > c->optimizer_step_max)
        return fail("optimizer.step_min = %g is above optimizer.step_max = %g", c->optimizer_step_min, c->optimizer_step_max);
    return 0;
}

/* Refuses keys for several GPUs in a run that does not have several GPUs. */
static int check_gpus(const struct config *c) {
    if (c->device_gpus < 2 && c->device_share != SHARE_AUTO)
        return fail("device.share = %s is for several GPUs, and device.gpus is %" PRIu64 ": set it to their number, or leave device.share out",
                    config_choice_name("device", "share", c->device_share), c->device_gpus);
    if (c->train_merge_every == COUNT_AUTO || (c->device_gpus > 1 && c->device_share != SHARE_COLUMNS)) return 0;
    return fail("train.merge_every = %" PRIu64 " is for copies of the tables on several GPUs, and %s: leave train.merge_every out",
                c->train_merge_every, c->device_gpus > 1 ? "device.share is columns" : "device.gpus asks for none");
}

static int check_ranks(const struct config *c) {
    unsigned ranks = config_ranks(c);
    if (c->device_gpus > 1 && ranks > c->device_gpus)
        return fail("device.gpus = %" PRIu64 ", and this run has %u ranks: begin it without mpirun, or leave the key out",
                    c->device_gpus, ranks);
    if (ranks > 1 && RULE_BY_ROW(c->optimizer_rule))
        return fail("optimizer.rule = %s needs all columns of a row in one process, and this run has %u ranks, which share them out; "
                    "set optimizer.rule = %s, or begin it without ranks",
                    config_choice_name("optimizer", "rule", c->optimizer_rule), ranks,
                    c->optimizer_rule == RULE_ROWWISE_ADAM ? "adam" : "adagrad");
    if (c->model_dim < ranks)
        return fail("model.dim = %" PRIu64 " has fewer columns than there are ranks to share them out, %u", c->model_dim, ranks);
    if (config_has_complex(c) && c->model_dim / 2 < ranks)
        return fail("model.dim = %" PRIu64 " makes %" PRIu64 " complex numbers (train.product = %s), fewer than there are ranks to share them out, "
                    "%u",
                    c->model_dim, c->model_dim / 2, config_choice_name("train", "product", c->train_product), ranks);
    return 0;
}

/* Checks that only runs on lists hold out items, and that something is held out if train.patience is set. */
static int check_held_out(const struct config *c) {
    const struct corpus_format_properties *format = &corpus_formats[c->corpus_format];
    if (c->train_held_out_items > 0 && (format->sentences || format->edges || format->triples))
        return fail("train.held_out_items = %g is of the items of lists, and corpus.format is %s; set train.held_out, whose examples "
                    "are left out", c->train_held_out_items, format->name);
    if (c->train_patience && !(c->train_held_out_items > 0) && !(c->train_held_out > 0) && !*c->train_evaluate)
        return fail("train.patience = %" PRIu64 " watches what is held out, and nothing is; set train.%s",
                    c->train_patience,
                    format->triples                      ? "evaluate = FILE or train.held_out = 0.01"
                    : format->sentences || format->edges ? "held_out = 0.01"
                                                         : "held_out_items = 0.1");
    return 0;
}

static int check_train(const struct config *c) {
    char why[HOGWILD_WHY];
    if (c->train_epochs == 0 && c->train_steps == 0)
        return fail("train.epochs = 0 and train.steps = 0 leave the run without an end; set one of the two");
    if (c->train_freeze == FREEZE_KNOWN && !*c->train_from)
        return fail("train.freeze = known keeps the rows that come from train.from, and that is empty: say what to begin from");
    if (check_held_out(c)) return -1;
    if (*c->train_evaluate && c->examples_mode != MODE_TRIPLE)
        return fail("train.evaluate = %s are triples, and examples.mode is not triple%s", c->train_evaluate,
                    config_walks_triples(c) ? "; with walks, train.held_out = 0.01 measures a loss, and evaluate RUN --edges=FILE ranks tails" : "");
    if (!c->run_checkpoint && (c->train_patience || c->train_held_out_items > 0))
        return fail("run.checkpoint = no: %s scores checkpoints; leave it out", c->train_patience ? "train.patience" : "train.held_out_items");
    if (c->corpus_forget != FORGET_NO) {
        const char *wants = !*c->train_from ? "train.from is empty: say what to begin from"
                            : !c->corpus_max_vocab ? "corpus.max_vocab = 0 bounds nothing: set it to the number of words that stay"
                            : c->train_from_words == FROM_WORDS_DROP ? "train.from_words = drop keeps none of them: leave one of the two keys out"
                            : *c->corpus_vocab ? "corpus.vocab says itself which words have rows: leave one of the two keys out"
                            : c->corpus_order == ORDER_GIVEN ? "with corpus.order = given each number has its row: leave one of the two keys out"
                                                             : NULL;
        if (wants) return fail("corpus.forget = %s lets words of train.from leave, and %s", c->corpus_forget == FORGET_AGE ? "age" : "count", wants);
    }
    return config_refuses_hogwild(c, 0, why) ? fail("%s", why) : 0;
}

/* Warns about options that the user has set but the rule does not read: they are probably a mistake. Warns only once, since
 * configs are resolved again and again. */
static int warn_without_effect(const struct config *config) {
    static const char *const options[] = {
#define NUMBER(name, fallback, lowest, highest, rules, help)  #name,
#define BY_RULE(name, fallback, lowest, highest, rules, help) /* "auto" has been resolved */
#define FLAG(name, rules, help)                               #name,
#include "kernels/optimizers.def"
    };
    static atomic_uint warned;
    ENDED_BY(config_release) struct config defaults = {0};
    int result = config_init(&defaults);
    const char *rule = config_choice_name("optimizer", "rule", config->optimizer_rule);
    for (size_t i = 0; !result && i < sizeof options / sizeof *options; i++) {
        char now[CONFIG_BYTES], usual[CONFIG_BYTES];
        const struct config_key *key = config_find_key("optimizer", options[i]);
        const char *value = config_text_of(config, key, now);
        if (rules_has(config->optimizer_rule, options[i]) || !strcmp(value, config_text_of(&defaults, key, usual))) continue;
        if (!(atomic_fetch_or(&warned, 1u << i) >> i & 1))
            warn("%s = %s has no effect with optimizer.rule = %s", key->name, value, rule);
    }
    return result;
}

int config_resolve(struct config *config) {
    if (resolve_examples(config)) return -1;
    resolve_items(config);
    resolve_optimizer(config);
    if (resolve_loss(config) || resolve_run(config)) return -1;
    if (check_format(config) || check_unused(config) || check_documents(config) || check_pools(config) || check_draws(config) ||
        check_triples(config) || check_shared(config) || check_optimizer(config) || check_train(config) || check_loss(config) ||
        check_gpus(config) || check_ranks(config))
        return -1;
    return warn_without_effect(config);
}
