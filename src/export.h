/* export: a model's vectors in the formats that other programs read, a row at a time, atomically. */
#ifndef SPTX_EXPORT_H
#define SPTX_EXPORT_H

#include "model.h"

enum export_format { EXPORT_WORD2VEC_BIN, EXPORT_WORD2VEC_TEXT, EXPORT_NPY };

int export_format_named(const char *name); /* -1 after fail_usage() that lists the names */
int export_write(const struct model *model, enum model_view view, enum export_format format, const char *path);

#endif
