/* metrics: what a run tells while it trains: its loss and rates since the last report, on the live line and as lines of
 * metrics.jsonl; and whether the loss moves at all.
 *
 * The trainer adds what each step or piece did, and says where the run stands whenever a report is made.
 */
#ifndef SPTX_METRICS_H
#define SPTX_METRICS_H

#include "checkpoint.h"
#include "config/config.h"

/* Sums since the last report. */
struct tally {
    double loss;
    uint64_t loss_examples, loss_pairs, loss_terms; /* that the loss speaks of */
    uint64_t words, pairs, link_bytes;
    double began; /* by progress_now() */
};

/* Summed over an example's terms and averaged over the examples, as the loss of a batch is usually printed; the same
 * sum by targets with one positive each, and by terms. */
struct loss {
    double example, pair, term;
};

struct metrics {
    const struct config *config;
    char *path; /* RUN/metrics.jsonl, owned; NULL: nothing is written, by a rank that is not the first */
    struct tally tally;
    struct loss first, last; /* of the first batch, before any update (0 where it is not known); of the last report */
    struct loss held_out_first, held_out; /* as first and last measured, of examples that are never trained */
    uint64_t held_out_times;
    double began_term; /* loss a term of the first batch or piece; 0: none yet */
    double words_per_second, pairs_per_second; /* of the last report */
    uint64_t reports;
    uint64_t lost;           /* lines that could not be written */
    char lost_because[256];  /* what the first of them met */
    int plateau_over; /* the loss has left its untrained value, or it has been said that it does not */
};

/* Where the run stands when a line is written. */
struct standing {
    const struct progress_state *state;
    double done;    /* share of the run, 0..1 */
    double seconds; /* spent training in the whole run */
    double lr;
};

/* `run` NULL: sums and judges, and writes nothing. */
int metrics_open(struct metrics *metrics, const struct config *config, const char *run);
void metrics_close(struct metrics *metrics);
/* The lines are in `run` from now on, which has what was written so far. */
int metrics_move(struct metrics *metrics, const char *run);

/* Forgets what was added: rates count from now. */
void metrics_start(struct metrics *metrics);
/* These seconds since the last report were not training: rates leave them out. */
void metrics_leave_out(struct metrics *metrics, double seconds);
void metrics_add_step(struct metrics *metrics, const struct step_result *result);
void metrics_add_piece(struct metrics *metrics, const struct hogwild_result *result);

/* A line that cannot be written ends no run: it is warned about once, and metrics_complete() fails at the end.
 *
 * The first batch's loss is measured on the rows as they were filled: ln 2 a term where they are small. */
void metrics_untrained(struct metrics *metrics, const struct step_result *result, const struct standing *at);

/* Whether train.report_seconds have passed since the last report. */
int metrics_due(const struct metrics *metrics);
/* The loss since the last report, and rates; then a new tally. Nothing where nothing was added. */
void metrics_report(struct metrics *metrics, const struct standing *at);
/* Of examples that are never trained: sums over all of them. */
void metrics_held_out(struct metrics *metrics, const struct step_result *sum, const struct standing *at);
/* After the last report of a run that has come to its end: the last line about its loss, and a warning where it never
 * left its untrained value. */
void metrics_judge(struct metrics *metrics, uint64_t step);
void metrics_note_loss(const struct metrics *metrics);

/* What is wrong with a loss after which the weights have diverged ("the loss is infinite"), perhaps in `out`; NULL where
 * nothing is. Diverging weights grow by a factor a step: long before they are infinite their loss is one that no data
 * has, METRICS_DIVERGED times that of the beginning. */
enum { METRICS_BYTES = 96, METRICS_DIVERGED = 1000000 };
const char *metrics_diverged(struct metrics *metrics, double loss, uint64_t terms, char out[METRICS_BYTES]);

/* 0 where every line was written, otherwise -1 after fail(): for a run whose checkpoint is written. */
int metrics_complete(const struct metrics *metrics);

/* Calls take() for each line of a metrics.jsonl, its LF counted and a NUL behind it, until that does not return 0, or up to where
 * no whole line of text begins: a killed run may leave one that has no end, and a damaged file may hold anything. Returns what
 * the last take() did, 0 where there is no line, -1 after fail(). */
int metrics_lines(const char *path, int (*take)(void *user, const char *line, uint64_t length), void *user);

/* Removes the first line that tells of what came after `stand`, and all behind it: a resumed run makes them again. What is no
 * line of a run goes too. */
int metrics_cut(struct metrics *metrics, const struct progress_state *stand);

#endif
