/* list_form: whether a file holds lists (a line: a list's name, its items) or pairs (a line: list, item[, rating[, anything]]),
 * as its first lines look. A run of the one is often asked with files of the other.
 *
 *   no blank but one comma or more in every line                                            pairs
 *   not the same number of fields in every line, or more than four, or one                 lists
 *   two fields with blanks between                                                          the same either way
 *   three or four, of which the third is not always a number                                lists
 *   three or four, the third a number, and names that come again or few different numbers  pairs
 *   three or four, all numbers, of more lines than there would be different ratings         lists
 *   a few such lines                                                                        as the run's corpus was read
 *
 * A first line that may name the columns is left out of this.
 */
#ifndef SPTX_LIST_FORM_H
#define SPTX_LIST_FORM_H

#include "corpus/corpus.h"

/* Puts the format that `path`, a file or a directory of files, looks like in reading->format; says so where that is another one
 * than there. 0, or -1 after fail(). */
int list_form_look(struct corpus_options *reading, const char *path);

#endif
