/* export: writes a model's vectors in the formats of other programs.
 *
 * Most formats have one file; projector has two. What decodes quantized rows (quantizer.h) is stored beside FILE as float32:
 * FILE.scales.npy [rows x 1], FILE.mean.npy [1 x columns], FILE.rotation.npy [a run's columns x columns]; safetensors holds these
 * arrays as tensors of their own. Each file is written under a temporary name, and none is renamed before all are
 * complete; if one cannot be renamed, the others are put back. A killed export's temporary files are removed by the next one.
 * Behind the array of a file that decodes rows is a line with the checksum of FILE (export_check). A format of one file can also be
 * written to a pipe or a device, directly.
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
    uint32_t classes;      /* for EXPORT_CLASSES: most classes into which the rows are divided by their direction (numeric.h) */
    unsigned threads;      /* number of threads that find the classes; 0: one a core */
    enum export_type type; /* one that the format can hold */
    uint32_t columns;      /* number of axes that rows are turned to (quantizer.h); 0: rows keep their columns */
    struct quantizer_loss *loss; /* filled; `most` is set by the caller. NULL: it is not measured */
};

int export_format_named(const char *name); /* returns an export_format; -1 after fail_usage(), which lists the names */
/* Returns the export_type with this name; NULL: the first type that the format can hold. Returns -1 after fail_usage() for an
 * unknown type, or one that the format cannot hold. */
int export_type_for(enum export_format format, const char *name);
/* Checks whether a file and those beside it that decode its rows are of one export. Returns the number of those; -1 after fail() if they
 * differ: an export was killed while it put its files in place. */
int export_check(const char *path);
/* Writes the vectors. Fails for a type or a word that the format cannot represent, a vector with NaN or infinity, or a path that
 * is not allowed. After any failure an older file at the path is unchanged. Returns 0, or -1. */
int export_write(const struct export *export, enum export_format format, const char *path);

#endif
