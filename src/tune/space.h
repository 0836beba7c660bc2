/* space: the keys that tune tries, the values of each, and how a trial draws values.
 *
 * Keys that the user has set are left out, and so are values that do not work with the user's keys. The values of a key are sorted,
 * so that a trial near a good one changes a key to a neighbouring value.
 */
#ifndef SPTX_SPACE_H
#define SPTX_SPACE_H

#include "config/config.h"

enum { SPACE_KEYS = 12, SPACE_VALUES = 10, SPACE_OWN = -1 };

/* A key to try, and its values. */
struct space_key {
    const char *section, *key;
    const char *value[SPACE_VALUES];
    int count;
    int own; /* index of the value that is nearest to the user's */
};
/* All keys to try. */
struct space {
    struct space_key key[SPACE_KEYS];
    int count;
};

/* The keys of a trial: for each key the index of its value; SPACE_OWN: the user's value. */
struct space_point {
    int place[SPACE_KEYS];
};

/* Finds the keys to try: the keys that `config`, which is not resolved, leaves unset. `resolved`: the same config with all
 * values that a run would use. `wide`: 1 if the score can compare runs with different examples (a loss cannot). `weighable`: 1
 * if pairs have ratings that can be weights (ratings_may_weigh). Returns 0, or -1 after fail(), also if no key is left to try. */
int space_find(struct space *space, const struct config *config, const struct config *resolved, int wide, int weighable);

/* Returns the trial with the user's own keys. */
struct space_point space_own(const struct space *space);

/* Draws trial number `number` from (seed, number, attempt): anywhere in the space, or near `parent` if that is not NULL.
 * `attempt`: 0, 1 .. if earlier draws for this number were rejected. */
struct space_point space_draw(const struct space *space, const struct space_point *parent, uint32_t seed,
                              uint64_t number, uint32_t attempt);
/* Returns about how many times as long a trial takes as the user's own keys, going by columns and negatives. */
double space_cost(const struct space *space, const struct space_point *point);
int space_equal(const struct space *space, const struct space_point *a, const struct space_point *b);

/* Sets the trial's keys. Returns 0, or -1 after fail(). */
int space_set(const struct space *space, const struct space_point *point, struct config *config);

/* Writes a trial's keys, without its epochs: "model.dim=256 optimizer.lr=0.001"; or "the keys as they are" for the trial that
 * changes no key. */
enum { SPACE_TEXT = 512 };
void space_text(const struct space *space, const struct space_point *point, char out[SPACE_TEXT]);

#endif
