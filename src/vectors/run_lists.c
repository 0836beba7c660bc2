#include "run_lists.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

static int has_targets(const struct model *model) {
    return model->mode == MODE_ADJACENCY || model->mode == MODE_WALK;
}

/* Returns the row of a list. In a run of citations or of a graph a list's name is a paper or a node, and its row is the target
 * row of that paper or node. In other runs a list has a row of its own. */
int64_t run_lists_row(const struct model *model, const char *name, uint64_t length) {
    if (!has_targets(model)) return vocab_find_list(&model->vocab, name, length);
    int64_t row = vocab_find(&model->vocab, name, length);
    return row >= 0 && model_is_trained(model, TABLE_TARGET, (uint64_t)row) ? row : -1;
}

enum { NEAR_LISTS = 100000 }; /* most names with which a misspelt name is compared */

const char *run_lists_near(const struct model *model, const char *name) {
    if (has_targets(model)) return vocab_near(&model->vocab, name);
    uint64_t first = model_items(model), count = model->vocab.lists < NEAR_LISTS ? model->vocab.lists : NEAR_LISTS;
    const char **names = mem_alloc(count, sizeof *names, "the nearest name of a list");
    if (!names) {
        report_clear(); /* if memory is short, no name is suggested */
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++) names[i] = vocab_word(&model->vocab, first + i, NULL) + strlen(vocab_prefix(&model->vocab));
    const char *near = text_nearest(name, names, count);
    free(names);
    return near;
}

int64_t run_lists_find(const struct model *model, const char *name) {
    int64_t row = run_lists_row(model, name, strlen(name));
    if (row >= 0) return row;
    if (!has_targets(model) && !model->vocab.lists)
        return fail_usage("'%s' keeps no names of lists: with examples.mode = user lists have rows of their own; give the items of "
                          "'%.100s' instead",
                          model->directory, name);
    const char *near = run_lists_near(model, name);
    return fail_usage("'%s' was trained on no list '%.100s'%s%s%s", model->directory, name, near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "");
}

/* ---- their items ---- */

/* Returns the path of the encoded corpus, for the caller to free; NULL after fail(). */
static char *path_of_stream(const struct model *model) {
    struct config config = {.name = NULL};
    char *keys = file_join(model->directory, "config.ini"), *path = NULL;
    if (keys && !config_init(&config) && !config_read(&config, keys))
        path = file_join(*config.corpus_cache ? config.corpus_cache : model->directory, "corpus.ids");
    config_release(&config);
    free(keys);
    return path;
}

int run_stream_open(struct idstream *stream, const struct model *model, struct pool *pool, const char *then) {
    char *path = path_of_stream(model);
    *stream = (struct idstream){0};
    if (!path) return -1;
    int there = file_exists(path), found = there == 1 && !idstream_open_any(stream, path, model->rows, pool);
    if (there < 0 || (there == 1 && !found && idstream_has(path, model->state.corpus.stream))) { /* it is the run's, and cannot be read */
        free(path);
        return -1;
    }
    if (found && model->state.corpus.stream && stream->checksum != model->state.corpus.stream) {
        idstream_close(stream);
        found = 0;
    }
    if (!found) {
        report_clear();
        warn("'%s' is gone, or belongs to another run than '%s': %s", path, model->directory, then);
    }
    free(path);
    return found;
}

static uint64_t place_of(const struct run_lists *lists, uint64_t sentence) {
    uint64_t row = lists->stream.ids[lists->stream.starts[sentence]];
    return row < lists->first ? 0 : row - lists->first;
}

/* Sorts the numbers of sentences by the row that each sentence begins with, which is the row of its list. */
static int group(struct run_lists *lists, uint64_t rows) {
    uint64_t count = rows - lists->first;
    lists->starts = mem_zalloc(count + 2, sizeof *lists->starts, "the lists of a run");
    lists->sentences = mem_alloc(lists->stream.sentences, sizeof *lists->sentences, "the lists of a run");
    if (!lists->starts || !lists->sentences) return -1;
    for (uint64_t i = 0; i < lists->stream.sentences; i++) lists->starts[place_of(lists, i) + 2]++;
    for (uint64_t i = 0; i < count; i++) lists->starts[i + 2] += lists->starts[i + 1];
    for (uint64_t i = 0; i < lists->stream.sentences; i++) lists->sentences[lists->starts[place_of(lists, i) + 1]++] = i;
    return 0;
}

int run_lists_check(const struct model *model) {
    if (!model->relations) return 0;
    return fail("'%s' was trained on triples, which are no lists: recommend answers --head=X --relation=R, and evaluate judges "
                "--triples=FILE", model->directory);
}

int run_lists_open(struct run_lists *lists, const struct model *model, struct pool *pool) {
    if (run_lists_check(model)) return -1;
    *lists = (struct run_lists){.first = model->vocab.lists ? model_items(model) : 0};
    if (model->mode == MODE_WALK || (!model->vocab.lists && !has_targets(model))) return 0;
    int there = run_stream_open(&lists->stream, model, pool, "the items of its lists are not known, and may be recommended to them");
    return there > 0 ? group(lists, model->rows) : there;
}

void run_lists_close(struct run_lists *lists) {
    idstream_close(&lists->stream);
    free(lists->starts);
    free(lists->sentences);
    *lists = (struct run_lists){.first = 0};
}

int run_lists_items(const struct run_lists *lists, int64_t row, uint64_t **codes, uint64_t *count, uint64_t *capacity) {
    const struct idstream *stream = &lists->stream;
    uint64_t place = (uint64_t)row - lists->first;
    if (!stream->sentences) return 0;
    for (uint64_t i = lists->starts[place]; i < lists->starts[place + 1]; i++) {
        uint64_t first = stream->starts[lists->sentences[i]] + 1, end = stream->starts[lists->sentences[i] + 1];
        if (mem_grow(codes, capacity, *count + (end - first), sizeof **codes, "the items of lists")) return -1;
        for (uint64_t at = first; at < end; at++) (*codes)[(*count)++] = stream->ids[at];
    }
    return 0;
}
