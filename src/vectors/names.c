#include "names.h"

#include "base/memory.h"
#include "run_lists.h"

#include <stdlib.h>

void names_release(struct names *names) {
    words_release(&names->words);
    free(names->row);
    *names = (struct names){.capacity = 0};
}

int64_t names_find(const struct names *names, const char *text, uint64_t length) {
    return words_find(&names->words, words_hash(text, length), text, length);
}

int64_t names_add(struct names *names, const char *text, uint64_t length) {
    uint64_t before = names->words.size;
    if (mem_grow(&names->row, &names->capacity, before + 1, sizeof *names->row, "the names of a file")) return -1;
    int64_t number = words_add(&names->words, words_hash(text, length), text, length);
    if (names->words.size > before) names->row[before] = -1;
    return number;
}

/* Copies in lower case. Only ASCII letters are changed, so UTF-8 stays valid. */
static void copy_lower(char *to, const char *from, uint64_t length) {
    for (uint64_t i = 0; i < length; i++) to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
}

int64_t names_add_lower(struct names *names, char *text, uint64_t length) {
    copy_lower(text, text, length);
    return names_add(names, text, length);
}

void names_locate_lists(struct names *names, const struct model *model) {
    for (uint64_t i = 0; i < names->words.size; i++) {
        uint64_t length;
        const char *name = words_get(&names->words, i, &length);
        names->row[i] = run_lists_row(model, name, length);
    }
}

/* Looks each word of the vocabulary up among the names, since the names are few; no copy of the vocabulary is made. */
int names_locate(struct names *names, const struct model *model, uint64_t rows) {
    uint64_t longest = 0, length;
    for (uint64_t i = 0; i < names->words.size; i++) {
        words_get(&names->words, i, &length);
        if (length > longest) longest = length;
    }
    char *lower = mem_alloc(longest, 1, "a word");
    if (!lower) return -1;
    for (uint64_t row = 0; row < rows; row++) {
        const char *word = vocab_word(&model->vocab, row, &length);
        if (length > longest) continue;
        copy_lower(lower, word, length);
        int64_t at = names_find(names, lower, length);
        if (at >= 0 && names->row[at] < 0) names->row[at] = (int64_t)row;
    }
    free(lower);
    return 0;
}
