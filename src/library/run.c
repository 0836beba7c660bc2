#include "handles.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum sptx_status sptx_run_open(struct sptx_context *context, const char *path, struct sptx_run **out) {
    if (!context || !out) return SPTX_USAGE;
    *out = NULL;
    enter(context);
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    if (!path || !*path) return leave(context, fail_usage("a run is opened by its path; none was given"));
    struct sptx_run *run = mem_zalloc(1, sizeof *run, "a run");
    if (!run || model_open(&run->model, path)) {
        free(run);
        return leave(context, -1);
    }
    run->context = context;
    run->next = context->runs;
    context->runs = run;
    *out = run;
    return leave(context, 0);
}

void sptx_run_close(struct sptx_run *run) {
    if (!run) return;
    struct sptx_context *context = run->context;
    struct sptx_run **at = &context->runs;
    while (*at != run) at = &(*at)->next;
    *at = run->next;
    enter(context);
    if (run->searching) search_close(&run->search);
    model_close(&run->model);
    leave(context, 0);
    free(run);
}

uint64_t sptx_run_rows(const struct sptx_run *run) {
    return run ? run->model.rows : 0;
}

uint32_t sptx_run_dim(const struct sptx_run *run) {
    return run ? run->model.dim : 0;
}

const char *sptx_run_word(const struct sptx_run *run, uint64_t row, uint64_t *length) {
    return run && row < run->model.rows ? vocab_word(&run->model.vocab, row, length) : NULL;
}

uint64_t sptx_run_count(const struct sptx_run *run, uint64_t row) {
    return run && row < run->model.rows ? run->model.vocab.counts[row] : 0;
}

enum sptx_status sptx_run_find(struct sptx_run *run, const char *word, uint64_t *row) {
    if (!run || !word || !row) return SPTX_USAGE;
    enter(run->context);
    int64_t found = vocab_find(&run->model.vocab, word, strlen(word));
    if (found >= 0) {
        *row = (uint64_t)found;
        return leave(run->context, 0);
    }
    const char *near = vocab_near(&run->model.vocab, word);
    return leave(run->context, fail_usage("'%s' is no word of '%s'%s%s%s", word, run->model.directory,
                                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ""));
}

enum sptx_status sptx_run_view(struct sptx_run *run, const char *table, struct sptx_view *out) {
    if (!run || !out) return SPTX_USAGE;
    enter(run->context);
    if (out->size < sizeof *out)
        return leave(run->context, fail_usage("a view's size is %" PRIu64 ", wanted %zu", out->size, sizeof *out));
    int target = table && !strcmp(table, "target"), context = table && !strcmp(table, "context");
    if (!target && !context)
        return leave(run->context, fail_usage("a run has the tables 'target' and 'context', not '%s'", table ? table : "NULL"));
    const struct npy *npy = target ? &run->model.target : &run->model.context;
    const struct npy_field *weights = npy_find(npy, "weights");
    *out = (struct sptx_view){.size = sizeof *out,
                              .data = (float *)(uintptr_t)npy_row(npy, weights, 0), /* mapped read-only */
                              .rows = npy->rows,
                              .stride = npy->record,
                              .dim = run->model.dim};
    return leave(run->context, 0);
}

/* ---- nearest ---- */

static int open_search(struct sptx_run *run) {
    struct config config;
    if (run->searching) return 0;
    if (config_init(&config)) return -1;
    config.device_backend = run->context->ops == &backend_cuda ? BACKEND_CUDA : BACKEND_CPU;
    config.device_threads = pool_threads(run->context->pool);
    if (run->context->ops == &backend_cuda) config.device_index = strtoul(run->context->device + sizeof "cuda:" - 1, NULL, 10);
    int result = search_open(&run->search, &run->model, VIEW_TARGET, METRIC_COSINE, 0, &config);
    config_release(&config);
    run->searching = !result;
    return result;
}

enum sptx_status sptx_run_nearest(struct sptx_run *run, const float *queries, uint64_t count, const uint32_t *excluded,
                                  uint32_t k, uint32_t *rows, float *scores) {
    if (!run) return SPTX_USAGE;
    uint64_t *starts = NULL;
    int result = -1;
    enter(run->context);
    if (!count || !k) return leave(run->context, 0);
    if (!queries || !rows || !scores) return leave(run->context, fail_usage("queries, rows and scores are wanted; one is NULL"));
    if (excluded) {
        starts = mem_alloc(count + 1, sizeof *starts, "queries");
        if (!starts) goto out;
        for (uint64_t i = 0; i <= count; i++) starts[i] = i;
    }
    if (open_search(run) || search_top(&run->search, queries, count, k, starts, excluded, rows, scores)) goto out;
    result = 0;
out:
    free(starts);
    return leave(run->context, result);
}
