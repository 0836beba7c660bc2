/* page_rows: what a page shows of rows: the most frequent ones, their nearest rows among all, and where they lie on the
 * map. */
#ifndef SPTX_PAGE_ROWS_H
#define SPTX_PAGE_ROWS_H

#include "model.h"
#include "train/config.h"

enum { PAGE_NEAREST = 10 }; /* nearest rows of each, as `nearest` shows them by itself */

struct page_rows {
    uint64_t count; /* rows whose nearest rows are listed */
    uint64_t top;   /* the first of them, which lie on the map */
    uint32_t k;     /* nearest rows of each: PAGE_NEAREST, or all others where there are fewer */
    uint32_t *rows; /* [count], the most frequent first, ties by id */
    uint32_t *near; /* [count x k] rows, found as `nearest` finds them: the same rows, the same scores */
    float *scores;  /* [count x k] cosines */
    float *xy;      /* [top x 2] on the map */
};

/* Of the target table, with count and top set by the caller: at most the model's rows, top at most count. Searches by
 * device.* of `config`. 0, or -1 after fail(), also where a signal asked to stop; the caller releases in either case.
 */
int page_rows_find(struct page_rows *rows, const struct model *model, const struct config *config);
void page_rows_release(struct page_rows *rows); /* harmless on a zeroed one */

#endif
