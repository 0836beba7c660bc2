/* phrase_tokens: a whole text as the numbers of its words, in a file without a name that is mapped into memory. Joining words
 * to phrases reads the text several times; numbers are read twenty times as fast as words are found. */
#ifndef SPTX_PHRASE_TOKENS_H
#define SPTX_PHRASE_TOKENS_H

#include "base/pool.h"
#include "corpus.h"
#include "vocab.h"

#include <stdint.h>

#define PHRASE_LINE_END UINT32_MAX /* among the numbers: a line of the text ends, be it empty */

struct phrase_tokens {
    uint32_t *ids; /* [size], writable; a line end follows the last word */
    uint64_t size;
    uint64_t mapped; /* bytes */
};

/* Numbers the words of the corpus, all of which the vocabulary must have. Returns 0, or -1 after fail(); the caller releases in
 * any case. */
int phrase_tokens_read(struct phrase_tokens *tokens, struct corpus *corpus, const struct corpus_options *options, const struct vocab *vocab,
                       struct pool *pool);
/* Takes the numbers of gathered words as they are. A word with a blank in it is refused: the joined text could not hold it. */
struct gathered;
int phrase_tokens_gathered(struct phrase_tokens *tokens, const struct gathered *gathered);
void phrase_tokens_release(struct phrase_tokens *tokens);

#endif
