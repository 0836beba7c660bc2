/* names: the words of a file, numbered in the order of their first place in it, and the rows of a model with these names. */
#ifndef SPTX_NAMES_H
#define SPTX_NAMES_H

#include "model.h"

struct names {
    struct words words;
    int64_t *row; /* [words.size] row of the model, or -1 */
    uint64_t capacity;
};
void names_release(struct names *names); /* harmless on a zeroed one */

/* Returns the number of a name, which is added where it is new; -1 after fail(). */
int64_t names_add(struct names *names, const char *text, uint64_t length);
/* Adds the name in lower case, to which `text` is changed. */
int64_t names_add_lower(struct names *names, char *text, uint64_t length);
/* Returns the number of a name, or -1 where it is absent. */
int64_t names_find(const struct names *names, const char *text, uint64_t length);

/* Gives every name the row of the list of that name, or of the target that begins the line. */
void names_locate_lists(struct names *names, const struct model *model);

/* Gives every name, all of them in lower case, the first of the first `rows` rows whose word is the same in lower
 * case. */
int names_locate(struct names *names, const struct model *model, uint64_t rows);

#endif
