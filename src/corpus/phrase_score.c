#include "phrase_score.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

int phrase_passes(const struct phrase_options *options, double thresholds[PHRASE_PASSES]) {
    int given = 1;
    thresholds[0] = thresholds_of[options->score].usual;
    if (strcmp(options->threshold, "auto"))
        given = phrase_thresholds(options->threshold, thresholds); /* cannot fail: the configuration accepts only such texts */
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
