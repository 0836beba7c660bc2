/* page_rows: what a page shows of rows: the most frequent ones, their nearest rows among all, and where they lie on the
 * map. */
#ifndef SPTX_PAGE_ROWS_H
#define SPTX_PAGE_ROWS_H

#include "base/json.h"
#include "model.h"
#include "titles.h"
#include "config/config.h"

enum { PAGE_NEAREST = 10 }; /* nearest rows of each, as `nearest` shows them by itself */

struct page_rows {
    enum model_view view; /* whose rows */
    uint64_t all;         /* rows that these are chosen and found among: items, or with lists all */
    uint64_t count;       /* rows whose nearest rows are listed */
    uint64_t top;         /* the first of them, which lie on the map */
    uint32_t k;           /* nearest rows of each: PAGE_NEAREST, or all others where there are fewer */
    uint32_t *rows;       /* [count], the most frequent first, ties by id */
    uint32_t *near;       /* [count x k] rows, found as `nearest` finds them: the same rows, the same scores */
    float *scores;        /* [count x k] cosines */
    float *xy;            /* [top x 2] on the map */
};

/* The most frequent `listed` of the first `all` rows of a view, `top` at least; of these, `top` lie on the map. */
struct page_rows page_rows_of(enum model_view view, uint64_t all, uint64_t top, uint64_t listed);
/* Finds what is to be known of them. Searches by device.* of `config`. 0, or -1 after fail(), also where a signal asked
 * to stop; the caller releases in either case. */
int page_rows_find(struct page_rows *rows, const struct model *model, const struct config *config);
/* Puts ,"table":..,"top":..,"listed":..,"names":[..],"counts":[..],"titles":[..],"k":..,"near":..,"scores":..,"map":..
 * behind an object's other keys. Names are numbered: rows first, then those that are only near to one. near: of each
 * row the numbers of its nearest names as base64 of uint32; scores: of these, as int32 in millionths; map: uint16, x
 * and y of each row that lies on it. 0, or -1 after fail(). */
int page_rows_print(struct json *json, const struct page_rows *rows, const struct model *model,
                    const struct titles *titles);

/* A name, cut where it is long, never inside a character. */
void page_print_name(struct json *json, const char *name, uint64_t length);

void page_rows_release(struct page_rows *rows); /* harmless on a zeroed one */

#endif
