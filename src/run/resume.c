#include "resume.h"

#include "ranks_alike.h"
#include "base/report.h"
#include "schedule.h"

#include <inttypes.h>
#include <stdlib.h>

/* Reads RUN/config.ini. Only the first rank may see it, and gives its text to the others. */
static int read_keys(struct config *before, const char *path, struct ranks *ranks) {
    char *text = ranks_first(ranks) ? config_file(path) : NULL;
    int result = ranks_agree(ranks, ranks_first(ranks) && !text ? -1 : 0) || ranks_alike_text(&text, ranks) ? -1 : 0;
    if (!result) result = config_read_text(before, text, path) || config_resolve(before) ? -1 : 0;
    free(text);
    return result;
}

/* train.update = auto came to something when the run began; refuses it where there are now too many ranks for it. */
static int check_update(struct config *config, const char *run) {
    if (config->train_update == UPDATE_HOGWILD && config_ranks(config) > 2)
        return fail("'%s' trains lock-free (train.update = hogwild), which one rank does or two, and there are %u: go on with "
                    "fewer",
                    run, config_ranks(config));
    return config_resolve(config);
}

/* Compares the first rank's keys: the other ranks have the same but for paths (ranks_alike_config). */
int resume_keys(struct config *config, const char *run, struct ranks *ranks) {
    struct config before;
    char *path = file_join(run, "config.ini");
    int result = ranks_agree(ranks, config_init(&before) || !path ? -1 : 0);
    if (!result) result = read_keys(&before, path, ranks);
    if (!result) config_settle(config, &before);
    int chosen = config->train_update;
    if (!result && config->update_auto) config->train_update = before.train_update;
    if (!result && config->update_auto && config->clip_auto) config->optimizer_clip = before.optimizer_clip;
    if (!result && config->per_auto) config->negatives_per = before.negatives_per; /* version 1.0 began runs of text with `pair` */
    const char *key = result || !ranks_first(ranks) ? NULL : config_difference(&before, config);
    if (key) result = fail("'%s' was begun with another %s: --resume needs the same keys ('%s' has them)", run, key, path);
    if (!result && config->train_update != chosen) result = check_update(config, run);
    free(path);
    config_release(&before);
    return result;
}

void resume_rates(const struct config *config, const char *checkpoint, const struct run_state *older) {
    if (older->rate_law || !schedule_differs_from_earlier(config)) return;
    warn("'%s' was written by an earlier version, whose learning rates were others (optimizer.min_lr_ratio was a floor, "
         "optimizer.warmup multiplied a rate that was falling already): from here on they are those that 'sptx-w2v help keys' "
         "describes",
         checkpoint);
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
