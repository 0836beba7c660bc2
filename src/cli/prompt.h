/* prompt: reads questions from standard input, one a line, and answers each with the nearest words, as word2vec's distance and
 * word-analogy do. */
#ifndef SPTX_PROMPT_H
#define SPTX_PROMPT_H

#include "config/config.h"

#include <stdint.h>

struct prompt_request {
    const char *path; /* path of a run, or of a file of vectors */
    int analogy;      /* 1: a question is three words, A is to B as C is to ?; 0: it is words whose vectors are added */
    int plain;        /* 1: prints lines of word TAB score, as `nearest` does; 0: prints as word2vec's programs do */
    uint32_t k;       /* number of answers to a question */
    const struct config *config;
};

/* Answers until EXIT or the end of input. Returns 0, or -1 after fail(). */
int prompt_run(const struct prompt_request *request);

/* Returns 1 if standard input is a terminal, so that a user can type questions. */
int prompt_is_possible(void);

#endif
