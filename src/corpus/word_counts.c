#include "word_counts.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "encode.h"
#include "fields.h"
#include "numbered.h"
#include "scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_A_WORD = 16 }; /* most table entries for each word of the vocabulary; a larger table would be nearly empty */

/* Returns the highest integer among the words plus one, or 0 if a table of this size would be nearly empty. */
static uint64_t table_size(const struct vocab *vocab) {
    uint64_t size = 0, length;
    for (uint64_t row = 0; row < vocab->size; row++) {
        const char *word = vocab_word(vocab, row, &length);
        uint32_t integer = integer_of(word, length);
        if (integer != NO_INTEGER && integer >= size) size = (uint64_t)integer + 1;
    }
    return size / PLACES_A_WORD < vocab->size ? size : 0;
}

int integer_rows_make(struct integer_rows *rows, const struct vocab *vocab) {
    uint64_t length;
    *rows = (struct integer_rows){.size = table_size(vocab)};
    if (!rows->size) return 0;
    rows->rows = mem_alloc(rows->size, sizeof *rows->rows, "the rows of integers");
    if (!rows->rows) return -1;
    mem_prefer_huge(rows->rows, rows->size * sizeof *rows->rows);
    memset(rows->rows, 0xff, rows->size * sizeof *rows->rows);
    for (uint64_t row = 0; row < vocab->size; row++) {
        const char *word = vocab_word(vocab, row, &length);
        uint32_t integer = integer_of(word, length);
        if (integer != NO_INTEGER) rows->rows[integer] = (uint32_t)row;
    }
    return 0;
}

void integer_rows_release(struct integer_rows *rows) {
    free(rows->rows);
    *rows = (struct integer_rows){0};
}

/* Makes a table of at most `most` bytes. If memory is short, there is no table (its size is 0). */
static void integer_counts_make(struct integer_counts *counts, uint64_t most) {
    uint64_t size = most / sizeof *counts->counts;
    *counts = (struct integer_counts){.size = size < INTEGERS ? size : INTEGERS};
    if (counts->size) counts->counts = mem_zalloc(counts->size, sizeof *counts->counts, "the counts of integers");
    mem_prefer_huge(counts->counts, counts->size * sizeof *counts->counts);
    if (counts->counts || !counts->size) return;
    report_clear(); /* integers are then counted like other words */
    counts->size = 0;
}

/* If a word consists of a prefix and an integer, returns the prefix, in the form of integer_counts.prefix; otherwise 0. */
static uint64_t prefix_of_word(const char *word, uint64_t length) {
    uint64_t digits = length, packed = 0;
    while (digits && word[digits - 1] >= '0' && word[digits - 1] <= '9') digits--;
    if (digits == length || digits > PREFIX_MOST || integer_of(word + digits, length - digits) == NO_INTEGER) return 0;
    memcpy(&packed, word, digits);
    return packed | (digits + 1) << 56;
}

struct integer_prefix integer_counts_prefix(struct integer_counts *counts, const char *word, uint64_t length) {
    uint64_t packed = atomic_load(&counts->prefix), own = packed ? 0 : prefix_of_word(word, length);
    if (own && atomic_compare_exchange_strong(&counts->prefix, &packed, own)) packed = own;
    uint64_t bytes = packed ? (packed >> 56) - 1 : 0, mask = ((uint64_t)1 << 8 * bytes) - 1;
    return (struct integer_prefix){packed & mask, mask, bytes, packed != 0};
}

void integer_counts_release(struct integer_counts *counts) {
    free(counts->counts);
    *counts = (struct integer_counts){0};
}

static struct tally_slot *new_slots(uint64_t count) {
    struct tally_slot *slots = mem_zalloc(count, sizeof *slots, "counting");
    mem_prefer_huge(slots, count * sizeof *slots);
    return slots;
}

int tally_open(struct tally *tally, uint64_t most) {
    *tally = (struct tally){.slots = new_slots(TALLY_SLOTS), .slot_count = TALLY_SLOTS, .slots_most = TALLY_SLOTS};
    while (tally->slots_most < TALLY_SLOTS_MOST && tally->slots_most * 2 * sizeof *tally->slots <= most) tally->slots_most *= 2;
    return tally->slots ? 0 : -1;
}

void tally_close(struct tally *tally) {
    words_release(&tally->texts);
    free(tally->slots);
}

void tally_clear(struct tally *tally) {
    words_clear(&tally->texts);
    tally->size = 0;
    memset(tally->slots, 0, tally->slot_count * sizeof *tally->slots);
}

int tally_add(struct tally *tally, const struct tally_query *query, uint32_t number) {
    struct tally_slot *slot = tally_find(tally, query);
    if (slot->end || tally_is_full(tally) || query->length > TALLY_LONGEST) return 0;
    if (query->length > 16 && words_put(&tally->texts, query->word, query->length)) return -1;
    *slot = (struct tally_slot){
        {query->key[0], query->key[1]}, (uint32_t)query->length + 1, (uint32_t)tally->texts.size - 1, 0, number};
    tally->size++;
    return 0;
}

/* Returns the hash of the word in a slot. */
static uint64_t hash_of(const struct tally *tally, const struct tally_slot *slot) {
    uint64_t length = slot->end - 1;
    char bytes[TALLY_LONGEST] = {0};
    memcpy(bytes, length > 16 ? words_get(&tally->texts, slot->text, NULL) : (const char *)slot->key, length);
    return tally_ask(bytes, length).hash;
}

int tally_double(struct tally *tally) {
    uint64_t before = tally->slot_count;
    struct tally_slot *old = tally->slots, *slots = before < tally->slots_most ? new_slots(before * 2) : NULL;
    if (!slots) {
        if (before < tally->slots_most) report_clear(); /* memory is short: counting continues with the smaller tally */
        return 0;
    }
    tally->slots = slots;
    tally->slot_count = before * 2;
    for (uint64_t i = 0; i < before; i++) {
        if (!old[i].end) continue;
        uint64_t at = hash_of(tally, &old[i]) >> 32 & (tally->slot_count - 1);
        while (slots[at].end) at = (at + 1) & (tally->slot_count - 1);
        slots[at] = old[i];
    }
    free(old);
    return 1;
}

/* word_counts: the counted words, by their numbers. */

void word_counts_release(struct word_counts *counts) {
    if (counts->lent) counts->lent->words = counts->shards[0].words, counts->shards[0].words = (struct words){0};
    for (int s = 0; s < WORD_SHARDS; s++) {
        words_release(&counts->shards[s].words);
        free(counts->shards[s].counts);
        pthread_mutex_destroy(&counts->shards[s].lock);
    }
    integer_counts_release(&counts->integers);
    *counts = (struct word_counts){0};
}

uint64_t word_counts_numbers(const struct word_counts *counts) {
    uint64_t most = 0;
    for (int s = 0; s < WORD_SHARDS; s++) most = counts->shards[s].words.size > most ? counts->shards[s].words.size : most;
    return word_counts_number(counts, 0, most);
}

const char *word_counts_word(const struct word_counts *counts, uint64_t number, char digits[WORD_DIGITS], uint64_t *length) {
    if (number < counts->integers.size) {
        char *end = digits + WORD_DIGITS, *at = end; /* snprintf() takes five times as long */
        do *--at = (char)('0' + number % 10);
        while (number /= 10);
        uint64_t prefix = counts->integers.prefix, letters = prefix ? (prefix >> 56) - 1 : 0;
        at = memcpy(at - letters, &prefix, letters);
        *length = (uint64_t)(end - at);
        return at;
    }
    return words_get(&word_counts_shard(counts, number)->words, word_counts_in_shard(counts, number), length);
}

/* State of counting one corpus; the workers share it. */
struct counting {
    const struct word_counts_wanted *wanted;
    struct corpus *corpus;
    const struct corpus_options *options;
    struct integer_rows rows; /* wanted->given: rows of its integers */
    int alone;                /* 1: there is one worker */
    uint64_t tally_bytes; /* how large a tally may become */
    struct progress progress;
    _Atomic int failed; /* 1: a worker failed, so the other workers stop */
};

/* A word of a block that was not in the tally. */
struct missed {
    struct word_query query;
    uint64_t at; /* index in `out` of the word's number */
};
enum { MISSED = 1 << 13 };

/* A worker's state for one kind of words: items, or names of lists. */
struct side {
    struct word_counts *counts; /* where words are counted; NULL: words are looked up in counting.wanted->given */
    struct tally *tally;        /* NULL: words of this kind are not wanted */
    int alone;                  /* 1: there is one thread, so nothing needs to be atomic */
    uint64_t integers;          /* integers below this number are counted in a table, without the tally */
    struct integer_prefix prefix; /* of these integers */
    uint64_t met;               /* number of tokens since the tally's counts were last added to the totals */
    struct missed *missed;      /* [missed_count], of MISSED */
    unsigned missed_count;
    uint64_t lacked;            /* number of words that were not in the tally, since it became full */
    uint32_t waiting[WORDS_BATCH]; /* [waiting_count] integers that are not counted yet */
    uint64_t places[WORDS_BATCH];  /* [waiting_count] the byte of the corpus at which each of these integers occurs */
    unsigned waiting_count;
};

struct worker {
    struct counting *counting;
    struct corpus_block block;
    struct side items, names;
    uint32_t *out;                 /* [count]: the block as numbers of words (numbered.h) */
    uint64_t count, capacity;
    uint8_t shards[TALLY_SLOTS];   /* the shard of each word that is to be sorted by shard */
    uint32_t by_shard[TALLY_SLOTS];
    struct tally_slot *slots;       /* [TALLY_SLOTS] slots of a tally that are to be sorted by shard */
    uint64_t starts[WORD_SHARDS + 1]; /* by_shard[starts[s]] .. by_shard[starts[s + 1] - 1] are the words of shard s */
};

/* ---- to the shards ---- */

/* Sorts numbers 0 .. count - 1 by shard into worker->by_shard. Number i belongs to shard worker->shards[i]; WORD_SHARDS: it is left out. */
static void sort_by_shard(struct worker *worker, uint64_t count) {
    uint64_t next[WORD_SHARDS + 1] = {0}, sum = 0;
    for (uint64_t i = 0; i < count; i++) next[worker->shards[i]]++;
    for (int s = 0; s <= WORD_SHARDS; s++) {
        worker->starts[s] = sum;
        sum += next[s];
        next[s] = worker->starts[s];
    }
    for (uint64_t i = 0; i < count; i++) worker->by_shard[next[worker->shards[i]]++] = (uint32_t)i;
}

/* Counts words of one shard: queries[count], at the places in worker->block. known[i]: number of word i in the shard; WORDS_ABSENT: the word is
 * added. */
static int count_batch(const struct worker *worker, struct word_shard *shard, const struct word_query *queries, unsigned count,
                       uint32_t *known) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t first = worker->block.offset + (uint64_t)(queries[i].word - worker->block.bytes);
        if (known[i] == WORDS_ABSENT) {
            uint64_t size = shard->words.size;
            /* The memory for the count is reserved before the word is added, since each word in the shard must have a count. */
            if (mem_grow(&shard->counts, &shard->counts_capacity, size + 1, sizeof *shard->counts, "the words' counts")) return -1;
            int64_t added = words_add(&shard->words, queries[i].hash, queries[i].word, queries[i].length);
            if (added < 0) return -1;
            known[i] = (uint32_t)added;
            if (shard->words.size > size) shard->counts[added] = (struct word_count){0, first};
        }
        struct word_count *word = &shard->counts[known[i]];
        word->count++;
        if (first < word->first) word->first = first;
    }
    return 0;
}

/* Counts the missed words of shard `s`, and writes their numbers to the worker's output. */
static int count_missed_of(struct worker *worker, struct side *side, unsigned s) {
    struct word_shard *shard = &side->counts->shards[s];
    struct word_query queries[WORDS_BATCH];
    uint32_t known[WORDS_BATCH];
    for (uint64_t at = worker->starts[s], end; at < worker->starts[s + 1]; at = end) {
        unsigned count = 0;
        for (end = at; end < worker->starts[s + 1] && count < WORDS_BATCH; end++) {
            const struct word_query *query = &side->missed[worker->by_shard[end]].query;
            words_ask(&shard->words, &queries[count++], query->hash, query->word, query->length);
        }
        words_find_batch(&shard->words, queries, count, known);
        if (count_batch(worker, shard, queries, count, known)) return -1;
        for (unsigned i = 0; i < count; i++) {
            uint64_t number = word_counts_number(side->counts, s, known[i]);
            if (number >= NUMBERED_END) return fail("more than %u different words in all", NUMBERED_END - 1);
            worker->out[side->missed[worker->by_shard[at + i]].at] = (uint32_t)number;
        }
    }
    return 0;
}

/* Runs `job` for each shard with words in worker->by_shard, and locks the shard meanwhile. */
static int run_by_shard(struct worker *worker, struct side *side, int (*job)(struct worker *, struct side *, unsigned)) {
    for (unsigned i = 0; i < WORD_SHARDS; i++) {
        unsigned s = (i + (unsigned)worker->block.number * 17) % WORD_SHARDS; /* workers begin at different shards */
        if (worker->starts[s] == worker->starts[s + 1]) continue;
        pthread_mutex_lock(&side->counts->shards[s].lock);
        int result = job(worker, side, s);
        pthread_mutex_unlock(&side->counts->shards[s].lock);
        if (result) return -1;
    }
    return 0;
}

/* Looks up the missed words in the given vocabulary, and writes their rows to the worker's output. */
static void find_given(const struct worker *worker, const struct side *side) {
    const struct vocab *given = worker->counting->wanted->given;
    struct word_query queries[WORDS_BATCH];
    uint32_t rows[WORDS_BATCH];
    for (unsigned n = 0, count; n < side->missed_count; n += count) {
        count = side->missed_count - n < WORDS_BATCH ? side->missed_count - n : WORDS_BATCH;
        for (unsigned i = 0; i < count; i++) {
            const struct word_query *query = &side->missed[n + i].query;
            words_ask(&given->words, &queries[i], words_hash(query->word, query->length), query->word, query->length);
        }
        encode_rows(given, worker->counting->options, queries, count, rows);
        for (unsigned i = 0; i < count; i++) worker->out[side->missed[n + i].at] = rows[i];
    }
}

static int add_counts_of(struct worker *worker, struct side *side, unsigned s) {
    struct word_count *counts = side->counts->shards[s].counts;
    for (uint64_t at = worker->starts[s]; at < worker->starts[s + 1]; at++) {
        struct tally_slot *slot = &worker->slots[worker->by_shard[at]];
        counts[(slot->number - side->counts->integers.size) >> WORD_SHARD_BITS].count += slot->count;
        slot->count = 0;
    }
    return 0;
}

/* Adds the tally's counts to the shards. */
static void add_counts(struct worker *worker, struct side *side) {
    side->met = 0;
    for (uint64_t from = 0; side->counts && from < side->tally->slot_count; from += TALLY_SLOTS) {
        const struct tally_slot *slots = worker->slots = side->tally->slots + from;
        for (unsigned i = 0; i < TALLY_SLOTS; i++)
            worker->shards[i] = slots[i].count ? (slots[i].number - side->counts->integers.size) & (WORD_SHARDS - 1) : WORD_SHARDS;
        sort_by_shard(worker, TALLY_SLOTS);
        run_by_shard(worker, side, add_counts_of);
    }
}

/* Called when a full tally misses many words. Doubles it; at its largest size, empties it after some time, since the text may have changed. */
static void make_room(struct worker *worker, struct side *side) {
    enum { PATIENCE = 8 };
    side->lacked += side->missed_count;
    if (side->lacked < side->tally->slot_count) return;
    if (!tally_double(side->tally)) {
        if (side->lacked < PATIENCE * side->tally->slot_count) return;
        add_counts(worker, side);
        tally_clear(side->tally);
    }
    side->lacked = 0;
}

/* Finds the numbers of the missed words, and adds the words to the tally while there is room. */
static int take_missed(struct worker *worker, struct side *side) {
    for (unsigned i = 0; i < side->missed_count; i++) worker->shards[i] = side->missed[i].query.hash >> (64 - WORD_SHARD_BITS);
    if (!side->counts) find_given(worker, side);
    else sort_by_shard(worker, side->missed_count);
    if (side->counts && run_by_shard(worker, side, count_missed_of)) return -1;
    if (tally_is_full(side->tally)) make_room(worker, side);
    for (unsigned i = 0; i < side->missed_count && !tally_is_full(side->tally); i++) {
        const struct tally_query query = tally_ask(side->missed[i].query.word, side->missed[i].query.length);
        if (tally_add(side->tally, &query, worker->out[side->missed[i].at])) return -1;
    }
    side->missed_count = 0;
    return 0;
}

/* ---- from a block to the tallies ---- */

static int put(struct worker *worker, uint32_t number) {
    if (worker->count == worker->capacity &&
        mem_grow(&worker->out, &worker->capacity, worker->count + 1, sizeof *worker->out, "the words of a block"))
        return -1;
    worker->out[worker->count++] = number;
    return 0;
}

static void count_integers(struct side *side) {
    for (unsigned i = 0; i < side->waiting_count; i++)
        integer_counts_add(&side->counts->integers, side->waiting[i], side->places[i], side->alone);
    side->waiting_count = 0;
}

static int put_integer(struct worker *worker, struct side *side, uint32_t integer, const char *word) {
    if (!side->counts) return put(worker, worker->counting->rows.rows[integer]);
    __builtin_prefetch(&side->counts->integers.counts[integer], 1);
    side->places[side->waiting_count] = worker->block.offset + (uint64_t)(word - worker->block.bytes);
    side->waiting[side->waiting_count++] = integer;
    if (side->waiting_count == WORDS_BATCH) count_integers(side);
    return put(worker, integer);
}

/* Notes a word that is not in the tally. Its number is found later, together with the numbers of other missed words. */
static int miss(struct worker *worker, struct side *side, const struct tally_query *query, uint64_t line) {
    uint64_t id;
    if (side == &worker->items && side->counts && worker->counting->options->order == ORDER_GIVEN &&
        vocab_given_id(query->word, query->length, &id))
        return fail("'%s' line %" PRIu64 ": '%.*s' is not an id; corpus.order = given wants numbers from 0 to %u", worker->block.path, line,
                    text_shown(query->length), query->word, WORDS_MOST - 1);
    if (side->missed_count == MISSED && take_missed(worker, side)) return -1;
    side->missed[side->missed_count++] = (struct missed){{query->word, query->length, query->hash}, worker->count};
    return put(worker, 0);
}

/* Counts a word and writes its number to the worker's output. */
static inline int take_query(struct worker *worker, struct side *side, const struct tally_query *query, uint64_t line) {
    struct tally_slot *slot = tally_find(side->tally, query);
    if (__builtin_expect(!slot->end, 0)) return miss(worker, side, query, line);
    slot->count++;
    return put(worker, slot->number);
}

/* Returns the word's integer if it is below side->integers, otherwise NO_INTEGER. */
static inline uint32_t integer_of_side(struct side *side, const char *word, uint64_t length) {
    if (!side->integers) return NO_INTEGER;
    if (!side->prefix.known) side->prefix = integer_counts_prefix(&side->counts->integers, word, length);
    uint32_t integer = side->prefix.known ? integer_behind(&side->prefix, word, length) : NO_INTEGER;
    return integer < side->integers ? integer : NO_INTEGER;
}

/* Counts a word, integer or not, and writes its number to the worker's output. */
static inline int take_word(struct worker *worker, struct side *side, const char *word, uint64_t length, uint64_t line) {
    uint32_t integer = integer_of_side(side, word, length);
    if (integer != NO_INTEGER) return put_integer(worker, side, integer, word);
    const struct tally_query query = tally_ask(word, length);
    return take_query(worker, side, &query, line);
}

/* How many words are found before the first of them is looked up, so that their slots are loaded meanwhile; without this a third of the time is
 * spent waiting. */
enum { AHEAD = 32 };
struct ahead {
    struct tally_query query;
    struct side *side;
    uint64_t line;
    uint32_t integer; /* NO_INTEGER: the word is looked up in the tally */
};

static inline struct ahead look_ahead(struct side *side, const char *word, uint64_t length, uint64_t line) {
    struct ahead ahead = {.side = side, .line = line, .integer = integer_of_side(side, word, length)};
    if (ahead.integer != NO_INTEGER) {
        ahead.query.word = word;
        return ahead;
    }
    ahead.query = tally_ask(word, length);
    __builtin_prefetch(tally_home(side->tally, &ahead.query), 1);
    return ahead;
}

static inline int take_ahead(struct worker *worker, const struct ahead *ahead, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (ahead[i].integer != NO_INTEGER ? put_integer(worker, ahead[i].side, ahead[i].integer, ahead[i].query.word)
                                           : take_query(worker, ahead[i].side, &ahead[i].query, ahead[i].line))
            return -1;
    return 0;
}

/* Counts the words of a block whose words are separated by blanks. The first word of a list is its name. */
static int take_tokens(struct worker *worker, const struct corpus_format_properties *format) {
    int named = format->parts[0] == PART_NAME, first = !worker->block.continues, kind = TOKEN_WORD, tabs = worker->block.tabs;
    struct ahead ahead[AHEAD];
    struct scan scan;
    const char *word, *name = NULL; /* name: start of a document's name, which may contain blanks and ends at a tab */
    uint64_t length;
    scan_start(&scan, &worker->block);
    while (kind != TOKEN_END) {
        unsigned count = 0;
        while (count < AHEAD && (kind = scan_next(&scan, &word, &length)) == TOKEN_WORD) {
            struct side *side = named && first ? &worker->names : &worker->items;
            if (tabs && first) {
                if (!name) name = word;
                if (word[length] != '\t') continue;
                length += (uint64_t)(word - name);
                word = name;
                name = NULL;
            }
            first = 0;
            if (side->tally) ahead[count++] = look_ahead(side, word, length, scan.line);
        }
        if (take_ahead(worker, ahead, count) || (kind == TOKEN_NEWLINE && put(worker, NUMBERED_END))) return -1;
        if (kind == TOKEN_NEWLINE) first = 1;
    }
    return 0;
}

/* Counts the words of a block that fields.h splits: lists with another separator, triples. */
static int take_fields(struct worker *worker) {
    struct corpus_fields fields;
    struct corpus_field field;
    struct numbered *numbered = worker->counting->wanted->numbered;
    int more;
    corpus_fields_start(&fields, &worker->block, worker->counting->options);
    while ((more = corpus_fields_next(&fields, &field)) > 0) {
        struct side *side = field.part == PART_NAME ? &worker->names : &worker->items;
        if (field.text ? side->tally && take_word(worker, side, field.text, field.length, field.line) : put(worker, NUMBERED_END))
            return -1;
    }
    if (numbered) corpus_left_add(&numbered->left, &fields.left);
    return more;
}

static int put_weight(struct worker *worker, float weight) {
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return put(worker, bits);
}

static int take_pairs(struct worker *worker) {
    const struct corpus_options *options = worker->counting->options;
    int names = worker->names.tally != NULL, items = worker->items.tally != NULL, weighted = numbered_fields(options) == 3, more;
    struct numbered *numbered = worker->counting->wanted->numbered;
    struct corpus_left left = {0};
    struct corpus_cursor cursor;
    struct pair_line pair;
    corpus_cursor_start(&cursor, &worker->block);
    while ((more = pairs_next(&cursor, &worker->block, options, &left, &pair)) > 0)
        if ((names && take_word(worker, &worker->names, pair.list, pair.list_length, pair.line)) ||
            (items && take_word(worker, &worker->items, pair.item, pair.item_length, pair.line)) ||
            (weighted && put_weight(worker, pair.weight)))
            return -1;
    if (numbered) corpus_left_add(&numbered->left, &left);
    return more;
}

static int take_edges(struct worker *worker) {
    const struct corpus_options *options = worker->counting->options;
    int weighted = numbered_fields(options) == 3, more;
    struct numbered *numbered = worker->counting->wanted->numbered;
    struct corpus_left left = {0};
    struct corpus_cursor cursor;
    struct edge_line edge;
    corpus_cursor_start(&cursor, &worker->block);
    while ((more = edges_next(&cursor, &worker->block, options->weights, &left, &edge)) > 0)
        if (take_word(worker, &worker->items, edge.from, edge.from_length, edge.line) ||
            take_word(worker, &worker->items, edge.to, edge.to_length, edge.line) || (weighted && put_weight(worker, edge.weight)))
            return -1;
    if (numbered) corpus_left_add(&numbered->left, &left);
    return more;
}

static int take_lines(struct worker *worker) {
    const struct corpus_options *options = worker->counting->options;
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    if (format->edges) return take_edges(worker);
    if (format->triples) return take_fields(worker);
    if (format->scattered) return take_pairs(worker);
    if (fields_are_tokens(&worker->block, options) ? take_tokens(worker, format) : take_fields(worker)) return -1;
    int in_line = worker->count ? worker->out[worker->count - 1] != NUMBERED_END : worker->block.continues;
    return in_line && !worker->block.line_open ? put(worker, NUMBERED_END) : 0; /* a line also ends at the end of its file */
}

/* Called at the end of a block: counts the words that are still waiting, so that all numbers of the block are known. */
static int end_block(struct worker *worker, struct side *side) {
    enum { MET_MOST = 1 << 30 }; /* a count in the tally has 32 bits */
    if (!side->tally) return 0;
    if (take_missed(worker, side)) return -1;
    side->met += worker->count;
    if (side->met > MET_MOST) add_counts(worker, side);
    return 0;
}

static int take_block(struct worker *worker) {
    struct numbered *numbered = worker->counting->wanted->numbered;
    worker->count = 0;
    if (take_lines(worker) || end_block(worker, &worker->items) || end_block(worker, &worker->names)) return -1;
    return numbered ? numbered_put(numbered, worker->block.number, worker->out, worker->count) : 0;
}

static int open_side(struct side *side, const struct counting *counting, struct word_counts *counts, const struct vocab *given) {
    side->counts = counts;
    side->alone = counting->alone;
    side->integers = counts ? counts->integers.size : given ? counting->rows.size : 0;
    side->prefix.known = !counts || counting->options->order == ORDER_GIVEN; /* words are then integers without a prefix */
    if (!counts && !given) return 0;
    side->tally = mem_zalloc(1, sizeof *side->tally, "counting");
    side->missed = mem_alloc(MISSED, sizeof *side->missed, "counting");
    return !side->tally || !side->missed || tally_open(side->tally, counting->tally_bytes) ? -1 : 0;
}

/* Adds the last counts of a worker's tally to the totals, and frees the worker's memory. */
static void close_side(struct worker *worker, struct side *side, int failed) {
    if (!failed && side->counts) {
        count_integers(side);
        add_counts(worker, side);
    }
    if (side->tally) tally_close(side->tally);
    mem_free(side->tally, side->missed);
}

static int take_blocks(struct worker *worker) {
    struct counting *counting = worker->counting;
    int more = -1;
    if (open_side(&worker->items, counting, counting->wanted->items, counting->wanted->given) ||
        open_side(&worker->names, counting, counting->wanted->names, NULL))
        return -1;
    while (!counting->failed && (more = corpus_next(counting->corpus, &worker->block)) > 0) {
        if ((more = take_block(worker))) break;
        progress_show(&counting->progress, corpus_done(counting->corpus), corpus_size(counting->corpus), "B");
    }
    return more;
}

static int count_blocks(void *context, unsigned number) {
    struct counting *counting = context;
    OWNED struct worker *worker = mem_zalloc(1, sizeof *worker, "counting");
    if (worker) worker->counting = counting;
    int result = worker ? take_blocks(worker) : -1;
    if (result) counting->failed = 1;
    if (result && counting->wanted->numbered) numbered_give_up(counting->wanted->numbered);
    if (worker) {
        close_side(worker, &worker->items, result);
        close_side(worker, &worker->names, result);
        corpus_block_release(&worker->block);
        free(worker->out);
    }
    return result;
}

/* ---- the whole corpus ---- */

/* Makes the tables of integers, unless the corpus is text: a text has few integers, which would be far apart in the table. */
static int open_integers(struct counting *counting) {
    const struct word_counts_wanted *wanted = counting->wanted;
    const struct corpus_options *options = counting->options;
    if (wanted->given && !encode_are_rows(options) && integer_rows_make(&counting->rows, wanted->given)) return -1;
    if (corpus_formats[options->format].rows == LOOK_TEXT && options->order != ORDER_GIVEN) return 0;
    if (wanted->items) integer_counts_make(&wanted->items->integers, corpus_size(counting->corpus));
    if (wanted->names) integer_counts_make(&wanted->names->integers, corpus_size(counting->corpus));
    return 0;
}

static void open_shards(struct word_counts *counts) {
    for (int s = 0; counts && s < WORD_SHARDS; s++) pthread_mutex_init(&counts->shards[s].lock, NULL);
}

/* Makes word counts of words that were gathered: borrows the words, but copies their counts, because vocab_choose() frees the counts. */
static int lend_counts(struct word_counts *counts, struct gathered_words *words) {
    struct word_shard *shard = &counts->shards[0];
    uint64_t size = words->words.size;
    shard->counts = mem_alloc(size ? size : 1, sizeof *shard->counts, "the words' counts");
    if (!shard->counts) return -1;
    if (size) memcpy(shard->counts, words->counts, size * sizeof *shard->counts);
    counts->lent = words;
    shard->words = words->words;
    return 0;
}

int word_counts_read(const struct word_counts_wanted *wanted, struct corpus *corpus, const struct corpus_options *options,
                     struct pool *pool) {
    struct counting counting = {.wanted = wanted, .corpus = corpus, .options = options, .alone = pool_threads(pool) == 1,
                                .tally_bytes = mem_available() / 64 / pool_threads(pool)};
    open_shards(wanted->items);
    open_shards(wanted->names);
    struct gathered *gathered = corpus_gathered(corpus);
    if (gathered)
        return (wanted->items && lend_counts(wanted->items, &gathered->items)) ||
                       (wanted->names && lend_counts(wanted->names, &gathered->lists)) || corpus_left_say(&gathered->left, options)
                   ? -1
                   : 0;
    if (corpus_read_as(corpus, options)) return -1;
    corpus_set_threads(corpus, pool_threads(pool));
    corpus_rewind(corpus);
    progress_start(&counting.progress, wanted->given ? "encoding" : "counting", options->report_seconds);
    int result = open_integers(&counting) || pool_run(pool, count_blocks, &counting) ? -1 : 0;
    progress_end(&counting.progress);
    integer_rows_release(&counting.rows);
    if (!result && wanted->numbered) result = numbered_finish(wanted->numbered) || corpus_left_say(&wanted->numbered->left, options) ? -1 : 0;
    return result;
}
