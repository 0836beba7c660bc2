/* words: sptx_words_*: the dictionary of sptx.h, by corpus/words.h. */
#include "handles.h"

#include "base/memory.h"
#include "corpus/tokens.h"
#include "corpus/words.h"

#include <stdlib.h>

struct sptx_words {
    struct sptx_context *context;
    struct words words;
    uint64_t *starts; /* [starts_capacity]: the offsets that sptx_words_from() gave last */
    uint64_t starts_capacity;
};

enum sptx_status sptx_words_open(struct sptx_context *context, struct sptx_words **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a dictionary is opened into a pointer; it is NULL"));
    *out = mem_zalloc(1, sizeof **out, "a dictionary");
    if (*out) (*out)->context = context;
    return leave(context, *out ? 0 : -1);
}

void sptx_words_close(struct sptx_words *words) {
    if (!words) return;
    words_release(&words->words);
    free(words->starts);
    free(words);
}

/* ---- numbering ---- */

/* A batch of tokens whose numbers are looked up together. */
struct asked {
    struct word_query query[WORDS_BATCH];
    unsigned count;
};

/* Writes the numbers of the batch's tokens. A new word that occurs twice in the batch is added once, since words_add() finds it. */
static int answer(struct words *words, int grow, struct asked *asked, int32_t *numbers) {
    uint32_t known[WORDS_BATCH];
    words_find_batch(words, asked->query, asked->count, known);
    for (unsigned i = 0; i < asked->count; i++) {
        const struct word_query *query = &asked->query[i];
        int64_t number = known[i] == WORDS_ABSENT ? -1 : (int64_t)known[i];
        if (number < 0 && grow && (number = words_add(words, query->hash, query->word, query->length)) < 0) return -1;
        if (number > INT32_MAX) return fail("there are more than 2^31 different words");
        numbers[i] = (int32_t)number;
    }
    asked->count = 0;
    return 0;
}

static int number_text(struct words *words, int grow, const char *text, uint64_t bytes, int32_t *numbers, uint64_t *starts,
                       uint64_t *sentences) {
    struct asked asked = {.count = 0};
    uint64_t found = 0, ended = 0, at = 0;
    starts[0] = 0;
    while (at < bytes) {
        if (token_is_white(text[at])) {
            if (text[at++] == '\n') starts[++ended] = found;
            continue;
        }
        uint64_t begin = at;
        while (at < bytes && !token_is_white(text[at])) at++;
        words_ask(words, &asked.query[asked.count++], words_hash(text + begin, at - begin), text + begin, at - begin);
        found++;
        if (asked.count == WORDS_BATCH && answer(words, grow, &asked, numbers + found - WORDS_BATCH)) return -1;
    }
    if (bytes && text[bytes - 1] != '\n') starts[++ended] = found;
    *sentences = ended;
    return answer(words, grow, &asked, numbers + found - asked.count);
}

enum sptx_status sptx_words_number(struct sptx_words *words, uint32_t grow, const char *text, uint64_t bytes, int32_t *numbers,
                                   uint64_t *starts, uint64_t *sentences) {
    if (!words) return SPTX_USAGE;
    enter(words->context);
    if ((bytes && (!text || !numbers)) || !starts || !sentences)
        return leave(words->context, fail_usage("text and what is made of it lie somewhere; a pointer is NULL"));
    return leave(words->context, number_text(&words->words, grow != 0, text, bytes, numbers, starts, sentences));
}

enum sptx_status sptx_words_from(struct sptx_words *words, uint64_t first, struct sptx_tokens *tokens) {
    if (!words) return SPTX_USAGE;
    enter(words->context);
    if (!tokens || first > words->words.size)
        return leave(words->context, fail_usage("words from number %llu on are wanted, into %p; there are %llu",
                                                (unsigned long long)first, (void *)tokens, (unsigned long long)words->words.size));
    uint64_t count = words->words.size - first;
    if (mem_grow(&words->starts, &words->starts_capacity, count + 1, sizeof *words->starts, "the places of words"))
        return leave(words->context, -1);
    *tokens = (struct sptx_tokens){.kind = SPTX_TEXT, .bits = 64, .data = words->words.bytes, .count = count};
    if (count) tokens->offsets = words->starts;
    for (uint64_t i = 0; count && i <= count; i++) words->starts[i] = words_offset(&words->words, first + i);
    return leave(words->context, 0);
}
