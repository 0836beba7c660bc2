#include "counts.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"

#include <inttypes.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER = 1 << 16 };

/* ---- writing ---- */

int counts_writer_open(struct counts_writer *w, const char *path, uint32_t together) {
    *w = (struct counts_writer){.path = path, .together = together, .fd = -1};
    w->out.file.fd = -1;
    w->ids = mem_alloc(BUFFER, sizeof *w->ids, "writing counts");
    w->weights = mem_alloc(BUFFER, sizeof *w->weights, "writing counts");
    if (!w->ids || !w->weights || (w->fd = file_open_unnamed(path)) < 0) return -1;
    return idstream_writer_open(&w->out, path);
}

static int flush(struct counts_writer *w) {
    if (interrupt_check() || idstream_put(&w->out, w->ids, w->used)) return -1;
    if (retry_write_at(w->fd, w->weights, w->used * sizeof *w->weights, w->written * sizeof *w->weights)) return fail_system("write beside", w->path);
    w->written += w->used;
    w->used = 0;
    return 0;
}

static inline int put_entry(struct counts_writer *w, uint32_t id, float weight) {
    if (w->used == BUFFER && flush(w)) return -1;
    w->ids[w->used] = id;
    w->weights[w->used++] = weight;
    return 0;
}

int counts_writer_put(struct counts_writer *w, uint32_t row, uint32_t column, float count) {
    uint64_t entries = w->written + w->used;
    if (!entries || row != w->row || w->held == w->together) {
        if ((entries && idstream_end_sentence(&w->out, entries)) || put_entry(w, row, 0)) return -1;
        w->row = row, w->held = 0;
    }
    w->held++;
    return put_entry(w, column, count);
}

int counts_writer_commit(struct counts_writer *w, uint64_t fingerprint) {
    uint64_t entries = w->written + w->used;
    if (!entries) return fail("'%s' would have no counts: no two words of the vocabulary occur together", w->path);
    if (flush(w) || idstream_end_sentence(&w->out, entries)) return -1;
    w->out.weighed = PAIR_WEIGHTS_LINEAR;
    for (uint64_t at = 0; at < entries; at += BUFFER) {
        uint64_t count = entries - at < BUFFER ? entries - at : BUFFER, bytes = count * sizeof *w->weights;
        if (retry_read_at(w->fd, w->weights, bytes, at * sizeof *w->weights) != (int64_t)bytes) return fail_system("read a file beside", w->path);
        if (idstream_put_weights(&w->out, w->weights, count)) return -1;
    }
    return idstream_writer_commit(&w->out, fingerprint);
}

void counts_writer_abandon(struct counts_writer *w) {
    idstream_writer_abandon(&w->out);
    if (w->fd >= 0) retry_close(w->fd);
    mem_free(w->ids, w->weights);
    *w = (struct counts_writer){.fd = -1};
    w->out.file.fd = -1;
}

/* ---- making ---- */

uint64_t counts_fingerprint(const struct counts_wanted *wanted) {
    const uint64_t of[] = {1, wanted->text ? wanted->text->checksum : wanted->graph->checksum, wanted->words, wanted->window, wanted->together};
    return XXH3_64bits(of, sizeof of);
}

static int put_text(struct counts_writer *w, const struct counts_wanted *wanted, struct pool *pool) {
    const struct idstream *text = wanted->text;
    struct cooccur_text counted = {text->ids, text->starts, text->tokens, text->sentences, wanted->words};
    struct cooccur_wanted how = {.window = wanted->window, .memory = wanted->memory, .path = w->path};
    char pairs[TEXT_BYTES], runs[TEXT_BYTES];
    struct cooccur_pair pair;
    uint64_t all = 0;
    double began = progress_now();
    struct cooccur *cooccur = cooccur_open(&counted, &how, pool);
    if (!cooccur) return -1;
    double unit = 1.0 / (double)cooccur_unit(cooccur);
    int more;
    while ((more = cooccur_next(cooccur, &pair)) > 0 && !counts_writer_put(w, pair.row, pair.column, (float)((double)pair.units * unit))) all++;
    if (more == 0)
        note("counted    %s pairs of words within %" PRIu32 " words in %.1f s%s%s%s", text_of_count(pairs, all), wanted->window,
             progress_now() - began,
             cooccur_runs(cooccur) ? ", merged from " : "", cooccur_runs(cooccur) ? text_of_count(runs, cooccur_runs(cooccur)) : "",
             cooccur_runs(cooccur) ? " runs on disk" : "");
    cooccur_close(cooccur);
    return more ? -1 : 0;
}

static int put_graph(struct counts_writer *w, const struct graph *graph) {
    for (uint64_t node = 0; node < graph->nodes; node++)
        for (uint64_t i = graph->starts[node]; i < graph->starts[node + 1]; i++)
            if (counts_writer_put(w, (uint32_t)node, graph->neighbours[i], graph->weights[i])) return -1;
    return 0;
}

int counts_make(const char *path, const struct counts_wanted *wanted, struct pool *pool) {
    struct counts_writer writer;
    int result = counts_writer_open(&writer, path, wanted->together);
    if (!result) result = wanted->text ? put_text(&writer, wanted, pool) : put_graph(&writer, wanted->graph);
    if (!result) result = counts_writer_commit(&writer, counts_fingerprint(wanted));
    counts_writer_abandon(&writer);
    return result;
}
