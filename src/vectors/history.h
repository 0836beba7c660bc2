/* history: reads what metrics.jsonl tells of a run, in as many points as a curve needs. */
#ifndef SPTX_HISTORY_H
#define SPTX_HISTORY_H

#include "base/json.h"

enum { HISTORY_POINTS = 600 }; /* points of a curve at most; a longer run's lines are averaged in groups */

/* Appends {"trained": {"done": [..], "epoch": .., "seconds": .., "loss": .., "lr": .., "pairs": .., "words": ..},
 * "held_out": {..}, "untrained": X}: losses a pair, speeds a second, null for what a line does not have. Lines that are
 * not whole are left out, since a killed run may leave one; an absent file has no lines. Returns 0, or -1 after
 * fail(). */
int history_print(struct json *json, const char *path);

#endif
