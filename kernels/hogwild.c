#include "hogwild.h"

#include "base/report.h"

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
