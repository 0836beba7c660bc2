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

enum { GRAPH_VALUED = GRAPH_WEIGHTED | GRAPH_LABELLED };

uint64_t graph_bytes(uint64_t nodes, uint64_t arcs, int valued) {
    return GRAPH_HEADER + graph_arcs_bytes(arcs, valued) + (nodes + 1) * sizeof(uint64_t);
}

/* ---- checking ---- */

/* Returns 1 if a graph with these numbers of nodes and arcs has exactly `size` bytes. The first test keeps the sums from overflowing. */
static int sizes_agree(const struct graph_header *header, uint64_t size) {
    uint64_t words = (size - sizeof *header) / 4;
    if (header->nodes > words || header->arcs > words) return 0;
    return graph_bytes(header->nodes, header->arcs, header->flags & GRAPH_VALUED) == size;
}

static int header_fits(const struct file_map *map, struct graph_header *header) {
    if (map->size < sizeof *header + 8) return 0;
    memcpy(header, map->data, sizeof *header);
    return !memcmp(header->magic, GRAPH_MAGIC, sizeof header->magic) && header->version == GRAPH_VERSION &&
           header->flags <= (GRAPH_DIRECTED | GRAPH_LABELLED) && sizes_agree(header, map->size); /* weights and labels exclude each other */
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
        uint64_t neighbour = graph->neighbours[at], label = graph->labels ? graph->labels[at] : 0;
        holds = neighbour >= least && neighbour < graph->nodes && neighbour != node && label < graph->nodes &&
                (!graph->weights || (graph->weights[at] > 0 && isfinite(graph->weights[at])));
        if (graph->labels && at > graph->starts[node] && neighbour == graph->neighbours[at - 1]) holds &= label > graph->labels[at - 1];
        least = neighbour + !graph->labels;
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
                " are none (wanted other nodes in rising order, weights above 0, and labels that are rows)",
                path, (uint64_t)c.senseless);
}

/* ---- reading ---- */

static void view(struct graph *graph, const struct file_map *map, const struct graph_header *header) {
    const char *arcs = map->data + sizeof *header;
    const void *values = arcs + header->arcs * sizeof *graph->neighbours;
    *graph = (struct graph){.neighbours = (const uint32_t *)(const void *)arcs,
                            .weights = header->flags & GRAPH_WEIGHTED ? values : NULL,
                            .labels = header->flags & GRAPH_LABELLED ? values : NULL,
                            .starts = (const uint64_t *)(const void *)(arcs + graph_arcs_bytes(header->arcs, header->flags & GRAPH_VALUED)),
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
    mem_free(sort->ends, sort->keys, sort->other, sort->values, sort->other_values);
    *sort = (struct graph_sort){.labelled = sort->labelled};
}

/* Reserves memory for `arcs` arcs. */
static int graph_sort_grow(struct graph_sort *sort, uint64_t arcs, int valued) {
    if (!sort->ends || arcs > sort->capacity) { /* even a group without arcs needs `ends` */
        uint64_t need = arcs > SORT_ARCS ? arcs : SORT_ARCS;
        graph_sort_release(sort);
        sort->ends = mem_alloc(SORT_ROWS, sizeof *sort->ends, "sorting arcs");
        sort->keys = mem_alloc(need, sizeof *sort->keys, "sorting arcs");
        sort->other = mem_alloc(need, sizeof *sort->other, "sorting arcs");
        sort->values = valued ? mem_alloc(need, sizeof *sort->values, "sorting arcs") : NULL;
        sort->other_values = valued ? mem_alloc(need, sizeof *sort->values, "sorting arcs") : NULL;
        if (!sort->ends || !sort->keys || !sort->other || (valued && (!sort->values || !sort->other_values)))
            return -1;
        sort->capacity = need;
    }
    return 0;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts the keys by one digit of the neighbour's number; keys with equal digits keep their order. */
static void sort_by_digit(struct graph_sort *sort, uint64_t count, unsigned shift, int valued) {
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
        if (valued) sort->other_values[place] = sort->values[i];
    }
    uint64_t *keys = sort->keys;
    union arc_value *values = sort->values;
    sort->keys = sort->other;
    sort->values = sort->other_values;
    sort->other = keys;
    sort->other_values = values;
}

/* Copies the keys into the scratch memory, and computes where each row ends. */
static void take_keys(struct graph_sort *sort, const uint64_t *keys, uint64_t count, const union arc_value *values, uint64_t rows) {
    memset(sort->ends, 0, rows * sizeof *sort->ends);
    for (uint64_t i = 0; i < count; i++) {
        sort->keys[i] = keys[i];
        sort->ends[keys[i] >> 32]++;
    }
    for (uint64_t row = 1; row < rows; row++) sort->ends[row] += sort->ends[row - 1];
    if (values && count) memcpy(sort->values, values, count * sizeof *values);
}

/* Stores the neighbours row by row. Keys are sorted by neighbour, so each row's neighbours are in rising order. */
static void put_keys(struct graph_sort *sort, uint32_t *neighbours, union arc_value *values, uint64_t rows, uint64_t count) {
    uint64_t begin = 0;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t end = sort->ends[row];
        sort->ends[row] = begin;
        begin = end;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = sort->ends[sort->keys[i] >> 32]++;
        neighbours[place] = (uint32_t)sort->keys[i];
        if (values) values[place] = sort->values[i];
    }
}

/* Joins arcs of a row that lead to the same neighbour: into one with the sum of their weights or, if they have labels, into one for each label.
 * Fails if a sum is too large for a float. */
static int join_doubles(struct graph_sort *sort, uint32_t *neighbours, union arc_value *values, uint64_t rows) {
    uint64_t at = 0, to = 0;
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t stop; at < sort->ends[row]; at = stop) {
            uint64_t first = to;
            uint32_t neighbour = neighbours[at];
            for (stop = at + 1; stop < sort->ends[row] && neighbours[stop] == neighbour;) stop++;
            double sum = 0; /* added from the smallest weight up, so the sum does not depend on the arcs' order */
            if (values && stop - at > 1) qsort(values + at, stop - at, sizeof *values, sort->labelled ? mem_by_id : mem_by_float);
            INVARIANT(to <= at);
            for (uint64_t i = at; i < stop && sort->labelled; i++)
                if (i == at || values[i].label != values[to - 1].label) neighbours[to] = neighbour, values[to++] = values[i];
            for (uint64_t i = at; i < stop && values && !sort->labelled; i++) sum += values[i].weight;
            if (sum > FLT_MAX) {
                sort->wrong_row = row;
                sort->wrong_neighbour = neighbour;
                return -1;
            }
            if (to > first) continue;
            if (values) values[to].weight = (float)sum;
            neighbours[to++] = neighbour;
        }
        sort->ends[row] = to;
    }
    return 0;
}

/* Returns 1 if the neighbours of each row are in rising order and, without labels, none occurs twice. */
static int neighbours_rise(const struct graph_sort *sort, const uint32_t *neighbours, uint64_t rows) {
    for (uint64_t row = 0, at = 0; row < rows; at = sort->ends[row++])
        for (uint64_t next = at + 1; next < sort->ends[row]; next++)
            if (neighbours[next - 1] + !sort->labelled > neighbours[next]) return 0;
    return 1;
}

int graph_sort(struct graph_sort *sort, const uint64_t *keys, uint64_t count, uint32_t *neighbours, union arc_value *values, uint64_t rows,
               uint64_t nodes) {
    take_keys(sort, keys, count, values, rows);
    for (unsigned shift = 0; shift < 32 && (nodes - 1) >> shift; shift += DIGIT_BITS)
        sort_by_digit(sort, count, shift, values != NULL);
    put_keys(sort, neighbours, values, rows, count);
    int result = join_doubles(sort, neighbours, values, rows);
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
    int valued;             /* 1: arcs have weights or labels */
    union arc_value *values; /* [range] the arcs' weights or labels; NULL: arcs have neither */
    struct group *groups;
    uint64_t group_count, groups_capacity;
    _Atomic uint64_t next, loops, lost; /* loops: edges from a node to itself; lost: edges without rows. Counted by count_arcs() */

    struct file_writer file;
    struct piece_sum sum;
    int kept_values; /* descriptor of a nameless file with the values of finished ranges; -1: arcs have none */
    uint64_t kept;    /* number of arcs written so far, without doubles */
};

/* ---- counting ---- */

/* The rows of an edge. `label` is 0 if edges have no labels. A row that does not exist is WORDS_ABSENT. */
struct edge {
    uint32_t from, to, label;
};

static inline struct edge edge_at(const struct edges *edges, uint64_t i) {
    struct edge edge = {edges->from[edges->stride * i], edges->to[edges->stride * i], 0};
    if (edges->rows) edge.from = edges->rows[edge.from], edge.to = edges->rows[edge.to];
    if (edges->labels) edge.label = edges->label_rows[edges->labels[edges->stride * i]];
    return edge;
}

/* Returns 1 if the edge is left out: one of its rows does not exist, or it leads from a node to itself. */
static inline int is_left_out(const struct edge *edge) {
    return edge->from == WORDS_ABSENT || edge->to == WORDS_ABSENT || edge->label == WORDS_ABSENT || edge->from == edge->to;
}

/* Number of arcs that are counted or stored together, so that memory accesses overlap. */
enum { ARCS = 64 };
struct arcs {
    uint32_t row[ARCS], neighbour[ARCS];
    union arc_value value[ARCS];
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
    uint64_t i, end, loops = 0, lost = 0;
    while (pool_take(&w->next, w->edges->count, EDGES, &i, &end)) {
        if (interrupt_check()) return -1;
        for (; i < end; i++) {
            struct edge edge = edge_at(w->edges, i);
            if (is_left_out(&edge)) {
                int loop = edge.from == edge.to && edge.from != WORDS_ABSENT && edge.label != WORDS_ABSENT;
                loops += (uint64_t)loop;
                lost += !loop;
                continue;
            }
            count_arc(w, &arcs, edge.from);
            if (!w->wanted->directed) count_arc(w, &arcs, edge.to);
        }
    }
    count_arcs_of(w, &arcs);
    atomic_fetch_add(&w->loops, loops);
    atomic_fetch_add(&w->lost, lost);
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
    union arc_value (*values)[COLLECTED]; /* NULL: arcs have none */
    uint8_t *counts;
    struct arcs arcs; /* arcs that are not yet sorted into groups (struct group) */
};

/* Stores the collected arcs of a group. */
static void store_group(struct writing *w, struct collected *c, uint64_t g) {
    uint64_t count = c->counts[g], at = __atomic_fetch_add(&w->groups[g].next, count, __ATOMIC_RELAXED);
    INVARIANT(at + count <= (g + 1 < w->group_count ? w->groups[g + 1].begin : w->range)); /* a group's arcs were counted before */
    memcpy(w->keys + at, c->keys[g], count * sizeof *w->keys);
    if (w->values) memcpy(w->values + at, c->values[g], count * sizeof *w->values);
    c->counts[g] = 0;
}

static void collect_arcs(struct writing *w, struct collected *c) {
    for (unsigned i = 0; i < c->arcs.count; i++) {
        uint64_t g = w->at[c->arcs.row[i]];
        unsigned n = c->counts[g]++;
        c->keys[g][n] = (c->arcs.row[i] - w->groups[g].first) << 32 | c->arcs.neighbour[i];
        if (w->values) c->values[g][n] = c->arcs.value[i];
        if (n + 1 == COLLECTED) store_group(w, c, g);
    }
    c->arcs.count = 0;
}

static inline void take_arc(struct writing *w, struct collected *c, uint32_t row, uint32_t neighbour, union arc_value value) {
    struct arcs *arcs = &c->arcs;
    if (row - w->first >= w->end - w->first) return;
    __builtin_prefetch(&w->at[row]);
    arcs->row[arcs->count] = row;
    arcs->neighbour[arcs->count] = neighbour;
    arcs->value[arcs->count] = value;
    if (++arcs->count == ARCS) collect_arcs(w, c);
}

/* Stores the arcs of the range whose edges are in this worker's share. */
static int place_arcs(void *context, unsigned worker) {
    struct writing *w = context;
    struct collected c = {.counts = mem_zalloc(w->group_count, 1, "the arcs of groups"), .arcs.count = 0};
    uint64_t i, end;
    c.keys = mem_alloc(w->group_count, sizeof *c.keys, "the arcs of groups");
    c.values = w->values ? mem_alloc(w->group_count, sizeof *c.values, "the arcs of groups") : NULL;
    int result = c.keys && c.counts && (c.values || !w->values) ? 0 : -1;
    while (!result && pool_take(&w->next, w->edges->count, EDGES, &i, &end)) {
        result = interrupt_check();
        progress_show(&w->progress, w->placed + (uint64_t)((double)w->range / 2 * (double)i / (double)w->edges->count), w->arcs, "arc");
        for (; i < end; i++) {
            struct edge edge = edge_at(w->edges, i);
            if (is_left_out(&edge)) continue;
            union arc_value value = {.label = edge.label};
            if (w->edges->weights) value.weight = w->edges->weights[w->edges->weight_stride * i];
            take_arc(w, &c, edge.from, edge.to, value);
            if (!w->wanted->directed) take_arc(w, &c, edge.to, edge.from, value);
        }
    }
    if (!result) collect_arcs(w, &c);
    for (uint64_t g = 0; !result && g < w->group_count; g++) store_group(w, &c, g);
    mem_free(c.keys, c.values, c.counts);
    return result;
}

/* Sorts the arcs of each group and joins doubles. Sets w->at of each row to its number of arcs. */
static int sort_groups(void *context, unsigned worker) {
    struct writing *w = context;
    struct graph_sort sort = {.labelled = w->edges->labels != NULL};
    uint64_t at, end;
    int result = 0;
    while (!result && pool_take(&w->next, w->group_count, 1, &at, &end)) {
        struct group *group = &w->groups[at];
        uint64_t rows = group->end - group->first, count = group->next - group->begin, *keys = w->keys + group->begin;
        union arc_value *values = w->values ? w->values + group->begin : NULL;
        result = interrupt_check() || graph_sort_grow(&sort, count, values != NULL) ? -1 : 0;
        if (!result && graph_sort(&sort, keys, count, (uint32_t *)(void *)keys, values, rows, w->wanted->nodes))
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
        if (w->values && retry_write_at(w->kept_values, w->values + group->begin, group->kept * sizeof *w->values,
                                        w->kept * sizeof *w->values))
            return fail_system("write beside", w->file.path);
        w->kept += group->kept;
    }
    w->placed += w->range;
    return 0;
}

static int put_values(struct writing *w) {
    char piece[1 << 16];
    int64_t n = 0;
    for (uint64_t at = 0, all = w->kept * sizeof *w->values; at < all; at += (uint64_t)n) {
        n = retry_read_at(w->kept_values, piece, sizeof piece, at);
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
                                           (w->edges->weights ? GRAPH_WEIGHTED : 0) | (w->edges->labels ? GRAPH_LABELLED : 0),
                                  .fingerprint = w->wanted->fingerprint,
                                  .nodes = w->wanted->nodes,
                                  .arcs = w->kept,
                                  .sum = piece_sum_end(&w->sum)};
    memcpy(header.magic, GRAPH_MAGIC, sizeof header.magic);
    return file_write_at(&w->file, 0, &header, sizeof header) || file_commit(&w->file) ? -1 : 0;
}

static int put_rows(struct writing *w) {
    uint64_t most = mem_available() / 4 / (w->valued ? 12 : 8), capacity = 0, values_capacity = 0; /* a quarter of the free memory */
    if (most < LEAST_AT_ONCE) most = LEAST_AT_ONCE;
    if (w->wanted->at_once) most = w->wanted->at_once;
    uint64_t room = most < w->arcs ? most : w->arcs;
    while (w->end < w->wanted->nodes) {
        if (choose_range(w, most)) return -1;
        room = w->range > room ? w->range : room; /* a single row may exceed `most` */
        int fresh = room > capacity;
        if (mem_reserve(&w->keys, &capacity, room, sizeof *w->keys, "the arcs of a graph") ||
            (w->valued && mem_reserve(&w->values, &values_capacity, room, sizeof *w->values, "the weights or labels of a graph")))
            return -1;
        if (fresh) mem_prefer_huge(w->keys, room * sizeof *w->keys);
        if (fresh) mem_prefer_huge(w->values, room * sizeof *w->values);
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
    if (!w->arcs && w->edges->labels)
        return fail("no triple of '%s' can be walked: wanted one of two different entities and a relation that are all in the vocabulary (%" PRIu64
                    " words, the relation as " VOCAB_RELATION "NAME)", w->wanted->corpus, w->wanted->nodes);
    if (!w->arcs)
        return fail("no edge of '%s' joins two nodes of the vocabulary of %" PRIu64 " words", w->wanted->corpus, w->wanted->nodes);
    progress_start(&w->progress, "building", w->wanted->report_seconds);
    if (file_write(&w->file, &none, sizeof none) || put_rows(w) || (w->valued && put_values(w))) return -1;
    uint64_t used = w->kept * (w->valued ? 8 : 4);
    return put(w, padding, graph_arcs_bytes(w->kept, w->valued) - used) || put_starts(w) || commit(w) ? -1 : 0;
}

int graph_write(const char *path, const struct graph_wanted *wanted, const struct edges *edges, struct pool *pool, struct graph_left *left) {
    struct writing w = {.wanted = wanted, .edges = edges, .valued = edges->weights || edges->labels, .pool = pool, .file.fd = -1, .kept_values = -1};
    int result = -1;
    w.at = mem_zalloc(wanted->nodes + 1, sizeof *w.at, "the nodes of a graph");
    mem_prefer_huge(w.at, wanted->nodes * sizeof *w.at);
    if (w.at && !piece_sum_open(&w.sum) && !file_writer_open(&w.file, path)) {
        w.kept_values = w.valued ? file_open_unnamed(path) : -1;
        result = w.valued && w.kept_values < 0 ? -1 : write_all(&w);
    }
    progress_end(&w.progress);
    *left = (struct graph_left){w.loops, w.lost};
    file_abandon(&w.file);
    piece_sum_close(&w.sum);
    if (w.kept_values >= 0) close(w.kept_values);
    mem_free(w.at, w.keys, w.values, w.groups);
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

int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool) {
    struct graph_wanted wanted = {.corpus = corpus_gathered(corpus) ? "the data" : options->path,
                                  .fingerprint = graph_fingerprint(corpus, vocab, options),
                                  .nodes = vocab->size,
                                  .directed = options->directed,
                                  .report_seconds = options->report_seconds};
    const struct gathered *gathered = corpus_gathered(corpus);
    struct numbered own;
    const struct numbered *numbered;
    struct graph_left left = {0};
    char lost[TEXT_BYTES], all[TEXT_BYTES];
    unsigned fields = numbered_fields(options);
    int weighted = options->weights == WEIGHTS_YES, triples = options->walked;
    *graph = (struct graph){0};
    if (gathered && options->weights == WEIGHTS_YES && !gathered->weighted) return fail("graph.weights = yes, and the edges have none");
    int result = encode_numbers(&numbered, &own, corpus, options, vocab, path, pool) || corpus_check_unchanged(corpus) ? -1 : 0;
    if (!result) {
        struct edges edges = {.from = numbered->numbers + (triples ? TRIPLE_HEAD : 0),
                              .to = numbered->numbers + (triples ? TRIPLE_TAIL : 1),
                              .rows = numbered->items,
                              .weights = weighted ? (const float *)(const void *)(numbered->numbers + 2) : NULL,
                              .labels = corpus_has_relation_words(options) ? numbered->numbers + TRIPLE_RELATION : NULL,
                              .label_rows = numbered->lists,
                              .stride = fields,
                              .weight_stride = fields,
                              .count = numbered->count / fields};
        /* Each node's count is its number of arcs if edges lead both ways, each of their nodes has a row of its own, and nothing but this corpus was
         * counted. Words of triples include self-loops and relations. */
        if (!options->walked && numbered->items && !options->directed && options->order != ORDER_GIVEN && vocab->kept == vocab->tokens)
            edges.degrees = vocab;
        result = graph_write(path, &wanted, &edges, pool, &left);
        if (!result && triples && left.lost)
            remark("left out   %s of %s triples, of which a term is not in the vocabulary", text_of_count(lost, left.lost),
                   text_of_count(all, edges.count));
    }
    if (!result && (left.loops += numbered->left.loops)) note("graph      %" PRIu64 " self-loop%s left out", left.loops, text_plural(left.loops));
    if (!result && numbered->left.zeros)
        note("graph      %" PRIu64 " edge%s of weight 0 left out", numbered->left.zeros, text_plural(numbered->left.zeros));
    numbered_close(&own);
    return result ? -1 : graph_open(graph, path, wanted.fingerprint, vocab->size, pool);
}
