/* line_form: decides if lines hold lists (a list's name, its items) or pairs (list, item[, rating[, anything]]), as they look.
 *
 *   a header that names a list and an item, or another separator than blanks and commas (columns.h)  pairs
 *   no blank but one comma or more in every line                                                  pairs
 *   not the same number of fields in every line, or more than four, or one                        lists
 *   two fields with blanks between                                                                unclear, and both read the same
 *   three or four fields, of which the third is not always a number                               lists
 *   the third always a number, and names that come again, or many lines with few numbers          pairs
 *   the third always a number, many lines, many numbers, some of which are second fields, too     lists
 *   other lines of three or four fields whose third is a number                                   unclear
 *
 * Pairs are ratings where three lines or more have a number as their third field and no space stands in any of them. A first
 * line that may name the columns does not count.
 */
#ifndef SPTX_LINE_FORM_H
#define SPTX_LINE_FORM_H

#include <stdint.h>

enum line_form { LINES_UNCLEAR, LINES_LISTS, LINES_PAIRS, LINES_RATINGS };

/* Returns the line_form of whole lines, the last of which may lack its line end; -1 after fail(). */
int line_form(const char *bytes, uint64_t length);

#endif
