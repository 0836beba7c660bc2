#include "tables.h"

#include "base/report.h"

#include <float.h>

struct rule_options tables_rule(const struct config *config) {
    struct rule_options rule = {
        .rule = config->optimizer_rule,
#define NUMBER(name, fallback, lowest, highest, rules, help)  .name = config->optimizer_##name,
#define BY_RULE(name, fallback, lowest, highest, rules, help) .name = config->optimizer_##name,
#define FLAG(name, rules, help)                               .name = config->optimizer_##name,
#include "kernels/optimizers.def"
        .precision = config->model_precision,
        .state_precision = config->model_state_precision,
        .lr = config->optimizer_lr,
        .clip = config->optimizer_clip,
    };
    rule.count_rows = config->optimizer_bias_correction == COUNT_ROW && rule_counts(&rule);
    return rule;
}

static int settled(int place, enum table_side side, const char *part, enum place *out) {
    if (place == PLACE_AUTO) return fail("memory.%s%s is still 'auto': no plan settled it", table_side_name(side), part);
    *out = (enum place)place;
    return 0;
}

static int choose_places(struct table_options *options, const struct config *config, enum table_side side) {
    int target = side == TABLE_TARGET;
    int weights = target ? config->memory_target : config->memory_context;
    int state = target ? config->memory_target_state : config->memory_context_state;
    if (settled(weights, side, "", &options->weights)) return -1;
    return settled(state, side, "_state", &options->state);
}

int tables_first_values(struct init_values *out, const struct config *config, enum table_side side) {
    const char *text = side == TABLE_TARGET ? config->model_target_init : config->model_context_init;
    if (table_init_values(out, text, side, (uint32_t)config->model_dim))
        return fail("model.%s_init = '%s' is none of: zeros; uniform LO HI; normal MEAN SD; word2vec; notebook M",
                    table_side_name(side), text);
    if (!(table_init_reach(out) <= FLT_MAX))
        return fail("model.%s_init = '%s' draws numbers up to %.3g, and float32 ends at %.3g", table_side_name(side),
                    text, table_init_reach(out), (double)FLT_MAX);
    return 0;
}

int tables_check_init(const struct config *config) {
    struct init_values target, context;
    return tables_first_values(&target, config, TABLE_TARGET) || tables_first_values(&context, config, TABLE_CONTEXT) ? -1 : 0;
}

int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend) {
    struct table_options options = *own;
    options.dim = (uint32_t)config->model_dim;
    options.rule = tables_rule(config);
    options.seed = (uint32_t)config->train_seed;
    options.directory = config->run_dir;
    *table = (struct table){0};
    if (choose_places(&options, config, side) || tables_first_values(&options.init, config, side)) return -1;
    return table_init(table, side, &options, ops, backend);
}
