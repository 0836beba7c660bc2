/* Compares tables that begin after row 0 with whole tables, at random. Rows that both have must get the same bytes, by every
 * kind of call; all other rows must be refused and never touched. Runs in batches are in random.c. */
#include "choice.h"

enum { TABLES = 40, LOCK_FREE = 12, OPERATIONS = 8, MOST_IDS = 400 };

static uint64_t below(uint64_t end) {
    return end ? random_bits() % end : 0;
}

/* ---- rows by id, and whole ones ---- */

/* Two tables: side 0 is whole, side 1 begins at row `first`. */
struct pair {
    struct tables tables;
    const struct rule_case *rule;
    uint64_t first, updates;
    uint32_t dim;
};

static struct placing random_placing(uint64_t rows) {
    static const enum place places[] = {PLACE_PINNED, PLACE_PINNED, PLACE_GPU, PLACE_FILE};
    struct placing placing = {"random", places[below(4)], places[below(4)], 0, 0};
    if (below(3)) placing.state = placing.weights;
    if (below(2)) placing.hot_rows = below(rows + 1);
    return placing;
}

static int by_id(struct pair *p, int side, const uint32_t *ids, uint64_t count, float *values, uint64_t kind) {
    const struct backend_ops *ops = p->tables.ops;
    uint32_t *taken;
    if (ops->rows_ids(p->tables.backend, count, &taken)) return -1;
    memcpy(taken, ids, count * sizeof *ids);
    struct rows_request request = {.table = p->tables.side[side],
                                   .ids = taken,
                                   .count = count,
                                   .id_bits = 32,
                                   .values = values,
                                   .rule = &p->rule->options,
                                   .lr = 0.05,
                                   .global_step = p->updates};
    int result = kind == 0   ? ops->rows_fetch(p->tables.backend, &request)
                 : kind == 1 ? ops->rows_update(p->tables.backend, &request)
                             : ops->rows_store(p->tables.backend, &request);
    return result || ops->rows_wait(p->tables.backend) ? -1 : 0;
}

/* Makes the same call, with the same ids and values, on both tables; fetched rows must be equal. */
static int same_by_id(struct pair *p) {
    static uint32_t ids[MOST_IDS];
    uint64_t count = 1 + below(MOST_IDS), kind = below(3), bytes = count * p->dim * sizeof(float);
    float *values[2] = {need(bytes), need(bytes)};
    for (uint64_t i = 0; i < count; i++) ids[i] = (uint32_t)(p->first + below(p->tables.rows - p->first));
    for (uint64_t i = 0; i < count * p->dim; i++) values[0][i] = random_float();
    memcpy(values[1], values[0], bytes);
    int ok = !by_id(p, 0, ids, count, values[0], kind) && !by_id(p, 1, ids, count, values[1], kind);
    ok = ok && !memcmp(values[0], values[1], bytes);
    p->updates += kind == 1;
    free(values[0]);
    free(values[1]);
    return ok;
}

/* Reads the same rows from both tables, which must be equal, and writes each result to the other table. */
static int same_whole_rows(struct pair *p) {
    struct tables *t = &p->tables;
    uint64_t first = p->first + below(t->rows - p->first), count = 1 + below(t->rows - first), bytes = count * t->layout.packed;
    char *rows[2] = {need(bytes), need(bytes)};
    int ok = 1;
    for (int side = 0; side < 2; side++) ok = ok && !t->ops->table_read(t->backend, t->side[side], first, count, rows[side]);
    ok = ok && !memcmp(rows[0], rows[1], bytes);
    for (int side = 0; side < 2; side++) ok = ok && !t->ops->table_write(t->backend, t->side[side], first, count, rows[!side]);
    free(rows[0]);
    free(rows[1]);
    return ok;
}

/* Reads listed rows from both tables, by table_move() and by table_read(), and writes them to the tables in the places of other listed rows. */
static int same_listed_rows(struct pair *p) {
    struct tables *t = &p->tables;
    uint64_t all = t->rows - p->first, step = 1 + below(5), count = all / step, packed = t->layout.packed;
    char *rows[2] = {need((count + 1) * packed), need((count + 1) * packed)};
    uint32_t *from = need((count + 1) * sizeof *from), *to = need((count + 1) * sizeof *to);
    int ok = 1;
    for (uint64_t i = 0; i < count; i++) {
        from[i] = (uint32_t)(t->rows - 1 - i * step);
        to[i] = (uint32_t)(p->first + (i + all / 3) % count);
    }
    for (int side = 0; side < 2; side++) ok = ok && !t->ops->table_move(t->backend, t->side[side], from, count, rows[side], 0);
    ok = ok && !memcmp(rows[0], rows[1], count * packed);
    for (uint64_t i = 0; i < count && ok; i++)
        ok = !t->ops->table_read(t->backend, t->side[1], from[i], 1, rows[1] + count * packed) &&
             !memcmp(rows[1] + count * packed, rows[0] + i * packed, packed);
    for (int side = 0; side < 2; side++) ok = ok && !t->ops->table_move(t->backend, t->side[side], to, count, rows[side], 1);
    free(rows[0]);
    free(rows[1]);
    free(from);
    free(to);
    return ok;
}

/* Compares the rows in host memory, through views. */
static int same_view(const struct pair *p, const char *records) {
    const struct tables *t = &p->tables;
    const struct record_field *weights = &t->layout.field[RECORD_WEIGHTS];
    struct rows_view view = t->ops->rows_view(t->backend, t->side[1], weights);
    int ok = view.first >= p->first;
    for (uint64_t row = view.first; view.data && ok && row < t->rows; row++)
        ok = !memcmp((const char *)view.data + (row - view.first) * view.stride, records + row * t->layout.packed + weights->packed,
                     p->dim * sizeof(float));
    return ok;
}

static int refused(const struct pair *p) {
    const struct tables *t = &p->tables;
    char *rows = need(2 * t->layout.packed);
    const uint32_t absent = (uint32_t)p->first - 1;
    int ok = t->ops->table_read(t->backend, t->side[1], p->first - 1, 2, rows) == -1 && strstr(report_sentence(), "not all in");
    report_clear();
    ok = ok && t->ops->table_write(t->backend, t->side[1], p->first - 1, 2, rows) == -1;
    report_clear();
    ok = ok && t->ops->table_move(t->backend, t->side[1], &absent, 1, rows, 1) == -1;
    report_clear();
    free(rows);
    return ok;
}

static int same_rows(struct pair *p, const char *records) {
    struct tables *t = &p->tables;
    const char *const both[2] = {records, records};
    uint64_t absent = p->first * t->layout.packed;
    int ok = !tables_fill(t, both);
    for (int i = 0; i < OPERATIONS && ok; i++) ok = below(2) ? same_by_id(p) : below(2) ? same_whole_rows(p) : same_listed_rows(p);
    char *whole = tables_records(t, 0, "whole"), *cut = tables_records(t, 1, "cut");
    ok = ok && !memcmp(whole, records, absent) && !memcmp(whole + absent, cut + absent, t->rows * t->layout.packed - absent);
    ok = ok && same_view(p, cut) && refused(p);
    free(whole);
    free(cut);
    return ok;
}

static void check_tables(const struct backend_ops *ops, uint64_t seed) {
    static const uint32_t dims[] = {1, 3, 31, 64, 129, 516};
    struct rule_case rules[32];
    random_seed(seed);
    struct pair p = {.rule = &rules[below((uint64_t)rule_cases(rules))], .dim = dims[below(6)]};
    uint64_t rows = 2 + below(below(2) ? 40 : 3000);
    struct placing placing[2] = {random_placing(rows), random_placing(rows)};
    p.first = placing[1].first_row = 1 + below(rows - 1);
    struct backend *backend = open_with_threads(ops, 1, 1 + (unsigned)below(8));
    struct record_layout layout = layout_of(&p.rule->options, p.dim);
    char *records = first_records(&p.rule->options, &layout, rows);
    int ok = !tables_open(&p.tables, ops, backend, &p.rule->options, p.dim, rows, placing) && same_rows(&p, records);
    CHECK(ok, "seed %llu: %s, dim %u, rows %llu to %llu, places %d and %d, hot %llu", (unsigned long long)seed, p.rule->name, p.dim,
          (unsigned long long)p.first, (unsigned long long)rows, (int)placing[1].weights, (int)placing[1].state,
          (unsigned long long)placing[1].hot_rows);
    tables_close(&p.tables);
    ops->close(backend);
    free(records);
}

/* ---- lock-free training, one example after the other ---- */

/* Returns a choice that lock-free training allows: sgd or adagrad, the plain loss, no frozen rows, no rows in files. */
static struct choice lock_free_choice(uint64_t seed) {
    struct choice c = choice_make(seed);
    c.rule = (struct rule_case){"lock-free", options_of(seed % 2 ? RULE_SGD : RULE_ADAGRAD)};
    c.rule.options.lr = rate_of(&c.rule.options, 1);
    if (!c.first_row) c.first_row = c.rows / 3 + 1;
    if (c.source.pool.on && c.source.mode == EXAMPLE_WINDOW) c.source.per_pair = 0;
    choice_without_items(&c);
    for (int side = 0; side < 2; side++) {
        struct placing *p = &c.machine.placing[side];
        if (p->weights == PLACE_FILE) p->weights = PLACE_PINNED;
        if (p->state == PLACE_FILE) p->state = PLACE_PINNED;
    }
    return c;
}

static int train_lock_free(const struct choice *c, const struct example_source *s, const struct backend_ops *ops,
                           uint64_t first_row, char *const first[2], char *trained[2]) {
    struct placing placing[2] = {c->machine.placing[0], c->machine.placing[1]};
    struct backend *backend = open_with_threads(ops, 1, 2);
    struct tables t;
    struct hogwild_result result;
    placing[0].first_row = first_row;
    int wrong = tables_open(&t, ops, backend, &c->rule.options, c->dim, c->rows, placing) ||
                tables_fill(&t, (const char *const *)first) || ops->source(backend, s);
    struct hogwild_request request = {.target = t.side[0],
                                      .context = t.side[1],
                                      .rule = &c->rule.options,
                                      .count = example_count(s) < 2000 ? example_count(s) : 2000,
                                      .lr_first = c->rule.options.lr,
                                      .lr_last = c->rule.options.lr / 2,
                                      .workers = 1};
    wrong = wrong || ops->hogwild(backend, &request, &result);
    for (int side = 0; side < 2; side++) {
        trained[side] = need(c->rows * t.layout.packed);
        memcpy(trained[side], first[side], c->rows * t.layout.packed); /* rows that the tables lack do not change */
        wrong = wrong || tables_read(&t, side, trained[side]);
    }
    tables_close(&t);
    ops->close(backend);
    return wrong ? -1 : 0;
}

static void check_lock_free(const struct backend_ops *ops, uint64_t seed) {
    struct choice c = lock_free_choice(seed);
    struct corpus corpus;
    char text[1200], *whole[2], *cut[2];
    choice_describe(&c, text, sizeof text);
    choice_corpus(&c, &corpus);
    struct example_source s = choice_source(&c, &corpus);
    s.longest = corpus_longest(&corpus);
    struct record_layout layout = layout_of(&c.rule.options, c.dim);
    char *first[2] = {first_records(&c.rule.options, &layout, c.rows), first_records(&c.rule.options, &layout, c.rows)};
    int ok = !train_lock_free(&c, &s, ops, 0, first, whole) && !train_lock_free(&c, &s, ops, c.first_row, first, cut);
    for (int side = 0; side < 2; side++) ok = ok && !memcmp(whole[side], cut[side], c.rows * layout.packed);
    ok = ok && memcmp(whole[0], first[0], c.rows * layout.packed);
    CHECK(ok, "lock-free, %s", text);
    for (int side = 0; side < 2; side++) {
        free(first[side]);
        free(whole[side]);
        free(cut[side]);
    }
    corpus_free(&corpus);
}

void test_first_rows(const struct backend_ops *tested) {
    for (uint64_t seed = 1; seed <= TABLES; seed++) check_tables(tested, seed);
    for (uint64_t seed = 1; seed <= LOCK_FREE; seed++) check_lock_free(tested, seed);
}
