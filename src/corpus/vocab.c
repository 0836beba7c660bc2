/* Counting, in three steps that keep memory near the size of the vocabulary whatever the number of threads:
 *
 *   block -> a tally of a few thousand words in the worker's cache -> 64 shards, each a word_set under its own lock
 *         -> one sorted list of the words that stay -> struct vocab
 *
 * Counts add and first mentions are minima, so neither the order of blocks nor their size shows in the result.
 */
#include "vocab.h"

#include "base/file.h"
#include "base/file_map.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "pairs.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define VOCAB_LIMIT 4294967294u /* rows: the two highest 32-bit numbers mean something else */
enum { SHOWN = 60 };            /* bytes of a word in a sentence */

static int shown(uint64_t length) {
    return (int)(length < SHOWN ? length : SHOWN);
}

uint64_t word_hash(const char *word, uint64_t length) {
    return XXH3_64bits(word, length);
}

/* ---- word sets ---- */

struct word_slot {
    uint32_t tag;   /* low half of the hash: where the word belongs and most of its comparison */
    uint32_t entry; /* + 1; 0: free */
};

/* Lengths stand before the words in groups of seven bits, one byte for all but the longest. */
enum { LENGTH_BYTES = 10 };

static uint64_t put_length(char *out, uint64_t length) {
    uint64_t n = 0;
    for (; length >= 128; length >>= 7) out[n++] = (char)(length | 128);
    out[n++] = (char)length;
    return n;
}

static const char *get_length(const char *at, uint64_t *length) {
    unsigned shift = 0;
    for (*length = 0; *at & 128; at++, shift += 7) *length |= (uint64_t)(*at & 127) << shift;
    *length |= (uint64_t)*at << shift;
    return at + 1;
}

const char *word_set_word(const struct word_set *set, const struct word_entry *entry, uint64_t *length) {
    return get_length(set->bytes + entry->at, length);
}

static int grow_slots(struct word_set *set) {
    uint64_t count = set->slot_count ? set->slot_count * 2 : 1024, mask = count - 1;
    struct word_slot *slots = mem_zalloc(count, sizeof *slots, "the index of words");
    if (!slots) return -1;
    for (uint64_t i = 0; i < set->slot_count; i++) {
        if (!set->slots[i].entry) continue;
        uint64_t to = set->slots[i].tag & mask;
        while (slots[to].entry) to = (to + 1) & mask;
        slots[to] = set->slots[i];
    }
    free(set->slots);
    set->slots = slots;
    set->slot_count = count;
    return 0;
}

static int64_t put_word(struct word_set *set, struct word_slot *slot, uint64_t hash, const char *word, uint64_t length,
                        uint64_t count, uint64_t first) {
    if (set->size >= UINT32_MAX - 1) return fail("more than %u different words fall together", UINT32_MAX - 1);
    if (mem_grow(&set->entries, &set->capacity, set->size + 1, sizeof *set->entries, "the words' counts") ||
        mem_grow(&set->bytes, &set->bytes_capacity, set->used + LENGTH_BYTES + length, 1, "the words"))
        return -1;
    set->entries[set->size] = (struct word_entry){count, first, set->used};
    set->used += put_length(set->bytes + set->used, length);
    memcpy(set->bytes + set->used, word, length);
    set->used += length;
    *slot = (struct word_slot){(uint32_t)hash, (uint32_t)(set->size + 1)};
    return (int64_t)set->size++;
}

/* The slot that holds the word, or the free one where it would go. */
static struct word_slot *find_slot(const struct word_set *set, uint64_t hash, const char *word, uint64_t length) {
    uint64_t mask = set->slot_count - 1, i = (uint32_t)hash & mask;
    for (; set->slots[i].entry; i = (i + 1) & mask) {
        if (set->slots[i].tag != (uint32_t)hash) continue;
        uint64_t known_length;
        const char *known = word_set_word(set, &set->entries[set->slots[i].entry - 1], &known_length);
        if (known_length == length && !memcmp(known, word, length)) break;
    }
    return &set->slots[i];
}

int64_t word_set_add(struct word_set *set, uint64_t hash, const char *word, uint64_t length, uint64_t count,
                     uint64_t first) {
    if (set->size * 3 >= set->slot_count * 2 && grow_slots(set)) return -1;
    struct word_slot *slot = find_slot(set, hash, word, length);
    if (!slot->entry) return put_word(set, slot, hash, word, length, count, first);
    struct word_entry *entry = &set->entries[slot->entry - 1];
    entry->count += count;
    if (first < entry->first) entry->first = first;
    return slot->entry - 1;
}

int64_t word_set_find(const struct word_set *set, uint64_t hash, const char *word, uint64_t length) {
    return set->slot_count ? (int64_t)find_slot(set, hash, word, length)->entry - 1 : -1;
}

void word_set_release(struct word_set *set) {
    free(set->slots);
    free(set->entries);
    free(set->bytes);
    *set = (struct word_set){0};
}

/* ---- counting ---- */

enum { SHARDS = 64, SHARD_SHIFT = 58, TALLY_SLOTS = 1 << 16, TALLY_FULL = TALLY_SLOTS / 4 * 3 };

struct shard {
    pthread_mutex_t lock;
    struct word_set set;
};

struct seen {
    uint64_t hash, at, length; /* the word is block bytes[at .. at + length) where it stands first */
    uint64_t count;            /* 0: free */
};

/* One worker's block. */
struct tally {
    struct seen slots[TALLY_SLOTS];
    uint32_t used[TALLY_SLOTS], sorted[TALLY_SLOTS]; /* slots in use, as they came and by shard */
    uint64_t size;
    struct corpus_block block;
};

struct counting {
    struct corpus *corpus;
    const struct corpus_options *options;
    struct progress progress;
    _Atomic int failed; /* 1: the other workers stop too */
    struct shard shards[SHARDS];
};

static int flush_shard(struct shard *shard, const struct tally *tally, const uint32_t *slots, uint64_t count) {
    int result = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint64_t i = 0; i < count && !result; i++) {
        const struct seen *seen = &tally->slots[slots[i]];
        if (i + 8 < count && shard->set.slot_count)
            __builtin_prefetch(
                &shard->set.slots[(uint32_t)tally->slots[slots[i + 8]].hash & (shard->set.slot_count - 1)]);
        if (word_set_add(&shard->set, seen->hash, tally->block.bytes + seen->at, seen->length, seen->count,
                         tally->block.offset + seen->at) < 0)
            result = -1;
    }
    pthread_mutex_unlock(&shard->lock);
    return result;
}

/* Brings the tally into the shards, each locked once, and empties it. */
static int tally_flush(struct counting *counting, struct tally *tally) {
    uint64_t starts[SHARDS + 1] = {0}, places[SHARDS];
    for (uint64_t i = 0; i < tally->size; i++) starts[(tally->slots[tally->used[i]].hash >> SHARD_SHIFT) + 1]++;
    for (int s = 0; s < SHARDS; s++) starts[s + 1] += starts[s], places[s] = starts[s];
    for (uint64_t i = 0; i < tally->size; i++)
        tally->sorted[places[tally->slots[tally->used[i]].hash >> SHARD_SHIFT]++] = tally->used[i];
    for (unsigned i = 0; i < SHARDS; i++) {
        unsigned s = (i + (unsigned)tally->block.number * 17) % SHARDS; /* workers begin at different doors */
        if (flush_shard(&counting->shards[s], tally, tally->sorted + starts[s], starts[s + 1] - starts[s])) return -1;
    }
    for (uint64_t i = 0; i < tally->size; i++) tally->slots[tally->used[i]].count = 0;
    tally->size = 0;
    return 0;
}

/* Counts one token. 1 where the tally had it not yet, 0 where it had, -1 after fail(). */
static int tally_add(struct counting *counting, struct tally *tally, const char *word, uint64_t length) {
    uint64_t hash = XXH3_64bits(word, length), i = hash & (TALLY_SLOTS - 1);
    for (; tally->slots[i].count; i = (i + 1) & (TALLY_SLOTS - 1)) {
        struct seen *seen = &tally->slots[i];
        if (seen->hash != hash || seen->length != length || memcmp(tally->block.bytes + seen->at, word, length))
            continue;
        seen->count++;
        return 0;
    }
    if (tally->size == TALLY_FULL) return tally_flush(counting, tally) ? -1 : tally_add(counting, tally, word, length);
    tally->slots[i] = (struct seen){hash, (uint64_t)(word - tally->block.bytes), length, 1};
    tally->used[tally->size++] = (uint32_t)i;
    return 1;
}

int vocab_given_id(const char *word, uint64_t length, uint64_t *id) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < length; i++) {
        if (word[i] < '0' || word[i] > '9') return -1;
        value = value * 10 + (uint64_t)(word[i] - '0');
        if (value >= VOCAB_LIMIT) return -1;
    }
    *id = value;
    return length ? 0 : -1;
}

static int count_word(struct counting *counting, struct tally *tally, const char *word, uint64_t length,
                      uint64_t line) {
    int added = tally_add(counting, tally, word, length);
    uint64_t id;
    if (added > 0 && counting->options->order == ORDER_GIVEN && vocab_given_id(word, length, &id))
        return fail("'%s' line %" PRIu64 ": '%.*s' is not an id; corpus.order = given wants numbers from 0 to %u",
                    tally->block.path, line, shown(length), word, VOCAB_LIMIT - 1);
    return added < 0 ? -1 : 0;
}

static int count_tokens(struct counting *counting, struct tally *tally) {
    int format = counting->options->format, kind;
    uint64_t index = (uint64_t)tally->block.continues, length;
    struct corpus_cursor cursor;
    const char *word;
    corpus_cursor_start(&cursor, &tally->block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        if (kind == TOKEN_NEWLINE)
            index = 0;
        else if (vocab_part(format, index++) == PART_WORD && count_word(counting, tally, word, length, cursor.line))
            return -1;
    }
    return 0;
}

static int count_pairs(struct counting *counting, struct tally *tally) {
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, &tally->block);
    while ((more = pairs_next(&cursor, &tally->block, counting->options->min_rating, &pair)) > 0)
        if (count_word(counting, tally, pair.item, pair.item_length, pair.line)) return -1;
    return more;
}

static int count_blocks(void *context, unsigned worker) {
    struct counting *counting = context;
    struct tally *tally = mem_zalloc(1, sizeof *tally, "counting");
    int more = -1;
    if (!tally) return -1;
    while (!counting->failed && (more = corpus_next(counting->corpus, &tally->block)) > 0) {
        int pairs = counting->options->format == FORMAT_PAIRS;
        more = pairs ? count_pairs(counting, tally) : count_tokens(counting, tally);
        if (!more) more = tally_flush(counting, tally);
        if (more) break;
        progress_show(&counting->progress, corpus_done(counting->corpus), corpus_size(counting->corpus), "B");
    }
    if (more) counting->failed = 1;
    corpus_block_release(&tally->block);
    free(tally);
    return more;
}

enum token_part vocab_part(enum corpus_format format, uint64_t index) {
    switch (format) {
    case FORMAT_LISTS:
        return index ? PART_WORD : PART_NAME;
    case FORMAT_PAIRS:
        return index == 0 ? PART_NAME : index == 1 ? PART_WORD : PART_RATING;
    default:
        return PART_WORD;
    }
}

/* ---- which words stay, and in which order ---- */

/* Words of all shards as one list; `at` has the shard in its highest bits. */
struct survivors {
    struct word_entry *words;
    uint64_t size;
};

static int by_count(const struct word_entry *a, const struct word_entry *b) {
    return a->count != b->count ? a->count > b->count : a->first < b->first;
}
static int by_mention(const struct word_entry *a, const struct word_entry *b) {
    return a->first < b->first;
}
typedef int before(const struct word_entry *a, const struct word_entry *b);

static inline __attribute__((always_inline)) void swap(struct word_entry *a, struct word_entry *b) {
    struct word_entry kept = *a;
    *a = *b;
    *b = kept;
}

/* Quicksort in place (qsort may take as much memory again), with middles picked by a hash so that no order of words is
 * a bad one. All keys differ: no two words are first met at one place. */
static void sort(struct word_entry *words, uint64_t size, before *less) {
    while (size > 16) {
        uint64_t i = 0, j = size - 1, hash = size * 0x9E3779B97F4A7C15u;
        swap(&words[0], &words[(uint64_t)((unsigned __int128)hash * size >> 64)]);
        struct word_entry middle = words[0];
        for (;;) { /* Hoare's: both ends stop at the middle itself, so neither runs out */
            while (less(&words[i], &middle)) i++;
            while (less(&middle, &words[j])) j--;
            if (i >= j) break;
            swap(&words[i++], &words[j--]);
        }
        uint64_t left = j + 1;
        if (left < size - left) {
            sort(words, left, less);
            words += left;
            size -= left;
        } else {
            sort(words + left, size - left, less);
            size = left;
        }
    }
    for (uint64_t i = 1; i < size; i++) {
        struct word_entry word = words[i];
        uint64_t j = i;
        for (; j > 0 && less(&word, &words[j - 1]); j--) words[j] = words[j - 1];
        words[j] = word;
    }
}

static const char *survivor_word(const struct counting *counting, const struct word_entry *entry, uint64_t *length) {
    const struct shard *shard = &counting->shards[entry->at >> SHARD_SHIFT];
    return get_length(shard->set.bytes + (entry->at & (((uint64_t)1 << SHARD_SHIFT) - 1)), length);
}

/* Sums over all words, and the most frequent one for the sentence where nothing stays. */
static void add_up(const struct counting *counting, struct vocab *vocab, uint64_t least, uint64_t *staying,
                   struct word_entry *top) {
    *staying = 0;
    *top = (struct word_entry){0};
    for (uint64_t s = 0; s < SHARDS; s++) {
        const struct word_set *set = &counting->shards[s].set;
        vocab->distinct += set->size;
        for (uint64_t i = 0; i < set->size; i++) {
            struct word_entry entry = set->entries[i];
            vocab->tokens += entry.count;
            *staying += entry.count >= least;
            entry.at |= s << SHARD_SHIFT;
            if (!top->count || by_count(&entry, top)) *top = entry;
        }
    }
}

static int no_word(const struct counting *counting, const struct vocab *vocab, const struct word_entry *top) {
    const struct corpus_options *options = counting->options;
    const char *format = (const char *const[]){"text", "lists", "adjacency", "pairs"}[options->format];
    uint64_t length;
    if (!vocab->tokens && !isinf(options->min_rating))
        return fail("the corpus '%s' has no pair with a rating of at least %g (corpus.min_rating) in its %" PRIu64
                    " bytes",
                    options->path, options->min_rating, corpus_size(counting->corpus));
    if (!vocab->tokens)
        return fail("the corpus '%s' is empty: not one word, read as %s, in its %" PRIu64 " bytes", options->path,
                    format, corpus_size(counting->corpus));
    const char *word = survivor_word(counting, top, &length);
    return fail("no word of the corpus comes %" PRIu64 " times (corpus.min_count): the most frequent of %" PRIu64
                ", '%.*s', comes %" PRIu64 " times; lower corpus.min_count",
                options->min_count, vocab->distinct, shown(length), word, top->count);
}

/* Moves what stays out of the shards into one list; only the words' bytes are left there. */
static int gather(struct counting *counting, uint64_t least, uint64_t staying, struct survivors *survivors) {
    survivors->words = mem_alloc(staying, sizeof *survivors->words, "the list of words");
    if (!survivors->words) return -1;
    for (uint64_t s = 0; s < SHARDS; s++) {
        struct word_set *set = &counting->shards[s].set;
        free(set->slots);
        set->slots = NULL;
        for (uint64_t i = 0; i < set->size; i++) {
            if (set->entries[i].count < least) continue;
            survivors->words[survivors->size] = set->entries[i];
            survivors->words[survivors->size++].at |= s << SHARD_SHIFT;
        }
        free(set->entries);
        set->entries = NULL;
    }
    return 0;
}

static int open_arrays(struct vocab *vocab, uint64_t size, uint64_t bytes) {
    vocab->counts = mem_zalloc(size, sizeof *vocab->counts, "the words' counts");
    vocab->offsets = mem_alloc(size + 1, sizeof *vocab->offsets, "the words' places");
    vocab->bytes = mem_alloc(bytes, 1, "the words");
    vocab->size = size;
    return vocab->counts && vocab->offsets && vocab->bytes ? 0 : -1;
}

/* Puts the next word behind the others. */
static void append(struct vocab *vocab, uint64_t id, uint64_t *used, const char *word, uint64_t length) {
    vocab->offsets[id] = *used;
    memcpy(vocab->bytes + *used, word, length);
    vocab->bytes[*used + length] = 0;
    *used += length + 1;
    vocab->offsets[id + 1] = *used;
}

static int fill(struct vocab *vocab, const struct counting *counting, const struct survivors *survivors) {
    uint64_t bytes = 0, used = 0, length;
    for (uint64_t i = 0; i < survivors->size; i++) {
        survivor_word(counting, &survivors->words[i], &length);
        bytes += length + 1;
    }
    if (open_arrays(vocab, survivors->size, bytes)) return -1;
    for (uint64_t id = 0; id < vocab->size; id++) {
        const char *word = survivor_word(counting, &survivors->words[id], &length);
        append(vocab, id, &used, word, length);
        vocab->counts[id] = survivors->words[id].count;
        vocab->kept += vocab->counts[id];
    }
    return 0;
}

static int digits_of(char out[24], uint64_t id) {
    return snprintf(out, 24, "%" PRIu64, id);
}

/* corpus.order = given: a row for every number up to the highest. Numbers that do not stay, or were never met, have a
 * row that counts 0. */
static int fill_given(struct vocab *vocab, const struct counting *counting, const struct survivors *survivors) {
    uint64_t highest = 0, bytes = 0, used = 0, length, id = 0;
    char digits[24];
    for (uint64_t i = 0; i < survivors->size; i++) {
        const char *word = survivor_word(counting, &survivors->words[i], &length);
        vocab_given_id(word, length, &id);
        if (id > highest) highest = id;
    }
    for (uint64_t power = 1; power <= highest; power *= 10) bytes += highest - (power == 1 ? 0 : power) + 1;
    if (!highest) bytes = 1;
    if (open_arrays(vocab, highest + 1, bytes + highest + 1)) return -1;
    for (id = 0; id <= highest; id++) append(vocab, id, &used, digits, (uint64_t)digits_of(digits, id));
    for (uint64_t i = 0; i < survivors->size; i++) {
        const char *word = survivor_word(counting, &survivors->words[i], &length);
        vocab_given_id(word, length, &id);
        vocab->counts[id] += survivors->words[i].count; /* "7" and "07" are one number */
        vocab->kept += survivors->words[i].count;
    }
    return 0;
}

static int settle(struct counting *counting, struct vocab *vocab) {
    const struct corpus_options *options = counting->options;
    uint64_t least = options->min_count ? options->min_count : 1, staying;
    struct survivors survivors = {0};
    struct word_entry top;
    int given = options->order == ORDER_GIVEN, result = -1;
    add_up(counting, vocab, least, &staying, &top);
    if (!staying) return no_word(counting, vocab, &top);
    if (gather(counting, least, staying, &survivors)) goto out;
    sort(survivors.words, survivors.size, by_count);
    if (options->max_vocab && survivors.size > options->max_vocab)
        survivors.size = options->max_vocab;
    if (survivors.size > VOCAB_LIMIT) {
        fail("%" PRIu64 " words are more than the %u that ids can name; raise corpus.min_count or set corpus.max_vocab",
             survivors.size, VOCAB_LIMIT);
        goto out;
    }
    if (options->order == ORDER_FIRST_SEEN) sort(survivors.words, survivors.size, by_mention);
    result = given ? fill_given(vocab, counting, &survivors) : fill(vocab, counting, &survivors);
out:
    free(survivors.words);
    return result;
}

/* ---- the index ---- */

static int open_index(struct vocab *vocab, uint64_t size) {
    vocab->slot_count = 16;
    while (vocab->slot_count / 3 * 2 < size) vocab->slot_count *= 2;
    vocab->slots = mem_zalloc(vocab->slot_count, sizeof *vocab->slots, "the index of words");
    return vocab->slots ? 0 : -1;
}

static int is_word(const struct vocab *vocab, uint64_t id, const char *word, uint64_t length) {
    uint64_t at = vocab->offsets[id];
    return vocab->offsets[id + 1] - 1 - at == length && !memcmp(vocab->bytes + at, word, length);
}

/* The word's slot, or the free one where it would go. */
static uint64_t slot_of(const struct vocab *vocab, uint64_t hash, const char *word, uint64_t length) {
    uint64_t mask = vocab->slot_count - 1, i = hash & mask;
    while (vocab->slots[i] && !is_word(vocab, vocab->slots[i] - 1, word, length)) i = (i + 1) & mask;
    return i;
}

/* An index that is being made. Every slot looked at is a cache miss: it is asked for AHEAD words earlier, and words are
 * compared only where the part of their hashes that stands beside it agrees. */
enum { AHEAD = 32 };
struct indexing {
    struct vocab *vocab;
    uint32_t *tags; /* [slot_count]; of free slots, anything */
    uint64_t hashes[AHEAD];
};

static void ask(struct indexing *indexing, uint64_t id) {
    uint64_t length, mask = indexing->vocab->slot_count - 1;
    const char *word = vocab_word(indexing->vocab, id, &length);
    uint64_t hash = indexing->hashes[id % AHEAD] = XXH3_64bits(word, length);
    __builtin_prefetch(&indexing->vocab->slots[hash & mask], 1);
    __builtin_prefetch(&indexing->tags[hash & mask], 1);
}

/* The number that the word has in the index now: `id`, or a lower one that is the same word. */
static uint64_t enter(struct indexing *indexing, uint64_t id) {
    struct vocab *vocab = indexing->vocab;
    uint64_t length, mask = vocab->slot_count - 1, hash = indexing->hashes[id % AHEAD], i = hash & mask;
    const char *word = vocab_word(vocab, id, &length);
    uint32_t tag = (uint32_t)(hash >> 32);
    for (; vocab->slots[i]; i = (i + 1) & mask)
        if (indexing->tags[i] == tag && is_word(vocab, vocab->slots[i] - 1, word, length)) return vocab->slots[i] - 1;
    vocab->slots[i] = (uint32_t)(id + 1);
    indexing->tags[i] = tag;
    return id;
}

/* path: the file whose lines the words are, for the sentence where one is there twice. */
static int make_index(struct vocab *vocab, const char *path) {
    struct indexing indexing = {.vocab = vocab};
    int result = -1;
    if (open_index(vocab, vocab->size)) return -1;
    indexing.tags = mem_alloc(vocab->slot_count, sizeof *indexing.tags, "the index of words");
    if (!indexing.tags) return -1;
    for (uint64_t id = 0; id < AHEAD && id < vocab->size; id++) ask(&indexing, id);
    for (uint64_t id = 0; id < vocab->size; id++) {
        uint64_t known = enter(&indexing, id);
        if (known != id) {
            uint64_t length;
            const char *word = vocab_word(vocab, id, &length);
            fail("vocabulary '%s' line %" PRIu64 ": the word '%.*s' is on line %" PRIu64 " already", path, id + 1,
                 shown(length), word, known + 1);
            goto out;
        }
        if (id + AHEAD < vocab->size) ask(&indexing, id + AHEAD);
    }
    result = 0;
out:
    free(indexing.tags);
    return result;
}

int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length) {
    if (!vocab->slot_count) return -1;
    return (int64_t)vocab->slots[slot_of(vocab, XXH3_64bits(word, length), word, length)] - 1;
}

void vocab_ask(const struct vocab *vocab, struct vocab_query *query, const char *word, uint64_t length) {
    *query = (struct vocab_query){word, length, XXH3_64bits(word, length)};
    __builtin_prefetch(&vocab->slots[query->hash & (vocab->slot_count - 1)]);
}

void vocab_find_batch(const struct vocab *vocab, const struct vocab_query *queries, unsigned count, uint32_t *ids) {
    uint64_t mask = vocab->slot_count - 1;
    for (unsigned i = 0; i < count; i++) {
        ids[i] = vocab->slots[queries[i].hash & mask];
        if (ids[i]) __builtin_prefetch(&vocab->offsets[ids[i] - 1]);
    }
    for (unsigned i = 0; i < count; i++)
        if (ids[i]) __builtin_prefetch(&vocab->bytes[vocab->offsets[ids[i] - 1]]);
    /* A free slot holds 0, and 0 - 1 is VOCAB_ABSENT. */
    for (unsigned i = 0; i < count; i++)
        ids[i] = vocab->slots[slot_of(vocab, queries[i].hash, queries[i].word, queries[i].length)] - 1;
}

const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length) {
    if (length) *length = vocab->offsets[id + 1] - 1 - vocab->offsets[id];
    return vocab->bytes + vocab->offsets[id];
}

/* ---- building ---- */

static int count_corpus(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    struct counting *counting = mem_zalloc(1, sizeof *counting, "counting");
    if (!counting) return -1;
    counting->corpus = corpus;
    counting->options = options;
    for (int s = 0; s < SHARDS; s++) pthread_mutex_init(&counting->shards[s].lock, NULL);
    corpus_read_as(corpus, options);
    int result = corpus_rewind(corpus);
    progress_start(&counting->progress, "counting", options->report_seconds);
    if (!result) result = pool_run(pool, count_blocks, counting);
    progress_end(&counting->progress);
    if (!result) result = settle(counting, vocab);
    for (int s = 0; s < SHARDS; s++) {
        word_set_release(&counting->shards[s].set);
        pthread_mutex_destroy(&counting->shards[s].lock);
    }
    free(counting);
    return result ? -1 : make_index(vocab, options->path); /* no word is there twice */
}

/* An encoded corpus (sptx-w2v generate --out=FILE.ids) has its vocabulary beside it. */
static int read_beside(struct vocab *vocab, const char *stream) {
    char *path = mem_alloc(strlen(stream) + sizeof ".vocab.tsv", 1, "a path");
    if (!path) return -1;
    sprintf(path, "%s.vocab.tsv", stream);
    int result = vocab_read(vocab, path);
    free(path);
    return result;
}

int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    *vocab = (struct vocab){0};
    if (options->vocab && *options->vocab) return vocab_read(vocab, options->vocab);
    if (corpus_stream(corpus)) return read_beside(vocab, corpus_stream(corpus));
    if (count_corpus(vocab, corpus, options, pool)) {
        vocab_release(vocab);
        return -1;
    }
    return 0;
}

void vocab_release(struct vocab *vocab) {
    free(vocab->counts);
    free(vocab->offsets);
    free(vocab->bytes);
    free(vocab->slots);
    *vocab = (struct vocab){0};
}

uint64_t vocab_bytes(const struct vocab *vocab) {
    uint64_t size = vocab->size;
    return size * sizeof *vocab->counts + (size + 1) * sizeof *vocab->offsets + vocab->offsets[size] +
           vocab->slot_count * sizeof *vocab->slots;
}

/* ---- on disk ---- */

/* One line as it stands in the file: its word and its count. */
struct line {
    const char *word;
    uint64_t length, count;
};

static int is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

/* A line without its LF, as "word TAB count" or "word blank count". */
static int read_line(struct line *out, const char *path, uint64_t number, const char *text, uint64_t length) {
    uint64_t behind = length, digits, end;
    while (behind && (is_blank(text[behind - 1]) || text[behind - 1] == '\r')) behind--;
    for (digits = behind; digits && !is_blank(text[digits - 1]); digits--) continue;
    for (end = digits; end && is_blank(text[end - 1]); end--) continue;
    if (!behind) return fail("vocabulary '%s' line %" PRIu64 " is empty; wanted word TAB count", path, number);
    if (is_blank(*text))
        return fail("vocabulary '%s' line %" PRIu64 " has no word; wanted word TAB count", path, number);
    if (!end)
        return fail("vocabulary '%s' line %" PRIu64 ": '%.*s' has no count; wanted word TAB count", path, number,
                    shown(behind), text);
    *out = (struct line){text, end, 0};
    for (uint64_t i = digits; i < behind; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(out->count, 10, &out->count) ||
            __builtin_add_overflow(out->count, digit, &out->count))
            return fail("vocabulary '%s' line %" PRIu64 ": the count '%.*s' is not a whole number below 2^64", path,
                        number, shown(behind - digits), text + digits);
    }
    for (uint64_t i = 0; i < end; i++)
        if (is_blank(text[i]))
            return fail("vocabulary '%s' line %" PRIu64 ": the word '%.*s' has a blank in it; wanted word TAB count",
                        path, number, shown(end), text);
    return 0;
}

/* Words of the file into arrays that hold its lines and bytes for certain. */
static int take_lines(struct vocab *vocab, const char *path, const struct file_map *map) {
    const char *at = map->data, *end = at + map->size;
    uint64_t used = 0;
    for (uint64_t id = 0; at < end; id++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct line line = {0};
        if (read_line(&line, path, id + 1, at, (uint64_t)((newline ? newline : end) - at))) return -1;
        append(vocab, id, &used, line.word, line.length);
        vocab->counts[id] = line.count;
        if (__builtin_add_overflow(vocab->tokens, line.count, &vocab->tokens))
            return fail("vocabulary '%s' line %" PRIu64 ": the counts add up to more than 2^64", path, id + 1);
        at = newline ? newline + 1 : end;
    }
    vocab->kept = vocab->tokens;
    vocab->distinct = vocab->size;
    return 0;
}

static uint64_t count_lines(const struct file_map *map) {
    uint64_t lines = 0;
    for (const char *at = map->data, *end = at + map->size; at < end; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    return lines;
}

int vocab_read(struct vocab *vocab, const char *path) {
    struct file_map map;
    int result = -1;
    *vocab = (struct vocab){0};
    if (file_map_open(&map, path)) return -1;
    uint64_t lines = map.size ? count_lines(&map) : 0; /* an empty file has no place in memory to count from */
    if (!lines)
        fail("vocabulary '%s' is empty; wanted lines of word TAB count", path);
    else if (lines > VOCAB_LIMIT)
        fail("vocabulary '%s' has %" PRIu64 " words, more than the %u that ids can name", path, lines, VOCAB_LIMIT);
    /* A word and its NUL take no more room than its line, but for a last one without a newline. */
    else if (!open_arrays(vocab, lines, map.size + 1) && !take_lines(vocab, path, &map))
        result = make_index(vocab, path);
    file_map_close(&map);
    if (result) vocab_release(vocab);
    return result;
}

/* "TAB count LF": its length. */
static unsigned tail_of(char out[24], uint64_t count) {
    unsigned at = 24;
    out[--at] = '\n';
    do out[--at] = (char)('0' + count % 10);
    while (count /= 10);
    out[--at] = '\t';
    memmove(out, out + at, 24 - at);
    return 24 - at;
}

int vocab_write(const struct vocab *vocab, const char *path) {
    struct file_writer writer;
    char tail[24];
    uint64_t length;
    int result = 0;
    if (file_writer_open(&writer, path)) return -1;
    for (uint64_t id = 0; id < vocab->size && !result; id++) {
        const char *word = vocab_word(vocab, id, &length);
        result = file_write(&writer, word, length);
        if (!result) result = file_write(&writer, tail, tail_of(tail, vocab->counts[id]));
    }
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

uint64_t vocab_fingerprint(const struct vocab *vocab) {
    XXH3_state_t state;
    char tail[24];
    uint64_t length;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for (uint64_t id = 0; id < vocab->size; id++) {
        const char *word = vocab_word(vocab, id, &length);
        XXH3_64bits_update(&state, word, length);
        XXH3_64bits_update(&state, tail, tail_of(tail, vocab->counts[id]));
    }
    return XXH3_64bits_digest(&state);
}

int vocab_check_size(const struct vocab *vocab) {
    if (vocab->size >= 2) return 0;
    return fail("the vocabulary has %" PRIu64 " word; training tells one word from another, so it needs two", vocab->size);
}

/* ---- did you mean ---- */

enum { NEAR_WORDS = 100000 };

static int by_falling(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The count of the last word among the NEAR_WORDS most frequent; 0: all are. */
static uint64_t near_count(const struct vocab *vocab) {
    if (vocab->size <= NEAR_WORDS) return 0;
    uint64_t *counts = mem_alloc(vocab->size, sizeof *counts, "a search for the nearest word");
    if (!counts) {
        report_clear(); /* a suggestion is not worth a failure */
        return UINT64_MAX;
    }
    memcpy(counts, vocab->counts, vocab->size * sizeof *counts);
    int sorted = 1;
    for (uint64_t i = 1; i < vocab->size && sorted; i++) sorted = counts[i - 1] >= counts[i];
    if (!sorted) qsort(counts, vocab->size, sizeof *counts, by_falling);
    uint64_t least = counts[NEAR_WORDS - 1];
    free(counts);
    return least;
}

const char *vocab_near(const struct vocab *vocab, const char *word) {
    uint64_t least = near_count(vocab), count = 0;
    const char **names = mem_alloc(NEAR_WORDS, sizeof *names, "a search for the nearest word");
    if (!names) {
        report_clear();
        return NULL;
    }
    for (int equal = 0; equal < 2; equal++)
        for (uint64_t id = 0; id < vocab->size && count < NEAR_WORDS; id++)
            if (equal ? vocab->counts[id] == least : vocab->counts[id] > least)
                names[count++] = vocab_word(vocab, id, NULL);
    const char *near = text_nearest(word, names, count);
    free(names);
    return near;
}
