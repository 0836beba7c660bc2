#include "recommend.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "known.h"
#include "list_scores.h"
#include "names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct recommending {
    const struct model *model;
    const struct recommend_request *request;
    struct names lists;
    struct list_items items;
    uint64_t *asked; /* [count] numbers of the lists to answer */
    uint64_t count;
    recommend_answer *answer;
    void *user;
};

/* ---- items by hand ---- */

static const char by_hand[] = "items"; /* name of the list of items that the user gave by hand */

/* An item given by hand. */
struct given {
    const char *text;
    uint64_t length;
    int64_t row; /* row of the item; -1: unknown */
};
struct all_given {
    struct given *item;
    uint64_t count, capacity, known;
};

static int add_given(struct all_given *all, const char *text, uint64_t length, int64_t row) {
    if (mem_grow(&all->item, &all->capacity, all->count + 1, sizeof *all->item, "items")) return -1;
    all->item[all->count++] = (struct given){text, length, row};
    all->known += row >= 0;
    return 0;
}

static int64_t find_item(const struct recommending *r, const char *text, uint64_t length) {
    int64_t row = vocab_find(&r->model->vocab, text, length);
    if (row >= 0 || !r->request->titles) return row;
    char *title = mem_text(text, length, "a title");
    if (title) row = titles_find(r->request->titles, r->model, title);
    free(title);
    return row;
}

/* Strips blanks from both ends of a text: moves *text past leading ones. Returns the new length. */
static uint64_t trim(const char **text, uint64_t length) {
    for (; length && text_is_blank(**text); length--) ++*text;
    while (length && text_is_blank((*text)[length - 1])) length--;
    return length;
}

/* Adds the item or title that equals the whole text. If no item or title does, the text is a list of items separated by commas,
 * and each of them is added. */
static int take_items_of(struct recommending *r, struct all_given *all, const char *text) {
    int64_t row = find_item(r, text, strlen(text));
    if (row >= 0) return add_given(all, text, strlen(text), row);
    for (uint64_t length; *text; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        const char *item = text;
        uint64_t bytes = trim(&item, length);
        if (bytes && add_given(all, item, bytes, find_item(r, item, bytes))) return -1;
    }
    return 0;
}

/* Reports an unknown item: with a warning if go_on is 1, since other items are known; otherwise as a failure. */
static int tell_unknown(const struct recommending *r, const struct given *item, int go_on) {
    char *name = mem_text(item->text, item->length, "an item");
    if (!name) return -1;
    if (go_on) {
        const char *near = vocab_near(&r->model->vocab, name);
        warn("'%.100s' is not in the vocabulary of '%s' and is left out%s%s%s", name, r->model->directory,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    } else {
        model_find(r->model, VIEW_SUM, name);
    }
    free(name);
    return go_on ? 0 : -1;
}

static int check_given(const struct recommending *r, const struct all_given *all) {
    if (!all->count) return fail_usage("--items = '%.100s' names no item", r->request->items[0]);
    for (uint64_t i = 0; i < all->count; i++)
        if (all->item[i].row < 0 ? tell_unknown(r, &all->item[i], all->known > 0)
                                 : model_check_list(r->model, (uint64_t)all->item[i].row))
            return -1;
    return 0;
}

/* Makes a single list of the items given by hand. */
static int take_items(struct recommending *r) {
    struct all_given all = {.count = 0};
    int result = -1;
    for (uint64_t i = 0; i < r->request->items_count; i++)
        if (take_items_of(r, &all, r->request->items[i])) goto out;
    if (check_given(r, &all) || names_add(&r->lists, by_hand, sizeof by_hand - 1) < 0) goto out;
    r->items.starts = mem_zalloc(2, sizeof *r->items.starts, "items");
    r->items.codes = mem_alloc(all.count, sizeof *r->items.codes, "items");
    if (!r->items.starts || !r->items.codes) goto out;
    for (uint64_t i = 0; i < all.count; i++) r->items.codes[i] = all.item[i].row < 0 ? r->model->rows : (uint64_t)all.item[i].row;
    r->items.starts[1] = all.count;
    result = 0;
out:
    free(all.item);
    return result;
}

/* ---- lists of a file ---- */

static uint64_t known_of(const struct recommending *r, uint64_t list) {
    uint64_t known = 0;
    for (uint64_t i = r->items.starts[list]; i < r->items.starts[list + 1]; i++) known += r->items.codes[i] < r->model->rows;
    return known;
}

/* most names with which a misspelt name is compared */
enum { NEAR_LISTS = 100000 };

static int refuse_name(const struct recommending *r, const char *name) {
    uint64_t count = r->lists.words.size < NEAR_LISTS ? r->lists.words.size : NEAR_LISTS;
    const char **names = mem_alloc(count, sizeof *names, "the nearest name of a list");
    if (!names) return -1;
    for (uint64_t i = 0; i < count; i++) names[i] = words_get(&r->lists.words, i, NULL);
    const char *near = text_nearest(name, names, count);
    free(names);
    if (near) return fail("'%s' has no list '%.100s'; did you mean '%s'?", r->request->lists, name, near);
    return fail("'%s' has no list '%.100s'", r->request->lists, name);
}

static int choose_lists(struct recommending *r) {
    const struct recommend_request *request = r->request;
    r->count = request->names_count ? request->names_count : r->lists.words.size;
    r->asked = mem_alloc(r->count, sizeof *r->asked, "lists");
    if (!r->asked) return -1;
    for (uint64_t i = 0; i < r->count; i++) {
        int64_t list = (int64_t)i;
        if (request->names_count) list = names_find(&r->lists, request->names[i], strlen(request->names[i]));
        if (list < 0) return refuse_name(r, request->names[i]);
        r->asked[i] = (uint64_t)list;
    }
    return 0;
}

/* Warns about unknown lists and items. Fails if the run knows none. */
static int check_lists(const struct recommending *r) {
    const char *file = r->request->lists, *run = r->model->directory;
    uint64_t items = 0, known = 0, empty = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        uint64_t list = r->asked[i], of_list = known_of(r, list);
        items += r->items.starts[list + 1] - r->items.starts[list];
        known += of_list;
        empty += !of_list;
    }
    if (!r->count) return fail("'%s' has no list", file);
    if (!items) return fail("%s lists of '%s' have no items", r->request->names_count ? "these" : "the", file);
    if (!known)
        return fail("none of the %" PRIu64 " items of %s'%s' is in the vocabulary of '%s'", items,
                    r->request->names_count ? "these lists of " : "", file, run);
    if (items > known)
        warn("%" PRIu64 " of %" PRIu64 " items of '%s' are not in the vocabulary of '%s' and are left out",
             items - known, items, file, run);
    if (empty)
        warn("%" PRIu64 " of %" PRIu64 " lists of '%s' have no item that '%s' knows: nothing is recommended for them",
             empty, r->count, file, run);
    return 0;
}

/* ---- lists of the run ---- */

/* Adds each list of request->names with the items that it was trained with. */
static int take_each(struct recommending *r, const struct run_lists *trained) {
    const struct recommend_request *request = r->request;
    struct list_items *items = &r->items;
    items->starts = mem_zalloc(request->names_count + 1, sizeof *items->starts, "lists");
    if (!items->starts) return -1;
    for (uint64_t i = 0; i < request->names_count; i++) {
        const char *name = request->names[i];
        int64_t row = run_lists_find(r->model, name), number = row < 0 ? -1 : names_add(&r->lists, name, strlen(name));
        if (number < 0) return -1;
        if ((uint64_t)number + 1 < r->lists.words.size || items->starts[number + 1]) continue; /* the name is given twice */
        if (run_lists_items(trained, row, &items->codes, &items->count, &items->capacity)) return -1;
        items->starts[number + 1] = items->count;
    }
    return 0;
}

static int take_trained(struct recommending *r) {
    struct run_lists trained = {.first = 0};
    struct pool *pool = pool_open(0);
    int result = !pool || run_lists_open(&trained, r->model, pool) || take_each(r, &trained) ? -1 : 0;
    if (pool) pool_close(pool);
    run_lists_close(&trained);
    return result;
}

static int take_lists(struct recommending *r) {
    const struct recommend_request *request = r->request;
    struct corpus_options reading = request->reading;
    if (request->look && list_form_look(&reading, request->lists)) return -1;
    return list_items_read(&r->items, request->lists, NULL, &reading, r->model, &r->lists, 1, NULL);
}

/* ---- candidates ---- */

/* Reads the file of candidates, one item a line. Stores their rows in *rows, which the caller frees. */
static int read_candidates(const struct recommending *r, struct list_candidates *candidates, uint64_t **rows) {
    const char *path = r->request->candidates;
    uint64_t capacity = 0, unknown = 0;
    struct lines lines;
    char *text = lines_open(&lines, path);
    int result = text ? 0 : -1;
    while (!result && lines_next(&lines)) {
        const char *item = lines.line;
        uint64_t length = trim(&item, (uint64_t)(lines.stop - lines.line));
        int64_t row = length ? find_item(r, item, length) : -1;
        unknown += length && row < 0;
        if (row < 0) continue;
        result = mem_grow(rows, &capacity, candidates->count + 1, sizeof **rows, "candidates");
        if (!result) (*rows)[candidates->count++] = (uint64_t)row;
    }
    free(text);
    candidates->rows = *rows;
    if (!result && !candidates->count)
        return fail("'%s' has no item that '%s' knows; wanted one a line", path, r->model->directory);
    if (!result && unknown)
        warn("%" PRIu64 " candidates of '%s' are no items of '%s' and are left out", unknown, path, r->model->directory);
    return result;
}

/* ---- answers ---- */

static int hand_over(void *context, uint64_t list, const struct search_found *found) {
    struct recommending *r = context;
    struct recommended answer = {.known = known_of(r, list), .ids = found->ids, .scores = found->scores};
    answer.unknown = r->items.starts[list + 1] - r->items.starts[list] - answer.known;
    answer.list = words_get(&r->lists.words, list, &answer.length);
    int64_t row = !r->request->items_count && r->lists.row ? r->lists.row[list] : -1;
    int own = row >= 0 && list_score_of_users(r->request->score); /* 1: the list's row is the query, so the list may have no
                                                                   * items */
    answer.folded = list_score_folds(r->model, r->request->score, row);
    while ((answer.known || own) && answer.count < r->request->k && answer.ids[answer.count] != DRAW_NONE) answer.count++;
    return r->answer(r->user, &answer);
}

static int ask_scores(struct recommending *r, const struct config *config) {
    const struct recommend_request *request = r->request;
    struct list_scores scores = {.model = NULL};
    struct list_candidates candidates = {.first = request->among};
    uint64_t *rows = NULL;
    if (!request->items_count) names_locate_lists(&r->lists, r->model);
    struct list_question question = {.starts = r->items.starts,
                                     .codes = r->items.codes,
                                     .rows = request->items_count ? NULL : r->lists.row,
                                     .lists = r->asked,
                                     .count = r->count,
                                     .k = request->k,
                                     .seen = request->seen,
                                     .progress = request->progress};
    int result = (request->candidates && read_candidates(r, &candidates, &rows)) ||
                         list_scores_open(&scores, r->model, request->score, &candidates, config) ||
                         list_scores_ask(&scores, &question, hand_over, r) ? -1 : 0;
    list_scores_close(&scores);
    free(rows);
    return result;
}

int recommend(const struct model *model, const struct recommend_request *request, const struct config *config,
              recommend_answer *answer, void *user) {
    struct recommending r = {.model = model, .request = request, .answer = answer, .user = user};
    int result = -1;
    if (request->lists ? take_lists(&r) : request->items_count ? take_items(&r) : take_trained(&r)) goto out;
    if (choose_lists(&r) || (request->lists && check_lists(&r)) || ask_scores(&r, config)) goto out;
    result = 0;
out:
    free(r.asked);
    names_release(&r.lists);
    list_items_release(&r.items);
    return result;
}
