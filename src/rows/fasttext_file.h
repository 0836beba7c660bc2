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
#ifndef SPTX_FASTTEXT_FILE_H
#define SPTX_FASTTEXT_FILE_H

#include "base/file.h"
#include "corpus/vocab.h"

#include <stdint.h>

enum { FASTTEXT_MAGIC = 793712314, FASTTEXT_VERSION = 12, FASTTEXT_NEGATIVES = 2, FASTTEXT_CBOW = 1, FASTTEXT_SKIPGRAM = 2 };

/* Options with which the model was trained, in the order of the file's fields. */
struct fasttext_args {
    int32_t dim, window, epochs, min_count, negatives, word_ngrams, loss, model, buckets, min, max, update_rate;
    double subsample;
};

/* An open, mapped file of a fastText model. */
struct fasttext_file {
    struct fasttext_args args;
    struct file_map map;
    uint64_t rows, words;    /* rows: number of rows of the input (target rows); words: number of rows of the output (context
                              * rows) */
    uint64_t input, output;  /* offsets in bytes, in the file, of the first row of the input and of the output */
};

/* Returns 1 if the file begins with fastText's magic number; 0 if it does not, or if there is no file; -1 after fail(). */
int fasttext_file_is(const char *path);

/* Maps a file and reads its words, with their n-grams, into a zeroed vocabulary. Refuses models that were trained for labels,
 * quantized models, and sizes that do not match the file. Returns 0, or -1 after fail(). The caller releases the vocabulary in
 * any case. */
int fasttext_file_open(struct fasttext_file *file, struct vocab *vocab, const char *path);
void fasttext_file_close(struct fasttext_file *file); /* may be called on a struct of zeros */

#endif
