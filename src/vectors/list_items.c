#include "list_items.h"

#include "base/memory.h"
#include "base/report.h"
#include "corpus/fields.h"

#include <stdlib.h>

struct list_item {
    uint64_t list, code;
};

/* The state of reading a file. */
struct taking {
    struct list_items *items;
    const struct model *model;
    struct names *lists, *unknown;
    int64_t list; /* number of the current list; -1: this list is not to be read */
    struct corpus_left left; /* numbers of rows that were left out */
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

static int take_block(struct taking *taking, const struct corpus_block *block, const struct corpus_options *reading) {
    struct corpus_fields fields;
    struct corpus_field field;
    int more;
    corpus_fields_start(&fields, block, reading);
    while ((more = corpus_fields_next(&fields, &field)) > 0)
        if (field.text && (field.part == PART_NAME ? take_list(taking, field.text, field.length)
                                                   : take_item(taking, field.text, field.length)))
            return -1;
    corpus_left_add(&taking->left, &fields.left);
    return more;
}

/* Returns the options for reading a file of lists: unlike in a corpus, each line begins with a name, and items have no weights. */
static struct corpus_options with_names(const struct corpus_options *reading, const char *path) {
    struct corpus_options options = *reading;
    options.pair_weights = PAIR_WEIGHTS_NONE;
    options.path = path;
    if (!corpus_formats[options.format].names) options.format = FORMAT_LISTS;
    return options;
}

static int take_file(struct taking *taking, const char *path, const struct corpus_options *reading) {
    char *paths[] = {(char *)path};
    const struct corpus_options options = with_names(reading, path);
    struct corpus *corpus = corpus_open(paths, 1);
    struct corpus_block block = {0};
    int more = -1;
    if (!corpus) return -1;
    if (corpus_stream(corpus)) {
        fail("'%s' is an id stream, which has no names of lists", path);
        goto out;
    }
    if (corpus_read_as(corpus, &options)) goto out;
    while ((more = corpus_next(corpus, &block)) > 0)
        if ((more = take_block(taking, &block, &options)) < 0) break;
    if (!more) more = corpus_left_say(&taking->left, &options);
out:
    corpus_block_release(&block);
    corpus_close(corpus);
    return more;
}

/* Sorts the items by list. Within a list they keep their order. */
static int group(struct list_items *items, uint64_t lists) {
    items->starts = mem_zalloc(lists + 2, sizeof *items->starts, "items of lists");
    items->codes = mem_alloc(items->count, sizeof *items->codes, "items of lists");
    if (!items->starts || !items->codes) return -1;
    for (uint64_t i = 0; i < items->count; i++) items->starts[items->item[i].list + 2]++;
    for (uint64_t list = 0; list < lists; list++) items->starts[list + 2] += items->starts[list + 1];
    for (uint64_t i = 0; i < items->count; i++) items->codes[items->starts[items->item[i].list + 1]++] = items->item[i].code;
    free(items->item);
    items->item = NULL;
    return 0;
}

int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown) {
    struct taking taking = {.items = items, .model = model, .lists = lists, .unknown = unknown, .list = -1};
    *items = (struct list_items){.count = 0};
    return take_file(&taking, path, reading) ? -1 : group(items, lists->words.size);
}

int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists) {
    struct taking taking = {.items = items, .model = model, .lists = lists, .list = -1};
    *items = (struct list_items){.met = mem_zalloc(lists->words.size + 1, 1, "lists")};
    return !items->met || take_file(&taking, path, reading) ? -1 : group(items, lists->words.size);
}

/* ---- data in memory ---- */

static int take_number(struct taking *taking, const struct gathered_words *words, uint32_t number, int is_name) {
    uint64_t length;
    const char *text = words_get(&words->words, number, &length);
    return is_name ? take_list(taking, text, length) : take_item(taking, text, length);
}

/* Adds pairs: each is the name of a list and one item. */
static int take_pairs(struct taking *taking, const struct gathered *data) {
    for (uint64_t i = 0; i < data->tokens; i++)
        if (take_number(taking, &data->lists, data->names[i], 1) || take_number(taking, &data->items, data->ids[i], 0)) return -1;
    return 0;
}

/* Adds lists: each sentence is one. Its name is stored separately (data->named) or is its first token. Empty sentences are skipped:
 * a sparse matrix has a row even for a user without items. */
static int take_sentences(struct taking *taking, const struct gathered *data) {
    for (uint64_t i = 0, at = 0; i < data->sentences; i++) {
        if (at == data->ends[i]) continue;
        if (data->named ? take_number(taking, &data->lists, data->names[i], 1)
                        : take_number(taking, &data->items, data->ids[at++], 1))
            return -1;
        for (; at < data->ends[i]; at++)
            if (take_number(taking, &data->items, data->ids[at], 0)) return -1;
    }
    return 0;
}

int list_items_take(struct list_items *items, const struct gathered *data, const struct model *model, struct names *lists,
                    struct names *unknown) {
    struct taking taking = {.items = items, .model = model, .lists = lists, .unknown = unknown, .list = -1};
    *items = (struct list_items){.count = 0};
    if (!unknown && !(items->met = mem_zalloc(lists->words.size + 1, 1, "lists"))) return -1;
    int result = data->sentences ? take_sentences(&taking, data) : take_pairs(&taking, data);
    return result ? -1 : group(items, lists->words.size);
}

void list_items_release(struct list_items *items) {
    free(items->item);
    free(items->starts);
    free(items->codes);
    free(items->met);
    *items = (struct list_items){.count = 0};
}
