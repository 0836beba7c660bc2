/* export: a model's vectors in the formats that other programs read, a row at a time, atomically.
 *
 * All of a format's files (most have one, projector a second beside it) are written whole before the first is renamed. A
 * format of one file can go to a pipe or a device as well, which get the bytes as they come.
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
    EXPORT_PROJECTOR
};

/* The first `rows` rows of a view are written. */
struct export {
    const struct model *model;
    enum model_view view;
    uint64_t rows;
};

int export_format_named(const char *name); /* -1 after fail_usage() that lists the names */
/* Refuses a word that the format cannot hold, and a path that cannot be written so; then and after any failure a file that
 * was at the path is there still. */
int export_write(const struct export *export, enum export_format format, const char *path);

#endif
