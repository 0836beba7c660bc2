/* space: the keys that tune tries, with the values of each, and what a trial draws of them.
 *
 * Keys that the user has set are none of them, nor are values that the other keys refuse. A value stands beside those
 * that are most like it, so that a trial near a good one moves by a place or two.
 */
#ifndef SPTX_SPACE_H
#define SPTX_SPACE_H

#include "config/config.h"

enum { SPACE_KEYS = 12, SPACE_VALUES = 10, SPACE_OWN = -1 };

struct space_key {
    const char *section, *key;
    const char *value[SPACE_VALUES];
    int count;
    int own; /* the place nearest to the value that the user's keys come to */
};
struct space {
    struct space_key key[SPACE_KEYS];
    int count;
};

/* A trial: the place of each key's value; SPACE_OWN: as the user's keys have it. */
struct space_point {
    int place[SPACE_KEYS];
};

/* Finds the keys to try: keys that `config`, which is unresolved, does not set. `resolved`: the same config with all values that a
 * run would use. `wide`: 1 if the score can compare runs with different examples (a loss cannot). `weighable`: 1 if pairs have ratings
 * that can weigh them (ratings_may_weigh). Returns 0, or -1 after fail(), also if no key is left. */
int space_find(struct space *space, const struct config *config, const struct config *resolved, int wide, int weighable);

/* The trial of the user's own keys. */
struct space_point space_own(const struct space *space);

/* Draws trial number `number` from (seed, number): anywhere, or near `parent` where that is not NULL. `attempt` counts
 * the draws for this number. */
struct space_point space_draw(const struct space *space, const struct space_point *parent, uint32_t seed,
                              uint64_t number, uint32_t attempt);
/* Returns about how many times as long as the user's own keys a trial takes: by columns and negatives. */
double space_cost(const struct space *space, const struct space_point *point);
int space_equal(const struct space *space, const struct space_point *a, const struct space_point *b);

/* Sets the trial's keys. Returns 0, or -1 after fail(). */
int space_set(const struct space *space, const struct space_point *point, struct config *config);

/* Writes a trial's keys without its epochs: "model.dim=256 optimizer.lr=0.001", or "the keys as they are". */
enum { SPACE_TEXT = 512 };
void space_text(const struct space *space, const struct space_point *point, char out[SPACE_TEXT]);

#endif
