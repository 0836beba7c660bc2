/* opened_run: a finished run that is opened as a model, and the path of a file beside it that a test writes. */
#ifndef SPTX_OPENED_RUN_H
#define SPTX_OPENED_RUN_H

#include "vectors/model.h"
#include "tests/unit/small_run.h"

static struct small_run run;
static struct model model;
static char *file;

static int open_run(const char *words, uint64_t rows, uint32_t dim, const float *values) {
    small_run_make(&run, words, rows, dim, values, values);
    file = small_path(run.directory, "file");
    return model_open(&model, run.directory);
}

static int tear_down(void **state) {
    model_close(&model);
    small_run_remove(&run);
    free(file);
    return 0;
}

__attribute__((unused)) static void text_is(const char *text) {
    small_write(run.directory, "file", text, strlen(text));
}

#endif
