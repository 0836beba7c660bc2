/* list_form: finds the format of a file of lists where the user does not say it. A run of lists is often asked with
 * files of pairs, and a run of pairs with files of lists. */
#ifndef SPTX_LIST_FORM_H
#define SPTX_LIST_FORM_H

#include "corpus/corpus.h"

/* Sets reading->format to the format that `path`, a file or a directory of files, looks like (look.h). Prints a note if that
 * changes it. Returns 0, or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

#endif
