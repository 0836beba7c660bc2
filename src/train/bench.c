#include "bench.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/ranks.h"
#include "run/state.h"
#include "session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { KEY = 512, TEXT = 1024, TRIES = 40, TRY_MICROSECONDS = 100000 };

/* A rate outside these bounds, in bytes a second, cannot have been measured on any machine. */
static const double slowest = 1e6, fastest = 1e15;

/* ---- a GPU's file ---- */

/* Returns this program's directory in the user's cache directory; the caller frees it. NULL if the environment names no cache directory. */
static char *cache_directory(void) {
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given && *given == '/') return file_join(given, "sptx-w2v");
    return home && *home == '/' ? file_join(home, ".cache/sptx-w2v") : NULL;
}

/* Returns "DIRECTORY/rates-NUMBER.ENDING"; the caller frees it. NULL if there is no cache directory. */
static char *file_of(const char *key, const char *ending) {
    OWNED char *directory = cache_directory();
    char name[64];
    snprintf(name, sizeof name, "rates-%016" PRIx64 ".%s", (uint64_t)XXH3_64bits(key, strlen(key)), ending);
    return directory ? file_join(directory, name) : NULL;
}

/* ---- its text ---- */

static uint64_t format(const char *key, const struct bench_limits *rates, char text[TEXT]) {
    size_t n = text_add(text, TEXT, 0, "%s\nto %.6e\nfrom %.6e\nboth %.6e\ndevice %.6e\n", key, rates->to, rates->from,
                        rates->both, rates->device);
    return text_add(text, TEXT, n, "check %016" PRIx64 "\n", (uint64_t)XXH3_64bits(text, n));
}

static int is_rate(double rate) {
    return rate >= slowest && rate <= fastest;
}
static int are_rates(const struct bench_limits *r) {
    return is_rate(r->to) && is_rate(r->from) && is_rate(r->both) && is_rate(r->device);
}

/* Reads rates from the text of a file. Refuses the text unless writing the same rates gives the same bytes. */
static int parse(const char *key, const char *text, struct bench_limits *rates) {
    char again[TEXT];
    struct bench_limits r;
    const char *line = strchr(text, '\n');
    if (!line || sscanf(line, " to %lf from %lf both %lf device %lf", &r.to, &r.from, &r.both, &r.device) != 4) return 0;
    if (!are_rates(&r)) return 0;
    format(key, &r, again);
    if (strcmp(again, text)) return 0;
    *rates = r;
    return 1;
}

/* ---- finding and keeping ---- */

static int find(const char *key, struct bench_limits *rates) {
    OWNED char *path = file_of(key, "txt"), *text = path && file_exists(path) == 1 ? file_read(path, NULL) : NULL;
    *rates = (struct bench_limits){0};
    return text ? parse(key, text, rates) : 0;
}

static void keep(const char *key, const struct bench_limits *rates) {
    char text[TEXT];
    OWNED char *directory = cache_directory(), *path = file_of(key, "txt");
    struct bench_limits most;
    find(key, &most);
    most.to = fmax(most.to, rates->to);
    most.from = fmax(most.from, rates->from);
    most.both = fmax(most.both, rates->both);
    most.device = fmax(most.device, rates->device);
    if (directory && path && !directory_make(directory)) file_replace(path, text, format(key, &most, text));
}

/* If another process holds the lock while it measures, waits a few seconds for it. Returns 1 if this process now holds the lock. */
static int take_turn(const char *key, struct lock *lock) {
    char holder[LOCK_HOLDER];
    OWNED char *directory = cache_directory(), *path = file_of(key, "lock");
    int held = 1;
    if (directory && path && !directory_make(directory))
        for (int i = 0; i < TRIES && held == 1; i++) {
            held = lock_try(lock, path, holder);
            if (held == 1) usleep(TRY_MICROSECONDS);
        }
    return held == 0;
}

static void get(const char *key, struct backend *backend, rates_measure *measure, struct bench_limits *rates) {
    struct bench_limits measured = {0};
    struct lock lock = {.path = NULL};
    if (find(key, rates)) return;
    int turn = take_turn(key, &lock); /* measures even if it did not get the lock */
    if (!find(key, rates) && !measure(backend, &measured) && are_rates(&measured)) {
        keep(key, &measured);
        *rates = measured;
    }
    if (turn) lock_give(&lock);
}

/* ---- without a word ---- */

/* Catches error messages, which are never shown, since rates are optional. Without memory for it, the functions below do nothing. */
struct silence {
    struct report *own, *before;
    char key[KEY];
};
static int begin_rates(struct silence *silence, const struct backend_info *info) {
    silence->own = report_open(NULL, NULL);
    if (!silence->own) return -1;
    silence->before = report_use(silence->own);
    char processor[128];
    processor_name(processor, sizeof processor);
    snprintf(silence->key, KEY, "%s, driver %s, %s, %s", info->name, info->driver, info->link, processor);
    for (char *at = silence->key; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    return 0;
}
static void end(struct silence *silence) {
    report_use(silence->before);
    report_close(silence->own);
}

int rates_find(const struct backend_info *info, struct bench_limits *rates) {
    struct silence silence;
    *rates = (struct bench_limits){0};
    if (begin_rates(&silence, info)) return 0;
    int found = find(silence.key, rates);
    end(&silence);
    return found;
}

void rates_keep(const struct backend_info *info, const struct bench_limits *rates) {
    struct silence silence;
    if (begin_rates(&silence, info)) return;
    if (are_rates(rates)) keep(silence.key, rates);
    end(&silence);
}

void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates) {
    struct silence silence;
    *rates = (struct bench_limits){0};
    if (begin_rates(&silence, info)) return;
    get(silence.key, backend, measure, rates);
    end(&silence);
}

enum {
    PHASE_STEPS = 20,   /* number of steps in which the phases are timed */
    RANK_WARM_STEPS = 20, /* number of first steps, from which ranks estimate how many fit into the wanted time */
    SAMPLE_ROWS = 4096, /* number of rows of the table that are written and read back */
};
static const double warm_share = 0.1; /* time of warming up, as a share of the wanted time */

/* ---- the machine ---- */

/* Measures how fast the GPU copies, and stores the result for plans. */
static int measure_limits(const struct backend_ops *ops, struct backend *backend, const struct backend_info *machine,
                          struct bench_limits *limits) {
    if (!ops->bench_limits) return 0;
    if (ops->bench_limits(backend, limits)) return -1;
    rates_keep(machine, limits);
    return 0;
}

int bench_open(struct bench *bench, const struct config *config) {
    struct backend_options options = {.threads = (unsigned)config->device_threads,
                                      .index = (unsigned)config->device_index,
                                      .depth = (unsigned)config->memory_depth,
                                      .gpu_budget = config->memory_gpu_budget,
                                      .matmul = (enum matmul_type)config->device_matmul};
    *bench = (struct bench){0};
    if (config_backend(config, &bench->ops) || bench->ops->open(&bench->backend, &options)) return -1;
    if (bench->ops->info(bench->backend, &bench->machine)) return -1;
    return measure_limits(bench->ops, bench->backend, &bench->machine, &bench->limits);
}

void bench_close(struct bench *bench) {
    if (bench->backend) bench->ops->close(bench->backend);
    bench->backend = NULL;
}

int bench_table_open(struct bench *bench, enum place place, uint64_t rows, uint32_t dim, const char *path,
                     struct backend_table **table) {
    const struct rule_options plain = {.rule = RULE_SGD}; /* no optimizer state */
    struct table_spec spec = {.name = "measured",
                              .rows = rows,
                              .weights = place,
                              .state = place,
                              .file_path = path,
                              .layout = record_layout_make(&plain, dim)};
    return bench->ops->table_open(bench->backend, &spec, table);
}

/* ---- memory ---- */

static int check_sample(struct bench *bench, struct backend_table *table, uint64_t rows, uint32_t dim) {
    uint64_t count = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS, first = rows - count;
    OWNED float *given = mem_alloc(count * dim, sizeof *given, "a sample of rows");
    OWNED float *got = mem_alloc(count * dim, sizeof *got, "a sample of rows");
    if (!given || !got) return -1;
    for (uint64_t i = 0; i < count * dim; i++) given[i] = (float)(i % 1000003);
    if (bench->ops->table_write(bench->backend, table, first, count, given) ||
        bench->ops->table_read(bench->backend, table, first, count, got))
        return -1;
    if (!memcmp(given, got, count * dim * sizeof *given)) return 0;
    return fail("rows %" PRIu64 " to %" PRIu64 " came back otherwise than they were written", first, rows - 1);
}

int bench_memory(struct bench *bench, uint64_t rows, uint32_t dim, struct bench_memory *out) {
    struct backend_info before, after;
    struct backend_table *table = NULL;
    uint64_t resident = mem_resident();
    double began = progress_now();
    int result = -1;
    *out = (struct bench_memory){.rows = rows, .dim = dim, .payload = rows * dim * sizeof(float)};
    if (bench->ops->info(bench->backend, &before) || bench_table_open(bench, PLACE_PINNED, rows, dim, NULL, &table)) goto out;
    out->opening = progress_now() - began;
    began = progress_now();
    if (check_sample(bench, table, rows, dim) || bench->ops->info(bench->backend, &after)) goto out;
    out->checking = progress_now() - began;
    out->host_bytes = after.host_used - before.host_used;
    out->gpu_bytes = after.gpu_used - before.gpu_used;
    out->resident = mem_resident() - resident;
    result = 0;
out:
    if (table) bench->ops->table_close(bench->backend, table);
    return result;
}

/* ---- train ---- */

struct training {
    struct config *config;
    struct session session;
    struct steps steps;
    struct bench_training *out;
    struct ranks *ranks;
    double began, most_seconds; /* when the current measurement began; how many seconds it may take */
    uint64_t most_steps;        /* if not 0: number of steps after which the measurement ends, whatever the time */
};

static int prepare(struct training *t) {
    struct config *c = t->config;
    struct session *s = &t->session;
    if (session_open(s, c, NULL, t->ranks, NULL)) return -1;
    t->out->plan = s->plan;
    t->out->gpu = s->ops->has_gpu;
    /* Measured first, since this memory must be freed before tables use all of the plan's budget. */
    if (measure_limits(s->ops, s->backend, &s->machine, &t->out->limits)) return -1;
    planner_set_floor(&t->out->plan, &t->out->limits);
    if (session_tables(s) || session_fill(s)) return -1;
    ranks_patience(t->ranks, c->device_rank_timeout, 1);
    t->steps = session_steps(s);
    t->steps.end = UINT64_MAX; /* epochs follow each other as long as there is time */
    return schedule_examples(c, t->steps.per_epoch, t->steps.batch, &t->steps.run);
}

/* Returns the number of steps that every rank will do: as many as the slowest rank can in `seconds`. */
static uint64_t steps_for(const struct training *t, double seconds) {
    double own = (double)t->out->steps / t->out->seconds * seconds, all[ranks_count(t->ranks)];
    ranks_exchange(t->ranks, &own, all, sizeof own);
    for (unsigned r = 0; r < ranks_count(t->ranks); r++)
        if (all[r] < own) own = all[r];
    return own > 1 ? (uint64_t)own : 1;
}

/* ---- the trainer's own loop, counted ---- */

static int count_batch(void *user, const struct step_result *r) {
    struct bench_training *out = ((struct training *)user)->out;
    out->words += r->words;
    out->examples += r->examples;
    out->pairs += r->pairs;
    out->link_bytes += r->link_bytes;
    if (r->pairs) out->loss_pair = r->loss / (double)r->pairs;
    return 0;
}

/* Returns the number of target and context rows of all trained blocks. With negatives.per = pair each block of a window contains its middle word,
 * which is then counted once for each pair. */
static uint64_t rows_named(const struct example_source *s, const struct hogwild_result *r) {
    uint64_t contexts = 1 + (uint64_t)s->negatives;
    if (!s->per_pair) return r->pairs + r->examples * contexts;
    return r->pairs * contexts + (s->mode == EXAMPLE_WINDOW ? r->pairs : r->examples);
}

static int count_piece(void *user, const struct hogwild_result *r, double seconds) {
    struct training *t = user;
    struct bench_training *out = t->out;
    out->words += r->words;
    out->examples += r->examples;
    out->pairs += r->pairs;
    out->link_bytes += r->link_bytes;
    out->calling += seconds;
    out->row_bytes += 2 * rows_named(&t->session.examples.source, r) * out->plan.layout.span * sizeof(float);
    if (r->sampled_pairs) out->loss_pair = r->loss / (double)r->sampled_pairs;
    return 0;
}

/* Returns 1 when the wanted time, or number of steps, is over. */
static unsigned is_over(void *user, int epoch_ended) {
    struct training *t = user;
    t->out->steps++;
    return t->most_steps ? t->out->steps >= t->most_steps : progress_now() - t->began >= t->most_seconds;
}

static int stop_if_over(void *user, int epoch_ended, unsigned over) {
    return (int)over;
}

static void say_nothing(void *user, double lr, int last) {
}

/* Trains for `seconds`, or for `steps` steps if that is not 0. *out: what was counted meanwhile. */
static int run_steps(struct training *t, double seconds, uint64_t steps) {
    struct bench_training *out = t->out;
    const struct steps_watch watch = {.user = t,
                                      .took_batch = count_batch,
                                      .took_piece = count_piece,
                                      .wishes = is_over,
                                      .between = stop_if_over,
                                      .report = say_nothing};
    out->steps = out->words = out->examples = out->pairs = out->link_bytes = out->row_bytes = 0;
    out->calling = 0;
    t->began = progress_now();
    t->most_seconds = seconds;
    t->most_steps = steps;
    if (steps_train(&t->steps, &watch) < 0 || t->steps.ops->drain(t->steps.backend)) return -1;
    out->seconds = progress_now() - t->began;
    return 0;
}

/* ---- its calls, one by one ---- */

/* Waits until the backend is idle, and adds the seconds since *began to *phase. */
static int end_phase(struct training *t, double *began, double *phase) {
    if (t->steps.ops->drain(t->steps.backend)) return -1;
    double now = progress_now();
    *phase += now - *began;
    *began = now;
    return 0;
}

/* Makes and trains one batch while no other batch is in flight. apart = 1: does not wait for other ranks, as if this rank had all columns. The
 * rows become wrong, which does not matter when times are measured. */
static int measure_step(struct training *t, int apart, double *making, double *stepping) {
    struct steps *s = &t->steps;
    struct batch_request batch = steps_batch(s, s->batch);
    struct step_request step = steps_request(s);
    struct step_result result;
    double began = progress_now();
    step.apart = apart;
    if (s->ops->make_batch(s->backend, 0, &batch) || end_phase(t, &began, making) || s->ops->step(s->backend, 0, &step) ||
        end_phase(t, &began, stepping))
        return -1;
    steps_move(s, batch.count);
    s->state.step++;
    return s->ops->result(s->backend, 0, &result);
}

static int measure_phases(struct training *t) {
    double *phase = t->out->phase, unused = 0;
    int several = ranks_count(t->ranks) > 1;
    /* A GPU loads a kernel when it first runs, so the kernels of apart = 1 are run once before they are timed. */
    if (several && measure_step(t, 1, &unused, &unused)) return -1;
    for (int i = 0; i < PHASE_STEPS; i++) {
        if (measure_step(t, 0, &phase[PHASE_MAKE], &phase[PHASE_STEP])) return -1;
        if (several && measure_step(t, 1, &unused, &phase[PHASE_ALONE])) return -1;
    }
    for (int i = 0; i < PHASES; i++) phase[i] /= PHASE_STEPS;
    t->out->phase_steps = PHASE_STEPS;
    return 0;
}

static int measure(struct training *t, double seconds, uint64_t steps) {
    uint64_t warm = steps ? steps / 10 + 1 : 0;
    if (ranks_count(t->ranks) > 1 && !steps) {
        if (run_steps(t, 0, RANK_WARM_STEPS) || run_steps(t, 0, RANK_WARM_STEPS))
            return -1; /* run twice: during the first, buffers grow */
        steps = steps_for(t, seconds);
        warm = steps_for(t, seconds * warm_share);
    }
    if (run_steps(t, seconds * warm_share, warm) || run_steps(t, seconds, steps)) return -1;
    return t->out->hogwild ? 0 : measure_phases(t);
}

int bench_train(struct bench_training *out, struct config *config, double seconds, uint64_t steps, struct ranks *ranks) {
    struct training t = {.config = config, .out = out, .ranks = ranks};
    double began = progress_now();
    *out = (struct bench_training){.hogwild = config->train_update == UPDATE_HOGWILD};
    int result = prepare(&t);
    out->loading = progress_now() - began;
    if (!result) result = measure(&t, seconds, steps);
    if (!result) result = t.steps.ops->info(t.steps.backend, &out->machine); /* once more, because stages have grown */
    session_close(&t.session);
    return result;
}

enum { WALKS_FIRST = 4096 };

/* Draws walks in one call, doubles their number until a call takes a good part of the time, then repeats this call until the time is over. */
static int draw(struct bench_walks *out, const struct session *s, double seconds) {
    const struct walks *w = &s->examples.source.walks;
    uint64_t all = walks_count(w), count = WALKS_FIRST < all ? WALKS_FIRST : all, at = 0, calls = 0;
    while (out->seconds < seconds) {
        if (at + count > all) at = 0;
        double began = progress_now();
        if (s->ops->draw_walks(s->backend, 0, at, count, NULL)) return -1;
        double took = progress_now() - began;
        at += count;
        if (took < seconds / 20 && 2 * count <= all && !out->walks) {
            count *= 2;
            continue;
        }
        if (!calls++) continue; /* the first call with this number of walks only warms up */
        out->walks += count;
        out->seconds += took;
    }
    return 0;
}

int bench_walks(struct bench_walks *out, struct config *config, double seconds) {
    struct session s;
    *out = (struct bench_walks){.seconds = 0};
    int result = session_open(&s, config, NULL, NULL, NULL);
    if (!result && config->examples_mode != MODE_WALK)
        result = fail("bench walks draws walks, and examples.mode is %s; set corpus.format = graph",
                      config_choice_name("examples", "mode", config->examples_mode));
    if (!result) {
        s.examples.source.stream_on_host = !s.plan.stream_gpu;
        result = s.ops->source(s.backend, &s.examples.source) || draw(out, &s, seconds) ? -1 : 0;
        out->machine = s.machine;
        out->graph = s.graph;
        out->length = s.examples.source.walks.length;
        out->on_host = s.examples.source.stream_on_host && s.ops->has_gpu;
    }
    session_close(&s);
    return result;
}
