#include "tune_inner.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/cache.h"
#include "corpus/fields.h"
#include "kernels/draws.h"
#include "run/run_directory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

enum { OWN_SHARE = 5 }; /* a longer training of trial 0 (the user's own keys) may take the remaining time / OWN_SHARE */

void halving_release(struct halving *h) {
    free(h->trial);
    *h = (struct halving){.count = 0};
}

int halving_top(const struct halving *h) {
    int top = -1;
    for (uint64_t i = 0; i < h->count; i++)
        if (h->trial[i].rungs - 1 > top) top = h->trial[i].rungs - 1;
    return top;
}

/* ---- order ---- */

static int by_score(const void *a, const void *b) {
    const struct tune_place *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->trial != y->trial ? (x->trial < y->trial ? -1 : 1) : x->rung - y->rung;
}

uint64_t *halving_order(const struct halving *h, int rung, uint64_t *count) {
    OWNED struct tune_place *all = mem_alloc(h->count + 1, sizeof *all, "trials");
    uint64_t *order = mem_alloc(h->count + 1, sizeof *order, "trials");
    *count = 0;
    for (uint64_t i = 0; all && i < h->count; i++)
        if (h->trial[i].rungs > rung) all[(*count)++] = (struct tune_place){h->trial[i].score[rung], i, rung};
    if (all && *count) qsort(all, *count, sizeof *all, by_score);
    for (uint64_t i = 0; all && order && i < *count; i++) order[i] = all[i].trial;
    if (all) return order;
    free(order);
    return NULL;
}

/* ---- the next job ---- */

/* Finds a trial on a rung that may be trained on the next rung. Returns 1 with *trial, 0 if there is none, -1 after fail(). */
static int find_rising(const struct halving *h, const struct halving_bounds *bounds, int rung, uint64_t *trial) {
    uint64_t count, *order = halving_order(h, rung, &count);
    if (!order) return -1;
    uint64_t most = count / HALVING_SHARE;
    if (bounds->begin != HALVING_ANY && count && !most) most = 1;
    int found = 0;
    for (uint64_t place = 0; place < count && !found; place++) {
        const struct halving_trial *one = &h->trial[order[place]];
        double takes = HALVING_SHARE * one->seconds[one->rungs - 1];
        int may = place < most || (!order[place] && OWN_SHARE * takes <= bounds->left);
        found = may && one->rungs == rung + 1 && takes <= bounds->left;
        if (found) *trial = order[place];
    }
    free(order);
    return found;
}

int halving_next(const struct halving *h, const struct halving_bounds *bounds, struct halving_job *job) {
    int found = 0;
    double takes = 0; /* seconds that a new trial probably takes: the mean of all trials on rung 0 */
    for (int rung = HALVING_RUNGS - 2; rung >= 0 && !found; rung--) {
        found = find_rising(h, bounds, rung, &job->trial);
        job->rung = rung + 1;
    }
    for (uint64_t i = 0; i < h->count; i++) takes += h->trial[i].seconds[0] / (double)h->count;
    if (bounds->begin == HALVING_LAST) takes *= 1 + HALVING_SHARE;
    if (found || bounds->begin == HALVING_NONE || takes > bounds->left) return found;
    *job = (struct halving_job){h->count, 0};
    return 1;
}

int halving_took(struct halving *h, const struct halving_job *job, double score, double seconds) {
    INVARIANT(job->trial <= h->count && job->rung < HALVING_RUNGS);
    if (job->trial == h->count) {
        if (mem_grow(&h->trial, &h->capacity, h->count + 1, sizeof *h->trial, "trials")) return -1;
        h->trial[h->count++] = (struct halving_trial){.rungs = 0};
    }
    struct halving_trial *trial = &h->trial[job->trial];
    trial->score[job->rung] = score;
    trial->seconds[job->rung] = seconds;
    trial->rungs = job->rung + 1;
    return 0;
}

static const char lock_name[] = "tune.lock", trials_name[] = "trials", ending[] = ".tune";
static const struct directory_mark mark = {"searches", "sptx-w2v tune trains its trials in this directory, and removes it\n"};

/* ---- who has made the files ---- */

/* Returns 1 if tune has made this entry of RUN.tune, or NFS (.nfs...); 0 if not; -1 after fail(). */
static int is_own(const struct tune_directory *d, const char *name) {
    if (!strcmp(name, trials_name)) return directory_mark_is_there(d->trials, &mark);
    return !strcmp(name, tried_name) || file_is_partial(name, tried_name) || !strcmp(name, lock_name) || !strncmp(name, ".nfs", 4);
}

static int refuse_others(const struct tune_directory *d) {
    char **names;
    int own = 1;
    int64_t count = directory_list(d->path, &names), at = 0;
    while (at < count && (own = is_own(d, names[at])) == 1) at++;
    if (at < count && !own)
        fail("'%s' holds '%s', which tune has not written; tune wants that directory for itself: move '%s' away, or choose another "
             "run.dir, after which it is named",
             d->path, names[at], names[at]);
    mem_free_texts(names, count);
    return count < 0 || own != 1 ? -1 : 0;
}

/* ---- removing ---- */

static int remove_trials(const struct tune_directory *d) {
    if (run_directory_remove(d->run) || cache_remove(d->corpus) || cache_remove(d->trials) || file_remove(d->edges) ||
        file_remove(d->held_out))
        return -1;
    directory_unmake(d->corpus, 1);
    return directory_mark_remove(d->trials, &mark);
}

/* ---- the whole ---- */

int tune_directory_open(struct tune_directory *d, const char *run) {
    char holder[LOCK_HOLDER], *name = mem_alloc(strlen(run) + sizeof ending, 1, "a path");
    *d = (struct tune_directory){.lock = {.fd = -1}};
    if (name) sprintf(name, "%s%s", run, ending);
    d->path = name ? path_resolve(name) : NULL;
    free(name);
    if (!d->path || !(d->trials = file_join(d->path, trials_name)) || !(d->run = file_join(d->trials, "run")) ||
        !(d->corpus = file_join(d->trials, "corpus")) || !(d->edges = file_join(d->trials, "edges.tsv")) ||
        !(d->held_out = file_join(d->trials, "held_out.tsv")))
        return -1;
    int taken = directory_claim(&d->lock, d->path, lock_name, &d->made, holder);
    if (taken == 1)
        fail("'%s' is being used by the tune of %s; one process at a time searches keys for a run.dir: wait for it, or choose another run.dir",
             d->path, holder);
    if (taken || refuse_others(d)) return -1;
    int left = file_exists(d->trials);
    if (left < 0 || (left && remove_trials(d))) return -1;
    if (left && file_exists(d->trials))
        return fail("'%s' holds what tune has not written: move that away, or choose another run.dir", d->trials);
    if (directory_mark_make(d->trials, &mark)) return -1;
    d->begun = 1;
    return 0;
}

void tune_directory_close(struct tune_directory *d) {
    int failed_before = report_exit_code();
    if (d->begun) remove_trials(d);
    if (!failed_before) report_clear();
    lock_give(&d->lock);
    if (d->made) directory_unmake(d->path, d->made);
    mem_free(d->path, d->trials, d->run, d->corpus, d->edges, d->held_out);
    *d = (struct tune_directory){.lock = {.fd = -1}};
}

enum { LINE = 1024 };
const char tried_name[] = "tried.tsv";
static const char tried_head[] = "# sptx-w2v tune ";

/* Opens the file in `directory`, or creates it. `fingerprint`: of the data and the user's keys. `anew`: 1: empties the file first. Returns 0, or
 * -1 after fail(). */
static int tried_open(struct tried *t, const char *directory, uint64_t fingerprint, int anew) {
    char first[LINE];
    *t = (struct tried){.path = file_join(directory, tried_name)};
    if (!t->path) return -1;
    size_t n = text_add(first, sizeof first, 0, "%s%016" PRIx64 "\n", tried_head, fingerprint);
    char head[sizeof tried_head] = "";
    int there = file_head(t->path, head, sizeof head);
    if (there > 0 && (there != 1 || strcmp(head, tried_head)))
        return fail("'%s' is in the way: tune keeps what it has tried in a file of this name, and has not written this one; move it "
                    "away, or choose another run.dir",
                    t->path);
    if (there < 0 || (there && !(t->lines = file_read(t->path, NULL)))) return -1;
    if (t->lines && !anew && !strncmp(t->lines, first, n)) return 0;
    if (t->lines && !anew) note("tried      '%s' is of other data or keys, and begins anew", t->path);
    free(t->lines);
    t->lines = NULL;
    return file_replace(t->path, first, n);
}

void tried_close(struct tried *t) {
    mem_free(t->path, t->lines);
    *t = (struct tried){.path = NULL};
}

/* Returns 1, with the score and the seconds, if the line is about a training with these epochs and keys. */
static int line_is(const char *line, uint64_t epochs, const char *keys, double *score, double *seconds) {
    char *end;
    size_t length = strlen(keys);
    if (strtoull(line, &end, 10) != epochs || *end != '\t') return 0;
    *score = numbers_read(end + 1, &end);
    if (*end != '\t') return 0;
    *seconds = numbers_read(end + 1, &end);
    return isfinite(*score) && isfinite(*seconds) && *end == '\t' && !strncmp(end + 1, keys, length) && end[1 + length] == '\n';
}

/* Looks for a training with these epochs and keys in earlier calls. Returns 1 and sets its score and seconds, or 0. */
static int tried_find(const struct tried *t, uint64_t epochs, const char *keys, double *score, double *seconds) {
    for (const char *line = t->lines; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (line_is(line, epochs, keys, score, seconds)) return 1;
    return 0;
}

static int tried_add(const struct tried *t, uint64_t epochs, const char *keys, double score, double seconds) {
    char line[LINE];
    size_t n = text_add(line, sizeof line, 0, "%" PRIu64 "\t%.17g\t%.3f\t%s\n", epochs, score, seconds, keys);
    return file_append(t->path, line, n);
}

/* Returns the highest rung on which any trial has a score, or -1. */
static int top_judged(const struct tuning *t) {
    int top = -1;
    for (uint64_t i = 0; i < t->halving.count; i++)
        for (int rung = top + 1; rung < t->halving.trial[i].rungs; rung++)
            if (isfinite(t->halving.trial[i].score[rung])) top = rung;
    return top;
}

/* Lists the trials among which the best is chosen: all trials if epochs are searched, otherwise those of the highest rung. Returns a list for the
 * caller to free, or NULL after fail(). */
static struct tune_place *tune_places(const struct tuning *t, uint64_t *count) {
    int least = tune_finds_epochs(t) ? 0 : top_judged(t);
    struct tune_place *all = mem_alloc(t->halving.count * HALVING_RUNGS + 1, sizeof *all, "trials");
    *count = 0;
    for (uint64_t i = 0; all && i < t->halving.count; i++)
        for (int rung = least; rung < t->halving.trial[i].rungs; rung++)
            if (isfinite(t->halving.trial[i].score[rung]))
                all[(*count)++] = (struct tune_place){t->halving.trial[i].score[rung], i, rung};
    if (all) qsort(all, *count, sizeof *all, by_score);
    return all;
}

/* best: writes the configuration file with the best keys: the user's keys, the best trial's, and all trials as comments. */

enum { TABLE_LINES = 15 };
static const char first_words[] = "# Found by sptx-w2v tune";

/* Returns 0 if best_write() may write `path`; -1 after fail(), also if a file is there that tune has not written. */
static int best_check(const char *path) {
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    char head[sizeof first_words] = "";
    int there = file_head(path, head, sizeof head);
    if (there < 0) return -1;
    if (there && strcmp(head, first_words)) return fail("'%s' is there, and tune has not written it: --out=FILE writes elsewhere", path);
    return file_writer_open(&writer, path);
}

static int print_head(const struct tuning *t, const struct tune_answer *a, struct file_writer *w) {
    char date[32] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local)) strftime(date, sizeof date, "%Y-%m-%d", &local);
    if (file_print(w, "%s on %s, the best of %" PRIu64 " trial%s: held-out %s %.4f", first_words, date, a->trials,
                   text_plural(a->trials), a->measure, a->shown))
        return -1;
    if (a->own == a->own && file_print(w, ", the keys as they were %.4f", a->own)) return -1;
    return file_print(w, ".\n# It was found on most of the data; train on all of it:  sptx-w2v train %s\n#\n", t->request->out);
}

static int print_table(const struct tuning *t, struct file_writer *w) {
    uint64_t count;
    OWNED struct tune_place *place = tune_places(t, &count);
    int result = place ? file_print(w, "#   %-10s  %-7s  %-6s  trial  keys\n",
                                    t->measure == TUNE_LOSS ? "loss" : "score", "behind", "epochs")
                       : -1;
    for (uint64_t i = 0; !result && i < count && i < TABLE_LINES; i++) {
        char keys[SPACE_TEXT];
        space_text(&t->space, &t->points[place[i].trial], keys);
        result = file_print(w, "#   %-10.4f  %-7.4f  %6" PRIu64 "  %5" PRIu64 "  %s\n", tune_shown(t, place[i].score),
                            place[0].score - place[i].score, trial_epochs(t, place[i].rung), place[i].trial, keys);
    }
    return result;
}

/* Prints all keys that are set, section by section. */
static int print_keys(const struct config *config, struct file_writer *w) {
    char before[64] = "", section[64];
    const char *name, *choices;
    for (int i = 0; (name = config_key_at(i, &choices)); i++) {
        size_t length = strcspn(name, ".");
        snprintf(section, sizeof section, "%.*s", (int)length, name);
        if (!config_is_given(config, section, name + length + 1)) continue;
        char *value = config_value(config, section, name + length + 1);
        int result = !value || (strcmp(section, before) && file_print(w, "\n[%s]\n", section)) ||
                     file_print(w, "%s = %s\n", name + length + 1, value);
        free(value);
        if (result) return -1;
        strcpy(before, section);
    }
    return 0;
}

/* Writes a configuration file with the best trial's keys, and with all trials as comments. */
static int best_write(const struct tuning *t, const struct tune_answer *answer) {
    ENDED_BY(config_release) struct config config = {0};
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    int epochs = tune_finds_epochs(t) || answer->diverged;
    if (trial_config(t, &t->points[answer->best], &config) || (epochs && trial_set_epochs(&config, answer->epochs)) ||
        file_writer_open(&writer, t->request->out)) return -1;
    return print_head(t, answer, &writer) || print_table(t, &writer) || print_keys(&config, &writer) ? -1 : file_commit(&writer);
}

enum { ATTEMPTS = 100 };                   /* most tries to draw a trial with keys that no earlier trial had */
enum { PARTS = 20 };                       /* the first training of a trial may take the total time / PARTS */
static const double beginning_share = 0.7; /* for this share of the time, a new trial begins whenever no trial may move up to the next rung; later,
                                            * the best trials are trained further first */
static const double held_out_edges = 0.1; /* also of triples */

const char *const tune_measures[] = {"recall@20", "MRR", "loss", "score", "MRR"};

/* ---- the data ---- */

static void add_text(uint64_t *sum, const char *text) {
    *sum = XXH3_64bits_withSeed(text, strlen(text) + 1, *sum);
}

/* Computes a hash of the data and of the keys that are equal in all trials. */
static int find_fingerprint(const struct tuning *t, const struct corpus *corpus, uint64_t *sum) {
    const struct config *c = t->request->config;
    const char *name, *choices;
    *sum = corpus_fingerprint(corpus);
    for (int i = 0; (name = config_key_at(i, &choices)); i++) {
        char section[64];
        size_t length = strcspn(name, ".");
        snprintf(section, sizeof section, "%.*s", (int)length, name);
        if (!strcmp(section, "run") || !strcmp(section, "device") || !strcmp(section, "memory")) continue;
        OWNED char *value = config_value(c, section, name + length + 1);
        if (!value) return -1;
        add_text(sum, value);
    }
    for (int i = 0; i < t->request->pair_count; i++) add_text(sum, t->request->pairs[i]);
    for (int i = 0; i < t->request->analogy_count; i++) add_text(sum, t->request->analogies[i]);
    return 0;
}

static struct corpus *open_corpus(const struct tuning *t) {
    char **paths;
    if (t->request->data) return corpus_open_gathered(t->request->data);
    int64_t count = config_paths("corpus.path", t->resolved.corpus_path, &paths);
    struct corpus *corpus = NULL;
    if (count == 0)
        fail("corpus.path is empty: say which files to read (corpus.path = FILE, or --corpus.path=FILE)");
    else if (count > 0 && !strcmp(paths[0], CORPUS_INPUT))
        fail("corpus.path = " CORPUS_INPUT
             ": tune reads the corpus more than once, and standard input comes once; put it into a file first");
    else if (count > 0)
        corpus = corpus_open(paths, (uint64_t)count);
    mem_free_texts(paths, count);
    return corpus;
}

/* Splits the edges of a graph, or triples, into a training part and a held-out part, and writes each to a file. */
static int split_data(struct tuning *t, struct corpus *corpus) {
    const struct tune_directory *to = &t->directory;
    uint32_t seed = (uint32_t)t->resolved.train_seed;
    const struct corpus_options options = config_corpus(&t->resolved);
    ENDED_BY(pool_end) struct pool *pool = pool_open((unsigned)t->resolved.device_threads);
    ENDED_BY(vocab_release) struct vocab vocab = {.size = 0};
    ENDED_BY(idstream_close) struct idstream stream = {.tokens = 0};
    ENDED_BY(graph_close) struct graph graph = {.nodes = 0};
    int reused, result = !pool || cache_open(t->directory.trials, corpus, &options, pool, &vocab, &stream, &graph, &reused)
                             ? -1 : 0;
    if (!result)
        result = stream.triples ? split_triples(&stream, held_out_edges, seed, to->edges, to->held_out)
                                : split_edges(&graph, held_out_edges, seed, to->edges, to->held_out);
    return result;
}

static int open_data(struct tuning *t) {
    uint64_t fingerprint;
    ENDED_BY(corpus_end) struct corpus *corpus = open_corpus(t);
    const struct corpus_options options = config_corpus(&t->resolved);
    int result = !corpus || find_fingerprint(t, corpus, &fingerprint) ||
                         tried_open(&t->tried, t->directory.path, fingerprint, t->request->anew) ? -1 : 0;
    if (!result) result = (t->weighable = ratings_may_weigh(corpus, &options)) < 0 ? -1 : 0;
    if (!result && (t->measure == TUNE_LINKS || t->measure == TUNE_TRIPLES)) result = split_data(t, corpus);
    return result;
}

/* ---- opening ---- */

static int check_request(const struct tuning *t) {
    const struct tune_request *r = t->request;
    const struct corpus_format_properties *format = &corpus_formats[t->resolved.corpus_format];
    if (!t->resolved.train_epochs)
        return fail("tune measures trials in epochs, and train.epochs is 0: leave it out, or set how many a run has");
    if (!(r->seconds > 0) && !r->trials) return fail_usage("tune wants an end: --minutes=M, --trials=N, or both");
    if (config_ranks(&t->resolved) > 1)
        return fail("tune trains its trials in one process, and device.gpus asks for %u; leave it out", config_ranks(&t->resolved));
    if (*t->resolved.train_from && (format->edges || format->triples))
        return fail("tune trains %s by numbers, and train.from finds rows by names: leave it out", format->edges ? "a graph" : "triples");
    if (config_walks_triples(&t->resolved))
        return fail("tune judges walks by edges held out of a graph, and these are triples; set corpus.format = graph and corpus.columns to the "
                    "columns of heads and tails, or examples.mode = triple");
    if (!format->sentences && r->pair_count + r->analogy_count)
        return fail("--pairs and --analogies judge words, and corpus.format is %s: leave them out", format->name);
    return r->out ? best_check(r->out) : 0;
}

static int open_tuning(struct tuning *t) {
    t->quiet = report_open(NULL, NULL);
    t->said = report_current();
    if (config_copy(&t->resolved, t->request->config) || config_resolve(&t->resolved)) return -1;
    if (!t->quiet) return fail("not enough memory for what trials say");
    if (check_request(t)) return -1;
    const struct corpus_format_properties *format = &corpus_formats[t->resolved.corpus_format];
    int sets = t->request->pair_count + t->request->analogy_count > 0;
    t->measure = format->edges ? TUNE_LINKS : format->triples ? TUNE_TRIPLES : !format->sentences ? TUNE_RECALL : sets ? TUNE_SETS : TUNE_LOSS;
    if (tune_directory_open(&t->directory, t->resolved.run_dir) || open_data(t)) return -1;
    trial_defaults(t);
    return space_find(&t->space, t->request->config, &t->resolved, t->measure == TUNE_SETS, t->weighable);
}

/* ---- trials ---- */

/* Returns the trial near which a new one is drawn: one of the best three on the highest rung. NULL: the new trial is drawn from the whole space:
 * every third trial, and all trials before the first one that rises. */
static const struct space_point *parent_of(const struct tuning *t, uint64_t number, uint32_t attempt) {
    int top = halving_top(&t->halving);
    uint64_t count, *order;
    if (top < 1 || number % 3 == 0 || !(order = halving_order(&t->halving, top, &count))) return NULL;
    struct draw4 drawn = draw_at((uint32_t)t->resolved.train_seed, DRAW_TUNE, number, attempt, SPACE_KEYS + 1);
    const struct space_point *parent = &t->points[order[draw_below(draw_pair(drawn, 0), count < 3 ? count : 3)]];
    free(order);
    return parent;
}

/* Returns 1 unless a trial would take so long that little time would be left for other trials. */
static int is_affordable(const struct tuning *t, const struct space_point *point) {
    double all = t->request->seconds;
    if (!(all > 0) || !t->halving.count) return 1;
    return space_cost(&t->space, point) * t->halving.trial[0].seconds[0] <= fmax(all / PARTS, t->halving.trial[0].seconds[0]);
}

/* Draws the keys of a new trial. Returns 0; 1 if no new keys were found in ATTEMPTS draws; -1 after fail(). */
static int draw_point(struct tuning *t) {
    uint64_t number = t->halving.count;
    if (mem_grow(&t->points, &t->point_capacity, number + 1, sizeof *t->points, "trials")) return -1;
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct space_point *point = &t->points[number];
        *point = number ? space_draw(&t->space, parent_of(t, number, attempt), (uint32_t)t->resolved.train_seed, number, attempt)
                        : space_own(&t->space);
        uint64_t like = 0;
        while (like < number && !space_equal(&t->space, &t->points[like], point)) like++;
        if (like == number && is_affordable(t, point)) return 0;
    }
    t->exhausted = 1;
    return 1;
}

static void tell_job(const struct tuning *t, const struct halving_job *job, uint64_t epochs, const char *keys,
                     int known, const struct trial_end *end) {
    int failed = *end->why != 0, leads = !failed;
    for (uint64_t i = 0; i < t->halving.count; i++)
        if (t->halving.trial[i].rungs > job->rung && t->halving.trial[i].score[job->rung] > end->score) leads = 0;
    const struct tune_tried tried = {.trial = job->trial,
                                     .rung = job->rung,
                                     .epochs = epochs,
                                     .score = failed ? NAN : end->score,
                                     .shown = tune_shown(t, end->score),
                                     .seconds = end->seconds,
                                     .known = known,
                                     .leads = leads,
                                     .keys = keys,
                                     .error = end->why};
    if (t->request->took) t->request->took(t->request->user, &tried);
}

/* Trains a job, or takes its result from an earlier call. A trial that failed gets the lowest score. */
static int do_job(struct tuning *t, const struct halving_job *job) {
    char keys[SPACE_TEXT];
    struct trial_end end = {.score = NAN};
    uint64_t epochs = trial_epochs(t, job->rung);
    space_text(&t->space, &t->points[job->trial], keys);
    int known = tried_find(&t->tried, epochs, keys, &end.score, &end.seconds);
    if (!known && trial_run(t, job, epochs, &end)) return -1;
    t->stopped |= end.stopped;
    if (end.stopped) return 0;
    if (*end.why && !t->halving.count) return fail("%s", end.why); /* the user's own keys failed, so all other trials would fail,
                                                                    * too */
    if (*end.why) snprintf(t->why, sizeof t->why, "%s", end.why);
    if (!known && !*end.why && tried_add(&t->tried, epochs, keys, end.score, end.seconds)) return -1;
    tell_job(t, job, epochs, keys, known, &end);
    return halving_took(&t->halving, job, *end.why ? -INFINITY : end.score, end.seconds);
}

/* Finds the limits of the next job, by the number of trials and the clock. */
static struct halving_bounds bounds_now(const struct tuning *t) {
    const struct tune_request *r = t->request;
    double spent = progress_now() - t->began;
    int may_begin = !t->exhausted && (!r->trials || t->halving.count < r->trials);
    int at_once = !(r->seconds > 0) || spent < beginning_share * r->seconds;
    return (struct halving_bounds){!may_begin ? HALVING_NONE : at_once ? HALVING_ANY : HALVING_LAST,
                                   r->seconds > 0 ? fmax(r->seconds - spent, 0) : INFINITY};
}

static int search(struct tuning *t) {
    struct halving_job job;
    int more = 1;
    while (more > 0 && !t->stopped) {
        struct halving_bounds bounds = bounds_now(t);
        more = halving_next(&t->halving, &bounds, &job);
        if (more <= 0) break;
        int drawn = job.trial == t->halving.count ? draw_point(t) : 0;
        if (drawn < 0 || (!drawn && do_job(t, &job))) return -1;
        t->stopped |= interrupt_asked();
    }
    return more;
}

/* ---- the answer ---- */

void tune_line(const struct tune_tried *tried, char *out, uint64_t capacity) {
    size_t n = text_add(out, capacity, 0, "%5" PRIu64 "   %d/%d %7" PRIu64 "  ", tried->trial, tried->rung + 1,
                        HALVING_RUNGS, tried->epochs);
    if (isnan(tried->score))
        n = text_add(out, capacity, n, "%9s", "failed");
    else
        n = text_add(out, capacity, n, "%9.4f", tried->shown);
    text_add(out, capacity, n, "%c %7.1f%s  %s", tried->leads ? '*' : ' ', tried->seconds, tried->known ? "=" : " ",
             isnan(tried->score) ? tried->error : tried->keys);
}

static int answer_of(const struct tuning *t, struct tune_answer *answer) {
    uint64_t count;
    struct tune_place *place = tune_places(t, &count), best = place && count ? *place : (struct tune_place){0};
    int finds = tune_finds_epochs(t), top = halving_top(&t->halving);
    free(place);
    if (!place) return -1;
    if (!count)
        return fail_stopped("stopped %sbefore a trial was done: there are no keys to choose from, and nothing is written",
                            interrupt_used() ? "" : "by a signal ");
    const struct halving_trial *own = &t->halving.trial[0]; /* the user's own keys, with their own epochs on this rung: */
    int rung = finds ? HALVING_RUNGS - 2 : HALVING_RUNGS - 1;
    struct tune_answer a = {.trials = t->halving.count,
                            .best = best.trial,
                            .epochs = trial_epochs(t, best.rung),
                            .shown = tune_shown(t, best.score),
                            .own = own->rungs > rung && isfinite(own->score[rung]) ? tune_shown(t, own->score[rung]) : NAN,
                            .diverged = !finds && best.rung < top,
                            .stopped = t->stopped};
    snprintf(a.measure, sizeof a.measure, "%s", tune_measures[t->measure]);
    space_text(&t->space, &t->points[best.trial], a.keys);
    if (t->request->out && best_write(t, &a)) return -1;
    *answer = a;
    if (!a.diverged) return 0;
    uint64_t all = trial_epochs(t, top);
    return fail("every trial that went on to %" PRIu64 " epoch%s failed, the last one so: %s; the best with %" PRIu64 " epoch%s: %s %.4f with %s",
                all, text_plural(all), t->why, a.epochs, text_plural(a.epochs), a.measure, a.shown, a.keys);
}

int tune_run(struct tune_answer *answer, const struct tune_request *request) {
    struct tuning t = {.request = request, .began = progress_now()};
    int ended_before = interrupt_ends_work(1);
    *answer = (struct tune_answer){.trials = 0};
    int result = open_tuning(&t) || search(&t) < 0 || answer_of(&t, answer) ? -1 : 0;
    interrupt_ends_work(ended_before);
    tune_directory_close(&t.directory);
    halving_release(&t.halving);
    tried_close(&t.tried);
    report_close(t.quiet);
    config_release(&t.resolved);
    free(t.points);
    return result;
}
