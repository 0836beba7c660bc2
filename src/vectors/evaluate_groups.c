#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct groups_job {
    const struct groups_request *request;
    const struct model *model;
    const char *path;
    struct search search;
    struct search_block block;
    uint64_t rows; /* number of rows that are searched: all rows up to the last one that occurs `met` times in the corpus */
    int columns;
    struct names labels[SPTX_GROUPS_MOST];
    uint32_t *group[SPTX_GROUPS_MOST]; /* [rows] 1 + the number of the row's label; 0: the file gives the row no label in this
                                        * column */
    uint64_t *size[SPTX_GROUPS_MOST];  /* [labels] number of searched rows that have the label */
    uint32_t *asked;              /* rows that are asked for their nearest rows */
};

/* Prepares a column of groups for each column of the file's first line. */
static int open_columns(struct groups_job *job, int columns) {
    if (columns < 1 || columns > SPTX_GROUPS_MOST)
        return fail("'%s': the first line has %d groups behind its word; wanted 1 to %d", job->path, columns, SPTX_GROUPS_MOST);
    for (; job->columns < columns; job->columns++)
        if (!(job->group[job->columns] = mem_zalloc(job->rows, sizeof **job->group, "the groups of rows"))) return -1;
    return 0;
}

static int take_groups(struct field_file *file, struct groups_job *job) {
    int columns = (int)file->line.count - 1;
    if (!job->columns && open_columns(job, columns)) return -1;
    if (columns != job->columns)
        return fail("'%s' line %" PRIu64 " has %d groups behind its word, the first line %d", job->path, file->number, columns,
                    job->columns);
    int64_t row = vocab_find(&job->model->vocab, file->line.word[0], file->line.length[0]);
    for (int column = 0; column < columns && row >= 0 && (uint64_t)row < job->rows; column++) {
        int64_t number = names_add(&job->labels[column], file->line.word[column + 1], file->line.length[column + 1]);
        if (number < 0) return -1;
        job->group[column][row] = (uint32_t)number + 1;
    }
    return 0;
}

static int read_groups(struct field_file *file, struct groups_job *job) {
    int more;
    while ((more = field_file_next(file)) > 0)
        if (take_groups(file, job)) return -1;
    if (more) return -1;
    return job->columns ? 0 : fail("'%s' has no line: wanted a word and its groups on each", job->path);
}

static int count_members(struct groups_job *job) {
    for (int column = 0; column < job->columns; column++) {
        uint64_t *size = mem_zalloc(job->labels[column].words.size + 1, sizeof *size, "the sizes of groups");
        if (!(job->size[column] = size)) return -1;
        for (uint64_t row = 0; row < job->rows; row++)
            if (job->group[column][row]) size[job->group[column][row] - 1]++;
    }
    return 0;
}

/* Chooses the rows to ask: the first `sample` eligible rows of a fixed random order. *all: number of eligible rows. */
static int choose_rows(struct groups_job *job, uint64_t *asked, uint64_t *all) {
    uint64_t most = job->request->sample < job->rows ? job->request->sample : job->rows;
    struct shuffle order = shuffle_make(job->rows, draw_at(1, DRAW_SHUFFLE, 0, 0, 0));
    job->asked = mem_alloc(most, sizeof *job->asked, "the rows asked");
    if (!job->asked) return -1;
    for (uint64_t i = *asked = *all = 0; i < job->rows; i++) {
        uint64_t row = shuffle_at(&order, i);
        if (vocab_count(&job->model->vocab, row) < job->request->met || !job->group[0][row]) continue;
        if (*asked < most) job->asked[(*asked)++] = (uint32_t)row;
        ++*all;
    }
    if (!*asked)
        return fail("no word that the corpus names %" PRIu64 " times or more stands in '%s'", job->request->met, job->path);
    return 0;
}

/* Adds the row's result to each column's sums. A row that is alone in its group is not counted in that column. */
static void score_groups(const struct groups_job *job, struct sptx_groups_score *scores, uint64_t row, const uint32_t *found) {
    for (int column = 0; column < job->columns; column++) {
        const uint32_t *group = job->group[column];
        uint64_t others = group[row] ? job->size[column][group[row] - 1] - 1 : 0, hits = 0;
        double k = job->request->k, possible = fmin(k, (double)others);
        if (!others) continue;
        for (uint32_t i = 0; i < job->request->k; i++) hits += found[i] != DRAW_NONE && group[found[i]] == group[row];
        scores[column].share += (double)hits / possible;
        scores[column].chance += fmin(k, (double)(job->rows - 1)) * (double)others / (double)(job->rows - 1) / possible;
        scores[column].asked++;
    }
}

static int ask_rows(struct groups_job *job, struct sptx_groups_score *scores, uint64_t asked) {
    struct search_block *block = &job->block;
    uint32_t dim = job->search.dim, k = job->request->k;
    for (uint64_t first = 0; first < asked; first += block->rows) {
        uint64_t n = asked - first < block->rows ? asked - first : block->rows;
        const uint32_t *rows = job->asked + first;
        for (uint64_t i = 0; i < n; i++)
            memcpy(block->queries + i * dim, job->search.base + (uint64_t)rows[i] * dim, dim * sizeof(float));
        for (uint64_t i = 0; i <= n; i++) block->banned_starts[i] = i; /* each query bans its own row */
        if (search_top(&job->search, block->queries, n, k, block->banned_starts, rows, block->ids, block->scores)) return -1;
        for (uint64_t i = 0; i < n; i++) score_groups(job, scores, rows[i], block->ids + i * k);
    }
    return 0;
}

static void groups_release(struct groups_job *job) {
    for (int column = 0; column < SPTX_GROUPS_MOST; column++) {
        names_release(&job->labels[column]);
        free(job->group[column]);
        free(job->size[column]);
    }
    free(job->asked);
    search_block_release(&job->block);
    search_close(&job->search);
}

/* Divides the sums by the number of rows. Returns the number of columns; -1 after fail() if no row that was asked shares a group
 * with another row. */
static int settle_scores(const struct groups_job *job, struct sptx_groups_score *scores, uint64_t rows) {
    uint64_t asked = 0;
    for (int column = 0; column < job->columns; column++) {
        struct sptx_groups_score *score = &scores[column];
        asked += score->asked;
        score->rows = rows;
        score->share = score->asked ? score->share / (double)score->asked : NAN;
        score->chance = score->asked ? score->chance / (double)score->asked : NAN;
    }
    return asked ? job->columns : fail("no row of '%s' that was asked has another one in its group", job->path);
}

int evaluate_groups(struct sptx_groups_score *scores, const struct model *model, enum model_view view, const char *path,
                    const struct groups_request *request, const struct config *config) {
    struct groups_job job = {.request = request, .model = model, .path = path, .rows = model_items(model)};
    struct field_file file;
    uint64_t asked, all;
    int result = -1;
    for (int i = 0; i < SPTX_GROUPS_MOST; i++) scores[i] = (struct sptx_groups_score){.share = 0};
    while (job.rows && vocab_count(&model->vocab, job.rows - 1) < request->met) job.rows--;
    if (field_file_open(&file, path, LOOK_LABELS)) goto out;
    if (!job.rows) {
        fail("no word of '%s' is named %" PRIu64 " times or more by its corpus", model->directory, request->met);
        goto out;
    }
    if (read_groups(&file, &job) || count_members(&job) || choose_rows(&job, &asked, &all) ||
        search_open(&job.search, model, view, METRIC_COSINE, job.rows, config) ||
        search_block_init(&job.block, model->dim, request->k, asked) || ask_rows(&job, scores, asked))
        goto out;
    result = settle_scores(&job, scores, all);
out:
    field_file_close(&file);
    groups_release(&job);
    return result;
}
