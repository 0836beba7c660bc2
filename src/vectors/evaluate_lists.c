/* How high held-out items rank: each list's items in the training file are asked for the k items that suit them
 * best. */
#include "evaluate.h"

#include "list_form.h"
#include "list_items.h"
#include "base/memory.h"
#include "base/report.h"

#include <math.h>
#include <stdlib.h>

struct lists_job {
    struct lists_score *sums;
    uint64_t rows; /* of the model */
    uint32_t k;
    struct names lists;
    struct list_items train, held_out;
    uint64_t *scored; /* the lists that are scored */
    double *gains;    /* [k] what a hit at each place adds */
};

static int by_code(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds one list's answer to the sums. */
static int score_list(void *context, uint64_t list, const uint32_t *ids, const float *scores) {
    struct lists_job *job = context;
    struct lists_score *sums = job->sums;
    uint64_t *codes = job->held_out.codes + job->held_out.starts[list];
    uint64_t count = job->held_out.starts[list + 1] - job->held_out.starts[list], distinct = 0, hits = 0;
    double gain = 0, best = 0;
    qsort(codes, count, sizeof *codes, by_code);
    for (uint64_t i = 0; i < count; i++)
        if (!distinct || codes[distinct - 1] != codes[i]) {
            codes[distinct++] = codes[i];
            sums->unknown += codes[distinct - 1] >= job->rows;
        }
    for (uint32_t i = 0; i < job->k; i++) {
        uint64_t found = ids[i];
        if (found == DRAW_NONE || !bsearch(&found, codes, distinct, sizeof *codes, by_code)) continue;
        hits++;
        gain += job->gains[i];
    }
    for (uint64_t i = 0; i < distinct && i < job->k; i++) best += job->gains[i];
    sums->recall += (double)hits / (double)distinct;
    sums->ndcg += gain / best;
    sums->hit += hits > 0;
    return 0;
}

/* Reads both files into lists and the items of each. */
static int read_lists(struct lists_job *job, const struct model *model, const struct lists_request *request) {
    struct names unknown = {.capacity = 0};
    struct corpus_options train = request->reading, held_out = request->reading;
    if (request->look && (list_form_look(&train, request->train) || list_form_look(&held_out, request->held_out))) return -1;
    int result = list_items_read(&job->held_out, request->held_out, &held_out, model, &job->lists, &unknown);
    names_release(&unknown);
    return result ? -1 : list_items_read_named(&job->train, request->train, &train, model, &job->lists);
}

/* Chooses the lists that have held-out items and a line in the training file. */
static int choose_lists(struct lists_job *job, const struct lists_request *request) {
    job->scored = mem_alloc(job->lists.words.size, sizeof *job->scored, "lists");
    if (!job->scored) return -1;
    for (uint64_t list = 0; list < job->lists.words.size; list++)
        if (job->train.met[list] && job->held_out.starts[list + 1] > job->held_out.starts[list])
            job->scored[job->sums->lists++] = list;
    if (job->sums->lists) return 0;
    return fail("no list of '%s' has items there and a line in '%s'", request->held_out, request->train);
}

static int ask(struct lists_job *job, const struct model *model, const struct lists_request *request,
               const struct config *config) {
    struct list_scores scores = {.model = NULL};
    names_locate_lists(&job->lists, model);
    struct list_question question = {.starts = job->train.starts,
                                     .codes = job->train.codes,
                                     .rows = job->lists.row,
                                     .lists = job->scored,
                                     .count = job->sums->lists,
                                     .k = job->k};
    int result = list_scores_open(&scores, model, request->score, 0, config) ||
                         list_scores_ask(&scores, &question, score_list, job)
                     ? -1
                     : 0;
    list_scores_close(&scores);
    return result;
}

int evaluate_lists(struct lists_score *score, const struct model *model, const struct lists_request *request,
                   const struct config *config) {
    struct lists_job job = {.sums = score, .rows = model->rows, .k = request->k};
    int result = -1;
    *score = (struct lists_score){.lists = 0};
    if (read_lists(&job, model, request) || choose_lists(&job, request)) goto out;
    job.gains = mem_alloc(job.k, sizeof *job.gains, "gains");
    if (!job.gains) goto out;
    for (uint32_t i = 0; i < job.k; i++) job.gains[i] = 1 / log2((double)i + 2);
    if (ask(&job, model, request, config)) goto out;
    score->recall /= (double)score->lists;
    score->ndcg /= (double)score->lists;
    score->hit /= (double)score->lists;
    result = 0;
out:
    free(job.scored);
    free(job.gains);
    names_release(&job.lists);
    list_items_release(&job.train);
    list_items_release(&job.held_out);
    return result;
}
