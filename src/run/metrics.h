/* metrics: reports a run's loss and speed since the last report, in the progress line and in lines of metrics.jsonl. Warns if the loss does not
 * change.
 *
 * The trainer adds the result of each step or lock-free span, and passes the run's progress with each report.
 */
#ifndef SPTX_METRICS_H
#define SPTX_METRICS_H

#include "checkpoint.h"
#include "config/config.h"

/* The sums since the last report. */
struct report_sums {
    double loss;
    uint64_t loss_examples, loss_pairs, loss_terms; /* numbers of examples, pairs and terms whose losses `loss` contains */
    uint64_t words, pairs, link_bytes;
    double began; /* time (progress_now()) of the last report */
};

/* One loss as three averages. example: summed over an example's terms, averaged over examples, as a batch's loss is usually printed. pair: the sum
 * divided by the number of pairs. term: by the number of terms. */
struct loss {
    double example, pair, term;
};

enum { METRICS_LINE = 256 };

/* The losses and rates that a run reports, and its file metrics.jsonl. */
struct metrics {
    const struct config *config;
    char *path; /* path of RUN/metrics.jsonl, owned; NULL: this is not the first rank, and writes no file */
    struct report_sums tally;
    struct loss first, last; /* first: loss of the first batch, before any update (0: unknown); last: of the last report */
    struct loss held_out_first, held_out; /* first and last measured loss of held-out examples */
    uint64_t held_out_times;
    double began_term; /* loss of a term in the first batch or lock-free span; 0: not measured yet */
    double words_per_second, pairs_per_second; /* rates of the last report */
    uint64_t reports;
    char line[METRICS_LINE]; /* live line of the last report */
    uint64_t lost;           /* number of lines that could not be written */
    char lost_because[256];  /* why the first of these lines could not be written */
    int plateau_over; /* 1: the loss has left its untrained value, or the warning about it was printed */
};

/* How far the run is when a line is written. */
struct standing {
    const struct progress_state *state;
    double done;    /* share of the run that is done, 0..1 */
    double seconds; /* seconds of training of the whole run */
    double lr;
};

/* Starts with empty sums. run = NULL: watches the loss but writes no lines. */
int metrics_open(struct metrics *metrics, const struct config *config, const char *run);
void metrics_close(struct metrics *metrics);
/* Tells that metrics.jsonl, with the lines written so far, is in `run` now. */
int metrics_move(struct metrics *metrics, const char *run);

/* Clears the sums, so that the next rates are measured from now on. */
void metrics_start(struct metrics *metrics);
/* Subtracts `seconds` that were not spent on training from the time over which rates are computed. */
void metrics_leave_out(struct metrics *metrics, double seconds);
void metrics_add_step(struct metrics *metrics, const struct step_result *result);
void metrics_add_piece(struct metrics *metrics, const struct hogwild_result *result);

/* Writes the line about the first batch. Its loss is that of untrained rows: about ln 2 a term if their values are small.
 *
 * A line that cannot be written does not end the run: a warning says so once, and metrics_complete() fails at the end.
 */
void metrics_untrained(struct metrics *metrics, const struct step_result *result, const struct standing *at);

/* Writes to `out` which keys to change if a model has learnt too little, with their current values. */
enum { METRICS_ADVICE = 192 };
void metrics_advise(const struct config *config, char out[METRICS_ADVICE]);

/* Returns 1 if train.report_seconds have passed since the last report. */
int metrics_due(const struct metrics *metrics);
/* Reports the loss and the rates since the last report, and clears the sums. Does nothing if nothing was added. */
void metrics_report(struct metrics *metrics, const struct standing *at);
/* Writes the loss of held-out examples, over all of which `sum` is summed. */
void metrics_held_out(struct metrics *metrics, const struct step_result *sum, const struct standing *at);
/* Writes recall@20 of held-out items (train.held_out_items), measured on `lists` lists. */
void metrics_recall(struct metrics *metrics, double recall, uint64_t lists, const struct standing *at);
void metrics_triples(struct metrics *metrics, const double found[4], const struct standing *at); /* found: evaluate_live() */
/* Writes the last line, about a finished run's loss, after the last report. Warns if the loss never left its untrained value, unless the run had
 * fewer than a hundred exact steps. */
void metrics_judge(struct metrics *metrics, uint64_t step);
void metrics_note_loss(const struct metrics *metrics);

/* Returns a text that says how a loss shows that weights have diverged ("the loss is infinite"), perhaps stored in `out`; NULL if the loss is
 * fine. Diverging weights grow by a factor each step: long before they are infinite, their loss is METRICS_DIVERGED times the first one, which no
 * data causes. */
enum { METRICS_BYTES = 96, METRICS_DIVERGED = 1000000 };
const char *metrics_diverged(struct metrics *metrics, double loss, uint64_t terms, char out[METRICS_BYTES]);

/* Returns 0 if every line could be written, otherwise -1 after fail(). Called after the last checkpoint. */
int metrics_complete(const struct metrics *metrics);

/* Calls take() for each line of a metrics.jsonl, including its LF and followed by a NUL. Stops when take() does not return 0, or at a line that is
 * not whole: a killed run may leave half a line, a damaged file anything. Returns take()'s last value; 0 if there are no lines; -1 after fail(). */
int metrics_lines(const char *path, int (*take)(void *user, const char *line, uint64_t length), void *user);

/* Removes the first line about a step after `stand` and all lines after it, which the resumed run will write again, and earlier lines that no run
 * has written. */
int metrics_cut(struct metrics *metrics, const struct progress_state *stand);

#endif
