/* lines: reads a text file in memory line by line and token by token, for files of analogies and other questions. */
#ifndef SPTX_LINES_H
#define SPTX_LINES_H

#include <stdint.h>

struct lines {
    char *at, *end;
    char *line, *stop; /* the part of the current line that is not read yet */
    uint64_t number;
};

struct token {
    char *text; /* its first byte, in the file's copy in memory; no NUL follows the token */
    uint64_t length;
};

/* Reads the whole file, which may be a pipe, into memory that the caller frees. Returns NULL after fail(). */
char *lines_open(struct lines *lines, const char *path);
/* Moves to the next line; LF, CR or CRLF ends a line. Returns 1, or 0 at the end of the file. */
int lines_next(struct lines *lines);
/* Reads the next token of the current line; blanks separate tokens. Returns 1, or 0 at the end of the line. */
int lines_token(struct lines *lines, struct token *token);

#endif
