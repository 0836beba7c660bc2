/* list_form: the format in which a file of lists is read where nobody says it. A run of lists is often asked with files
 * of pairs, and a run of pairs with files of lists. */
#ifndef SPTX_LIST_FORM_H
#define SPTX_LIST_FORM_H

#include "corpus/corpus.h"

/* Puts the format that `path`, a file or a directory of files, looks like (line_form.h) in reading->format; says so
 * where that is another one than there. 0, or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

#endif
