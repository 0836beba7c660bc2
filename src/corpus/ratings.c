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

/* A value of corpus.min_rating is proposed only if no rating exceeds RATING_MOST and at least KEPT_LEAST % of the pairs would be
 * kept. Other numbers are counts of plays or times, which reach far higher values, and few of which are in the upper part of
 * their range. */
enum { RATING_MOST = 1000, KEPT_LEAST = 5 };
static const double upper_part = 0.75; /* the upper part of the range begins at this fraction: at 4 of 1 to 5, at 8 of 1 to 10 */

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
    const struct corpus_options all = {.format = FORMAT_PAIRS, .min_rating = -INFINITY};
    struct corpus_left left = {0};
    while ((more = pairs_next(&cursor, block, &all, &left, &pair)) > 0)
        if (ratings_meet(ratings, pair.rating)) return -1;
    return more;
}

/* Returns the lowest rating in the upper part of the range; *kept: the percentage of ratings from it on. */
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
    if (ratings->count && !ratings->least && !ratings->most) remark("%s are all 0: all count alike", name_of(ratings));
    if (!ratings->count || ratings->least == ratings->most) return;
    if (ratings->least < 0) { /* what was returned was bought before, and not liked */
        uint64_t below = 0;
        double lowest = ratings->most;
        for (uint64_t i = 0; i < ratings->count; i++) {
            below += ratings->values[i] < 0;
            if (ratings->values[i] > 0) lowest = fmin(lowest, ratings->values[i]);
        }
        char count[TEXT_BYTES], all[TEXT_BYTES];
        remark("%s %.10g to %.10g found, %s of the first %s below 0 (returns?): all count alike; corpus.min_rating = %g leaves those out",
               name_of(ratings), ratings->least, ratings->most, text_of_count(count, below), text_of_count(all, ratings->count), lowest);
        return;
    }
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
