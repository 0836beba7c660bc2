/* prompt: questions of one line each from standard input, answered by the nearest words: word2vec's distance and word-analogy. */
#ifndef SPTX_PROMPT_H
#define SPTX_PROMPT_H

#include "config/config.h"

#include <stdint.h>

struct prompt_request {
    const char *path; /* a run, or a file of vectors */
    int analogy;      /* 1: three words, A is to B as C is to ?; 0: words whose vectors are summed */
    int plain;        /* 1: answers are lines of word TAB score, as nearest prints them; 0: as word2vec's programs print them */
    uint32_t k;       /* answers to a question */
    const struct config *config;
};

/* Answers until EXIT or the end of input. Returns 0, or -1 after fail(). */
int prompt_run(const struct prompt_request *request);

/* Returns 1 if standard input is a terminal, at which somebody can be asked. */
int prompt_is_possible(void);

#endif
