#include "link_sets.h"

#include "base/memory.h"
#include "base/report.h"
#include "corpus/fields.h"
#include "known.h"
#include "search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

int links_add(struct links *links, uint32_t from, uint32_t to) {
    if (mem_grow(&links->link, &links->capacity, links->count + 1, sizeof *links->link, "links")) return -1;
    links->link[links->count++] = (struct link){from, to};
    return 0;
}

enum { NO_NODE = -2 };

/* Returns a node's number; NO_NODE if the run does not know the node; -1 after fail(). */
static int64_t number_of(struct link_sets *sets, const char *node, uint64_t length) {
    int64_t row = vocab_find(&sets->model->vocab, node, length);
    if (row < 0 || (uint64_t)row >= model_items(sets->model)) return names_add(&sets->unknown, node, length) < 0 ? -1 : NO_NODE;
    if (!sets->request->known) return row;
    int64_t number = names_add(&sets->names, node, length);
    if (number >= 0) sets->names.row[number] = row;
    return number;
}

static int take_link(struct links *links, const int64_t ends[2]) {
    links->unknown += ends[0] < 0 || ends[1] < 0;
    return ends[0] < 0 || ends[1] < 0 ? 0 : links_add(links, (uint32_t)ends[0], (uint32_t)ends[1]);
}

/* Adds the links of a block, whose lines have two fields each. */
static int take_block(struct link_sets *sets, struct links *links, const struct corpus_block *block,
                      const struct corpus_options *options) {
    struct corpus_fields fields;
    struct corpus_field field;
    int64_t ends[2];
    int count = 0, more;
    corpus_fields_start(&fields, block, options);
    while ((more = corpus_fields_next(&fields, &field)) > 0) {
        if (!field.text) continue;
        if ((ends[count] = number_of(sets, field.text, field.length)) == -1) return -1;
        if (++count < 2) continue;
        count = 0;
        if (take_link(links, ends)) return -1;
    }
    return more;
}

/* Adds edges from memory to `links`; error messages call them `name`. */
static int take_edges(struct link_sets *sets, struct links *links, const struct gathered *data, const char *name) {
    for (uint64_t i = 0; i + 1 < data->tokens; i += 2) {
        int64_t ends[2];
        for (int end = 0; end < 2; end++) {
            uint64_t length;
            const char *node = words_get(&data->items.words, data->ids[i + (uint64_t)end], &length);
            if ((ends[end] = number_of(sets, node, length)) == -1) return -1;
        }
        if (take_link(links, ends)) return -1;
    }
    return data->tokens ? 0 : fail("%s has no edge between two different nodes", name);
}

/* Reads a file of links as corpus.format = graph does, also a compressed one. Links from a node to itself, and weights, are left
 * out. */
static int read_links(struct link_sets *sets, struct links *links, const char *path) {
    const struct corpus_options options = {
        .format = FORMAT_GRAPH, .look = LOOK_AUTO, .weights = WEIGHTS_NO, .min_rating = -INFINITY};
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    struct corpus_block block = {0};
    int more = -1;
    if (!corpus) return -1;
    if (corpus_stream(corpus)) {
        fail("'%s' is an id stream; wanted lines of two nodes", path);
    } else {
        if (!corpus_read_as(corpus, &options)) while ((more = corpus_next(corpus, &block)) > 0)
            if ((more = take_block(sets, links, &block, &options)) < 0) break;
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    if (more) return -1;
    return links->count + links->unknown ? 0 : fail("'%s' has no line of two different nodes", path);
}

/* Adds the links of the run's graph. The two arcs of an undirected edge count as one link. */
static int take_arcs(struct link_sets *sets, const struct graph *graph) {
    sets->directed |= graph->directed;
    for (uint32_t node = 0; node < graph->nodes; node++)
        for (uint64_t arc = graph->starts[node]; arc < graph->starts[node + 1]; arc++)
            if ((graph->directed || node < graph->neighbours[arc]) && links_add(&sets->known, node, graph->neighbours[arc]))
                return -1;
    return 0;
}

static int take_graph(struct link_sets *sets, struct pool *pool) {
    struct graph graph;
    if (!run_has_graph(sets->model)) return 0;
    int result = run_graph_open(&graph, sets->model, pool) || take_arcs(sets, &graph) ? -1 : 0;
    graph_close(&graph);
    return result;
}

static int read_known(struct link_sets *sets, struct pool *pool) {
    const struct links_request *request = sets->request;
    if (request->known_data) return take_edges(sets, &sets->known, request->known_data, request->known);
    return request->known ? read_links(sets, &sets->known, request->known) : take_graph(sets, pool);
}

static int read_held_out(struct link_sets *sets) {
    const struct links_request *request = sets->request;
    return request->held_out_data ? take_edges(sets, &sets->held_out, request->held_out_data, request->held_out)
                                  : read_links(sets, &sets->held_out, request->held_out);
}

enum { FEW_LABELS = 20 }; /* a file with fewer lines than this for each name of its second column is not taken for labels */

/* Guesses whether a file given as links holds labels that are numbers, like its nodes. Returns 1 if every line begins with a
 * different node, few names occur in the second column, and some of these also begin a line. The last condition spares links
 * between two kinds of nodes (a user and its country): there no name occurs in both columns. */
static int are_labels(const struct links *links, const uint8_t *begins, const uint8_t *follows, uint64_t nodes) {
    uint64_t first = 0, second = 0, both = 0;
    for (uint64_t node = 0; node < nodes; node++) {
        first += begins[node];
        second += follows[node];
        both += begins[node] && follows[node];
    }
    return both && first == links->count && second * FEW_LABELS <= first;
}

/* Returns 1 if the links look like labels of nodes, 0 if not, -1 after fail(). */
static int look_like_labels(const struct links *links, uint64_t nodes) {
    uint8_t *begins = mem_zalloc(nodes, 2, "the ends of links"), *follows = begins + nodes;
    if (!begins) return -1;
    for (uint64_t i = 0; i < links->count; i++) begins[links->link[i].from] = follows[links->link[i].to] = 1;
    int labels = are_labels(links, begins, follows, nodes);
    free(begins);
    return labels;
}

/* Fails if a file looks like labels, or if the run knows too few of its nodes. */
static int check_links(const struct link_sets *sets, const struct links *links, const char *name) {
    uint64_t all = links->count + links->unknown;
    if (all && links->unknown * 10 >= all * 9)
        return fail("%" PRIu64 " of %" PRIu64
                    " lines of '%s' hold a name that is not in the vocabulary of '%s': it looks like labels "
                    "(evaluate --labels=FILE) or like another graph; wanted lines of two of the run's nodes",
                    links->unknown, all, name, sets->model->directory);
    int labels = links->count ? look_like_labels(links, sets->nodes) : 0;
    if (labels > 0)
        return fail("'%s' begins each of its %" PRIu64
                    " lines with another node, and few names follow: it looks like labels (evaluate "
                    "--labels=FILE); wanted lines of two linked nodes",
                    name, all);
    return labels;
}

static int read_both(struct link_sets *sets, struct pool *pool) {
    const struct links_request *request = sets->request;
    sets->directed = request->directed;
    if (read_known(sets, pool) || read_held_out(sets)) return -1;
    sets->nodes = request->known ? sets->names.words.size : model_items(sets->model);
    if (request->known && check_links(sets, &sets->known, request->known)) return -1;
    return check_links(sets, &sets->held_out, request->held_out);
}

static void count_ends(struct link_sets *sets, const struct links *links) {
    for (uint64_t i = 0; i < links->count; i++) {
        sets->starts[links->link[i].from + 2]++;
        if (!sets->directed) sets->starts[links->link[i].to + 2]++;
    }
}

/* Appends, for each link, its end to the neighbours of `from` and, unless links are directed, `from` to the neighbours of its
 * end. starts[node + 1] is the index at which the node's next neighbour is written. */
static void put_ends(struct link_sets *sets, const struct links *links) {
    for (uint64_t i = 0; i < links->count; i++) {
        struct link link = links->link[i];
        sets->others[sets->starts[link.from + 1]++] = link.to;
        if (!sets->directed) sets->others[sets->starts[link.to + 1]++] = link.from;
    }
}

static void forget_neighbours(struct link_sets *sets) {
    free(sets->starts);
    free(sets->others);
    sets->starts = NULL;
    sets->others = NULL;
}

/* Collects the neighbours of each node from the first `count` of the known and the held-out links. */
static int find_neighbours(struct link_sets *sets, int count) {
    const struct links *of[] = {&sets->known, &sets->held_out};
    uint64_t links = 0;
    forget_neighbours(sets);
    for (int i = 0; i < count; i++) links += of[i]->count;
    sets->starts = mem_zalloc(sets->nodes + 2, sizeof *sets->starts, "the neighbours of nodes");
    sets->others = mem_alloc(links, 2 * sizeof *sets->others, "the neighbours of nodes");
    if (!sets->starts || !sets->others) return -1;
    for (int i = 0; i < count; i++) count_ends(sets, of[i]);
    for (uint64_t node = 0; node < sets->nodes; node++) sets->starts[node + 2] += sets->starts[node + 1];
    for (int i = 0; i < count; i++) put_ends(sets, of[i]);
    for (uint64_t node = 0; node < sets->nodes; node++) {
        uint64_t neighbours = sets->starts[node + 1] - sets->starts[node];
        if (neighbours > 1) qsort(sets->others + sets->starts[node], neighbours, sizeof *sets->others, search_by_id);
    }
    return 0;
}

int link_sets_linked(const struct link_sets *sets, uint32_t from, uint32_t to) {
    uint64_t first = sets->starts[from], end = sets->starts[from + 1];
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        if (sets->others[middle] < to)
            first = middle + 1;
        else
            end = middle;
    }
    return first < sets->starts[from + 1] && sets->others[first] == to;
}

/* Removes training links from the held-out links, since finding a trained link proves nothing. Fails if most links are removed. */
static int leave_out_trained(struct link_sets *sets) {
    struct links *held_out = &sets->held_out;
    uint64_t kept = 0, all = held_out->count;
    if (find_neighbours(sets, 1)) return -1;
    for (uint64_t i = 0; i < all; i++)
        if (!link_sets_linked(sets, held_out->link[i].from, held_out->link[i].to)) held_out->link[kept++] = held_out->link[i];
    held_out->count = kept;
    sets->trained = all - kept;
    if (2 * sets->trained <= all) return 0;
    return fail("%" PRIu64 " of %" PRIu64
                " held-out links of '%s' are links that the run was trained on, so that finding them shows "
                "nothing: give links that training left out",
                sets->trained, all, sets->request->held_out);
}

static int list_rows(struct link_sets *sets) {
    if (!sets->request->known) return 0;
    sets->rows = mem_alloc(sets->nodes, sizeof *sets->rows, "the rows of nodes");
    for (uint64_t node = 0; sets->rows && node < sets->nodes; node++) sets->rows[node] = (uint32_t)sets->names.row[node];
    return sets->rows ? 0 : -1;
}

int link_sets_read(struct link_sets *sets, const struct model *model, const struct links_request *request, struct pool *pool) {
    *sets = (struct link_sets){.model = model, .request = request};
    return read_both(sets, pool) || leave_out_trained(sets) || find_neighbours(sets, 2) || list_rows(sets) ? -1 : 0;
}

void link_sets_release(struct link_sets *sets) {
    free(sets->known.link);
    free(sets->held_out.link);
    free(sets->rows);
    names_release(&sets->names);
    names_release(&sets->unknown);
    forget_neighbours(sets);
}
