/* phrase_tokens: a whole text as the numbers of its words, in a nameless file that is mapped into memory. Joining phrases reads
 * the text several times, and reading numbers is twenty times as fast as looking words up. */
#ifndef SPTX_PHRASE_TOKENS_H
#define SPTX_PHRASE_TOKENS_H

#include "base/pool.h"
#include "corpus.h"
#include "vocab.h"

#include <stdint.h>

#define PHRASE_LINE_END UINT32_MAX /* stored after the last word of each line, and once for an empty line */

struct phrase_tokens {
    uint32_t *ids; /* [size]: numbers of words, and PHRASE_LINE_END; may be overwritten */
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
};

/* Replaces the corpus' words by their numbers in `vocab`, which must have all of them. Returns 0, or -1 after fail(); the caller
 * must call phrase_tokens_release() in both cases. */
int phrase_tokens_read(struct phrase_tokens *tokens, struct corpus *corpus, const struct corpus_options *options, const struct vocab *vocab,
                       struct pool *pool);
/* Copies the word numbers of gathered data. Fails if a word contains a blank: in the joined text it would be two words. */
struct gathered;
int phrase_tokens_gathered(struct phrase_tokens *tokens, const struct gathered *gathered);
void phrase_tokens_release(struct phrase_tokens *tokens);

#endif
