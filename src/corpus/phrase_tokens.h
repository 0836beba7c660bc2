/* phrase_tokens: a whole text as the numbers of its words, in a nameless file that is mapped into memory. Joining phrases reads
 * the text several times, and reading numbers is twenty times as fast as looking words up. */
#ifndef SPTX_PHRASE_TOKENS_H
#define SPTX_PHRASE_TOKENS_H

#include "recorded.h"

#include <stdint.h>

#define PHRASE_LINE_END RECORDED_END /* stored after the last word of each line, and once for an empty line */

struct phrase_tokens {
    uint32_t *ids; /* [size]: numbers of words, and PHRASE_LINE_END; may be overwritten */
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
};

/* Maps the recorded words of a text, with the rows of a vocabulary that has all of them as their numbers. Returns 0, or -1 after
 * fail(); the caller must call phrase_tokens_release() in both cases. */
int phrase_tokens_recorded(struct phrase_tokens *tokens, const struct recorded *recorded);
/* Copies the word numbers of gathered data. Fails if a word contains a blank: in the joined text it would be two words. */
struct gathered;
int phrase_tokens_gathered(struct phrase_tokens *tokens, const struct gathered *gathered);
void phrase_tokens_release(struct phrase_tokens *tokens);

#endif
