/* page: shows a run as one page of HTML that needs nothing else: what was trained on what, its curves, a map of the
 * most frequent rows, their nearest rows to search, its keys, and what `evaluate` printed.
 *
 * The page's files are in src/vectors/page. What they show stands in the page as JSON, of which nothing is run or
 * fetched: the page's own policy allows only scripts that carry a number made from that JSON, and no connection at all.
 */
#ifndef SPTX_PAGE_H
#define SPTX_PAGE_H

#include "titles.h"
#include "config/config.h"

enum { PAGE_BYTES = 10000000 }; /* bytes of a page at most */

struct page_request {
    const char *run;                /* as the user names it, for the commands that the page shows */
    enum model_view view;           /* the table whose rows are shown */
    uint64_t rows;                  /* the shown rows are among this number of first rows (answers_rows) */
    uint64_t top;                   /* rows of the map: the most frequent ones */
    uint64_t listed;                /* rows whose nearest rows are in the page; the rows of the map are among them */
    const struct titles *titles;    /* empty: none */
    const char *labels;             /* the file by which the map is coloured; NULL: it is by clusters */
    const char *const *evaluations; /* [evaluation_count] files that hold what evaluate printed */
    int evaluation_count;
};

struct page_size {
    uint64_t bytes, top, listed; /* the size of the written page: bytes; rows of the map; rows whose nearest rows are listed */
};

/* Writes the page whole or not at all. If not all lists of nearest rows fit into PAGE_BYTES, the lists of the rarest rows are
 * left out. Refuses a path that is a run's file, and a page that grows too large. Searches by device.* of `config`. The same run
 * and request make the same bytes. */
int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, struct page_size *size);

#endif
