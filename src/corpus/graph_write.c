/* A graph is written in ranges of rows, each as large as memory allows. First all threads store the range's arcs in groups of rows, in
 * any order: a thread collects some arcs of each group before it stores them, so memory is written in runs. Then each thread sorts
 * groups, which fit its core's cache. */
#include "graph_write.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/retry.h"
#include "graph_file.h"
#include "graph_sort.h"
#include "piece_sum.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EDGES = 1 << 15,        /* number of edges that a thread handles at a time */
    LEAST_AT_ONCE = 1 << 24 /* lowest limit for the arcs of a range, even if memory is short */
};

/* Rows first .. end - 1, whose arcs are sorted together. The first arc is at index `begin` of the range; the next one that is stored,
 * at `next`. `kept` arcs are left after doubles are joined. */
struct group {
    uint64_t first, end, begin, next, kept;
};

/* State of writing one graph; the workers share it. */
struct writing {
    const struct graph_wanted *wanted;
    const struct edges *edges;
    struct pool *pool;
    struct progress progress;
    uint64_t arcs, placed; /* arcs: number of arcs of the whole graph, counting doubles; placed: arcs of finished ranges */

    /* [nodes + 1]: at first the number of a row's arcs; for rows of the current range, the row's group; of finished ranges, the
     * number of arcs without doubles; in the end graph.starts */
    uint64_t *at;
    uint64_t first, end; /* rows first .. end - 1 are the current range */
    uint64_t range;      /* number of arcs of the current range */
    uint64_t *keys; /* [range] arcs (graph_sort.h); of a sorted group, its neighbours */
    float *weights; /* [range]; NULL: edges have no weights */
    struct group *groups;
    uint64_t group_count, groups_capacity;
    _Atomic uint64_t next, loops;

    struct file_writer file;
    struct piece_sum sum;
    int kept_weights; /* descriptor of a nameless file with the weights of finished ranges; -1: edges have no weights */
    uint64_t kept;    /* number of arcs written so far, without doubles */
};

/* ---- counting ---- */

static inline uint32_t row_of(const struct edges *edges, uint64_t edge, int end) {
    uint32_t node = edges->ends[edges->stride * edge + (unsigned)end];
    return edges->rows ? edges->rows[node] : node;
}

/* Arcs that are counted or stored together, so that their waits for memory overlap. */
enum { ARCS = 64 };
struct arcs {
    uint32_t row[ARCS], neighbour[ARCS];
    float weight[ARCS];
    unsigned count;
};

static void count_arcs_of(struct writing *w, struct arcs *arcs) {
    for (unsigned i = 0; i < arcs->count; i++) __atomic_fetch_add(&w->at[arcs->row[i]], 1, __ATOMIC_RELAXED);
    arcs->count = 0;
}

static inline void count_arc(struct writing *w, struct arcs *arcs, uint32_t row) {
    __builtin_prefetch(&w->at[row], 1);
    arcs->row[arcs->count] = row;
    if (++arcs->count == ARCS) count_arcs_of(w, arcs);
}

static int count_arcs(void *context, unsigned worker) {
    struct writing *w = context;
    struct arcs arcs = {.count = 0};
    uint64_t edge, end, loops = 0;
    while (pool_take(&w->next, w->edges->count, EDGES, &edge, &end)) {
        if (interrupt_check()) return -1;
        for (; edge < end; edge++) {
            uint32_t from = row_of(w->edges, edge, 0), to = row_of(w->edges, edge, 1);
            if (from == WORDS_ABSENT || to == WORDS_ABSENT) continue;
            if (from == to) {
                loops++;
                continue;
            }
            count_arc(w, &arcs, from);
            if (!w->wanted->directed) count_arc(w, &arcs, to);
        }
    }
    count_arcs_of(w, &arcs);
    atomic_fetch_add(&w->loops, loops);
    return 0;
}

/* ---- a range ---- */

static int add_group(struct writing *w, uint64_t first, uint64_t begin) {
    if (mem_grow(&w->groups, &w->groups_capacity, w->group_count + 1, sizeof *w->groups, "the rows of a graph"))
        return -1;
    if (w->group_count) w->groups[w->group_count - 1].end = first;
    w->groups[w->group_count++] = (struct group){.first = first, .begin = begin, .next = begin};
    return 0;
}

/* Chooses the rows of the next range, at least one, and their groups. Sets w->at of each row to its group. */
static int choose_range(struct writing *w, uint64_t most) {
    uint64_t row = w->first = w->end, place = 0;
    w->group_count = 0;
    for (; row < w->wanted->nodes; row++) {
        uint64_t arcs = w->at[row];
        struct group *group = w->group_count ? &w->groups[w->group_count - 1] : NULL;
        if (group && place + arcs > most) break;
        if ((!group || place + arcs - group->begin > SORT_ARCS || row - group->first == SORT_ROWS) &&
            add_group(w, row, place))
            return -1;
        w->at[row] = w->group_count - 1;
        place += arcs;
    }
    if (w->group_count) w->groups[w->group_count - 1].end = row;
    w->end = row;
    w->range = place;
    return 0;
}

/* Arcs that a thread has collected for each group. */
enum { COLLECTED = 16 };
struct collected {
    uint64_t (*keys)[COLLECTED];
    float (*weights)[COLLECTED]; /* NULL: edges have no weights */
    uint8_t *counts;
    struct arcs arcs; /* arcs that are not yet sorted into groups (struct group) */
};

static int collected_open(struct collected *c, const struct writing *w) {
    c->keys = mem_alloc(w->group_count, sizeof *c->keys, "the arcs of groups");
    c->weights = w->weights ? mem_alloc(w->group_count, sizeof *c->weights, "the arcs of groups") : NULL;
    c->counts = mem_zalloc(w->group_count, 1, "the arcs of groups");
    c->arcs.count = 0;
    return c->keys && c->counts && (c->weights || !w->weights) ? 0 : -1;
}

static void collected_close(struct collected *c) {
    free(c->keys);
    free(c->weights);
    free(c->counts);
}

/* Stores the collected arcs of a group. */
static void store_group(struct writing *w, struct collected *c, uint64_t g) {
    uint64_t count = c->counts[g], at = __atomic_fetch_add(&w->groups[g].next, count, __ATOMIC_RELAXED);
    memcpy(w->keys + at, c->keys[g], count * sizeof *w->keys);
    if (w->weights) memcpy(w->weights + at, c->weights[g], count * sizeof *w->weights);
    c->counts[g] = 0;
}

static void collect_arcs(struct writing *w, struct collected *c) {
    for (unsigned i = 0; i < c->arcs.count; i++) {
        uint64_t g = w->at[c->arcs.row[i]];
        unsigned n = c->counts[g]++;
        c->keys[g][n] = (c->arcs.row[i] - w->groups[g].first) << 32 | c->arcs.neighbour[i];
        if (w->weights) c->weights[g][n] = c->arcs.weight[i];
        if (n + 1 == COLLECTED) store_group(w, c, g);
    }
    c->arcs.count = 0;
}

static inline void take_arc(struct writing *w, struct collected *c, uint32_t row, uint32_t neighbour, uint64_t edge) {
    struct arcs *arcs = &c->arcs;
    if (row - w->first >= w->end - w->first) return;
    __builtin_prefetch(&w->at[row]);
    arcs->row[arcs->count] = row;
    arcs->neighbour[arcs->count] = neighbour;
    if (w->weights) arcs->weight[arcs->count] = w->edges->weights[w->edges->weight_stride * edge];
    if (++arcs->count == ARCS) collect_arcs(w, c);
}

static int place_edges(struct writing *w, struct collected *c) {
    uint64_t edge, end;
    while (pool_take(&w->next, w->edges->count, EDGES, &edge, &end)) {
        if (interrupt_check()) return -1;
        progress_show(&w->progress,
                      w->placed + (uint64_t)((double)w->range / 2 * (double)edge / (double)w->edges->count), w->arcs,
                      "arc");
        for (; edge < end; edge++) {
            uint32_t from = row_of(w->edges, edge, 0), to = row_of(w->edges, edge, 1);
            if (from == WORDS_ABSENT || to == WORDS_ABSENT || from == to) continue;
            take_arc(w, c, from, to, edge);
            if (!w->wanted->directed) take_arc(w, c, to, from, edge);
        }
    }
    collect_arcs(w, c);
    for (uint64_t g = 0; g < w->group_count; g++) store_group(w, c, g);
    return 0;
}

static int place_arcs(void *context, unsigned worker) {
    struct writing *w = context;
    struct collected c;
    int result = collected_open(&c, w) || place_edges(w, &c) ? -1 : 0;
    collected_close(&c);
    return result;
}

/* Sorts the arcs of a group and joins doubles. Sets w->at to the number of each row's arcs. */
static int sort_group(struct writing *w, struct group *group, struct graph_sort *sort) {
    uint64_t rows = group->end - group->first, count = group->next - group->begin, *keys = w->keys + group->begin;
    if (graph_sort_grow(sort, count, w->weights != NULL)) return -1;
    if (graph_sort(sort, keys, count, (uint32_t *)(void *)keys, w->weights ? w->weights + group->begin : NULL, rows, w->wanted->nodes))
        return fail("the weights of the edge from row %" PRIu64 " to row %" PRIu32
                    " of the vocabulary add up to more than 32 bits hold (3.4e38)",
                    group->first + sort->wrong_row, sort->wrong_neighbour);
    for (uint64_t i = 0; i < rows; i++) w->at[group->first + i] = sort->ends[i] - (i ? sort->ends[i - 1] : 0);
    group->kept = sort->ends[rows - 1];
    return 0;
}

static int sort_groups(void *context, unsigned worker) {
    struct writing *w = context;
    struct graph_sort sort = {0};
    uint64_t at, end;
    int result = 0;
    while (!result && pool_take(&w->next, w->group_count, 1, &at, &end)) {
        result = interrupt_check() ? -1 : sort_group(w, &w->groups[at], &sort);
        progress_show(&w->progress, w->placed + w->range / 2 + w->groups[at].begin / 2, w->arcs, "arc");
    }
    graph_sort_release(&sort);
    return result;
}

static int run(struct writing *w, pool_job *job) {
    w->next = 0;
    return pool_run(w->pool, job, w);
}

/* ---- the file ---- */

static int put(struct writing *w, const void *data, uint64_t length) {
    piece_sum_add(&w->sum, data, length);
    return length ? file_write(&w->file, data, length) : 0;
}

static int keep_weights(struct writing *w, const float *weights, uint64_t count) {
    int result = retry_write_at(w->kept_weights, weights, count * sizeof *weights, w->kept * sizeof *weights);
    return result ? fail_system("write beside", w->file.path) : 0;
}

static int put_range(struct writing *w) {
    for (uint64_t i = 0; i < w->group_count; i++) {
        const struct group *group = &w->groups[i];
        if (put(w, w->keys + group->begin, group->kept * sizeof(uint32_t)) ||
            (w->weights && keep_weights(w, w->weights + group->begin, group->kept)))
            return -1;
        w->kept += group->kept;
    }
    w->placed += w->range;
    return 0;
}

static int put_weights(struct writing *w) {
    char piece[1 << 16];
    int64_t n = 0;
    for (uint64_t at = 0, all = w->kept * sizeof *w->weights; at < all; at += (uint64_t)n) {
        n = retry_read_at(w->kept_weights, piece, sizeof piece, at);
        if (n < 0) return fail_system("read beside", w->file.path);
        if (!n) return fail("what was written beside '%s' is cut short", w->file.path);
        if (put(w, piece, (uint64_t)n)) return -1;
    }
    return 0;
}

static int put_starts(struct writing *w) {
    uint64_t sum = 0;
    for (uint64_t row = 0; row <= w->wanted->nodes; row++) {
        uint64_t arcs = w->at[row];
        w->at[row] = sum;
        sum += arcs;
    }
    return put(w, w->at, (w->wanted->nodes + 1) * sizeof *w->at);
}

static int commit(struct writing *w) {
    struct graph_header header = {.version = GRAPH_VERSION,
                                  .flags = (w->wanted->directed ? GRAPH_DIRECTED : 0) |
                                           (w->edges->weighted ? GRAPH_WEIGHTED : 0),
                                  .fingerprint = w->wanted->fingerprint,
                                  .nodes = w->wanted->nodes,
                                  .arcs = w->kept,
                                  .sum = piece_sum_end(&w->sum)};
    memcpy(header.magic, GRAPH_MAGIC, sizeof header.magic);
    return file_write_at(&w->file, 0, &header, sizeof header) || file_commit(&w->file) ? -1 : 0;
}

/* Returns the limit for the arcs of a range: they may take a quarter of the free memory. */
static uint64_t most_at_once(const struct writing *w) {
    uint64_t free_bytes = mem_available(), bytes = w->edges->weighted ? 12 : 8;
    if (w->wanted->at_once) return w->wanted->at_once;
    return free_bytes / 4 / bytes > LEAST_AT_ONCE ? free_bytes / 4 / bytes : LEAST_AT_ONCE;
}

static int put_rows(struct writing *w) {
    uint64_t most = most_at_once(w), capacity = 0, weights_capacity = 0, room = most < w->arcs ? most : w->arcs;
    while (w->end < w->wanted->nodes) {
        if (choose_range(w, most)) return -1;
        room = w->range > room ? w->range : room; /* a single row may exceed `most` */
        int fresh = room > capacity;
        if (mem_reserve(&w->keys, &capacity, room, sizeof *w->keys, "the arcs of a graph") ||
            (w->edges->weighted &&
             mem_reserve(&w->weights, &weights_capacity, room, sizeof *w->weights, "the weights of a graph")))
            return -1;
        if (fresh) mem_prefer_huge(w->keys, room * sizeof *w->keys);
        if (fresh) mem_prefer_huge(w->weights, room * sizeof *w->weights);
        if (run(w, place_arcs) || run(w, sort_groups) || put_range(w)) return -1;
    }
    return 0;
}

static int write_all(struct writing *w) {
    static const struct graph_header none;
    static const char padding[8];
    if (!w->edges->degrees && run(w, count_arcs)) return -1;
    for (uint64_t row = 0; w->edges->degrees && row < w->wanted->nodes; row++) w->at[row] = vocab_count(w->edges->degrees, row);
    for (uint64_t row = 0; row < w->wanted->nodes; row++) w->arcs += w->at[row];
    if (!w->arcs)
        return fail("no edge of the graph joins two nodes of the vocabulary of %" PRIu64 " words", w->wanted->nodes);
    progress_start(&w->progress, "building", w->wanted->report_seconds);
    if (file_write(&w->file, &none, sizeof none) || put_rows(w) || (w->edges->weighted && put_weights(w))) return -1;
    uint64_t used = w->kept * (w->edges->weighted ? 8 : 4);
    return put(w, padding, graph_arcs_bytes(w->kept, w->edges->weighted) - used) || put_starts(w) || commit(w) ? -1 : 0;
}

int graph_write(const char *path, const struct graph_wanted *wanted, const struct edges *edges, struct pool *pool,
                uint64_t *loops) {
    struct writing w = {.wanted = wanted, .edges = edges, .pool = pool, .file.fd = -1, .kept_weights = -1};
    int result = -1;
    w.at = mem_zalloc(wanted->nodes + 1, sizeof *w.at, "the nodes of a graph");
    mem_prefer_huge(w.at, wanted->nodes * sizeof *w.at);
    if (w.at && !piece_sum_open(&w.sum) && !file_writer_open(&w.file, path)) {
        w.kept_weights = edges->weighted ? file_open_unnamed(path) : -1;
        result = edges->weighted && w.kept_weights < 0 ? -1 : write_all(&w);
    }
    progress_end(&w.progress);
    *loops = w.loops;
    file_abandon(&w.file);
    piece_sum_close(&w.sum);
    if (w.kept_weights >= 0) close(w.kept_weights);
    free(w.at);
    free(w.keys);
    free(w.weights);
    free(w.groups);
    return result;
}
