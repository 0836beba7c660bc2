/* export_fasttext: writes a model as a fastText .bin file (rows/vectors_file.h), with which fastText and gensim can continue
 * training: both tables, and the rows of all buckets. */
#ifndef SPTX_EXPORT_FASTTEXT_H
#define SPTX_EXPORT_FASTTEXT_H

#include "export.h"

/* Writes the whole file. Returns 0, or -1 after fail(), also for a run that fastText's format cannot represent. */
int export_fasttext(const struct export *export, struct file_writer *writer);

#endif
