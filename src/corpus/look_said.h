/* look_said: the state while the format of one file is found, and the format in words. Only look.c and look_said.c use it. */
#ifndef SPTX_LOOK_SAID_H
#define SPTX_LOOK_SAID_H

#include "look_lines.h"

/* State while the format of one file is found. */
struct looking {
    struct look *look;
    struct looked_lines lines;
    struct looked_columns columns; /* statistics of the columns, without the header */
    struct table_line first;       /* fields of the first line, which may be the header */
    enum look_rows rows;
    enum column_set set;
    const struct look_keys *keys;
    const char *path;
    uint64_t length;
    int has_header;
    int is_shifted;  /* 1: each line of data has one field more than the header, in front, as R writes row names */
    int has_hash;    /* 1: the first line began with #, so it is a header */
    int has_times;   /* 1: the third column has times, so it is not read as ratings or weights */
    uint64_t names;  /* lists: number of distinct first fields */
};

static inline int looked_has_values(enum look_rows rows) {
    return rows == LOOK_PAIRS || rows == LOOK_EDGES || rows == LOOK_WORDS;
}

/* Returns the name of the column in the first line; "" and *length = 0 if the line has no such column. */
const char *looked_name(const struct looking *l, uint64_t column, uint64_t *length);

/* Stores the format in words in look->said, and the name of the value's column in look->value. */
void looked_say(const struct looking *l);

#endif
