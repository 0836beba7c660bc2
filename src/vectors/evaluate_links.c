/* evaluate_links: measures how well vectors distinguish links that were held out of a graph from pairs of nodes without a link.
 *
 *   AUC            of the held-out links against as many unlinked pairs
 *   MRR, hits@10   from the rank of each held-out link's true end among LINKS_AMONG nodes without a link to its other end
 *                  (among all such nodes if there are fewer)
 *
 * Two kinds of links are left out and counted: links with a node that the run does not know, and held-out links that were also training links.
 *
 * Equal scores count half. These are drawn, in this order, by NumPy's random numbers (numeric.h): unlinked pairs to compare with held-out links,
 * unlinked pairs to compare with training links, the links whose ends are ranked, an order of the training links, and the nodes among which each end
 * is ranked.
 */
#include "evaluate.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "corpus/fields.h"
#include "known.h"
#include "names.h"
#include "numeric.h"
#include "search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- links that are read ---- Links are read from files, from memory, or from the run's graph. Nodes are numbered; each has a sorted list of
 * neighbours. */

struct link {
    uint32_t from, to;
};
struct links {
    struct link *link;
    uint64_t count, capacity;
    uint64_t unknown; /* number of links left out because the run does not know one of their nodes */
};

struct link_sets {
    const struct model *model;
    const struct evaluate_request *request;
    int directed;
    struct names names;   /* known nodes of both files, with their rows; empty without a file of training links: a node's number is then its row */
    struct names unknown; /* nodes in the files that the run does not know */
    struct links known, held_out;
    uint64_t nodes, relations; /* relations: how many nodes are rows of relations, which have no links */
    uint64_t trained; /* number of held-out links that are left out because they were training links */
    uint32_t *rows;   /* [nodes] row of each node; NULL: a node's number is its row */
    uint64_t *starts; /* [nodes + 1] neighbours of node i: others[starts[i]] .. others[starts[i + 1] - 1] */
    uint32_t *others; /* neighbours of each node over all links, rising; a link that occurs twice adds a neighbour twice */
};

static int links_add(struct links *links, uint32_t from, uint32_t to) {
    if (mem_grow(&links->link, &links->capacity, links->count + 1, sizeof *links->link, "links")) return -1;
    links->link[links->count++] = (struct link){from, to};
    return 0;
}

enum { NO_NODE = -2 }; /* returned in place of the number of a node that the run does not know */

/* State of reading links: the ends of the current one. */
struct reading {
    struct link_sets *sets;
    struct links *links;
    int64_t ends[2];
    int count;
};

static int take_end(void *user, const struct corpus_field *field) {
    struct reading *reading = user;
    struct link_sets *sets = reading->sets;
    struct links *links = reading->links;
    if (field->part == PART_NAME) return 0; /* the relation of a triple */
    int64_t row = vocab_find(&sets->model->vocab, field->text, field->length), *ends = reading->ends, *node = &ends[reading->count];
    if (row < 0 || !model_is_item(sets->model, (uint64_t)row)) {
        *node = NO_NODE;
        if (names_add(&sets->unknown, field->text, field->length) < 0) return -1;
    } else if (sets->request->known) {
        if ((*node = names_add(&sets->names, field->text, field->length)) < 0) return -1;
        sets->names.row[*node] = row;
    } else {
        *node = row;
    }
    if (++reading->count < 2) return 0;
    reading->count = 0;
    if (ends[0] >= 0 && ends[0] == ends[1]) return 0; /* a triple may lead from an entity to itself; such a link is not asked for */
    if (ends[0] >= 0 && ends[1] >= 0) return links_add(links, (uint32_t)ends[0], (uint32_t)ends[1]);
    links->unknown++;
    return 0;
}

/* Reads links from a file in the format of the run's data: graph, or triples, whose relations are left out. Weights are not read, and links from a
 * node to itself are left out. */
static int read_links(struct link_sets *sets, struct links *links, const char *path, const struct gathered *data) {
    int triples = !data && config_walks_triples(&sets->model->keys);
    const struct corpus_options options = {
        .format = triples ? FORMAT_TRIPLES : FORMAT_GRAPH, .look = LOOK_AUTO, .weights = WEIGHTS_NO, .min_rating = -INFINITY};
    struct reading reading = {.sets = sets, .links = links};
    if (asked_read(path, data, &options, take_end, &reading)) return -1;
    return links->count + links->unknown ? 0 : fail("'%s' has no edge between two different nodes", path);
}

/* Adds the links of the run's graph, if it has one. The two arcs of an undirected edge count as one link. */
static int take_graph(struct link_sets *sets, struct pool *pool) {
    ENDED_BY(graph_close) struct graph graph = {0};
    if (!run_has_graph(sets->model)) return 0;
    int result = run_graph_open(&graph, sets->model, pool);
    for (uint32_t node = 0; !result && node < graph.nodes; node++)
        for (uint64_t arc = graph.starts[node]; !result && arc < graph.starts[node + 1]; arc++)
            if (graph.directed || node < graph.neighbours[arc]) result = links_add(&sets->known, node, graph.neighbours[arc]);
    return result;
}

enum { FEW_LABELS = 20 }; /* fewest lines for each name in the second column of a file that may be labels */

/* Guesses whether a file given as links contains labels, which are numbers like its nodes. Returns 1 if every line begins with a different node,
 * few names occur in the second column, and some of these also begin a line; 0 if not; -1 after fail(). The last condition excludes links between
 * two kinds of nodes (a user and its country), where no name occurs in both columns. */
static int look_like_labels(const struct links *links, uint64_t nodes) {
    uint8_t *begins = mem_zalloc(nodes, 2, "the ends of links"), *follows = begins + nodes;
    uint64_t first = 0, second = 0, both = 0;
    if (!begins) return -1;
    for (uint64_t i = 0; i < links->count; i++) begins[links->link[i].from] = follows[links->link[i].to] = 1;
    for (uint64_t node = 0; node < nodes; node++) {
        first += begins[node];
        second += follows[node];
        both += begins[node] && follows[node];
    }
    free(begins);
    return both && first == links->count && second * FEW_LABELS <= first;
}

/* Fails if a file looks like labels, or if the run knows too few of its nodes. */
static int check_links(const struct link_sets *sets, const struct links *links, const char *name) {
    uint64_t all = links->count + links->unknown;
    if (all && links->unknown * 10 >= all * 9)
        return fail("%" PRIu64 " of %" PRIu64 " lines of '%s' hold a name that is not in the vocabulary of '%s': it looks like labels "
                    "(evaluate --labels=FILE) or like another graph; wanted lines of two of the run's nodes",
                    links->unknown, all, name, sets->model->directory);
    int labels = links->count ? look_like_labels(links, sets->nodes) : 0;
    if (labels > 0)
        return fail("'%s' begins each of its %" PRIu64 " lines with another node, and few names follow: it looks like labels (evaluate "
                    "--labels=FILE); wanted lines of two linked nodes",
                    name, all);
    return labels;
}

static int read_both(struct link_sets *sets, struct pool *pool) {
    const struct evaluate_request *request = sets->request;
    sets->directed = request->options.directed || sets->model->keys.graph_directed == 1;
    if (request->known ? read_links(sets, &sets->known, request->known, request->known_data) : take_graph(sets, pool)) return -1;
    if (read_links(sets, &sets->held_out, request->path, request->data)) return -1;
    sets->nodes = request->known ? sets->names.words.size : model_items(sets->model);
    for (uint64_t row = 0; !request->known && row < sets->nodes; row++) sets->relations += !model_is_item(sets->model, row);
    if (request->known && check_links(sets, &sets->known, request->known)) return -1;
    return check_links(sets, &sets->held_out, request->path);
}

static void forget_neighbours(struct link_sets *sets) {
    mem_free(sets->starts, sets->others);
    sets->starts = NULL;
    sets->others = NULL;
}

/* Collects the neighbours of each node over the first `count` of two sets of links, known and held-out: for a link's beginning its end and, unless
 * links are directed, for its end its beginning. */
static int find_neighbours(struct link_sets *sets, int count) {
    const struct links *of[] = {&sets->known, &sets->held_out};
    uint64_t links = 0, *starts;
    forget_neighbours(sets);
    for (int i = 0; i < count; i++) links += of[i]->count;
    sets->starts = starts = mem_zalloc(sets->nodes + 2, sizeof *starts, "the neighbours of nodes");
    sets->others = mem_alloc(links, 2 * sizeof *sets->others, "the neighbours of nodes");
    if (!starts || !sets->others) return -1;
    for (int fill = 0; fill < 2; fill++) {
        /* In the first round starts[node + 2] counts neighbours; in the second, starts[node + 1] is where the node's next one is written. */
        for (int i = 0; i < count; i++)
            for (const struct link *link = of[i]->link; link < of[i]->link + of[i]->count; link++)
                for (int back = 0; back < 2 - sets->directed; back++) {
                    uint32_t from = back ? link->to : link->from, to = back ? link->from : link->to;
                    if (fill)
                        sets->others[starts[from + 1]++] = to;
                    else
                        starts[from + 2]++;
                }
        for (uint64_t node = 0; node < sets->nodes && !fill; node++) starts[node + 2] += starts[node + 1];
    }
    for (uint64_t node = 0; node < sets->nodes; node++) {
        uint64_t neighbours = starts[node + 1] - starts[node];
        if (neighbours > 1) qsort(sets->others + starts[node], neighbours, sizeof *sets->others, mem_by_id);
    }
    return 0;
}

/* Returns 1 if a link leads from `from` to `to`; undirected links lead both ways. */
static int link_sets_linked(const struct link_sets *sets, uint32_t from, uint32_t to) {
    uint64_t first = sets->starts[from];
    return bsearch(&to, sets->others + first, sets->starts[from + 1] - first, sizeof to, mem_by_id) != NULL;
}

/* Removes training links from the held-out links, since a link that was trained proves nothing. Fails if that removes most of them. */
static int leave_out_trained(struct link_sets *sets) {
    struct links *held_out = &sets->held_out;
    uint64_t kept = 0, all = held_out->count;
    if (find_neighbours(sets, 1)) return -1;
    for (uint64_t i = 0; i < all; i++)
        if (!link_sets_linked(sets, held_out->link[i].from, held_out->link[i].to)) held_out->link[kept++] = held_out->link[i];
    held_out->count = kept;
    sets->trained = all - kept;
    if (2 * sets->trained <= all) return 0;
    return fail("%" PRIu64 " of %" PRIu64 " held-out links of '%s' are links that the run was trained on, so that finding them shows "
                "nothing: give links that training left out",
                sets->trained, all, sets->request->path);
}

/* Reads the links of a request, and removes training links from the held-out ones. Returns 0, or -1 after fail(), also if a file looks like labels
 * or most held-out links are training links. */
static int read_sets(struct link_sets *sets, struct pool *pool) {
    if (read_both(sets, pool) || leave_out_trained(sets) || find_neighbours(sets, 2)) return -1;
    if (!sets->request->known) return 0;
    sets->rows = mem_alloc(sets->nodes, sizeof *sets->rows, "the rows of nodes");
    for (uint64_t node = 0; sets->rows && node < sets->nodes; node++) sets->rows[node] = (uint32_t)sets->names.row[node];
    return sets->rows ? 0 : -1;
}

enum {
    LINKS_AMONG = 1000,
    LINKS_ASKED = 20000,  /* most held-out links whose ends are ranked */
    LINKS_FITTED = 20000, /* most training links to which the regression of `hadamard` is fitted */
    ROUNDS = 200,         /* rounds of drawing after which a graph is said to have too few unlinked pairs */
    HITS = 10,
    AHEAD = 2, /* how many nodes ahead a node's rows are prefetched */
    GRAIN = 16 /* number of ends that a worker takes at a time */
};

/* How a pair of nodes is scored: dot(x of the first, y of the second); with both = 1, plus dot(x of the second, y of the first). */
struct scoring {
    float *x, *y;         /* [nodes x dim] two kinds of rows; y is x if a node has only one vector */
    const float *factors; /* [dim] factor of each column in the dot product; NULL: 1 */
    int both;
};

struct links_job {
    struct link_sets sets;
    struct answer *answer;
    struct numpy_draws draws;
    struct links none, none_known; /* unlinked pairs: `none` as many as held-out links, `none_known` as many as training links */
    struct links asked;            /* links whose end `to` is ranked; `from` is the query */
    uint32_t *order;               /* [known] random order of the training links */
    uint32_t *wrong;               /* [asked x LINKS_AMONG] nodes with which the end of each asked link is compared */
    uint32_t *among;               /* [asked] number of nodes among which each end is ranked: at most LINKS_AMONG */
    uint64_t ranked_among_all;     /* number of ends that are ranked among all nodes without a link to their query */
    double *ranks;                 /* [asked] rank of each end */
    struct scoring scoring;
    _Atomic uint64_t next; /* number of the next end for a worker */
};

/* ---- draws ---- */

static uint32_t draw_node(struct links_job *job) {
    return numpy_draws_below(&job->draws, job->sets.nodes);
}

/* Returns 1 if a drawn node is the row of a relation, which is no node. */
static int is_relation(const struct links_job *job, uint32_t node) {
    return job->sets.relations && !model_is_item(job->sets.model, node);
}

/* Draws unlinked pairs: each round draws twice as many pairs as are wanted and keeps the unlinked ones. */
static int draw_pairs(struct links_job *job, struct links *pairs, uint64_t wanted) {
    for (int round = 0; pairs->count < wanted; round++) {
        if (round == ROUNDS)
            return fail("nearly all pairs of the %" PRIu64 " nodes are links: too few are left to compare '%s' with",
                        job->sets.nodes, job->sets.request->path);
        for (uint64_t i = 0; i < 2 * wanted; i++) {
            uint32_t from = draw_node(job), to = draw_node(job);
            if (pairs->count < wanted && from != to && !link_sets_linked(&job->sets, from, to) && !is_relation(job, from) &&
                !is_relation(job, to) && links_add(pairs, from, to))
                return -1;
        }
    }
    return 0;
}

/* Chooses the ends to rank: the second nodes of all chosen links and, if links have no direction, also the first ones. */
static int choose_asked(struct links_job *job) {
    uint64_t all = job->sets.held_out.count, count = all < LINKS_ASKED ? all : LINKS_ASKED;
    OWNED uint32_t *chosen = mem_alloc(count, sizeof *chosen, "the links asked for");
    int result = chosen ? 0 : -1;
    for (uint64_t i = 0; !result && i < count; i++) chosen[i] = (uint32_t)i;
    if (!result && count < all) result = numpy_draws_choice(&job->draws, chosen, count, all);
    for (int back = 0; !result && back < 2 - job->sets.directed; back++)
        for (uint64_t i = 0; !result && i < count; i++) {
            struct link link = job->sets.held_out.link[chosen[i]];
            result = back ? links_add(&job->asked, link.to, link.from) : links_add(&job->asked, link.from, link.to);
        }
    return result;
}

static int is_wrong(const struct links_job *job, uint64_t place) {
    struct link asked = job->asked.link[place / LINKS_AMONG];
    uint32_t node = job->wrong[place];
    return node != asked.from && node != asked.to && !link_sets_linked(&job->sets, asked.from, node) && !is_relation(job, node);
}

/* If at most LINKS_AMONG nodes have no link with `from`, lists all of them as those among which the end is ranked, and returns 1. Otherwise
 * returns 0: the nodes must be drawn. */
static int list_wrong(struct links_job *job, uint64_t end) {
    const struct link_sets *sets = &job->sets;
    uint32_t from = job->asked.link[end].from, count = 0;
    uint64_t neighbours = 0;
    for (uint64_t i = sets->starts[from]; i < sets->starts[from + 1]; i++)
        neighbours += i == sets->starts[from] || sets->others[i] != sets->others[i - 1];
    job->among[end] = LINKS_AMONG;
    if (sets->nodes - sets->relations - 1 - neighbours > LINKS_AMONG) return 0;
    for (uint32_t node = 0; node < sets->nodes; node++)
        if (node != from && !link_sets_linked(sets, from, node) && !is_relation(job, node)) job->wrong[end * LINKS_AMONG + count++] = node;
    job->among[end] = count;
    job->ranked_among_all++;
    return 1;
}

/* Collects, rising, the indexes in job->wrong whose node must be drawn again, because it is an end of the link or a neighbour. Returns their
 * number, or -1 after fail(). */
static int64_t find_right(struct links_job *job, uint64_t **again) {
    uint64_t count = 0, capacity = 0;
    for (uint64_t end = 0; end < job->asked.count; end++) {
        if (list_wrong(job, end)) continue;
        for (uint64_t place = end * LINKS_AMONG; place < (end + 1) * LINKS_AMONG; place++) {
            if (is_wrong(job, place)) continue;
            if (mem_grow(again, &capacity, count + 1, sizeof **again, "the nodes that ends are ranked among")) return -1;
            (*again)[count++] = place;
        }
    }
    return (int64_t)count;
}

/* Draws the nodes among which ends are ranked. If a drawn node turns out to be a neighbour, draws another one in its place. */
static int draw_wrong(struct links_job *job) {
    uint64_t count = job->asked.count * LINKS_AMONG;
    OWNED uint64_t *again = NULL;
    job->among = mem_alloc(job->asked.count, sizeof *job->among, "the nodes that ends are ranked among");
    job->wrong = mem_alloc(count, sizeof *job->wrong, "the nodes that ends are ranked among");
    if (!job->among || !job->wrong) return -1;
    for (uint64_t place = 0; place < count; place++) job->wrong[place] = draw_node(job);
    int64_t left = find_right(job, &again);
    for (int round = 0; left > 0 && round < ROUNDS; round++) {
        int64_t kept = 0;
        for (int64_t i = 0; i < left; i++) job->wrong[again[i]] = draw_node(job);
        for (int64_t i = 0; i < left; i++)
            if (!is_wrong(job, again[i])) again[kept++] = again[i];
        left = kept;
    }
    return left < 0 ? -1 : 0;
}

static int draw_all(struct links_job *job) {
    job->draws = numpy_draws_make(0);
    job->order = mem_alloc(job->sets.known.count, sizeof *job->order, "the training links");
    job->ranks = NULL;
    if (!job->order || draw_pairs(job, &job->none, job->sets.held_out.count) ||
        draw_pairs(job, &job->none_known, job->sets.known.count) || choose_asked(job))
        return -1;
    numpy_draws_permutation(&job->draws, job->order, job->sets.known.count);
    job->ranks = mem_alloc(job->asked.count, sizeof *job->ranks, "the ranks of ends");
    return job->ranks ? draw_wrong(job) : -1;
}

/* ---- scores of pairs ---- */

/* Returns the vectors of all nodes; the caller frees them. NULL after fail(). */
static float *matrix_of(const struct links_job *job, enum model_view view) {
    return model_matrix_of(job->sets.model, view, job->sets.rows, job->sets.nodes, 0);
}

static void make_units(const struct links_job *job, float *matrix) {
    uint32_t dim = job->sets.model->dim;
    for (uint64_t node = 0; node < job->sets.nodes; node++) model_make_unit(matrix + node * dim, dim);
}

/* Writes the query for a node: its row of x times the factors, then its row of y. */
static void ask_node(const struct links_job *job, uint32_t node, float *query) {
    const struct scoring *s = &job->scoring;
    uint32_t dim = job->sets.model->dim;
    for (uint32_t i = 0; i < dim; i++) query[i] = s->x[(uint64_t)node * dim + i] * (s->factors ? s->factors[i] : 1);
    if (s->both) memcpy(query + dim, s->y + (uint64_t)node * dim, dim * sizeof *query);
}

static float score_of(const struct links_job *job, const float *query, uint32_t other) {
    const struct scoring *s = &job->scoring;
    uint32_t dim = job->sets.model->dim;
    float score = dot(query, s->y + (uint64_t)other * dim, dim);
    return s->both ? score + dot(query + dim, s->x + (uint64_t)other * dim, dim) : score;
}

static double rank_of(const struct links_job *job, uint64_t i, float *query) {
    struct link asked = job->asked.link[i];
    const uint32_t *wrong = job->wrong + i * LINKS_AMONG;
    uint32_t among = job->among[i], dim = job->sets.model->dim;
    uint64_t before = 0, beside = 0;
    ask_node(job, asked.from, query);
    float truth = score_of(job, query, asked.to);
    for (uint32_t j = 0; j < among; j++) {
        uint64_t ahead = j + AHEAD < among ? wrong[j + AHEAD] : asked.to; /* its rows will be read soon */
        dot_fetch(job->scoring.y + ahead * dim, dim);
        if (job->scoring.both) dot_fetch(job->scoring.x + ahead * dim, dim);
        float score = score_of(job, query, wrong[j]);
        before += score > truth;
        beside += score == truth;
    }
    return 1 + (double)before + (double)beside / 2;
}

static int rank_ends(void *context, unsigned worker) {
    struct links_job *job = context;
    OWNED float *query = mem_alloc(2, job->sets.model->dim * sizeof *query, "a node's vector");
    uint64_t first, end;
    while (query && pool_take(&job->next, job->asked.count, GRAIN, &first, &end))
        for (uint64_t i = first; i < end; i++) job->ranks[i] = rank_of(job, i, query);
    return query ? 0 : -1;
}

/* ---- AUC ---- */

struct scored {
    float score;
    int is_link;
};

static void score_pairs(const struct links_job *job, const struct links *pairs, int is, float *query, struct scored *out) {
    for (uint64_t i = 0; i < pairs->count; i++) {
        ask_node(job, pairs->link[i].from, query);
        out[i] = (struct scored){score_of(job, query, pairs->link[i].to), is};
    }
}

/* Returns how often, on average, a link scores higher than an unlinked pair (AUC). all[] is sorted by score. */
static double share_above(const struct scored *all, uint64_t count) {
    double links = 0, others = 0, above = 0;
    for (uint64_t i = 0, j; i < count; i = j) {
        double links_here = 0;
        for (j = i; j < count && all[j].score == all[i].score; j++) links_here += all[j].is_link;
        double others_here = (double)(j - i) - links_here;
        above += links_here * (others + others_here / 2);
        links += links_here, others += others_here;
    }
    return above / (links * others);
}

static int find_auc(struct links_job *job, double *auc) {
    uint64_t links = job->sets.held_out.count, count = links + job->none.count;
    OWNED struct scored *all = mem_alloc(count, sizeof *all, "scores of links");
    OWNED float *query = mem_alloc(2, job->sets.model->dim * sizeof *query, "a node's vector");
    int result = all && query ? 0 : -1;
    if (!result) {
        score_pairs(job, &job->sets.held_out, 1, query, all);
        score_pairs(job, &job->none, 0, query, all + links);
        qsort(all, count, sizeof *all, mem_by_float);
        *auc = share_above(all, count);
    }
    return result;
}

/* Judges all links by job->scoring, and adds numbers named after this score. */
static int judge_links(struct links_job *job, const char *score, struct pool *pool) {
    double auc, mrr = 0, hits = 0;
    uint64_t asked = job->asked.count;
    job->next = 0;
    if (find_auc(job, &auc) || pool_run(pool, rank_ends, job)) return -1;
    for (uint64_t i = 0; i < asked; i++) {
        mrr += 1 / job->ranks[i] / (double)asked;
        hits += (job->ranks[i] <= HITS) / (double)asked;
    }
    return answer_add(job->answer, score, "auc", auc, job->sets.held_out.count, " %s auc #", score) ||
                   answer_add(job->answer, score, "mrr", mrr, asked, " mrr #") ||
                   answer_add(job->answer, score, "hits", hits, asked, " hits@%d #", HITS)
               ? -1 : 0;
}

/* ---- Hadamard features ---- */

static void multiply(const float *x, struct link link, uint32_t dim, float *out) {
    for (uint32_t i = 0; i < dim; i++) out[i] = x[(uint64_t)link.from * dim + i] * x[(uint64_t)link.to * dim + i];
}

/* Divides each column by its standard deviation, and writes the deviations to spread[dim]. */
static void scale_columns(float *products, uint64_t count, uint32_t dim, double *spread) {
    double *mean = spread + dim;
    memset(spread, 0, 2 * dim * sizeof *spread);
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < dim; j++) mean[j] += (double)products[i * dim + j] / (double)count;
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < dim; j++) {
            double far = (double)products[i * dim + j] - mean[j];
            spread[j] += far * far / (double)count;
        }
    for (uint32_t j = 0; j < dim; j++) spread[j] = fmax(sqrt(spread[j]), 1e-12);
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < dim; j++) products[i * dim + j] = (float)((double)products[i * dim + j] / spread[j]);
}

/* Fits the factors of columns in a product of two rows, by a regression that distinguishes training links from unlinked pairs. factors: [1 + dim];
 * the first is the intercept, which does not change the order of scores. */
static int fit_factors(struct links_job *job, const float *x, float *factors) {
    uint32_t dim = job->sets.model->dim;
    uint64_t each = job->sets.known.count < LINKS_FITTED ? job->sets.known.count : LINKS_FITTED;
    OWNED float *products = mem_alloc(2 * each, dim * sizeof *products, "products of columns");
    OWNED uint8_t *of_class = mem_alloc(2 * each, sizeof *of_class, "products of columns");
    OWNED double *spread = mem_alloc(2, dim * sizeof *spread, "products of columns");
    if (!products || !of_class || !spread) return -1;
    for (uint64_t i = 0; i < each; i++) {
        multiply(x, job->sets.known.link[job->order[i]], dim, products + i * dim);
        multiply(x, job->none_known.link[i], dim, products + (each + i) * dim);
        of_class[i] = 1, of_class[each + i] = 0;
    }
    scale_columns(products, 2 * each, dim, spread);
    struct logistic_samples samples = {products, NULL, of_class, 2 * each, dim};
    int result = logistic_fit(factors, &samples);
    for (uint32_t i = 0; i < dim; i++) factors[i + 1] = (float)((double)factors[i + 1] / spread[i]);
    return result;
}

static int judge_hadamard(struct links_job *job, struct pool *pool) {
    OWNED float *factors = mem_alloc((uint64_t)job->sets.model->dim + 1, sizeof *factors, "products of columns");
    int result = factors && !fit_factors(job, job->scoring.x, factors) ? 0 : -1;
    job->scoring.factors = factors ? factors + 1 : NULL;
    if (!result) result = judge_links(job, "hadamard", pool);
    job->scoring.factors = NULL;
    return result;
}

/* ---- all scores ----
 *
 *   dot, cosine    of the rows of one view
 *   hadamard       a logistic regression on the products of the two rows' columns, fitted to the training links (if known)
 *   cross          dot product of the target row of one node and the context row of the other; for undirected links the sum of both
 *                  directions; not if contexts are nodes of a tree
 *   cross-cosine   the same, of rows scaled to length 1
 */

static int judge_view(struct links_job *job, enum model_view view, struct pool *pool) {
    float *x = matrix_of(job, view);
    job->scoring = (struct scoring){.x = x, .y = x};
    int result = x ? judge_links(job, "dot", pool) : -1;
    if (!result) {
        make_units(job, x);
        result = judge_links(job, "cosine", pool);
    }
    if (!result && job->sets.known.count) {
        free(x);
        x = matrix_of(job, view);
        job->scoring = (struct scoring){.x = x, .y = x};
        result = x ? judge_hadamard(job, pool) : -1;
    }
    free(x);
    return result;
}

static int judge_cross(struct links_job *job, struct pool *pool) {
    if (job->sets.model->tree) return 0;
    OWNED float *x = matrix_of(job, VIEW_TARGET), *y = x ? matrix_of(job, VIEW_CONTEXT) : NULL;
    job->scoring = (struct scoring){.x = x, .y = y, .both = !job->sets.directed};
    int result = y ? judge_links(job, "cross", pool) : -1;
    if (!result) {
        make_units(job, x);
        make_units(job, y);
        result = judge_links(job, "cross-cosine", pool);
    }
    return result;
}

/* Prints what was left out, and adds the counts to the answer, where they end each score's line. */
static int add_counts(const struct links_job *job) {
    struct answer *answer = job->answer;
    const struct link_sets *sets = &job->sets;
    uint64_t unknown = sets->unknown.words.size, links = sets->held_out.count, all = links + sets->held_out.unknown + sets->trained;
    uint32_t among = 0;
    for (uint64_t end = 0; end < job->asked.count; end++)
        if (job->among[end] > among) among = job->among[end];
    if (sets->held_out.unknown)
        note("left out   %" PRIu64 " of %" PRIu64 " held-out links of '%s': the run does not know one of their nodes",
             sets->held_out.unknown, all, sets->request->path);
    if (sets->trained)
        warn("%" PRIu64 " of %" PRIu64 " held-out links of '%s' are links that the run was trained on; they are left out",
             sets->trained, all, sets->request->path);
    return answer_add(answer, "", "links", (double)links, 0, " links #") ||
                   answer_add(answer, "", "asked", (double)job->asked.count, 0, " asked #") ||
                   answer_add(answer, "", "nodes", (double)(sets->nodes - sets->relations + unknown), 0, " nodes #") ||
                   answer_add(answer, "", "unknown", (double)unknown, 0, " unknown #") ||
                   answer_add(answer, "", "among", among, 0, " among #") ||
                   answer_add(answer, "", "all", (double)job->ranked_among_all, 0, " all #") ||
                   answer_add(answer, "", "left_out", (double)sets->held_out.unknown, 0, " left-out #") ||
                   answer_add(answer, "", "trained", (double)sets->trained, 0, " trained #")
               ? -1 : 0;
}

int evaluate_links(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    struct links_job job = {.answer = answer, .sets = {.model = model, .request = request}};
    ENDED_BY(pool_end) struct pool *pool = pool_open(config ? (unsigned)config->device_threads : 0);
    int result = !pool || read_sets(&job.sets, pool) || draw_all(&job) || judge_view(&job, request->view, pool) ||
                         judge_cross(&job, pool) || add_counts(&job)
                     ? -1 : 0;
    mem_free(job.sets.known.link, job.sets.held_out.link, job.sets.rows);
    names_release(&job.sets.names);
    names_release(&job.sets.unknown);
    forget_neighbours(&job.sets);
    mem_free(job.none.link, job.none_known.link, job.asked.link, job.order, job.wrong, job.among, job.ranks);
    return result;
}
