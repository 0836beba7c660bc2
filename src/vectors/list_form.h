/* list_form: guesses whether a file has lists or pairs, if the user does not say it. Runs trained on lists are often asked with
 * files of pairs, and runs trained on pairs with files of lists. */
#ifndef SPTX_LIST_FORM_H
#define SPTX_LIST_FORM_H

#include "corpus/corpus.h"

/* Sets reading->format to the format guessed from `path`, a file or a directory of files (look.h). Prints a note if that changes
 * it. Returns 0, or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

#endif
