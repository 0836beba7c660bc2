/* page: writes a report of a run as a single HTML file that loads no other file: the corpus and the training, curves, a map of
 * the most frequent rows, their nearest rows, the run's keys, and the output of `evaluate`.
 *
 * The page's HTML, style and scripts are in src/vectors/page. The run's data is in the page as JSON, and cannot run as a script: the page's content
 * security policy allows only scripts with a nonce made from that JSON, and no connections.
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
    const char *run;                /* path of the run, for commands that the page shows */
    enum model_view view;           /* the table whose rows are shown */
    uint64_t rows;                  /* the page shows only rows below this number (answers_rows) */
    uint64_t top;                   /* number of rows on the map, the most frequent ones */
    uint64_t listed;                /* number of rows with their nearest rows in the page, including the rows of the map */
    const struct titles *titles;    /* titles of rows; empty: rows have no titles */
    const char *labels;             /* path of a file of labels that colour the map; NULL: clusters or a feature colour it */
    const char *colour;             /* column of a file of features, whose values are the labels (features_labels); NULL: none */
    const char *features, *words;   /* that file, and its columns of words; NULL: the run's own */
    const char *const *evaluations; /* [evaluation_count] paths of files that contain the output of `evaluate` */
    int evaluation_count;
};

struct page_size {
    uint64_t bytes, top, listed; /* bytes of the page; number of rows on its map; number of rows with nearest rows */
};

/* Writes the page, or nothing. If it would exceed PAGE_BYTES, the rarest rows are listed without their nearest rows. Fails if the path is a file
 * of a run, or if the page would still be too large. Searches on the device that device.* of `config` chooses. Equal runs and requests give equal
 * bytes. */
int page_write(const struct model *model, const struct page_request *request, const struct config *config,
               const char *path, struct page_size *size);

/* history: reduces a run's metrics.jsonl to the points of a few curves, for the page. */

enum { HISTORY_POINTS = 600 }; /* most points of a curve; if the file has more lines, neighbouring lines are averaged */

/* Appends {"trained": {"done": [..], "epoch": .., "seconds": .., "loss": .., "lr": .., "pairs": .., "words": ..}, "held_out": {..},
 * "scored": {"name": "MRR", "done": [..], "score": [..]}, "untrained": ..}. Losses are per pair, speeds per second. "scored" has the MRR of
 * train.evaluate or the recall of train.held_out_items. "untrained" is the loss of an untrained model. null stands for a missing number. Incomplete
 * lines, as a killed run leaves them, are skipped. A missing file is treated like an empty one. Returns 0, or -1 after fail(). */
int history_print(struct json *json, const char *path);

#endif
