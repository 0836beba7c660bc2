#include "handles.h"

#include "base/checks.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "corpus/words.h"
#include "kernels/backend.h"
#include "rows/rules.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    static const int precisions[] = {[SPTX_FLOAT32] = PRECISION_FLOAT32, [SPTX_BFLOAT16] = PRECISION_BFLOAT16, [SPTX_INT8] = PRECISION_INT8,
                                     [SPTX_FLOAT8] = PRECISION_FLOAT8};
    if (o->dtype > SPTX_FLOAT8 || o->dtype == SPTX_AS_WEIGHTS)
        return fail_usage("dtype is 0 (float32), 1 (bfloat16), 3 (int8) or 4 (float8), not %u", o->dtype);
    if (o->state_dtype > SPTX_AS_WEIGHTS)
        return fail_usage("state_dtype is 0 (float32), 1 (bfloat16) or 2 (as the weights; float32 beside int8 and float8), not %u", o->state_dtype);
    rule->precision = precisions[o->dtype];
    rule->state_precision = o->state_dtype != SPTX_AS_WEIGHTS ? precisions[o->state_dtype]
                            : o->dtype == SPTX_BFLOAT16       ? PRECISION_BFLOAT16
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

/* ---- saving, while the caller waits or goes on: files that this process is writing, of which no two are one file ---- */

/* A file that is being written. Its directory is known by device and inode, since two paths may lead to one directory. */
struct written {
    dev_t device;
    ino_t directory;
    char *name; /* owned; NULL: the path's directory does not exist, and writing will fail */
    pid_t process; /* the process that writes it: a child made by fork() inherits its parent's list */
    struct written *next;
};

static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static struct written *all_written;

static int find_file(struct written *file, const char *path) {
    char *resolved = path_resolve(path), *directory = resolved ? path_parent(resolved) : NULL;
    const char *slash = directory ? strrchr(resolved, '/') : NULL, *name = slash ? slash + 1 : resolved;
    struct stat about;
    int result = directory ? 0 : -1;
    *file = (struct written){.process = getpid()};
    if (!result && !stat(directory, &about)) {
        file->device = about.st_dev;
        file->directory = about.st_ino;
        file->name = mem_text(name, strlen(name), "a path");
        result = file->name ? 0 : -1;
    }
    free(resolved);
    free(directory);
    return result;
}

/* Claims the file of a path for one save. Returns 0, or -1 after fail(). */
static int claim_file(struct written *file, const char *path) {
    if (find_file(file, path)) return -1;
    if (!file->name) return 0;
    pthread_mutex_lock(&written_lock);
    const struct written *other = all_written;
    while (other && (other->process != file->process || other->device != file->device || other->directory != file->directory ||
                     strcmp(other->name, file->name)))
        other = other->next;
    if (!other) {
        file->next = all_written;
        all_written = file;
    }
    pthread_mutex_unlock(&written_lock);
    if (!other) return 0;
    free(file->name);
    file->name = NULL;
    return fail("'%s' is being written by an earlier save, which is not done; wait for it, or save to another path", path);
}

static void release_file(struct written *file) {
    if (!file->name) return;
    pthread_mutex_lock(&written_lock);
    struct written **at = &all_written;
    while (*at != file) at = &(*at)->next;
    *at = file->next;
    pthread_mutex_unlock(&written_lock);
    free(file->name);
    file->name = NULL;
}

/* ---- a save ---- */

struct sptx_saving {
    struct behind behind;
    struct table snapshot; /* the table, whose rows are read as they were when the save began */
    char *path;
    struct written file;
    int owners; /* 1 for the caller and 1 for the table, until each releases the save. Atomic */
    int told;   /* 1: the caller has asked how the save ended. Atomic */
};

static void disown(struct sptx_saving *saving) {
    if (__atomic_sub_fetch(&saving->owners, 1, __ATOMIC_ACQ_REL)) return;
    behind_close(&saving->behind);
    free(saving->path);
    free(saving);
}

static int save_snapshot(void *user) {
    struct sptx_saving *saving = user;
    uint64_t checksum;
    int result = table_save(&saving->snapshot, saving->path, &checksum);
    saving->snapshot.ops->snapshot_stop(saving->snapshot.store);
    release_file(&saving->file);
    return result;
}

/* For a save that goes on while the table is used. saving_wait() waits until the save is done, and frees its snapshot;
 * saving_forget() waits, and forgets how the save ended. */
static void saving_wait(struct sptx_table *table) {
    if (!table->saving) return;
    behind_wait(&table->saving->behind);
    table->table.ops->snapshot_end(table->table.backend, table->table.store);
}

static void saving_forget(struct sptx_table *table) {
    saving_wait(table);
    if (table->saving) disown(table->saving);
    table->saving = NULL;
}

/* Waits for the table's earlier save. Fails with its sentence if that save failed and the caller has not asked how it ended. */
static int end_earlier(struct sptx_table *table) {
    struct sptx_saving *saving = table->saving;
    if (!saving) return 0;
    saving_wait(table);
    int result = __atomic_exchange_n(&saving->told, 1, __ATOMIC_ACQ_REL) ? 0 : behind_end(&saving->behind);
    saving_forget(table);
    return result;
}

static int check_path(const char *path) {
    return path && *path ? 0 : fail_usage("a table is saved to a path; none was given");
}

enum sptx_status sptx_table_save(struct sptx_table *table, const char *path) {
    struct written file;
    uint64_t checksum;
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (check_path(path) || claim_file(&file, path)) return leave(table->context, -1);
    int result = end_earlier(table) || table->context->ops->rows_wait(table->context->backend) ||
                         table_save(&table->table, path, &checksum)
                     ? -1 : 0;
    release_file(&file);
    return leave(table->context, result);
}

/* Begins a save whose file is claimed. */
static int begin_saving(struct sptx_table *table, struct sptx_saving *saving, uint64_t most) {
    struct table *own = &table->table;
    if (end_earlier(table) || own->ops->rows_wait(own->backend) || table_snapshot(own, most, &saving->snapshot)) return -1;
    saving->owners = 2;
    if (!behind_begin(&saving->behind, save_snapshot, saving)) return 0;
    own->ops->snapshot_end(own->backend, own->store);
    return -1;
}

/* Returns the path from the root: the program may change its working directory while the save goes on. */
static char *path_from_root(const char *path) {
    char *directory = *path == '/' ? NULL : getcwd(NULL, 0), *whole;
    if (!directory) return mem_text(path, strlen(path), "a path");
    uint64_t bytes = strlen(directory) + strlen(path) + 2;
    whole = mem_zalloc(bytes, 1, "a path");
    if (whole) snprintf(whole, bytes, "%s/%s", directory, path);
    free(directory);
    return whole;
}

enum sptx_status sptx_table_save_begin(struct sptx_table *table, const char *path, uint64_t most, struct sptx_saving **out) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (!out) return leave(table->context, fail_usage("the address for the new save is NULL"));
    *out = NULL;
    struct sptx_saving *saving = check_path(path) ? NULL : mem_zalloc(1, sizeof *saving, "a save");
    if (!saving) return leave(table->context, -1);
    saving->path = path_from_root(path);
    int claimed = saving->path && !claim_file(&saving->file, path);
    if (claimed && !begin_saving(table, saving, most)) {
        *out = table->saving = saving;
        return leave(table->context, 0);
    }
    if (claimed) release_file(&saving->file);
    free(saving->path);
    free(saving);
    return leave(table->context, -1);
}

/* ---- the caller's handle ---- */

int sptx_saving_done(const struct sptx_saving *saving) {
    return !saving || behind_is_done(&saving->behind);
}

enum sptx_status sptx_saving_wait(struct sptx_saving *saving) {
    int code;
    if (!saving) return SPTX_USAGE;
    behind_sentence(&saving->behind, &code);
    __atomic_store_n(&saving->told, 1, __ATOMIC_RELEASE);
    return code ? SPTX_FAILED : SPTX_OK;
}

const char *sptx_saving_error(struct sptx_saving *saving) {
    int code;
    return saving ? behind_sentence(&saving->behind, &code) : "the save is NULL";
}

void sptx_saving_close(struct sptx_saving *saving) {
    if (saving) disown(saving);
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
    struct backend_info info;
    if (context->ops->info(context->backend, &info)) return -1;
    uint64_t here = mem_resident();
    if (here && info.host_used > here) /* rows of zeros that are not written yet */
        left -= info.host_used - here < left ? info.host_used - here : left;
    if (!row || o->rows <= left / row) return 0;
    return fail("not enough memory for %" PRIu64 " rows of %s: %s are free; the place 'file' needs none", o->rows,
                text_of_bytes(row_text, row), text_of_bytes(free_text, left));
}

int table_open(struct sptx_context *context, const struct sptx_table_options *given, const struct keys *keys, uint64_t spare,
               struct sptx_table **out) {
    struct sptx_table_options options;
    struct table_options how;
    int fixed = 0;
    sptx_table_defaults(&options, sizeof options);
    if (!context->backend) return fail_usage("the context is not open");
    if (!given) fail_usage("the options are NULL");
    if (!given || take_options(&options, sizeof options, given) || read_options(&how, &fixed, &options)) return -1;
    how.rows += spare;
    how.draws = keys ? keys->draw : NULL;
    struct sptx_table *table = check_host_memory(context, &how) ? NULL : mem_zalloc(1, sizeof *table, "a table");
    if (!table) return -1;
    if (table_init(&table->table, TABLE_TARGET, &how, context->ops, context->backend)) {
        free(table);
        return -1;
    }
    *table = (struct sptx_table){.context = context, .table = table->table, .rule = table->table.rule, .fixed = fixed,
                                 .check_finite = options.check_finite != 0, .next = context->tables};
    context->tables = *out = table;
    return 0;
}

static void free_table(struct sptx_table *table) {
    struct sptx_table **at = &table->context->tables;
    while (*at != table) at = &(*at)->next;
    *at = table->next;
    table_release(&table->table);
    free(table);
}

enum sptx_status sptx_table_open(struct sptx_context *context, const struct sptx_table_options *options, struct sptx_table **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a table is opened into a pointer; it is NULL"));
    *out = NULL;
    if (table_open(context, options, NULL, 0, out)) return leave(context, -1);
    if (!table_fill(&(*out)->table, context->pool)) return leave(context, 0);
    free_table(*out);
    *out = NULL;
    return leave(context, -1);
}

void sptx_table_close(struct sptx_table *table) {
    if (!table) return;
    struct sptx_context *context = table->context;
    enter(context);
    saving_forget(table);
    free_table(table);
    leave(context, 0);
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

/* Returns the field with this name: weights or a slot. Counts of updates, and scales, are not in the library's interface. */
static const struct record_field *find_field(const struct sptx_table *table, const char *name) {
    const struct record_field *field = name ? record_field(&table->table.spec.layout, name) : NULL;
    if (field && field - table->table.spec.layout.field <= table->table.spec.layout.slots) return field;
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
    if (field && value_is_code(field->type)) {
        field = NULL;
        fail_usage("weights of int8 and float8 are codes with a scale a row, of which there is no view: fetch rows, and store them");
    }
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

/* ---- rows: what the four calls check; the backend does the rest ---- */

static int check_memory(const struct sptx_context *context, uint32_t memory, const char *what) {
    if (memory == SPTX_HOST) return 0;
    if (memory != SPTX_CUDA) return fail_usage("%s: memory is 1 (host) or 2 (CUDA), not %u", what, memory);
    if (!context->ops->has_gpu) return fail_usage("%s lie on a GPU, but this context runs on the CPU", what);
    return 0;
}

struct id_taking {
    const struct sptx_ids *ids;
    uint32_t *to;
    uint64_t rows;
    unsigned workers;
    _Atomic int wrong; /* 1: an id is not a row number */
};

static int take_share(void *context, unsigned worker) {
    struct id_taking *taking = context;
    const struct sptx_ids *ids = taking->ids;
    uint64_t first, end;
    pool_share(ids->count, worker, taking->workers, &first, &end);
    const char *from = (const char *)ids->data + first * (ids->bits / 8);
    if (ids_take(from, ids->bits, end - first, taking->rows, taking->to + first)) taking->wrong = 1;
    return 0;
}

/* Prepares ids for the backend. Ids in host memory are checked and copied to the backend's buffer in a single pass. */
static int take_ids(struct sptx_table *table, const struct sptx_ids *given, struct sptx_ids *taken) {
    enum { FEW = 1 << 17 }; /* fewer ids are copied by one thread: waking the others would take as long as copying this number */
    struct sptx_context *context = table->context;
    if (!given) return fail_usage("ids are NULL");
    if (given->bits != 32 && given->bits != 64) return fail_usage("ids have 32 or 64 bits, not %u", given->bits);
    if (check_count(given->count, "ids")) return -1;
    if (given->count && !given->data) return fail_usage("%" PRIu64 " ids at NULL", given->count);
    if (check_aligned(given->data, given->bits / 8, "ids") || check_memory(context, given->memory, "ids")) return -1;
    *taken = *given;
    if (given->memory != SPTX_HOST || !given->count) return 0;
    struct id_taking taking = {
        .ids = given, .rows = table->table.spec.rows, .workers = given->count > FEW ? pool_threads(context->pool) : 1};
    if (context->ops->rows_ids(context->backend, given->count, &taking.to)) return -1;
    *taken = (struct sptx_ids){taking.to, given->count, 32, SPTX_HOST};
    if (taking.workers > 1 ? pool_run(context->pool, take_share, &taking) : take_share(&taking, 0)) return -1;
    for (uint64_t i = 0; taking.wrong && i < given->count; i++) { /* threads may have found a later wrong id first */
        int64_t id = given->bits == 64 ? ((const int64_t *)given->data)[i] : ((const int32_t *)given->data)[i];
        if ((uint64_t)id >= taking.rows)
            return fail_usage("ids[%" PRIu64 "] = %" PRId64 " is no row of a table of %" PRIu64, i, id, taking.rows);
    }
    return taking.wrong ? fail_usage("ids were changed during a call") : 0;
}

struct finite_check {
    const float *values;
    uint64_t count;
    _Atomic uint64_t next;
    _Atomic int found; /* 1: a value is NaN or infinite */
};

static int check_share(void *context, unsigned worker) {
    struct finite_check *check = context;
    uint64_t first, end;
    (void)worker;
    while (!check->found && pool_take(&check->next, check->count, 1 << 16, &first, &end)) {
        uint32_t found = 0, bits;
        for (uint64_t i = first; i < end; i++) {
            memcpy(&bits, &check->values[i], sizeof bits);
            found |= (bits & 0x7F800000) == 0x7F800000; /* all bits of the exponent: NaN or infinity */
        }
        if (found) check->found = 1;
    }
    return 0;
}

/* Fails if a gradient is NaN or infinite. */
static int check_finite(const struct sptx_table *table, uint64_t count, const float *gradients, enum sptx_memory memory) {
    struct finite_check check = {.values = gradients, .count = count * sptx_table_dim(table)};
    if (memory != SPTX_HOST) return fail_usage("the table has check_finite, for which gradients must be in host memory");
    if (pool_run(check.count > 1 << 18 ? table->context->pool : NULL, check_share, &check)) return -1;
    for (uint64_t i = 0; check.found && i < check.count; i++)
        if (!isfinite(gradients[i]))
            return fail_usage("gradients[%" PRIu64 "][%" PRIu64 "] is %g: the table is unchanged", i / sptx_table_dim(table),
                              i % sptx_table_dim(table), (double)gradients[i]);
    return 0;
}

/* ---- the four calls that read and change rows ---- */

int check_values(const struct sptx_table *table, uint64_t count, const float *values, enum sptx_memory memory, const char *what,
                 int gradients) {
    if (gradients && table->fixed) return fail_usage("the table was opened with optimizer 'none': it has no update");
    if (count && !values) return fail_usage("%s are NULL", what);
    if (check_aligned(values, sizeof *values, what) || check_memory(table->context, memory, what)) return -1;
    return gradients && table->check_finite ? check_finite(table, count, values, memory) : 0;
}

int ask_rows(struct sptx_table *table, const struct sptx_ids *taken, const float *values, enum sptx_memory memory, void *stream,
             rows_call *call) {
    struct sptx_context *context = table->context;
    uint64_t stores = call == context->ops->rows_store ? table->stores : 0;
    struct rows_request request = {.table = table->table.store,
                                   .ids = taken->data,
                                   .count = taken->count,
                                   .id_bits = taken->bits,
                                   .ids_on_gpu = taken->memory == SPTX_CUDA,
                                   .values_on_gpu = memory == SPTX_CUDA,
                                   .values = (float *)(uintptr_t)values, /* the cast drops const, but only a fetch writes */
                                   .stream = stream,
                                   .rule = &table->rule,
                                   .lr = table->rule.lr,
                                   .global_step = table->steps + stores};
    if (taken->count && call(context->backend, &request)) return -1;
    table->steps += call == context->ops->rows_update;
    table->stores += call == context->ops->rows_store;
    return 0;
}

/* what: names the values in messages; NULL: the call has none. */
static enum sptx_status ask_backend(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                                    enum sptx_memory memory, void *stream, const char *what, rows_call *call) {
    struct sptx_context *context = table->context;
    struct sptx_ids taken = {0};
    if (table->saving && behind_is_done(&table->saving->behind)) saving_wait(table); /* it frees the snapshot */
    if (take_ids(table, ids, &taken) || (what && check_values(table, ids->count, values, memory, what, call == context->ops->rows_update)))
        return leave(context, -1);
    return leave(context, ask_rows(table, &taken, values, memory, stream, call));
}

enum sptx_status sptx_fetch(struct sptx_table *table, const struct sptx_ids *ids, float *out, enum sptx_memory memory,
                            void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, out, memory, stream, "fetched values", table->context->ops->rows_fetch);
}

enum sptx_status sptx_prefetch(struct sptx_table *table, const struct sptx_ids *ids, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, NULL, SPTX_HOST, stream, NULL, table->context->ops->rows_prefetch);
}

enum sptx_status sptx_update(struct sptx_table *table, const struct sptx_ids *ids, const float *gradients,
                             enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, gradients, memory, stream, "gradients", table->context->ops->rows_update);
}

enum sptx_status sptx_store(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                            enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, values, memory, stream, "values", table->context->ops->rows_store);
}
