#include "recommend.h"

#include "list_form.h"
#include "list_items.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct recommending {
    const struct model *model;
    const struct recommend_request *request;
    struct names lists;
    struct list_items items;
    uint64_t *asked; /* [count] numbers of the asked lists */
    uint64_t count;
    recommend_answer *answer;
    void *user;
};

/* ---- items by hand ---- */

static const char by_hand[] = "items"; /* the name of the list that the items given by hand make */

/* An item as it was given. */
struct given {
    const char *text;
    uint64_t length;
    int64_t row; /* -1: none */
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

/* A text is an item or a title as it stands; otherwise it is several of these with commas between. */
static int take_text(struct recommending *r, struct all_given *all, const char *text) {
    static const char blanks[] = " \t";
    int64_t row = find_item(r, text, strlen(text));
    if (row >= 0) return add_given(all, text, strlen(text), row);
    for (uint64_t length; *text; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        uint64_t from = strspn(text, blanks), end = length;
        while (end > from && strchr(blanks, text[end - 1])) end--;
        if (from >= end) continue;
        if (add_given(all, text + from, end - from, find_item(r, text + from, end - from))) return -1;
    }
    return 0;
}

/* Warns about an item that is unknown where there are others to go on with; fails otherwise. */
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

/* Makes one list of the items given. */
static int take_items(struct recommending *r) {
    struct all_given all = {.count = 0};
    int result = -1;
    for (uint64_t i = 0; i < r->request->items_count; i++)
        if (take_text(r, &all, r->request->items[i])) goto out;
    if (check_given(r, &all) || names_add(&r->lists, by_hand, sizeof by_hand - 1) < 0) goto out;
    r->items.starts = mem_zalloc(2, sizeof *r->items.starts, "items");
    r->items.codes = mem_alloc(all.count, sizeof *r->items.codes, "items");
    if (!r->items.starts || !r->items.codes) goto out;
    for (uint64_t i = 0; i < all.count; i++)
        r->items.codes[i] = all.item[i].row < 0 ? r->model->rows : (uint64_t)all.item[i].row;
    r->items.starts[1] = all.count;
    result = 0;
out:
    free(all.item);
    return result;
}

/* ---- lists of a file ---- */

static uint64_t known_of(const struct recommending *r, uint64_t list) {
    uint64_t known = 0;
    for (uint64_t i = r->items.starts[list]; i < r->items.starts[list + 1]; i++)
        known += r->items.codes[i] < r->model->rows;
    return known;
}

/* Names that a misspelt one is compared with, at most. */
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

/* Warns about lists and items that the run does not know, and fails where it knows none. */
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
    if (!items)
        return fail("%s lists of '%s' have no items", r->request->names_count ? "these" : "the", file);
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

static int take_lists(struct recommending *r) {
    const struct recommend_request *request = r->request;
    struct corpus_options reading = request->reading;
    if (request->look && list_form_look(&reading, request->lists)) return -1;
    return list_items_read(&r->items, request->lists, &reading, r->model, &r->lists, NULL);
}

/* ---- answers ---- */

static int hand_over(void *context, uint64_t list, const struct list_found *found) {
    struct recommending *r = context;
    struct recommended answer = {.known = known_of(r, list), .ids = found->ids, .scores = found->scores};
    answer.unknown = r->items.starts[list + 1] - r->items.starts[list] - answer.known;
    answer.list = words_get(&r->lists.words, list, &answer.length);
    while (answer.known && answer.count < r->request->k && answer.ids[answer.count] != DRAW_NONE) answer.count++;
    return r->answer(r->user, &answer);
}

static int ask(struct recommending *r, const struct config *config) {
    const struct recommend_request *request = r->request;
    struct list_scores scores = {.model = NULL};
    if (request->lists) names_locate_lists(&r->lists, r->model);
    struct list_question question = {.starts = r->items.starts,
                                     .codes = r->items.codes,
                                     .rows = request->lists ? r->lists.row : NULL,
                                     .lists = r->asked,
                                     .count = r->count,
                                     .k = request->k,
                                     .seen = request->seen,
                                     .progress = request->progress};
    int result = list_scores_open(&scores, r->model, request->score, request->among, config) ||
                         list_scores_ask(&scores, &question, hand_over, r)
                     ? -1
                     : 0;
    list_scores_close(&scores);
    return result;
}

int recommend(const struct model *model, const struct recommend_request *request, const struct config *config,
              recommend_answer *answer, void *user) {
    struct recommending r = {.model = model, .request = request, .answer = answer, .user = user};
    int result = -1;
    if (request->lists ? take_lists(&r) : take_items(&r)) goto out;
    if (choose_lists(&r) || (request->lists && check_lists(&r)) || ask(&r, config)) goto out;
    result = 0;
out:
    free(r.asked);
    names_release(&r.lists);
    list_items_release(&r.items);
    return result;
}
