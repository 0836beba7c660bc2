/* page: writes a report of a run as a single HTML file that loads no other file: the corpus and the training, curves, a map of
 * the most frequent rows, their nearest rows, the run's keys, and the output of `evaluate`.
 *
 * The page's HTML, style and scripts are in src/vectors/page. The run's data is in the page as JSON, which can neither run as a
 * script nor fetch anything: the page's content security policy allows only scripts with a nonce made from that JSON, and no
 * connections.
 */
#ifndef SPTX_PAGE_H
#define SPTX_PAGE_H

#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "model.h"
#include "names.h"

enum { PAGE_BYTES = 10000000 }; /* most bytes of a page */

struct page_request {
    const char *run;                /* path of the run, for the commands that the page shows */
    enum model_view view;           /* the table whose rows are shown */
    uint64_t rows;                  /* the page shows only rows below this number (answers_rows) */
    uint64_t top;                   /* number of rows on the map, the most frequent ones */
    uint64_t listed;                /* number of rows whose nearest rows are in the page, including the rows of the map */
    const struct titles *titles;    /* titles of rows; empty: rows have no titles */
    const char *labels;             /* path of a file of labels, by which the map is coloured; NULL: it is coloured by clusters */
    const char *const *evaluations; /* [evaluation_count] paths of files with the output of `evaluate` */
    int evaluation_count;
};

struct page_size {
    uint64_t bytes, top, listed; /* bytes of the page; number of rows on its map; number of rows with nearest rows */
};

/* Writes the page, or nothing. If the nearest rows of all listed rows do not fit into PAGE_BYTES, the rarest rows are left out.
 * Fails if the path is a file of a run, or if the page would be too large. Searches on the device that device.* of `config`
 * chooses. Equal runs and requests give equal bytes. */
int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, struct page_size *size);

/* history: reduces a run's metrics.jsonl to the points of a few curves, for the page. */

enum { HISTORY_POINTS = 600 }; /* most points of a curve; if the file has more lines, groups of lines are averaged */

/* Appends {"trained": {"done": [..], "epoch": .., "seconds": .., "loss": .., "lr": .., "pairs": .., "words": ..}, "held_out":
 * {..}, "untrained": X}. Losses are per pair, speeds per second; null: the line lacks the number. Incomplete lines, which a
 * killed run may leave, are skipped. A missing file counts as empty. Returns 0, or -1 after fail(). */
int history_print(struct json *json, const char *path);

#endif
