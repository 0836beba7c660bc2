#include "examples.h"

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
