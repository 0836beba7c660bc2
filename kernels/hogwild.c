#include "hogwild.h"

#include "base/report.h"

void hogwild_add(struct hogwild_result *sum, const struct hogwild_result *one) {
    sum->words += one->words;
    sum->examples += one->examples;
    sum->pairs += one->pairs;
    sum->loss += one->loss;
    sum->sampled_examples += one->sampled_examples;
    sum->sampled_pairs += one->sampled_pairs;
    sum->sampled_terms += one->sampled_terms;
    sum->link_bytes += one->link_bytes;
}

int hogwild_check(const struct hogwild_request *request) {
    const struct rule_options *rule = request->rule;
    if (rule->rule != RULE_SGD && rule->rule != RULE_ADAGRAD)
        return fail("train.update = hogwild knows optimizer.rule = sgd and adagrad only; use train.update = batch");
    if (rule->rule == RULE_SGD && rule->momentum != 0)
        return fail(
            "train.update = hogwild works without momentum, and optimizer.momentum is %g; use train.update = batch",
            rule->momentum);
    if (rule->clip != 0)
        return fail(
            "train.update = hogwild has no batch whose sums optimizer.clip = %g could bound; use train.update = batch",
            rule->clip);
    return 0;
}
