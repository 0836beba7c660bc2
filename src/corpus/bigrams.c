#include "bigrams.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <stdlib.h>
#include <xxhash.h>

enum { SHARD_BITS = 6, FIRST_SLOTS = 1024, AHEAD = 16 };
static const uint64_t all_hashes = (uint64_t)1 << 32;

struct bigram bigram_of_text(const char *text, uint64_t length) {
    XXH128_hash_t hash = XXH3_128bits(text, length);
    return (struct bigram){hash.low64, (uint32_t)hash.high64 | 1};
}

/* Returns the hash of a bigram, by MurmurHash3's finalizer. It is used, too, for bigrams that are identified by their text's
 * hash. */
static inline uint64_t hash_of(struct bigram bigram) {
    uint64_t hash = bigram.key ^ bigram.tag;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

static inline unsigned shard_of(uint64_t hash) {
    return (unsigned)(hash >> (64 - SHARD_BITS));
}

/* Returns the 32 bits of the hash after the shard's bits. They decide in which sweep a bigram is counted, and at which slot the
 * search for it begins. */
static inline uint64_t order_of(uint64_t hash) {
    return hash << SHARD_BITS >> 32;
}

void bigrams_init(struct bigrams *bigrams, uint64_t memory) {
    uint64_t most = memory / BIGRAM_SHARDS / sizeof(struct bigram_slot);
    *bigrams = (struct bigrams){.memory = memory, .shard_most = most > 8 ? most : 8};
    for (int s = 0; s < BIGRAM_SHARDS; s++) {
        pthread_mutex_init(&bigrams->shards[s].lock, NULL);
        bigrams->shards[s].high = all_hashes;
    }
}

void bigrams_release(struct bigrams *bigrams) {
    for (int s = 0; s < BIGRAM_SHARDS; s++) {
        if (!bigrams->shard_most) return;
        free(bigrams->shards[s].slots);
        pthread_mutex_destroy(&bigrams->shards[s].lock);
    }
    *bigrams = (struct bigrams){.memory = 0};
}

/* ---- one shard ---- */

static inline uint64_t home_of(const struct bigram_shard *shard, uint64_t hash) {
    return order_of(hash) * shard->slot_count >> 32;
}

/* Returns the slot of the bigram; if the table lacks it, the free slot in which to store it. */
static inline struct bigram_slot *find_slot(const struct bigram_shard *shard, struct bigram bigram, uint64_t hash) {
    uint64_t i = home_of(shard, hash);
    while (shard->slots[i].count && (shard->slots[i].key != bigram.key || shard->slots[i].tag != bigram.tag))
        i = i + 1 < shard->slot_count ? i + 1 : 0;
    return &shard->slots[i];
}

/* Replaces the shard's table by one of `slots` slots. Keeps only bigrams that occur at least `least` times and whose order_of()
 * is below `high`. */
static int move_slots(struct bigram_shard *shard, uint64_t slots, uint64_t high, uint32_t least) {
    struct bigram_shard moved = {.slots = mem_zalloc(slots, sizeof *moved.slots, "the bigrams' counts"), .slot_count = slots};
    if (!moved.slots) return -1;
    for (uint64_t i = 0; i < shard->slot_count; i++) {
        struct bigram_slot slot = shard->slots[i];
        struct bigram bigram = {slot.key, slot.tag};
        uint64_t hash = slot.count ? hash_of(bigram) : 0;
        if (slot.count < least || !slot.count || order_of(hash) >= high) continue;
        *find_slot(&moved, bigram, hash) = slot;
        moved.size++;
    }
    free(shard->slots);
    shard->slots = moved.slots;
    shard->slot_count = slots;
    shard->size = moved.size;
    return 0;
}

static int refuse_memory(const struct bigrams *bigrams) {
    char bytes[TEXT_BYTES];
    return fail("the frequent bigrams of the text do not fit into %s (phrases.memory); raise it, or phrases.min_count",
                text_of_bytes(bytes, bigrams->memory));
}

/* Makes a free slot. It enlarges the table as long as memory allows; then it halves the range of hashes that this sweep counts. */
static int make_place(const struct bigrams *bigrams, struct bigram_shard *shard) {
    uint64_t slots = shard->slot_count ? shard->slot_count * 2 : FIRST_SLOTS, most = bigrams->shard_most;
    if (slots > most) slots = most;
    if (slots > shard->slot_count) return move_slots(shard, slots, shard->high, 1);
    do {
        shard->high = (shard->low + shard->high) / 2;
        if (shard->high <= shard->low) return refuse_memory(bigrams);
        if (move_slots(shard, slots, shard->high, 1)) return -1;
    } while (shard->size * 4 >= slots * 3);
    return 0;
}

static inline int is_full(const struct bigram_shard *shard) {
    return shard->size * 4 >= shard->slot_count * 3;
}

/* Adds `met` to the count of a bigram, unless the bigram is counted in another sweep. */
static int add_one(const struct bigrams *bigrams, struct bigram_shard *shard, struct bigram bigram, uint64_t hash, uint32_t met,
                   uint32_t kept) {
    uint64_t order = order_of(hash);
    if (order < shard->low || order >= shard->high) return 0;
    if (is_full(shard) && make_place(bigrams, shard)) return -1;
    if (order >= shard->high) return 0;
    struct bigram_slot *slot = find_slot(shard, bigram, hash);
    uint64_t count = (uint64_t)(slot->count & BIGRAM_MOST) + met;
    shard->size += !slot->count;
    *slot = (struct bigram_slot){bigram.key, bigram.tag,
                                 (uint32_t)(count < BIGRAM_MOST ? count : BIGRAM_MOST) | (slot->count & BIGRAM_KEPT) | kept};
    return 0;
}

/* A bigram of a batch, with its hash; the batch is sorted by shard. */
struct sorted {
    struct bigram bigram;
    uint32_t count;
    uint64_t hash;
};

static int add_to_shard(struct bigrams *bigrams, struct bigram_shard *shard, const struct sorted *sorted, uint32_t count,
                        uint32_t kept) {
    int result = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint32_t i = 0; i < count && !result; i++) {
        if (i + AHEAD < count && shard->slots) __builtin_prefetch(&shard->slots[home_of(shard, sorted[i + AHEAD].hash)], 1);
        result = add_one(bigrams, shard, sorted[i].bigram, sorted[i].hash, sorted[i].count, kept);
    }
    pthread_mutex_unlock(&shard->lock);
    return result;
}

/* ---- all shards ---- */

int bigrams_add(struct bigrams *bigrams, const struct bigram *met, const uint32_t *counts, uint32_t count, int kept) {
    uint32_t starts[BIGRAM_SHARDS + 1] = {0}, next[BIGRAM_SHARDS];
    struct sorted *sorted = mem_alloc(count ? count : 1, sizeof *sorted, "bigrams");
    int result = sorted ? 0 : -1;
    if (!sorted) return -1;
    for (uint32_t i = 0; i < count; i++) starts[shard_of(hash_of(met[i])) + 1]++;
    for (int s = 0; s < BIGRAM_SHARDS; s++) {
        next[s] = starts[s];
        starts[s + 1] += starts[s];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = hash_of(met[i]);
        sorted[next[shard_of(hash)]++] = (struct sorted){met[i], counts ? counts[i] : 1, hash};
    }
    for (int s = 0; s < BIGRAM_SHARDS && !result; s++)
        result = add_to_shard(bigrams, &bigrams->shards[s], sorted + starts[s], starts[s + 1] - starts[s], kept ? BIGRAM_KEPT : 0);
    free(sorted);
    return result;
}

/* Returns the number of bigrams that were first counted in this sweep. */
static uint64_t counted(const struct bigram_shard *shard) {
    uint64_t size = 0;
    for (uint64_t i = 0; i < shard->slot_count; i++) {
        const struct bigram_slot *slot = &shard->slots[i];
        size += slot->count && order_of(hash_of((struct bigram){slot->key, slot->tag})) >= shard->low;
    }
    return size;
}

int bigrams_next_sweep(struct bigrams *bigrams, uint32_t least) {
    int more = 0, result = 0;
    for (int s = 0; s < BIGRAM_SHARDS; s++) {
        struct bigram_shard *shard = &bigrams->shards[s];
        if (shard->low < all_hashes) bigrams->distinct += counted(shard);
        shard->low = shard->high;
        shard->high = all_hashes;
        more |= shard->low < all_hashes;
    }
    for (int s = 0; s < BIGRAM_SHARDS && more && !result; s++) {
        struct bigram_shard *shard = &bigrams->shards[s];
        if (shard->slot_count) result = move_slots(shard, shard->slot_count, all_hashes, least);
        if (!result && shard->slot_count && is_full(shard) && shard->slot_count == bigrams->shard_most)
            result = refuse_memory(bigrams);
    }
    return result ? -1 : more;
}

int bigrams_filter(struct bigrams *bigrams, bigrams_keeps *keeps, void *user) {
    for (int s = 0; s < BIGRAM_SHARDS; s++) {
        struct bigram_shard *shard = &bigrams->shards[s];
        uint64_t left = 0;
        for (uint64_t i = 0; i < shard->slot_count; i++) {
            struct bigram_slot *slot = &shard->slots[i];
            if (slot->count && !keeps(user, (struct bigram){slot->key, slot->tag}, slot->count & BIGRAM_MOST)) slot->count = 0;
            left += slot->count > 0;
        }
        if (shard->slot_count && move_slots(shard, left * 2 + 8, all_hashes, 1)) return -1;
    }
    return 0;
}

uint32_t bigrams_count(const struct bigrams *bigrams, struct bigram bigram) {
    uint64_t hash = hash_of(bigram);
    const struct bigram_shard *shard = &bigrams->shards[shard_of(hash)];
    return shard->slot_count ? find_slot(shard, bigram, hash)->count & BIGRAM_MOST : 0;
}
