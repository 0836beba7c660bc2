/* lines: a text file in memory, line by line and token by token: questions that vectors are asked. */
#ifndef SPTX_LINES_H
#define SPTX_LINES_H

#include <stdint.h>

struct lines {
    char *at, *end;
    char *line, *stop; /* what is left of the current line */
    uint64_t number;
};

struct token {
    char *text; /* in the file's copy */
    uint64_t length;
};

/* The whole file, a pipe perhaps, as memory that the caller frees. NULL after fail(). */
char *lines_open(struct lines *lines, const char *path);
/* The next line; LF, CR and CRLF end one. 0 at the end. */
int lines_next(struct lines *lines);
/* The next token of the current line, between blanks. 0 at its end. */
int lines_token(struct lines *lines, struct token *token);

#endif
