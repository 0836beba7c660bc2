/* Tests of sizes at the limits: a stream of more than 2^31 tokens, rows up to 2^32 - 3, tables of more than 2^32 bytes and of
 * more than one pinned chunk. Most of the memory is never written, and most of the file is a hole. Tests for which the machine
 * has no space are skipped. */
#define _GNU_SOURCE
#include "common.h"

#include "base/memory.h"
#include "edge.h"

#include <sys/mman.h>

#define HIGHEST 4294967294u /* number of rows */

enum { WINDOW = 4, NEGATIVES = 6 };

/* ---- what examples must be, from the documentation alone ---- */

/* Checks the window around a position, if no word is dropped, widths are fixed, and negatives are uniform and not excluded. */
static int is_window_at(const struct example_source *s, uint64_t position, uint32_t epoch, const struct batch_view *v,
                        uint64_t block) {
    uint64_t sentence = 0, t = v->target_starts[block];
    const uint32_t *contexts = v->context_ids + v->context_starts[block];
    while (s->starts[sentence + 1] <= position) sentence++;
    uint64_t start = s->starts[sentence], end = s->starts[sentence + 1];
    uint64_t first = position - start < s->window ? start : position - s->window;
    uint64_t last = end - position <= s->window ? end - 1 : position + s->window;
    if (v->target_starts[block + 1] - t != last - first || contexts[0] != s->ids[position]) return 0;
    for (uint64_t at = first; at <= last; at++)
        if (at != position && v->target_ids[t++] != s->ids[at]) return 0;
    for (uint32_t slot = 0; slot < s->negatives; slot++) {
        struct draw4 drawn = draw_at(s->seed, DRAW_NEGATIVE, position, epoch, slot / 2);
        if (contexts[1 + slot] != (uint32_t)draw_below(draw_pair(drawn, slot % 2), s->rows)) return 0;
    }
    return v->context_starts[block + 1] - v->context_starts[block] == 1 + s->negatives;
}

int is_batch_of_windows(const struct example_source *s, const struct batch_request *r, const struct batch_view *v) {
    struct shuffle order = shuffle_make(s->tokens, draw_at(s->seed, DRAW_SHUFFLE, 0, r->epoch, 0));
    if (v->blocks != r->count) return 0;
    for (uint64_t i = 0; i < r->count; i++)
        if (!is_window_at(s, s->shuffle ? shuffle_at(&order, r->first + i) : r->first + i, r->epoch, v, i)) return 0;
    return 1;
}

/* ---- batches ---- */

static void check_windows(const struct backend_ops *ops, struct backend *backend, const struct example_source *s,
                          const char *name) {
    for (int i = 0; i < EDGE_PLACES; i++) {
        struct batch_request request = {3, EDGE_BATCHES[i], EDGE_BATCH, 0};
        struct batch_view view;
        int ok = !ops->make_batch(backend, 0, &request) && !ops->batch_view(backend, 0, &view);
        CHECK(ok && is_batch_of_windows(s, &request, &view), "%s: %s, from %llu", ops->name, name,
              (unsigned long long)request.first);
    }
}

/* Compares lists of both backends: by position, and by list number with an item drawn out of 2^31. */
static void compare_lists(struct backend *cpu, struct backend *gpu, const struct example_source *source) {
    for (int all = 0; all < 2; all++) {
        struct example_source s = *source;
        struct batch_view a, b;
        s.mode = EXAMPLE_LIST, s.positives = 3, s.targets_all = all, s.exclude = s.distinct = 1;
        s.noise = NOISE_LOG_UNIFORM, s.log2_rows = log2((double)s.rows);
        struct batch_request request = {1, all ? EDGE_TOKENS - EDGE_BATCH : 0, all ? EDGE_BATCH : EDGE_SENTENCES, 0};
        int ok = !backend_cpu.source(cpu, &s) && !backend_cpu.make_batch(cpu, 0, &request) &&
                 !backend_cpu.batch_view(cpu, 0, &a);
        CHECK(ok && a.blocks == request.count, "lists of 2^31 tokens on the CPU");
        if (!gpu || !ok) continue;
        ok = !backend_cuda.source(gpu, &s) && !backend_cuda.make_batch(gpu, 0, &request) &&
             !backend_cuda.batch_view(gpu, 0, &b);
        uint64_t targets = a.target_starts[a.blocks], contexts = a.context_starts[a.blocks];
        CHECK(ok && a.blocks == b.blocks && targets == b.target_starts[b.blocks] &&
                  contexts == b.context_starts[b.blocks] && !memcmp(a.target_ids, b.target_ids, targets * 4) &&
                  !memcmp(a.context_ids, b.context_ids, contexts * 4),
              "lists of 2^31 tokens on the GPU");
    }
}

static void check_stream(struct backend *cpu, struct backend *gpu) {
    uint32_t *ids =
        mmap(NULL, EDGE_TOKENS * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ids == MAP_FAILED) {
        SKIP("2^31 tokens: no address space");
        return;
    }
    for (int i = 0; i < EDGE_PLACES; i++)
        for (uint64_t j = 0; j < EDGE_NEAR; j++) ids[EDGE_IDS[i] + j] = edge_id(j, HIGHEST);
    struct example_source s = {
        .ids = ids, .starts = EDGE_STARTS, .tokens = EDGE_TOKENS, .sentences = EDGE_SENTENCES, .rows = HIGHEST};
    s.mode = EXAMPLE_WINDOW, s.window = WINDOW, s.negatives = NEGATIVES, s.noise = NOISE_UNIFORM, s.seed = 5;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        s.shuffle = shuffle;
        CHECK(!backend_cpu.source(cpu, &s), "source");
        check_windows(&backend_cpu, cpu, &s, "2^31 tokens");
        if (!gpu) continue;
        s.stream_on_host = shuffle;
        CHECK(!backend_cuda.source(gpu, &s), "source");
        check_windows(&backend_cuda, gpu, &s, shuffle ? "2^31 tokens over the link" : "2^31 tokens");
    }
    compare_lists(cpu, gpu, &s);
    s.tokens = EDGE_STARTS[1], s.sentences = 1; /* its memory is freed soon */
    if (gpu) CHECK(!backend_cuda.source(gpu, &s), "source");
    munmap(ids, EDGE_TOKENS * 4);
}

/* ---- tables ---- */

enum { FEW = 300, THIRD = FEW / 3, STEPS = 12 };

/* Spreads few rows over a large table, in order: a third at its beginning, a third near 2^22, a third at its end. */
static uint64_t far_row(uint64_t row, uint64_t rows) {
    if (row < THIRD) return row;
    return row < 2 * THIRD ? (UINT64_C(1) << 22) - THIRD / 2 + row - THIRD : rows - FEW + row;
}

static int copy_records(struct tables *t, uint64_t rows, char *records, int side, int write) {
    for (uint64_t first = 0; first < FEW; first += THIRD) {
        uint64_t at = rows == FEW ? first : far_row(first, rows);
        char *some = records + first * t->layout.packed;
        if (write ? t->ops->table_write(t->backend, t->side[side], at, THIRD, some)
                  : t->ops->table_read(t->backend, t->side[side], at, THIRD, some))
            return -1;
    }
    return 0;
}

/* Trains batches whose FEW rows are spread over a table of `rows` rows. Returns 0, or -1. */
static int train_rows(const struct backend_ops *ops, const struct example_source *s, const struct placing placing[2],
                      uint64_t rows, char *records[2]) {
    struct rule_options rule = options_of(RULE_ADAGRAD);
    struct backend *backend = open_with_threads(ops, 3, 16), *maker = open_or_stop(&backend_cpu, 1);
    struct tables t;
    rule.lr = 0.05;
    int wrong = backend_cpu.source(maker, s) || tables_open(&t, ops, backend, &rule, 4, rows, placing) ||
                copy_records(&t, rows, records[0], 0, 1) || copy_records(&t, rows, records[1], 1, 1);
    for (unsigned i = 0; i < STEPS && !wrong; i++) {
        struct batch_request request = {0, i * 50, 50, 0};
        struct step_request step = {.rule = &rule, .lr = rule.lr, .global_step = i};
        struct batch_view view;
        wrong = backend_cpu.make_batch(maker, 0, &request) || backend_cpu.batch_view(maker, 0, &view);
        uint32_t *ids[2] = {(uint32_t *)(uintptr_t)view.target_ids, (uint32_t *)(uintptr_t)view.context_ids}; /* in place */
        const uint64_t counts[2] = {wrong ? 0 : view.target_starts[view.blocks],
                                    wrong ? 0 : view.context_starts[view.blocks]};
        for (int side = 0; side < 2; side++)
            for (uint64_t k = 0; k < counts[side]; k++)
                if (rows != FEW) ids[side][k] = (uint32_t)far_row(ids[side][k], rows);
        wrong = wrong || ops->set_batch(backend, i % 3, &view) || one_step(&t, i % 3, &step);
    }
    for (int side = 0; side < 2 && !wrong; side++) wrong = copy_records(&t, rows, records[side], side, 0);
    tables_close(&t);
    ops->close(backend);
    backend_cpu.close(maker);
    return wrong ? -1 : 0;
}

/* Rows spread over a table of `rows` x 128 bytes must train like the rows of a small table. */
static void check_table(const struct backend_ops *ops, uint64_t rows, const struct placing placing[2],
                        const char *name) {
    struct rule_options rule = options_of(RULE_ADAGRAD);
    struct record_layout layout = layout_of(&rule, 4);
    struct corpus c;
    corpus_make(&c, FEW, 800, 9);
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    char *few[2], *many[2];
    for (int side = 0; side < 2; side++) {
        few[side] = first_records(&rule, &layout, FEW);
        many[side] = need(FEW * layout.packed);
        memcpy(many[side], few[side], FEW * layout.packed);
    }
    int ok = !train_rows(ops, &s, PLACES[0], FEW, few) && !train_rows(ops, &s, placing, rows, many);
    for (int side = 0; side < 2; side++) {
        CHECK(ok && !memcmp(few[side], many[side], FEW * layout.packed), "%s: %s, %llu rows: %s differ", ops->name,
              name, (unsigned long long)rows, side ? "contexts" : "targets");
        free(few[side]);
        free(many[side]);
    }
    corpus_free(&c);
}

static void check_tables(struct backend *gpu) {
    static const struct placing pinned[2] = {{"pinned", PLACE_PINNED, PLACE_PINNED, 0, 0},
                                             {"pinned", PLACE_PINNED, PLACE_PINNED, 9, 0}};
    const uint64_t past_4_gib = (UINT64_C(1) << 25) + 2, past_64_gib = (UINT64_C(1) << 29) + 2;
    struct backend_info info = {.gpu_free = 0};
    test_far_rows();
    if (!gpu || backend_cuda.info(gpu, &info)) return;
    if (mem_available() > 10 * GIB)
        check_table(&backend_cuda, past_4_gib, pinned, "4 GiB pinned");
    else
        SKIP("4 GiB pinned twice: %.1f GiB are free", mem_available() / (double)GIB);
    if (info.gpu_free > 10 * GIB)
        check_table(&backend_cuda, past_4_gib, PLACES[0], "4 GiB of the GPU");
    else
        SKIP("4 GiB of the GPU twice: %.1f GiB are free", info.gpu_free / (double)GIB);
    if (mem_available() > 70 * GIB && info.gpu_free > 66 * GIB)
        check_table(&backend_cuda, past_64_gib, PLACES[1], "64 GiB pinned");
    else
        SKIP("64 GiB pinned and of the GPU: %.1f and %.1f GiB are free", mem_available() / (double)GIB,
             info.gpu_free / (double)GIB);
}

/* Tests rows past 2^22, which the CPU sorts in an additional pass, and offsets past 2^32 bytes. */
void test_far_rows(void) {
    if (mem_total() > 10 * GIB)
        check_table(&backend_cpu, (UINT64_C(1) << 25) + 2, PLACES[0], "4 GiB");
    else
        SKIP("tables of 4 GiB: the machine has %.1f GiB", mem_total() / (double)GIB);
}

void test_edge(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = NULL;
    char why[256];
    if (backend_cuda.present(why, sizeof why))
        gpu = open_or_stop(&backend_cuda, 1);
    else
        SKIP("%s", why);
    check_stream(cpu, gpu);
    backend_cpu.close(cpu);
    check_tables(gpu);
    if (gpu) backend_cuda.close(gpu);
    test_edge_session(&backend_cpu);
    if (gpu) test_edge_session(&backend_cuda);
}
