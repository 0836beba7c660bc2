/* export: writes a model's vectors in the formats of other programs.
 *
 * Most formats have one file; projector has two. Each file is written under a temporary name, and none is renamed before all are
 * complete. A format of one file can also be written to a pipe or a device, directly.
 */
#ifndef SPTX_EXPORT_H
#define SPTX_EXPORT_H

#include "model.h"

enum export_format {
    EXPORT_WORD2VEC_BIN,
    EXPORT_WORD2VEC_TEXT,
    EXPORT_GLOVE_TEXT,
    EXPORT_NPY,
    EXPORT_FVECS,
    EXPORT_FBIN,
    EXPORT_SAFETENSORS,
    EXPORT_PROJECTOR,
    EXPORT_FASTTEXT,
    EXPORT_CLASSES
};

/* The number type of the file. For bf16 and f16, values are rounded to the nearest number. Rows that a run stores as bfloat16
 * are exact in bf16. */
enum export_type { EXPORT_F32, EXPORT_BF16, EXPORT_F16 };

/* The rows to write: the first `rows` rows of a view. */
struct export {
    const struct model *model;
    enum model_view view;
    uint64_t rows;
    uint32_t classes;      /* for EXPORT_CLASSES: most classes into which the rows are divided by their direction (clusters.h) */
    unsigned threads;      /* number of threads that find the classes; 0: one a core */
    enum export_type type; /* must be EXPORT_F32 unless the format is npy, fbin or safetensors */
};

int export_format_named(const char *name); /* returns an export_format; -1 after fail_usage(), which lists the names */
int export_type_named(const char *name);   /* returns an export_type; -1 after fail_usage(), which lists the names */
/* Writes the vectors. Fails for a type or a word that the format cannot represent, a vector with NaN or infinity, or a path that
 * is not allowed. After any failure an older file at the path is unchanged. Returns 0, or -1. */
int export_write(const struct export *export, enum export_format format, const char *path);

#endif
