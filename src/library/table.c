#include "handles.h"

#include "base/memory.h"
#include "base/text.h"
#include "corpus/words.h"
#include "kernels/backend.h"
#include "rows/rules.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SPTX_COLUMNS_MOST == (int)COLUMNS_MOST, "the header tells of the kernels' limit");
_Static_assert(SPTX_ROWS_MOST == WORDS_MOST, "the header tells of the limit of ids");

/* ---- options ---- */

void sptx_table_defaults(struct sptx_table_options *options, uint64_t size) {
    struct sptx_table_options all = {.weights = SPTX_PINNED,
                                     .state = SPTX_PINNED,
                                     .seed = 1,
                                     .optimizer = "sgd",
                                     .init = "word2vec",
                                     .lr = NAN,
                                     .clip = NAN,
#define NUMBER(name, fallback, lowest, highest, rules, help)  .name = NAN,
#define BY_RULE(name, fallback, lowest, highest, rules, help) .name = NAN,
#define FLAG(name, rules, help)
#include "kernels/optimizers.def"
                                     .count_rows = 1,
                                     .dtype = SPTX_FLOAT32,
                                     .state_dtype = SPTX_AS_WEIGHTS};
    if (!options || size < sizeof size) return;
    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

/* The optimizers of rules.h come first; "none", which has no rule, is last. */
const char *sptx_optimizer(uint32_t index) {
    return index < RULE_COUNT ? rules_name((int)index) : index == RULE_COUNT ? "none" : NULL;
}

const char *sptx_optimizer_option(const char *optimizer, uint32_t index) {
    int rule = optimizer ? rules_named(optimizer) : -1;
    return rule < 0 ? NULL : rules_option(rule, index);
}

static void take_table(double *option, double given) {
    if (!isnan(given)) *option = given;
}

static int read_rule(struct rule_options *rule, int *fixed, const struct sptx_table_options *o) {
    *fixed = !o->optimizer || !strcmp(o->optimizer, "none");
    int which = *fixed ? RULE_SGD : rules_named(o->optimizer);
    if (which < 0)
#define NAME(name, enumerator) #name ", "
        return fail_usage("optimizer '%s' is none of " RULES(NAME) "none", o->optimizer);
#undef NAME
    *rule = rules_defaults(which);
    take_table(&rule->lr, o->lr);
    take_table(&rule->clip, o->clip);
#define NUMBER(name, fallback, lowest, highest, rules, help)  take_table(&rule->name, o->name);
#define BY_RULE(name, fallback, lowest, highest, rules, help) take_table(&rule->name, o->name);
#define FLAG(name, rules, help)                               rule->name = o->name != 0;
#include "kernels/optimizers.def"
    if (*fixed) rule->momentum = 0;
    rule->count_rows = o->count_rows && rule_counts(rule);
    return rules_check(rule);
}

static int read_precision(struct rule_options *rule, const struct sptx_table_options *o) {
    if (o->dtype > SPTX_BFLOAT16 || o->state_dtype > SPTX_AS_WEIGHTS)
        return fail_usage("dtypes are 0 (float32) and 1 (bfloat16), and 2 for a state like the weights, not %u and %u",
                          o->dtype, o->state_dtype);
    rule->precision = o->dtype == SPTX_BFLOAT16 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    rule->state_precision = o->state_dtype == SPTX_AS_WEIGHTS ? rule->precision
                            : o->state_dtype == SPTX_BFLOAT16 ? PRECISION_BFLOAT16
                                                              : PRECISION_FLOAT32;
    return 0;
}

static int read_options(struct table_options *out, int *fixed, const struct sptx_table_options *o) {
    if (!o->rows || o->rows > WORDS_MOST) return fail_usage("rows = %" PRIu64 " is not in 1..%u", o->rows, WORDS_MOST);
    if (!o->dim || o->dim > COLUMNS_MOST) return fail_usage("dim = %u is not in 1..%d", o->dim, COLUMNS_MOST);
    if (o->gpu_rows && (o->hot_rows || o->weights == SPTX_FILE || o->state == SPTX_FILE))
        return fail_usage("gpu_rows finds rows of a pinned table by their use; it goes neither with hot_rows nor with the place 'file'");
    if (o->weights > SPTX_FILE || o->state > SPTX_FILE)
        return fail_usage("places are 0 (pinned), 1 (gpu) and 2 (file), not %u and %u", o->weights, o->state);
    *out = (struct table_options){.rows = o->rows,
                                  .hot_rows = o->hot_rows,
                                  .gpu_cache = o->gpu_rows,
                                  .dim = o->dim,
                                  .weights = (enum place)o->weights,
                                  .state = (enum place)o->state,
                                  .seed = o->seed,
                                  .directory = o->directory ? o->directory : "."};
    if (read_rule(&out->rule, fixed, o) || read_precision(&out->rule, o)) return -1;
    if (!o->init || table_init_values(&out->init, o->init, TABLE_TARGET, o->dim))
        return fail_usage("init '%s' is none of: zeros; uniform LO HI; normal MEAN SD; word2vec; notebook M",
                          o->init ? o->init : "NULL");
    if (!(table_init_reach(&out->init) <= FLT_MAX))
        return fail_usage("init '%s' draws numbers up to %.3g, and float32 ends at %.3g", o->init, table_init_reach(&out->init),
                          (double)FLT_MAX);
    return 0;
}

/* ---- opening ---- */

/* Fails if the table is larger than the free memory: the system would allocate it all the same, and later kill the process when
 * it writes to the pages. A table in a file needs no memory; for GPU and pinned memory the backend checks. */
static int check_host_memory(const struct sptx_context *context, const struct table_options *o) {
    char free_text[32], row_text[32];
    struct table_spec spec = {
        .rows = o->rows, .layout = record_layout_make(&o->rule, o->dim), .weights = o->weights, .state = o->state};
    struct table_shape shape = table_shape(&spec, 0);
    uint64_t row = 0, left = mem_available();
    if (context->ops->has_gpu || !left) return 0;
    for (unsigned i = 0; i < shape.stores; i++) row += shape.store[i].place == PLACE_FILE ? 0 : shape.store[i].stride;
    if (!row || o->rows <= left / row) return 0;
    return fail("not enough memory for %" PRIu64 " rows of %s: %s are free; the place 'file' needs none", o->rows,
                text_of_bytes(row_text, row), text_of_bytes(free_text, left));
}

static int open_table(struct sptx_table *table, const struct sptx_table_options *given) {
    struct sptx_context *context = table->context;
    struct sptx_table_options options;
    struct table_options how;
    sptx_table_defaults(&options, sizeof options);
    if (!context->backend) return fail_usage("the context is not open");
    if (take_options(&options, sizeof options, given) || read_options(&how, &table->fixed, &options) ||
        check_host_memory(context, &how) || table_init(&table->table, TABLE_TARGET, &how, context->ops, context->backend))
        return -1;
    table->rule = table->table.rule;
    table->check_finite = options.check_finite != 0;
    if (!table_fill(&table->table, context->pool)) return 0;
    table_release(&table->table);
    return -1;
}

enum sptx_status sptx_table_open(struct sptx_context *context, const struct sptx_table_options *options, struct sptx_table **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a table is opened into a pointer; it is NULL"));
    *out = NULL;
    struct sptx_table *table = mem_zalloc(1, sizeof *table, "a table");
    if (!table) return leave(context, -1);
    table->context = context;
    if (open_table(table, options)) {
        free(table);
        return leave(context, -1);
    }
    table->next = context->tables;
    context->tables = table;
    *out = table;
    return leave(context, 0);
}

void sptx_table_close(struct sptx_table *table) {
    if (!table) return;
    struct sptx_context *context = table->context;
    struct sptx_table **at = &context->tables;
    while (*at != table) at = &(*at)->next;
    *at = table->next;
    enter(context);
    saving_forget(table);
    table_release(&table->table);
    leave(context, 0);
    free(table);
}

/* ---- properties of a table ---- */

uint64_t sptx_table_rows(const struct sptx_table *table) {
    return table ? table->table.spec.rows : 0;
}

uint32_t sptx_table_dim(const struct sptx_table *table) {
    return table ? table->table.spec.layout.dim : 0;
}

double sptx_table_lr(const struct sptx_table *table) {
    return table ? table->rule.lr : NAN;
}

enum sptx_status sptx_table_set_lr(struct sptx_table *table, double lr) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (!(lr >= 0 && lr <= 1e6)) return leave(table->context, fail_usage("lr = %g is not between 0 and 1e6", lr));
    table->rule.lr = lr;
    return leave(table->context, 0);
}

uint64_t sptx_table_steps(const struct sptx_table *table) {
    return table ? table->steps : 0;
}

enum sptx_status sptx_table_set_steps(struct sptx_table *table, uint64_t steps) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (steps > INT64_MAX) return leave(table->context, fail_usage("steps = %" PRIu64 " is more than %" PRId64, steps, INT64_MAX));
    table->steps = steps;
    return leave(table->context, 0);
}

const char *sptx_table_field(const struct sptx_table *table, uint32_t index) {
    if (!table) return NULL;
    const struct record_layout *layout = &table->table.spec.layout;
    return index <= layout->slots ? layout->field[index].name : NULL;
}

/* Returns a field of numbers with this name. The counts of rows' updates are not in the library's interface. */
static const struct record_field *find_field(const struct sptx_table *table, const char *name) {
    const struct record_field *field = name ? record_field(&table->table.spec.layout, name) : NULL;
    if (field && value_is_number(field->type)) return field;
    fail_usage("the table has no field '%s'; its first is 'weights', then come its rule's slots", name ? name : "NULL");
    return NULL;
}

int check_view(const struct sptx_view *out) {
    const uint64_t older = offsetof(struct sptx_view, dtype);
    if (!out) return fail_usage("the view is NULL");
    return out->size < older ? fail_usage("a view's size is %" PRIu64 ", wanted %zu", out->size, sizeof *out) : 0;
}

int give_view(struct sptx_view *out, const struct sptx_view *view) {
    uint64_t size = out->size < sizeof *view ? offsetof(struct sptx_view, dtype) : sizeof *view;
    if (size < sizeof *view && view->dtype != SPTX_FLOAT32)
        return fail_usage("these rows are bfloat16, which a view of %" PRIu64 " bytes cannot say: it wants %zu",
                          out->size, sizeof *view);
    memcpy(out, view, size);
    out->size = size;
    return 0;
}

enum sptx_status sptx_table_view(struct sptx_table *table, const char *name, struct sptx_view *out) {
    if (!table) return SPTX_USAGE;
    struct sptx_context *context = table->context;
    const struct table_spec *spec = &table->table.spec;
    enter(context);
    const struct record_field *field = check_view(out) ? NULL : find_field(table, name);
    if (!field || context->ops->rows_wait(context->backend)) return leave(context, -1);
    struct rows_view view = context->ops->rows_view(context->backend, table->table.store, field);
    const struct sptx_view all = {.data = view.data,
                                  .first = view.data ? view.first : spec->rows,
                                  .rows = view.data ? spec->rows - view.first : 0,
                                  .stride = view.stride,
                                  .dim = field->columns,
                                  .cuda = (uint32_t)view.gpu_reads,
                                  .dtype = field->type == VALUE_BFLOAT16 ? SPTX_BFLOAT16 : SPTX_FLOAT32};
    return leave(context, give_view(out, &all));
}

enum sptx_status sptx_table_cached(struct sptx_table *table, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    if (!table) return SPTX_USAGE;
    struct sptx_context *context = table->context;
    enter(context);
    if ((capacity && !ids) || !count) return leave(context, fail_usage("ids or count is NULL"));
    if (context->ops->rows_wait(context->backend)) return leave(context, -1);
    return leave(context, context->ops->rows_cached(context->backend, table->table.store, ids, capacity, count));
}

/* ---- disk ---- */

enum sptx_status sptx_table_load(struct sptx_table *table, const char *path) {
    if (!table) return SPTX_USAGE;
    struct sptx_context *context = table->context;
    enter(context);
    if (!path || !*path) return leave(context, fail_usage("a table is loaded from a path; none was given"));
    saving_wait(table);
    if (context->ops->rows_wait(context->backend)) return leave(context, -1);
    return leave(context, table_load(&table->table, path));
}
