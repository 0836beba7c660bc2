#include "graph.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "encode.h"
#include "fields.h"
#include "idstream.h"
#include "numbered.h"
#include "word_counts.h"
#include "words.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

uint64_t graph_bytes(uint64_t nodes, uint64_t arcs, int weighted) {
    return GRAPH_HEADER + graph_arcs_bytes(arcs, weighted) + (nodes + 1) * sizeof(uint64_t);
}

/* ---- checking ---- */

/* Returns 1 if a graph with these numbers of nodes and arcs has exactly `size` bytes. The first test keeps the sums from overflowing. */
static int sizes_agree(const struct graph_header *header, uint64_t size) {
    uint64_t words = (size - sizeof *header) / 4;
    if (header->nodes > words || header->arcs > words) return 0;
    return graph_bytes(header->nodes, header->arcs, header->flags & GRAPH_WEIGHTED) == size;
}

static int header_fits(const struct file_map *map, struct graph_header *header) {
    if (map->size < sizeof *header + 8) return 0;
    memcpy(header, map->data, sizeof *header);
    return !memcmp(header->magic, GRAPH_MAGIC, sizeof header->magic) && header->version == GRAPH_VERSION &&
           header->flags <= (GRAPH_DIRECTED | GRAPH_WEIGHTED) && sizes_agree(header, map->size);
}

/* State of checking a graph's rows, by all threads. Even a file whose checksum is right is checked, since it may contain rows that graph.h
 * forbids. */
struct checking {
    const struct graph *graph;
    _Atomic uint64_t next, senseless; /* next: the next row to check; senseless: a row with invalid arcs, UINT64_MAX: none found */
};

enum { ROWS = 1 << 14 }; /* number of rows that a thread checks at a time */

static int row_holds(const struct graph *graph, uint64_t node) {
    uint64_t at = graph->starts[node], end = graph->starts[node + 1], least = 0;
    int holds = at <= end && end <= graph->arcs;
    for (; holds && at < end; at++) {
        uint64_t neighbour = graph->neighbours[at];
        holds = neighbour >= least && neighbour < graph->nodes && neighbour != node &&
                (!graph->weights || (graph->weights[at] > 0 && isfinite(graph->weights[at])));
        least = neighbour + 1;
    }
    return holds;
}

static int check_rows(void *context, unsigned worker) {
    struct checking *c = context;
    uint64_t first, end;
    while (pool_take(&c->next, c->graph->nodes, ROWS, &first, &end)) {
        if (interrupt_check()) return -1;
        for (uint64_t node = first; node < end; node++)
            if (!row_holds(c->graph, node)) c->senseless = node;
    }
    return 0;
}

static int say_damaged(const char *path, uint64_t size) {
    return fail("the graph '%s' is damaged or of another version: %" PRIu64 " bytes do not hold what its header says",
                path, size);
}

/* Reads the whole graph, and checks its checksum and its rows. */
static int check(struct graph *graph, const struct graph_header *header, const char *path, struct pool *pool) {
    struct checking c = {.graph = graph, .senseless = UINT64_MAX};
    if (piece_sum_of(graph->map.data + sizeof *header, graph->map.size - sizeof *header, pool, NULL, NULL,
                     &graph->checksum))
        return -1;
    if (graph->checksum != header->sum) return say_damaged(path, graph->map.size);
    if (graph->starts[0] || graph->starts[graph->nodes] != graph->arcs)
        return fail("the graph '%s': its rows go from arc %" PRIu64 " to %" PRIu64 ", and it has %" PRIu64 " arcs",
                    path, graph->starts[0], graph->starts[graph->nodes], graph->arcs);
    if (pool_run(pool, check_rows, &c)) return -1;
    if (c.senseless == UINT64_MAX) return 0;
    return fail("the graph '%s': the arcs of node %" PRIu64
                " are none (wanted other nodes in rising order, and weights above 0)",
                path, (uint64_t)c.senseless);
}

/* ---- reading ---- */

static void view(struct graph *graph, const struct file_map *map, const struct graph_header *header) {
    const char *arcs = map->data + sizeof *header;
    int weighted = (header->flags & GRAPH_WEIGHTED) != 0;
    *graph = (struct graph){.neighbours = (const uint32_t *)(const void *)arcs,
                            .weights = weighted ? (const float *)(const void *)(arcs + header->arcs * 4) : NULL,
                            .starts = (const uint64_t *)(const void *)(arcs + graph_arcs_bytes(header->arcs, weighted)),
                            .nodes = header->nodes,
                            .arcs = header->arcs,
                            .directed = (header->flags & GRAPH_DIRECTED) != 0,
                            .map = *map};
}

int graph_open(struct graph *graph, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool) {
    struct graph_header header;
    struct file_map map;
    *graph = (struct graph){0};
    if (file_map_open(&map, path)) return -1;
    int result =
        !header_fits(&map, &header) ? say_damaged(path, map.size)
        : header.fingerprint != fingerprint || header.nodes != rows
            ? fail("the graph '%s' was made with another vocabulary than this one of %" PRIu64 " words", path, rows)
        : !header.arcs ? fail("the graph '%s' has no edge", path)
                       : 0;
    if (!result) {
        view(graph, &map, &header);
        result = check(graph, &header, path, pool);
    }
    if (result) {
        file_map_close(&map);
        *graph = (struct graph){0};
    }
    return result;
}

void graph_close(struct graph *graph) {
    file_map_close(&graph->map);
    *graph = (struct graph){0};
}

static void graph_sort_release(struct graph_sort *sort) {
    mem_free(sort->ends, sort->keys, sort->other, sort->weights, sort->other_weights);
    *sort = (struct graph_sort){0};
}

/* Reserves memory for `arcs` arcs. */
static int graph_sort_grow(struct graph_sort *sort, uint64_t arcs, int weighted) {
    if (!sort->ends || arcs > sort->capacity) { /* even a group without arcs needs `ends` */
        uint64_t need = arcs > SORT_ARCS ? arcs : SORT_ARCS;
        graph_sort_release(sort);
        sort->ends = mem_alloc(SORT_ROWS, sizeof *sort->ends, "sorting arcs");
        sort->keys = mem_alloc(need, sizeof *sort->keys, "sorting arcs");
        sort->other = mem_alloc(need, sizeof *sort->other, "sorting arcs");
        sort->weights = weighted ? mem_alloc(need, sizeof *sort->weights, "sorting arcs") : NULL;
        sort->other_weights = weighted ? mem_alloc(need, sizeof *sort->weights, "sorting arcs") : NULL;
        if (!sort->ends || !sort->keys || !sort->other || (weighted && (!sort->weights || !sort->other_weights)))
            return -1;
        sort->capacity = need;
    }
    return 0;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts the keys by one digit of the neighbour's number; keys with equal digits keep their order. */
static void sort_by_digit(struct graph_sort *sort, uint64_t count, unsigned shift, int weighted) {
    uint64_t next[DIGITS] = {0}, sum = 0;
    for (uint64_t i = 0; i < count; i++) next[sort->keys[i] >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        uint64_t here = next[d];
        next[d] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = next[sort->keys[i] >> shift & (DIGITS - 1)]++;
        sort->other[place] = sort->keys[i];
        if (weighted) sort->other_weights[place] = sort->weights[i];
    }
    uint64_t *keys = sort->keys;
    float *weights = sort->weights;
    sort->keys = sort->other;
    sort->weights = sort->other_weights;
    sort->other = keys;
    sort->other_weights = weights;
}

/* Copies the keys into the scratch memory, and computes where each row ends. */
static void take_keys(struct graph_sort *sort, const uint64_t *keys, uint64_t count, const float *weights, uint64_t rows) {
    memset(sort->ends, 0, rows * sizeof *sort->ends);
    for (uint64_t i = 0; i < count; i++) {
        sort->keys[i] = keys[i];
        sort->ends[keys[i] >> 32]++;
    }
    for (uint64_t row = 1; row < rows; row++) sort->ends[row] += sort->ends[row - 1];
    if (weights && count) memcpy(sort->weights, weights, count * sizeof *weights);
}

/* Stores the neighbours row by row. Keys are sorted by neighbour, so each row's neighbours are in rising order. */
static void put_keys(struct graph_sort *sort, uint32_t *neighbours, float *weights, uint64_t rows, uint64_t count) {
    uint64_t begin = 0;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t end = sort->ends[row];
        sort->ends[row] = begin;
        begin = end;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = sort->ends[sort->keys[i] >> 32]++;
        neighbours[place] = (uint32_t)sort->keys[i];
        if (weights) weights[place] = sort->weights[i];
    }
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Joins arcs of a row that lead to the same neighbour into one. Fails if the sum of their weights is too large for a float. */
static int join_doubles(struct graph_sort *sort, uint32_t *neighbours, float *weights, uint64_t rows) {
    uint64_t at = 0, to = 0;
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t stop; at < sort->ends[row]; at = stop, to++) {
            for (stop = at + 1; stop < sort->ends[row] && neighbours[stop] == neighbours[at];) stop++;
            double sum = 0; /* added from the smallest weight up, so the sum does not depend on the arcs' order */
            if (weights && stop - at > 1) qsort(weights + at, stop - at, sizeof *weights, by_value);
            for (uint64_t i = at; weights && i < stop; i++) sum += weights[i];
            if (sum > FLT_MAX) {
                sort->wrong_row = row;
                sort->wrong_neighbour = neighbours[at];
                return -1;
            }
            INVARIANT(to <= at);
            neighbours[to] = neighbours[at];
            if (weights) weights[to] = (float)sum;
        }
        sort->ends[row] = to;
    }
    return 0;
}

/* Returns 1 if the neighbours of each row are in rising order and without repetitions. */
static int neighbours_rise(const struct graph_sort *sort, const uint32_t *neighbours, uint64_t rows) {
    for (uint64_t row = 0, at = 0; row < rows; at = sort->ends[row++])
        for (uint64_t next = at + 1; next < sort->ends[row]; next++)
            if (neighbours[next - 1] >= neighbours[next]) return 0;
    return 1;
}

int graph_sort(struct graph_sort *sort, const uint64_t *keys, uint64_t count, uint32_t *neighbours, float *weights, uint64_t rows,
               uint64_t nodes) {
    take_keys(sort, keys, count, weights, rows);
    for (unsigned shift = 0; shift < 32 && (nodes - 1) >> shift; shift += DIGIT_BITS)
        sort_by_digit(sort, count, shift, weights != NULL);
    put_keys(sort, neighbours, weights, rows, count);
    int result = join_doubles(sort, neighbours, weights, rows);
    INVARIANT(result || neighbours_rise(sort, neighbours, rows));
    return result;
}

/* A graph is written in ranges of rows, each as large as fits into memory. First all threads store the range's arcs by groups of rows; each thread
 * collects several arcs of a group before it stores them, so that memory is written sequentially. Then each thread sorts whole groups, which fit
 * its core's cache. */

enum {
    EDGES = 1 << 15,        /* number of edges that a thread handles at a time */
    LEAST_AT_ONCE = 1 << 24 /* fewest arcs of a range, even if memory is short */
};

/* Rows first .. end - 1, whose arcs are sorted together. `begin`: index in the range of the first arc; `next`: of the next arc to be stored;
 * `kept`: number of arcs after doubles are joined. */
struct group {
    uint64_t first, end, begin, next, kept;
};

/* State of writing one graph; the workers share it. */
struct writing {
    const struct graph_wanted *wanted;
    const struct edges *edges;
    struct pool *pool;
    struct progress progress;
    uint64_t arcs, placed; /* arcs: number of arcs of the whole graph, doubles included; placed: number of arcs in finished ranges */

    /* [nodes + 1] changes its meaning: first a row's number of arcs; for rows of the current range the row's group; for finished ranges the number
     * of arcs without doubles; in the end graph.starts */
    uint64_t *at;
    uint64_t first, end; /* rows first .. end - 1 are the current range */
    uint64_t range;      /* number of arcs of the current range */
    uint64_t *keys; /* [range] arcs of the range as keys; in a sorted group, its neighbours */
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

/* Number of arcs that are counted or stored together, so that memory accesses overlap. */
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

/* Chooses the rows of the next range, at least one, and divides them into groups. Sets w->at of each row to its group. */
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

/* Number of arcs that a thread collects for a group before it stores them. */
enum { COLLECTED = 16 };
struct collected {
    uint64_t (*keys)[COLLECTED];
    float (*weights)[COLLECTED]; /* NULL: edges have no weights */
    uint8_t *counts;
    struct arcs arcs; /* arcs that are not yet sorted into groups (struct group) */
};

/* Stores the collected arcs of a group. */
static void store_group(struct writing *w, struct collected *c, uint64_t g) {
    uint64_t count = c->counts[g], at = __atomic_fetch_add(&w->groups[g].next, count, __ATOMIC_RELAXED);
    INVARIANT(at + count <= (g + 1 < w->group_count ? w->groups[g + 1].begin : w->range)); /* a group's arcs were counted before */
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

/* Stores the arcs of the range whose edges are in this worker's share. */
static int place_arcs(void *context, unsigned worker) {
    struct writing *w = context;
    struct collected c = {.counts = mem_zalloc(w->group_count, 1, "the arcs of groups"), .arcs.count = 0};
    uint64_t edge, end;
    c.keys = mem_alloc(w->group_count, sizeof *c.keys, "the arcs of groups");
    c.weights = w->weights ? mem_alloc(w->group_count, sizeof *c.weights, "the arcs of groups") : NULL;
    int result = c.keys && c.counts && (c.weights || !w->weights) ? 0 : -1;
    while (!result && pool_take(&w->next, w->edges->count, EDGES, &edge, &end)) {
        result = interrupt_check();
        progress_show(&w->progress, w->placed + (uint64_t)((double)w->range / 2 * (double)edge / (double)w->edges->count), w->arcs, "arc");
        for (; edge < end; edge++) {
            uint32_t from = row_of(w->edges, edge, 0), to = row_of(w->edges, edge, 1);
            if (from == WORDS_ABSENT || to == WORDS_ABSENT || from == to) continue;
            take_arc(w, &c, from, to, edge);
            if (!w->wanted->directed) take_arc(w, &c, to, from, edge);
        }
    }
    if (!result) collect_arcs(w, &c);
    for (uint64_t g = 0; !result && g < w->group_count; g++) store_group(w, &c, g);
    mem_free(c.keys, c.weights, c.counts);
    return result;
}

/* Sorts the arcs of each group and joins doubles. Sets w->at of each row to its number of arcs. */
static int sort_groups(void *context, unsigned worker) {
    struct writing *w = context;
    struct graph_sort sort = {0};
    uint64_t at, end;
    int result = 0;
    while (!result && pool_take(&w->next, w->group_count, 1, &at, &end)) {
        struct group *group = &w->groups[at];
        uint64_t rows = group->end - group->first, count = group->next - group->begin, *keys = w->keys + group->begin;
        float *weights = w->weights ? w->weights + group->begin : NULL;
        result = interrupt_check() || graph_sort_grow(&sort, count, weights != NULL) ? -1 : 0;
        if (!result && graph_sort(&sort, keys, count, (uint32_t *)(void *)keys, weights, rows, w->wanted->nodes))
            result = fail("the weights of the edge from row %" PRIu64 " to row %" PRIu32
                          " of the vocabulary add up to more than 32 bits hold (3.4e38)",
                          group->first + sort.wrong_row, sort.wrong_neighbour);
        for (uint64_t i = 0; !result && i < rows; i++) w->at[group->first + i] = sort.ends[i] - (i ? sort.ends[i - 1] : 0);
        if (!result) group->kept = sort.ends[rows - 1];
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

static int put_range(struct writing *w) {
    for (uint64_t i = 0; i < w->group_count; i++) {
        const struct group *group = &w->groups[i];
        if (put(w, w->keys + group->begin, group->kept * sizeof(uint32_t))) return -1;
        if (w->weights && retry_write_at(w->kept_weights, w->weights + group->begin, group->kept * sizeof *w->weights,
                                         w->kept * sizeof *w->weights))
            return fail_system("write beside", w->file.path);
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
                                           (w->edges->weights ? GRAPH_WEIGHTED : 0),
                                  .fingerprint = w->wanted->fingerprint,
                                  .nodes = w->wanted->nodes,
                                  .arcs = w->kept,
                                  .sum = piece_sum_end(&w->sum)};
    memcpy(header.magic, GRAPH_MAGIC, sizeof header.magic);
    return file_write_at(&w->file, 0, &header, sizeof header) || file_commit(&w->file) ? -1 : 0;
}

static int put_rows(struct writing *w) {
    uint64_t most = mem_available() / 4 / (w->edges->weights ? 12 : 8), capacity = 0, weights_capacity = 0; /* a quarter of the free memory */
    if (most < LEAST_AT_ONCE) most = LEAST_AT_ONCE;
    if (w->wanted->at_once) most = w->wanted->at_once;
    uint64_t room = most < w->arcs ? most : w->arcs;
    while (w->end < w->wanted->nodes) {
        if (choose_range(w, most)) return -1;
        room = w->range > room ? w->range : room; /* a single row may exceed `most` */
        int fresh = room > capacity;
        if (mem_reserve(&w->keys, &capacity, room, sizeof *w->keys, "the arcs of a graph") ||
            (w->edges->weights &&
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
    if (file_write(&w->file, &none, sizeof none) || put_rows(w) || (w->edges->weights && put_weights(w))) return -1;
    uint64_t used = w->kept * (w->edges->weights ? 8 : 4);
    return put(w, padding, graph_arcs_bytes(w->kept, w->edges->weights != NULL) - used) || put_starts(w) || commit(w) ? -1 : 0;
}

int graph_write(const char *path, const struct graph_wanted *wanted, const struct edges *edges, struct pool *pool,
                uint64_t *loops) {
    struct writing w = {.wanted = wanted, .edges = edges, .pool = pool, .file.fd = -1, .kept_weights = -1};
    int result = -1;
    w.at = mem_zalloc(wanted->nodes + 1, sizeof *w.at, "the nodes of a graph");
    mem_prefer_huge(w.at, wanted->nodes * sizeof *w.at);
    if (w.at && !piece_sum_open(&w.sum) && !file_writer_open(&w.file, path)) {
        w.kept_weights = edges->weights ? file_open_unnamed(path) : -1;
        result = edges->weights && w.kept_weights < 0 ? -1 : write_all(&w);
    }
    progress_end(&w.progress);
    *loops = w.loops;
    file_abandon(&w.file);
    piece_sum_close(&w.sum);
    if (w.kept_weights >= 0) close(w.kept_weights);
    mem_free(w.at, w.keys, w.weights, w.groups);
    return result;
}

int graph_settle(struct corpus_options *options, const struct corpus *corpus) {
    const struct gathered *gathered = corpus_gathered(corpus);
    if (options->weights != WEIGHTS_AUTO) return 0;
    int weighted = gathered ? gathered->weighted : edges_look_weighted(corpus, options);
    if (weighted > 0) options->weights = WEIGHTS_YES;
    return weighted < 0 ? -1 : 0;
}

uint64_t graph_fingerprint(const struct corpus *corpus, const struct vocab *vocab,
                           const struct corpus_options *options) {
    uint64_t facts[] = {encode_fingerprint(corpus, vocab, options), (uint64_t)options->directed,
                        options->weights == WEIGHTS_YES};
    return XXH3_64bits(facts, sizeof facts);
}

/* Returns 1 if each node's count is its number of arcs: edges lead both ways, each of their nodes has a row of its own, and nothing but this
 * corpus was counted. */
static int counts_are_degrees(const struct corpus_options *options, const struct numbered *numbered, const struct vocab *vocab) {
    return numbered->items && !options->directed && options->order != ORDER_GIVEN && vocab->kept == vocab->tokens;
}

int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool) {
    struct graph_wanted wanted = {.fingerprint = graph_fingerprint(corpus, vocab, options),
                                  .nodes = vocab->size,
                                  .directed = options->directed,
                                  .report_seconds = options->report_seconds};
    const struct gathered *gathered = corpus_gathered(corpus);
    struct numbered own;
    const struct numbered *numbered;
    uint64_t loops = 0;
    unsigned fields = numbered_fields(options);
    *graph = (struct graph){0};
    if (gathered && options->weights == WEIGHTS_YES && !gathered->weighted) return fail("graph.weights = yes, and the edges have none");
    int result = encode_numbers(&numbered, &own, corpus, options, vocab, path, pool) || corpus_check_unchanged(corpus) ? -1 : 0;
    if (!result) {
        struct edges edges = {.ends = numbered->numbers,
                              .rows = numbered->items,
                              .weights = fields == 3 ? (const float *)(const void *)(numbered->numbers + 2) : NULL,
                              .stride = fields,
                              .weight_stride = fields,
                              .count = numbered->count / fields};
        if (counts_are_degrees(options, numbered, vocab)) edges.degrees = vocab;
        result = graph_write(path, &wanted, &edges, pool, &loops);
    }
    if (!result && (loops += numbered->left.loops)) note("graph      %" PRIu64 " self-loop%s left out", loops, text_plural(loops));
    if (!result && numbered->left.zeros)
        note("graph      %" PRIu64 " edge%s of weight 0 left out", numbered->left.zeros, text_plural(numbered->left.zeros));
    numbered_close(&own);
    return result ? -1 : graph_open(graph, path, wanted.fingerprint, vocab->size, pool);
}
