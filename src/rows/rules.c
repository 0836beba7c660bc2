#include "rules.h"

#include "base/report.h"

#include <string.h>

static const char *const names[RULE_COUNT] = {
#define NAME(name, enumerator) [enumerator] = #name,
    RULES(NAME)
#undef NAME
};

static int same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '_' && *b == '-')) return 0;
    return *a == *b;
}

int rules_named(const char *name) {
    for (int rule = 0; rule < RULE_COUNT; rule++)
        if (same_name(names[rule], name)) return rule;
    return -1;
}

const char *rules_name(int rule) {
    return rule >= 0 && rule < RULE_COUNT ? names[rule] : NULL;
}

struct rule_options rules_defaults(int rule) {
    static const double rates[RULE_COUNT] = {
        [RULE_SGD] = 1e-3,   [RULE_ADAGRAD] = 0.01,     [RULE_ADADELTA] = 1.0, [RULE_RMSPROP] = 0.01, [RULE_ADAM] = 1e-3,
        [RULE_ADAMW] = 1e-3, [RULE_SPARSE_ADAM] = 1e-3, [RULE_ADAMAX] = 2e-3,  [RULE_ASGD] = 0.01,    [RULE_RPROP] = 0.01,
        [RULE_ROWWISE_ADAGRAD] = 0.01, [RULE_FTRL] = 0.1, [RULE_ROWWISE_ADAM] = 1e-3};
    return (struct rule_options){
        .rule = rule,
        .lr = rates[rule],
#define NUMBER(name, fallback, lowest, highest, rules, help)  .name = fallback,
#define BY_RULE(name, fallback, lowest, highest, rules, help) .name = fallback,
#define FLAG(name, rules, help)
#include "kernels/optimizers.def"
    };
}

static const struct {
    const char *name;
    unsigned rules;
} options[] = {
#define NUMBER(name, fallback, lowest, highest, rules, help)  {#name, rules},
#define BY_RULE(name, fallback, lowest, highest, rules, help) {#name, rules},
#define FLAG(name, rules, help)                               {#name, rules},
#include "kernels/optimizers.def"
};
enum { OPTIONS = sizeof options / sizeof *options };

const char *rules_option(int rule, unsigned index) {
    for (unsigned i = 0; i < OPTIONS; i++)
        if (options[i].rules >> rule & 1 && !index--) return options[i].name;
    return NULL;
}

int rules_has(int rule, const char *option) {
    for (unsigned i = 0; i < OPTIONS; i++)
        if (!strcmp(options[i].name, option)) return options[i].rules >> rule & 1;
    return 1;
}

static int check_range(int rule, const char *option, double value, double least, double most) {
    if (!rules_has(rule, option) || (value >= least && value <= most)) return 0;
    return fail_usage("%s: %s = %g is not between %g and %g", names[rule], option, value, least, most);
}

int rules_check(const struct rule_options *o) {
    if (check_range(o->rule, "lr", o->lr, 0, 1e6)) return -1;
#define NUMBER(name, fallback, lowest, highest, rules, help)                                                           \
    if (check_range(o->rule, #name, o->name, lowest, highest)) return -1;
#define BY_RULE NUMBER
#define FLAG(name, rules, help)
#include "kernels/optimizers.def"
    if (check_range(o->rule, "clip", o->clip, 0, 1e9)) return -1;
    if (o->rule == RULE_SGD && o->nesterov && o->momentum == 0) return fail_usage("sgd: nesterov needs a momentum above 0");
    if (!rules_has(o->rule, "weight_decay") && o->weight_decay != 0)
        return fail_usage("%s: weight_decay = %g, but it has none; use %s", names[o->rule], o->weight_decay,
                          o->rule == RULE_SPARSE_ADAM || o->rule == RULE_ROWWISE_ADAM ? "adam"
                          : RULE_BY_ROW(o->rule)                                    ? "adagrad"
                          : o->rule == RULE_FTRL                                    ? "l2"
                                                                                    : "another rule");
    if (o->rule == RULE_RPROP && o->step_min > o->step_max)
        return fail_usage("rprop: step_min = %g is above step_max = %g", o->step_min, o->step_max);
    if (rule_counts(o) && o->rule != RULE_ADAGRAD && o->rule != RULE_ASGD && (o->beta1 == 1 || o->beta2 == 1))
        return fail_usage("%s: beta1 = %g and beta2 = %g must be below 1", names[o->rule], o->beta1, o->beta2);
    return 0;
}
