#include "state.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "config/defaults_by_size.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The lines of state.ini, each with the value of a field of struct run_state. */
static const struct key {
    const char *name;
    size_t offset;
    enum { DECIMAL, HEXADECIMAL, TRUTH, SECONDS, REAL } kind;
    enum { NEEDED, NOT_ZERO } written; /* NEEDED: every state.ini contains the line; NOT_ZERO: only if the number is not 0 */
} keys[] = {
    {"step", offsetof(struct run_state, progress.step), DECIMAL, NEEDED},
    {"epoch", offsetof(struct run_state, progress.epoch), DECIMAL, NEEDED},
    {"position", offsetof(struct run_state, progress.position), DECIMAL, NEEDED},
    {"words", offsetof(struct run_state, progress.words), DECIMAL, NEEDED},
    {"pairs", offsetof(struct run_state, progress.pairs), DECIMAL, NEEDED},
    {"seconds", offsetof(struct run_state, progress.seconds), SECONDS, NEEDED},
    {"finished", offsetof(struct run_state, progress.finished), TRUTH, NEEDED},
    {"best_score", offsetof(struct run_state, progress.best), REAL, NOT_ZERO},
    {"best_step", offsetof(struct run_state, progress.best_step), DECIMAL, NOT_ZERO},
    {"worse_epochs", offsetof(struct run_state, progress.worse_epochs), DECIMAL, NOT_ZERO},
    {"judged_step", offsetof(struct run_state, progress.judged_step), DECIMAL, NOT_ZERO},
    {"ended_step", offsetof(struct run_state, progress.ended_step), DECIMAL, NOT_ZERO},
    {"target_bytes", offsetof(struct run_state, target.bytes), DECIMAL, NEEDED},
    {"target_xxh64", offsetof(struct run_state, target.xxh64), HEXADECIMAL, NEEDED},
    {"context_bytes", offsetof(struct run_state, context.bytes), DECIMAL, NEEDED},
    {"context_xxh64", offsetof(struct run_state, context.xxh64), HEXADECIMAL, NEEDED},
    {"vocab_xxh64", offsetof(struct run_state, corpus.vocab), HEXADECIMAL, NEEDED},
    {"stream_xxh3", offsetof(struct run_state, corpus.stream), HEXADECIMAL, NEEDED},
    {"tree_xxh3", offsetof(struct run_state, corpus.tree), HEXADECIMAL, NOT_ZERO},
    {"target_first_row", offsetof(struct run_state, target_first), DECIMAL, NOT_ZERO},
    {"known_bytes", offsetof(struct run_state, known.bytes), DECIMAL, NOT_ZERO},
    {"known_xxh64", offsetof(struct run_state, known.xxh64), HEXADECIMAL, NOT_ZERO},
};
enum {
    KEYS = sizeof keys / sizeof *keys,
    STATE_MOST = 64 << 10 /* most bytes of a file that is read; later versions may write more lines */
};
static const char first_line[] = "; where a run of sptx-w2v stands, and what its files must be";
static const char last_key[] = "state_xxh64"; /* key of the last line, whose value is the checksum of all bytes before it */

static size_t add_value(char *out, size_t capacity, size_t at, const struct key *key, const struct run_state *state) {
    const void *value = (const char *)state + key->offset;
    switch (key->kind) {
    case HEXADECIMAL:
        return text_add(out, capacity, at, "%016" PRIx64, *(const uint64_t *)value);
    case TRUTH:
        return text_add(out, capacity, at, "%d", *(const int *)value != 0);
    case SECONDS:
    case REAL:
        return text_add(out, capacity, at, "%.17g", *(const double *)value);
    default:
        return text_add(out, capacity, at, "%" PRIu64, *(const uint64_t *)value);
    }
}

int state_write(const char *directory, const struct run_state *state) {
    char text[2048];
    OWNED char *path = file_join(directory, "state.ini"); /* enough for 24 lines of at most 40 bytes, and a comment */
    size_t n = text_add(text, sizeof text, 0, "%s\n[state]\n", first_line);
    for (int i = 0; i < KEYS; i++) {
        if (keys[i].written == NOT_ZERO && !*(const uint64_t *)(const void *)((const char *)state + keys[i].offset)) continue;
        n = text_add(text, sizeof text, n, "%s = ", keys[i].name);
        n = add_value(text, sizeof text, n, &keys[i], state);
        n = text_add(text, sizeof text, n, "\n");
    }
    n = text_add(text, sizeof text, n, "%s = %016" PRIx64 "\n", last_key, XXH64(text, n, 0));
    return path ? file_replace(path, text, n) : -1;
}

struct reading {
    struct run_state state;
    unsigned seen; /* bit map of the keys that were read */
};

static int parse_value(const struct key *key, const char *text, struct run_state *state) {
    void *place = (char *)state + key->offset;
    char *end;
    errno = 0;
    if (key->kind == SECONDS || key->kind == REAL) {
        double number = *(double *)place = numbers_read(text, &end);
        if (!isfinite(number) || (key->kind == SECONDS && number < 0)) return -1;
    } else if (key->kind == TRUTH)
        *(int *)place = strtol(text, &end, 10) != 0;
    else *(uint64_t *)place = strtoull(text, &end, key->kind == DECIMAL ? 10 : 16);
    return end == text || *end || errno ? -1 : 0;
}

/* Called by inih for each key. Returns 1 if the line is valid. Skips keys of later versions. */
static int take_line(void *user, const char *section, const char *name, const char *value) {
    struct reading *reading = user;
    if (strcmp(section, "state")) return 1;
    for (unsigned i = 0; i < KEYS; i++)
        if (!strcmp(name, keys[i].name)) {
            reading->seen |= 1u << i;
            return !parse_value(&keys[i], value, &reading->state);
        }
    return 1;
}

/* Returns 1 if the text ends with the line that state_write() would write, the right checksum. */
static int own_checksum(const char *text, uint64_t length) {
    char line[64];
    int start = snprintf(line, sizeof line, "\n%s", last_key);
    const char *last = strstr(text, line);
    if (!last || start < 0) return 0;
    last++; /* the first byte of the last line */
    uint64_t before = (uint64_t)(last - text);
    uint64_t n = (uint64_t)snprintf(line, sizeof line, "%s = %016" PRIx64 "\n", last_key, XXH64(text, before, 0));
    return length == before + n && !memcmp(last, line, n);
}

static int parse(const char *text, uint64_t length, const char *path, struct reading *reading) {
    int line = ini_parse_string(text, take_line, reading);
    if (line) return fail("'%s' line %d is damaged", path, line);
    for (unsigned i = 0; i < KEYS; i++)
        if (!(reading->seen >> i & 1) && !keys[i].written) return fail("'%s' has no key '%s'", path, keys[i].name);
    if (own_checksum(text, length)) return 0;
    return fail("'%s' was changed: its bytes do not have the checksum that it ends with", path);
}

int state_is_own(const char *directory) {
    char head[sizeof first_line] = "", *path = file_join(directory, "state.ini");
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    return kind < 0 ? -1 : kind == 1 && !strncmp(head, first_line, sizeof first_line - 1);
}

int state_read(const char *directory, struct run_state *state, int *broken) {
    struct reading reading = {.seen = 0};
    uint64_t length;
    OWNED char *path = file_join(directory, "state.ini");
    int too_long = path && file_exists(path) == 1 && file_size(path) > STATE_MOST;
    if (too_long) fail("'%s' is damaged: it has more than %d bytes", path, STATE_MOST);
    OWNED char *text = path && !too_long ? file_read(path, &length) : NULL;
    *broken = path && (text || too_long || file_exists(path) == 0);
    int result = text ? parse(text, length, path, &reading) : -1;
    if (!result) *state = reading.state;
    return result;
}

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

static int key_counts(const struct line *line) {
    return !begins(line, "path ") && !begins(line, "cache ");
}

static int compare(const char *own, const char *first) {
    for (int counts = 1; *own && *first;) {
        struct line mine = next_key(&own), wanted = next_key(&first);
        /* Keys of these sections may differ between ranks, since they only say how and where a machine works. */
        if (begins(&mine, "[")) counts = !begins(&mine, "[device]") && !begins(&mine, "[memory]") && !begins(&mine, "[run]");
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

/* Reads RUN/config.ini, which perhaps only the first rank sees, and resolves it for the number of ranks that resume the run. */
static int read_keys(struct config *before, const struct config *now, const char *path, struct ranks *ranks) {
    OWNED char *text = ranks_first(ranks) ? config_file(path) : NULL;
    int result = ranks_agree(ranks, ranks_first(ranks) && !text ? -1 : 0) || ranks_alike_text(&text, ranks) ? -1 : 0;
    if (!result) result = config_read_text(before, text, path);
    if (!result) config_fill_older(before);
    before->ranks = now->ranks;
    before->device_gpus = now->device_gpus;
    before->device_share = now->device_share;
    before->train_merge_every = now->train_merge_every;
    before->device_ranks = now->device_ranks;
    if (!result) result = config_resolve(before);
    return result;
}

/* Only the first rank's keys are compared: ranks_alike_config() has checked that the others have the same, except for paths. */
int resume_keys(struct config *config, const char *run, struct ranks *ranks, uint64_t *kept) {
    ENDED_BY(config_release) struct config before = {0};
    OWNED char *path = file_join(run, "config.ini");
    int result = ranks_agree(ranks, config_init(&before) || !path ? -1 : 0);
    if (!result) result = read_keys(&before, config, path, ranks);
    const char *const features[][2] = {{"item_features", before.corpus_item_features}, {"list_features", before.corpus_list_features},
                                       {"feature_words", before.corpus_feature_words}};
    for (size_t i = 0; i < sizeof features / sizeof *features && !result; i++) /* maybe from train.from */
        if (!config_is_given(config, "corpus", features[i][0])) result = config_set(config, "corpus", features[i][0], features[i][1], path);
    if (!result) config_settle(config, &before);
    if (!result) config_keep_effort(config, &before);
    if (!result) defaults_keep(config, &before);
    if (!result) *kept = before.run_keep;
    int chosen = config->train_update;
    if (!result && config->update_auto) config->train_update = before.train_update;
    if (!result && config->clip_auto) config->optimizer_clip = before.optimizer_clip;
    if (!result && config->per_auto) config->negatives_per = before.negatives_per;
    const char *key = result || !ranks_first(ranks) ? NULL : config_difference(&before, config);
    char others[256]; /* the keys that differ if a key was left out on which others depend */
    if (!result && ranks_first(ranks) && !key && config_differences(&before, config, others, sizeof others))
        result = fail("'%s' was begun with other keys (in brackets: now): %s: --resume needs the same ('%s' has them)", run, others, path);
    /* with train.patience the MRR of train.evaluate decides where the run ends */
    if (!result && !key && config->train_patience && strcmp(before.train_evaluate, config->train_evaluate)) key = "train.evaluate";
    if (key) result = fail("'%s' was begun with another %s: --resume needs the same keys ('%s' has them)", run, key, path);
    /* train.update = auto was replaced by the run's value, which must work with this number of ranks */
    if (!result && config->train_update != chosen) result = config_resolve(config);
    return result;
}

int resume_corpus(const struct config *config, const char *checkpoint, const struct run_state *older,
                  const struct corpus_identity *corpus, uint64_t examples_per_epoch) {
    uint64_t position = older->progress.position;
    if (older->corpus.vocab != corpus->vocab)
        return fail("'%s' was trained on another vocabulary: the corpus has changed since; --overwrite starts over", checkpoint);
    if (older->corpus.stream != corpus->stream || position >= examples_per_epoch || older->progress.epoch > UINT32_MAX)
        return fail("'%s' was trained on the same words in another order or other %s: the corpus has changed since; --overwrite starts over",
                    checkpoint, config_lines(config));
    if (older->corpus.tree != corpus->tree)
        return fail("'%s' was trained along another tree of the same words, by another version: train from the beginning with --overwrite",
                    checkpoint);
    return 0;
}

/* Returns how far the learning rate has fallen from lr (0) to lr x min_lr_ratio (1). */
static double fallen(int schedule, double done) {
    if (schedule == SCHEDULE_LINEAR) return done;
    if (schedule == SCHEDULE_COSINE) return 0.5 * (1 - cos(acos(-1.0) * done));
    return 0;
}

double schedule_rate(const struct config *config, double done) {
    double lr = config->optimizer_lr, warmup = config->optimizer_warmup;
    done = fmin(fmax(done, 0), 1);
    if (done < warmup) return lr * done / warmup;
    double after = warmup < 1 ? (done - warmup) / (1 - warmup) : 0;
    return lr - lr * (1 - config->optimizer_min_lr_ratio) * fallen(config->optimizer_schedule, after);
}

struct loss_options schedule_loss(const struct config *config, double done) {
    struct loss_options loss = config_loss(config);
    double share = done < config->train_n3_warmup ? fmax(done, 0) / config->train_n3_warmup : 1;
    loss.cubes *= (float)(share * share);
    return loss;
}

int schedule_examples(const struct config *config, uint64_t per_epoch, uint64_t batch, uint64_t *total) {
    uint64_t steps_per_epoch = schedule_epoch_steps(per_epoch, batch), by_epochs = UINT64_MAX, by_steps = UINT64_MAX;
    if (config->train_epochs && __builtin_mul_overflow(config->train_epochs, per_epoch, &by_epochs))
        return fail("train.epochs = %" PRIu64 " makes more examples than 2^64", config->train_epochs);
    if (config->train_steps) {
        uint64_t epochs = config->train_steps / steps_per_epoch, left = config->train_steps % steps_per_epoch;
        if (__builtin_mul_overflow(epochs, per_epoch, &by_steps)) by_steps = UINT64_MAX;
        else by_steps += left * batch;
    }
    *total = by_epochs < by_steps ? by_epochs : by_steps;
    return 0;
}
