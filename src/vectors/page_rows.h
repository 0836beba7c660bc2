/* page_rows: the rows that a page shows: the most frequent ones, their nearest rows among all, and their places on the
 * map. */
#ifndef SPTX_PAGE_ROWS_H
#define SPTX_PAGE_ROWS_H

#include "base/json.h"
#include "model.h"
#include "page_groups.h"
#include "titles.h"
#include "config/config.h"

enum { PAGE_NEAREST = 10 }; /* nearest rows of each, as many as `nearest` shows without an option */

struct page_rows {
    enum model_view view; /* the table whose rows are shown */
    uint64_t all;         /* rows that these are chosen and searched among: the items, or all rows with the lists */
    uint64_t count;       /* rows that are shown with their nearest rows */
    uint64_t top;         /* the first of them, which are on the map */
    uint32_t k;           /* nearest rows of each: PAGE_NEAREST, or all others where there are fewer */
    uint32_t *rows;       /* [count], the most frequent first, ties by id */
    uint32_t *near;       /* [count x k] the nearest rows; both these and their scores are the same as `nearest` finds */
    float *scores;        /* [count x k] cosines */
    float *xy;            /* [top x 2] places on the map */
    const char *labels;   /* the file that groups the rows of the map; NULL: clusters do */
    struct page_groups groups;
};

/* Describes the most frequent `listed` of the first `all` rows of a view, at least `top`; `top` of them are on the
 * map. */
struct page_rows page_rows_of(enum model_view view, uint64_t all, uint64_t top, uint64_t listed, const char *labels);
/* Finds everything about these rows. Searches by device.* of `config`. Returns 0, or -1 after fail(), also where a
 * signal asked to stop; the caller releases in either case. */
int page_rows_find(struct page_rows *rows, const struct model *model, const struct config *config);
/* Appends these keys of an object; arrays are base64:
 *
 *   table, top, listed, k    whose rows, how many are on the map, how many are listed, how many nearest rows each has
 *   names, counts, titles    by number: first the rows shown, then those that are only near to one
 *   near                     uint32, of each row shown: the numbers of its nearest rows
 *   scores                   int32, their scores in millionths
 *   map                      uint16, x and y of each row on the map
 *   groups                   page_groups.h, of the rows on the map
 *
 * Returns 0, or -1 after fail().
 */
int page_rows_print(struct json *json, const struct page_rows *rows, const struct model *model,
                    const struct titles *titles);

/* Appends a name, which is cut where it is long, never inside a character. */
void page_print_name(struct json *json, const char *name, uint64_t length);

void page_rows_release(struct page_rows *rows); /* harmless on a zeroed one */

#endif
