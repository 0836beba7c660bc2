/* trainer: see trainer.h. Order matters here. Everything that can fail cheaply (keys, corpus, plan, memory) is done first; only
 * then is an older run touched, and it is removed after the new run has a checkpoint.
 *
 *   trainer.c           a whole run: from taking the directory to the last line of output
 *   steps.c             the loop over batches
 *   trainer_between.c   work between steps: reports, checkpoints, held-out loss
 *   trainer_behind.c    checkpoints that are written while training goes on
 *   trainer_patience.c  held-out scores, and ending a run that no longer improves
 */
#include "trainer_inner.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "copies.h"
#include "health.h"
#include "run/checkpoint.h"
#include "run/state.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- getting ready ---- */

/* Does everything up to opening the tables. Nothing of an older run is changed. */
static int prepare(struct trainer *t) {
    struct session *s = &t->session;
    if (session_open(s, t->config, t->options->data, t->ranks, t->claim.checkpoint)) return -1;
    session_print(s);
    if (session_tables(s)) return -1;
    t->steps = session_steps(s);
    t->corpus = (struct corpus_identity){.vocab = vocab_fingerprint(&s->vocab),
                                         .stream = s->graph.nodes ? s->graph.checksum : s->stream.checksum,
                                         .tree = s->examples.tree.words ? huffman_fingerprint(&s->examples.tree) : 0};
    if (schedule_examples(t->config, t->steps.per_epoch, t->steps.batch, &t->steps.run)) return -1;
    t->steps.end = t->steps.run;
    return 0;
}

/* ---- a run that goes on ---- */

static int load_tables(struct trainer *t, const char *checkpoint) {
    char *target = file_join(checkpoint, "target.npy"), *context = file_join(checkpoint, "context.npy");
    int result = !target || !context || table_load(t->steps.target, target) || table_load(t->steps.context, context) ? -1 : 0;
    free(target);
    free(context);
    return result;
}

/* ---- training ---- */

/* Writes the last checkpoint of a run that is finished, or that was stopped. */
static int write_last(struct trainer *t, int stopped) {
    t->steps.state.finished = !stopped;
    if (!stopped && trainer_is_judged(t)) return trainer_end_at_best(t);
    return trainer_write_last(t) || (!stopped && trainer_judge_end(t)) ? -1 : 0;
}

/* Warns if the rows in which answers are searched hardly differ: rows of documents; for other corpora context rows if lists have
 * rows of their own or if heads and tails have the same rows, otherwise target rows. */
static int watch_rows(const struct trainer *t) {
    const struct vocab *vocab = &t->session.vocab;
    int user = config_has_lists(t->config), documents = config_has_documents(t->config);
    uint64_t items = vocab->size - vocab->lists;
    double mean;
    const struct table *table = user || t->config->model_tied ? t->steps.context : t->steps.target;
    if (t->steps.ops->drain(t->steps.backend) ||
        told_apart_cosine(table, documents ? items : 0, documents ? vocab->size : items, &mean))
        return -1;
    told_apart_warn(t->config, mean, documents ? "documents"
                                    : corpus_formats[t->config->corpus_format].edges ? "nodes"
                                    : t->config->examples_mode == MODE_TRIPLE ? "entities"
                                    : user ? "items" : "words");
    return 0;
}

static int train(struct trainer *t) {
    struct steps_watch watching = trainer_watch(t);
    t->began_training = progress_now();
    t->seconds_before = t->steps.state.seconds;
    if (trainer_start_due(t)) return -1;
    ranks_patience(t->ranks, t->config->device_rank_timeout, 1);
    interrupt_ends_work(0);
    note("training   begins after %.1f s", t->began_training - t->began);
    metrics_start(&t->metrics);
    int stopped = trainer_judge_left(t);
    if (!stopped && !t->impatient) stopped = copies_open(&t->steps.copies, &t->session) ? -1 : steps_train(&t->steps, &watching);
    copies_close(t->steps.copies);
    t->steps.copies = NULL;
    report_live("");
    if (t->impatient && stopped > 0) stopped = 0; /* train.patience ended the run: a normal end, not an interruption */
    if (!stopped) metrics_judge(&t->metrics, t->steps.state.step);
    if (!stopped && watch_rows(t)) stopped = -1;
    if (stopped >= 0 && write_last(t, stopped)) stopped = -1;
    if (stopped > 0 && t->heard_stop) return 1;
    if (stopped > 0)
        return fail("stopped by a signal at step %" PRIu64 ", %.1f%% done; checkpoint-%" PRIu64
                    " is written in '%s', and --resume goes on from it",
                    t->steps.state.step, 100 * steps_share(&t->steps), t->steps.state.step, t->run->path);
    return stopped;
}

static void note_end(const struct trainer *t) {
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
}

/* ---- the start ---- */

/* Loads a run to resume. Returns 1 if it is finished already, after doing the removals that a killed process may have left
 * undone; 0 if it can train; -1 after fail(). */
static int go_on(struct trainer *t, const char *checkpoint, const struct run_state *older) {
    t->steps.state = older->progress;
    if (resume_corpus(t->config, checkpoint, older, &t->corpus, t->steps.per_epoch)) return -1;
    if (t->steps.state.finished && (steps_done(&t->steps) >= t->steps.run || t->steps.state.ended_step)) {
        if (trainer_writes(t)) checkpoint_remove_older(t->run->place, checkpoint, older->progress.step, t->claim.kept, 0);
        note("'%s' is finished already, after %" PRIu64 " step%s", t->run->path, t->steps.state.step,
             text_plural(t->steps.state.step));
        return 1;
    }
    if (load_tables(t, checkpoint) || (trainer_writes(t) && metrics_cut(&t->metrics, &t->steps.state))) return -1;
    note("resumed    from '%s', %.1f%% done", checkpoint, 100 * steps_share(&t->steps));
    return 0;
}

static int begin_directory(void *user) {
    struct trainer *t = user;
    uint64_t beside = t->session.vocab.words.used + 8 * t->session.vocab.size + BESIDE_BYTES;
    int result = run_directory_begin(t->run, t->options->overwrite_now, trainer_checkpoint_bytes(t) + beside);
    return result || metrics_move(&t->metrics, t->run->place) ? -1 : 0;
}

static int begin_run(struct trainer *t) {
    return session_fill(&t->session) || ranks_do(t->ranks, trainer_writes(t) ? begin_directory : NULL, t) ? -1 : 0;
}

static int describe_run(void *user) {
    struct trainer *t = user;
    return run_directory_describe(t->run, t->config, &t->session.vocab);
}

/* If a run could not begin, tells that its encoded corpus is kept for the next attempt: encoding may take an hour. */
static void note_kept(const struct trainer *t) {
    if (t->run->made && t->session.stream.ids && !t->session.reused && !*t->config->corpus_cache)
        note("kept       the encoded corpus in '%s', where the next try finds it", t->run->path);
}

/* ---- the whole ---- */

/* Trains, once the tables are filled or loaded. */
static int train_to_end(struct trainer *t) {
    int stopped = ranks_do(t->ranks, trainer_writes(t) ? describe_run : NULL, t) ? -1 : train(t);
    if (stopped) return stopped;
    note_end(t);
    if (!t->steps.state.pairs)
        warn("nothing was trained: no example had a target and a positive; the sentences or lists may be too short, or "
             "examples.subsample too strong for a small corpus");
    return metrics_complete(&t->metrics);
}

/* Fills or loads the tables. Returns 1 if the run is finished already, 0 if it can train, -1 after fail(). */
static int start(struct trainer *t) {
    const struct trainer_run *claim = &t->claim;
    if (ranks_agree(t->ranks, prepare(t)) || ranks_alike_corpus(&t->corpus, t->steps.per_epoch, t->steps.batch, t->ranks))
        return -1;
    int result = claim->checkpoint ? go_on(t, claim->checkpoint, &claim->older) : begin_run(t);
    return result > 0 ? result : ranks_agree(t->ranks, result);
}

static int run_training(struct config *config, const struct trainer_options *options) {
    struct trainer t = {.config = config, .options = options, .ranks = options->ranks, .began = progress_now()};
    t.run = &t.claim.run;
    int result = ranks_alike_config(config, options->ranks) || trainer_run_open(&t.claim, config, options) ? -1 : 0;
    if (!result) result = metrics_open(&t.metrics, config, trainer_writes(&t) ? t.run->place : NULL);
    if (!result) {
        result = start(&t);
        if (result < 0) note_kept(&t);
    }
    if (!result) result = train_to_end(&t);
    trainer_leave_checkpoint(&t);
    if (ranks_agree(t.ranks, result < 0 ? -1 : 0)) result = -1;
    session_close(&t.session);
    metrics_close(&t.metrics);
    trainer_run_close(&t.claim);
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
