/* word_counts: counts all words of a corpus, finds where each first occurs, and writes the corpus as numbers of words.
 *
 *   block -> a worker's tallies: the words that it has met early (struct tally), or -> 64 shards by hash, each with its own lock
 *         -> a word that is an integer: a table for integers that all threads share (struct integer_counts)
 *         -> the number of each word, in the corpus' order (numbered.h)
 *
 * The number of an integer, which may have a prefix, is that integer; the numbers of all other words follow. Memory: about what the different words
 * need, and at most a 64th of the free memory for the tallies of all threads. Counts are sums and first positions are minima, so they do not depend
 * on the order or the size of blocks.
 */
#ifndef SPTX_WORD_COUNTS_H
#define SPTX_WORD_COUNTS_H

#include "base/pool.h"
#include "corpus.h"
#include "numbered.h"
#include "vocab.h"
#include "words.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* integers: fast tables for words that are plain numbers, as the ids in many files are. The data of such a word is stored at the index that is its
 * number, so no hash table is searched.
 *
 * A word is an integer if it is one of 0 .. INTEGERS - 1 in digits without a leading zero; so equal integers are equal words.
 */
enum { INTEGERS = 1 << 26, INTEGER_DIGITS = 8 };
#define NO_INTEGER UINT32_MAX

/* Returns the integer that the word is; NO_INTEGER if it is not one. */
static inline uint32_t integer_of(const char *word, uint64_t length) {
    uint32_t value = 0;
    if (length > INTEGER_DIGITS || (*word == '0' && length > 1)) return NO_INTEGER;
    for (uint64_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)word[i] - '0';
        if (digit > 9) return NO_INTEGER;
        value = value * 10 + digit;
    }
    return value < INTEGERS ? value : NO_INTEGER;
}

/* ---- integers after a prefix ---- */

/* Ids often consist of a prefix, which all ids share, and an integer: user17 or Q42. Words that begin with this prefix are then counted as
 * integers, too. A prefix has at most PREFIX_MOST bytes and does not end in a digit, so there is only one way to split a word. */
enum { PREFIX_MOST = 7 };
struct integer_prefix {
    uint64_t bytes, mask; /* bytes: the prefix, then zeros; mask: 0xff for each byte of the prefix */
    uint64_t length;
    int known;            /* 1: the prefix is known; it may be empty */
};

/* Does the same as integer_of(), after the prefix. Reads 8 bytes from the word's first byte on. */
static inline uint32_t integer_behind(const struct integer_prefix *prefix, const char *word, uint64_t length) {
    uint64_t head;
    memcpy(&head, word, sizeof head);
    if (length <= prefix->length || ((head ^ prefix->bytes) & prefix->mask)) return NO_INTEGER;
    return integer_of(word + prefix->length, length - prefix->length);
}

/* ---- integers to rows ---- */

struct integer_rows {
    uint32_t *rows; /* [size] row of each integer; WORDS_ABSENT: no row */
    uint64_t size;  /* 0: there is no table, because few words are integers */
};
int integer_rows_make(struct integer_rows *rows, const struct vocab *vocab);
void integer_rows_release(struct integer_rows *rows); /* may be called on a struct of zeros */

/* ---- counting by several threads ---- */

struct integer_count {
    _Atomic uint64_t count;
    _Atomic uint64_t after; /* the bitwise complement of the corpus offset at which the integer first occurs; 0: it does not occur */
};
struct integer_counts {
    struct integer_count *counts; /* [size] */
    uint64_t size;
    _Atomic uint64_t prefix;      /* the prefix of all counted integers: its bytes, and 1 + its length in the highest byte; 0: not chosen yet */
};
/* If the word consists of a prefix and an integer, and no prefix is chosen yet, chooses this one. Returns the chosen prefix; its `known` is 0 if
 * there is none yet. */
struct integer_prefix integer_counts_prefix(struct integer_counts *counts, const char *word, uint64_t length);
void integer_counts_release(struct integer_counts *counts);

/* Counts an integer that occurs at byte `place` of the corpus. alone = 1: no other thread is counting. */
static inline void integer_counts_add(struct integer_counts *counts, uint32_t integer, uint64_t place, int alone) {
    struct integer_count *met = &counts->counts[integer];
    uint64_t after = atomic_load_explicit(&met->after, memory_order_relaxed);
    if (alone) atomic_store_explicit(&met->count, atomic_load_explicit(&met->count, memory_order_relaxed) + 1, memory_order_relaxed);
    else atomic_fetch_add_explicit(&met->count, 1, memory_order_relaxed);
    while (after < ~place && !atomic_compare_exchange_weak_explicit(&met->after, &after, ~place, memory_order_relaxed,
                                                                    memory_order_relaxed))
        continue;
}

/* tally: a thread's own hash table for the words that it met first: their numbers, and how often the thread has read them. From time to time these
 * counts are added to the totals and set to 0. A full tally accepts no word until it is doubled or emptied.
 *
 * Words of up to 16 bytes are compared by two loads, without reading their text. The words' numbers come from a larger table, which all threads share
 * and the owner of the tally keeps (word_counts.c).
 */
/* Words of more than TALLY_LONGEST bytes are never added. */
enum { TALLY_SLOTS = 1 << 16, TALLY_SLOTS_MOST = 1 << 21, TALLY_PADDING = 16, TALLY_LONGEST = 128 };

/* A slot of the hash table: a word, or free. */
struct tally_slot {
    uint64_t key[2]; /* the word's bytes, then zeros; for a word of more than 16 bytes, its hash */
    uint32_t end;    /* 1 + length of the word in bytes; 0: the slot is free */
    uint32_t text;   /* index in `texts` of a word of more than 16 bytes */
    uint32_t count;  /* how often the thread has read the word since the count was last set to 0 */
    uint32_t number; /* number of the word in the table that all threads share */
};

struct tally {
    struct words texts; /* texts of words of more than 16 bytes (without a hash table) */
    uint64_t size;      /* number of words */
    struct tally_slot *slots; /* [slot_count] at most half are used; slot_count is a power of two */
    uint64_t slot_count, slots_most;
};

/* Opens an empty tally of TALLY_SLOTS slots, which may grow to `most` bytes. Returns 0, or -1 after fail(). */
int tally_open(struct tally *tally, uint64_t most);
void tally_close(struct tally *tally); /* may be called on a struct of zeros */
void tally_clear(struct tally *tally); /* removes all words */
int tally_double(struct tally *tally); /* returns 1, or 0 if the tally is at its largest size or memory is short */

static inline uint64_t tally_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A word that is looked up. */
struct tally_query {
    const char *word;
    uint64_t length, key[2], hash; /* key: as in tally_slot */
};

/* Makes a query. Reads TALLY_PADDING bytes from the word's first on. */
static inline struct tally_query tally_ask(const char *word, uint64_t length) {
    static const uint64_t masks[] = {0,           0xff,         0xffff,         0xffffff,        0xffffffff,
                                     0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};
    struct tally_query query = {.word = word, .length = length};
    if (__builtin_expect(length <= 16, 1)) {
        memcpy(query.key, word, 16);
        query.key[0] &= masks[length < 8 ? length : 8];
        query.key[1] &= masks[length < 8 ? 0 : length - 8];
    } else {
        query.key[0] = words_hash(word, length);
    }
    query.hash = tally_mix(query.key[0] ^ 0x9E3779B97F4A7C15u, query.key[1] ^ (length + 0xA0761D6478BD642Fu));
    return query;
}

static inline struct tally_slot *tally_home(struct tally *tally, const struct tally_query *query) {
    return &tally->slots[query->hash >> 32 & (tally->slot_count - 1)];
}

/* Returns the slot of the word, or, if it is not in the tally, the free slot for it. */
static inline struct tally_slot *tally_find(struct tally *tally, const struct tally_query *query) {
    struct tally_slot *slot = tally_home(tally, query);
    for (; slot->end; slot = slot + 1 < tally->slots + tally->slot_count ? slot + 1 : tally->slots)
        if (slot->key[0] == query->key[0] && slot->key[1] == query->key[1] && slot->end == query->length + 1 &&
            (query->length <= 16 || !memcmp(words_get(&tally->texts, slot->text, NULL), query->word, query->length)))
            break;
    return slot;
}

/* Adds a word with its number and the count 0; does nothing if it is in the tally already or too long, or if the tally is full. Returns 0, or -1
 * after fail(). */
int tally_add(struct tally *tally, const struct tally_query *query, uint32_t number);
static inline int tally_is_full(const struct tally *tally) {
    return tally->size >= tally->slot_count / 2;
}

enum { WORD_SHARDS = 64, WORD_SHARD_BITS = 6 }; /* the highest 6 bits of a word's hash are its shard's number */

/* How often a word occurs, and where first. Packed into 12 bytes, since there is one for each different word. */
struct __attribute__((packed)) word_count {
    uint64_t count : 48;
    uint64_t first : 48; /* byte of the corpus at which the word first occurs */
};

/* The words whose hashes have the same highest 6 bits. */
struct word_shard {
    pthread_mutex_t lock;
    struct words words;
    struct word_count *counts; /* [words.size], indexed by a word's number in `words` */
    uint64_t counts_capacity;
};

/* All words of one kind: words of the data, or names of lists. */
struct gathered_words;
struct word_counts {
    struct word_shard shards[WORD_SHARDS];
    struct integer_counts integers; /* the words that are integers (with the prefix), if integers are below the table's size */
    struct gathered_words *lent; /* gathered words whose hash table the first shard borrows until word_counts_release(); NULL: none */
};

/* The request of a count: which words are counted, and where their numbers are written. */
struct word_counts_wanted {
    struct word_counts *items, *names; /* results, zeroed by the caller; NULL: words of this kind are not counted and get no number */
    const struct vocab *given;  /* if not NULL: items are not counted; the number of an item is its row in this vocabulary */
    struct numbered *numbered;  /* opened; NULL: no numbers are written */
};

/* Reads the corpus from its beginning and counts its words, by options->format and min_rating. With order = given, every counted item must be a
 * number. Returns 0, or -1 after fail(). */
int word_counts_read(const struct word_counts_wanted *wanted, struct corpus *corpus, const struct corpus_options *options,
                     struct pool *pool);
void word_counts_release(struct word_counts *counts); /* may be called on a struct of zeros */

/* Returns one more than the highest number of a word. */
uint64_t word_counts_numbers(const struct word_counts *counts);
/* A word has an index `in_shard` in its shard, and a number among all words. word_counts_number() computes the number from the shard and the
 * index; the two functions after it do the reverse. The words of `lent` are all in shard 0, where index and number are the same. */
static inline uint64_t word_counts_number(const struct word_counts *counts, uint64_t shard, uint64_t in_shard) {
    return counts->lent ? in_shard : counts->integers.size + (in_shard << WORD_SHARD_BITS | shard);
}
static inline const struct word_shard *word_counts_shard(const struct word_counts *counts, uint64_t number) {
    return &counts->shards[counts->lent ? 0 : (number - counts->integers.size) & (WORD_SHARDS - 1)];
}
static inline uint64_t word_counts_in_shard(const struct word_counts *counts, uint64_t number) {
    return counts->lent ? number : (number - counts->integers.size) >> WORD_SHARD_BITS;
}
/* Returns 1 if a word has this number: an integer of the table (whether it occurs or not), or a word in a shard. */
static inline int word_counts_has(const struct word_counts *counts, uint64_t number) {
    return number < counts->integers.size || word_counts_in_shard(counts, number) < word_counts_shard(counts, number)->words.size;
}
/* Returns the word with this number; an integer's digits are written into `digits`. */
enum { WORD_DIGITS = 24 };
const char *word_counts_word(const struct word_counts *counts, uint64_t number, char digits[WORD_DIGITS], uint64_t *length);

#endif
