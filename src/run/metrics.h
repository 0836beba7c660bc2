/* metrics: what a run tells while it trains: its loss and its rates since the last report, on the live line and as
 * lines of metrics.jsonl. It also judges if the loss moves at all.
 *
 * The trainer adds what each step or piece did, and says where the run stands when a report is made.
 */
#ifndef SPTX_METRICS_H
#define SPTX_METRICS_H

#include "checkpoint.h"
#include "config/config.h"

/* Sums since the last report. */
struct tally {
    double loss;
    uint64_t loss_examples, loss_pairs, loss_terms; /* what `loss` is summed over */
    uint64_t words, pairs, link_bytes;
    double began; /* by progress_now() */
};

/* A loss in three ways: summed over an example's terms and averaged over the examples, as the loss of a batch is
 * usually printed; the same sum divided by the pairs (a target with one positive); and by the terms. */
struct loss {
    double example, pair, term;
};

enum { METRICS_LINE = 256 };

struct metrics {
    const struct config *config;
    char *path; /* RUN/metrics.jsonl, owned; NULL: nothing is written, since this rank is not the first */
    struct tally tally;
    struct loss first, last; /* first: of the first batch, before any update (0: not known); last: of the last report */
    struct loss held_out_first, held_out; /* of examples that are never trained: as first measured, as last measured */
    uint64_t held_out_times;
    double began_term; /* the loss a term of the first batch or piece; 0: none yet */
    double words_per_second, pairs_per_second; /* of the last report */
    uint64_t reports;
    char line[METRICS_LINE]; /* the live line of the last report */
    uint64_t lost;           /* lines that could not be written */
    char lost_because[256];  /* why the first of them could not */
    int plateau_over; /* 1: the loss has left its untrained value, or the warning has been given */
};

/* The point that the run has reached when a line is written. */
struct standing {
    const struct progress_state *state;
    double done;    /* the share of the run, 0..1 */
    double seconds; /* seconds of training in the whole run */
    double lr;
};

/* Opens the sums. With `run` NULL they are judged, but nothing is written. */
int metrics_open(struct metrics *metrics, const struct config *config, const char *run);
void metrics_close(struct metrics *metrics);
/* Tells that the lines, including lines written before, are in `run` from now on. */
int metrics_move(struct metrics *metrics, const char *run);

/* Clears the sums, so that rates count from now on. */
void metrics_start(struct metrics *metrics);
/* Leaves seconds since the last report out of the rates, since they were not training. */
void metrics_leave_out(struct metrics *metrics, double seconds);
void metrics_add_step(struct metrics *metrics, const struct step_result *result);
void metrics_add_piece(struct metrics *metrics, const struct hogwild_result *result);

/* Writes the line about the first batch, whose loss is measured on the rows as they were filled: ln 2 a term where they
 * are small.
 *
 * A line that cannot be written ends no run: a warning says so once, and metrics_complete() fails at the end.
 */
void metrics_untrained(struct metrics *metrics, const struct step_result *result, const struct standing *at);

/* Writes to `out` which keys to change for a model that has learnt too little, with their present values. */
enum { METRICS_ADVICE = 192 };
void metrics_advise(const struct config *config, char out[METRICS_ADVICE]);

/* Returns 1 where train.report_seconds have passed since the last report. */
int metrics_due(const struct metrics *metrics);
/* Writes the loss since the last report, and rates, and begins a new tally. Does nothing where nothing was added. */
void metrics_report(struct metrics *metrics, const struct standing *at);
/* Writes the loss of examples that are never trained; `sum` is over all of them. */
void metrics_held_out(struct metrics *metrics, const struct step_result *sum, const struct standing *at);
/* Writes recall@20 of the items that are never trained (train.held_out_items). `lists`: how many were asked. */
void metrics_recall(struct metrics *metrics, double recall, uint64_t lists, const struct standing *at);
/* Writes the last line about the loss of a run that has come to its end, and warns where the loss never left its
 * untrained value. Called after the last report. A run of fewer than a hundred exact steps gets no warning. */
void metrics_judge(struct metrics *metrics, uint64_t step);
void metrics_note_loss(const struct metrics *metrics);

/* Returns the words for a loss that shows diverged weights ("the loss is infinite"), perhaps in `out`; NULL if the loss is fine.
 * Diverging weights grow by a factor a step: long before they are infinite, their loss is METRICS_DIVERGED times the first one,
 * which no data causes. */
enum { METRICS_BYTES = 96, METRICS_DIVERGED = 1000000 };
const char *metrics_diverged(struct metrics *metrics, double loss, uint64_t terms, char out[METRICS_BYTES]);

/* Returns 0 where every line was written, otherwise -1 after fail(). A run calls it after its checkpoint is written. */
int metrics_complete(const struct metrics *metrics);

/* Calls take() for each line of a metrics.jsonl, with its LF and a NUL behind it, until take() returns another value than 0 or
 * no whole line of text follows: a killed run may leave half a line, and a damaged file may hold anything. Returns the result of
 * the last take(), 0 if the file has no line, -1 after fail(). */
int metrics_lines(const char *path, int (*take)(void *user, const char *line, uint64_t length), void *user);

/* Removes the first line that tells of what came after `stand`, and all behind it, since the resumed run writes them
 * again. The first line that is no line of a run ends the file, too. */
int metrics_cut(struct metrics *metrics, const struct progress_state *stand);

#endif
