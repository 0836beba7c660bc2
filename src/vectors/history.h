/* history: reduces a run's metrics.jsonl to the points of a few curves, for the page. */
#ifndef SPTX_HISTORY_H
#define SPTX_HISTORY_H

#include "base/json.h"

enum { HISTORY_POINTS = 600 }; /* most points of a curve; if the file has more lines, groups of lines are averaged */

/* Appends {"trained": {"done": [..], "epoch": .., "seconds": .., "loss": .., "lr": .., "pairs": .., "words": ..}, "held_out":
 * {..}, "untrained": X}. Losses are per pair, speeds per second; null: the line lacks the number. Incomplete lines, which a
 * killed run may leave, are skipped. A missing file counts as empty. Returns 0, or -1 after fail(). */
int history_print(struct json *json, const char *path);

#endif
