#include "evaluate.h"

#include "lines.h"
#include "names.h"
#include "base/memory.h"
#include "base/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Items in the order met, each with its list; then list by list. */
struct items {
    struct item {
        uint64_t list, code; /* code: a row, or rows + the number of an unknown item */
    } * item;
    uint64_t count, room;
    uint64_t *starts; /* [lists + 1] into codes */
    uint64_t *codes;
};

static void items_release(struct items *items) {
    free(items->item);
    free(items->starts);
    free(items->codes);
    *items = (struct items){.count = 0};
}

static int items_add(struct items *items, uint64_t list, uint64_t code) {
    if (mem_grow(&items->item, &items->room, items->count + 1, sizeof *items->item, "items of lists")) return -1;
    items->item[items->count++] = (struct item){list, code};
    return 0;
}

/* Brings the items of each list together, their order kept. */
static int items_group(struct items *items, uint64_t lists) {
    items->starts = mem_zalloc(lists + 2, sizeof *items->starts, "items of lists");
    items->codes = mem_alloc(items->count, sizeof *items->codes, "items of lists");
    if (!items->starts || !items->codes) return -1;
    for (uint64_t i = 0; i < items->count; i++) items->starts[items->item[i].list + 2]++;
    for (uint64_t list = 0; list < lists; list++) items->starts[list + 2] += items->starts[list + 1];
    for (uint64_t i = 0; i < items->count; i++)
        items->codes[items->starts[items->item[i].list + 1]++] = items->item[i].code;
    return 0;
}

/* Every list of the file, one that comes twice continued; items that the model does not know are told apart by
 * `unknown`. */
static int read_held_out(struct lines *lines, const struct model *model, struct names *lists, struct names *unknown,
                         struct items *items) {
    struct token token;
    while (lines_next(lines)) {
        if (!lines_token(lines, &token)) continue;
        int64_t list = names_add(lists, token.text, token.length);
        if (list < 0) return -1;
        while (lines_token(lines, &token)) {
            int64_t row = vocab_find(&model->vocab, token.text, token.length);
            int64_t number = row < 0 ? names_add(unknown, token.text, token.length) : 0;
            if (number < 0) return -1;
            if (items_add(items, (uint64_t)list, row < 0 ? model->rows + (uint64_t)number : (uint64_t)row)) return -1;
        }
    }
    return 0;
}

/* The known items of those lists that have held-out ones; a list that is there gets row 0 in its name as a mark. */
static int read_train(struct lines *lines, const struct model *model, struct names *lists, struct items *items) {
    struct token token;
    while (lines_next(lines)) {
        if (!lines_token(lines, &token)) continue;
        int64_t list = names_find(lists, token.text, token.length);
        if (list < 0) continue;
        lists->row[list] = 0;
        while (lines_token(lines, &token)) {
            int64_t row = vocab_find(&model->vocab, token.text, token.length);
            if (row >= 0 && items_add(items, (uint64_t)list, (uint64_t)row)) return -1;
        }
    }
    return 0;
}

struct lists_job {
    struct search search;
    struct search_block block;
    struct items train, held_out;
    uint64_t *scored; /* the lists that count */
    double *gains;    /* [k] of a hit at each place */
    uint32_t k;
};

/* The mean of a list's unit rows (zeros where none is known) as a query that may not find them again. */
static int ask_list(struct lists_job *job, uint64_t place, uint64_t list) {
    uint32_t dim = job->search.dim;
    float *query = job->block.queries + place * dim;
    const uint64_t *codes = job->train.codes + job->train.starts[list];
    uint64_t count = job->train.starts[list + 1] - job->train.starts[list], from = job->block.banned_starts[place];
    if (mem_grow(&job->block.banned, &job->block.banned_room, from + count, sizeof *job->block.banned, "queries"))
        return -1;
    memset(query, 0, dim * sizeof *query);
    for (uint64_t i = 0; i < count; i++) {
        const float *row = job->search.base + codes[i] * dim;
        for (uint32_t column = 0; column < dim; column++) query[column] += row[column];
        job->block.banned[from + i] = (uint32_t)codes[i];
    }
    for (uint32_t column = 0; count && column < dim; column++) query[column] /= (float)count;
    job->block.banned_starts[place + 1] = from + search_distinct(job->block.banned + from, count);
    return 0;
}

static int by_code(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds one list's answer to the sums. */
static void score_list(struct lists_job *job, struct lists_score *sums, uint64_t place, uint64_t list, uint64_t rows) {
    uint64_t *codes = job->held_out.codes + job->held_out.starts[list];
    uint64_t count = job->held_out.starts[list + 1] - job->held_out.starts[list], distinct = 0, hits = 0;
    double gain = 0, best = 0;
    qsort(codes, count, sizeof *codes, by_code);
    for (uint64_t i = 0; i < count; i++)
        if (!distinct || codes[distinct - 1] != codes[i]) {
            codes[distinct++] = codes[i];
            sums->unknown += codes[distinct - 1] >= rows;
        }
    for (uint32_t i = 0; i < job->k; i++) {
        uint64_t found = job->block.ids[place * job->k + i];
        if (found == DRAW_NONE || !bsearch(&found, codes, distinct, sizeof *codes, by_code)) continue;
        hits++;
        gain += job->gains[i];
    }
    for (uint64_t i = 0; i < distinct && i < job->k; i++) best += job->gains[i];
    sums->recall += (double)hits / (double)distinct;
    sums->ndcg += gain / best;
    sums->hit += hits > 0;
}

static int score_lists(struct lists_job *job, struct lists_score *sums, uint64_t rows) {
    for (uint64_t first = 0; first < sums->lists; first += job->block.rows) {
        uint64_t n = sums->lists - first < job->block.rows ? sums->lists - first : job->block.rows;
        job->block.banned_starts[0] = 0;
        for (uint64_t i = 0; i < n; i++)
            if (ask_list(job, i, job->scored[first + i])) return -1;
        if (search_top(&job->search, job->block.queries, n, job->k, job->block.banned_starts, job->block.banned,
                       job->block.ids, job->block.scores))
            return -1;
        for (uint64_t i = 0; i < n; i++) score_list(job, sums, i, job->scored[first + i], rows);
    }
    return 0;
}

/* Lists that have held-out items and a line in the training file. */
static int choose_lists(struct lists_job *job, const struct names *lists, uint64_t *count) {
    job->scored = mem_alloc(lists->set.size, sizeof *job->scored, "lists");
    if (!job->scored) return -1;
    for (uint64_t list = 0; list < lists->set.size; list++)
        if (!lists->row[list] && job->held_out.starts[list + 1] > job->held_out.starts[list])
            job->scored[(*count)++] = list;
    return 0;
}

int evaluate_lists(struct lists_score *score, const struct model *model, enum model_view view, const char *train,
                   const char *held_out, uint32_t k, const struct config *config) {
    struct lines lines, train_lines;
    struct names lists = {.room = 0}, unknown = {.room = 0};
    struct lists_job job = {.k = k};
    char *train_text = NULL;
    int result = -1;
    *score = (struct lists_score){.lists = 0};
    char *text = lines_open(&lines, held_out);
    if (!text || read_held_out(&lines, model, &lists, &unknown, &job.held_out)) goto out;
    train_text = lines_open(&train_lines, train);
    if (!train_text || read_train(&train_lines, model, &lists, &job.train)) goto out;
    if (items_group(&job.held_out, lists.set.size) || items_group(&job.train, lists.set.size)) goto out;
    if (choose_lists(&job, &lists, &score->lists)) goto out;
    if (!score->lists) {
        fail("no list of '%s' has items there and a line in '%s'", held_out, train);
        goto out;
    }
    job.gains = mem_alloc(k, sizeof *job.gains, "gains");
    if (!job.gains || search_open(&job.search, model, view, METRIC_COSINE, 0, config)) goto out;
    if (search_block_init(&job.block, model->dim, k, score->lists)) goto out;
    for (uint32_t i = 0; i < k; i++) job.gains[i] = 1 / log2((double)i + 2);
    if (score_lists(&job, score, model->rows)) goto out;
    score->recall /= (double)score->lists;
    score->ndcg /= (double)score->lists;
    score->hit /= (double)score->lists;
    result = 0;
out:
    free(text);
    free(train_text);
    free(job.scored);
    free(job.gains);
    names_release(&lists);
    names_release(&unknown);
    items_release(&job.train);
    items_release(&job.held_out);
    search_block_release(&job.block);
    search_close(&job.search);
    return result;
}
