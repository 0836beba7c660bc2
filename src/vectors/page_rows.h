/* page_rows: the rows that a page shows (the most frequent ones), with their nearest rows and their coordinates on the map. */
#ifndef SPTX_PAGE_ROWS_H
#define SPTX_PAGE_ROWS_H

#include "base/json.h"
#include "model.h"
#include "page_groups.h"
#include "titles.h"
#include "config/config.h"

enum { PAGE_NEAREST = 10 }; /* number of nearest rows of a row: the default of --k of `nearest` */

struct page_rows {
    enum model_view view; /* the table whose rows are shown */
    uint64_t all;         /* number of first rows that are searched and shown: the items; or all rows, with the lists */
    uint64_t count;       /* number of rows that are shown with their nearest rows */
    uint64_t top;         /* number of rows on the map, which are the first ones of `rows` */
    uint32_t k;           /* number of nearest rows of each row: PAGE_NEAREST, or fewer if there are not so many other rows */
    uint32_t *rows;       /* [count] the shown rows, most frequent first; of equally frequent rows, the lower id first */
    uint32_t *near;       /* [count x k] the nearest rows that `nearest` finds, with its scores */
    float *scores;        /* [count x k] cosines */
    float *xy;            /* [top x 2] coordinates on the map */
    const char *labels;   /* path of a file of labels, by which the rows of the map are grouped; NULL: they are grouped by
                           * clusters */
    struct page_groups groups;
};

/* Returns a description of what to show: of the first `all` rows of a view, the `listed` most frequent ones (at least `top`);
 * the `top` most frequent ones are on the map. */
struct page_rows page_rows_of(enum model_view view, uint64_t all, uint64_t top, uint64_t listed, const char *labels);
/* Finds nearest rows, coordinates and groups. Searches on the device that device.* of `config` chooses. Returns 0, or -1 after
 * fail(), also if a signal asked to stop; the caller releases in either case. */
int page_rows_find(struct page_rows *rows, const struct model *model, const struct config *config);
/* Appends these keys of an object; arrays are base64:
 *
 *   table, top, listed, k    table shown; numbers of rows on the map, of rows listed, and of nearest rows of each
 *   names, counts, titles    of each row by its number in the page: first the rows shown, then their other nearest rows
 *   near                     uint32, the numbers of each shown row's nearest rows
 *   scores                   int32, their scores in millionths
 *   map                      uint16, x and y of each row on the map
 *   groups                   page_groups.h, of the rows on the map
 *
 * Returns 0, or -1 after fail().
 */
int page_rows_print(struct json *json, const struct page_rows *rows, const struct model *model, const struct titles *titles);

/* Appends a name. A long name is cut, but never inside a character. */
void page_print_name(struct json *json, const char *name, uint64_t length);

void page_rows_release(struct page_rows *rows); /* may be called on a struct of zeros */

#endif
