#include "tune_inner.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the keys, by the data of a run ---- */

/* For each key, values that gave good results on the data of configs/notes, and one or two values more on either side. */
static const struct space_key user_keys[] = {
    {"model", "dim", {"64", "128", "256", "512"}, 0, 0},
    {"optimizer", "lr", {"0.0005", "0.0007", "0.001", "0.0015", "0.002", "0.003", "0.004", "0.006"}, 0, 0},
    {"train", "temperature", {"0.06", "0.07", "0.08", "0.09", "0.1", "0.12", "0.15", "0.2"}, 0, 0},
    {"train", "negative_power", {"0", "1", "1.1", "1.15", "1.2", "1.3"}, 0, 0},
    {"negatives", "count", {"300", "500", "1000", "2000", "4000"}, 0, 0},
    {"examples", "own", {"1", "0.5", "0.2", "0"}, 0, 0},
    {"corpus", "weights", {"none", "linear", "log"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
/* For runs whose batches share negatives: thousands of negatives cost little there, and examples.own below 1 is not supported. */
static const struct space_key shared_keys[] = {
    {"model", "dim", {"64", "128", "256", "512"}, 0, 0},
    {"optimizer", "lr", {"0.0003", "0.0005", "0.0007", "0.001", "0.0015", "0.002", "0.003", "0.004"}, 0, 0},
    {"train", "temperature", {"0.06", "0.07", "0.08", "0.09", "0.1", "0.12", "0.15", "0.2"}, 0, 0},
    {"train", "negative_power", {"0", "1", "1.1", "1.15", "1.2", "1.3"}, 0, 0},
    {"negatives", "count", {"1000", "2000", "4000", "8000", "16000"}, 0, 0},
    {"corpus", "weights", {"none", "linear", "log"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
static const struct space_key list_keys[] = {{"model", "dim", {"64", "128", "256"}, 0, 0},
                                             {"optimizer", "lr", {"0.05", "0.1", "0.15", "0.25", "0.35", "0.5"}, 0, 0},
                                             {"negatives", "count", {"3", "5", "10", "20"}, 0, 0},
                                             {"negatives", "power", {"0.25", "0.5", "0.75", "1"}, 0, 0},
                                             {"corpus", "weights", {"none", "linear", "log"}, 0, 0},
                                             {NULL, NULL, {NULL}, 0, 0}};
static const struct space_key adjacency_keys[] = {{"model", "dim", {"64", "128", "256", "384"}, 0, 0},
                                                  {"optimizer", "lr", {"0.02", "0.03", "0.05", "0.07", "0.1"}, 0, 0},
                                                  {"negatives", "count", {"3", "5", "10", "20"}, 0, 0},
                                                  {"negatives", "power", {"0.25", "0.5", "0.75", "1"}, 0, 0},
                                                  {NULL, NULL, {NULL}, 0, 0}};
static const struct space_key walk_keys[] = {
    {"model", "dim", {"64", "128", "256"}, 0, 0},
    {"optimizer", "lr", {"0.0025", "0.005", "0.0075", "0.01", "0.0125", "0.02", "0.03"}, 0, 0},
    {"examples", "window", {"2", "3", "5", "7", "10", "14"}, 0, 0},
    {"negatives", "count", {"1", "2", "3", "5"}, 0, 0},
    {"negatives", "power", {"0", "0.25", "0.5", "0.75", "1"}, 0, 0},
    {"walks", "p", {"0.5", "1", "2", "4"}, 0, 0},
    {"walks", "q", {"0.5", "1", "2"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
static const struct space_key triple_keys[] = {
    {"model", "dim", {"100", "200", "400", "1000", "2000"}, 0, 0},
    {"optimizer", "lr", {"0.03", "0.05", "0.1", "0.2", "0.3"}, 0, 0},
    {"train", "n3", {"0.001", "0.003", "0.01", "0.03", "0.05", "0.1", "0.2"}, 0, 0},
    {"train", "product", {"complex", "real"}, 0, 0},
    {"train", "relations", {"0", "0.05", "0.25", "1", "4"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
/* The keys that are searched for GloVe. Trials are compared by the loss of held-out pairs, so no key is here that changes the pairs or their
 * weights. */
static const struct space_key counts_keys[] = {
    {"model", "dim", {"50", "64", "100", "128", "200", "300"}, 0, 0},
    {"optimizer", "lr", {"0.3", "0.5", "0.7", "1", "1.4", "2"}, 0, 0},
    {"optimizer", "initial_accumulator", {"1", "10", "100", "400", "1000"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
/* The only keys that are searched if trials are compared by the loss of held-out windows: all other keys change the loss itself. */
static const struct space_key text_keys[] = {
    {"model", "dim", {"64", "100", "128", "200", "300"}, 0, 0},
    {"optimizer", "lr", {"0.0125", "0.025", "0.035", "0.05", "0.07", "0.1"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};
static const struct space_key wide_text_keys[] = {
    {"model", "dim", {"64", "100", "128", "200", "300"}, 0, 0},
    {"optimizer", "lr", {"0.0125", "0.025", "0.035", "0.05", "0.07", "0.1"}, 0, 0},
    {"examples", "window", {"3", "5", "7", "10"}, 0, 0},
    {"examples", "subsample", {"1e-5", "3e-5", "1e-4", "3e-4", "1e-3"}, 0, 0},
    {"negatives", "count", {"3", "5", "7", "10", "15"}, 0, 0},
    {"negatives", "power", {"0.5", "0.75", "1"}, 0, 0},
    {NULL, NULL, {NULL}, 0, 0}};

static const struct space_key *keys_of(const struct config *resolved, int wide) {
    switch (resolved->examples_mode) {
    case MODE_USER:
        if (config_has_documents(resolved)) return wide ? wide_text_keys : text_keys;
        return resolved->negatives_per == PER_BATCH ? shared_keys : user_keys;
    case MODE_LIST:
        return list_keys;
    case MODE_ADJACENCY:
        return adjacency_keys;
    case MODE_WALK:
        return walk_keys;
    case MODE_TRIPLE:
        return triple_keys;
    case MODE_COUNTS:
        return counts_keys;
    default:
        return wide ? wide_text_keys : text_keys;
    }
}

/* ---- which values work with the user's keys ---- */

static int works(const struct config *config, const struct space_key *key, const char *value) {
    ENDED_BY(config_release) struct config tried = {0};
    int result = config_copy(&tried, config);
    if (!result) result = config_set(&tried, key->section, key->key, value, "tune");
    if (!result) result = config_resolve(&tried);
    report_clear();
    return !result;
}

/* Returns the index of the value nearest to the value in the resolved config. */
static int own_place(const struct space_key *key, const struct config *resolved) {
    OWNED char *text = config_value(resolved, key->section, key->key);
    double own, value, nearest = INFINITY;
    int place = 0;
    if (text && !text_real(text, &own))
        for (int i = 0; i < key->count; i++) {
            if (text_real(key->value[i], &value) || fabs(value - own) >= nearest) continue;
            nearest = fabs(value - own);
            place = i;
        }
    return place;
}

static void take_key(struct space *space, const struct space_key *known, const struct config *config,
                     const struct config *resolved) {
    struct space_key *key = &space->key[space->count];
    *key = (struct space_key){.section = known->section, .key = known->key};
    for (int i = 0; i < SPACE_VALUES && known->value[i]; i++)
        if (works(config, known, known->value[i])) key->value[key->count++] = known->value[i];
    if (key->count < 2) return;
    key->own = own_place(key, resolved);
    space->count++;
}

int space_find(struct space *space, const struct config *config, const struct config *resolved, int wide, int weighable) {
    *space = (struct space){.count = 0};
    for (const struct space_key *key = keys_of(resolved, wide); key->section; key++)
        if (!config_is_given(config, key->section, key->key) && (weighable || strcmp(key->section, "corpus")))
            take_key(space, key, config, resolved);
    return space->count ? 0 : fail("tune has no key left to try: all of those that it knows are set");
}

/* ---- trials ---- */

struct space_point space_own(const struct space *space) {
    struct space_point point = {{0}};
    for (int i = 0; i < space->count; i++) point.place[i] = SPACE_OWN;
    return point;
}

static struct draw4 draw_of(uint32_t seed, uint64_t number, uint32_t attempt, int key) {
    return draw_at(seed, DRAW_TUNE, number, attempt, (uint32_t)key);
}

/* Returns a neighbour of a value: the next one above or below, at random; at either end the only neighbour. */
static int move(const struct space_key *key, int place, struct draw4 drawn) {
    int at = place == SPACE_OWN ? key->own : place, to = at + (drawn.word[3] & 1 ? 1 : -1);
    return to < 0 ? 1 : to >= key->count ? key->count - 2 : to;
}

/* Moves about a third of the keys, at least one, to a neighbouring value. */
static struct space_point draw_near(const struct space *space, const struct space_point *parent, uint32_t seed,
                                    uint64_t number, uint32_t attempt) {
    struct space_point point = *parent;
    struct draw4 whole = draw_of(seed, number, attempt, SPACE_KEYS);
    int one = (int)draw_below(draw_pair(whole, 0), (uint64_t)space->count);
    for (int i = 0; i < space->count; i++) {
        struct draw4 drawn = draw_of(seed, number, attempt, i);
        if (i == one || draw_below(draw_pair(drawn, 0), 3) == 0) point.place[i] = move(&space->key[i], parent->place[i], drawn);
    }
    return point;
}

struct space_point space_draw(const struct space *space, const struct space_point *parent, uint32_t seed,
                              uint64_t number, uint32_t attempt) {
    struct space_point point = {{0}};
    if (parent) return draw_near(space, parent, seed, number, attempt);
    for (int i = 0; i < space->count; i++)
        point.place[i] = (int)draw_below(draw_pair(draw_of(seed, number, attempt, i), 0), (uint64_t)space->key[i].count);
    return point;
}

double space_cost(const struct space *space, const struct space_point *point) {
    double cost = 1, own, value;
    for (int i = 0; i < space->count; i++) {
        const struct space_key *key = &space->key[i];
        int counts = !strcmp(key->key, "dim") || !strcmp(key->key, "count");
        if (!counts || point->place[i] == SPACE_OWN || text_real(key->value[key->own], &own) ||
            text_real(key->value[point->place[i]], &value))
            continue;
        cost *= value / own;
    }
    return cost;
}

int space_equal(const struct space *space, const struct space_point *a, const struct space_point *b) {
    return !memcmp(a->place, b->place, (size_t)space->count * sizeof *a->place);
}

int space_set(const struct space *space, const struct space_point *point, struct config *config) {
    for (int i = 0; i < space->count; i++) {
        const struct space_key *key = &space->key[i];
        if (point->place[i] != SPACE_OWN && config_set(config, key->section, key->key, key->value[point->place[i]], "tune"))
            return -1;
    }
    return 0;
}

void space_text(const struct space *space, const struct space_point *point, char out[SPACE_TEXT]) {
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < space->count; i++)
        if (point->place[i] != SPACE_OWN)
            n = text_add(out, SPACE_TEXT, n, "%s%s.%s=%s", n ? " " : "", space->key[i].section, space->key[i].key,
                         space->key[i].value[point->place[i]]);
    if (!n) text_add(out, SPACE_TEXT, 0, "the keys as they are");
}
