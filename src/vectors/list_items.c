#include "list_items.h"

#include "base/memory.h"
#include "base/report.h"
#include "corpus/pairs.h"

#include <stdlib.h>

struct list_item {
    uint64_t list, code;
};

/* The state of reading a file. */
struct taking {
    struct list_items *items;
    const struct model *model;
    struct names *lists, *unknown;
    int64_t list; /* the current list, or -1 where it is not one of those asked for */
};

static int take_list(struct taking *taking, const char *name, uint64_t length) {
    if (!taking->items->met) {
        taking->list = names_add(taking->lists, name, length);
        return taking->list < 0 ? -1 : 0;
    }
    taking->list = names_find(taking->lists, name, length);
    if (taking->list >= 0) taking->items->met[taking->list] = 1;
    return 0;
}

static int take_item(struct taking *taking, const char *name, uint64_t length) {
    struct list_items *items = taking->items;
    if (taking->list < 0) return 0;
    int64_t row = vocab_find(&taking->model->vocab, name, length);
    uint64_t code = row < 0 ? taking->model->rows : (uint64_t)row;
    if (row < 0 && taking->unknown) {
        int64_t number = names_add(taking->unknown, name, length);
        if (number < 0) return -1;
        code += (uint64_t)number;
    }
    if (mem_grow(&items->item, &items->capacity, items->count + 1, sizeof *items->item, "items of lists")) return -1;
    items->item[items->count++] = (struct list_item){(uint64_t)taking->list, code};
    return 0;
}

/* Takes a line, which is the list's name and its items; it may go on in the next block. */
static int take_tokens(struct taking *taking, const struct corpus_block *block) {
    struct corpus_cursor cursor;
    const char *word;
    uint64_t length, index = (uint64_t)block->continues;
    int kind;
    corpus_cursor_start(&cursor, block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        if (kind == TOKEN_NEWLINE)
            index = 0;
        else if (index++ ? take_item(taking, word, length) : take_list(taking, word, length))
            return -1;
    }
    return 0;
}

static int take_pairs(struct taking *taking, const struct corpus_block *block, double min_rating) {
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, block);
    while ((more = pairs_next(&cursor, block, min_rating, &pair)) > 0)
        if (take_list(taking, pair.list, pair.list_length) || take_item(taking, pair.item, pair.item_length)) return -1;
    return more;
}

static int take_file(struct taking *taking, const char *path, const struct corpus_options *reading) {
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    struct corpus_block block = {0};
    int more = -1;
    if (!corpus) return -1;
    if (corpus_stream(corpus)) {
        fail("'%s' is an id stream, which has no names of lists", path);
        goto out;
    }
    corpus_read_as(corpus, reading);
    while ((more = corpus_next(corpus, &block)) > 0)
        if (reading->format == FORMAT_PAIRS ? take_pairs(taking, &block, reading->min_rating)
                                            : take_tokens(taking, &block)) {
            more = -1;
            break;
        }
out:
    corpus_block_release(&block);
    corpus_close(corpus);
    return more;
}

/* Brings the items of each list together, their order kept. */
static int group(struct list_items *items, uint64_t lists) {
    items->starts = mem_zalloc(lists + 2, sizeof *items->starts, "items of lists");
    items->codes = mem_alloc(items->count, sizeof *items->codes, "items of lists");
    if (!items->starts || !items->codes) return -1;
    for (uint64_t i = 0; i < items->count; i++) items->starts[items->item[i].list + 2]++;
    for (uint64_t list = 0; list < lists; list++) items->starts[list + 2] += items->starts[list + 1];
    for (uint64_t i = 0; i < items->count; i++)
        items->codes[items->starts[items->item[i].list + 1]++] = items->item[i].code;
    free(items->item);
    items->item = NULL;
    return 0;
}

int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown) {
    struct taking taking = {items, model, lists, unknown, -1};
    *items = (struct list_items){.count = 0};
    return take_file(&taking, path, reading) ? -1 : group(items, lists->words.size);
}

int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists) {
    struct taking taking = {items, model, lists, NULL, -1};
    *items = (struct list_items){.met = mem_zalloc(lists->words.size + 1, 1, "lists")};
    return !items->met || take_file(&taking, path, reading) ? -1 : group(items, lists->words.size);
}

void list_items_release(struct list_items *items) {
    free(items->item);
    free(items->starts);
    free(items->codes);
    free(items->met);
    *items = (struct list_items){.count = 0};
}
