#include "metrics.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PLATEAU_REPORTS = 100, /* number of reports after which a loss that is still untrained causes a warning */
    PLATEAU_STEPS = 100,   /* a finished run of fewer exact steps (train.update = batch) causes no warning */
    LINE_MOST = 4096       /* most bytes of a line that is read; a run's own lines have a tenth of it */
};
static const double ln2 = 0.69314718055994530942;

int metrics_open(struct metrics *metrics, const struct config *config, const char *run) {
    *metrics = (struct metrics){.config = config};
    return run ? metrics_move(metrics, run) : 0;
}

void metrics_close(struct metrics *metrics) {
    free(metrics->path);
    *metrics = (struct metrics){0};
}

int metrics_move(struct metrics *metrics, const char *run) {
    char *path = file_join(run, "metrics.jsonl");
    if (!path) return -1;
    free(metrics->path);
    metrics->path = path;
    return 0;
}

/* ---- sums ---- */

void metrics_start(struct metrics *metrics) {
    metrics->tally = (struct report_sums){.began = progress_now()};
}

void metrics_leave_out(struct metrics *metrics, double seconds) {
    metrics->tally.began += seconds;
}

/* Adds the sums of a batch, or of a span of lock-free training, in which only some examples have losses. */
static void add(struct report_sums *tally, struct report_sums one) {
    tally->loss += one.loss;
    tally->loss_examples += one.loss_examples;
    tally->loss_pairs += one.loss_pairs;
    tally->loss_terms += one.loss_terms;
    tally->words += one.words;
    tally->pairs += one.pairs;
    tally->link_bytes += one.link_bytes;
}

void metrics_add_step(struct metrics *metrics, const struct step_result *r) {
    add(&metrics->tally, (struct report_sums){r->loss, r->examples, r->pairs, r->terms, r->words, r->pairs, r->link_bytes, 0});
}

void metrics_add_piece(struct metrics *metrics, const struct hogwild_result *r) {
    add(&metrics->tally, (struct report_sums){r->loss, r->sampled_examples, r->sampled_pairs, r->sampled_terms, r->words, r->pairs,
                                              r->link_bytes, 0});
}

/* Returns a sum of losses divided by the numbers of examples, of pairs, and of terms. */
static struct loss mean_losses(double sum, uint64_t examples, uint64_t pairs, uint64_t terms) {
    return (struct loss){sum / (double)examples, sum / (double)pairs, sum / (double)terms};
}

/* Returns 1 if each term has the loss ln 2 in an untrained model, whatever the other terms are. */
static int begins_at_ln2(const struct config *config) {
    return (config->train_loss == LOSS_LOGISTIC || config_has_tree(config)) && config->train_score == SCORE_DOT;
}

/* ---- a loss that stays where it began ---- */

/* Averaging over a batch slows only SGD and ASGD; other rules divide a gradient by its own size. */
void metrics_advise(const struct config *c, char out[METRICS_ADVICE]) {
    int scaled = c->optimizer_rule == RULE_SGD || c->optimizer_rule == RULE_ASGD;
    if (scaled && c->train_reduction == REDUCTION_MEAN)
        snprintf(out, METRICS_ADVICE,
                 "train.reduction = mean divides optimizer.lr = %g by the %" PRIu64 " examples of a batch: raise optimizer.lr, or use sum",
                 c->optimizer_lr, c->train_batch);
    else if (c->examples_subsample > 0)
        snprintf(out, METRICS_ADVICE,
                 "raise train.epochs (%" PRIu64 ") or optimizer.lr (%g), or set examples.subsample = 0 (it is %g), which keeps every word",
                 c->train_epochs, c->optimizer_lr, c->examples_subsample);
    else
        snprintf(out, METRICS_ADVICE, "raise train.epochs (%" PRIu64 ") or optimizer.lr (%g), or make the initial weights larger",
                 c->train_epochs, c->optimizer_lr);
}

/* Returns how far, relatively, a loss may be from the untrained one to count as unchanged: further if the untrained loss is that of the first
 * batch, since batches differ by some percent. */
static double near_untrained(const struct metrics *metrics) {
    return begins_at_ln2(metrics->config) ? 0.01 : 0.05;
}

static void warn_plateau(const struct metrics *metrics, const char *when) {
    char way[METRICS_ADVICE];
    metrics_advise(metrics->config, way);
    double pair = begins_at_ln2(metrics->config) ? metrics->last.pair / metrics->last.term * ln2 : metrics->first.pair;
    warn("the loss has stayed within %g%% of its untrained value, %.4f a pair, %s: the model is not learning; %s", 100 * near_untrained(metrics),
         pair, when, way);
}

/* Returns 1 if every report so far had the loss of an untrained model. After the first report with a lower loss, later ones are not checked. */
static int at_plateau(struct metrics *metrics) {
    double now = metrics->last.term, untrained = ln2;
    if (!metrics->reports || metrics->plateau_over) return 0;
    /* If losses do not begin at ln 2 a term, compares with the loss of the first batch, which is 0 (unknown) in a resumed run. */
    if (!begins_at_ln2(metrics->config)) now = metrics->last.pair, untrained = metrics->first.pair;
    metrics->plateau_over = !(fabs(now - untrained) < near_untrained(metrics) * fabs(untrained));
    return !metrics->plateau_over;
}

void metrics_judge(struct metrics *metrics, uint64_t step) {
    int short_run = metrics->config->train_update == UPDATE_BATCH && step < PLATEAU_STEPS;
    if (!at_plateau(metrics) || short_run) return;
    metrics->plateau_over = 1;
    warn_plateau(metrics, "to the end");
}

void metrics_note_loss(const struct metrics *metrics) {
    char from[64] = "";
    if (!metrics->reports) return;
    if (metrics->first.term != 0) snprintf(from, sizeof from, "; untrained %.4f", metrics->first.pair);
    /* Losses below 0 are possible with train.negative_power above 0 (BSL's loss), where the sum over negatives does not contain the positive. */
    note("loss       %.4f a pair%s%s", metrics->last.pair, from,
         metrics->config->train_negative_power > 0 ? "; below 0, positives score above the mean of their negatives" : "");
    if (metrics->held_out_times > 1)
        note("held out   %.4f a pair when last measured; %.4f when first", metrics->held_out.pair, metrics->held_out_first.pair);
}

/* ---- a loss that leaves all bounds ---- */

const char *metrics_diverged(struct metrics *metrics, double loss, uint64_t terms, char out[METRICS_BYTES]) {
    double term = loss / (double)terms;
    if (isnan(loss)) return "the loss is not a number";
    if (isinf(loss)) return "the loss is infinite";
    if (!terms) return NULL;
    if (!(metrics->began_term > 0)) metrics->began_term = term;
    if (term <= METRICS_DIVERGED * fmax(1, metrics->began_term)) return NULL;
    snprintf(out, METRICS_BYTES, "the loss is %.3g a dot product (it began at %.3g)", term, metrics->began_term);
    return out;
}

/* ---- reports ---- */

/* Appends a line to metrics.jsonl. If the disk is full the run continues, since days of training are worth more than their log; each further line
 * tries again. */
static void append(struct metrics *metrics, const struct json *line) {
    int failed_before = report_exit_code();
    if (!metrics->path) return;
    if ((!line->failed && !file_append(metrics->path, line->bytes, line->used)) || failed_before) return;
    if (!metrics->lost++) {
        snprintf(metrics->lost_because, sizeof metrics->lost_because, "%s", report_sentence());
        warn("%s; the run goes on without this line of its metrics", metrics->lost_because);
    }
    report_clear();
}

int metrics_complete(const struct metrics *metrics) {
    if (!metrics->lost) return 0;
    return fail("the model is trained and written, but '%s' lacks %" PRIu64 " line%s: %s", metrics->path, metrics->lost,
                text_plural(metrics->lost), metrics->lost_because);
}

static void add_count(struct json *line, const char *name, uint64_t count) {
    json_print(line, ", \"%s\": %" PRIu64, name, count);
}

static void add_number(struct json *line, const char *name, double value) {
    json_print(line, ", \"%s\": ", name);
    json_number(line, value);
}

/* Begins a line with the keys that all lines of metrics.jsonl have, by which a resumed run finds lines to remove (keep_line). */
static void begin_line(struct json *line, const struct standing *at) {
    json_print(line, "{\"step\": %" PRIu64 ", \"epoch\": %" PRIu64 ", \"done\": ", at->state->step, at->state->epoch);
    json_decimals(line, at->done, 6);
}

/* Writes a line with a loss. rates: further keys of the line, or "". */
static void write_line(struct metrics *metrics, const struct standing *at, const struct loss *loss, const struct json *rates) {
    ENDED_BY(json_release) struct json line = {.used = 0};
    begin_line(&line, at);
    add_number(&line, "loss", loss->example);
    add_number(&line, "loss_pair", loss->pair);
    add_number(&line, "loss_term", loss->term);
    /* The loss of an untrained model is ln 2 for each term of an example if losses begin there, otherwise the first batch's loss. */
    add_number(&line, "loss_untrained", begins_at_ln2(metrics->config) ? loss->example / loss->term * ln2 : metrics->first.example);
    add_number(&line, "lr", at->lr);
    json_print(&line, "%s, \"seconds\": ", rates->used ? rates->bytes : "");
    json_decimals(&line, at->seconds, 3);
    json_print(&line, "}\n");
    append(metrics, &line);
}

static void show_line(struct metrics *metrics, const struct standing *at, double words_rate, double pairs_rate) {
    char *line = metrics->line, words[TEXT_BYTES], pairs[TEXT_BYTES], eta[TEXT_BYTES], moved[TEXT_BYTES];
    size_t n = 0, most = sizeof metrics->line;
    text_of_rate(words, words_rate);
    text_of_rate(pairs, pairs_rate);
    text_of_time(eta, at->done > 0 ? at->seconds * (1 - at->done) / at->done : -1);
    n = text_add(line, most, n, "%5.1f%%  loss %.4f a pair", 100 * at->done, metrics->last.pair);
    if (metrics->held_out_times) n = text_add(line, most, n, ", held out %.4f", metrics->held_out.pair);
    n = text_add(line, most, n, "  lr %.3g", at->lr);
    if (words_rate > 0) n = text_add(line, most, n, "  %s words/s", words);
    n = text_add(line, most, n, "  %s pairs/s", pairs);
    if (metrics->tally.link_bytes) n = text_add(line, most, n, "  %s moved", text_of_bytes(moved, metrics->tally.link_bytes));
    text_add(line, most, n, "  ETA %s", eta);
    report_live(line);
}

void metrics_untrained(struct metrics *metrics, const struct step_result *r, const struct standing *at) {
    struct loss *first = &metrics->first;
    *first = mean_losses(r->loss, r->examples, r->pairs, r->terms);
    note("untrained  loss %.4f a pair", first->pair);
    write_line(metrics, at, first, &(struct json){.used = 0});
}

int metrics_due(const struct metrics *metrics) {
    return progress_now() - metrics->tally.began >= metrics->config->train_report_seconds;
}

void metrics_report(struct metrics *metrics, const struct standing *at) {
    struct report_sums *tally = &metrics->tally;
    double passed = progress_now() - tally->began;
    ENDED_BY(json_release) struct json rates = {.used = 0};
    if (!tally->loss_examples || !(passed > 0)) return;
    double words_rate = (double)tally->words / passed, pairs_rate = (double)tally->pairs / passed;
    metrics->words_per_second = words_rate;
    metrics->pairs_per_second = pairs_rate;
    metrics->reports++;
    metrics->last = mean_losses(tally->loss, tally->loss_examples, tally->loss_pairs, tally->loss_terms);
    show_line(metrics, at, words_rate, pairs_rate);
    /* A loss that stays untrained means that the model does not learn. But vectors that begin near zero may stay there for some epochs and then
     * learn quickly; so the warning comes only after half of the run and a hundred reports. For shorter runs metrics_judge() warns at the end. */
    if (at_plateau(metrics) && metrics->reports >= PLATEAU_REPORTS && at->done >= 0.5) {
        char when[64];
        metrics->plateau_over = 1;
        snprintf(when, sizeof when, "for %" PRIu64 " reports", metrics->reports);
        warn_plateau(metrics, when);
    }
    add_count(&rates, "words", at->state->words);
    add_count(&rates, "pairs", at->state->pairs);
    add_number(&rates, "words_per_second", words_rate);
    add_number(&rates, "pairs_per_second", pairs_rate);
    add_count(&rates, "link_bytes", tally->link_bytes);
    write_line(metrics, at, &metrics->last, &rates);
    metrics_start(metrics);
}

/* Writes after how much training something was measured: "2 epochs", or "step 150" within an epoch. */
static const char *measured_after(const struct standing *at, char text[TEXT_BYTES]) {
    const struct progress_state *state = at->state;
    if (state->position) snprintf(text, TEXT_BYTES, "step %" PRIu64, state->step);
    else snprintf(text, TEXT_BYTES, "%" PRIu64 " epoch%s", state->epoch, text_plural(state->epoch));
    return text;
}

void metrics_held_out(struct metrics *metrics, const struct step_result *sum, const struct standing *at) {
    struct loss loss = mean_losses(sum->loss, sum->examples, sum->pairs, sum->terms);
    ENDED_BY(json_release) struct json line = {.used = 0};
    begin_line(&line, at);
    add_number(&line, "held_out_loss", loss.example);
    add_number(&line, "held_out_loss_pair", loss.pair);
    add_count(&line, "held_out_examples", sum->examples);
    json_print(&line, "}\n");
    note("held out   loss %.4f a pair over %" PRIu64 " example%s after %s", loss.pair, sum->examples, text_plural(sum->examples),
         measured_after(at, (char[TEXT_BYTES]){0}));
    append(metrics, &line);
    metrics->held_out = loss;
    if (!metrics->held_out_times++) metrics->held_out_first = loss;
}

void metrics_recall(struct metrics *metrics, double recall, uint64_t lists, const struct standing *at) {
    ENDED_BY(json_release) struct json line = {.used = 0};
    begin_line(&line, at);
    add_number(&line, "held_out_recall", recall);
    add_count(&line, "held_out_lists", lists);
    json_print(&line, "}\n");
    note("held out   recall@20 %.4f of %" PRIu64 " list%s after %s", recall, lists, text_plural(lists), measured_after(at, (char[TEXT_BYTES]){0}));
    append(metrics, &line);
}

void metrics_triples(struct metrics *metrics, const double found[4], const struct standing *at) {
    ENDED_BY(json_release) struct json line = {.used = 0};
    begin_line(&line, at);
    add_number(&line, "held_out_mrr", found[0]);
    add_number(&line, "held_out_hits10", found[1]);
    add_count(&line, "held_out_triples", (uint64_t)found[2]);
    json_print(&line, "}\n");
    note("held out   mrr %.4f hits@10 %.4f of %.0f triples among %.0f entities after %s", found[0], found[1], found[2], found[3],
         measured_after(at, (char[TEXT_BYTES]){0}));
    append(metrics, &line);
}

/* ---- reading ---- */

int metrics_lines(const char *path, int (*take)(void *user, const char *line, uint64_t length), void *user) {
    char line[LINE_MOST];
    const char *end;
    int fd = file_open(path, O_RDONLY), result = 0;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd < 0) return -1;
        close(fd);
        return fail_system("open", path);
    }
    while (!result && fgets(line, sizeof line, file) && (end = strchr(line, '\n')))
        result = take(user, line, (uint64_t)(end + 1 - line));
    if (ferror(file)) result = fail_system("read", path);
    fclose(file);
    return result;
}

/* ---- a resumed run ---- */

/* State of copying the lines that a resumed run keeps: all up to `stand`. */
struct cutting {
    const struct progress_state *stand;
    struct file_writer writer;
};

/* Keeps a line, unless no run has written it. Returns 1 at a line about a later step. Lock-free training may write several lines within a step;
 * they differ in their pairs, those of held-out losses in their epochs. */
static int keep_line(void *user, const char *line, uint64_t length) {
    static const char name[] = ", \"pairs\": ";
    struct cutting *cutting = user;
    const struct progress_state *stand = cutting->stand;
    const char *found = strstr(line, name);
    uint64_t step, epoch, pairs;
    if (sscanf(line, "{\"step\": %" SCNu64 ", \"epoch\": %" SCNu64, &step, &epoch) != 2) return 0;
    int has_pairs = found && sscanf(found + sizeof name - 1, "%" SCNu64, &pairs) == 1;
    if (step > stand->step || epoch > stand->epoch || (has_pairs && pairs > stand->pairs)) return 1;
    return file_write(&cutting->writer, line, length);
}

int metrics_cut(struct metrics *metrics, const struct progress_state *stand) {
    struct cutting cutting = {.stand = stand};
    int there = file_exists(metrics->path);
    if (there != 1) return there;
    if (file_writer_open(&cutting.writer, metrics->path)) return -1;
    if (metrics_lines(metrics->path, keep_line, &cutting) >= 0) return file_commit(&cutting.writer);
    file_abandon(&cutting.writer);
    return -1;
}
