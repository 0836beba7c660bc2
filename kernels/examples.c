#include "examples.h"
#include "backend.h"

#include "base/report.h"

int example_check_row(const struct example_row *row) {
    if (example_row_fits(row)) return 0;
    if (row->wanted > EXAMPLE_MOST_POSITIVES || row->pooled > EXAMPLE_MOST_POSITIVES)
        return fail("a list of %llu items is too long for one example; set examples.positives",
                    (unsigned long long)row->count);
    return fail(
        "an example with %llu positives would draw %llu negatives, more than 2,097,152; set examples.positives or "
        "negatives.per = example",
        (unsigned long long)row->wanted, (unsigned long long)row->negatives);
}

static int has_form(const struct batch_view *v) {
    uint64_t targets = example_shared_targets(&v->pool), contexts = example_shared_contexts(&v->pool);
    if (v->pool.on != (v->pool.product != PRODUCT_NONE) || v->blocks < 2) return 0;
    if (v->target_starts[1] || v->context_starts[1] != v->shared.count || v->positives[0]) return 0;
    for (uint64_t i = 1; i < v->blocks; i++)
        if (v->target_starts[i + 1] != targets * i || v->context_starts[i + 1] != v->shared.count + contexts * i || v->positives[i] != 1)
            return 0;
    return 1;
}

int shared_negatives_check(const struct batch_view *view) {
    if (!view->shared.count && view->pool.product)
        return fail("a batch whose targets are multiplied must share its negatives");
    if (!view->shared.count || has_form(view)) return 0;
    return fail("a batch of shared negatives has one block of them, then a block for each item or triple");
}
