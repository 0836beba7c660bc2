/* keys: which row of a table each 64-bit key has, and which keys leave when the rows are used up.
 *
 * The index is a hash table with open addressing: a key is searched place by place, from the place that its hash names. Lookups of many keys prefetch
 * memory, and are divided among threads. Only the calls decide which key has a row and which leaves: neither the number of threads nor the numbers of
 * rows matter.
 *
 * A call on keys has two halves, so that one that cannot be done changes nothing:
 *
 *   keys_plan     finds the keys, and decides which new keys get rows and which keys leave for them; fails if there is no room
 *   (the caller)  reads the rows of `victim`
 *   keys_commit   makes the call: counts, removes the victims, gives rows to the new keys
 *
 * With admit = n, a key gets a row at its n-th sight. Until then its sights are counted in a sketch: each key has four counters in
 * a block of 64, which other keys share, and its count is the least of the four. So a key may get its row too early, when others
 * share all of its counters, but not too late, except that all counters are halved after as many sights as there are counters.
 */
#ifndef SPTX_KEYS_H
#define SPTX_KEYS_H

#include "base/pool.h"
#include "kernels/backend.h" /* struct key_row, enum keys_evict */

#include <stdint.h>

#define KEYS_NONE 0xFFFFFFFFu /* no row */

/* The kinds of calls. */
enum keys_call {
    KEYS_SEE,    /* a fetch: each place of a key is a sight */
    KEYS_CHANGE, /* an update: a key without a row gets one if admit is 1 */
    KEYS_PUT     /* sets rows; every key gets one */
};

struct key_place; /* a place of the index */
struct key_rank;  /* an entry in the heap of keys that may leave */

/* A key that has left since a mark; files of changes name it. */
struct key_gone {
    uint64_t key, call;
};

struct keys {
    uint64_t capacity; /* rows 0 .. capacity - 1 */
    uint64_t count;    /* keys that have rows */
    uint64_t clock;    /* number of calls so far that changed the index */
    enum keys_evict evict;
    uint32_t admit;      /* 1 .. KEYS_ADMIT_MOST */
    struct key_row *row; /* [capacity] */
    uint32_t *draw;      /* [capacity + spare] a hash of each row's key, from which random bits of rounding are drawn (rounding.h) */

    /* the plan of a call */
    uint64_t *missed, missed_count; /* [missed_count] keys of the call that had no row, in rising order; a key is as often here as in the call */
    uint64_t *fresh, fresh_count;   /* [fresh_count] new keys that get rows, in rising order */
    uint64_t fresh_places;          /* number of places of these keys in the call */
    uint32_t *victim;               /* [victim_count] rows whose keys leave, in the order of leaving */
    uint64_t victim_count;

    /* the sketch; blocks is 0 if admit is 1 */
    uint8_t *sketch;         /* [blocks x KEYS_BLOCK] */
    uint64_t *sketch_call;   /* [blocks] number of the last call that changed the block */
    uint64_t blocks, sights; /* sights: number of sights that were counted since the counters were last halved */

    struct key_gone *gone; /* [gone_count] keys that have left since a mark */
    uint64_t gone_count;
    uint64_t gone_from; /* `gone` has all keys that left in calls after this number; UINT64_MAX: no mark was set */

    struct key_place *place; /* [2 ^ bits] the index */
    unsigned bits;
    uint64_t secret;   /* mixed into each hash. It is random, so that nobody can choose keys with equal hashes; results do not depend on it */
    uint64_t used;     /* rows 0 .. used - 1 have or had a key */
    uint32_t *unused;  /* [unused_count] rows below `used` that are free; the last one is the next to get a key */
    uint64_t unused_count;
    uint64_t plans;    /* number of plans so far */
    struct key_rank *heap; /* [heap_count] heap by the order in which keys leave; heap_count = 0: not made yet */
    uint64_t heap_count;
    /* Chooses the keys that leave, if their numbers are on a GPU (kernels/backend.h); NULL: the heap does. */
    int (*choose)(void *chooser, uint64_t wanted, uint32_t *victim);
    void *chooser;
    void *spare; /* scratch memory for sorting, and for entries that are taken off the heap and put back */
    uint64_t missed_capacity, fresh_capacity, victim_capacity, gone_capacity, unused_capacity, heap_capacity, spare_capacity;
};
enum { KEYS_ADMIT_MOST = 255, KEYS_BLOCK = 64 };

/* spare: number of rows after the capacity that the caller uses for itself. Returns 0, or -1 after fail(). */
int keys_init(struct keys *keys, uint64_t capacity, uint64_t spare, enum keys_evict evict, uint32_t admit);
void keys_release(struct keys *keys); /* may be called on a struct of zeros */

/* Sets row[i] to the row of key[i], or to KEYS_NONE. Changes nothing. */
void keys_find(const struct keys *keys, struct pool *pool, const uint64_t *key, uint64_t count, uint32_t *row);

/* keys_plan() plans a call; keys_commit() makes the planned call, whose number is then `clock`. row: [count], set by keys_plan() and completed by
 * keys_commit(): the row of key[i], or KEYS_NONE if the key has to wait for a row. keys_plan() returns 0, or -1 after fail_usage() or fail();
 * keys_commit() cannot fail. Between the two only keys_forget_plan() may be called, which drops the plan. */
int keys_plan(struct keys *keys, struct pool *pool, enum keys_call call, const uint64_t *key, uint64_t count, uint32_t *row);
/* Does the second half of keys_plan(), after others have found the keys: missed_count of them, in `missed`, have no row; the others have `named`
 * different rows. Then keys_commit() is called with row = NULL, and others count the sights. */
int keys_plan_missed(struct keys *keys, enum keys_call call, const uint64_t *missed, uint64_t missed_count, uint64_t named);
void keys_commit(struct keys *keys, struct pool *pool, enum keys_call call, const uint64_t *key, uint64_t count, uint32_t *row);
void keys_forget_plan(struct keys *keys);

/* keys_remove() takes a key's row away, in the call `clock`. Before it, keys_reserve() must be called; it allocates the memory for the removal of
 * `removed` keys, and returns 0, or -1 after fail(). keys_take() gives a row to a key that has none, and returns the row; the table must not be
 * full. */
int keys_reserve(struct keys *keys, uint64_t removed);
void keys_remove(struct keys *keys, uint32_t row);
uint32_t keys_take(struct keys *keys, const struct key_row *about);

/* Lists the rows of the keys that were named by calls after `since`, by rising key. The caller frees *rows. Returns their number, or -1 after
 * fail(). */
int64_t keys_list(const struct keys *keys, uint64_t since, uint32_t **rows);

/* Lists each key that left after `since` and has no row now, in rising order. The caller frees *gone. Returns their number, or -1 after fail().
 * `since` must not be below gone_from. */
int64_t keys_list_gone(const struct keys *keys, uint64_t since, uint64_t **gone);

/* Makes later removals add their keys to the list `gone`. Removes from `gone` the keys that left in calls up to `before`. */
void keys_mark(struct keys *keys, uint64_t before);

#endif
