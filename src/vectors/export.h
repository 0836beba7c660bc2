/* export: writes a model's vectors in the formats of other programs.
 *
 * Most formats have one file; projector has two. The arrays that decode quantized rows (quantizer.h) are stored beside FILE as float32:
 * FILE.scales.npy [rows x 1], FILE.mean.npy [1 x columns], FILE.rotation.npy [a run's columns x columns]; in safetensors they are tensors of FILE
 * itself. Files are written under temporary names and renamed when all are complete; if one cannot be renamed, the older files are put back.
 * Temporary files that a killed export has left are removed by the next export. Each file of an array ends with a line with the checksum of FILE
 * (export_check). A format of one file can also be written to a pipe or a device, directly.
 */
#ifndef SPTX_EXPORT_H
#define SPTX_EXPORT_H

#include "quantizer.h"

enum export_format {
    EXPORT_WORD2VEC_BIN,
    EXPORT_WORD2VEC_TEXT,
    EXPORT_GLOVE_TEXT,
    EXPORT_NPY,
    EXPORT_FVECS,
    EXPORT_FBIN,
    EXPORT_I8BIN,
    EXPORT_U8BIN,
    EXPORT_BVECS,
    EXPORT_SAFETENSORS,
    EXPORT_PROJECTOR,
    EXPORT_FASTTEXT,
    EXPORT_CLASSES
};

/* The rows to write: the first `rows` rows of a view. */
struct export {
    const struct model *model;
    enum model_view view;
    uint64_t rows;
    uint32_t classes;      /* EXPORT_CLASSES: most classes into which rows are divided by direction (clusters in numeric.h) */
    unsigned threads;      /* threads that find the classes; 0: one for each core */
    enum export_type type; /* one that the format can hold */
    uint32_t columns;      /* number of axes to which rows are reduced (quantizer.h); 0: rows keep their columns */
    struct quantizer_loss *loss; /* set by export_write(), except `most`, which the caller sets. NULL: the loss is not measured */
};

int export_format_named(const char *name); /* returns the export_format of a name; -1 after fail_usage(), which lists the names */
/* Returns the export_type of this name; NULL: the first type that the format can store. Returns -1 after fail_usage() for an unknown type, or one
 * that the format cannot store. */
int export_type_for(enum export_format format, const char *name);
/* Checks whether a file and the arrays beside it that decode its rows were written by the same export. Returns the number of arrays; -1 after
 * fail() if not: then an export was killed while it renamed its files. */
int export_check(const char *path);
/* Writes the vectors. Fails for a type or a word that the format cannot store, a vector with NaN or infinity, or a path that may not be written.
 * After a failure an older file at the path is unchanged. Returns 0, or -1. */
int export_write(const struct export *export, enum export_format format, const char *path);

#endif
