#include "ranks_alike.h"

#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* A line of a config's text. */
struct line {
    const char *at;
    size_t length;
};

static struct line next_key(const char **text) {
    struct line line = {*text, strcspn(*text, "\n")};
    *text += line.length + (line.at[line.length] == '\n');
    return line;
}

static int begins(const struct line *line, const char *with) {
    return !strncmp(line->at, with, strlen(with));
}

/* Returns 0 for sections whose keys may differ between ranks: they say where a machine stores data, and how it works. */
static int section_counts(const struct line *line) {
    return !begins(line, "[device]") && !begins(line, "[memory]") && !begins(line, "[run]");
}
static int key_counts(const struct line *line) {
    return !begins(line, "path ") && !begins(line, "cache ");
}

static int compare(const char *own, const char *first) {
    for (int counts = 1; *own && *first;) {
        struct line mine = next_key(&own), wanted = next_key(&first);
        if (begins(&mine, "[")) counts = section_counts(&mine);
        if (!counts || !key_counts(&mine) || (mine.length == wanted.length && !memcmp(mine.at, wanted.at, mine.length))) continue;
        return fail("its configuration has '%.*s' where rank 0 has '%.*s': all ranks need the same", (int)mine.length, mine.at,
                    (int)wanted.length, wanted.at);
    }
    return 0;
}

int ranks_alike_text(char **text, struct ranks *ranks) {
    if (ranks_count(ranks) == 1) return 0;
    uint64_t length = *text ? strlen(*text) + 1 : 0;
    ranks_share(ranks, &length, sizeof length);
    if (!ranks_first(ranks)) *text = length ? mem_zalloc(length, 1, "a text of the first rank's") : NULL;
    if (ranks_agree(ranks, length && !*text ? -1 : 0)) return -1;
    if (length) ranks_share(ranks, *text, length);
    return 0;
}

int ranks_alike_config(const struct config *config, struct ranks *ranks) {
    char *own = NULL, *first = NULL;
    if (ranks_count(ranks) == 1) return 0;
    int result = ranks_agree(ranks, config_format(config, 0, &own));
    if (!result && ranks_first(ranks)) first = own;
    if (!result) result = ranks_alike_text(&first, ranks);
    if (!result) result = ranks_agree(ranks, compare(own, first));
    if (first != own) free(first);
    free(own);
    return result;
}

/* ---- the device ---- */

struct device {
    int gpu, exchange;
};

static int compare_devices(const struct device *own, const struct device *first) {
    if (own->gpu != first->gpu)
        return fail("it trains on %s where rank 0 trains on %s: all ranks need the same device.backend",
                    own->gpu ? "a GPU" : "the CPU", first->gpu ? "a GPU" : "the CPU");
    if (own->exchange != first->exchange) return fail("its device.exchange is not that of rank 0: all ranks need the same");
    return 0;
}

int ranks_alike_device(const struct config *config, int gpu, struct ranks *ranks) {
    struct device own = {gpu, config->device_exchange}, first = own;
    if (ranks_count(ranks) == 1) return 0;
    ranks_share(ranks, &first, sizeof first);
    return ranks_agree(ranks, compare_devices(&own, &first));
}

/* ---- the corpus ---- */

struct numbers {
    struct corpus_identity corpus;
    uint64_t examples_per_epoch, batch;
};

static int compare_numbers(const struct numbers *own, const struct numbers *first) {
    if (own->corpus.vocab != first->corpus.vocab) return fail("its corpus has other words than that of rank 0");
    if (own->corpus.stream != first->corpus.stream || own->examples_per_epoch != first->examples_per_epoch)
        return fail("its corpus has the words of rank 0's in another order");
    if (own->batch != first->batch)
        return fail("its train.batch comes to %" PRIu64 " and that of rank 0 to %" PRIu64 ": set train.batch", own->batch,
                    first->batch);
    return 0;
}

int ranks_alike_corpus(const struct corpus_identity *corpus, uint64_t examples_per_epoch, uint64_t batch, struct ranks *ranks) {
    struct numbers own = {*corpus, examples_per_epoch, batch}, first = own;
    if (ranks_count(ranks) == 1) return 0;
    ranks_share(ranks, &first, sizeof first);
    return ranks_agree(ranks, compare_numbers(&own, &first));
}
