/* vectors_file: a file of words and their vectors, as other programs and `export` write it. It is mapped, and read row by row.
 *
 *   word2vec-bin    "V D\n", then rows: word, a blank, D float32, perhaps a line end
 *   word2vec-text   "V D\n", then lines: word, D numbers
 *   glove-text      lines as above, without "V D\n"
 *   npy             a matrix of float32, or a table of a checkpoint; its words come from a vocabulary (word TAB count)
 *
 * Opening reads only the words; numbers are read on demand. So a file of tens of gigabytes needs 8 bytes of memory for each row.
 */
#ifndef SPTX_VECTORS_FILE_H
#define SPTX_VECTORS_FILE_H

#include "base/file.h"
#include "base/npy.h"
#include "corpus/vocab.h"
#include "corpus/words.h"

#include <stdint.h>

enum vectors_format { VECTORS_BINARY, VECTORS_TEXT, VECTORS_NPY };

/* An open, mapped file of words and vectors. */
struct vectors_file {
    enum vectors_format format;
    const char *path;     /* owned by the caller */
    struct words words;   /* [rows] a word's number is its row */
    uint64_t rows;
    uint32_t dim;
    struct file_map map;  /* the mapped file; not for npy */
    uint64_t *starts;     /* [rows] offset in bytes of each row's numbers; not for npy */
    struct npy npy;
};

/* Opens a file, whose format is recognized by its first bytes. vocabulary: file with the words of an npy; NULL for other formats. Refuses files
 * that are too short for their number of rows, and words that occur twice. Returns 0, or -1 after fail(). */
int vectors_file_open(struct vectors_file *file, const char *path, const char *vocabulary);
void vectors_file_close(struct vectors_file *file); /* may be called on a struct of zeros */

/* Frees the words once they are no longer needed. */
void vectors_file_drop_words(struct vectors_file *file);

/* Reads columns first .. first + count - 1 of a row. Returns 0, or -1 after fail() if the row's text is not D numbers. */
int vectors_file_row(const struct vectors_file *file, uint64_t row, uint32_t first, uint32_t count, float *out);

/* fasttext_file: the file of a fastText model (.bin, version 12), mapped and checked against its size.
 *
 *   i32 magic, i32 version; struct fasttext_args
 *   i32 size, words, labels; i64 tokens, pruned (-1)
 *   for each word: its bytes, a NUL, i64 count, u8 kind
 *   u8 quantized (0); i64 rows = words + buckets, i64 columns; float32 [rows x columns]     the input: target rows
 *   u8 quantized (0); i64 rows = words, i64 columns; float32 [rows x columns]               the output: context rows
 *
 * All numbers are little-endian. Rows begin at any byte, so their floats are not aligned: copy them before use.
 */

enum { FASTTEXT_MAGIC = 793712314, FASTTEXT_VERSION = 12, FASTTEXT_NEGATIVES = 2, FASTTEXT_CBOW = 1, FASTTEXT_SKIPGRAM = 2 };

/* The options of the model's training, in the order of the file's fields. */
struct fasttext_args {
    int32_t dim, window, epochs, min_count, negatives, word_ngrams, loss, model, buckets, min, max, update_rate;
    double subsample;
};

/* An open, mapped file of a fastText model. */
struct fasttext_file {
    struct fasttext_args args;
    struct file_map map;
    uint64_t rows, words;    /* rows: of the input (target rows); words: rows of the output (context rows) */
    uint64_t input, output;  /* offsets in the file, in bytes, of the first row of the input; of the output */
};

/* Returns 1 if the file begins with fastText's magic number; 0 if not, or if there is no file; -1 after fail(). */
int fasttext_file_is(const char *path);

/* Maps a file, and reads its words and their n-grams into a zeroed vocabulary, which the caller releases in any case. Refuses models that were
 * trained for labels, quantized models, and sizes that do not fit the file. Returns 0, or -1 after fail(). */
int fasttext_file_open(struct fasttext_file *file, struct vocab *vocab, const char *path);
void fasttext_file_close(struct fasttext_file *file); /* may be called on a struct of zeros */

#endif
