/* tokens: splits the bytes of a block into tokens. The functions are inline, since they run for every token of a corpus. */
#ifndef SPTX_TOKENS_H
#define SPTX_TOKENS_H

#include <stdint.h>
#include <string.h>

struct corpus_cursor {
    const char *at, *end;
    uint64_t line; /* number of the line that contains the byte `at`, from 1 */
};
enum { TOKEN_END, TOKEN_WORD, TOKEN_NEWLINE };

static inline int token_is_white(char byte) {
    static const unsigned char white[256] = {[' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\r'] = 1, ['\v'] = 1, ['\f'] = 1};
    return white[(unsigned char)byte];
}

/* Returns 1 if a word contains white space other than blanks, which a vocabulary's file cannot store. */
static inline int token_has_break(const char *word, uint64_t length) {
    for (uint64_t i = 0; i < length; i++)
        if (token_is_white(word[i]) && word[i] != ' ') return 1;
    return 0;
}

/* Returns 1 for white space and for each byte of `separators`. Returns 0 for NUL: strchr() alone would find the NUL that ends `separators`. */
static inline int token_ends(char byte, const char *separators) {
    return token_is_white(byte) || (*separators && byte && strchr(separators, byte));
}

/* Reads the next token. Returns TOKEN_WORD and stores the word in *word and *length, TOKEN_NEWLINE, or TOKEN_END. `separators`:
 * bytes that separate tokens, besides white space, such as ","; or "". */
static inline int corpus_token(struct corpus_cursor *cursor, const char *separators, const char **word,
                               uint64_t *length) {
    const char *at = cursor->at, *end = cursor->end;
    while (at < end && *at != '\n' && token_ends(*at, separators)) at++;
    if (at == end) {
        cursor->at = at;
        return TOKEN_END;
    }
    if (*at == '\n') {
        cursor->at = at + 1;
        cursor->line++;
        return TOKEN_NEWLINE;
    }
    *word = at;
    while (at < end && !token_ends(*at, separators)) at++;
    *length = (uint64_t)(at - *word);
    cursor->at = at;
    return TOKEN_WORD;
}

#endif
