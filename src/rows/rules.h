/* rules: finds optimizers by name and gives them PyTorch's defaults (torch.optim). */
#ifndef SPTX_RULES_H
#define SPTX_RULES_H

#include "kernels/optimizers.h"

/* Returns the rule with this name, or -1. Hyphens may replace underscores: "sparse-adam". */
int rules_named(const char *name);

/* Returns the rule's options, each with PyTorch's default. */
struct rule_options rules_defaults(int rule);

/* Returns the name of a rule ("sparse_adam"); NULL if there is no such rule. */
const char *rules_name(int rule);

/* Returns the name of option number `index` that the rule reads ("beta1"), in the order of kernels/optimizers.def; NULL after the last one. */
const char *rules_option(int rule, unsigned index);
/* Returns 1 if the rule reads the option with this name. Options that kernels/optimizers.def does not list are read by all rules. */
int rules_has(int rule, const char *option);

/* Checks that these options work together. Options that the rule does not read may have any value. Returns 0, or -1 after fail_usage(), which
 * names the rule and the option. */
int rules_check(const struct rule_options *options);

#endif
