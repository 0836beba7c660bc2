#define _GNU_SOURCE
#include "phrases.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "corpus.h"
#include "numbered.h"
#include "vocab.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

int phrase_thresholds(const char *text, double thresholds[PHRASE_PASSES]) {
    int count = 0;
    for (const char *at = text;; at++) {
        char one[32] = "";
        size_t length = strcspn(at, ",");
        if (count == PHRASE_PASSES || length >= sizeof one) return -1;
        memcpy(one, at, length);
        if (text_real(text_strip(one), &thresholds[count++])) return -1;
        at += length;
        if (!*at) return count;
    }
}

static const struct {
    double usual, lowest, highest;
    const char *wanted;
} thresholds_of[] = {[PHRASES_WORD2PHRASE] = {100, 0, INFINITY, "at least 0 with phrases.score = word2phrase"},
                     [PHRASES_DEFAULT] = {10, 5e-324, INFINITY, "above 0 with phrases.score = default"},
                     [PHRASES_NPMI] = {0.5, -1, 1, "from -1 to 1 with phrases.score = npmi"}};

/* Stores the threshold of each pass. Returns the number of passes, or -1 after fail() if the options contradict each other. */
static int phrase_passes(const struct phrase_options *options, double thresholds[PHRASE_PASSES]) {
    int given = 1;
    thresholds[0] = thresholds_of[options->score].usual;
    if (strcmp(options->threshold, "auto"))
        given = phrase_thresholds(options->threshold, thresholds); /* cannot fail: the configuration has already refused other texts */
    for (int i = 0; i < given; i++)
        if (!(thresholds[i] >= thresholds_of[options->score].lowest && thresholds[i] <= thresholds_of[options->score].highest))
            return fail("phrases.threshold = %g: wanted a number %s", thresholds[i], thresholds_of[options->score].wanted);
    if (options->passes == UINT64_MAX) return given;
    if (options->passes < (uint64_t)given)
        return fail("phrases.threshold has %d numbers, one for each pass, and phrases.passes = %" PRIu64, given, options->passes);
    for (uint64_t i = (uint64_t)given; i < options->passes; i++) thresholds[i] = thresholds[given - 1];
    return (int)options->passes;
}

double phrase_score(const struct phrase_options *options, const struct phrase_totals *totals, uint64_t a, uint64_t b, uint64_t ab) {
    uint64_t least = options->min_count;
    if (options->score == PHRASES_DEFAULT)
        return ((double)ab - (double)least) / (double)((unsigned __int128)a * b) * (double)totals->distinct;
    if (options->score == PHRASES_WORD2PHRASE)
        return a < least || b < least || ab < least ? 0 : (float)(ab - least) / (float)a / (float)b * (float)totals->words;
    double words = (double)totals->words, together = (double)ab / words;
    return ab < least ? -INFINITY : log(together / ((double)a / words * ((double)b / words))) / -log(together);
}

/* Maps `count` numbers from the file `fd`, or new memory for them if `fd` is -1. The caller must call phrase_tokens_release() in any case. */
static int map_tokens(struct phrase_tokens *tokens, int fd, uint64_t count) {
    uint64_t bytes = count * sizeof *tokens->ids;
    *tokens = (struct phrase_tokens){NULL, 0, 0};
    if (!bytes) return 0;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) return fail("cannot map %" PRIu64 " bytes of the text's words: %s", bytes, strerror(errno));
    *tokens = (struct phrase_tokens){data, count, bytes};
    return 0;
}

static void phrase_tokens_release(struct phrase_tokens *tokens) {
    if (tokens->ids) munmap(tokens->ids, tokens->mapped);
    *tokens = (struct phrase_tokens){NULL, 0, 0};
}

enum { SHARD_BITS = 6, FIRST_SLOTS = 1024, AHEAD = 16 };
static const uint64_t all_hashes = (uint64_t)1 << 32;

struct bigram bigram_of_text(const char *text, uint64_t length) {
    XXH128_hash_t hash = XXH3_128bits(text, length);
    return (struct bigram){hash.low64, (uint32_t)hash.high64 | 1};
}

/* Returns the hash of a bigram, by MurmurHash3's finalizer; also of a bigram that is identified by its text's hash. */
static inline uint64_t hash_of(struct bigram bigram) {
    uint64_t hash = bigram.key ^ bigram.tag;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

static inline unsigned shard_of(uint64_t hash) {
    return (unsigned)(hash >> (64 - SHARD_BITS));
}

/* Returns the 32 bits of the hash after the bits that choose the shard. They decide in which sweep a bigram is counted, and at which slot the
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

/* Returns the slot of the bigram, or, if the table does not contain it, the free slot for it. */
static inline struct bigram_slot *find_slot(const struct bigram_shard *shard, struct bigram bigram, uint64_t hash) {
    uint64_t i = home_of(shard, hash);
    while (shard->slots[i].count && (shard->slots[i].key != bigram.key || shard->slots[i].tag != bigram.tag))
        i = i + 1 < shard->slot_count ? i + 1 : 0;
    return &shard->slots[i];
}

/* Replaces the shard's table by one of `slots` slots. Keeps only bigrams that occur at least `least` times and whose order_of() is below `high`. */
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

/* Called when a table is full. Enlarges the table as long as memory allows; then halves the range of hashes that this sweep counts. */
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

/* Adds `met` to the count of a bigram, unless another sweep counts that bigram. */
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

/* A bigram of a batch and its hash. Batches are sorted by shard. */
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
    OWNED struct sorted *sorted = mem_alloc(count ? count : 1, sizeof *sorted, "bigrams");
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

enum word_flag {
    CONNECTOR = 1, /* word flag: may be within a phrase, but neither begins nor ends one */
    COMPOUND = 2,  /* word flag: contains a byte of the delimiter, so the text of a bigram may equal this word */
    RARE = 4,      /* occurs fewer than phrases.min_count times */
    BEGINS = 8,    /* word flag: first word of at least one phrase of two words */
    ENDS = 16,     /* word flag: last word of at least one phrase of two words */
};

/* State of joining the words of one text. */
struct joining {
    const struct phrase_options *options;
    double threshold; /* threshold of the current pass */
    int across;       /* 1: bigrams are counted across line ends */
    struct phrase_tokens tokens;
    struct vocab vocab; /* only vocab.words is used; phrases are added to it */
    struct words connectors;
    uint64_t *counts; /* [vocab.words.size] */
    uint8_t *flags;   /* [vocab.words.size]: bits of enum word_flag */
    uint64_t counts_capacity, flags_capacity;
    struct phrase_totals totals;
    struct bigrams bigrams;
    int sweep;
    _Atomic uint64_t next;  /* index of the next token that a worker takes for counting */
    _Atomic uint64_t alone; /* number of distinct bigrams with a word that occurs once; they are not stored in `bigrams` */
};

/* The text of a bigram. */
struct joined {
    char *text;
    uint64_t length, capacity;
};

#define NOWHERE UINT64_MAX

/* ---- bigrams and their texts ---- */

static int append(struct joined *joined, const char *text, uint64_t length) {
    if (mem_grow(&joined->text, &joined->capacity, joined->length + length + 1, 1, "a phrase")) return -1;
    memcpy(joined->text + joined->length, text, length);
    joined->length += length;
    return 0;
}

/* Writes the text of a bigram: the words of tokens begin .. end, with the delimiter between them. */
static int write_text(const struct joining *j, uint64_t begin, uint64_t end, struct joined *joined) {
    uint64_t length;
    joined->length = 0;
    for (uint64_t i = begin; i <= end; i++) {
        if (j->tokens.ids[i] == PHRASE_LINE_END) continue;
        const char *word = words_get(&j->vocab.words, j->tokens.ids[i], &length);
        if ((i > begin && append(joined, j->options->delimiter, strlen(j->options->delimiter))) || append(joined, word, length))
            return -1;
    }
    return 0;
}

/* Returns 1 if the two words at `begin` and `end`, which follow each other, can be counted as the pair of their numbers: no connector is between
 * them, and neither contains the delimiter, so no other words give the same text. */
static inline int is_simple(const struct joining *j, uint64_t begin, uint64_t end) {
    const uint32_t *ids = j->tokens.ids;
    return (j->across || end == begin + 1) && !((j->flags[ids[begin]] | j->flags[ids[end]]) & COMPOUND);
}

/* Stores the key of the bigram from `begin` to `end`. Returns 0, or -1 after fail(). */
static inline int name_bigram(const struct joining *j, uint64_t begin, uint64_t end, struct joined *joined,
                              struct bigram *bigram) {
    if (is_simple(j, begin, end)) {
        *bigram = bigram_of_words(j->tokens.ids[begin], j->tokens.ids[end]);
        return 0;
    }
    if (write_text(j, begin, end, joined)) return -1;
    *bigram = bigram_of_text(joined->text, joined->length);
    return 0;
}

/* Returns the key of the bigram whose text equals a compound word. If the word splits at a delimiter into two words that do not contain the
 * delimiter, the key is the pair of their numbers, which are stored in parts[]; otherwise parts[] is -1, -1. */
static struct bigram bigram_of_compound(const struct joining *j, uint32_t id, int64_t parts[2]) {
    uint64_t length, skip = strlen(j->options->delimiter);
    const char *word = words_get(&j->vocab.words, id, &length), *at = memmem(word, length, j->options->delimiter, skip);
    parts[0] = parts[1] = -1;
    if (at) {
        uint64_t before = (uint64_t)(at - word), after = length - before - skip;
        parts[0] = words_find(&j->vocab.words, words_hash(word, before), word, before);
        parts[1] = words_find(&j->vocab.words, words_hash(at + skip, after), at + skip, after);
        if (parts[0] >= 0 && parts[1] >= 0 && !((j->flags[parts[0]] | j->flags[parts[1]]) & COMPOUND))
            return bigram_of_words((uint32_t)parts[0], (uint32_t)parts[1]);
    }
    parts[0] = parts[1] = -1;
    return bigram_of_text(word, length);
}

/* ---- counting ---- */

static int count_words(struct joining *j) {
    uint64_t size = j->vocab.words.size;
    if (mem_grow(&j->counts, &j->counts_capacity, size, sizeof *j->counts, "the words' counts") ||
        mem_grow(&j->flags, &j->flags_capacity, size, 1, "the words"))
        return -1;
    memset(j->counts, 0, size * sizeof *j->counts);
    j->totals.words = 0;
    for (uint64_t i = 0; i < j->tokens.size; i++) {
        if (j->tokens.ids[i] == PHRASE_LINE_END) continue;
        j->counts[j->tokens.ids[i]]++;
        j->totals.words++;
    }
    return 0;
}

static int has_byte_of(const char *word, uint64_t length, const char *delimiter) {
    for (; *delimiter; delimiter++)
        if (memchr(word, *delimiter, length)) return 1;
    return 0;
}

static void flag_words(struct joining *j) {
    for (uint64_t id = 0; id < j->vocab.words.size; id++) {
        uint64_t length;
        const char *word = words_get(&j->vocab.words, id, &length);
        int connector = j->connectors.size && words_find(&j->connectors, words_hash(word, length), word, length) >= 0;
        int compound = has_byte_of(word, length, j->options->delimiter);
        j->flags[id] = (uint8_t)((connector ? CONNECTOR : 0) | (compound                                ? COMPOUND
                                                                : j->counts[id] < j->options->min_count ? RARE
                                                                                                        : 0));
    }
}

/* Adds the count of each compound word to the bigram with the same text. The two words of that bigram are no longer RARE, so all bigrams of these
 * words are counted. */
static int add_compounds(struct joining *j) {
    for (uint64_t id = 0; id < j->vocab.words.size; id++) {
        int64_t parts[2];
        if (!(j->flags[id] & COMPOUND) || j->flags[id] & CONNECTOR || !j->counts[id]) continue;
        struct bigram bigram = bigram_of_compound(j, (uint32_t)id, parts);
        uint32_t count = j->counts[id] < BIGRAM_MOST ? (uint32_t)j->counts[id] : BIGRAM_MOST;
        for (int i = 0; i < 2 && parts[i] >= 0; i++) j->flags[parts[i]] &= (uint8_t)~RARE;
        if (bigrams_add(&j->bigrams, &bigram, &count, 1, 1)) return -1;
    }
    return 0;
}

/* Returns the index of the first token of the bigram whose last token is at `at`; NOWHERE if there is none. */
static uint64_t begin_before(const struct joining *j, uint64_t at) {
    while (at-- > 0) {
        uint32_t id = j->tokens.ids[at];
        if (id == PHRASE_LINE_END ? !j->across : !(j->flags[id] & CONNECTOR)) return id == PHRASE_LINE_END ? NOWHERE : at;
    }
    return NOWHERE;
}

/* Returns 1 if the bigram is not counted because one of its words is too rare for a phrase. If the score needs the number of distinct bigrams,
 * only bigrams with a word that occurs once are skipped: such a bigram occurs once, too, so *alone is increased. */
static inline int is_skipped(struct joining *j, uint64_t begin, uint64_t end, uint64_t *alone) {
    uint32_t first = j->tokens.ids[begin], second = j->tokens.ids[end];
    uint8_t rare = (j->flags[first] | j->flags[second]) & RARE;
    if (!rare || !is_simple(j, begin, end)) return 0;
    if (j->options->score != PHRASES_DEFAULT) return 1;
    if (!((j->flags[first] & RARE && j->counts[first] == 1) || (j->flags[second] & RARE && j->counts[second] == 1))) return 0;
    *alone += !j->sweep;
    return 1;
}

static int count_range(struct joining *j, uint64_t at, uint64_t end, struct bigram *met, struct joined *joined) {
    uint64_t begin = begin_before(j, at), alone = 0;
    uint32_t count = 0;
    for (; at < end; at++) {
        uint32_t id = j->tokens.ids[at];
        if (id == PHRASE_LINE_END) {
            if (!j->across) begin = NOWHERE;
            continue;
        }
        if (j->flags[id] & CONNECTOR) continue;
        if (begin != NOWHERE && !is_skipped(j, begin, at, &alone) && name_bigram(j, begin, at, joined, &met[count++])) return -1;
        begin = at;
    }
    j->alone += alone;
    return bigrams_add(&j->bigrams, met, NULL, count, 0);
}

static int count_ranges(void *context, unsigned worker) {
    struct joining *j = context;
    OWNED struct bigram *met = mem_alloc(BIGRAM_BATCH, sizeof *met, "bigrams");
    struct joined joined = {NULL, 0, 0};
    uint64_t at, end;
    int result = met ? 0 : -1;
    while (!result && pool_take(&j->next, j->tokens.size, BIGRAM_BATCH, &at, &end))
        result = interrupt_check() ? -1 : count_range(j, at, end, met, &joined);
    free(joined.text);
    return result;
}

static int count_bigrams(struct joining *j, struct pool *pool) {
    int more = 1;
    j->alone = 0;
    for (j->sweep = 0; more > 0; j->sweep++) {
        j->next = 0;
        if (add_compounds(j) || pool_run(pool, count_ranges, j)) return -1;
        more =
            bigrams_next_sweep(&j->bigrams, j->options->min_count < BIGRAM_MOST ? (uint32_t)j->options->min_count : BIGRAM_MOST);
    }
    if (more) return -1;
    /* Sets the count of each compound word to the sum that add_compounds() made for the bigram of the same text. */
    j->totals.distinct = j->bigrams.distinct + j->alone;
    for (uint64_t id = 0; id < j->vocab.words.size; id++) {
        int64_t parts[2];
        if (!j->counts[id] || j->flags[id] & CONNECTOR) continue;
        if (j->flags[id] & COMPOUND)
            j->counts[id] = bigrams_count(&j->bigrams, bigram_of_compound(j, (uint32_t)id, parts));
        else
            j->totals.distinct++;
    }
    return 0;
}

/* ---- joining ---- */

static inline int is_phrase(const struct joining *j, uint32_t first, uint32_t second, uint32_t count) {
    return count && phrase_score(j->options, &j->totals, j->counts[first], j->counts[second], count) > j->threshold;
}

/* Called by bigrams_filter(): returns 1 for bigrams that are phrases of two simple words, and flags these words. A bigram identified by its text
 * is kept if it is frequent enough, since its score depends on which words it is split into. */
static int keeps(void *user, struct bigram bigram, uint32_t count) {
    struct joining *j = user;
    uint32_t first = (uint32_t)(bigram.key >> 32), second = (uint32_t)bigram.key;
    if (bigram.tag) return count >= j->options->min_count;
    if (!is_phrase(j, first, second, count)) return 0;
    j->flags[first] |= BEGINS;
    j->flags[second] |= ENDS;
    return 1;
}

/* Returns the number of the phrase from `begin` to `end`, which is added to the vocabulary if it is new; -1 if these words are not a phrase; -2
 * after fail(). */
static int64_t find_phrase(struct joining *j, uint64_t begin, uint64_t end, struct joined *joined) {
    uint32_t first = j->tokens.ids[begin], second = j->tokens.ids[end];
    struct bigram bigram;
    int simple = is_simple(j, begin, end);
    if (simple && (!(j->flags[first] & BEGINS) || !(j->flags[second] & ENDS))) return -1;
    if (name_bigram(j, begin, end, joined, &bigram)) return -2;
    if (!is_phrase(j, first, second, bigrams_count(&j->bigrams, bigram))) return -1;
    if (simple && write_text(j, begin, end, joined)) return -2;
    int64_t number = words_add(&j->vocab.words, words_hash(joined->text, joined->length), joined->text, joined->length);
    return number < 0 ? -2 : number;
}

/* Joins phrases from left to right, in place: finished tokens are moved to the front; tokens from `begin` on may still become part of a phrase.
 * Returns the number of joined phrases, or -1 after fail(). */
static int64_t join_tokens(struct joining *j, struct joined *joined) {
    uint32_t *ids = j->tokens.ids;
    uint64_t settled = 0, begin = NOWHERE;
    int64_t phrases = 0;
    j->across = 0;
    for (uint64_t i = 0; i < j->tokens.size; i++) {
        int64_t number = -1;
        if (!(i & (BIGRAM_BATCH - 1)) && interrupt_check()) return -1;
        if (ids[i] != PHRASE_LINE_END && j->flags[ids[i]] & CONNECTOR) {
            if (begin == NOWHERE) ids[settled++] = ids[i];
            continue;
        }
        if (begin != NOWHERE && ids[i] != PHRASE_LINE_END && (number = find_phrase(j, begin, i, joined)) < -1) return -1;
        if (number >= 0) {
            ids[settled++] = (uint32_t)number;
            begin = NOWHERE;
            phrases++;
            continue;
        }
        for (; begin < i; begin++) ids[settled++] = ids[begin];
        begin = ids[i] == PHRASE_LINE_END ? NOWHERE : i;
        if (begin == NOWHERE) ids[settled++] = ids[i];
    }
    j->tokens.size = settled;
    return phrases;
}

static int run_pass(struct joining *j, struct pool *pool, uint64_t memory) {
    struct joined joined = {NULL, 0, 0};
    uint64_t before = j->vocab.words.size;
    char words[TEXT_BYTES], places[TEXT_BYTES];
    j->across = j->options->score == PHRASES_WORD2PHRASE && !j->connectors.size;
    bigrams_init(&j->bigrams, memory);
    int result = count_words(j);
    if (!result) flag_words(j);
    if (!result) result = count_bigrams(j, pool);
    if (!result) result = bigrams_filter(&j->bigrams, keeps, j);
    int64_t phrases = result ? -1 : join_tokens(j, &joined);
    bigrams_release(&j->bigrams);
    free(joined.text);
    if (phrases < 0) return -1;
    note("phrases    %s new ones with a score above %g, in %s places", text_of_count(words, j->vocab.words.size - before),
         j->threshold, text_of_count(places, (uint64_t)phrases));
    return 0;
}

/* ---- the joined text ---- */

enum { BUFFER_BYTES = 1 << 20 };

static int write_joined(const struct joining *j, int margin, phrases_take *take, void *user) {
    struct joined buffer = {NULL, 0, 0};
    int result = 0, line_begins = 1;
    for (uint64_t i = 0; i < j->tokens.size && !result; i++) {
        uint64_t length = 0;
        uint32_t id = j->tokens.ids[i];
        const char *word = id == PHRASE_LINE_END ? NULL : words_get(&j->vocab.words, id, &length);
        if (buffer.length + length + 2 > buffer.capacity &&
            mem_grow(&buffer.text, &buffer.capacity, buffer.length + length + 2, 1, "joined text"))
            result = -1;
        if (result) break;
        if (!word)
            buffer.text[buffer.length++] = '\n';
        else if (!line_begins || margin)
            buffer.text[buffer.length++] = ' ';
        memcpy(buffer.text + buffer.length, word ? word : "", length);
        buffer.length += length;
        line_begins = !word;
        if (buffer.length < BUFFER_BYTES) continue;
        result = interrupt_check() ? -1 : take(user, buffer.text, buffer.length);
        buffer.length = 0;
    }
    if (!result && buffer.length) result = take(user, buffer.text, buffer.length);
    free(buffer.text);
    return result;
}

/* ---- the whole text ---- */

static int read_connectors(struct joining *j) {
    uint64_t length;
    if (!*j->options->connectors) return 0;
    OWNED char *text = file_read_given(j->options->connectors, 0, &length);
    struct corpus_cursor cursor = {text, text + length, 1};
    const char *word;
    int kind, result = text ? 0 : -1;
    while (!result && (kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END)
        if (kind == TOKEN_WORD && words_add(&j->connectors, words_hash(word, length), word, length) < 0) result = -1;
    return result;
}

/* Copies the words of gathered data, and their numbers. Fails if a word contains a blank: in the joined text it would be two words. */
static int take_gathered(struct joining *j, const struct gathered *gathered) {
    for (uint64_t n = 0; n < gathered->items.words.size; n++) {
        uint64_t length;
        const char *word = words_get(&gathered->items.words, n, &length);
        if (memchr(word, ' ', length))
            return fail("corpus.phrases = yes: the word '%.*s' has a blank in it; join words before, as sptx.Phrases does in Python",
                        text_shown(length), word);
        if (words_add(&j->vocab.words, words_hash(word, length), word, length) < 0) return -1;
    }
    if (map_tokens(&j->tokens, -1, gathered->count)) return -1;
    if (gathered->count) memcpy(j->tokens.ids, gathered->numbers, gathered->count * sizeof *gathered->numbers);
    return 0;
}

/* Maps a numbered text, and replaces its numbers by rows of the vocabulary, which contains all of its words. */
static int take_numbered(struct joining *j, const struct numbered *numbered) {
    if (map_tokens(&j->tokens, numbered->fd, numbered->count)) return -1;
    for (uint64_t i = 0; i < j->tokens.size; i++)
        if (j->tokens.ids[i] != PHRASE_LINE_END) j->tokens.ids[i] = numbered->items[j->tokens.ids[i]];
    return 0;
}

/* Reads the text, and makes a vocabulary of all its words, whatever corpus.min_count and similar keys say. */
static int read_text(struct joining *j, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    struct corpus_options all = {.path = options->path,
                                 .format = options->format,
                                 .max_word = options->max_word,
                                 .min_count = 1,
                                 .min_rating = options->min_rating,
                                 .report_seconds = options->report_seconds};
    if (corpus_gathered(corpus)) return take_gathered(j, corpus_gathered(corpus));
    OWNED char *path = file_join(spool_directory(), "sptx-spool");
    struct numbered numbered = {.fd = -1};
    int result = path ? numbered_open(&numbered, path) : -1;
    corpus_set_numbered(corpus, &numbered);
    if (!result)
        result = vocab_build(&j->vocab, corpus, &all, pool) || vocab_index(&j->vocab, options->path, pool) ||
                         take_numbered(j, &numbered) || corpus_check_unchanged(corpus)
                     ? -1
                     : 0;
    corpus_set_numbered(corpus, NULL);
    if (path) numbered_close(&numbered);
    return result;
}

static int refuse(const struct corpus *corpus, const struct corpus_options *options) {
    if (!*options->phrases.delimiter) return fail("phrases.delimiter is empty; wanted a text such as _");
    if (corpus_stream(corpus)) return fail("'%s' is an id stream: its words cannot be joined any more", corpus_stream(corpus));
    return 0;
}

int phrases_join(struct corpus *corpus, const struct corpus_options *options, struct pool *pool, int margin, phrases_take *take,
                 void *user) {
    struct joining j = {.options = &options->phrases};
    double thresholds[PHRASE_PASSES];
    uint64_t memory = options->phrases.memory == UINT64_MAX ? mem_available() / 2 : options->phrases.memory;
    int passes = refuse(corpus, options) ? -1 : phrase_passes(&options->phrases, thresholds);
    int result = passes < 0 || read_connectors(&j) || read_text(&j, corpus, options, pool) ? -1 : 0;
    for (int pass = 0; pass < passes && !result; pass++) {
        j.threshold = thresholds[pass];
        result = run_pass(&j, pool, memory ? memory : UINT64_MAX);
    }
    if (!result) result = write_joined(&j, margin, take, user);
    phrase_tokens_release(&j.tokens);
    vocab_release(&j.vocab);
    words_release(&j.connectors);
    mem_free(j.counts, j.flags);
    return result;
}

struct kept_text {
    int fd;
    uint64_t bytes;
};

static int keep(void *user, const char *bytes, uint64_t length) {
    struct kept_text *kept = user;
    if (retry_write_at(kept->fd, bytes, length, kept->bytes))
        return fail("cannot keep the joined text in '%s': %s; TMPDIR names another directory", spool_directory(),
                    strerror(errno));
    kept->bytes += length;
    return 0;
}

int phrases_join_corpus(struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    struct kept_text kept = {.fd = spool_open()};
    if (kept.fd < 0) return -1;
    if (!phrases_join(corpus, options, pool, 0, keep, &kept) && !corpus_replace(corpus, kept.fd)) return 0;
    close(kept.fd);
    return -1;
}

uint64_t phrases_fingerprint(const struct phrase_options *options) {
    uint64_t facts[] = {options->score, options->min_count, options->passes}, sum = XXH3_64bits(facts, sizeof facts), length = 0;
    const char *texts[] = {options->threshold, options->delimiter};
    OWNED char *connectors = *options->connectors ? file_read_given(options->connectors, 0, &length) : NULL;
    for (int i = 0; i < 2; i++) sum = XXH3_64bits_withSeed(texts[i], strlen(texts[i]) + 1, sum);
    return XXH3_64bits_withSeed(connectors ? connectors : "", length, sum);
}
