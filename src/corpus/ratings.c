#define _GNU_SOURCE
#include "ratings.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus.h"
#include "gathered.h"
#include "pairs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A lowest rating is proposed only where no rating is above RATING_MOST, and where KEPT_LEAST in a hundred are kept.
 * Counts of plays and times have far higher values, of which hardly any are in the upper part. */
enum { RATING_MOST = 1000, KEPT_LEAST = 5 };
static const double upper_part = 0.75; /* where the upper part begins, from the lowest to the highest: 4 of 1 to 5, 8 of 1 to 10 */

int ratings_meet(struct ratings *ratings, double rating) {
    ratings->missing += isnan(rating);
    if (isnan(rating)) return 0;
    ratings->least = ratings->count ? fmin(ratings->least, rating) : rating;
    ratings->most = ratings->count ? fmax(ratings->most, rating) : rating;
    if (ratings->count == RATINGS_KEPT) return 0;
    if (mem_grow(&ratings->values, &ratings->capacity, ratings->count + 1, sizeof *ratings->values, "ratings")) return -1;
    ratings->values[ratings->count++] = rating;
    return 0;
}

void ratings_release(struct ratings *ratings) {
    free(ratings->values);
    *ratings = (struct ratings){0};
}

static int take(void *user, const struct corpus_block *block) {
    struct ratings *ratings = user;
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, block);
    if (!ratings->count && block->value_name) snprintf(ratings->name, sizeof ratings->name, "%s", block->value_name);
    while ((more = pairs_next(&cursor, block, -INFINITY, PAIR_WEIGHTS_NONE, &pair)) > 0)
        if (ratings_meet(ratings, pair.rating)) return -1;
    return more;
}

/* Returns the lowest rating of the upper part, and how many in a hundred are kept from it on. */
static double propose(const struct ratings *ratings, double *kept) {
    double from = ratings->least + upper_part * (ratings->most - ratings->least), lowest = ratings->most;
    uint64_t count = 0;
    for (uint64_t i = 0; i < ratings->count; i++) {
        if (ratings->values[i] < from) continue;
        lowest = fmin(lowest, ratings->values[i]);
        count++;
    }
    *kept = 100.0 * (double)count / (double)ratings->count;
    return lowest;
}

/* Returns the name of the values for messages: the column's name in the header; "ratings" if there is no name or it contains
 * that word. */
static const char *name_of(const struct ratings *ratings) {
    return *ratings->name && !strcasestr(ratings->name, "rating") ? ratings->name : "ratings";
}

void ratings_say(const struct ratings *ratings) {
    if (!ratings->count || ratings->least == ratings->most) return;
    char advice[128] = "corpus.min_rating leaves lower ones out, corpus.weights = log weighs by them";
    double kept, from = propose(ratings, &kept);
    if (fmax(fabs(ratings->least), fabs(ratings->most)) <= RATING_MOST && kept >= KEPT_LEAST)
        snprintf(advice, sizeof advice, "corpus.min_rating = %g keeps the higher ones, about %.0f in 100", from, kept);
    remark("%s %.10g to %.10g found: all count alike; %s", name_of(ratings), ratings->least, ratings->most, advice);
}

static int look_at_files(const struct corpus *corpus, const struct corpus_options *options, struct ratings *ratings) {
    if (!corpus_formats[options->format].ratings || corpus_stream(corpus)) return 0;
    return corpus_look(corpus, options, CORPUS_LOOK_FILES, take, ratings);
}

int ratings_may_weigh(const struct corpus *corpus, const struct corpus_options *options) {
    struct ratings ratings = {0};
    int result = corpus_gathered(corpus) ? 0 : look_at_files(corpus, options, &ratings);
    int may = ratings.count && !ratings.missing && ratings.least > 0 && ratings.least < ratings.most;
    ratings_release(&ratings);
    return result ? -1 : may;
}

int ratings_note(const struct corpus *corpus, const struct corpus_options *options) {
    struct ratings ratings = {0};
    if (options->pair_weights) return 0;
    if (corpus_gathered(corpus)) {
        ratings_say(&corpus_gathered(corpus)->ratings);
        return 0;
    }
    int result = isinf(options->min_rating) ? look_at_files(corpus, options, &ratings) : 0;
    if (!result) ratings_say(&ratings);
    ratings_release(&ratings);
    return result;
}
