/* test_reference FILE...: runs known answers of optimizers, losses and pooled targets through a backend and prints the worst
 * error of each file.
 *
 * A file holds '# optimizer NAME {JSON} bias_correction MODE reduction KIND [loss {JSON}]', then blocks "name d0 [d1]" of
 * numbers: shape (V D B P N STEPS), first tables, ids of every step, and what must come out: losses, tables, state, update
 * counts. The error is relative to the block's largest entry; past 2e-5 the file fails. SPTX_BACKEND=cuda runs them on
 * the GPU, SPTX_PLACE=pinned|gpu|file places the tables (default pinned), SPTX_THREADS sets the CPU's threads, and
 * mpirun begins ranks that share out the columns. Closes with 'N passed, N failed'; exit code 1 where any failed, 2
 * without files. */
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "rows/table.h"
#include "tests/fresh_directory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double tolerance = 2e-5;
enum { RANKS = 16 /* at most */ };

struct block {
    char name[64];
    uint64_t count;
    double *value;
};
enum { BLOCKS = 64 };
struct known {
    const char *path;
    char *text, header[512];
    struct block block[BLOCKS];
    int blocks;
    uint64_t rows, dim, examples, positives, negatives, steps;
    uint64_t targets; /* of a block */
    struct rule_options rule;
    struct loss_options loss;
    struct example_pool pool;
    double lr;
    int mean;
};

/* ---- reading ---- */

static int read_block(struct known *known, char **at) {
    struct block *block = &known->block[known->blocks];
    uint64_t d0 = 0, d1 = 1;
    int used = 0;
    char *end = strchr(*at, '\n');
    if (!end) return fail("'%s' ends in the middle of a block's name", known->path);
    *end = 0;
    int fields = sscanf(*at, "%63s %" SCNu64 " %" SCNu64 "%n", block->name, &d0, &d1, &used);
    if (fields < 2) return fail("'%s': '%s' is not a block's name and size", known->path, *at);
    block->count = d0 * (fields == 3 ? d1 : 1);
    block->value = mem_alloc(block->count, sizeof(double), "a block");
    if (!block->value) return -1;
    known->blocks++;
    *at = end + 1;
    for (uint64_t i = 0; i < block->count; i++) {
        char *next;
        block->value[i] = strtod(*at, &next);
        if (next == *at)
            return fail("'%s': block %s ends after %" PRIu64 " of %" PRIu64 " numbers", known->path, block->name, i,
                        block->count);
        *at = next;
    }
    while (**at == '\n' || **at == ' ') (*at)++;
    return 0;
}

static const struct block *find(const struct known *known, const char *name) {
    for (int i = 0; i < known->blocks; i++)
        if (!strcmp(known->block[i].name, name)) return &known->block[i];
    return NULL;
}

/* The number, or the n-th of a bracketed list, behind "key": in the header; `fallback` where it is not there. */
static double option(const struct known *known, const char *key, int n, double fallback) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(known->header, quoted);
    if (!at) return fallback;
    at += strlen(quoted);
    while (*at == ' ' || *at == '[') at++;
    for (; n > 0; n--) {
        at = strchr(at, ',');
        if (!at) return fallback;
        at++;
    }
    while (*at == ' ') at++;
    if (!strncmp(at, "true", 4)) return 1;
    if (!strncmp(at, "false", 5)) return 0;
    return strtod(at, NULL);
}

static int has(const struct known *known, const char *text) {
    return strstr(known->header, text) != NULL;
}

static void read_loss(struct known *known) {
    static const char *const kinds[] = {"\"loss\": \"logistic\"", "\"loss\": \"softmax\"", "\"loss\": \"bpr\"",
                                        "\"loss\": \"contrastive\"", "\"loss\": \"glove\""};
    int found = !has(known, "\"loss\": "); /* answers for optimizers name no loss: it is the logistic one */
    for (int kind = 0; kind < LOSS_KINDS; kind++)
        if (has(known, kinds[kind])) known->loss.kind = (enum loss_kind)kind, found = 1;
    if (!found) known->loss.kind = (enum loss_kind)LOSS_KINDS; /* no answer is right then */
    known->loss.score = has(known, "\"score\": \"cosine\"") ? SCORE_COSINE : SCORE_DOT;
    known->loss.temperature = (float)option(known, "temperature", 0, 1);
    known->loss.margin = (float)option(known, "margin", 0, 0);
    known->loss.negative_weight = (float)option(known, "negative_weight", 0, 1);
    known->loss.x_max = (float)option(known, "x_max", 0, 0);
    known->loss.x_power = (float)option(known, "x_power", 0, 0);
    known->loss.negative_power = (float)option(known, "negative_power", 0, 0);
    known->loss.weighted = find(known, "weights") != NULL;
    known->targets = (uint64_t)option(known, "targets", 0, 1);
    known->pool.on = option(known, "pool", 0, 0) != 0;
    known->pool.own = (float)option(known, "own", 0, 0);
    known->pool.whole = option(known, "whole", 0, 0) != 0;
    known->pool.sum = option(known, "sum", 0, 0) != 0;
}

static int read_rule(struct known *known) {
    static const struct {
        const char *name;
        int rule;
        double lr, eps, alpha, decay;
    } kinds[] = {{"SGD", RULE_SGD, 1e-3, 1e-8, 0, 0},
                 {"Adagrad", RULE_ADAGRAD, 1e-2, 1e-10, 0, 0},
                 {"Adadelta", RULE_ADADELTA, 1, 1e-6, 0, 0},
                 {"RMSprop", RULE_RMSPROP, 1e-2, 1e-8, 0.99, 0},
                 {"Adam", RULE_ADAM, 1e-3, 1e-8, 0, 0},
                 {"AdamW", RULE_ADAMW, 1e-3, 1e-8, 0, 1e-2},
                 {"SparseAdam", RULE_SPARSE_ADAM, 1e-3, 1e-8, 0, 0},
                 {"Adamax", RULE_ADAMAX, 2e-3, 1e-8, 0, 0},
                 {"ASGD", RULE_ASGD, 1e-2, 1e-8, 0.75, 0},
                 {"Rprop", RULE_RPROP, 1e-2, 1e-8, 0, 0},
                 {"RowwiseAdagrad", RULE_ROWWISE_ADAGRAD, 1e-2, 1e-8, 0, 0},
                 {"Ftrl", RULE_FTRL, 0.1, 0, 0, 0},
                 {"RowwiseAdam", RULE_ROWWISE_ADAM, 1e-3, 1e-8, 0, 0}};
    char name[32], mode[16] = "global", reduction[16] = "sum";
    if (sscanf(known->header, "# optimizer %31s", name) != 1)
        return fail("'%s' does not begin with '# optimizer NAME'", known->path);
    const char *at = strstr(known->header, "bias_correction ");
    if (at) sscanf(at, "bias_correction %15s", mode);
    at = strstr(known->header, "reduction ");
    if (at) sscanf(at, "reduction %15s", reduction);
    known->mean = !strcmp(reduction, "mean");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name)) continue;
        struct rule_options *o = &known->rule;
        o->rule = kinds[i].rule;
        o->lr = known->lr = option(known, "lr", 0, kinds[i].lr);
        o->eps = option(known, "eps", 0, kinds[i].eps);
        o->alpha = option(known, "alpha", 0, kinds[i].alpha);
        o->weight_decay = option(known, "weight_decay", 0, kinds[i].decay);
        o->momentum = option(known, "momentum", 0, 0);
        o->nesterov = option(known, "nesterov", 0, 0) != 0;
        o->lr_decay = option(known, "lr_decay", 0, 0);
        o->initial_accumulator = option(known, "initial_accumulator_value", 0, 0);
        o->rho = option(known, "rho", 0, 0.9);
        o->centered = option(known, "centered", 0, 0) != 0;
        o->beta1 = option(known, "betas", 0, 0.9);
        o->beta2 = option(known, "betas", 1, 0.999);
        o->amsgrad = option(known, "amsgrad", 0, 0) != 0;
        o->lambd = option(known, "lambd", 0, 1e-4);
        o->t0 = option(known, "t0", 0, 1e6);
        o->eta_minus = option(known, "etas", 0, 0.5);
        o->eta_plus = option(known, "etas", 1, 1.2);
        o->step_min = option(known, "step_sizes", 0, 1e-6);
        o->step_max = option(known, "step_sizes", 1, 50);
        o->l1 = option(known, "l1", 0, 0);
        o->l2 = option(known, "l2", 0, 0);
        o->beta = option(known, "beta", 0, 1);
        o->count_rows = !strcmp(mode, "row") && rule_counts(o);
        return 0;
    }
    return fail("'%s' names the optimizer '%s', which is not one of the thirteen", known->path, name);
}

static int read_known(struct known *known, const char *path) {
    known->path = path;
    known->text = file_read(path, NULL);
    if (!known->text) return -1;
    char *at = known->text;
    while (*at == '#') {
        char *end = strchr(at, '\n');
        if (!end) return fail("'%s' holds nothing but comments", path);
        if (!strncmp(at, "# optimizer", 11)) snprintf(known->header, sizeof known->header, "%.*s", (int)(end - at), at);
        at = end + 1;
    }
    while (*at && known->blocks < BLOCKS)
        if (read_block(known, &at)) return -1;
    const struct block *shape = find(known, "shape");
    if (!shape || shape->count != 6) return fail("'%s' has no block 'shape' of V D B P N STEPS", path);
    const double *s = shape->value;
    known->rows = (uint64_t)s[0], known->dim = (uint64_t)s[1], known->examples = (uint64_t)s[2];
    known->positives = (uint64_t)s[3], known->negatives = (uint64_t)s[4], known->steps = (uint64_t)s[5];
    const char *const needed[] = {"target_init", "context_init", "target_ids",   "context_ids",
                                  "losses",      "target_final", "context_final"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!find(known, needed[i])) return fail("'%s' has no block '%s'", path, needed[i]);
    read_loss(known);
    return read_rule(known);
}

static void release_known(struct known *known) {
    for (int i = 0; i < known->blocks; i++) free(known->block[i].value);
    free(known->text);
}

/* ---- running ---- */

struct run {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *table[2];
    struct ranks *ranks;
    struct record_layout layout, part; /* of all columns; of this rank's */
    struct columns own;
    enum place place;
    double worst;
    char worst_name[64];
};
static const char *const side_names[2] = {"target", "context"};

static int open_table(struct run *run, const struct known *known, int side, const char *directory) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, side_names[side]);
    struct table_spec spec = {.name = side_names[side],
                              .rows = known->rows,
                              .layout = run->part,
                              .weights = run->place,
                              .state = run->place,
                              .file_path = path};
    struct rule_slot slots[RULE_SLOTS];
    int count = rule_slots(&known->rule, slots);
    if (run->ops->table_open(run->backend, &spec, &run->table[side])) return -1;
    const struct block *first = find(known, side ? "context_init" : "target_init");
    char *packed = mem_zalloc(known->rows, run->layout.packed, "first rows");
    if (!packed) return -1;
    for (uint64_t row = 0; row < known->rows; row++) {
        float *at = (float *)(packed + row * run->layout.packed);
        for (uint64_t j = 0; j < known->dim; j++) at[j] = (float)first->value[row * known->dim + j];
        for (int i = 0; i < count; i++)
            for (uint32_t j = 0; j < record_slot(&run->layout, (uint32_t)i)->columns; j++)
                at[(uint64_t)(1 + i) * known->dim + j] = slots[i].initial;
    }
    char *own = mem_zalloc(known->rows, run->part.packed, "first columns");
    int result = -1;
    if (own) {
        record_split(&run->layout, &run->part, run->own, known->rows, packed, own);
        result = run->ops->table_write(run->backend, run->table[side], 0, known->rows, own);
    }
    free(packed);
    free(own);
    return result;
}

static void compare(struct run *run, const char *name, const struct block *want, const float *got, uint64_t stride,
                    uint64_t columns) {
    double largest = 0, worst = 0;
    for (uint64_t i = 0; i < want->count; i++)
        if (fabs(want->value[i]) > largest) largest = fabs(want->value[i]);
    for (uint64_t i = 0; i < want->count; i++) {
        double error = fabs((double)got[i / columns * stride + i % columns] - want->value[i]);
        if (!(error <= worst)) worst = error;
    }
    worst = largest > 0 ? worst / largest : worst;
    if (!(worst <= run->worst)) {
        run->worst = worst;
        snprintf(run->worst_name, sizeof run->worst_name, "%s", name);
    }
}

static struct record_layout part_of(const struct run *run, const struct known *known, unsigned rank, struct columns *columns) {
    *columns = record_columns(&run->layout, run->ranks->count, rank);
    return record_layout_make(&known->rule, columns->count);
}

/* All columns of a table on every rank, packed. */
static int read_table(struct run *run, const struct known *known, int side, char *packed) {
    struct ranks *ranks = run->ranks;
    struct columns columns;
    uint64_t sizes[RANKS], end = 0;
    char *own = mem_alloc(known->rows, run->part.packed, "last columns");
    char *all = mem_alloc(known->rows, run->layout.packed + RANKS * sizeof(uint32_t), "last columns"); /* a count each */
    int result = !own || !all || run->ops->table_read(run->backend, run->table[side], 0, known->rows, own) ? -1 : 0;
    if (ranks_agree(ranks, result)) goto out;
    for (unsigned r = 0; r < ranks->count; r++) sizes[r] = known->rows * part_of(run, known, r, &columns).packed;
    ranks_gather(ranks, own, all, sizes);
    for (unsigned r = 0; r < ranks->count; end += sizes[r++]) {
        struct record_layout part = part_of(run, known, r, &columns);
        record_join(&run->layout, &part, columns, known->rows, packed, all + end);
    }
    ranks_share(ranks, packed, known->rows * run->layout.packed);
out:
    free(own);
    free(all);
    return result;
}

static int compare_table(struct run *run, const struct known *known, int side) {
    struct rule_slot slots[RULE_SLOTS];
    int count = rule_slots(&known->rule, slots), result = -1;
    char *packed = mem_alloc(known->rows, run->layout.packed, "last rows"), name[64];
    uint64_t stride = run->layout.packed / sizeof(float);
    if (!packed || read_table(run, known, side, packed)) goto out;
    snprintf(name, sizeof name, "%s_final", side_names[side]);
    compare(run, name, find(known, name), (float *)packed, stride, known->dim);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s_state_%s", side_names[side], slots[i].name);
        const struct block *want = find(known, name);
        if (!want) {
            fail("'%s' has no block '%s'", known->path, name);
            goto out;
        }
        compare(run, name, want, (float *)packed + (uint64_t)(1 + i) * known->dim, stride,
                record_slot(&run->layout, (uint32_t)i)->columns);
    }
    snprintf(name, sizeof name, "%s_updates", side_names[side]);
    const struct block *updates = find(known, name);
    for (uint64_t row = 0; updates && run->layout.counted && row < known->rows; row++) {
        uint32_t counted;
        memcpy(&counted, packed + (row + 1) * run->layout.packed - sizeof counted, sizeof counted);
        if (counted != (uint32_t)updates->value[row]) {
            fail("'%s': %s row %" PRIu64 " was updated %u times, not %.0f", known->path, side_names[side], row, counted,
                 updates->value[row]);
            goto out;
        }
    }
    result = 0;
out:
    free(packed);
    return result;
}

static int run_steps(struct run *run, const struct known *known) {
    uint64_t each = known->positives + known->negatives, examples = known->examples, all = examples * known->targets;
    uint64_t *target_starts = mem_alloc(examples + 1, sizeof(uint64_t), "a batch"),
             *context_starts = mem_alloc(examples + 1, sizeof(uint64_t), "a batch");
    uint32_t *positives = mem_alloc(examples, sizeof(uint32_t), "a batch"),
             *targets = mem_alloc(all, sizeof(uint32_t), "a batch"),
             *contexts = mem_alloc(examples * each, sizeof(uint32_t), "a batch");
    float *losses = mem_alloc(known->steps, sizeof(float), "losses");
    float *weights = mem_zalloc(examples * each, sizeof(float), "a batch");
    const struct block *given = find(known, "weights");
    int result = -1;
    if (!weights || !target_starts || !context_starts || !positives || !targets || !contexts || !losses) goto out;
    for (uint64_t b = 0; b <= examples; b++) {
        target_starts[b] = b * known->targets;
        context_starts[b] = b * each;
        if (b < examples) positives[b] = (uint32_t)known->positives;
    }
    const double *target_ids = find(known, "target_ids")->value, *context_ids = find(known, "context_ids")->value;
    for (uint64_t s = 0; s < known->steps; s++) {
        for (uint64_t b = 0; b < all; b++) targets[b] = (uint32_t)target_ids[s * all + b];
        for (uint64_t i = 0; i < examples * each; i++) contexts[i] = (uint32_t)context_ids[s * examples * each + i];
        for (uint64_t i = 0; given && i < examples * known->positives; i++)
            weights[i / known->positives * each + i % known->positives] = (float)given->value[s * examples * known->positives + i];
        struct batch_view view = {.blocks = examples,
                                  .target_starts = target_starts,
                                  .context_starts = context_starts,
                                  .positives = positives,
                                  .target_ids = targets,
                                  .context_ids = contexts,
                                  .weights = given ? weights : NULL,
                                  .pool = known->pool};
        struct step_request request = {.target = run->table[0],
                                       .context = run->table[1],
                                       .rule = &known->rule,
                                       .loss = known->loss,
                                       .lr = known->lr,
                                       .global_step = s,
                                       .mean = known->mean};
        struct step_result got;
        unsigned stage = (unsigned)(s % 3);
        if (run->ops->set_batch(run->backend, stage, &view) || run->ops->step(run->backend, stage, &request) ||
            run->ops->result(run->backend, stage, &got))
            goto out;
        losses[s] = (float)(known->mean ? got.loss / (double)examples : got.loss);
    }
    compare(run, "losses", find(known, "losses"), losses, 1, 1);
    result = 0;
out:
    free(target_starts);
    free(context_starts);
    free(positives);
    free(targets);
    free(contexts);
    free(losses);
    free(weights);
    return result;
}

static int run_known(const char *path, const struct backend_ops *ops, enum place place, unsigned threads, struct ranks *ranks) {
    struct known known = {0};
    struct run run = {.ops = ops, .place = place, .ranks = ranks};
    char directory[256];
    int made = !fresh_directory(directory, sizeof directory, "reference"), result = -1;
    if (!made) fail("cannot make a directory for files in $TMPDIR or /tmp");
    if (!made || read_known(&known, path)) goto out;
    run.layout = record_layout_make(&known.rule, (uint32_t)known.dim);
    run.part = part_of(&run, &known, ranks->number, &run.own);
    struct backend_options options = {.threads = threads, .depth = 3, .gpu_budget = UINT64_MAX, .ranks = ranks};
    if (ops->open(&run.backend, &options) || open_table(&run, &known, 0, directory) ||
        open_table(&run, &known, 1, directory) || run_steps(&run, &known) || ops->drain(run.backend) ||
        compare_table(&run, &known, 0) || compare_table(&run, &known, 1))
        goto out;
    result = run.worst <= tolerance ? 0 : 1;
    if (ranks_first(ranks)) printf("%s  worst error %.2e in %s  %s\n", result ? "FAIL" : "ok  ", run.worst, run.worst_name, path);
out:
    if (result < 0) {
        printf("FAIL  %s: %s\n", path, report_sentence());
        report_clear();
    }
    for (int side = 0; side < 2 && run.backend; side++)
        if (run.table[side]) ops->table_close(run.backend, run.table[side]);
    if (run.backend) ops->close(run.backend);
    release_known(&known);
    if (made) directory_remove_tree(directory);
    return result;
}

int main(int argc, char **argv) {
    const char *backend = getenv("SPTX_BACKEND"), *place = getenv("SPTX_PLACE"), *threads = getenv("SPTX_THREADS");
    const struct backend_ops *ops = backend && !strcmp(backend, "cuda") ? &backend_cuda : &backend_cpu;
    enum place where = place && !strcmp(place, "gpu")    ? PLACE_GPU
                       : place && !strcmp(place, "file") ? PLACE_FILE
                                                         : PLACE_PINNED;
    struct ranks ranks;
    int failed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: test_reference FILE...\n");
        return 2;
    }
    if (ranks_open(&ranks, "test_reference") || ranks.count > RANKS) {
        fprintf(stderr, "%s\n", report_exit_code() ? report_sentence() : "too many ranks");
        return 1;
    }
    for (int i = 1; i < argc; i++) failed += run_known(argv[i], ops, where, threads ? (unsigned)atoi(threads) : 2, &ranks) != 0;
    if (ranks_first(&ranks)) printf("%d passed, %d failed\n", argc - 1 - failed, failed);
    ranks_close(&ranks);
    return failed != 0;
}
