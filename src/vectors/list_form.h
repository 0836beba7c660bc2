/* list_form: finds out whether a file has lists or pairs, if the user does not say so. People often ask a run that was trained
 * on lists with files of pairs, and a run that was trained on pairs with files of lists. */
#ifndef SPTX_LIST_FORM_H
#define SPTX_LIST_FORM_H

#include "corpus/corpus.h"

/* Sets reading->format to the format of the lines in `path`, a file or a directory of files (look.h). If this changes it, prints
 * a note. Returns 0, or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

#endif
