#include "evaluate.h"

#include "names.h"
#include "base/memory.h"
#include "base/report.h"
#include "corpus/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- items of lists ---- */

/* Items in the order met, each with its list; then list by list. */
struct items {
    struct item {
        uint64_t list, code; /* code: a row, or rows + the number of an unknown item */
    } * item;
    uint64_t count, capacity;
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
    if (mem_grow(&items->item, &items->capacity, items->count + 1, sizeof *items->item, "items of lists")) return -1;
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

/* ---- reading ---- */

/* Which lists and items a file brings: the held-out file every list, the training file the known items of those lists.
 */
struct taking {
    const struct model *model;
    struct names *lists, *unknown; /* unknown: items without a row, to be told apart; NULL: they are left out */
    struct items *items;
    int64_t list; /* the current one, or -1 where it is none of ours */
};

/* A list that comes twice is continued. One that the training file has gets row 0 in its name as a mark. */
static int take_list(struct taking *taking, const char *name, uint64_t length) {
    if (taking->unknown) {
        taking->list = names_add(taking->lists, name, length);
        return taking->list < 0 ? -1 : 0;
    }
    taking->list = names_find(taking->lists, name, length);
    if (taking->list >= 0) taking->lists->row[taking->list] = 0;
    return 0;
}

static int take_item(struct taking *taking, const char *item, uint64_t length) {
    if (taking->list < 0) return 0;
    int64_t row = vocab_find(&taking->model->vocab, item, length);
    if (row >= 0) return items_add(taking->items, (uint64_t)taking->list, (uint64_t)row);
    if (!taking->unknown) return 0;
    int64_t number = names_add(taking->unknown, item, length);
    if (number < 0) return -1;
    return items_add(taking->items, (uint64_t)taking->list, taking->model->rows + (uint64_t)number);
}

/* A line is the list's name and its items; it may go on in the next block. */
static int take_tokens(struct taking *taking, const struct corpus_block *block) {
    struct corpus_cursor cursor;
    const char *word;
    uint64_t length, index = (uint64_t)block->continues;
    int kind;
    corpus_cursor_start(&cursor, block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        if (kind == TOKEN_NEWLINE)
            index = 0;
        else if (index++ ? take_item(taking, word, length) : take_list(taking, word, length))
            return -1;
    }
    return 0;
}

static int take_pairs(struct taking *taking, const struct corpus_block *block, double min_rating) {
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, block);
    while ((more = pairs_next(&cursor, block, min_rating, &pair)) > 0)
        if (take_list(taking, pair.list, pair.list_length) || take_item(taking, pair.item, pair.item_length)) return -1;
    return more;
}

/* The file is read as the corpus was. */
static int take_file(struct taking *taking, const char *path, const struct corpus_options *reading) {
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    struct corpus_block block = {0};
    int more = -1;
    if (!corpus) return -1;
    if (corpus_stream(corpus)) {
        fail("'%s' is an id stream, which has no names of lists", path);
        goto out;
    }
    corpus_read_as(corpus, reading);
    while ((more = corpus_next(corpus, &block)) > 0)
        if (reading->format == FORMAT_PAIRS ? take_pairs(taking, &block, reading->min_rating)
                                            : take_tokens(taking, &block)) {
            more = -1;
            break;
        }
out:
    corpus_block_release(&block);
    corpus_close(corpus);
    return more;
}

/* ---- asking ---- */

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
    /* One more than there are: an address is computed of where the first would stand. */
    if (mem_grow(&job->block.banned, &job->block.banned_capacity, from + count + 1, sizeof *job->block.banned, "queries"))
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
    job->scored = mem_alloc(lists->words.size, sizeof *job->scored, "lists");
    if (!job->scored) return -1;
    for (uint64_t list = 0; list < lists->words.size; list++)
        if (!lists->row[list] && job->held_out.starts[list + 1] > job->held_out.starts[list])
            job->scored[(*count)++] = list;
    return 0;
}

/* Both files into lists and the items of each. */
static int read_lists(struct lists_job *job, const struct model *model, const struct lists_request *request,
                      struct names *lists) {
    struct names unknown = {.capacity = 0};
    struct taking held_out = {model, lists, &unknown, &job->held_out, -1},
                  train = {model, lists, NULL, &job->train, -1};
    int result = take_file(&held_out, request->held_out, &request->reading);
    if (!result) result = take_file(&train, request->train, &request->reading);
    names_release(&unknown);
    if (result) return -1;
    return items_group(&job->held_out, lists->words.size) || items_group(&job->train, lists->words.size) ? -1 : 0;
}

int evaluate_lists(struct lists_score *score, const struct model *model, enum model_view view,
                   const struct lists_request *request, const struct config *config) {
    struct names lists = {.capacity = 0};
    struct lists_job job = {.k = request->k};
    int result = -1;
    *score = (struct lists_score){.lists = 0};
    if (read_lists(&job, model, request, &lists) || choose_lists(&job, &lists, &score->lists)) goto out;
    if (!score->lists) {
        fail("no list of '%s' has items there and a line in '%s'", request->held_out, request->train);
        goto out;
    }
    job.gains = mem_alloc(job.k, sizeof *job.gains, "gains");
    if (!job.gains || search_open(&job.search, model, view, METRIC_COSINE, 0, config)) goto out;
    if (search_block_init(&job.block, model->dim, job.k, score->lists)) goto out;
    for (uint32_t i = 0; i < job.k; i++) job.gains[i] = 1 / log2((double)i + 2);
    if (score_lists(&job, score, model->rows)) goto out;
    score->recall /= (double)score->lists;
    score->ndcg /= (double)score->lists;
    score->hit /= (double)score->lists;
    result = 0;
out:
    free(job.scored);
    free(job.gains);
    names_release(&lists);
    items_release(&job.train);
    items_release(&job.held_out);
    search_block_release(&job.block);
    search_close(&job.search);
    return result;
}
