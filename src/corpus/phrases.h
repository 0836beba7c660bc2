/* phrases: joins words that often follow each other to one word (new york -> new_york), as word2phrase and gensim's Phrases do.
 *
 *   corpus -> vocabulary of all its words -> phrase_tokens: the text as numbers -> for each pass:
 *       bigrams: count the bigrams -> phrase_score: choose the phrases -> join them from left to right, in place
 *   -> the joined text
 *
 * In one pass a word is joined with at most one neighbour; a second pass joins phrases to longer phrases. If the text already
 * contains a word such as new_york, it counts as the bigram new york: both have the sum of both counts, as in the two other
 * programs. word2phrase also counts bigrams across line ends, although it does not join them; gensim does not count them. Both
 * forget rare bigrams when memory is short; this program does not.
 */
#ifndef SPTX_PHRASES_H
#define SPTX_PHRASES_H

#include "base/pool.h"
#include "corpus.h"

/* Receives the joined text, in order, some bytes at a time. Returns 0, or -1 after fail(). */
typedef int phrases_take(void *user, const char *bytes, uint64_t length);

/* Joins the words of a text by options->phrases and passes the result to `take`, as lines of words separated by blanks. margin =
 * 1: each line also begins with a blank, as word2phrase writes it. Returns 0, or -1 after fail(). */
int phrases_join(struct corpus *corpus, const struct corpus_options *options, struct pool *pool, int margin, phrases_take *take,
                 void *user);

/* Joins the words of a corpus before they are counted and encoded: from now on corpus_next() returns blocks of the joined text.
 * Returns 0, or -1 after fail(). */
int phrases_join_corpus(struct corpus *corpus, const struct corpus_options *options, struct pool *pool);

/* Returns a hash of the options that decide which phrases a text gets. */
uint64_t phrases_fingerprint(const struct phrase_options *options);

#endif
