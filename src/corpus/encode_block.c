#include "encode_block.h"

#include "base/memory.h"
#include "fields.h"

#include <stdlib.h>

void encoded_release(struct encoded *encoded) {
    corpus_block_release(&encoded->block);
    free(encoded->ids);
    free(encoded->ends);
    free(encoded->names);
    free(encoded->weights);
}

/* State of encoding one block. Words are looked up in batches, and the ids found are appended to `out`. In queries[], a NULL
 * word is the end of a line. */
struct encoder {
    const struct vocab *vocab;
    struct encoded *out;
    const struct corpus_options *options;
    int adjacency;
    struct word_query queries[WORDS_BATCH];
    uint32_t ids[WORDS_BATCH];
    int64_t lists[WORDS_BATCH]; /* [waiting]: the row of a list, if the query is a list's name; -1: the query is a word */
    unsigned waiting;
    uint64_t line_start; /* index in out->ids of the line's first id */
    int line_began;      /* 1: the line began in this block, not in an earlier one */
    int has_target;      /* lines with targets, 1: the line's first token was seen, in this block or an earlier one */
};

int encode_are_rows(const struct corpus_options *options) {
    return options->order == ORDER_GIVEN && !(options->vocab && *options->vocab);
}

static uint32_t row_of_number(const struct vocab *vocab, const char *word, uint64_t length) {
    uint64_t id;
    int known = !vocab_given_id(word, length, &id) && id < vocab->size && vocab->counts[id];
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
    uint64_t least = encoder->adjacency && encoder->line_began; /* a target without a context is dropped, and so is a line
                                                                 * without ids */
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

/* Handles the next id of a line. out->ids has memory for it: flush() reserves a whole batch. */
static void take_id(struct encoder *encoder, uint32_t id) {
    struct encoded *out = encoder->out;
    int target = encoder->adjacency && !encoder->has_target;
    encoder->has_target = 1;
    if (target && id == WORDS_ABSENT) out->target_lost = 1;
    if (id != WORDS_ABSENT && !out->target_lost) out->ids[out->count++] = id;
}

static int flush(struct encoder *encoder) {
    struct encoded *out = encoder->out;
    if (mem_grow(&out->ids, &out->ids_capacity, out->count + WORDS_BATCH, sizeof *out->ids, "the ids of a block"))
        return -1;
    encode_rows(encoder->vocab, encoder->options, encoder->queries, encoder->waiting, encoder->ids);
    for (unsigned i = 0; i < encoder->waiting; i++)
        if (encoder->lists[i] >= 0)
            take_id(encoder, (uint32_t)encoder->lists[i]);
        else if (encoder->queries[i].word)
            take_id(encoder, encoder->ids[i]);
        else if (take_line_end(encoder))
            return -1;
    encoder->waiting = 0;
    return 0;
}

static int ask(struct encoder *encoder, const char *word, uint64_t length) {
    uint64_t hash = word ? words_hash(word, length) : 0;
    encoder->lists[encoder->waiting] = -1;
    words_ask(&encoder->vocab->words, &encoder->queries[encoder->waiting++], hash, word, length);
    return encoder->waiting == WORDS_BATCH ? flush(encoder) : 0;
}

/* Queues a list's name. Its row is looked up at once, since the vocabulary's word for it has a prefix that the block lacks;
 * queueing keeps its order among the words. */
static int take_list(struct encoder *encoder, const char *name, uint64_t length) {
    int64_t row = vocab_find_list(encoder->vocab, name, length);
    unsigned place = encoder->waiting;
    words_ask(&encoder->vocab->words, &encoder->queries[encoder->waiting++], words_hash(name, length), name, length);
    encoder->lists[place] = row < 0 ? WORDS_ABSENT : row;
    return encoder->waiting == WORDS_BATCH ? flush(encoder) : 0;
}

static void encoder_start(struct encoder *encoder, const struct vocab *vocab, const struct corpus_options *options,
                          struct encoded *out) {
    *encoder = (struct encoder){.vocab = vocab, .out = out, .options = options};
    encoder->adjacency = encode_has_targets(options) && !corpus_formats[options->format].scattered;
    encoder->line_began = !out->block.continues;
    encoder->has_target = out->block.continues;
    out->count = out->lines = 0;
    out->target_lost = 0;
}

static int encode_lines(struct encoder *encoder) {
    struct corpus_fields fields;
    struct corpus_field field;
    int more;
    corpus_fields_start(&fields, &encoder->out->block, encoder->options);
    while ((more = corpus_fields_next(&fields, &field)) > 0)
        if (field.part == PART_WORD ? ask(encoder, field.text, field.length)
                                    : encoder->options->list_rows && take_list(encoder, field.text, field.length))
            return -1;
    if (more || flush(encoder)) return -1;
    return encoder->out->block.line_open ? 0 : take_line_end(encoder); /* a line also ends at the end of its file */
}

/* Encodes one item of a scattered list, with the list's name. */
static int take_scattered(struct encoder *encoder, const struct list_name *name, const struct corpus_field *item) {
    struct encoded *out = encoder->out;
    uint64_t before = out->count;
    ask(encoder, item->text, item->length); /* the batch was empty, so this cannot fill it and fail */
    if (flush(encoder)) return -1;
    if (out->count == before) return 0;
    if (mem_grow(&out->names, &out->names_capacity, out->count, sizeof *out->names, "the lists of a block")) return -1;
    out->names[before] = *name;
    if (!encoder->options->pair_weights) return 0;
    if (mem_grow(&out->weights, &out->weights_capacity, out->count, sizeof *out->weights, "the weights of a block")) return -1;
    out->weights[before] = item->weight;
    return 0;
}

static int encode_scattered(struct encoder *encoder) {
    struct corpus_fields fields;
    struct corpus_field field;
    struct list_name name = {0};
    int more;
    corpus_fields_start(&fields, &encoder->out->block, encoder->options);
    while ((more = corpus_fields_next(&fields, &field)) > 0)
        if (field.part == PART_NAME)
            name = (struct list_name){(uint64_t)(field.text - encoder->out->block.bytes), field.length};
        else if (take_scattered(encoder, &name, &field))
            return -1;
    return more;
}

int encode_block(struct encoded *encoded, const struct vocab *vocab, const struct corpus_options *options) {
    struct encoder encoder;
    encoder_start(&encoder, vocab, options, encoded);
    return corpus_formats[options->format].scattered ? encode_scattered(&encoder) : encode_lines(&encoder);
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
    encoder_start(&encoder, NULL, gathered->options, encoded);
    if (mem_grow(&encoded->ids, &encoded->ids_capacity, most, sizeof *encoded->ids, "the ids of a block")) return -1;
    for (uint64_t i = first; i < end; i++) {
        if (rows->lists) take_id(&encoder, rows->lists[gathered->names[i]]);
        for (; at < gathered->ends[i]; at++) take_id(&encoder, rows->items[gathered->ids[at]]);
        if (take_line_end(&encoder)) return -1;
    }
    return 0;
}
