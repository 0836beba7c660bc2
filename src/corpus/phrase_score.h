/* phrase_score: decides which bigrams are phrases, as word2phrase and gensim's Phrases do. A bigram is joined if its score is above
 * the threshold. a, b: counts of its first and its last word; ab: count of the bigram.
 *
 *   word2phrase   (ab - min_count) / a / b * words, in float32; 0 if a, b or ab is below min_count
 *   default       (ab - min_count) / (a * b) * distinct words and bigrams
 *   npmi          ln(p(ab) / (p(a) p(b))) / -ln p(ab); -infinity if ab is below min_count
 */
#ifndef SPTX_PHRASE_SCORE_H
#define SPTX_PHRASE_SCORE_H

#include <stdint.h>

/* Numbered in the order of phrases.score in config.def. */
enum phrase_score { PHRASES_WORD2PHRASE, PHRASES_DEFAULT, PHRASES_NPMI };

/* How words are joined: the keys of [phrases]. The caller owns the strings. */
struct phrase_options {
    int joins; /* corpus.phrases */
    enum phrase_score score;
    uint64_t min_count, passes; /* number of passes; UINT64_MAX: as many as there are thresholds */
    const char *threshold;      /* "auto", or numbers separated by commas, one for each pass */
    const char *delimiter;      /* text between the words of a phrase */
    const char *connectors;     /* path of a file of words that may be within a phrase but neither begin nor end it; "": no such
                                 * words */
    uint64_t memory;            /* bytes of memory for counting bigrams; UINT64_MAX: half of the available memory */
};

enum { PHRASE_PASSES = 16 }; /* largest number of thresholds */

/* Reads numbers separated by commas. Returns how many there are, or -1 if the text is anything else. */
int phrase_thresholds(const char *text, double thresholds[PHRASE_PASSES]);

/* Stores the threshold of each pass. Returns the number of passes, or -1 after fail() if the options contradict each other. */
int phrase_passes(const struct phrase_options *options, double thresholds[PHRASE_PASSES]);

struct phrase_totals {
    uint64_t words, distinct; /* number of words in the text; number of different words and bigrams */
};
double phrase_score(const struct phrase_options *options, const struct phrase_totals *totals, uint64_t a, uint64_t b, uint64_t ab);

#endif
