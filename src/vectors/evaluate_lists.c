/* evaluate_lists: ranks held-out items. For each list the k items that suit its training items best are found; held-out items among them are hits. */

#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "list_scores.h"
#include "names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lists_job {
    double recall, ndcg, hit; /* sums over the judged lists; judge_lists() divides them by the number of lists */
    uint64_t scored, unknown; /* number of lists judged; number of their held-out items that the run does not know */
    uint64_t items, trained;  /* number of held-out items of these lists; of these, how many are left out because the list contains them in
                               * training */
    uint64_t leaked;          /* number of the other held-out items that the run was trained on in the same list; these are judged */
    struct run_lists own;     /* the lists on which the run was trained */
    uint64_t *codes, codes_capacity; /* buffer for the held-out items of one list */
    uint64_t *own_codes, own_capacity; /* buffer for the items of one list of `own` */
    uint64_t cold;            /* number of lists left out because they have held-out items but no line in the training file */
    uint64_t rows, end;       /* rows: number of rows of the model; end: that number and the number of new items, added up */
    enum { OLD_AMONG_OLD, NEW_AMONG_NEW, NEW_AMONG_ALL, OLD_AMONG_ALL, AMONGS } among; /* which held-out items are judged, among which candidates */
    uint32_t k;
    struct names lists;
    struct list_items train, held_out;
    int64_t *rows_of_lists; /* [lists] each list's row, or -1; NULL: lists.row has them */
    uint64_t *asked; /* [asked_count] numbers of the lists to judge */
    uint64_t asked_count;
    double *gains;    /* [k] what a hit at each rank adds to the DCG */
};

/* Counts a list's distinct held-out items. Removes those that its answer may not contain (the list's training items), and moves the others,
 * sorted, to the front of codes[count]. Items that the run does not know stay, and count as missed. own: number of items of this list in
 * job->own_codes. Returns how many items are left. */
static uint64_t keep_findable(struct lists_job *job, uint64_t *codes, uint64_t count, const struct search_found *found, uint64_t own) {
    uint64_t kept = 0;
    qsort(codes, count, sizeof *codes, mem_by_number);
    for (uint64_t i = 0, code; i < count; i++) {
        code = codes[i];
        if (i + 1 < count && codes[i + 1] == code) continue;
        uint32_t row = (uint32_t)code;
        if (job->end > job->rows && (code >= job->rows) != (job->among == NEW_AMONG_NEW || job->among == NEW_AMONG_ALL)) continue;
        int banned = code < DRAW_NONE && found->banned_count &&
                     bsearch(&row, found->banned, found->banned_count, sizeof row, mem_by_id) != NULL;
        job->items++;
        job->trained += banned;
        job->unknown += code >= job->end;
        job->leaked += !banned && own && bsearch(&code, job->own_codes, own, sizeof code, mem_by_number);
        if (!banned) codes[kept++] = code;
    }
    return kept;
}

/* Adds one list's scores to the sums. */
static int score_list(void *context, uint64_t list, const struct search_found *found) {
    struct lists_job *job = context;
    const uint64_t *all = job->held_out.codes + job->held_out.starts[list];
    uint64_t held_out = job->held_out.starts[list + 1] - job->held_out.starts[list], hits = 0, own = 0;
    if (mem_grow(&job->codes, &job->codes_capacity, held_out, sizeof *job->codes, "held-out items")) return -1;
    uint64_t *codes = memcpy(job->codes, all, held_out * sizeof *codes);
    double gain = 0, best = 0;
    if (job->own.starts && job->lists.row[list] >= 0) {
        if (run_lists_items(&job->own, job->lists.row[list], &job->own_codes, &own, &job->own_capacity)) return -1;
        if (own) qsort(job->own_codes, own, sizeof *job->own_codes, mem_by_number);
    }
    uint64_t count = keep_findable(job, codes, held_out, found, own);
    if (!count) return 0;
    job->scored++;
    for (uint32_t i = 0; i < job->k; i++) {
        uint64_t row = found->ids[i];
        if (row == DRAW_NONE || !bsearch(&row, codes, count, sizeof *codes, mem_by_number)) continue;
        hits++;
        gain += job->gains[i];
    }
    for (uint64_t i = 0; i < count && i < job->k; i++) best += job->gains[i];
    job->recall += (double)hits / (double)count;
    job->ndcg += gain / best;
    job->hit += hits > 0;
    return 0;
}

/* Fails if a file has items, but none that the run knows: it is one of other names. */
static int check_names(const struct list_items *items, uint64_t end, const char *path, const char *run) {
    uint64_t known = 0;
    for (uint64_t i = 0; i < items->count; i++) known += items->codes[i] < end;
    return known || !items->count ? 0 : fail("none of the %" PRIu64 " items of '%s' is in the vocabulary of '%s'", items->count, path, run);
}

/* Reads the training items and the held-out items of all lists, from files or from data in memory. */
static int read_lists(struct lists_job *job, const struct model *model, const struct evaluate_request *request) {
    ENDED_BY(names_release) struct names unknown = {.capacity = 0};
    char said[LOOK_SAID] = "";
    struct corpus_options train = request->reading, held_out = request->reading;
    if ((request->look && !request->known_data && list_form_look(&train, request->known)) ||
        (request->look && !request->data && list_form_look(&held_out, request->path)))
        return -1;
    /* If each list has one held-out item, the names of lists look like line numbers. Hence this file gets the columns of the training file. */
    char columns[LIST_FORM_COLUMNS] = "";
    int set = held_out.look.columns && *held_out.look.columns && strcmp(held_out.look.columns, "auto");
    if (!set && !request->data && !request->known_data && corpus_formats[held_out.format].scattered &&
        list_form_columns(&train, request->known, columns))
        return -1;
    if (*columns) held_out.look.columns = columns, held_out.look.hints = 1;
    train.said = held_out.said = said;
    if (list_items_read(&job->held_out, request->path, request->data, &held_out, model, &job->lists, 1, &unknown) ||
        list_items_read(&job->train, request->known, request->known_data, &train, model, &job->lists, 0, NULL))
        return -1;
    if (!job->held_out.count) return fail("'%s' has no list with an item", request->path);
    return check_names(&job->held_out, job->end, request->path, model->directory) ||
                   check_names(&job->train, job->end, request->known, model->directory)
               ? -1 : 0;
}

/* Chooses the lists that have both held-out items and a line in the training file. */
static int choose_lists(struct lists_job *job, const struct evaluate_request *request) {
    job->asked = mem_alloc(job->lists.words.size, sizeof *job->asked, "lists");
    if (!job->asked) return -1;
    for (uint64_t list = 0; list < job->lists.words.size; list++) {
        if (job->held_out.starts[list + 1] == job->held_out.starts[list]) continue;
        if (job->train.met[list])
            job->asked[job->asked_count++] = list;
        else
            job->cold++;
    }
    if (job->asked_count) return 0;
    return fail("no list of '%s' has items there and a line in '%s'", request->path, request->known);
}

/* Finds the items that suit each chosen list, and divides the sums by the number of lists. */
static int judge_lists(struct lists_job *job, const struct model *model, enum list_score score, const struct config *config) {
    struct list_scores scores = {.model = NULL};
    struct list_question question = {.starts = job->train.starts,
                                     .codes = job->train.codes,
                                     .rows = job->rows_of_lists ? job->rows_of_lists : job->lists.row,
                                     .lists = job->asked,
                                     .count = job->asked_count,
                                     .k = job->k};
    if (!job->gains && !(job->gains = mem_alloc(job->k, sizeof *job->gains, "gains"))) return -1;
    job->recall = job->ndcg = job->hit = 0, job->scored = job->unknown = job->items = job->trained = job->leaked = 0;
    for (uint32_t i = 0; i < job->k; i++) job->gains[i] = 1 / log2((double)i + 2);
    const struct list_candidates candidates = {.first = job->among == OLD_AMONG_OLD ? model_items(model) : 0,
                                               .only_new = job->among == NEW_AMONG_NEW};
    int result = list_scores_open(&scores, model, score, &candidates, config) ||
                         list_scores_ask(&scores, &question, score_list, job) ? -1 : 0;
    list_scores_close(&scores);
    double lists = job->scored ? (double)job->scored : 1;
    job->recall /= lists, job->ndcg /= lists, job->hit /= lists;
    return result;
}

static void release(struct lists_job *job) {
    mem_free(job->asked, job->gains, job->rows_of_lists, job->codes, job->own_codes);
    run_lists_close(&job->own);
    names_release(&job->lists);
    list_items_release(&job->train);
    list_items_release(&job->held_out);
}

/* Fails if more than half of the held-out items are training items, since it is probably the wrong file. Warns if fewer are. */
static int check_trained(const struct lists_job *job, const struct model *model, const struct evaluate_request *request) {
    char trained[TEXT_BYTES], all[TEXT_BYTES];
    if (job->leaked)
        warn("%s of %s held-out items of '%s' are ones that '%s' was trained on, in the same list: finding them shows nothing; train without them",
             text_of_count(trained, job->leaked), text_of_count(all, job->items), request->path, model->directory);
    if (!job->trained) return 0;
    text_of_count(trained, job->trained);
    text_of_count(all, job->items);
    if (2 * job->trained > job->items)
        return fail("%s of %s held-out items of '%s' are trained ones: their lists in '%s' (or the run's graph) have them, and no "
                    "answer repeats those; give held-out items that training left out",
                    trained, all, request->path, request->known);
    warn("%s of %s held-out items of '%s' are trained ones, which no answer repeats; they are left out", trained, all, request->path);
    return 0;
}

/* The names of the answer's lines, if the run has new items (features.h). */
static const char *const parts[AMONGS] = {[OLD_AMONG_OLD] = "trained items among trained ones", [NEW_AMONG_NEW] = "new items among new ones",
                                          [NEW_AMONG_ALL] = "new items among all", [OLD_AMONG_ALL] = "trained items among all"};

static int add_numbers(struct answer *answer, const struct lists_job *job, const struct model *model, enum list_score score) {
    const char *part = job->end > job->rows ? parts[job->among] : "", *colon = *part ? ": " : "";
    uint64_t without_row = 0, k = job->k;
    for (uint64_t i = 0; i < job->asked_count && list_score_of_users(score); i++) without_row += job->lists.row[job->asked[i]] < 0;
    int folded = without_row && list_score_folds(model, score, -1);
    return answer_add(answer, part, "recall", job->recall, job->scored, "%s%srecall@%" PRIu64 " #", part, colon, k) ||
                   answer_add(answer, part, "ndcg", job->ndcg, job->scored, " ndcg@%" PRIu64 " #", k) ||
                   answer_add(answer, part, "hit", job->hit, job->scored, " hit@%" PRIu64 " #", k) ||
                   answer_add(answer, part, "lists", (double)job->scored, 0, " score %s lists #",
                              list_score_said(score, folded && without_row >= job->scored)) ||
                   answer_add(answer, part, "unknown", (double)job->unknown, 0, " unknown #") ||
                   answer_add(answer, part, "held_out", (double)job->items, 0, " held-out #") ||
                   answer_add(answer, part, "trained", (double)(job->trained + job->leaked), 0, " trained #") ||
                   answer_add(answer, part, "cold", (double)job->cold, 0, " cold #") ||
                   answer_add(answer, part, "without_row", (double)without_row, 0, "%s%s",
                              list_score_of_users(score) ? " without-row #" : "", folded ? " folded" : "")
               ? -1 : 0;
}

int evaluate_lists(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    struct lists_job job = {.rows = model->rows, .end = model_end(model), .k = (uint32_t)request->options.k};
    int result = read_lists(&job, model, request) || choose_lists(&job, request) ? -1 : 0;
    if (!result) {
        names_locate_lists(&job.lists, model);
        if (job.cold)
            note("left out   %" PRIu64 " of %" PRIu64 " lists of '%s': they have no line in '%s', so that nothing tells what suits them",
                 job.cold, job.cold + job.asked_count, request->path, request->known);
        ENDED_BY(pool_end) struct pool *pool = pool_open(config ? (unsigned)config->device_threads : 0);
        result = !pool || run_lists_open(&job.own, model, pool) ? -1 : 0;
        for (int among = OLD_AMONG_OLD; !result && among < (job.end > job.rows ? AMONGS : NEW_AMONG_NEW); among++) {
            job.among = among;
            result = judge_lists(&job, model, request->score, config) || (!among && check_trained(&job, model, request)) ||
                             add_numbers(answer, &job, model, request->score)
                         ? -1 : 0;
        }
    }
    release(&job);
    return result;
}

/* ---- items that training left out ---- */

/* Makes lists of items from ids; leaves out the first `own` ids of each list. */
static int take_items(struct list_items *items, const uint32_t *ids, const uint64_t *starts, uint64_t lists, uint64_t own) {
    uint64_t count = 0;
    items->starts = mem_alloc(lists + 1, sizeof *items->starts, "lists");
    items->codes = mem_alloc(starts[lists], sizeof *items->codes, "lists");
    for (uint64_t list = 0; items->starts && items->codes && list <= lists; list++) {
        items->starts[list] = count;
        for (uint64_t at = starts[list] + own; list < lists && at < starts[list + 1]; at++) items->codes[count++] = ids[at];
    }
    return items->starts && items->codes ? 0 : -1;
}

/* Chooses the lists to judge, evenly spaced among those with a held-out item. */
static int choose_evenly(struct lists_job *job, const struct held_out *h) {
    uint64_t all = 0, at = 0, *count = &job->asked_count;
    for (uint64_t list = 0; list < h->lists; list++) all += h->starts[list + 1] > h->starts[list];
    job->asked = mem_alloc(all, sizeof *job->asked, "lists");
    job->rows_of_lists = mem_alloc(h->lists, sizeof *job->rows_of_lists, "lists");
    if (!job->asked || !job->rows_of_lists) return -1;
    uint64_t most = all < JUDGE_LISTS ? all : JUDGE_LISTS;
    for (uint64_t list = 0; list < h->lists; list++) {
        job->rows_of_lists[list] = h->own ? (int64_t)h->trained.ids[h->trained.starts[list]] : -1;
        if (h->starts[list + 1] > h->starts[list] && at++ * most / all == *count) job->asked[(*count)++] = list;
    }
    return 0;
}

int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *h, const struct config *config) {
    ENDED_BY(model_close) struct model model = {0};
    int result = model_open(&model, checkpoint);
    struct lists_job job = {.rows = model.rows, .end = model.rows, .k = JUDGE_PLACES};
    if (!result)
        result = take_items(&job.train, h->trained.ids, h->trained.starts, h->lists, (uint64_t)h->own) ||
                         take_items(&job.held_out, h->ids, h->starts, h->lists, 0) || choose_evenly(&job, h) ||
                         judge_lists(&job, &model, answers_score(&model, 1), config)
                     ? -1 : 0;
    release(&job);
    *recall = job.recall;
    *lists = job.scored;
    return result;
}
