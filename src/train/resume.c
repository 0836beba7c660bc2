#include "resume.h"

#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>

int resume_keys(struct config *config, const char *run) {
    struct config before;
    char *path = file_join(run, "config.ini");
    int result = config_init(&before) || !path || config_read(&before, path) || config_resolve(&before) ? -1 : 0;
    if (!result) config_settle(config, &before);
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
