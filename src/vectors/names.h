/* names: the different words of a file, numbered in the order of their first occurrence, with the row of each in a model. */
#ifndef SPTX_NAMES_H
#define SPTX_NAMES_H

#include "model.h"

struct names {
    struct words words;
    int64_t *row; /* [words.size] row of the model; -1: the model does not know the name */
    uint64_t capacity;
};
void names_release(struct names *names); /* may be called on a struct of zeros */

/* Returns the number of a name, which is added if it is new; -1 after fail(). */
int64_t names_add(struct names *names, const char *text, uint64_t length);
/* Changes `text` to lower case, then does the work of names_add(). */
int64_t names_add_lower(struct names *names, char *text, uint64_t length);
/* Returns the number of a name; -1 if it has not been added. */
int64_t names_find(const struct names *names, const char *text, uint64_t length);

/* Sets the row of every name: the row of the list with this name, or of the target with which its line begins. */
void names_locate_lists(struct names *names, const struct model *model);

/* Sets the row of every name: the first of the first `rows` rows whose word equals it in lower case. All names must be in lower
 * case. Returns 0, or -1 after fail(). */
int names_locate(struct names *names, const struct model *model, uint64_t rows);

#endif
