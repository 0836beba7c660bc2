/* evaluate_links: measures how well vectors tell links that were held out of a graph from unlinked pairs of nodes.
 *
 *   AUC            of the held-out links against as many unlinked pairs
 *   MRR, hits@10   of the true end of each held-out link among LINKS_AMONG nodes that are no neighbours of its other end (among
 *                  all its non-neighbours if there are no more than LINKS_AMONG)
 *
 * Two kinds of links are left out and counted: links with a node that the run does not know, and held-out links that are also
 * training links.
 *
 * Equal scores count half. numeric.h draws, in this order: unlinked pairs to compare with held-out links, unlinked pairs to
 * compare with training links, the links whose ends are ranked, an order of the training links, and the nodes that each end is
 * ranked among.
 */
#include "link_sets.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "numeric.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINKS_AMONG = 1000,
    LINKS_ASKED = 20000,  /* most held-out links whose ends are ranked */
    LINKS_FITTED = 20000, /* most training links to which the regression is fitted */
    ROUNDS = 200,         /* after this many rounds of drawing, a graph counts as having too few unlinked pairs */
    HITS = 10,
    AHEAD = 2, /* a node's rows are prefetched this many nodes before it is scored */
    GRAIN = 16 /* number of ends that a worker takes at a time */
};

/* How to score a pair of nodes: dot(x of the first, y of the second); if `both` is 1, plus dot(x of the second, y of the first). */
struct scoring {
    float *x, *y;         /* [nodes x dim] the two kinds of rows; if a node has one vector, y is x */
    const float *factors; /* [dim] factor of each column in the dot product; NULL: every factor is 1 */
    int both;
};

struct links_job {
    struct link_sets sets;
    struct numpy_draws draws;
    struct links none, none_known; /* unlinked pairs: none: as many as held-out links; none_known: as many as training links */
    struct links asked;            /* links whose end `to` is ranked, with `from` as the query */
    uint32_t *order;               /* [known] random order of the training links */
    uint32_t *wrong;               /* [asked x LINKS_AMONG]: for each asked link, the nodes that its end is compared with */
    uint32_t *among;               /* [asked] number of nodes among which each end is ranked, at most LINKS_AMONG */
    uint64_t ranked_among_all;     /* number of ends that are ranked among all nodes that are no neighbours */
    double *ranks;                 /* [asked] rank of each end */
    struct scoring scoring;
    _Atomic uint64_t next; /* number of the first end that no worker has taken yet */
};

static const char *const score_names[LINK_SCORES] = {"dot", "cosine", "hadamard", "cross", "cross-cosine"};

const char *link_score_name(enum link_score score) {
    return score_names[score];
}

/* ---- draws ---- */

static uint32_t draw_node(struct links_job *job) {
    return numpy_draws_below(&job->draws, job->sets.nodes);
}

/* Draws unlinked pairs: each round draws twice as many pairs as are wanted and keeps the unlinked ones. */
static int draw_pairs(struct links_job *job, struct links *pairs, uint64_t wanted) {
    for (int round = 0; pairs->count < wanted; round++) {
        if (round == ROUNDS)
            return fail("nearly all pairs of the %" PRIu64 " nodes are links: too few are left to compare '%s' with",
                        job->sets.nodes, job->sets.request->held_out);
        for (uint64_t i = 0; i < 2 * wanted; i++) {
            uint32_t from = draw_node(job), to = draw_node(job);
            if (pairs->count < wanted && from != to && !link_sets_linked(&job->sets, from, to) && links_add(pairs, from, to))
                return -1;
        }
    }
    return 0;
}

/* Chooses the ends to rank: first the heads of all chosen links, then, if links have no direction, their tails. */
static int choose_asked(struct links_job *job) {
    uint64_t all = job->sets.held_out.count, count = all < LINKS_ASKED ? all : LINKS_ASKED;
    uint32_t *chosen = mem_alloc(count, sizeof *chosen, "the links asked for");
    int result = chosen ? 0 : -1;
    for (uint64_t i = 0; !result && i < count; i++) chosen[i] = (uint32_t)i;
    if (!result && count < all) result = numpy_draws_choice(&job->draws, chosen, count, all);
    for (int back = 0; !result && back < 2 - job->sets.directed; back++)
        for (uint64_t i = 0; !result && i < count; i++) {
            struct link link = job->sets.held_out.link[chosen[i]];
            result = back ? links_add(&job->asked, link.to, link.from) : links_add(&job->asked, link.from, link.to);
        }
    free(chosen);
    return result;
}

static int is_wrong(const struct links_job *job, uint64_t place) {
    struct link asked = job->asked.link[place / LINKS_AMONG];
    uint32_t node = job->wrong[place];
    return node != asked.from && node != asked.to && !link_sets_linked(&job->sets, asked.from, node);
}

/* Returns the number of nodes other than `from` that are not its neighbours. */
static uint64_t count_strangers(const struct links_job *job, uint32_t from) {
    uint64_t neighbours = 0;
    for (uint64_t i = job->sets.starts[from]; i < job->sets.starts[from + 1]; i++)
        neighbours += i == job->sets.starts[from] || job->sets.others[i] != job->sets.others[i - 1];
    return job->sets.nodes - 1 - neighbours;
}

/* If an end has at most LINKS_AMONG nodes to be ranked among, lists all these nodes and returns 1. Otherwise returns 0: the
 * nodes must be drawn. */
static int list_wrong(struct links_job *job, uint64_t end) {
    struct link asked = job->asked.link[end];
    uint32_t count = 0;
    job->among[end] = LINKS_AMONG;
    if (count_strangers(job, asked.from) > LINKS_AMONG) return 0;
    for (uint32_t node = 0; node < job->sets.nodes; node++)
        if (node != asked.from && !link_sets_linked(&job->sets, asked.from, node)) job->wrong[end * LINKS_AMONG + count++] = node;
    job->among[end] = count;
    job->ranked_among_all++;
    return 1;
}

/* Collects, ascending, the indexes into job->wrong whose node must be drawn again, because it is an end of the link or a
 * neighbour. Returns their number, or -1 after fail(). */
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

/* Draws the nodes that ends are ranked among. Nodes that turn out to be neighbours are drawn again. */
static int draw_wrong(struct links_job *job) {
    uint64_t count = job->asked.count * LINKS_AMONG;
    uint64_t *again = NULL;
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
    free(again);
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

/* Returns the vectors of all nodes, for the caller to free; NULL after fail(). */
static float *matrix_of(const struct links_job *job, enum model_view view) {
    return model_matrix_of(job->sets.model, view, job->sets.rows, job->sets.nodes, 0);
}

static void make_units(const struct links_job *job, float *matrix) {
    uint32_t dim = job->sets.model->dim;
    for (uint64_t node = 0; node < job->sets.nodes; node++) model_make_unit(matrix + node * dim, dim);
}

/* Writes the query of a node that is compared with other nodes: its row of x times the factors, then its row of y. */
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

/* Prefetches the rows that score_of() will read. */
static void fetch_node(const struct links_job *job, uint32_t node) {
    uint32_t dim = job->sets.model->dim;
    dot_fetch(job->scoring.y + (uint64_t)node * dim, dim);
    if (job->scoring.both) dot_fetch(job->scoring.x + (uint64_t)node * dim, dim);
}

static double rank_of(const struct links_job *job, uint64_t i, float *query) {
    struct link asked = job->asked.link[i];
    const uint32_t *wrong = job->wrong + i * LINKS_AMONG;
    uint32_t among = job->among[i];
    uint64_t before = 0, beside = 0;
    ask_node(job, asked.from, query);
    float truth = score_of(job, query, asked.to);
    for (uint32_t j = 0; j < among; j++) {
        if (j + AHEAD < among) fetch_node(job, wrong[j + AHEAD]);
        float score = score_of(job, query, wrong[j]);
        before += score > truth;
        beside += score == truth;
    }
    return 1 + (double)before + (double)beside / 2;
}

static int rank_ends(void *context, unsigned worker) {
    struct links_job *job = context;
    float *query = mem_alloc(2, job->sets.model->dim * sizeof *query, "a node's vector");
    uint64_t first, end;
    while (query && pool_take(&job->next, job->asked.count, GRAIN, &first, &end))
        for (uint64_t i = first; i < end; i++) job->ranks[i] = rank_of(job, i, query);
    free(query);
    return query ? 0 : -1;
}

/* ---- AUC ---- */

struct scored {
    float score;
    int is_link;
};

static int by_score(const void *a, const void *b) {
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return x < y ? -1 : x > y;
}

static void score_pairs(const struct links_job *job, const struct links *pairs, int is, float *query, struct scored *out) {
    for (uint64_t i = 0; i < pairs->count; i++) {
        ask_node(job, pairs->link[i].from, query);
        out[i] = (struct scored){score_of(job, query, pairs->link[i].to), is};
    }
}

/* Returns the share of comparisons of a link with an unlinked pair in which the link has the higher score. all[] is sorted. */
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
    struct scored *all = mem_alloc(count, sizeof *all, "scores of links");
    float *query = mem_alloc(2, job->sets.model->dim * sizeof *query, "a node's vector");
    int result = all && query ? 0 : -1;
    if (!result) {
        score_pairs(job, &job->sets.held_out, 1, query, all);
        score_pairs(job, &job->none, 0, query, all + links);
        qsort(all, count, sizeof *all, by_score);
        *auc = share_above(all, count);
    }
    free(all);
    free(query);
    return result;
}

static int judge_links(struct links_job *job, struct sptx_links_score *score, struct pool *pool) {
    job->next = 0;
    if (find_auc(job, &score->auc) || pool_run(pool, rank_ends, job)) return -1;
    score->mrr = score->hits = 0;
    for (uint64_t i = 0; i < job->asked.count; i++) {
        score->mrr += 1 / job->ranks[i] / (double)job->asked.count;
        score->hits += (job->ranks[i] <= HITS) / (double)job->asked.count;
    }
    return 0;
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

/* Fits the factor of each column in a product of two rows, by a regression that tells training links from unlinked pairs.
 * factors: [1 + dim]; the first is the intercept, which does not change the order of scores. */
static int fit_factors(struct links_job *job, const float *x, float *factors) {
    uint32_t dim = job->sets.model->dim;
    uint64_t each = job->sets.known.count < LINKS_FITTED ? job->sets.known.count : LINKS_FITTED;
    float *products = mem_alloc(2 * each, dim * sizeof *products, "products of columns");
    uint8_t *of_class = mem_alloc(2 * each, sizeof *of_class, "products of columns");
    double *spread = mem_alloc(2, dim * sizeof *spread, "products of columns");
    int result = products && of_class && spread ? 0 : -1;
    if (result) goto out;
    for (uint64_t i = 0; i < each; i++) {
        multiply(x, job->sets.known.link[job->order[i]], dim, products + i * dim);
        multiply(x, job->none_known.link[i], dim, products + (each + i) * dim);
        of_class[i] = 1, of_class[each + i] = 0;
    }
    scale_columns(products, 2 * each, dim, spread);
    struct logistic_samples samples = {products, NULL, of_class, 2 * each, dim};
    result = logistic_fit(factors, &samples);
    for (uint32_t i = 0; i < dim; i++) factors[i + 1] = (float)((double)factors[i + 1] / spread[i]);
out:
    free(products);
    free(of_class);
    free(spread);
    return result;
}

static int judge_hadamard(struct links_job *job, struct sptx_links_score *score, struct pool *pool) {
    float *factors = mem_alloc((uint64_t)job->sets.model->dim + 1, sizeof *factors, "products of columns");
    int result = factors && !fit_factors(job, job->scoring.x, factors) ? 0 : -1;
    job->scoring.factors = factors ? factors + 1 : NULL;
    if (!result) result = judge_links(job, score, pool);
    job->scoring.factors = NULL;
    free(factors);
    return result;
}

/* ---- all scores ---- */

static int judge_view(struct links_job *job, struct sptx_links_score *scores, enum model_view view, struct pool *pool) {
    float *x = matrix_of(job, view);
    job->scoring = (struct scoring){.x = x, .y = x};
    int result = x ? judge_links(job, &scores[LINK_DOT], pool) : -1;
    scores[LINK_HADAMARD] = (struct sptx_links_score){NAN, NAN, NAN};
    if (!result && job->sets.known.count) result = judge_hadamard(job, &scores[LINK_HADAMARD], pool);
    if (!result) {
        make_units(job, x);
        result = judge_links(job, &scores[LINK_COSINE], pool);
    }
    free(x);
    return result;
}

static int judge_cross(struct links_job *job, struct sptx_links_score *scores, struct pool *pool) {
    scores[LINK_CROSS] = scores[LINK_CROSS_COSINE] = (struct sptx_links_score){NAN, NAN, NAN};
    if (job->sets.model->tree) return 0;
    float *x = matrix_of(job, VIEW_TARGET), *y = x ? matrix_of(job, VIEW_CONTEXT) : NULL;
    job->scoring = (struct scoring){.x = x, .y = y, .both = !job->sets.directed};
    int result = y ? judge_links(job, &scores[LINK_CROSS], pool) : -1;
    if (!result) {
        make_units(job, x);
        make_units(job, y);
        result = judge_links(job, &scores[LINK_CROSS_COSINE], pool);
    }
    free(x);
    free(y);
    return result;
}

static void links_release(struct links_job *job) {
    link_sets_release(&job->sets);
    free(job->none.link);
    free(job->none_known.link);
    free(job->asked.link);
    free(job->order);
    free(job->wrong);
    free(job->among);
    free(job->ranks);
}

static struct sptx_links_counts count_all(const struct links_job *job) {
    uint64_t unknown = job->sets.unknown.words.size;
    struct sptx_links_counts counts = {.links = job->sets.held_out.count,
                                  .asked = job->asked.count,
                                  .nodes = job->sets.nodes + unknown,
                                  .unknown = unknown,
                                  .left_out = job->sets.held_out.unknown,
                                  .trained = job->sets.trained,
                                  .all = job->ranked_among_all};
    for (uint64_t end = 0; end < job->asked.count; end++)
        if (job->among[end] > counts.among) counts.among = job->among[end];
    return counts;
}

static void tell_left_out(const struct sptx_links_counts *counts, const struct links_request *request) {
    uint64_t all = counts->links + counts->left_out + counts->trained;
    if (counts->left_out)
        note("left out   %" PRIu64 " of %" PRIu64 " held-out links of '%s': the run does not know one of their nodes",
             counts->left_out, all, request->held_out);
    if (counts->trained)
        warn("%" PRIu64 " of %" PRIu64 " held-out links of '%s' are links that the run was trained on; they are left out",
             counts->trained, all, request->held_out);
}

int evaluate_links(struct sptx_links_score *scores, struct sptx_links_counts *counts, const struct model *model,
                   enum model_view view, const struct links_request *request, const struct config *config) {
    struct links_job job = {.next = 0};
    struct pool *pool = pool_open(config ? (unsigned)config->device_threads : 0);
    int result = pool && !link_sets_read(&job.sets, model, request, pool) ? draw_all(&job) : -1;
    if (!result) {
        *counts = count_all(&job);
        tell_left_out(counts, request);
        result = judge_view(&job, scores, view, pool) || judge_cross(&job, scores, pool) ? -1 : 0;
    }
    if (pool) pool_close(pool);
    links_release(&job);
    return result;
}
