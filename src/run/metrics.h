/* metrics: the reports of a run while it trains: its loss and its rates since the last report, on the live line and as lines of
 * metrics.jsonl. It also warns if the loss does not change.
 *
 * The trainer adds the result of each step or lock-free span, and passes the progress of the run when a report is made.
 */
#ifndef SPTX_METRICS_H
#define SPTX_METRICS_H

#include "checkpoint.h"
#include "config/config.h"

/* Sums over the time since the last report. */
struct report_sums {
    double loss;
    uint64_t loss_examples, loss_pairs, loss_terms; /* numbers of examples, pairs and terms whose losses are in `loss` */
    uint64_t words, pairs, link_bytes;
    double began; /* time of the last report, in seconds (progress_now()) */
};

/* One loss as three averages. example: sum over an example's terms, averaged over examples, as the loss of a batch is usually
 * printed. pair: the sum / the number of pairs. term: the sum / the number of terms. */
struct loss {
    double example, pair, term;
};

enum { METRICS_LINE = 256 };

/* The losses and rates that a run has to report, and its metrics.jsonl. */
struct metrics {
    const struct config *config;
    char *path; /* path of RUN/metrics.jsonl, owned; NULL: this rank is not the first, and writes no file */
    struct report_sums tally;
    struct loss first, last; /* first: loss of the first batch before any update (0: unknown); last: loss of the last report */
    struct loss held_out_first, held_out; /* the first and the last measured loss of held-out examples */
    uint64_t held_out_times;
    double began_term; /* loss of a term in the first batch or span of lock-free training; 0: not measured yet */
    double words_per_second, pairs_per_second; /* rates of the last report */
    uint64_t reports;
    char line[METRICS_LINE]; /* live line of the last report */
    uint64_t lost;           /* number of lines that could not be written */
    char lost_because[256];  /* why the first of the lost lines could not be written */
    int plateau_over; /* 1: the loss differs from its untrained value, or the warning that it does not has been given */
};

/* How far the run has come when a line is written. */
struct standing {
    const struct progress_state *state;
    double done;    /* share of the run that is done, 0..1 */
    double seconds; /* seconds of training of the whole run */
    double lr;
};

/* Starts empty sums. If `run` is NULL, the loss is watched but no line is written. */
int metrics_open(struct metrics *metrics, const struct config *config, const char *run);
void metrics_close(struct metrics *metrics);
/* Says that metrics.jsonl, with the lines written so far, is now in `run`. */
int metrics_move(struct metrics *metrics, const char *run);

/* Clears the sums, so that the next rates count from now on. */
void metrics_start(struct metrics *metrics);
/* Excludes `seconds` since the last report from the rates, because they were not spent on training. */
void metrics_leave_out(struct metrics *metrics, double seconds);
void metrics_add_step(struct metrics *metrics, const struct step_result *result);
void metrics_add_piece(struct metrics *metrics, const struct hogwild_result *result);

/* Writes the line about the first batch. Its loss is that of the first values: about ln 2 a term if these are small.
 *
 * A line that cannot be written does not end the run: a warning says so once, and metrics_complete() fails at the end.
 */
void metrics_untrained(struct metrics *metrics, const struct step_result *result, const struct standing *at);

/* Writes to `out` which keys to change for a model that has learnt too little, with their present values. */
enum { METRICS_ADVICE = 192 };
void metrics_advise(const struct config *config, char out[METRICS_ADVICE]);

/* Returns 1 if train.report_seconds have passed since the last report. */
int metrics_due(const struct metrics *metrics);
/* Reports the loss and the rates since the last report, and clears the sums. Does nothing if nothing was added. */
void metrics_report(struct metrics *metrics, const struct standing *at);
/* Writes the loss of examples that are never trained; `sum` is over all of them. */
void metrics_held_out(struct metrics *metrics, const struct step_result *sum, const struct standing *at);
/* Writes recall@20 of the items that are never trained (train.held_out_items). `lists`: number of lists that it was measured on. */
void metrics_recall(struct metrics *metrics, double recall, uint64_t lists, const struct standing *at);
/* Writes the last line about the loss of a run that has reached its end, after the last report. Warns if the loss never left its
 * untrained value, unless the run had fewer than a hundred exact steps. */
void metrics_judge(struct metrics *metrics, uint64_t step);
void metrics_note_loss(const struct metrics *metrics);

/* Returns a text about a loss that shows diverged weights ("the loss is infinite"), which may be stored in `out`; NULL if the
 * loss is fine. Diverging weights grow by a factor each step. Long before they are infinite, their loss is METRICS_DIVERGED
 * times the first loss, and no data causes that. */
enum { METRICS_BYTES = 96, METRICS_DIVERGED = 1000000 };
const char *metrics_diverged(struct metrics *metrics, double loss, uint64_t terms, char out[METRICS_BYTES]);

/* Returns 0 if every line was written, otherwise -1 after fail(). Called after the last checkpoint is written. */
int metrics_complete(const struct metrics *metrics);

/* Calls take() for each line of a metrics.jsonl, with its LF and a NUL at its end. Stops when take() returns a nonzero value, or
 * before a line that is not whole: a killed run may leave half a line, and a damaged file may contain anything. Returns the last
 * value of take(), 0 if the file has no line, -1 after fail(). */
int metrics_lines(const char *path, int (*take)(void *user, const char *line, uint64_t length), void *user);

/* Removes the first line about a step after `stand` and all lines behind it, since the resumed run will write them again. Also
 * removes lines before it that no run has written. */
int metrics_cut(struct metrics *metrics, const struct progress_state *stand);

#endif
