/* test_together sum|agree|alone: what ranks do together, for tests/cli/test_ranks.py to begin under mpirun.
 *
 *   sum     sums of many sizes, held bit by bit against the parts added up in rank order; exit code 0
 *   agree   rank 1 fails and all agree on it: one sentence, exit code 1 of all
 *   alone   rank 1 fails while the others wait in a sum: it must end them
 */
#include "kernels/ranks.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's part of a value: no sum of two of them is exact. */
static float part(unsigned rank, uint64_t i) {
    uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u * (2 * rank + 1);
    return (float)(int32_t)(mixed >> 32) * 1e-6f;
}

static int check_sum(struct ranks *ranks, uint64_t count) {
    float *values = mem_alloc(count, sizeof *values, "values");
    int result = values ? 0 : -1;
    for (uint64_t i = 0; i < count && !result; i++) values[i] = part(ranks->number, i);
    if (!result) result = ranks_sum(ranks, values, count);
    for (uint64_t i = 0; i < count && !result; i++) {
        float sum = part(0, i);
        for (unsigned r = 1; r < ranks->count; r++) sum += part(r, i);
        if (memcmp(&sum, values + i, sizeof sum))
            result = fail("value %" PRIu64 " of %" PRIu64 " is %.9g, wanted %.9g", i, count, (double)values[i], (double)sum);
    }
    free(values);
    return result;
}

static int check_sums(struct ranks *ranks) {
    const uint64_t sizes[] = {0, 1, 2, 3, 5, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 7};
    int result = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !result; i++) result = ranks_agree(ranks, check_sum(ranks, sizes[i]));
    if (!result && ranks_any(ranks, 1u << ranks->number) != (1u << ranks->count) - 1) result = fail("not every rank's bit came");
    return ranks_agree(ranks, result);
}

static int run(struct ranks *ranks, const char *what) {
    float one = 1;
    if (!strcmp(what, "sum")) return check_sums(ranks);
    if (ranks->number == 1) return ranks_agree(ranks, fail("rank 1 has had enough"));
    if (!strcmp(what, "alone")) ranks_sum(ranks, &one, 1);
    return ranks_agree(ranks, 0);
}

int main(int argc, char **argv) {
    struct ranks ranks;
    if (argc != 2) return 2;
    int result = ranks_open(&ranks) || run(&ranks, argv[1]);
    int first = ranks_first(&ranks);
    ranks_close(&ranks);
    if (first && !result) printf("1 passed, 0 failed\n");
    return result ? 1 : 0;
}
