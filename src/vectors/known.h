/* known: opens the lists, graph or triples on which a finished run was trained, so that answers can leave out what is already known. They are
 * found by the keys of the run's config.ini. */
#ifndef SPTX_KNOWN_H
#define SPTX_KNOWN_H

#include "base/pool.h"
#include "corpus/graph.h"
#include "corpus/idstream.h"
#include "corpus/numbered.h"
#include "kernels/backend.h"
#include "model.h"
#include "run/model_files.h"
#include "search.h"

/* run_lists: finds by its name a list on which a finished run was trained, and the items that it contained.
 *
 *   a run of                           a list is named by        its items are
 *   lists with rows  (user)            its name                  the items of its lines in the encoded corpus
 *   citations        (adjacency)       the target of its line    the contexts of its lines
 *   nodes            (walk)            a node                    none: answers leave out the node's neighbours anyway
 *
 * Runs of other modes do not keep the names of lists. If the encoded corpus is missing, a list's row is found but not its items, and a warning says
 * that answers may contain them.
 */

struct run_lists {
    struct idstream stream; /* the encoded corpus; zeros if its file is missing or not needed */
    uint64_t first, count;  /* the first row of a list; number of these rows */
    uint64_t *starts;       /* [rows - first + 1] sentences that begin with row r: sentences[starts[r - first]] .. sentences[starts[r - first + 1]
                             * - 1] */
    uint64_t *sentences;    /* numbers of sentences, sorted by the row that each begins with */
};

/* Returns the row of the list with this name, which may be a new list (features.h). Returns -1 if no list has the name, or if lists have no rows in
 * the run's mode. */
int64_t run_lists_row(const struct model *model, const char *name, uint64_t length);
/* Returns the row of the list with this name; -1 after fail_usage(), which suggests a similar name. */
int64_t run_lists_find(const struct model *model, const char *name);

/* Returns 0, or -1 after fail() if the run was trained on triples and so has no lists. */
int run_lists_check(const struct model *model);

int run_lists_open(struct run_lists *lists, const struct model *model, struct pool *pool);
void run_lists_close(struct run_lists *lists); /* may be called on a struct of zeros */

/* Appends the items of the list in this row to *codes, which grows, and adds their number to *count. Returns 0, or -1 after fail(). */
int run_lists_items(const struct run_lists *lists, int64_t row, uint64_t **codes, uint64_t *count, uint64_t *capacity);

/* run_graph: finds and opens the graph on which a finished run was trained. */

/* Returns 1 if the run was trained on a graph (corpus.format = graph); otherwise 0. */
int run_has_graph(const struct model *model);

/* Returns 1 if the graph's file exists and has at most `most` nodes and arcs together; 0 if not; -1 after fail(). */
int run_graph_within(const struct model *model, uint64_t most);

/* Maps the graph's file, which is in the run directory or in corpus.cache, and checks that the run was trained on it. The
 * graph's nodes are the model's rows. Returns 0, or -1 after fail(). */
int run_graph_open(struct graph *graph, const struct model *model, struct pool *pool);

/* run_triples: questions to a finished run of triples (corpus.format = triples), and their known answers.
 *
 *   question                  these target rows are combined      its answers, scored by their context rows
 *   head, relation, ?         head, relation                      tails
 *   ?, relation, tail         tail, the relation's reciprocal     heads; only with triples.reciprocal = yes
 */

/* Returns 0, or -1 after fail() if the run was not trained on triples. */
int run_triples_check(const struct model *model);
/* Return the row of an entity or a relation; -1 after fail_usage(), which suggests a similar name. */
int64_t run_triples_entity(const struct model *model, const char *name);
int64_t run_triples_relation(const struct model *model, const char *name);
/* Returns the row of a relation's reciprocal; -1 after fail_usage() if the run has none. */
int64_t run_triples_reciprocal(const struct model *model, int64_t relation);

/* Questions and candidates are vectors whose dot product ranks answers. run_triples_width() returns their number of columns: if answers are compared
 * by distance, it is dim + 1, and the dot product is u.t - |t|^2 / 2.
 *
 * run_triples_query() combines the target rows of an entity and a relation to a question, run_triples_candidate() makes a candidate of an entity's
 * context row: out: [width]; they return 0, or -1 after fail(). run_triples_candidates() returns the candidates of `count` entities, [count x width],
 * which the caller frees, or NULL after fail(); rows: NULL: of the first `count` ones. */
uint32_t run_triples_width(const struct model *model);
int run_triples_query(const struct model *model, uint32_t entity, uint32_t relation, float *out);
int run_triples_candidate(const struct model *model, uint32_t entity, float *out);
float *run_triples_candidates(const struct model *model, const uint32_t *rows, uint64_t count);
/* Returns the score of an answer to a question: the dot product of both, or minus their distance. answer: [dim], its context row. */
float run_triples_score(const struct model *model, const float *query, const float *answer);

/* ---- triples of files and programs ---- */

/* Called with each triple: the rows of head, relation and tail, WORDS_ABSENT for a name that the run does not know; and the names themselves, as
 * fields whose weight is 0 if a label says that the triple is false (look_keys.labelled). Returns 0, or -1 to stop. */
typedef int triple_take(void *user, const uint32_t rows[3], const struct corpus_field fields[3]);
/* Reads triples from a file, or from `data` unless it is NULL (asked_read in names.h). With look->labelled = 0, triples that a label calls
 * false are left out. Returns 0, or -1 after fail(): also if there are no triples or, with some = 1, none whose names the run knows. */
int run_triples_read(const struct model *model, const char *path, const struct gathered *data, const struct look_keys *look, int some,
                     triple_take *take, void *user);

/* ---- known answers ---- */

/* The known answers to some questions. A question is a number: entity << 32 | row of the relation or reciprocal. */
struct known_answers {
    const struct model *model;
    uint64_t *questions; /* [count] rising, each once */
    uint64_t count;
    uint32_t *answers; /* answers to question i, rising, without repetitions: answers[starts[i]] .. answers[starts[i] + counts[i] - 1] */
    uint64_t *starts, *counts; /* [count] */
    struct known_pairs {
        struct known_pair {
            uint32_t question, answer; /* question: its index */
        } *pair;
        uint64_t count, capacity;
    } pairs; /* all answers that were added */
    uint8_t *asked; /* [(items + 7) / 8] bit map: 1: the entity occurs in a question */
};

/* Begins with questions[count], which the struct then owns. The caller releases the struct in any case. */
int known_answers_begin(struct known_answers *known, const struct model *model, uint64_t *questions, uint64_t count);
/* Adds the triple's tail and head, each only if it answers one of the questions. A triple_take whose `known` is a struct known_answers. */
int known_answers_add(void *known, const uint32_t rows[3], const struct corpus_field *unused);
/* Opens the triples on which the run was trained. Returns 1; 0 after a warning if their file is missing; -1 after fail(). */
int run_triples_open(struct idstream *stream, const struct model *model, struct pool *pool);
/* Adds all triples of the stream that answer a question. Returns 0, or -1 after fail(). */
int known_answers_add_stream(struct known_answers *known, const struct idstream *stream, struct pool *pool);
/* Sorts the added answers. Must be called again if more answers are added afterwards. */
int known_answers_end(struct known_answers *known);
void known_answers_release(struct known_answers *known); /* may be called on a struct of zeros */

/* Returns the index of a question in `questions`; -1 if it is not one of them. */
int64_t known_answers_find(const struct known_answers *known, uint32_t entity, uint32_t relation);
/* Returns 1 if rows[3], a triple whose head and relation are one of the questions, is among the answers of the last known_answers_end(). */
int known_answers_has(const struct known_answers *known, const uint32_t rows[3]);

/* triple_answers: finds the tails that suit a head and a relation best, or the heads that suit a relation and a tail. */

struct triple_answers {
    const struct model *model;
    struct search search; /* among the context rows of the entities */
    struct idstream
        stream; /* the training triples; opened by the first question that leaves out known answers */
    int looked; /* 1: opening was tried: the stream is open or missing */
};

/* Opens a search on the device that device.* of `config` chooses (NULL: the CPU). */
int triple_answers_open(struct triple_answers *answers, const struct model *model, const struct config *config);
void triple_answers_close(struct triple_answers *answers); /* may be called on a struct of zeros */

/* Finds the k best entities for each question. Question i has entities[i] and relations[i]: a relation's row asks for tails, a reciprocal's row
 * for heads. ids, scores: [count x k], as in struct topk_request. seen = 1: answers may be triples of training. Returns 0, or -1 after fail(). */
int triple_answers_ask(struct triple_answers *answers, const uint32_t *entities, const uint32_t *relations, uint64_t count,
                       uint32_t k, int seen, struct pool *pool, uint32_t *ids, float *scores);

#endif
