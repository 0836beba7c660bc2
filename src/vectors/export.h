/* export: writes a model's vectors in the formats that other programs read, row by row, atomically.
 *
 * All files of a format (most have one, projector has a second) are written whole before the first is renamed. A format
 * of one file can also go to a pipe or a device, which get the bytes as they come.
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

/* How numbers are written; bf16 and f16 are rounded to nearest, and bf16 is exact for rows that a run keeps so. */
enum export_type { EXPORT_F32, EXPORT_BF16, EXPORT_F16 };

/* The rows to write: the first `rows` of a view. */
struct export {
    const struct model *model;
    enum model_view view;
    uint64_t rows;
    uint32_t classes;      /* of EXPORT_CLASSES: rows are divided into at most this number of classes, by direction (clusters.h) */
    unsigned threads;      /* that find them; 0: all cores */
    enum export_type type; /* other than F32 for npy, fbin and safetensors alone */
};

int export_format_named(const char *name); /* returns -1 after fail_usage(), which lists the names */
int export_type_named(const char *name);   /* the same of f32, bf16 and f16 */
/* Writes the vectors. Refuses a type that the format cannot say, a word or number that it cannot hold, and a path that cannot
 * be written so. A file that was at the path before is still there after any failure. */
int export_write(const struct export *export, enum export_format format, const char *path);

#endif
