/* vectors_file: words with a vector each, as other programs and `export` write them, mapped and read a row at a time.
 *
 *   word2vec-bin    "V D\n", then rows: word, a blank, D float32, and a line end or none
 *   word2vec-text   "V D\n", then lines: word, D numbers
 *   glove-text      the same lines without the first one
 *   npy             a matrix of float32, or a table of a checkpoint; its words come from a vocabulary (word TAB count)
 *
 * The words are read at once, the numbers when they are asked for: a file of tens of gigabytes takes a mapping and 8 bytes a row.
 */
#ifndef SPTX_VECTORS_FILE_H
#define SPTX_VECTORS_FILE_H

#include "base/file_map.h"
#include "base/npy.h"
#include "corpus/words.h"

#include <stdint.h>

enum vectors_format { VECTORS_BINARY, VECTORS_TEXT, VECTORS_NPY };

struct vectors_file {
    enum vectors_format format;
    const char *path;     /* the caller's */
    struct words words;   /* [rows]: a word's number is its row */
    uint64_t rows;
    uint32_t dim;
    struct file_map map;  /* the file, where it is binary or text */
    uint64_t *starts;     /* [rows] where it is binary or text: the byte where a row's numbers begin */
    struct npy npy;
};

/* Opens a file, whose format its bytes tell. `vocabulary`: the words of an npy, NULL for other formats. Refuses a count that the
 * file cannot hold, rows that are cut off, a word that occurs twice. Returns 0, or -1 after fail(). */
int vectors_file_open(struct vectors_file *file, const char *path, const char *vocabulary);
void vectors_file_close(struct vectors_file *file); /* harmless on a zeroed one */

/* Frees the words, when they are not needed any more. */
void vectors_file_drop_words(struct vectors_file *file);

/* Reads columns [first, first + count) of a row. Returns 0, or -1 after fail() where its text does not read as D
 * numbers. */
int vectors_file_row(const struct vectors_file *file, uint64_t row, uint32_t first, uint32_t count, float *out);

#endif
