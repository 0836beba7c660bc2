/* fields: reads a block of a corpus field by field, by the corpus' format. */
#ifndef SPTX_FIELDS_H
#define SPTX_FIELDS_H

#include "corpus.h"
#include "edges.h"

/* A field of a line; or the end of a line. */
struct corpus_field {
    enum token_part part;
    const char *text; /* points into the block; NULL: the end of a line */
    uint64_t length;
    uint64_t line; /* number of the line in the file, from 1 */
    float weight;  /* weight of the pair or edge; not set for text and lists */
};

/* The state of reading the fields of one block. */
struct corpus_fields {
    const struct corpus_format_properties *format;
    const struct corpus_block *block;
    struct corpus_cursor cursor;
    const struct corpus_options *options;
    struct corpus_left left;   /* numbers of rows that were left out so far */
    uint64_t index;            /* index in its line of the next token */
    struct corpus_field later[2]; /* [later_count] the other fields of a pair, an edge or a triple, last one first; the next calls
                                   * return them */
    unsigned later_count;
    struct column_walk walk; /* for lists with a separator: the current line, with the fields that are not read yet */
    uint64_t line;           /* number of the line of `walk` */
    int in_line;             /* 1: the line of `walk` may have more fields */
};

void corpus_fields_start(struct corpus_fields *fields, const struct corpus_block *block,
                         const struct corpus_options *options);

/* Returns 1 if the fields of a block are its words between blanks. */
int fields_are_tokens(const struct corpus_block *block, const struct corpus_options *options);

/* Stores the next field. Returns 1; 0 at the end of the block; -1 after fail(). */
static inline int corpus_fields_next(struct corpus_fields *fields, struct corpus_field *field) {
    return fields->format->read(fields, field);
}

/* The readers (formats.def names one for each format):
 *
 *   tokens   each token of a line is a field; after a line's last token, a field whose text is NULL marks its end
 *   lists    like tokens, but split at the separator of the file's format, so that an item may contain blanks
 *   pairs    each line gives two fields, list and item, and no line end; pairs with a rating below options->min_rating, or of
 *            weight 0, are left out
 *   edges    each line gives two fields, its nodes; self-loops and edges of weight 0 are left out
 *   triples  each line gives three fields: head, relation (PART_NAME), tail
 */
corpus_reader fields_of_tokens, fields_of_lists, fields_of_pairs, fields_of_edges, fields_of_triples;

#endif
