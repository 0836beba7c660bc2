/* format: the formats of a corpus and their properties, as a table (formats.def). Code that depends on the format tests a
 * property; it does not compare with a format's name.
 *
 *   block of bytes -> the format's reader -> fields (a word, the name of a list, a line's end), one at a time
 */
#ifndef SPTX_FORMAT_H
#define SPTX_FORMAT_H

#include "look.h"

#include <stdint.h>

enum corpus_format {
#define FORMAT(name, enumerator, ...) enumerator,
#include "formats.def"
    CORPUS_FORMATS
};

/* The meaning of a field of a line. */
enum token_part { PART_WORD, PART_NAME, PART_RATING };

struct corpus_fields;
struct corpus_field;
/* Stores the next field and returns 1; returns 0 at the end of the block; -1 after fail(). */
typedef int corpus_reader(struct corpus_fields *fields, struct corpus_field *field);

struct corpus_format_properties {
    const char *name;         /* value of corpus.format */
    corpus_reader *read;      /* reads a block field by field (fields.h) */
    const char *lines;        /* name of the lines in messages: "lists" */
    enum token_part parts[3]; /* meaning of a line's first field, of its second field, and of all later fields */
    int sentences;            /* 1: lines are running text, cut after corpus.max_sentence tokens */
    int targets;              /* 1: the first word of a line is a target, the others are its contexts */
    int documents;            /* 1: a line is a document: its name, which always has a row of its own, then text that is not cut */
    int names;                /* 1: lists have names, so each may have a row of its own (corpus_options.list_rows) */
    enum look_rows rows;      /* the meaning of a line, for finding its format (look.h) */
    int columns;              /* 1: all lines have the same columns, and corpus.columns may be set */
    int ratings;              /* 1: lines may have a column of ratings */
    int edges;                /* 1: a line is an edge, and the corpus is encoded as a graph (graph.h) instead of an id stream */
    int triples;              /* 1: a line is a triple, whose relation has a row of its own (triples.h) */
    const char *wanted;       /* for formats with columns: the fields of a line, for messages */
    int whole_lines;          /* 1: all fields of a line are read together, so blocks must end where lines end */
    int scattered;            /* 1: a line has one item of a list, and other lines anywhere may have its other items */
};
extern const struct corpus_format_properties corpus_formats[CORPUS_FORMATS];

/* Returns the meaning of field number `index` of a line. */
static inline enum token_part corpus_part(const struct corpus_format_properties *format, uint64_t index) {
    return format->parts[index < 2 ? index : 2];
}

/* The names of all formats, each after a separator of one byte ("|text|lists.."), and their descriptions; used by config.def. */
extern const char corpus_format_names[], corpus_format_help[];

#endif
