#include "encode_block.h"

#include "base/memory.h"
#include "pairs.h"

#include <stdlib.h>

void encoded_release(struct encoded *encoded) {
    corpus_block_release(&encoded->block);
    free(encoded->ids);
    free(encoded->ends);
    free(encoded->names);
}

/* Collects a batch of look-ups, then appends the ids found to one block. A query without a word marks the end of a
 * line. */
struct encoder {
    const struct vocab *vocab;
    struct encoded *out;
    const struct corpus_options *options;
    int given, adjacency;
    struct word_query queries[WORDS_BATCH];
    uint32_t ids[WORDS_BATCH];
    int64_t lists[WORDS_BATCH]; /* the row of a list, where the query stands for one; otherwise -1 */
    unsigned waiting;
    uint64_t line_start; /* in out->ids */
    int line_began;      /* 1: the line began in this block, not in an earlier one */
    int has_target;      /* adjacency: the line's first token has been taken */
};

static void look_up(struct encoder *encoder) {
    if (!encoder->given) {
        words_find_batch(&encoder->vocab->words, encoder->queries, encoder->waiting, encoder->ids);
        return;
    }
    for (unsigned i = 0; i < encoder->waiting; i++) {
        uint64_t id;
        int known = !vocab_given_id(encoder->queries[i].word, encoder->queries[i].length, &id) &&
                    id < encoder->vocab->size && encoder->vocab->counts[id];
        encoder->ids[i] = known ? (uint32_t)id : WORDS_ABSENT;
    }
}

static int take_line_end(struct encoder *encoder) {
    struct encoded *out = encoder->out;
    uint64_t least = encoder->adjacency && encoder->line_began; /* adjacency: a target alone is no line */
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

/* There is space for the id: flush() has grown out->ids for a whole batch. */
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
    look_up(encoder);
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

/* A list's row is found before the batch is, since its word is not just the bytes in the block. It is queued, so that
 * order is kept. */
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
    encoder->given = options->order == ORDER_GIVEN && !(options->vocab && *options->vocab);
    encoder->adjacency = encode_has_targets(options) && options->format != FORMAT_PAIRS;
    encoder->line_began = !out->block.continues;
    encoder->has_target = out->block.continues;
    out->count = out->lines = 0;
    out->target_lost = 0;
}

static int encode_tokens(struct encoder *encoder, int format) {
    struct encoded *out = encoder->out;
    struct corpus_cursor cursor;
    uint64_t index = (uint64_t)out->block.continues, length = 0;
    const char *word;
    int kind;
    corpus_cursor_start(&cursor, &out->block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        if (kind == TOKEN_NEWLINE) {
            index = 0;
            word = NULL;
            length = 0;
        } else if (vocab_part(format, index++) != PART_WORD) {
            if (encoder->options->list_rows && take_list(encoder, word, length)) return -1;
            continue;
        }
        if (ask(encoder, word, length)) return -1;
    }
    if (flush(encoder)) return -1;
    return out->block.line_open ? 0 : take_line_end(encoder); /* the end of a file ends its line, with a newline or without */
}

static int encode_pairs(struct encoder *encoder, double min_rating) {
    struct encoded *out = encoder->out;
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, &out->block);
    while ((more = pairs_next(&cursor, &out->block, min_rating, &pair)) > 0) {
        ask(encoder, pair.item, pair.item_length); /* an item is the only query of its line, so that no batch is full here */
        uint64_t before = out->count;
        if (flush(encoder)) return -1;
        if (out->count == before) continue;
        if (mem_grow(&out->names, &out->names_capacity, out->count, sizeof *out->names, "the lists of a block"))
            return -1;
        out->names[before] = (struct list_name){(uint64_t)(pair.list - out->block.bytes), pair.list_length};
    }
    return more;
}

int encode_block(struct encoded *encoded, const struct vocab *vocab, const struct corpus_options *options) {
    struct encoder encoder;
    encoder_start(&encoder, vocab, options, encoded);
    if (options->format == FORMAT_PAIRS) return encode_pairs(&encoder, options->min_rating);
    return encode_tokens(&encoder, options->format);
}
