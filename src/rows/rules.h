/* rules: the optimizers by name, with PyTorch's defaults (torch.optim), for whoever opens a table. */
#ifndef SPTX_RULES_H
#define SPTX_RULES_H

#include "kernels/optimizers.h"

/* Returns the rule of this name ("sparse-adam" is also found as "sparse_adam"), or -1. */
int rules_named(const char *name);

/* Returns every option at PyTorch's default for this rule. */
struct rule_options rules_defaults(int rule);

/* The rule's name ("sparse_adam"), or NULL where there is no such rule. */
const char *rules_name(int rule);

/* Number `index` of the options that the rule reads ("beta1"), in the order of kernels/optimizers.def; NULL past the
 * last. */
const char *rules_option(int rule, unsigned index);
/* Returns 1 if a rule reads the option of this name. Every rule reads the options that kernels/optimizers.def does not list. */
int rules_has(int rule, const char *option);

/* Checks that these options can work together. Options that the rule does not read may have any value. Returns 0, or -1 after
 * fail_usage(), whose sentence names the rule and the option. */
int rules_check(const struct rule_options *options);

#endif
