#include "encode_block.h"

#include "base/memory.h"
#include "word_counts.h"

#include <stdlib.h>
#include <string.h>

void encoded_release(struct encoded *encoded) {
    free(encoded->memory);
    free(encoded->ends);
}

/* State of encoding one block. */
struct encoder {
    struct encoded *out;
    int adjacency;
    uint64_t line_start; /* index in out->ids of the first id of the current line */
    int line_began;      /* 1: the current line began in this block; 0: in an earlier one */
    int has_target;      /* for lines with targets: 1: the first token of the current line was read, in this block or an earlier
                          * one */
};

int encode_are_rows(const struct corpus_options *options) {
    return options->order == ORDER_GIVEN && !(options->vocab && *options->vocab);
}

static uint32_t row_of_number(const struct vocab *vocab, const char *word, uint64_t length) {
    uint64_t id;
    int known = !vocab_given_id(word, length, &id) && id < vocab->size && vocab_count(vocab, id);
    return known ? (uint32_t)id : WORDS_ABSENT;
}

void encode_rows(const struct vocab *vocab, const struct corpus_options *options, const struct word_query *queries, unsigned count,
                 uint32_t *rows) {
    if (!encode_are_rows(options)) {
        words_find_batch(&vocab->words, queries, count, rows);
        return;
    }
    for (unsigned i = 0; i < count; i++) rows[i] = row_of_number(vocab, queries[i].word, queries[i].length);
}

static int take_line_end(struct encoder *encoder) {
    struct encoded *out = encoder->out;
    uint64_t least = encoder->adjacency && encoder->line_began; /* a line with only a target is dropped, and so is a line without
                                                                 * ids */
    if (encoder->line_began && out->count - encoder->line_start <= least) out->count = encoder->line_start;
    if (!encoder->line_began || out->count > encoder->line_start) {
        if (mem_grow(&out->ends, &out->ends_capacity, out->lines + 1, sizeof *out->ends, "the lines of a block"))
            return -1;
        out->ends[out->lines++] = out->count;
    }
    encoder->line_start = out->count;
    encoder->line_began = 1;
    encoder->has_target = 0;
    out->target_lost = 0;
    return 0;
}

/* Handles the next id of a line. out->ids has memory for it. */
static inline void take_id(struct encoder *encoder, uint32_t id) {
    struct encoded *out = encoder->out;
    int target = encoder->adjacency && !encoder->has_target;
    encoder->has_target = 1;
    if (target && id == WORDS_ABSENT) out->target_lost = 1;
    out->ids[out->count] = id;
    out->count += id != WORDS_ABSENT && !out->target_lost;
}

/* Prepares to encode `count` ids. */
static int encoder_start(struct encoder *encoder, const struct corpus_options *options, struct encoded *out, uint64_t count) {
    *encoder = (struct encoder){.out = out};
    encoder->adjacency = encode_has_targets(options) && !corpus_formats[options->format].scattered;
    encoder->line_began = !out->continues;
    encoder->has_target = out->continues;
    out->count = out->lines = 0;
    out->target_lost = 0;
    if (mem_grow(&out->memory, &out->memory_capacity, count + 2, sizeof *out->memory, "the ids of a block")) return -1;
    out->ids = out->memory + 1;
    return 0;
}

int encode_numbered(struct encoded *encoded, const struct numbered *numbered, const struct corpus_options *options, uint64_t first,
                    uint64_t end) {
    const uint32_t *numbers = numbered->numbers, *rows = numbered->items;
    struct encoder encoder;
    encoded->continues = first && numbers[first - 1] != NUMBERED_END;
    encoded->line_open = numbers[end - 1] != NUMBERED_END;
    if (encoder_start(&encoder, options, encoded, end - first)) return -1;
    for (uint64_t i = first; i < end; i++) {
        uint32_t number = numbers[i];
        if (number == NUMBERED_END) {
            if (take_line_end(&encoder)) return -1;
        } else if (options->list_rows && !encoder.has_target) {
            take_id(&encoder, numbered->lists[number]);
        } else {
            take_id(&encoder, rows ? rows[number] : number);
        }
    }
    return 0;
}

/* ---- the numbers of a corpus ---- */

/* Returns the row of each name of a list, by its number; NULL after fail(). */
static uint32_t *rows_of_lists(const struct word_counts *names, const struct vocab *vocab, uint64_t size) {
    uint32_t *rows = mem_alloc(size + 1, sizeof *rows, "the rows of lists");
    char digits[WORD_DIGITS];
    uint64_t length;
    if (!rows) return NULL;
    memset(rows, 0xff, size * sizeof *rows);
    for (uint64_t number = 0; number < size; number++) {
        uint64_t other = number - names->integers.size;
        if (number < names->integers.size ? !names->integers.counts[number].count
                                          : other >> WORD_SHARD_BITS >= names->shards[other & (WORD_SHARDS - 1)].words.size)
            continue;
        const char *name = word_counts_word(names, number, digits, &length);
        rows[number] = (uint32_t)vocab_find_list(vocab, name, length); /* as uint32_t, -1 is WORDS_ABSENT */
    }
    return rows;
}

/* Numbers a corpus whose vocabulary is known. */
static int number_known(struct numbered *numbered, struct corpus *corpus, const struct corpus_options *options,
                        const struct vocab *vocab, struct pool *pool) {
    struct word_counts names = {0};
    int named = options->list_rows || corpus_formats[options->format].scattered;
    struct word_counts_wanted wanted = {NULL, named ? &names : NULL, vocab, numbered};
    int result = word_counts_read(&wanted, corpus, options, pool);
    if (!result && named) numbered->list_numbers = word_counts_numbers(&names);
    if (!result && options->list_rows) result = (numbered->lists = rows_of_lists(&names, vocab, numbered->list_numbers)) ? 0 : -1;
    if (named) word_counts_release(&names);
    return result;
}

int encode_numbers(const struct numbered **numbered, struct numbered *own, struct corpus *corpus,
                         const struct corpus_options *options, const struct vocab *vocab, const char *path, struct pool *pool) {
    *own = (struct numbered){.fd = -1};
    *numbered = corpus_gathered(corpus) ? NULL : corpus_numbered(corpus);
    if (corpus_gathered(corpus) || (*numbered && (*numbered)->complete)) return 0;
    *numbered = own;
    return numbered_open(own, path) || number_known(own, corpus, options, vocab, pool) ? -1 : 0;
}

/* ---- gathered data ---- */

static uint32_t row_of_item(const struct gathered *gathered, const struct vocab *vocab, const char *word,
                            uint64_t length) {
    if (encode_are_rows(gathered->options)) return row_of_number(vocab, word, length);
    int64_t row = vocab_find(vocab, word, length);
    return row < 0 ? WORDS_ABSENT : (uint32_t)row;
}

int gathered_rows_find(struct gathered_rows *rows, const struct gathered *gathered, const struct vocab *vocab) {
    const struct words *items = &gathered->items.words, *lists = &gathered->lists.words;
    uint64_t length;
    rows->items = mem_alloc(items->size, sizeof *rows->items, "the rows of words");
    rows->lists =
        gathered->options->list_rows ? mem_alloc(lists->size, sizeof *rows->lists, "the rows of lists") : NULL;
    if (!rows->items || (gathered->options->list_rows && !rows->lists)) return -1;
    for (uint64_t n = 0; n < items->size; n++) {
        const char *word = words_get(items, n, &length);
        rows->items[n] = row_of_item(gathered, vocab, word, length);
    }
    for (uint64_t n = 0; rows->lists && n < lists->size; n++) {
        const char *name = words_get(lists, n, &length);
        rows->lists[n] = (uint32_t)vocab_find_list(vocab, name, length); /* as uint32_t, -1 is WORDS_ABSENT */
    }
    return 0;
}

void gathered_rows_release(struct gathered_rows *rows) {
    free(rows->items);
    free(rows->lists);
}

int encode_sentences(struct encoded *encoded, const struct gathered *gathered, const struct gathered_rows *rows,
                     uint64_t first, uint64_t end) {
    struct encoder encoder;
    uint64_t at = first ? gathered->ends[first - 1] : 0, most = gathered->ends[end - 1] - at + (end - first);
    if (encoder_start(&encoder, gathered->options, encoded, most)) return -1;
    for (uint64_t i = first; i < end; i++) {
        if (rows->lists) take_id(&encoder, rows->lists[gathered->names[i]]);
        for (; at < gathered->ends[i]; at++) take_id(&encoder, rows->items[gathered->ids[at]]);
        if (take_line_end(&encoder)) return -1;
    }
    return 0;
}
