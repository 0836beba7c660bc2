/* lines: a text file in memory, line by line and token by token. It reads files of questions for vectors. */
#ifndef SPTX_LINES_H
#define SPTX_LINES_H

#include <stdint.h>

struct lines {
    char *at, *end;
    char *line, *stop; /* the unread part of the current line */
    uint64_t number;
};

struct token {
    char *text; /* points into the file's copy */
    uint64_t length;
};

/* Reads the whole file, which may be a pipe, into memory that the caller frees. Returns NULL after fail(). */
char *lines_open(struct lines *lines, const char *path);
/* Goes to the next line; LF, CR and CRLF end one. Returns 0 at the end. */
int lines_next(struct lines *lines);
/* Takes the next token of the current line; blanks part them. Returns 0 at the line's end. */
int lines_token(struct lines *lines, struct token *token);

#endif
