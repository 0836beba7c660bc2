/* trainer: see trainer.h. Order matters here. Everything that can fail cheaply (keys, corpus, plan, memory) is done first; only
 * then is an older run touched, and it is removed after the new run has a checkpoint.
 *
 *   the directory          locks it for training; resumes, replaces or refuses a run that is already there
 *   between steps          reports, checkpoints, held-out losses
 *   beside training        checkpoints that are written while training continues
 *   patience               held-out scores, and ending a run that no longer improves
 *   a whole run            from taking the directory to the last line of output; steps.c has the loop over batches
 */
#include "trainer.h"

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "gpus.h"
#include "rows/values.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/run_directory.h"
#include "run/state.h"
#include "session.h"
#include "steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_ASKED = 64, COLUMNS_LEAST = 16 }; /* ROWS_ASKED: most rows that are compared. COLUMNS_LEAST: with fewer columns, rows of good models
                                               * have high cosines, too */
static const double alike = 0.9;

/* Reads a row's weights, and scales them to length 1; zeros stay zeros. */
static int read_row(const struct table *table, uint64_t row, char *packed, float *out) {
    const struct record_field *weights = &table->spec.layout.field[RECORD_WEIGHTS];
    struct npy_field field = {.kind = values_kind(weights->type)};
    double square = 0;
    if (table->ops->table_read(table->backend, table->store, row, 1, packed)) return -1;
    values_of_file(&field, packed + weights->packed, 0, weights->columns, out);
    for (uint32_t i = 0; i < weights->columns; i++) square += (double)out[i] * out[i];
    for (uint32_t i = 0; square > 0 && i < weights->columns; i++) out[i] = (float)(out[i] / sqrt(square));
    return 0;
}

/* Returns the mean cosine of all pairs of different rows, which have length 1: over all ordered pairs the cosines add up to |sum of rows|^2 - sum
 * of |row|^2. */
static double mean_of_pairs(const float *rows, uint64_t count, uint32_t columns) {
    double all = 0, own = 0;
    for (uint32_t i = 0; i < columns; i++) {
        double sum = 0;
        for (uint64_t row = 0; row < count; row++) {
            double value = rows[row * columns + i];
            sum += value;
            own += value * value;
        }
        all += sum * sum;
    }
    return (all - own) / ((double)count * (double)(count - 1));
}

int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean) {
    const struct record_layout *layout = &table->spec.layout;
    uint64_t there = end > first ? end - first : 0, count = there < ROWS_ASKED ? there : ROWS_ASKED;
    *mean = NAN;
    if (count < 2 || table->whole.dim < COLUMNS_LEAST) return 0;
    OWNED char *packed = mem_alloc(layout->packed, 1, "a row");
    OWNED float *rows = mem_alloc(count * layout->dim, sizeof *rows, "rows");
    int result = packed && rows ? 0 : -1;
    for (uint64_t i = 0; !result && i < count; i++)
        result = read_row(table, first + i * there / count, packed, rows + i * layout->dim);
    if (!result) *mean = mean_of_pairs(rows, count, layout->dim);
    return result;
}

/* Returns advice against divergence: which keys to set. It names neither the learning rate nor keys that the user of this run has set. */
static const char *other_ways(const struct config *c) {
    int summed = c->train_update == UPDATE_BATCH && c->train_reduction == REDUCTION_SUM;
    char why[HOGWILD_WHY];
    struct hogwild_asked asked = config_hogwild(c);
    if (!summed) return "";
    if (c->optimizer_clip > 0) return " or train.batch, whose gradients are summed, or optimizer.clip";
    return hogwild_refuses(&asked, why)
               ? " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try)"
               : " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try), or "
                 "train.update = hogwild, which adds them one by one";
}

/* The arguments of diverged_say(). */
struct diverging {
    const struct config *config;
    const char *run;
    uint64_t step;
    const char *what;
};

static int say(void *user) {
    const struct diverging *d = user;
    char seen[256];
    snprintf(seen, sizeof seen, "%s", d->what);
    report_clear();
    OWNED char *kept = checkpoint_newest(d->run, NULL, &(int){0});
    report_clear();
    fail("%s at step %" PRIu64 ": the weights have diverged; lower optimizer.lr (now %g)%s; %s%s%s", seen, d->step,
         d->config->optimizer_lr, other_ways(d->config),
         kept ? "the last good checkpoint is '" : "no checkpoint had been written", kept ? kept : "", kept ? "'" : "");
    return -1;
}

/* Fails, in place of an earlier message, because the weights have diverged at `step`: says how that was seen (`what`: "the loss is infinite"),
 * which keys to change, and which checkpoint is the last good one. All ranks call it together, since the first rank may look long for checkpoints.
 * Returns -1. */
static int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what) {
    struct diverging diverging = {config, run, step, what};
    return ranks_do(ranks, ranks_first(ranks) ? say : NULL, &diverging);
}

/* The run directory that this trainer has locked, and the run found there. */
struct trainer_run {
    struct run_directory run; /* open on the first rank; on other ranks only its paths are set */
    char *checkpoint;         /* path of the checkpoint to resume from, owned; NULL: a new run */
    struct run_state older;   /* state of that checkpoint */
    uint64_t kept;            /* run.keep of the process that wrote that checkpoint */
};

/* A checkpoint that is being written while training continues. */
struct trainer_behind {
    struct behind work;
    char *place; /* directory of the checkpoint that is being written; owned; NULL: none */
    struct table target, context; /* snapshots of the tables at the checkpoint's step */
    struct checkpoint what;
    uint64_t keep;
    double began;
};

/* A run that is being trained by this process. */
struct trainer {
    struct config *config;
    const struct trainer_options *options;
    struct ranks *ranks; /* options->ranks; NULL: this process alone */
    int impatient;  /* 1: no better held-out score for train.patience epochs */
    int heard_stop; /* 1: the caller asked to stop, by options->hear or its flag */
    struct trainer_run claim;
    struct run_directory *run; /* the directory in `claim`; only the first rank writes there */
    struct session session;
    struct steps steps;
    struct corpus_identity corpus;
    double began, began_training, seconds_before;
    double beside; /* seconds, since began_training, spent on other work than training: held-out losses, checkpoints */
    struct checkpoint_due due;
    struct trainer_behind behind;
    char unwritten[4096]; /* why a checkpoint could not be written */
    struct metrics metrics;
    struct triples_job *evaluation; /* what options->evaluate keeps between its calls */
    double mrr;                     /* of train.evaluate, when it was last measured; NaN: never */
};

enum { NOT_WRITTEN = 1 }; /* returned if a checkpoint cannot be written: older ones stay, and training continues */

/* Defined below; called by the work between steps. */
static int trainer_begin_checkpoint(struct trainer *t);
static int trainer_is_writing(const struct trainer *t);
static int trainer_end_checkpoint(struct trainer *t);
static void trainer_leave_checkpoint(struct trainer *t);
static int trainer_is_judged(const struct trainer *t);
static int trainer_judge_epoch(struct trainer *t);

/* ======== the directory ======== */

/* If several ranks train together, the first rank takes the directory and tells the others; they write nothing there. */

/* Refuses a run whose file `latest` names a checkpoint although it contains no whole one: it cannot be resumed, and is replaced only with
 * --overwrite. */
static int refuse_lost(const char *run) {
    int owner = run_file_owner(run, RUN_LATEST);
    if (owner != RUN_FILE_OWN) return owner < 0 ? -1 : 0;
    return fail(
        "'%s' holds a run that had a checkpoint, as its 'latest' says, and none there is one now: put it back, or replace the run by --overwrite",
        run);
}

/* Finds the checkpoint to resume from; claim->checkpoint stays NULL for a new run. Refuses a run that is already there if neither --resume nor
 * --overwrite was given. */
static int find_older(struct trainer_run *claim, const struct trainer_options *options) {
    const char *run = claim->run.path;
    int found = 0;
    claim->checkpoint = options->overwrite ? NULL : checkpoint_newest(run, &claim->older, &found);
    if (found < 0) return -1;
    if (found && !options->resume && claim->older.progress.finished)
        return fail("'%s' holds a finished run; --overwrite replaces it, run.dir = ... writes elsewhere", run);
    if (found && !options->resume)
        return fail("'%s' holds an unfinished run at step %" PRIu64 "; --resume goes on from it, --overwrite starts over", run,
                    claim->older.progress.step);
    if (!found && !options->overwrite && refuse_lost(run)) return -1;
    if (!found && options->resume) note("'%s' has no checkpoint yet: starting over", run);
    return found ? checkpoint_name_latest(run, claim->checkpoint) : 0;
}

static int take_directory(void *user) {
    struct trainer *t = user;
    return run_directory_open(t->run, t->config->run_dir, t->options->resume) || find_older(&t->claim, t->options) ? -1 : 0;
}

/* Locks config->run_dir, and replaces it by its real path, so that a link that changes later does not matter. If a run is resumed, sets the keys
 * that depend on the machine to that run's values. Returns -1 after fail() on every rank, also if a run is there and neither --resume nor
 * --overwrite was given. */
static int open_directory(struct trainer *t) {
    struct trainer_run *claim = &t->claim;
    struct ranks *ranks = t->ranks;
    claim->run.fd = -1;
    if (ranks_do(ranks, ranks_first(ranks) ? take_directory : NULL, t)) return -1;
    if (ranks_count(ranks) > 1) {
        ranks_share(ranks, &claim->older, sizeof claim->older);
        if (ranks_alike_text(&claim->run.path, ranks) || ranks_alike_text(&claim->run.place, ranks) || ranks_alike_text(&claim->checkpoint, ranks))
            return -1;
    }
    char *resolved = mem_text(claim->run.path, strlen(claim->run.path), "a path");
    if (ranks_agree(ranks, resolved ? 0 : -1)) {
        free(resolved);
        return -1;
    }
    free(t->config->run_dir);
    t->config->run_dir = resolved;
    if (claim->checkpoint && !t->options->data && !*t->config->corpus_path)
        return fail("no corpus.path is given; sptx-w2v train %s/config.ini --resume goes on with the run, by its own keys", claim->run.place);
    return claim->checkpoint ? ranks_agree(ranks, resume_keys(t->config, claim->run.place, ranks, &claim->kept)) : 0;
}

/* ======== between steps ======== */

enum {
    HELD_OUT_EXAMPLES = 1 << 21, /* most examples of an epoch among which held-out ones are searched for measuring their loss */
    RETRY_SECONDS = 60,          /* seconds between two attempts to write the last checkpoint while the disk stays full */
    LOOK_NANOSECONDS = 200000000,
    MISSING_BYTES = 64 /* bytes of the text of missing_text() */
};

/* Returns 1 if this process has locked the run directory and writes there. */
static int trainer_writes(const struct trainer *t) {
    return ranks_first(t->ranks);
}

/* ---- time ---- */

static double seconds_trained(const struct trainer *t) {
    return t->seconds_before + (progress_now() - t->began_training) - t->beside;
}

/* Does work other than training, whose time is not counted as training time. */
static int do_beside(struct trainer *t, int (*work)(struct trainer *)) {
    double began = progress_now();
    int result = work(t);
    double spent = progress_now() - began;
    t->beside += spent;
    metrics_leave_out(&t->metrics, spent);
    return result;
}

/* ---- reports ---- */

static struct standing trainer_standing(const struct trainer *t, double lr) {
    return (struct standing){.state = &t->steps.state, .done = steps_share(&t->steps), .seconds = seconds_trained(t), .lr = lr};
}

/* Continues in the run directory's new place if it was moved; fails if it was removed. */
static int trainer_follow(struct trainer *t) {
    int moved = trainer_writes(t) ? run_directory_follow(t->run) : 0;
    if (moved < 0) return -1;
    return moved ? metrics_move(&t->metrics, t->run->place) : 0;
}

/* Tells the caller (options->hear) of the progress; the caller may ask to stop. */
static void tell(struct trainer *t, double lr) {
    const struct metrics *m = &t->metrics;
    struct sptx_progress told = {.size = sizeof told,
                                 .step = t->steps.state.step,
                                 .epoch = t->steps.state.epoch,
                                 .done = steps_share(&t->steps),
                                 .loss = m->last.example,
                                 .lr = lr,
                                 .words_per_second = m->words_per_second,
                                 .pairs_per_second = m->pairs_per_second,
                                 .seconds = seconds_trained(t),
                                  .line = m->line};
    if (t->options->hear && t->options->hear(t->options->user, &told)) t->heard_stop = 1;
}

static void report(void *user, double lr, int last) {
    struct trainer *t = user;
    if (!last && !metrics_due(&t->metrics)) return;
    struct standing now = trainer_standing(t, lr);
    uint64_t before = t->metrics.reports;
    if (trainer_follow(t)) {
        t->heard_stop = 1; /* the checkpoint that is written next says why */
        return;
    }
    metrics_report(&t->metrics, &now);
    if (t->metrics.reports != before) tell(t, lr);
}

/* Fails, and names the last good checkpoint, which may be the one that is being written. */
static int say_diverged(struct trainer *t, const char *what) {
    trainer_leave_checkpoint(t);
    return diverged_say(t->config, t->ranks, t->run->place, t->steps.state.step, what);
}

static int check_loss(struct trainer *t, double loss, uint64_t terms) {
    char text[METRICS_BYTES];
    const char *wrong = metrics_diverged(&t->metrics, loss, terms, text);
    return wrong ? say_diverged(t, wrong) : 0;
}

/* ---- what a step came to ---- */

static int take_batch(void *user, const struct step_result *r) {
    struct trainer *t = user;
    metrics_add_step(&t->metrics, r);
    if (!t->steps.state.pairs && r->pairs) { /* the untrained model's loss is that of the first batch, before any update */
        struct standing start = {.state = &(struct progress_state){0}, .seconds = seconds_trained(t), .lr = schedule_rate(t->config, 0)};
        metrics_untrained(&t->metrics, r, &start);
    }
    t->steps.state.words += r->words;
    t->steps.state.pairs += r->pairs;
    return check_loss(t, r->loss, r->terms);
}

static int take_piece(void *user, const struct hogwild_result *r, double seconds) {
    struct trainer *t = user;
    metrics_add_piece(&t->metrics, r);
    t->steps.state.words += r->words;
    t->steps.state.pairs += r->pairs;
    return check_loss(t, r->loss, r->sampled_terms);
}

/* ---- checkpoints ---- */

/* Returns the bytes of a checkpoint's files. */
static uint64_t trainer_checkpoint_bytes(const struct trainer *t) {
    if (!t->config->run_checkpoint) return 0;
    return table_file_bytes(t->steps.target) + table_file_bytes(t->steps.context) + frozen_bytes(&t->session.frozen);
}

static int follow_run(void *user) {
    return trainer_follow(user);
}

static int settle_run(void *user) {
    struct trainer *t = user;
    return run_directory_settle(t->run) || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

/* Called after each checkpoint: removes the older run that a new run replaces. */
static int trainer_settle(struct trainer *t) {
    return ranks_do(t->ranks, trainer_writes(t) ? settle_run : NULL, t);
}

/* Prepares the tables and the state for a checkpoint of this step. */
static int trainer_ready_checkpoint(struct trainer *t) {
    t->steps.state.seconds = seconds_trained(t);
    return t->steps.ops->drain(t->steps.backend) || ranks_do(t->ranks, trainer_writes(t) ? follow_run : NULL, t) ? -1 : 0;
}

/* Called when a checkpoint has failed on all ranks: moves the reason to t->unwritten, so that training can continue. */
static int trainer_forgive(struct trainer *t) {
    snprintf(t->unwritten, sizeof t->unwritten, "%s", report_sentence());
    report_clear();
    ranks_forgive(t->ranks);
    return NOT_WRITTEN;
}

/* Writes a checkpoint of this step. All ranks write the tables; only the first changes directories. Returns 0; NOT_WRITTEN, with the reason in
 * t->unwritten; -1 after fail(). */
static int try_checkpoint(struct trainer *t) {
    double began = progress_now();
    if (trainer_ready_checkpoint(t)) return -1;
    struct checkpoint what = {t->steps.target, t->steps.context, t->steps.state, t->corpus, &t->session.frozen};
    int result = checkpoint_write(t->run->place, &what, t->config->run_keep);
    if (result == TABLE_NOT_FINITE) return say_diverged(t, report_sentence());
    if (ranks_agree(t->ranks, result)) return trainer_forgive(t);
    if (trainer_settle(t)) return -1; /* the next process completes the replacement of a run that is half done */
    checkpoint_due_written(&t->due, t->steps.state.step, progress_now() - began, progress_now());
    return 0;
}

/* Writes "; 1.2 GiB are missing" if the disk has too little space for a checkpoint, otherwise "". */
static char *missing_text(const struct trainer *t, char text[MISSING_BYTES]) {
    char missing[TEXT_BYTES];
    uint64_t space = UINT64_MAX, wanted = trainer_checkpoint_bytes(t) + BESIDE_BYTES;
    *text = 0;
    if (directory_space(t->run->path, &space)) report_clear();
    if (space < wanted) snprintf(text, MISSING_BYTES, "; %s are missing", text_of_bytes(missing, wanted - space));
    return text;
}

/* Warns that a checkpoint is passed over. */
static int trainer_pass_over(struct trainer *t, uint64_t step) {
    char missing[MISSING_BYTES];
    warn("checkpoint-%" PRIu64 " is not written: %s%s; the older one stays, and training goes on", step, t->unwritten,
         missing_text(t, missing));
    checkpoint_due_begun(&t->due, t->steps.state.step, progress_now());
    return NOT_WRITTEN;
}

/* Writes a checkpoint of this step, and waits until it is written. If that fails, for example because the disk is full, warns and returns
 * NOT_WRITTEN: older checkpoints stay, and training continues. Returns 0, or -1 after fail(). */
static int trainer_write_checkpoint(struct trainer *t) {
    if (trainer_end_checkpoint(t)) return -1;
    int result = try_checkpoint(t);
    return result == NOT_WRITTEN ? trainer_pass_over(t, t->steps.state.step) : result;
}

/* ---- the last checkpoint ---- */

/* State of waiting until the disk has space again. */
struct awaiting {
    struct trainer *t;
    double until;     /* time (progress_now()) at which it gives the last checkpoint up */
    int asked_before; /* 1: a signal has already stopped the run, so a second one ends the process at once */
};

/* Waits until the last checkpoint may be tried again, because the disk has more space or a minute has passed. Returns 0, or 1 to give it up. */
static int await_disk(void *user) {
    const struct awaiting *w = user;
    const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
    char missing[MISSING_BYTES], left[TEXT_BYTES];
    uint64_t before = UINT64_MAX, space, wanted = trainer_checkpoint_bytes(w->t) + BESIDE_BYTES;
    double began = progress_now(), next = began + RETRY_SECONDS < w->until ? began + RETRY_SECONDS : w->until;
    if (began >= w->until) return 1;
    warn("the last checkpoint is not written: %s%s; it is tried again for %s, or until Ctrl-C", w->t->unwritten, missing_text(w->t, missing),
         text_of_time(left, w->until - began));
    if (directory_space(w->t->run->path, &before)) report_clear();
    while (progress_now() < next) {
        if (interrupt_asked() && (!w->asked_before || interrupt_used())) return 1;
        if (!directory_space(w->t->run->path, &space) && space > before && space >= wanted) return 0;
        nanosleep(&pause, NULL);
    }
    report_clear();
    return 0;
}

/* Writes the run's last checkpoint. If it cannot be written, tries again for run.retry_seconds. Returns 0, or -1 after fail(). */
static int trainer_write_last(struct trainer *t) {
    if (!t->config->run_checkpoint) {
        note("checkpoint none (run.checkpoint = no): the rows are not kept");
        return trainer_settle(t);
    }
    if (trainer_end_checkpoint(t)) return -1;
    struct awaiting waiting = {t, progress_now() + t->config->run_retry_seconds, interrupt_asked()};
    int result = try_checkpoint(t);
    while (result == NOT_WRITTEN) {
        int given_up = ranks_do(t->ranks, trainer_writes(t) ? await_disk : NULL, &waiting);
        if (given_up) return given_up < 0 ? -1 : fail("%s", t->unwritten);
        result = try_checkpoint(t);
    }
    return result;
}

/* Work to do after a step, as bits. All ranks do it after the same step, as soon as one rank wants it. */
enum wish { WISH_STOP = 1, WISH_CHECKPOINT = 2, WISH_WRITTEN = 4 };

static unsigned wishes(void *user, int epoch_ended) {
    struct trainer *t = user;
    int asked = interrupt_asked();
    if (asked && t->options->keep_signals) t->heard_stop = 1;
    unsigned own = t->heard_stop || asked ? WISH_STOP : 0;
    if (trainer_is_writing(t)) {
        if (behind_is_done(&t->behind.work)) own |= WISH_WRITTEN;
        else checkpoint_due_busy(&t->due, progress_now());
    }
    /* Only the clock of the rank that writes checkpoints decides. */
    int due = trainer_writes(t) && t->config->run_checkpoint && checkpoint_due_now(&t->due, t->steps.state.step, epoch_ended, progress_now());
    if (due) own |= WISH_CHECKPOINT;
    return ranks_any(t->ranks, own);
}

/* ---- held-out loss ---- */

/* Measures the loss of held-out examples (train.held_out), if there are any. No batch may be in flight. */
static int trainer_measure_held_out(struct trainer *t) {
    uint64_t most = t->steps.per_epoch < HELD_OUT_EXAMPLES ? t->steps.per_epoch : HELD_OUT_EXAMPLES;
    struct step_request request = {.target = t->steps.target->store,
                                   .context = t->steps.context->store,
                                   .rule = &t->steps.target->rule,
                                   .loss = config_loss(t->config),
                                   .loss_only = 1};
    struct step_result sum = {0}, got;
    if (!t->session.examples.source.held_out) return 0;
    for (uint64_t first = 0; first < most; first += t->steps.batch) {
        struct batch_request batch = {0, first, most - first < t->steps.batch ? most - first : t->steps.batch, 1};
        if (t->steps.ops->make_batch(t->steps.backend, 0, &batch) || t->steps.ops->step(t->steps.backend, 0, &request) ||
            t->steps.ops->result(t->steps.backend, 0, &got))
            return -1;
        sum.loss += got.loss;
        sum.examples += got.examples;
        sum.pairs += got.pairs;
        sum.terms += got.terms;
    }
    if (!sum.examples) return 0;
    struct standing now = trainer_standing(t, 0);
    if (trainer_follow(t)) return -1;
    metrics_held_out(&t->metrics, &sum, &now);
    return 0;
}

static int has_evaluation(const struct trainer *t) {
    return *t->config->train_evaluate && t->options->evaluate;
}

/* Calls options->evaluate with the present rows. found: [4] as there; NULL: the file is only read. Returns 0, or -1 after fail(). */
static int ask_evaluation(struct trainer *t, double *found) {
    const struct session *s = &t->session;
    struct model model;
    uint64_t first, again;
    if (model_live(&model, t->config, &s->vocab, t->steps.target, t->steps.context, t->corpus.stream)) return -1;
    memcpy(model.keys.said, s->said, sizeof s->said);
    int read = t->evaluation != NULL; /* 1: an earlier call has read the triples and looked up their names */
    int result = !read && words_index(&model.vocab.words, s->pool, &first, &again) < 0 ? -1 : t->options->evaluate(&t->evaluation, &model, found);
    if (!read) words_drop_index(&model.vocab.words); /* training itself looks up no word */
    return result;
}

/* Ranks the triples of the file train.evaluate by the rows as they are now, and writes the scores to metrics.jsonl. Returns 0, or -1 after fail(). */
static int trainer_evaluate(struct trainer *t) {
    double found[4];
    if (!has_evaluation(t)) return 0;
    if (ask_evaluation(t, found)) return -1;
    struct standing now = trainer_standing(t, 0);
    if (trainer_follow(t)) return -1;
    metrics_triples(&t->metrics, found, &now);
    t->mrr = found[0];
    return 0;
}

/* Does what is due at the end of an epoch, and what a signal or the caller has asked for. */
static int between(void *user, int epoch_ended, unsigned wished) {
    struct trainer *t = user;
    int finished = steps_done(&t->steps) >= t->steps.run;
    if ((wished & WISH_WRITTEN) && do_beside(t, trainer_end_checkpoint)) return -1;
    if (epoch_ended || finished) {
        if (t->steps.ops->drain(t->steps.backend) || do_beside(t, trainer_measure_held_out) || do_beside(t, trainer_evaluate)) return -1;
    }
    if (trainer_is_judged(t) && (epoch_ended || finished) && do_beside(t, trainer_judge_epoch)) return -1;
    if (t->impatient) return 1;
    if (finished) return 0;
    if (wished & WISH_STOP) return 1;
    return wished & WISH_CHECKPOINT && do_beside(t, trainer_begin_checkpoint) < 0 ? -1 : 0;
}

/* ======== beside training ======== */

/* The checkpoint contains rows (table_snapshot) and state.ini of the step at which it began, so its files are the same as if training had waited.
 * Only one checkpoint is written at a time. */

static int write_snapshots(void *user) {
    struct trainer_behind *w = user;
    int result = checkpoint_write(w->place, &w->what, w->keep);
    w->target.ops->snapshot_stop(w->target.store);
    w->context.ops->snapshot_stop(w->context.store);
    return result;
}

static void end_snapshot(const struct table *snapshot) {
    if (snapshot->ops) snapshot->ops->snapshot_end(snapshot->backend, snapshot->store);
}

static void drop_behind(struct trainer_behind *w) {
    behind_close(&w->work);
    end_snapshot(&w->target);
    end_snapshot(&w->context);
    free(w->place);
    *w = (struct trainer_behind){.place = NULL};
}

static int take_snapshots(struct trainer *t) {
    struct trainer_behind *w = &t->behind;
    if (table_snapshot(t->steps.target, 0, &w->target) || table_snapshot(t->steps.context, 0, &w->context)) return -1;
    w->what = (struct checkpoint){&w->target, &w->context, t->steps.state, t->corpus, &t->session.frozen};
    w->keep = t->config->run_keep;
    w->place = mem_text(t->run->place, strlen(t->run->place), "a path");
    w->began = progress_now();
    return w->place ? behind_begin(&w->work, write_snapshots, w) : -1;
}

static int trainer_is_writing(const struct trainer *t) {
    return t->behind.place != NULL;
}

/* Begins a checkpoint that is written while training continues, or writes it at once if the plan has no memory for that. */
static int trainer_begin_checkpoint(struct trainer *t) {
    if (!t->session.plan.snapshot_bytes) return trainer_write_checkpoint(t);
    if (trainer_end_checkpoint(t) || trainer_ready_checkpoint(t)) return -1;
    if (take_snapshots(t)) {
        drop_behind(&t->behind);
        warn("training waits for this checkpoint: %s", report_sentence());
        report_clear();
        return trainer_write_checkpoint(t);
    }
    checkpoint_due_begun(&t->due, t->steps.state.step, t->behind.began);
    return 0;
}

/* Waits until the current checkpoint, if any, is written; warns if that failed. */
static int trainer_end_checkpoint(struct trainer *t) {
    struct trainer_behind *w = &t->behind;
    if (!trainer_is_writing(t)) return 0;
    behind_wait(&w->work);
    double took = progress_now() - w->began;
    uint64_t step = w->what.progress.step;
    int moved = w->work.result < 0 && (trainer_follow(t) || strcmp(w->place, t->run->place) != 0);
    int result = moved ? 0 : behind_end(&w->work);
    drop_behind(w);
    if (result == TABLE_NOT_FINITE) return diverged_say(t->config, t->ranks, t->run->place, step, report_sentence());
    if (moved) return report_exit_code() || trainer_write_checkpoint(t) < 0 ? -1 : 0;
    if (result) {
        trainer_forgive(t);
        trainer_pass_over(t, step);
        return 0;
    }
    if (trainer_settle(t)) return -1;
    checkpoint_due_written(&t->due, step, took, progress_now());
    return 0;
}

/* Only waits for the checkpoint that is being written, if any. */
static void trainer_leave_checkpoint(struct trainer *t) {
    if (trainer_is_writing(t)) drop_behind(&t->behind);
}

/* ======== patience ======== */

/* If train.patience is set, a checkpoint is written and scored after each epoch. The run ends when the score has not improved for that many
 * epochs, and its best checkpoint is the result. Each state.ini contains the scores so far, so that a resumed run decides as it would have without
 * being killed. */

/* Returns 1 if the run is scored after each epoch (train.patience). */
static int trainer_is_judged(const struct trainer *t) {
    return t->config->train_patience > 0;
}

/* ---- the score ---- */

struct judging {
    struct trainer *t;
    struct trainer_score score;
};

/* Asks the trainer's caller (options->judge) for the score of the newest checkpoint. */
static int judge_checkpoint(void *user) {
    struct judging *j = user;
    const struct trainer *t = j->t;
    char name[CHECKPOINT_NAME];
    checkpoint_name(name, t->steps.state.step, CHECKPOINT_IN_PLACE);
    OWNED char *path = file_join(t->run->place, name);
    return path ? t->options->judge(&j->score.score, &j->score.lists, path, &t->session.held_out, t->config) : -1;
}

static int is_judged_by_mrr(const struct trainer *t) {
    return trainer_is_judged(t) && !isnan(t->mrr);
}

/* Finds the held-out score, on all ranks. If items are held out, the first rank computes it. */
static int find_score(struct trainer *t, struct trainer_score *score) {
    int items = t->session.held_out.lists > 0, losses = t->metrics.held_out_times > 0;
    struct judging judging = {t, {is_judged_by_mrr(t) ? t->mrr : losses ? -t->metrics.held_out.pair : NAN, 0}};
    if (items && ranks_do(t->ranks, trainer_writes(t) ? judge_checkpoint : NULL, &judging)) return -1;
    ranks_share(t->ranks, &judging.score, sizeof judging.score);
    struct standing now = trainer_standing(t, 0);
    if (items) metrics_recall(&t->metrics, judging.score.score, judging.score.lists, &now);
    *score = judging.score;
    return 0;
}

/* ---- patience ---- */

static int amend(void *user) {
    struct trainer *t = user;
    return checkpoint_amend(t->run->place, &t->steps.state, t->config->run_keep);
}

static void look_at_patience(struct trainer *t) {
    t->impatient = t->steps.state.worse_epochs >= t->config->train_patience;
}

static int trainer_judge_epoch(struct trainer *t) {
    struct trainer_score score;
    int written = trainer_write_checkpoint(t);
    if (written) return written < 0 ? -1 : 0; /* an epoch without a checkpoint is not scored */
    if (find_score(t, &score)) return -1;
    if (isnan(score.score))
        return fail("train.patience = %" PRIu64 " found nothing that is held out after epoch %" PRIu64 "; raise train.held_out",
                    t->config->train_patience, t->steps.state.epoch);
    struct progress_state *state = &t->steps.state;
    int better = !state->best_step || score.score > state->best;
    state->judged_step = state->step;
    state->worse_epochs = better ? 0 : state->worse_epochs + 1;
    if (better) state->best = score.score, state->best_step = state->step;
    look_at_patience(t);
    return ranks_do(t->ranks, trainer_writes(t) ? amend : NULL, t);
}

/* Scores an epoch's checkpoint that was written by a process that was killed before it scored it. */
static int trainer_judge_left(struct trainer *t) {
    const struct progress_state *state = &t->steps.state;
    if (!trainer_is_judged(t) || !state->step) return 0;
    look_at_patience(t);
    if (state->position || state->judged_step == state->step) return 0;
    return trainer_measure_held_out(t) || trainer_evaluate(t) || trainer_judge_epoch(t) ? -1 : 0;
}

static int end_at_best(void *user) {
    struct trainer *t = user;
    const struct progress_state *state = &t->steps.state;
    int over = t->impatient || state->best_step != state->step; /* 0: the last epoch was the best one, so more epochs may still be trained later */
    return checkpoint_end_at(t->run->place, state->best_step, over ? state->step : 0);
}

/* Ends a run that was scored after each epoch: its best checkpoint is the result, and later ones are removed. */
static int trainer_end_at_best(struct trainer *t) {
    const struct progress_state *state = &t->steps.state;
    int items = t->session.held_out.lists > 0, mrr = is_judged_by_mrr(t);
    if (trainer_end_checkpoint(t)) return -1;
    if (!state->best_step) return trainer_write_last(t); /* there was no checkpoint to score: too few examples for a step, or the disk was full */
    note("best       checkpoint-%" PRIu64 " of the %" PRIu64 " step%s is the result: held-out %s %.4f", state->best_step, state->step,
         text_plural(state->step), items ? "recall@20" : mrr ? "MRR" : "loss a pair", items || mrr ? state->best : -state->best);
    if (t->options->score) *t->options->score = (struct trainer_score){state->best, (uint64_t)items};
    return ranks_do(t->ranks, trainer_writes(t) ? end_at_best : NULL, t);
}

/* ======== a whole run ======== */

/* ---- getting ready ---- */

/* Does everything before the tables are opened, without changing anything of an older run. */
static int prepare(struct trainer *t) {
    struct session *s = &t->session;
    if (session_open(s, t->config, t->options->data, t->ranks, t->claim.checkpoint)) return -1;
    session_print(s);
    if (session_tables(s)) return -1;
    t->steps = session_steps(s);
    t->corpus = (struct corpus_identity){.vocab = vocab_fingerprint(&s->vocab),
                                         .stream = s->counts.ids ? s->counts.checksum : s->graph.nodes ? s->graph.checksum : s->stream.checksum,
                                         .tree = s->examples.tree.words ? huffman_fingerprint(&s->examples.tree) : 0};
    if (schedule_examples(t->config, t->steps.per_epoch, t->steps.batch, &t->steps.run)) return -1;
    t->steps.end = t->steps.run;
    return has_evaluation(t) ? ask_evaluation(t, NULL) : 0;
}

/* ---- training ---- */

/* Warns if the rows among which answers are searched hardly differ: rows of documents; context rows for other corpora whose lists have rows or
 * whose heads and tails share rows; otherwise target rows. */
static int watch_rows(const struct trainer *t) {
    const struct vocab *vocab = &t->session.vocab;
    int user = config_has_lists(t->config), documents = config_has_documents(t->config);
    uint64_t items = vocab->size - vocab->lists;
    double mean;
    const struct table *table = user || t->config->model_tied ? t->steps.context : t->steps.target;
    if (t->steps.ops->drain(t->steps.backend) ||
        told_apart_cosine(table, documents ? items : 0, documents ? vocab->size : items, &mean))
        return -1;
    char way[METRICS_ADVICE];
    const char *what = documents                                            ? "documents"
                       : corpus_formats[t->config->corpus_format].edges     ? "nodes"
                       : corpus_formats[t->config->corpus_format].triples   ? "entities"
                       : user                                               ? "items"
                                                                            : "words";
    if (!(mean > alike)) return 0;
    metrics_advise(t->config, way);
    warn("the vectors of random pairs of %s have a mean cosine of %.2f: the model hardly tells %s apart; %s", what, mean, what, way);
    return 0;
}

static int train(struct trainer *t) {
    struct steps_watch watching = {
        .user = t, .took_batch = take_batch, .took_piece = take_piece, .wishes = wishes, .between = between, .report = report};
    t->began_training = progress_now();
    t->seconds_before = t->steps.state.seconds;
    checkpoint_due_start(&t->due, t->config, t->run->path, t->steps.state.step, t->began_training);
    t->due.bytes = trainer_checkpoint_bytes(t);
    int64_t present = trainer_writes(t) ? checkpoint_count(t->run->place, CHECKPOINT_ASIDE, CHECKPOINTS_ALL) : 0;
    if (present < 0) return -1;
    t->due.present = (uint64_t)present;
    ranks_patience(t->ranks, t->config->device_rank_timeout, 1);
    interrupt_ends_work(0);
    note("training   begins after %.1f s", t->began_training - t->began);
    metrics_start(&t->metrics);
    struct trainer_score score;
    /* Untrained rows are ranked, too, so that a file that cannot be is refused at once. */
    int stopped = !t->steps.state.step && trainer_evaluate(t) ? -1 : trainer_judge_left(t);
    if (!stopped && !t->impatient) stopped = copies_open(&t->steps.copies, &t->session) ? -1 : steps_train(&t->steps, &watching);
    copies_close(t->steps.copies);
    t->steps.copies = NULL;
    report_live("");
    if (t->impatient && stopped > 0) stopped = 0; /* train.patience has ended the run: that is a normal end */
    if (!stopped) metrics_judge(&t->metrics, t->steps.state.step);
    if (!stopped && watch_rows(t)) stopped = -1;
    t->steps.state.finished = !stopped;
    if (!stopped && trainer_is_judged(t)) stopped = trainer_end_at_best(t);
    else if (stopped >= 0 && (trainer_write_last(t) || (!stopped && find_score(t, &score)))) stopped = -1;
    else if (!stopped && t->options->score) *t->options->score = score;
    if (stopped > 0 && t->heard_stop) return 1;
    if (stopped > 0 && !t->config->run_checkpoint)
        return fail("stopped by a signal at step %" PRIu64 ", %.1f%% done; nothing is kept (run.checkpoint = no)", t->steps.state.step,
                    100 * steps_share(&t->steps));
    if (stopped > 0)
        return fail("stopped by a signal at step %" PRIu64 ", %.1f%% done; checkpoint-%" PRIu64
                    " is written, and sptx-w2v train %s/config.ini --resume goes on from it",
                    t->steps.state.step, 100 * steps_share(&t->steps), t->steps.state.step, t->run->path);
    return stopped;
}

/* ---- the start ---- */

/* Loads a run to resume it. Returns 1 if it is finished already, after removing what a killed process has left; 0 if it can be trained; -1 after
 * fail(). */
static int go_on(struct trainer *t, const char *checkpoint, const struct run_state *older) {
    t->steps.state = older->progress;
    if (resume_corpus(t->config, checkpoint, older, &t->corpus, t->steps.per_epoch)) return -1;
    if (t->steps.state.finished && (steps_done(&t->steps) >= t->steps.run || t->steps.state.ended_step)) {
        if (trainer_writes(t)) checkpoint_remove_older(t->run->place, checkpoint, older->progress.step, t->claim.kept, 0);
        note("'%s' is finished already, after %" PRIu64 " step%s", t->run->path, t->steps.state.step,
             text_plural(t->steps.state.step));
        return 1;
    }
    char *target = file_join(checkpoint, "target.npy"), *context = file_join(checkpoint, "context.npy");
    int result = !target || !context || table_load(t->steps.target, target) || table_load(t->steps.context, context) ? -1 : 0;
    mem_free(target, context);
    if (result || (trainer_writes(t) && metrics_cut(&t->metrics, &t->steps.state))) return -1;
    note("resumed    from '%s', %.1f%% done", checkpoint, 100 * steps_share(&t->steps));
    return 0;
}

static int begin_directory(void *user) {
    struct trainer *t = user;
    uint64_t beside = t->session.vocab.words.used + 8 * t->session.vocab.size + BESIDE_BYTES;
    int result = run_directory_begin(t->run, t->options->overwrite_now, trainer_checkpoint_bytes(t) + beside);
    return result || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

static int describe_run(void *user) {
    struct trainer *t = user;
    return run_directory_describe(t->run, t->config, &t->session.vocab);
}

/* ---- the whole ---- */

/* Trains to the end of the run; the tables are filled or loaded. */
static int train_to_end(struct trainer *t) {
    int stopped = ranks_do(t->ranks, trainer_writes(t) ? describe_run : NULL, t) ? -1 : train(t);
    if (stopped) return stopped;
    if (!t->config->run_checkpoint) t->steps.state.seconds = seconds_trained(t); /* otherwise the last checkpoint has set it */
    char words[TEXT_BYTES], pairs[TEXT_BYTES], spent[TEXT_BYTES], rate[TEXT_BYTES], peak[TEXT_BYTES];
    double seconds = t->steps.state.seconds > 0 ? t->steps.state.seconds : 1e-9;
    text_of_time(spent, seconds);
    metrics_note_loss(&t->metrics);
    if (t->steps.state.words)
        note("trained    %s words in %s (%s words/s), %s pairs", text_of_count(words, t->steps.state.words), spent,
             text_of_rate(rate, (double)t->steps.state.words / seconds), text_of_count(pairs, t->steps.state.pairs));
    else
        note("trained    %s pairs in %s (%s pairs/s)", text_of_count(pairs, t->steps.state.pairs), spent,
             text_of_rate(rate, (double)t->steps.state.pairs / seconds));
    note("memory     %s at most", text_of_bytes(peak, mem_resident_peak()));
    note("written    '%s'", t->run->path);
    if (!t->steps.state.pairs)
        warn("nothing was trained: no example had a target and a positive; the sentences or lists may be too short, or "
             "examples.subsample too strong for a small corpus");
    return metrics_complete(&t->metrics);
}

/* Fills or loads the tables. Returns 1 if the run is finished already; 0 if it can be trained; -1 after fail(). */
static int start(struct trainer *t) {
    const struct trainer_run *claim = &t->claim;
    if (ranks_agree(t->ranks, prepare(t)) || ranks_alike_corpus(&t->corpus, t->steps.per_epoch, t->steps.batch, t->ranks))
        return -1;
    int result = claim->checkpoint ? go_on(t, claim->checkpoint, &claim->older)
                 : session_fill(&t->session) || ranks_do(t->ranks, trainer_writes(t) ? begin_directory : NULL, t) ? -1 : 0;
    return result > 0 ? result : ranks_agree(t->ranks, result);
}

static int run_training(struct config *config, const struct trainer_options *options) {
    struct trainer t = {.config = config, .options = options, .ranks = options->ranks, .began = progress_now(), .mrr = NAN};
    t.run = &t.claim.run;
    int result = ranks_alike_config(config, options->ranks) || open_directory(&t) ? -1 : 0;
    if (!result) result = metrics_open(&t.metrics, config, trainer_writes(&t) ? t.run->place : NULL);
    if (!result) {
        result = start(&t);
        /* Encoding may take an hour. */
        if (result < 0 && t.run->made && t.session.stream.ids && !t.session.reused && !*config->corpus_cache)
            note("kept       the encoded corpus in '%s', where the next try finds it", t.run->path);
    }
    if (!result) result = train_to_end(&t);
    trainer_leave_checkpoint(&t);
    if (ranks_agree(t.ranks, result < 0 ? -1 : 0)) result = -1;
    if (t.evaluation) options->evaluate(&t.evaluation, NULL, NULL);
    session_close(&t.session);
    metrics_close(&t.metrics);
    free(t.claim.checkpoint);
    run_directory_close(&t.claim.run);
    return result < 0 ? -1 : t.heard_stop;
}

int trainer_run(struct config *config, const struct trainer_options *options) {
    struct interrupt watch;
    if (!options->keep_signals) interrupt_watch(&watch);
    int ended_before = interrupt_ends_work(1), result = run_training(config, options);
    interrupt_ends_work(ended_before);
    if (!options->keep_signals) interrupt_end(&watch);
    return result;
}
