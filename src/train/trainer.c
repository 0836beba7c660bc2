/* trainer: see trainer.h. The order is the promise: nothing of a run changes before everything that can fail cheaply has been
 * done, and an older run goes when the new one has a checkpoint. */
#include "trainer.h"

#include "alike.h"
#include "checkpoint.h"
#include "claim.h"
#include "diverged.h"
#include "due.h"
#include "examples.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/path.h"
#include "metrics.h"
#include "pipeline.h"
#include "replicas.h"
#include "base/progress.h"
#include "base/report.h"
#include "resume.h"
#include "schedule.h"
#include "session.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_OUT_EXAMPLES = 1 << 21, /* examples looked through for held-out ones */
    BESIDE_BYTES = 64 << 10      /* headers, state.ini, config.ini, metrics.jsonl, and what a file system rounds up */
};
static const double piece_seconds = 0.25; /* of lock-free training between two looks at signals and clocks */

struct trainer {
    struct config *config;
    const struct trainer_options *options;
    struct ranks *ranks; /* the options'; NULL: alone */
    int heard_stop; /* options->hear asked for it */
    struct claim claim;
    struct run_directory *run; /* the claim's; only the first rank writes there */
    struct session session;
    const struct backend_ops *ops; /* the session's */
    struct backend *backend;
    struct table *target, *context;
    struct progress_state state;
    struct corpus_identity corpus;
    uint64_t examples_per_epoch, batch, total; /* total: examples of the whole run */
    double began, began_training, seconds_before;
    double beside; /* seconds since began_training that were not training: held-out loss, checkpoints */
    struct due due;
    struct metrics metrics;
    struct replicas replicas; /* zeros where this rank's tables are no replica */
};

static int is_to_stop(const struct trainer *t) {
    return t->heard_stop || (interrupt_asked() && !t->options->keep_signals);
}

/* Whether this process has the run directory, and writes there. */
static int writes(const struct trainer *t) {
    return ranks_first(t->ranks);
}

/* ---- where the run stands ---- */

/* Examples that the run has trained so far. */
static uint64_t examples_done(const struct trainer *t) {
    return t->state.epoch * t->examples_per_epoch + t->state.position;
}

static double share_done(const struct trainer *t) {
    return t->total ? (double)examples_done(t) / (double)t->total : 1;
}

static double seconds_trained(const struct trainer *t) {
    return t->seconds_before + (progress_now() - t->began_training) - t->beside;
}

/* Does work that is not training, and leaves its time out of the run's training time. */
static int do_beside(struct trainer *t, int (*work)(struct trainer *)) {
    double began = progress_now();
    int result = work(t);
    double spent = progress_now() - began;
    t->beside += spent;
    metrics_leave_out(&t->metrics, spent);
    return result;
}

/* ---- reports ---- */

static struct standing standing(const struct trainer *t, double lr) {
    return (struct standing){.state = &t->state, .done = share_done(t), .seconds = seconds_trained(t), .lr = lr};
}

/* A run directory that was moved is written to where it is now. One that is gone, or another's, ends the run. */
static int follow(struct trainer *t) {
    int moved = writes(t) ? run_directory_follow(t->run) : 0;
    if (moved < 0) return -1;
    return moved ? metrics_move(&t->metrics, t->run->place) : 0;
}

/* Tells the caller in this process (options->hear), who may ask to stop. */
static void tell(struct trainer *t, double lr) {
    const struct metrics *m = &t->metrics;
    struct trainer_report told = {.step = t->state.step,
                                  .epoch = t->state.epoch,
                                  .done = share_done(t),
                                  .loss = m->last.example,
                                  .lr = lr,
                                  .words_per_second = m->words_per_second,
                                  .pairs_per_second = m->pairs_per_second,
                                  .seconds = seconds_trained(t)};
    if (t->options->hear && t->options->hear(t->options->user, &told)) t->heard_stop = 1;
}

static void report(struct trainer *t, double lr) {
    struct standing now = standing(t, lr);
    uint64_t before = t->metrics.reports;
    if (follow(t)) {
        t->heard_stop = 1; /* the checkpoint that it ends with says why */
        return;
    }
    metrics_report(&t->metrics, &now);
    if (t->metrics.reports != before) tell(t, lr);
}

static void report_when_due(struct trainer *t, double lr) {
    if (metrics_due(&t->metrics)) report(t, lr);
}

/* Of the first batch, as it was before any update. */
static void report_untrained(struct trainer *t, const struct step_result *first) {
    struct progress_state none = {0};
    struct standing start = {.state = &none, .seconds = seconds_trained(t), .lr = schedule_rate(t->config, 0)};
    metrics_untrained(&t->metrics, first, &start);
}

static int say_diverged(const struct trainer *t, const char *what) {
    return diverged_say(t->config, t->ranks, t->run->place, t->state.step, what);
}

static int check_loss(struct trainer *t, double loss, uint64_t terms) {
    char text[METRICS_BYTES];
    const char *wrong = metrics_diverged(&t->metrics, loss, terms, text);
    return wrong ? say_diverged(t, wrong) : 0;
}

/* ---- checkpoints ---- */

/* Bytes of its files. */
static uint64_t bytes_of_checkpoint(const struct trainer *t) {
    return table_file_bytes(t->target) + table_file_bytes(t->context) + frozen_bytes(&t->session.frozen);
}

static int follow_run(void *user) {
    return follow(user);
}

/* The run's directory, now that it has a checkpoint. */
static int settle_run(void *user) {
    struct trainer *t = user;
    return run_directory_settle(t->run) || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

static int write_tables(void *user) {
    struct trainer *t = user;
    struct checkpoint what = {t->target, t->context, t->state, t->corpus, &t->session.frozen};
    return checkpoint_write(t->run->place, &what, t->config->run_keep);
}

/* By all ranks; what is only done to directories, by the first one, and of replicas, which are alike, the tables too. */
static int write_files(struct trainer *t) {
    if (ranks_do(t->ranks, writes(t) ? follow_run : NULL, t)) return -1;
    int whole = t->replicas.ranks != NULL;
    int result = whole ? ranks_do(t->ranks, writes(t) ? write_tables : NULL, t) : write_tables(t);
    if (result == TABLE_NOT_FINITE) return say_diverged(t, report_sentence());
    return result ? -1 : ranks_do(t->ranks, writes(t) ? settle_run : NULL, t);
}

static int write_checkpoint(struct trainer *t) {
    double began = progress_now();
    t->state.seconds = seconds_trained(t);
    if (t->ops->drain(t->backend) || write_files(t)) return -1;
    due_written(&t->due, t->state.step, progress_now() - began, progress_now());
    return 0;
}

static int start_due(struct trainer *t) {
    due_start(&t->due, t->config, t->run->path, t->state.step, t->began_training);
    t->due.bytes = bytes_of_checkpoint(t);
    return writes(t) ? checkpoint_count(t->run->place, &t->due.present) : 0;
}

/* What is wished after a step: that of any rank holds for all, so that all do it after the same step. */
enum wish { WISH_STOP = 1, WISH_CHECKPOINT = 2 };

static unsigned wishes(struct trainer *t, int epoch_ended) {
    unsigned own = is_to_stop(t) ? WISH_STOP : 0;
    if (writes(t) && due_now(&t->due, t->state.step, epoch_ended, progress_now())) own |= WISH_CHECKPOINT; /* by one clock */
    return ranks_any(t->ranks, own);
}

/* Moves the run's state past `count` examples; 1 where that ended an epoch. */
static int move_on(struct trainer *t, uint64_t count) {
    t->state.position += count;
    if (t->state.position < t->examples_per_epoch) return 0;
    t->state.position = 0;
    t->state.epoch++;
    return 1;
}

/* ---- held-out loss ---- */

static int measure_held_out(struct trainer *t) {
    uint64_t most = t->examples_per_epoch < HELD_OUT_EXAMPLES ? t->examples_per_epoch : HELD_OUT_EXAMPLES;
    struct step_request request = {.target = t->target->store,
                                   .context = t->context->store,
                                   .rule = &t->target->rule,
                                   .loss = config_loss(t->config),
                                   .loss_only = 1};
    struct step_result sum = {0}, got;
    if (!t->session.examples.source.held_out) return 0;
    for (uint64_t first = 0; first < most; first += t->batch) {
        struct batch_request batch = {0, first, most - first < t->batch ? most - first : t->batch, 1, NULL};
        if (t->ops->make_batch(t->backend, 0, &batch) || t->ops->gather(t->backend, 0, &request) ||
            t->ops->step(t->backend, 0, &request) || t->ops->scatter(t->backend, 0, &request) ||
            t->ops->result(t->backend, 0, &got))
            return -1;
        sum.loss += got.loss;
        sum.examples += got.examples;
        sum.pairs += got.pairs;
        sum.terms += got.terms;
    }
    if (!sum.examples) return 0;
    struct standing now = standing(t, 0);
    if (follow(t)) return -1;
    metrics_held_out(&t->metrics, &sum, &now);
    return 0;
}

/* After some examples: the epoch's end, what is wished. 1: stop here; -1 after fail(). */
static int between_pieces(struct trainer *t, int epoch_ended, unsigned wished) {
    int finished = examples_done(t) >= t->total;
    if (epoch_ended || finished) {
        if (t->ops->drain(t->backend) || do_beside(t, measure_held_out)) return -1;
    }
    if (finished) return 0;
    if (wished & WISH_STOP) return 1;
    return wished & WISH_CHECKPOINT ? do_beside(t, write_checkpoint) : 0;
}

/* ---- update = batch ---- */

static int take_result(struct trainer *t, const struct step_result *r) {
    metrics_add_step(&t->metrics, r);
    if (!t->state.pairs && r->pairs) report_untrained(t, r);
    t->state.words += r->words;
    t->state.pairs += r->pairs;
    return check_loss(t, r->loss, r->terms);
}

static int empty_pipeline(struct trainer *t, struct pipeline *pipeline) {
    struct step_result result;
    int more;
    while ((more = pipeline_next(pipeline, &result)) > 0)
        if (take_result(t, &result)) return -1;
    return more;
}

static int train_batches(struct trainer *t) {
    struct pipeline pipeline;
    struct step_result oldest;
    int came, stop = 0;
    double lr = 0;
    pipeline_init(&pipeline, t->ops, t->backend, (unsigned)t->config->memory_depth);
    while (!stop && examples_done(t) < t->total) {
        uint64_t left = t->examples_per_epoch - t->state.position, of_run = t->total - examples_done(t);
        struct batch_request batch = {(uint32_t)t->state.epoch, t->state.position, t->batch, 0, t->context->store};
        if (batch.count > left) batch.count = left;
        if (batch.count > of_run) batch.count = of_run;
        lr = schedule_rate(t->config, share_done(t));
        struct step_request step = {.target = t->target->store,
                                    .context = t->context->store,
                                    .rule = &t->target->rule,
                                    .loss = config_loss(t->config),
                                    .lr = lr,
                                    .global_step = t->state.step,
                                    .mean = t->config->train_reduction == REDUCTION_MEAN};
        if (pipeline_submit(&pipeline, &batch, &step, &oldest, &came) || (came && take_result(t, &oldest))) return -1;
        t->state.step++;
        int epoch_ended = move_on(t, batch.count);
        unsigned wished = wishes(t, epoch_ended);
        if (epoch_ended || wished || examples_done(t) >= t->total) {
            if (empty_pipeline(t, &pipeline)) return -1;
            stop = between_pieces(t, epoch_ended, wished);
            if (stop < 0) return -1;
        }
        report_when_due(t, lr);
    }
    if (empty_pipeline(t, &pipeline)) return -1;
    report(t, lr);
    return stop;
}

/* ---- update = hogwild ---- */

static int train_piece(struct trainer *t, uint64_t count, double *lr) {
    struct hogwild_request request = {.target = t->target->store,
                                      .context = t->context->store,
                                      .rule = &t->target->rule,
                                      .epoch = (uint32_t)t->state.epoch,
                                      .first = t->state.position,
                                      .count = count};
    struct hogwild_result r;
    uint64_t done = examples_done(t);
    request.global_step = done;
    request.lr_first = schedule_rate(t->config, (double)done / (double)t->total);
    request.lr_last = *lr = schedule_rate(t->config, (double)(done + count) / (double)t->total);
    if (t->replicas.ranks ? replicas_train(&t->replicas, &request, &r) : t->ops->hogwild(t->backend, &request, &r)) return -1;
    metrics_add_piece(&t->metrics, &r);
    t->state.words += r.words;
    t->state.pairs += r.pairs;
    return check_loss(t, r.loss, r.sampled_terms);
}

static int train_hogwild(struct trainer *t) {
    int alone = !t->replicas.ranks, stop = 0;
    uint64_t piece = alone ? 65536 : replicas_piece(t->examples_per_epoch);
    double lr = 0;
    while (!stop && examples_done(t) < t->total) {
        uint64_t count = t->examples_per_epoch - t->state.position, of_run = t->total - examples_done(t);
        if (count > piece) count = piece;
        if (count > of_run) count = of_run;
        double started = progress_now();
        if (train_piece(t, count, &lr)) return -1;
        double took = progress_now() - started;
        if (alone && count == piece)
            piece = took > 2 * piece_seconds && piece > 16384 ? piece / 2 : took < piece_seconds ? piece * 2 : piece;
        int epoch_ended = move_on(t, count);
        t->state.step = examples_done(t) / t->batch;
        unsigned wished = wishes(t, epoch_ended);
        if ((epoch_ended || wished || examples_done(t) >= t->total) && replicas_settle(&t->replicas)) return -1;
        stop = between_pieces(t, epoch_ended, wished);
        if (stop < 0) return -1;
        report_when_due(t, lr);
    }
    report(t, lr);
    return stop;
}

/* ---- getting ready ---- */

/* Everything up to the tables: nothing of an older run has been touched when it returns. */
static int prepare(struct trainer *t) {
    struct session *s = &t->session;
    if (session_open(s, t->config, t->ranks, t->claim.checkpoint)) return -1;
    session_print(s);
    if (session_tables(s)) return -1;
    t->ops = s->ops;
    t->backend = s->backend;
    t->target = &s->target;
    t->context = &s->context;
    t->batch = s->plan.batch;
    t->corpus = (struct corpus_identity){vocab_fingerprint(&s->vocab), s->stream.checksum};
    t->examples_per_epoch = example_count(&s->examples.source);
    return schedule_examples(t->config, t->examples_per_epoch, t->batch, &t->total);
}

/* ---- a run that goes on ---- */

static int load_tables(struct trainer *t, const char *checkpoint) {
    char *target = file_join(checkpoint, "target.npy"), *context = file_join(checkpoint, "context.npy");
    int result = !target || !context || table_load(t->target, target) || table_load(t->context, context) ? -1 : 0;
    free(target);
    free(context);
    return result;
}

/* ---- training ---- */

static int train(struct trainer *t) {
    struct interrupt watch;
    t->began_training = progress_now();
    t->seconds_before = t->state.seconds;
    if (start_due(t)) return -1;
    int replicas = config_replicas(t->config) > 1 && ranks_count(t->ranks) > 1;
    if (replicas && ranks_meet(t->ranks, NULL, replicas_open(&t->replicas, t->ranks, t->target, t->context))) return -1;
    ranks_patience(t->ranks, t->config->device_rank_timeout, 1);
    if (!t->options->keep_signals) interrupt_watch(&watch);
    note("training   begins after %.1f s", t->began_training - t->began);
    metrics_start(&t->metrics);
    int stopped = t->config->train_update == UPDATE_HOGWILD ? train_hogwild(t) : train_batches(t);
    report_live("");
    if (!stopped) metrics_judge(&t->metrics, t->state.step);
    if (stopped >= 0) {
        t->state.finished = !stopped;
        if (write_checkpoint(t)) stopped = -1;
    }
    if (!t->options->keep_signals) interrupt_end(&watch);
    if (stopped > 0 && t->heard_stop) return 1;
    if (stopped > 0)
        return fail("stopped by a signal at step %" PRIu64 ", %.1f%% done; checkpoint-%" PRIu64
                    " is written in '%s', and --resume goes on from it",
                    t->state.step, 100 * share_done(t), t->state.step, t->run->path);
    return stopped;
}

static void note_end(const struct trainer *t) {
    char words[TEXT_BYTES], pairs[TEXT_BYTES], spent[TEXT_BYTES], rate[TEXT_BYTES], peak[TEXT_BYTES];
    double seconds = t->state.seconds > 0 ? t->state.seconds : 1e-9;
    text_of_time(spent, seconds);
    metrics_note_loss(&t->metrics);
    if (t->state.words)
        note("trained    %s words in %s (%s words/s), %s pairs", text_of_count(words, t->state.words), spent,
             text_of_rate(rate, (double)t->state.words / seconds), text_of_count(pairs, t->state.pairs));
    else
        note("trained    %s pairs in %s (%s pairs/s)", text_of_count(pairs, t->state.pairs), spent,
             text_of_rate(rate, (double)t->state.pairs / seconds));
    note("memory     %s at most", text_of_bytes(peak, mem_resident_peak()));
    note("written    '%s'", t->run->path);
}

/* ---- the start ---- */

/* 1 where there is nothing left to do. */
static int go_on(struct trainer *t, const char *checkpoint, const struct run_state *older) {
    t->state = older->progress;
    if (resume_corpus(t->config, checkpoint, older, &t->corpus, t->examples_per_epoch)) return -1;
    if (t->state.finished && examples_done(t) >= t->total) {
        note("'%s' is finished already, after %" PRIu64 " steps", t->run->path, t->state.step);
        return 1;
    }
    if (load_tables(t, checkpoint) || (writes(t) && metrics_cut(&t->metrics, &t->state))) return -1;
    note("resumed    from '%s', %.1f%% done", checkpoint, 100 * share_done(t));
    return 0;
}

static int begin_directory(void *user) {
    struct trainer *t = user;
    uint64_t beside = t->session.vocab.words.used + 8 * t->session.vocab.size + BESIDE_BYTES;
    int result = run_directory_begin(t->run, t->options->overwrite_now, bytes_of_checkpoint(t) + beside);
    return result || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

static int begin(struct trainer *t) {
    return session_fill(&t->session) || ranks_do(t->ranks, writes(t) ? begin_directory : NULL, t) ? -1 : 0;
}

static int describe(void *user) {
    struct trainer *t = user;
    return run_directory_describe(t->run, t->config, &t->session.vocab);
}

/* The encoded corpus may be an hour's work, and stays for the next try of a run that did not begin. */
static void note_kept(const struct trainer *t) {
    if (t->run->made && t->session.stream.ids && !t->session.reused && !*t->config->corpus_cache)
        note("kept       the encoded corpus in '%s', where the next try finds it", t->run->path);
}

/* ---- the whole ---- */

/* Trains, once the tables hold what training starts from. */
static int train_to_end(struct trainer *t) {
    int stopped = ranks_do(t->ranks, writes(t) ? describe : NULL, t) ? -1 : train(t);
    if (stopped) return stopped;
    note_end(t);
    if (!t->state.pairs)
        warn("nothing was trained: no example had a target and a positive; the sentences or lists may be too short, or "
             "examples.subsample too strong for a small corpus");
    return metrics_complete(&t->metrics);
}

/* 1 where there is nothing left to do. */
static int start(struct trainer *t) {
    const struct claim *claim = &t->claim;
    if (ranks_agree(t->ranks, prepare(t)) || alike_corpus(&t->corpus, t->examples_per_epoch, t->batch, t->ranks)) return -1;
    int result = claim->checkpoint ? go_on(t, claim->checkpoint, &claim->older) : begin(t);
    return result > 0 ? result : ranks_agree(t->ranks, result);
}

int trainer_run(struct config *config, const struct trainer_options *options) {
    struct trainer t = {.config = config, .options = options, .ranks = options->ranks, .began = progress_now()};
    t.run = &t.claim.run;
    int result = alike_config(config, options->ranks) || claim_open(&t.claim, config, options) ? -1 : 0;
    if (!result) result = metrics_open(&t.metrics, config, writes(&t) ? t.run->place : NULL);
    if (!result) {
        result = start(&t);
        if (result < 0) note_kept(&t);
    }
    if (!result) result = train_to_end(&t);
    if (ranks_agree(t.ranks, result < 0 ? -1 : 0)) result = -1;
    replicas_close(&t.replicas);
    session_close(&t.session);
    metrics_close(&t.metrics);
    claim_close(&t.claim);
    return result < 0 ? -1 : t.heard_stop;
}
