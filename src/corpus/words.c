#include "words.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SLOTS = 1024 };

uint64_t words_hash(const char *word, uint64_t length) {
    return XXH3_64bits(word, length);
}

/* ---- slots ---- */

/* Returns the slot at which the search for a tag begins. It rises with the tag; so a table may have any number of slots, and enlarging it reads
 * and writes memory sequentially. */
static inline uint64_t home_of(const struct words *words, uint32_t tag) {
    return (uint64_t)((unsigned __int128)tag * words->slot_count >> 32);
}

static inline uint64_t slot_after(const struct words *words, uint64_t i) {
    return i + 1 < words->slot_count ? i + 1 : 0;
}

/* Returns the first slot, from slot i on, that is free or contains this tag. */
static inline uint64_t probe(const struct words *words, uint32_t tag, uint64_t i) {
    while (words->slots[i].number && words->slots[i].tag != tag) i = slot_after(words, i);
    return i;
}

static inline int is_word(const struct words *words, uint64_t number, const char *word, uint64_t length) {
    uint64_t known_length;
    const char *known = words_get(words, number, &known_length);
    return known_length == length && !memcmp(known, word, length);
}

/* Returns the slot of the word, or, if the table does not contain it, the free slot for it. */
static struct word_slot *find_slot(const struct words *words, uint64_t hash, const char *word, uint64_t length) {
    uint32_t tag = (uint32_t)hash;
    uint64_t i = probe(words, tag, home_of(words, tag));
    while (words->slots[i].number && !is_word(words, words->slots[i].number - 1, word, length))
        i = probe(words, tag, slot_after(words, i));
    return &words->slots[i];
}

static int open_slots(struct words *words, uint64_t count) {
    words->slots = mem_zalloc(count, sizeof *words->slots, "the index of words");
    words->slot_count = words->slots ? count : 0;
    return words->slots ? 0 : -1;
}

/* Enlarges the table by half: slots are a third of the memory while words are counted, and after doubling more than half of them would be free. */
static int grow_slots(struct words *words) {
    struct words old = *words;
    if (open_slots(words, old.slot_count ? old.slot_count / 2 * 3 : FIRST_SLOTS)) {
        *words = old;
        return -1;
    }
    for (uint64_t i = 0; i < old.slot_count; i++) {
        if (!old.slots[i].number) continue;
        uint64_t to = home_of(words, old.slots[i].tag);
        while (words->slots[to].number) to = slot_after(words, to);
        words->slots[to] = old.slots[i];
    }
    free(old.slots);
    return 0;
}

/* ---- one word ---- */

void words_append(struct words *words, const char *word, uint64_t length) {
    words_set_offset(words, words->size++, words->used);
    memcpy(words->bytes + words->used, word, length);
    words->bytes[words->used + length] = 0;
    words->used += length + 1;
    words_set_offset(words, words->size, words->used);
}

static int check_bytes(uint64_t bytes) {
    return bytes >> 8 * WORDS_OFFSET ? fail("the words have %" PRIu64 " bytes in all, more than 2^40", bytes) : 0;
}

int words_put(struct words *words, const char *word, uint64_t length) {
    if (words->size >= WORDS_MOST) return fail("more than %u different words in all", WORDS_MOST);
    if (check_bytes(words->used + length + 1) ||
        mem_grow(&words->offsets, &words->offsets_capacity, words->size + 2, WORDS_OFFSET, "the words' places") ||
        mem_grow(&words->bytes, &words->bytes_capacity, words->used + length + 1, 1, "the words"))
        return -1;
    words_append(words, word, length);
    return 0;
}

int64_t words_add(struct words *words, uint64_t hash, const char *word, uint64_t length) {
    if ((words->size + 1) * 4 > words->slot_count * 3 && grow_slots(words)) return -1;
    struct word_slot *slot = find_slot(words, hash, word, length);
    if (slot->number) return (int64_t)slot->number - 1;
    if (words_put(words, word, length)) return -1;
    *slot = (struct word_slot){(uint32_t)hash, (uint32_t)words->size};
    return (int64_t)words->size - 1;
}

int64_t words_find(const struct words *words, uint64_t hash, const char *word, uint64_t length) {
    return words->slot_count ? (int64_t)find_slot(words, hash, word, length)->number - 1 : -1;
}

/* ---- batches of look-ups ---- */

void words_ask(const struct words *words, struct word_query *query, uint64_t hash, const char *word, uint64_t length) {
    *query = (struct word_query){word, length, hash};
    if (words->slots) __builtin_prefetch(&words->slots[home_of(words, (uint32_t)hash)]);
}

void words_find_batch(const struct words *words, const struct word_query *queries, unsigned count, uint32_t *numbers) {
    if (!words->slot_count) {
        for (unsigned i = 0; i < count; i++) numbers[i] = WORDS_ABSENT;
        return;
    }
    /* A free slot has number 0, and 0u - 1 is WORDS_ABSENT. */
    for (unsigned i = 0; i < count; i++) {
        uint32_t tag = (uint32_t)queries[i].hash;
        numbers[i] = words->slots[probe(words, tag, home_of(words, tag))].number - 1;
        if (numbers[i] != WORDS_ABSENT) __builtin_prefetch(&words->offsets[(uint64_t)numbers[i] * WORDS_OFFSET]);
    }
    for (unsigned i = 0; i < count; i++)
        if (numbers[i] != WORDS_ABSENT) __builtin_prefetch(&words->bytes[words_offset(words, numbers[i])]);
    for (unsigned i = 0; i < count; i++) {
        const struct word_query *query = &queries[i];
        if (numbers[i] != WORDS_ABSENT && !is_word(words, numbers[i], query->word, query->length))
            numbers[i] = find_slot(words, query->hash, query->word, query->length)->number - 1;
    }
}

/* ---- building a finished table ---- */

int words_reserve(struct words *words, uint64_t size, uint64_t bytes) {
    if (check_bytes(bytes) || mem_reserve(&words->offsets, &words->offsets_capacity, size + 1, WORDS_OFFSET, "the words' places"))
        return -1;
    return mem_reserve(&words->bytes, &words->bytes_capacity, bytes, 1, "the words");
}

int words_place(struct words *words, uint64_t size) {
    uint64_t used = 0;
    for (uint64_t n = 0; n < size; n++) {
        uint64_t bytes = words_offset(words, n);
        words_set_offset(words, n, used);
        used += bytes;
    }
    words_set_offset(words, size, used);
    if (check_bytes(used) || mem_reserve(&words->bytes, &words->bytes_capacity, used, 1, "the words")) return -1;
    words->size = size;
    words->used = used;
    return 0;
}

/* How many words ahead a word's slot is prefetched; without this each word would wait for memory. */
enum { AHEAD = 32, GRAIN = 1 << 14 };

/* Adds word `number` to the hash table while other threads add other words. If an equal word is there already, adds nothing and returns that
 * word's number, otherwise returns `number`. No lock is needed: a used slot never changes, and of two equal words, which try the same slots, one
 * finds the other. */
static uint64_t enter(struct words *words, const struct word_query *query, uint64_t number) {
    const struct word_slot mine = {(uint32_t)query->hash, (uint32_t)(number + 1)};
    for (uint64_t i = home_of(words, mine.tag);; i = slot_after(words, i)) {
        struct word_slot found;
        __atomic_load(&words->slots[i], &found, __ATOMIC_RELAXED);
        if (!found.number && __atomic_compare_exchange(&words->slots[i], &found, (struct word_slot *)&mine, 0, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
            return number;
        if (found.tag == mine.tag && is_word(words, found.number - 1, query->word, query->length)) return found.number - 1;
    }
}

/* State of building the hash table. The workers share it. */
struct indexing {
    struct words *words;
    _Atomic uint64_t next;
    _Atomic int twice;     /* 1: there are equal words */
};

/* Adds words first .. end - 1. Returns 1 at the first word that equals one already added: *again is its number, *met that of the other. */
static int enter_range(struct words *words, uint64_t first, uint64_t end, uint64_t *met, uint64_t *again) {
    struct word_query queries[AHEAD];
    for (uint64_t n = first; n < end + AHEAD; n++) {
        struct word_query *query = &queries[n % AHEAD];
        uint64_t length;
        *again = n - AHEAD;
        if (n >= first + AHEAD && (*met = enter(words, query, *again)) != *again) return 1;
        if (n < end) {
            const char *word = words_get(words, n, &length);
            words_ask(words, query, words_hash(word, length), word, length);
        }
    }
    return 0;
}

static int enter_words(void *context, unsigned worker) {
    struct indexing *indexing = context;
    uint64_t first, end, met, again;
    while (!indexing->twice && pool_take(&indexing->next, indexing->words->size, GRAIN, &first, &end)) {
        if (interrupt_check()) return -1;
        if (enter_range(indexing->words, first, end, &met, &again)) indexing->twice = 1;
    }
    return 0;
}

static uint64_t index_slots(uint64_t size) {
    return size / 4 * 5 + 16;
}

uint64_t words_index_bytes(uint64_t size) {
    return index_slots(size) * sizeof(struct word_slot);
}

int words_index(struct words *words, struct pool *pool, uint64_t *first, uint64_t *again) {
    struct indexing indexing = {.words = words};
    words_drop_index(words);
    if (open_slots(words, index_slots(words->size))) return -1;
    mem_prefer_huge(words->slots, words->slot_count * sizeof *words->slots);
    if (pool_run(pool, enter_words, &indexing)) return -1;
    if (!indexing.twice) return 0;
    /* Threads have found two equal words, but which pair depends on chance; so one thread now looks for the first pair. */
    memset(words->slots, 0, words->slot_count * sizeof *words->slots);
    return enter_range(words, 0, words->size, first, again);
}

void words_drop_index(struct words *words) {
    free(words->slots);
    words->slots = NULL;
    words->slot_count = 0;
}

void words_clear(struct words *words) {
    words->size = words->used = 0;
    if (words->slot_count) memset(words->slots, 0, words->slot_count * sizeof *words->slots);
}

void words_release(struct words *words) {
    mem_free(words->slots, words->offsets, words->bytes);
    *words = (struct words){0};
}

uint64_t words_bytes(const struct words *words) {
    return (words->size + 1) * WORDS_OFFSET + words->used + words->slot_count * sizeof *words->slots;
}
