#include "rules.h"

#include "base/report.h"

#include <math.h>
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

struct rule_options rules_defaults(int rule) {
    static const double rates[RULE_COUNT] = {
        [RULE_SGD] = 1e-3,  [RULE_ADAGRAD] = 0.01, [RULE_ADADELTA] = 1.0,     [RULE_RMSPROP] = 0.01,
        [RULE_ADAM] = 1e-3, [RULE_ADAMW] = 1e-3,   [RULE_SPARSE_ADAM] = 1e-3, [RULE_ADAMAX] = 2e-3,
        [RULE_ASGD] = 0.01, [RULE_RPROP] = 0.01};
    return (struct rule_options){.rule = rule,
                                 .lr = rates[rule],
                                 .eps = rule == RULE_ADAGRAD ? 1e-10 : rule == RULE_ADADELTA ? 1e-6 : 1e-8,
                                 .weight_decay = rule == RULE_ADAMW ? 0.01 : 0,
                                 .rho = 0.9,
                                 .alpha = rule == RULE_ASGD ? 0.75 : 0.99,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .lambd = 1e-4,
                                 .t0 = 1e6,
                                 .eta_minus = 0.5,
                                 .eta_plus = 1.2,
                                 .step_min = 1e-6,
                                 .step_max = 50};
}

static int check_range(int rule, const char *option, double value, double least, double most) {
    if (value >= least && value <= most) return 0;
    return fail_usage("%s: %s = %g is not between %g and %g", names[rule], option, value, least, most);
}

enum { ADAMS = 1 << RULE_ADAM | 1 << RULE_ADAMW, ALL_ADAMS = ADAMS | 1 << RULE_SPARSE_ADAM | 1 << RULE_ADAMAX };

int rules_has(int rule, const char *option) {
    static const struct {
        const char *option;
        unsigned rules;
    } some[] = {{"momentum", 1 << RULE_SGD | 1 << RULE_RMSPROP},
                {"nesterov", 1 << RULE_SGD},
                {"lr_decay", 1 << RULE_ADAGRAD},
                {"initial_accumulator", 1 << RULE_ADAGRAD},
                {"rho", 1 << RULE_ADADELTA},
                {"centered", 1 << RULE_RMSPROP},
                {"alpha", 1 << RULE_RMSPROP | 1 << RULE_ASGD},
                {"beta1", ALL_ADAMS},
                {"beta2", ALL_ADAMS},
                {"amsgrad", ADAMS},
                {"lambd", 1 << RULE_ASGD},
                {"t0", 1 << RULE_ASGD},
                {"eta_minus", 1 << RULE_RPROP},
                {"eta_plus", 1 << RULE_RPROP},
                {"step_min", 1 << RULE_RPROP},
                {"step_max", 1 << RULE_RPROP},
                {"weight_decay", ~(1u << RULE_SPARSE_ADAM | 1u << RULE_RPROP)}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (!strcmp(some[i].option, option)) return some[i].rules >> rule & 1;
    return 1;
}

int rules_check(const struct rule_options *o) {
    const struct {
        const char *option;
        double value, least, most;
    } ranges[] = {{"lr", o->lr, 0, 1e6},
                  {"momentum", o->momentum, 0, 1},
                  {"weight_decay", o->weight_decay, 0, 1e6},
                  {"lr_decay", o->lr_decay, 0, 1e6},
                  {"initial_accumulator", o->initial_accumulator, 0, 1e6},
                  {"eps", o->eps, 0, 1},
                  {"rho", o->rho, 0, 1},
                  {"alpha", o->alpha, 0, 1},
                  {"beta1", o->beta1, 0, 1},
                  {"beta2", o->beta2, 0, 1},
                  {"lambd", o->lambd, 0, 1e6},
                  {"t0", o->t0, 0, 1e18},
                  {"eta_minus", o->eta_minus, 0, 1},
                  {"eta_plus", o->eta_plus, 1, 100},
                  {"step_min", o->step_min, 0, 1e6},
                  {"step_max", o->step_max, 0, 1e6},
                  {"clip", o->clip, 0, 1e9}};
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (rules_has(o->rule, ranges[i].option) &&
            check_range(o->rule, ranges[i].option, ranges[i].value, ranges[i].least, ranges[i].most)) return -1;
    if (o->rule == RULE_SGD && o->nesterov && o->momentum == 0) return fail_usage("sgd: nesterov needs a momentum above 0");
    if (!rules_has(o->rule, "weight_decay") && o->weight_decay != 0)
        return fail_usage("%s: weight_decay = %g, but it has none, as in PyTorch; use %s", names[o->rule], o->weight_decay,
                          o->rule == RULE_SPARSE_ADAM ? "adam" : "another rule");
    if (o->rule == RULE_RPROP && o->step_min > o->step_max)
        return fail_usage("rprop: step_min = %g is above step_max = %g", o->step_min, o->step_max);
    if (rule_counts(o) && o->rule != RULE_ADAGRAD && o->rule != RULE_ASGD && (o->beta1 == 1 || o->beta2 == 1))
        return fail_usage("%s: beta1 = %g and beta2 = %g must be below 1", names[o->rule], o->beta1, o->beta2);
    return 0;
}
