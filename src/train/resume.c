#include "resume.h"

#include "alike.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>

/* RUN/config.ini, which the first rank alone may see. */
static int read_keys(struct config *before, const char *path, struct ranks *ranks) {
    char *text = ranks_first(ranks) ? config_file(path) : NULL;
    int result = ranks_agree(ranks, ranks_first(ranks) && !text ? -1 : 0) || alike_text(&text, ranks) ? -1 : 0;
    if (!result) result = config_read_text(before, text, path) || config_resolve(before) ? -1 : 0;
    free(text);
    return result;
}

/* What "auto" has come to since depends on the machine and on how many ranks there are: the run keeps what it began with. */
static int settle(struct config *config, const struct config *before, const char *run) {
    config_settle(config, before);
    if (!config->update_auto || config->train_update == before->train_update) return 0;
    if (before->train_update == UPDATE_HOGWILD && config_ranks(config) > 2)
        return fail("'%s' trains lock-free (train.update = hogwild), which one rank does or two, and there are %u: go on with "
                    "fewer",
                    run, config_ranks(config));
    config->train_update = before->train_update;
    return config_resolve(config);
}

int resume_keys(struct config *config, const char *run, struct ranks *ranks) {
    struct config before;
    char *path = file_join(run, "config.ini");
    int result = ranks_agree(ranks, config_init(&before) || !path ? -1 : 0);
    if (!result) result = read_keys(&before, path, ranks);
    if (!result) result = settle(config, &before, run);
    const char *key = result ? NULL : config_difference(&before, config);
    if (key) result = fail("'%s' was begun with another %s: --resume needs the same keys ('%s' has them)", run, key, path);
    free(path);
    config_release(&before);
    return result;
}

int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch) {
    uint64_t position = older->progress.position;
    if (older->corpus.vocab != corpus->vocab)
        return fail("'%s' was trained on another vocabulary: the corpus has changed since; --overwrite starts over",
                    checkpoint);
    if (older->corpus.stream && older->corpus.stream != corpus->stream)
        return fail("'%s' was trained on the same words in another order or other %s: the corpus has changed since; "
                    "--overwrite starts over",
                    checkpoint, config_lines(config));
    if (position >= examples_per_epoch || older->progress.epoch > UINT32_MAX)
        return fail("'%s' stands at example %" PRIu64 " of epoch %" PRIu64 ", and an epoch of this corpus has %" PRIu64
                    " examples: the corpus has changed since; --overwrite starts over",
                    checkpoint, position, older->progress.epoch, examples_per_epoch);
    if (!older->corpus.stream)
        warn("'%s' was written by an earlier version, which did not note the corpus' order: the run goes on as it was only "
             "if the corpus has not changed since",
             checkpoint);
    return 0;
}
