/* Checks, plans and trains a corpus of more than 2^31 tokens in a file, at both its ends. Most of the file is a hole. */
#define _GNU_SOURCE
#include "edge.h"

#include "base/memory.h"
#include "corpus/idstream.h"
#include "train/session.h"
#include "train/steps.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

enum { ROWS = 1000, PIECE = 1 << 18 }; /* PIECE: bytes of a chunk in an id stream's checksum */

/* The stream's header, as in idstream.c. */
struct header {
    char magic[8];
    uint32_t version, unused;
    uint64_t fingerprint, tokens, sentences, sum;
    char rest[IDSTREAM_HEADER - 48];
};

/* Bytes of the file that are not a hole, at an offset from the end of the header. The last parts contain the starts of
 * sentences. */
struct part {
    const void *bytes;
    uint64_t at, length;
};

/* Returns the XXH3 of the XXH3s of all chunks; the XXH3 of a chunk of zeros is computed once. */
static uint64_t sum_of(const struct part *parts, int count, uint64_t size) {
    char *piece = need(PIECE);
    uint64_t pieces = (size + PIECE - 1) / PIECE, *sums = need(pieces * 8), empty = XXH3_64bits(piece, PIECE);
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t from = i * PIECE, length = size - from < PIECE ? size - from : PIECE;
        int hole = length == PIECE;
        memset(piece, 0, PIECE);
        for (int p = 0; p < count; p++) {
            uint64_t first = parts[p].at > from ? parts[p].at : from, end = parts[p].at + parts[p].length;
            if (end > from + length) end = from + length;
            if (first >= end) continue;
            memcpy(piece + (first - from), (const char *)parts[p].bytes + (first - parts[p].at), end - first);
            hole = 0;
        }
        sums[i] = hole ? empty : XXH3_64bits(piece, length);
    }
    uint64_t sum = XXH3_64bits(sums, pieces * 8);
    free(sums);
    free(piece);
    return sum;
}

static int write_parts(const char *path, const struct header *header, const struct part *parts, int count,
                       uint64_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int result = fd < 0 || pwrite(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header;
    for (int p = 0; p < count && !result; p++)
        result = pwrite(fd, parts[p].bytes, parts[p].length, (off_t)(sizeof *header + parts[p].at)) !=
                 (ssize_t)parts[p].length;
    if (!result) result = ftruncate(fd, (off_t)(sizeof *header + size));
    if (fd >= 0) close(fd);
    return result ? -1 : 0;
}

/* Writes the vocabulary of the stream: ROWS words, of which the first is nearly all tokens. */
static int write_vocabulary(const char *path, uint64_t *fingerprint) {
    struct vocab vocab;
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fprintf(file, "w0\t%llu\n", (unsigned long long)EDGE_TOKENS);
    for (int i = 1; i < ROWS; i++) fprintf(file, "w%d\t3\n", i);
    if (fclose(file) || vocab_read(&vocab, path)) return -1;
    *fingerprint = vocab_fingerprint(&vocab);
    vocab_release(&vocab);
    return 0;
}

static int write_corpus(const char *ids_path, const char *vocab_path) {
    static uint32_t ids[EDGE_PLACES][EDGE_NEAR];
    struct part parts[EDGE_PLACES + 1];
    struct header header = {.version = 2, .tokens = EDGE_TOKENS, .sentences = EDGE_SENTENCES};
    memcpy(header.magic, CORPUS_STREAM_MAGIC, sizeof header.magic);
    for (int i = 0; i < EDGE_PLACES; i++) {
        for (uint64_t j = 0; j < EDGE_NEAR; j++) ids[i][j] = edge_id(j, ROWS);
        parts[i] = (struct part){ids[i], EDGE_IDS[i] * 4, sizeof ids[i]};
    }
    parts[EDGE_PLACES] = (struct part){EDGE_STARTS, EDGE_TOKENS * 4, sizeof EDGE_STARTS};
    uint64_t size = EDGE_TOKENS * 4 + sizeof EDGE_STARTS;
    header.sum = sum_of(parts, EDGE_PLACES + 1, size);
    return write_vocabulary(vocab_path, &header.fingerprint) ||
                   write_parts(ids_path, &header, parts, EDGE_PLACES + 1, size)
               ? -1
               : 0;
}

static int configure(struct config *config, const char *ids_path, const char *backend) {
    char path[320], cache[320], device[64];
    const char *settings[] = {path,
                              device,
                              "--examples.window=4",
                              "--examples.shrink=no",
                              "--examples.subsample=0",
                              "--negatives.law=uniform",
                              "--negatives.exclude=no",
                              "--negatives.per=example",
                              "--negatives.count=6",
                              "--model.dim=8",
                              "--train.update=batch",
                              "--train.batch=200",
                              "--corpus.order=given",
                              cache,
                              "--run.dir=edge"};
    snprintf(path, sizeof path, "--corpus.path=%s", ids_path);
    snprintf(cache, sizeof cache, "--corpus.cache=%s",
             directory); /* the stream is used in place; its words are copied */
    snprintf(device, sizeof device, "--device.backend=%s", backend);
    if (config_init(config)) return -1;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (config_argument(config, settings[i], "command line")) return -1;
    return config_resolve(config);
}

/* Does steps at both ends of the stream and around 2^31, in the session's tables. */
static void check_steps(struct session *s) {
    struct pipeline pipeline;
    struct step_result result;
    struct batch_view view;
    int came;
    pipeline_init(&pipeline, s->ops, s->backend, 3);
    for (int i = 0; i < EDGE_PLACES; i++) {
        struct batch_request batch = {0, EDGE_BATCHES[i], EDGE_BATCH, 0};
        struct step_request step = {.target = s->target.store,
                                    .context = s->context.store,
                                    .rule = &s->target.rule,
                                    .lr = 0.025,
                                    .global_step = (uint64_t)i};
        unsigned stage = pipeline.next;
        int ok =
            !pipeline_submit(&pipeline, &batch, &step, &result, &came) && !s->ops->batch_view(s->backend, stage, &view);
        CHECK(ok && is_batch_of_windows(&s->examples.source, &batch, &view), "%s: a session's batch from %llu",
              s->ops->name, (unsigned long long)batch.first);
        CHECK(pipeline_next(&pipeline, &result) == 1 && result.words == EDGE_BATCH && result.examples == EDGE_BATCH &&
                  fabs(result.loss - (double)result.terms * log(2)) < 1e-3 * result.loss,
              "%s: a session's step from %llu: loss %g of %llu terms", s->ops->name, (unsigned long long)batch.first,
              result.loss, (unsigned long long)result.terms);
    }
}

void test_edge_session(const struct backend_ops *ops) {
    char ids_path[288], vocab_path[320];
    struct config config;
    struct session s = {0};
    snprintf(ids_path, sizeof ids_path, "%s/edge.ids", directory);
    snprintf(vocab_path, sizeof vocab_path, "%s.vocab.tsv", ids_path);
    if (mem_available() < 10 * GIB) {
        SKIP("a file of 2^31 tokens: %.1f GiB are free", mem_available() / (double)GIB);
        return;
    }
    if (write_corpus(ids_path, vocab_path)) {
        SKIP("a file of 2^31 tokens: %s has no room for it", directory);
    } else {
        int ok = !configure(&config, ids_path, ops->name) && !session_open(&s, &config, NULL, NULL, NULL);
        CHECK(ok && s.plan.tokens == EDGE_TOKENS && s.plan.rows == ROWS && s.plan.stream_bytes >= EDGE_TOKENS * 4 &&
                  s.plan.fits,
              "%s: a session of 2^31 tokens", ops->name);
        ok = ok && !session_tables(&s);
        CHECK(ok, "%s: its tables", ops->name);
        if (ok) check_steps(&s);
        session_close(&s);
        config_release(&config);
    }
    unlink(ids_path);
    unlink(vocab_path);
    snprintf(vocab_path, sizeof vocab_path, "%s/corpus.vocab.tsv", directory);
    unlink(vocab_path);
}
