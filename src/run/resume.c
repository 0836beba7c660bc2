#include "resume.h"

#include "ranks_alike.h"
#include "base/report.h"
#include "config/defaults_by_size.h"

#include <stdlib.h>

/* Reads RUN/config.ini, which perhaps only the first rank sees, and resolves it for the number of ranks that resume the run. */
static int read_keys(struct config *before, const struct config *now, const char *path, struct ranks *ranks) {
    char *text = ranks_first(ranks) ? config_file(path) : NULL;
    int result = ranks_agree(ranks, ranks_first(ranks) && !text ? -1 : 0) || ranks_alike_text(&text, ranks) ? -1 : 0;
    if (!result) result = config_read_text(before, text, path);
    if (!result) config_fill_older(before);
    before->ranks = now->ranks;
    before->device_gpus = now->device_gpus;
    before->device_share = now->device_share;
    before->train_merge_every = now->train_merge_every;
    before->device_ranks = now->device_ranks;
    if (!result) result = config_resolve(before);
    free(text);
    return result;
}

/* Only the first rank's keys are compared: ranks_alike_config() has checked that the others have equal keys, except for paths. */
int resume_keys(struct config *config, const char *run, struct ranks *ranks, uint64_t *kept) {
    struct config before;
    char *path = file_join(run, "config.ini");
    int result = ranks_agree(ranks, config_init(&before) || !path ? -1 : 0);
    if (!result) result = read_keys(&before, config, path, ranks);
    if (!result) config_settle(config, &before);
    if (!result) config_keep_effort(config, &before);
    if (!result) defaults_keep(config, &before);
    if (!result) *kept = before.run_keep;
    int chosen = config->train_update;
    if (!result && config->update_auto) config->train_update = before.train_update;
    if (!result && config->clip_auto) config->optimizer_clip = before.optimizer_clip;
    if (!result && config->per_auto) config->negatives_per = before.negatives_per;
    const char *key = result || !ranks_first(ranks) ? NULL : config_difference(&before, config);
    if (key) result = fail("'%s' was begun with another %s: --resume needs the same keys ('%s' has them)", run, key, path);
    /* train.update = auto became the value that the run began with; check that it works with this number of ranks */
    if (!result && config->train_update != chosen) result = config_resolve(config);
    free(path);
    config_release(&before);
    return result;
}

int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch) {
    uint64_t position = older->progress.position;
    if (older->corpus.vocab != corpus->vocab)
        return fail("'%s' was trained on another vocabulary: the corpus has changed since; --overwrite starts over", checkpoint);
    if (older->corpus.stream != corpus->stream || position >= examples_per_epoch || older->progress.epoch > UINT32_MAX)
        return fail("'%s' was trained on the same words in another order or other %s: the corpus has changed since; "
                    "--overwrite starts over",
                    checkpoint, config_lines(config));
    if (older->corpus.tree != corpus->tree)
        return fail("'%s' was trained along another tree of the same words, by another version: train from the beginning with "
                    "--overwrite",
                    checkpoint);
    return 0;
}
