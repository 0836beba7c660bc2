#include "handles.h"

#include "base/checks.h"
#include "base/file.h"
#include "base/interrupt.h"
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

/* ---- calls that the ranks of a shared table make together ---- */

/* Lets sptx_stop() end this thread's waits. Returns the flag that the caller gives to interrupt_use() after its wait. */
static interrupt_flag *begin_waiting(struct sptx_context *context) {
    context->stop = 0;
    return interrupt_use(&context->stop);
}

enum call_kind { CALL_UPDATE = 1, CALL_STORE, CALL_LOAD, CALL_BARRIER };
static const char *const call_names[] = {"nothing", "update", "store", "load", "barrier"};

/* Waits until all ranks have made this call. Fails on all ranks if failed is 1 on one of them (after fail()), or if the ranks' calls differ. */
static int agree_to_call(struct sptx_table *table, int failed, const struct segment_call *call) {
    struct segment *segment = &table->segment;
    if (segment_agree(segment, failed, call)) return -1;
    const struct segment_call *first = segment_call_of(segment, 0);
    for (uint32_t r = 1; r < segment->ranks; r++) {
        const struct segment_call *other = segment_call_of(segment, r);
        if (other->kind != first->kind)
            return fail("rank %u of the shared table '%s' called %s while rank 0 called %s", r, segment->name, call_names[other->kind],
                        call_names[first->kind]);
        if (other->step != first->step || other->lr < first->lr || other->lr > first->lr)
            return fail("rank %u of the shared table '%s' makes %s number %" PRIu64 " with lr = %.9g, and rank 0 number %" PRIu64 " with lr = %.9g",
                        r, segment->name, call_names[first->kind], other->step, other->lr, first->step, first->lr);
    }
    return 0;
}

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
    if (o->shared && (o->weights != SPTX_PINNED || o->state != SPTX_PINNED || o->hot_rows || o->gpu_rows || o->directory))
        return fail_usage("a shared table has its weights and state in the place 'pinned', without hot_rows, gpu_rows and a directory");
    if (o->owner > SPTX_LOCK_FREE) return fail_usage("owner is 0 (exact) or 1 (lock-free), not %u", o->owner);
    if (o->owner == SPTX_LOCK_FREE && o->ranks > 1 && (o->dtype == SPTX_INT8 || o->dtype == SPTX_FLOAT8))
        return fail_usage("rows of int8 and float8 have a scale beside their codes, and lock-free ranks could leave one's scale with another's "
                          "codes; take owner exact, or bfloat16");
    if (!o->shared && (o->owner || o->rank || o->ranks > 1))
        return fail_usage("owner, rank and ranks are of a shared table; `shared` gives its name");
    if (!o->init || table_init_values(&out->init.rows, o->init, TABLE_TARGET, o->dim))
        return fail_usage("init '%s' is none of: zeros; uniform LO HI; normal MEAN SD; word2vec; notebook M",
                          o->init ? o->init : "NULL");
    if (!(table_init_reach(&out->init.rows) <= FLT_MAX))
        return fail_usage("init '%s' draws numbers up to %.3g, and float32 ends at %.3g", o->init, table_init_reach(&out->init.rows),
                          (double)FLT_MAX);
    return 0;
}

/* ---- saving, while the caller waits or goes on; the files that this process is writing, all different ---- */

/* A file that is being written. Its directory is identified by device and inode, since two paths may lead to one directory. */
struct written {
    dev_t device;
    ino_t directory;
    char *name; /* owned; NULL: the path's directory does not exist, and writing will fail */
    pid_t process; /* the process that writes the file: a child made by fork() inherits its parent's list */
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
    mem_free(resolved, directory);
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
    if (!other) {
        file_remove_left(path);
        return 0;
    }
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
    struct table snapshot; /* a copy of the table's struct, by which rows are read as they were when the save began */
    char *path;
    struct written file;
    int owners; /* 2, less 1 when the caller releases the save, and less 1 when the table does. Atomic */
    int told;   /* 1: the caller has asked how the save has ended. Atomic */
};

static void disown(struct sptx_saving *saving) {
    if (__atomic_sub_fetch(&saving->owners, 1, __ATOMIC_ACQ_REL)) return;
    behind_close(&saving->behind);
    mem_free(saving->path, saving);
}

static int save_snapshot(void *user) {
    struct sptx_saving *saving = user;
    uint64_t checksum;
    int result = table_save(&saving->snapshot, saving->path, &checksum);
    saving->snapshot.ops->snapshot_stop(saving->snapshot.store);
    release_file(&saving->file);
    return result;
}

/* For a save that runs while the table is used. saving_wait() waits until it is done, and frees its snapshot; saving_forget() also forgets how it
 * ended. */
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

/* Waits for the table's earlier save. If that save failed and the caller has not asked how it ended, fails with its message. */
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

/* Returns the absolute path, since the program may change its working directory during the save. */
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
    if (table->segment.ranks)
        return leave(table->context, fail_usage("a shared table is saved with sptx_table_save() (wait=True): this process does not see when others "
                                                "change rows, and could not copy them before"));
    struct sptx_saving *saving = check_path(path) ? NULL : mem_zalloc(1, sizeof *saving, "a save");
    if (!saving) return leave(table->context, -1);
    saving->path = path_from_root(path);
    int claimed = saving->path && !claim_file(&saving->file, path);
    if (claimed && !begin_saving(table, saving, most)) {
        *out = table->saving = saving;
        return leave(table->context, 0);
    }
    if (claimed) release_file(&saving->file);
    mem_free(saving->path, saving);
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

/* Fails if the table is larger than the free memory: otherwise the system would allocate it, and kill the process later, when it writes to the
 * memory. A table in a file needs no memory; for GPU and pinned memory the backend checks. */
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
    if (here && info.host_used > here) /* rows of zeros that have no memory yet */
        left -= info.host_used - here < left ? info.host_used - here : left;
    if (!row || o->rows <= left / row) return 0;
    return fail("not enough memory for %" PRIu64 " rows of %s: %s are free; the place 'file' needs none", o->rows,
                text_of_bytes(row_text, row), text_of_bytes(free_text, left));
}

/* Opens the memory that processes of a shared table have in common. All must give the same options. */
static int open_segment(struct sptx_table *table, struct table_options *how, const struct sptx_table_options *o) {
    const struct record_layout layout = record_layout_make(&how->rule, o->dim);
    uint32_t ranks = o->ranks ? o->ranks : 1;
    char about[SEGMENT_ABOUT];
    int n = snprintf(about, sizeof about, "version=" SPTX_VERSION " ranks=%u rows=%" PRIu64 " dim=%u owner=%s dtype=%u state_dtype=%u seed=%u "
                     "init=%d,%.9g,%.9g optimizer=%s lr=%.9g clip=%.9g count_rows=%u", ranks, o->rows, o->dim, o->owner ? "lock-free" : "exact",
                     o->dtype, o->state_dtype, o->seed, (int)how->init.rows.kind, how->init.rows.a, how->init.rows.b,
                     table->fixed ? "none" : rules_name(how->rule.rule), how->rule.lr, how->rule.clip, o->count_rows);
#define NUMBER(name, fallback, lowest, highest, rules, help)  n += snprintf(about + n, sizeof about - (size_t)n, " " #name "=%.9g", how->rule.name);
#define BY_RULE(name, fallback, lowest, highest, rules, help) NUMBER(name, fallback, lowest, highest, rules, help)
#define FLAG(name, rules, help)                               n += snprintf(about + n, sizeof about - (size_t)n, " " #name "=%d", how->rule.name);
#include "kernels/optimizers.def"
    INVARIANT(n < (int)sizeof about);
    uint64_t bytes = o->rows * table_row_bytes(&layout, PLACE_PINNED, PLACE_PINNED);
    if (segment_open(&table->segment, o->shared, o->rank, ranks, bytes, about)) return -1;
    table->exact = o->owner == SPTX_EXACT && ranks > 1;
    how->given = table->segment.rows;
    how->filler = o->rank;
    how->fillers = ranks;
    return 0;
}

/* Closes the memory that a shared table has in common with other processes. */
static void leave_segment(struct sptx_table *table) {
    if (table->pinned_mail) table->context->ops->host_unpin(table->context->backend, table->pinned_mail, table->segment.mail_bytes);
    segment_close(&table->segment);
    mem_free(table->ids, table->places);
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
    if (keys && options.shared) return fail_usage("a table by key is not shared");
    how.rows += spare;
    how.draws = keys ? keys->draw : NULL;
    struct sptx_table *table = mem_zalloc(1, sizeof *table, "a table");
    if (!table) return -1;
    *table = (struct sptx_table){.context = context, .fixed = fixed, .check_finite = options.check_finite != 0, .next = context->tables};
    interrupt_flag *before = options.shared ? begin_waiting(context) : NULL;
    int failed = (options.shared ? open_segment(table, &how, &options) : check_host_memory(context, &how)) ||
                 table_init(&table->table, TABLE_TARGET, &how, context->ops, context->backend);
    if (options.shared) interrupt_use(before);
    if (failed) {
        if (table->segment.ranks) segment_break(&table->segment);
        leave_segment(table);
        free(table);
        return -1;
    }
    table->rule = table->table.rule;
    context->tables = *out = table;
    return 0;
}

static void free_table(struct sptx_table *table) {
    struct sptx_table **at = &table->context->tables;
    while (*at != table) at = &(*at)->next;
    *at = table->next;
    table_release(&table->table);
    leave_segment(table);
    free(table);
}

enum sptx_status sptx_table_open(struct sptx_context *context, const struct sptx_table_options *options, struct sptx_table **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a table is opened into a pointer; it is NULL"));
    *out = NULL;
    if (table_open(context, options, NULL, 0, out)) return leave(context, -1);
    struct sptx_table *table = *out;
    int failed = table_fill(&table->table, context->pool) || (table->segment.ranks && context->ops->rows_wait(context->backend));
    if (table->segment.ranks) {
        interrupt_flag *before = interrupt_use(&context->stop);
        failed = segment_agree(&table->segment, failed, NULL);
        interrupt_use(before);
    }
    if (failed) {
        free_table(table);
        *out = NULL;
    }
    return leave(context, failed);
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

void set_rate(struct sptx_table *table, double lr) {
    struct record_layout *layout = &table->table.spec.layout;
    table->rule.lr = lr;
    if (table->rule.rule == RULE_RPROP && layout->slots == 2) layout->field[record_slot(layout, 1) - layout->field].initial = (float)lr;
}

enum sptx_status sptx_table_set_lr(struct sptx_table *table, double lr) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (!(lr >= 0 && lr <= 1e6)) return leave(table->context, fail_usage("lr = %g is not between 0 and 1e6", lr));
    set_rate(table, lr);
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

/* Returns the field with this name: weights or a slot. The library does not offer counts of updates and scales. */
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
    int failed = context->ops->rows_wait(context->backend);
    if (!table->segment.ranks) return leave(context, failed || table_load(&table->table, path) ? -1 : 0);
    interrupt_flag *before = begin_waiting(context);
    if (!(failed = agree_to_call(table, failed, &(struct segment_call){.kind = CALL_LOAD})))
        failed = segment_agree(&table->segment, table->segment.rank == 0 && table_load(&table->table, path), NULL);
    interrupt_use(before);
    return leave(context, failed);
}

enum sptx_status sptx_table_barrier(struct sptx_table *table) {
    if (!table) return SPTX_USAGE;
    struct sptx_context *context = table->context;
    enter(context);
    int failed = context->ops->rows_wait(context->backend);
    if (!table->segment.ranks) return leave(context, failed);
    interrupt_flag *before = begin_waiting(context);
    failed = agree_to_call(table, failed, &(struct segment_call){.kind = CALL_BARRIER});
    interrupt_use(before);
    return leave(context, failed);
}

/* ---- rows: checks before the four calls; the backend does the rest ---- */

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

static int check_ids(const struct sptx_context *context, const struct sptx_ids *given, const char *what) {
    if (given->bits != 32 && given->bits != 64) return fail_usage("%s have 32 or 64 bits, not %u", what, given->bits);
    if (check_count(given->count, what)) return -1;
    if (given->count && !given->data) return fail_usage("%" PRIu64 " %s at NULL", given->count, what);
    return check_aligned(given->data, given->bits / 8, what) || check_memory(context, given->memory, what) ? -1 : 0;
}

/* Prepares ids for the backend. Ids in host memory are checked, and at the same time copied to the backend's buffer; if `exact`, ids in any memory
 * are copied to table->ids. */
static int take_ids(struct sptx_table *table, int exact, void *stream, const struct sptx_ids *given, struct sptx_ids *taken) {
    enum { FEW = 1 << 17 }; /* so few ids are copied by one thread: waking the others would take longer */
    struct sptx_context *context = table->context;
    if (!given) return fail_usage("ids are NULL");
    if (check_ids(context, given, "ids")) return -1;
    *taken = *given;
    if ((given->memory != SPTX_HOST && !exact) || !given->count) return 0;
    struct sptx_ids copy = *given;
    uint64_t copied = given->memory == SPTX_HOST ? 0 : 2 * given->count + 1; /* ids in a GPU's memory are first copied to the part after the 32-bit
                                                                              * ids, at an aligned address */
    if (exact && mem_grow(&table->ids, &table->id_capacity, given->count + copied, sizeof *table->ids, "ids")) return -1;
    if (copied) {
        uint32_t *to = table->ids + given->count + given->count % 2;
        if (context->ops->host_copy(context->backend, to, given->data, given->count * (given->bits / 8), stream)) return -1;
        copy.data = to;
        given = &copy;
    }
    struct id_taking taking = {
        .ids = given, .to = table->ids, .rows = table->table.spec.rows, .workers = given->count > FEW ? pool_threads(context->pool) : 1};
    if (!exact && context->ops->rows_ids(context->backend, given->count, &taking.to)) return -1;
    *taken = (struct sptx_ids){taking.to, given->count, 32, SPTX_HOST};
    if (taking.workers > 1 ? pool_run(context->pool, take_share, &taking) : take_share(&taking, 0)) return -1;
    for (uint64_t i = 0; taking.wrong && i < given->count; i++) { /* finds the first wrong id: threads may have found a later one first */
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

/* In an exact call the ranks exchange ids and values by mail, in rounds. A hash of a row decides which rank owns it, and in which round it is
 * exchanged. The mail of a round has ids, then values; both are ordered by the receiving rank, then by the sending rank, then as in that rank's
 * call. So each rank receives values of its rows in the order in which one process would add them. */

enum { MAIL_ROUND = 256 << 20 }; /* bytes of mail of a round, about */
#define NO_PLACE UINT32_MAX

struct posting {
    const struct rows_request *own;
    const uint32_t *places; /* [own->count] index in the mail, or NO_PLACE */
    uint32_t *ids;          /* the mail's ids and values */
    float *values;          /* NULL: the backend sends the values */
    uint64_t dim;
    unsigned workers;
};

static int post_share(void *context, unsigned worker) {
    const struct posting *posting = context;
    const uint32_t *ids = posting->own->ids;
    uint64_t first, end, dim = posting->dim;
    pool_share(posting->own->count, worker, posting->workers, &first, &end);
    for (uint64_t i = first; i < end; i++) {
        uint64_t place = posting->places[i];
        if (place == NO_PLACE) continue;
        posting->ids[place] = ids[i];
        if (posting->values) memcpy(posting->values + place * dim, posting->own->values + i * dim, dim * sizeof(float));
    }
    return 0;
}

/* Makes the mail, the shared memory through which ranks exchange ids and values, at least `bytes` long. The GPU can use its address. */
static int grow_mail(struct sptx_table *table, uint64_t bytes) {
    const struct backend_ops *ops = table->context->ops;
    if (bytes <= table->segment.mail_bytes) return 0;
    if (table->pinned_mail) ops->host_unpin(table->context->backend, table->pinned_mail, table->segment.mail_bytes);
    table->pinned_mail = NULL;
    if (segment_mail(&table->segment, bytes)) return -1;
    if (!ops->has_gpu) return 0;
    if (ops->host_pin(table->context->backend, table->segment.mail, table->segment.mail_bytes)) return segment_break(&table->segment);
    table->pinned_mail = table->segment.mail;
    return 0;
}

/* Makes one round: sends this rank's ids and values of the round's rows, and changes the rows that this rank owns. */
static int exchange_round(struct sptx_table *table, const struct rows_request *own, rows_call *call, uint64_t round, uint64_t rounds) {
    struct sptx_context *context = table->context;
    struct segment *segment = &table->segment;
    uint32_t ranks = segment->ranks, *places = table->places;
    uint64_t *counts = segment_counts(segment), all = 0, first = 0, count = 0, next[SEGMENT_RANKS], dim = table->table.spec.layout.dim;
    const uint32_t *ids = own->ids;
    memset(counts + (uint64_t)segment->rank * ranks, 0, ranks * sizeof *counts);
    for (uint64_t i = 0; i < own->count; i++) {
        uint64_t share = (uint64_t)(ids[i] * 2654435769u) * (ranks * rounds) >> 32; /* Fibonacci hashing (Knuth 6.4) */
        places[i] = share % rounds == round ? (uint32_t)(share / rounds) : NO_PLACE;
        if (places[i] != NO_PLACE) counts[(uint64_t)segment->rank * ranks + places[i]]++;
    }
    if (segment_wait(segment)) return -1;
    for (uint32_t to = 0; to < ranks; to++) {
        if (to == segment->rank) first = all;
        for (uint32_t from = 0; from < ranks; all += counts[(uint64_t)from++ * ranks + to])
            if (from == segment->rank) next[to] = all;
        if (to == segment->rank) count = all - first;
    }
    uint64_t values_at = (all * sizeof *ids + 255) / 256 * 256;
    if (grow_mail(table, values_at + all * dim * sizeof(float))) return -1;
    for (uint64_t i = 0; i < own->count; i++)
        if (places[i] != NO_PLACE) places[i] = (uint32_t)next[places[i]]++;
    uint32_t *mail_ids = (uint32_t *)(void *)segment->mail, *taken;
    float *mail_values = (float *)(void *)(segment->mail + values_at);
    struct pool *pool = own->count * dim > 1 << 15 ? context->pool : NULL;
    struct posting posting = {.own = own, .places = places, .ids = mail_ids, .values = own->values_on_gpu ? NULL : mail_values, .dim = dim,
                              .workers = pool ? pool_threads(pool) : 1};
    if ((own->values_on_gpu && context->ops->rows_send(context->backend, own, places, mail_values)) || pool_run(pool, post_share, &posting))
        return segment_break(segment);
    if (segment_wait(segment)) return -1;
    struct rows_request mine = *own;
    mine.values = mail_values + first * dim;
    mine.values_on_gpu = mine.ids_on_gpu = 0; /* a rank without ids of its own may have given its empty list on a GPU */
    mine.id_bits = 32;
    mine.count = count;
    if (count && context->ops->rows_ids(context->backend, count, &taken)) return segment_break(segment);
    if (count) memcpy(taken, mail_ids + first, count * sizeof *taken);
    mine.ids = count ? taken : NULL;
    if (count && (call(context->backend, &mine) || context->ops->rows_wait(context->backend))) return segment_break(segment);
    return segment_wait(segment);
}

/* Makes an update or a store together with all ranks. failed: 1 after fail(): this rank's call is wrong. */
static int exchange(struct sptx_table *table, int failed, const struct rows_request *own, rows_call *call) {
    struct segment *segment = &table->segment;
    uint64_t all = 0, entry = sizeof(uint32_t) + table->table.spec.layout.dim * sizeof(float);
    interrupt_flag *before = begin_waiting(table->context);
    struct segment_call mine = {.kind = call == table->context->ops->rows_store ? CALL_STORE : CALL_UPDATE,
                                .count = failed ? 0 : own->count, .step = own->global_step, .lr = own->lr};
    failed = failed || table->context->ops->rows_wait(table->context->backend); /* an earlier fetch may have had ids on a GPU that are not rows */
    failed = failed || mem_grow(&table->places, &table->place_capacity, own->count, sizeof *table->places, "places of ids");
    failed = agree_to_call(table, failed, &mine);
    for (uint32_t r = 0; r < segment->ranks && !failed; r++) all += segment_call_of(segment, r)->count;
    if (!failed && all >= NO_PLACE) failed = fail("%" PRIu64 " ids of all ranks in one call are more than %u", all, NO_PLACE - 1);
    for (uint64_t round = 0, rounds = all * entry / MAIL_ROUND + 1; round < rounds && all && !failed; round++)
        failed = exchange_round(table, own, call, round, rounds);
    interrupt_use(before);
    return failed;
}

/* Returns 1 if all ranks must make this call together. */
static int is_together(const struct sptx_table *table, rows_call *call) {
    return table->exact && (call == table->context->ops->rows_update || call == table->context->ops->rows_store);
}

int ask_rows(struct sptx_table *table, int failed, const struct sptx_ids *taken, const float *values, enum sptx_memory memory, void *stream,
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
    if (is_together(table, call)) failed = exchange(table, failed, &request, call);
    else if (!failed && taken->count) failed = call(context->backend, &request);
    if (failed) return -1;
    table->steps += call == context->ops->rows_update;
    table->stores += call == context->ops->rows_store;
    return 0;
}

/* what: names the values in messages; NULL: the call has no values. */
static enum sptx_status ask_backend(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                                    enum sptx_memory memory, void *stream, const char *what, rows_call *call) {
    struct sptx_context *context = table->context;
    struct sptx_ids taken = {0};
    if (table->saving && behind_is_done(&table->saving->behind)) saving_wait(table); /* it frees the snapshot */
    int together = is_together(table, call), failed = take_ids(table, together, stream, ids, &taken) ||
                   (what && check_values(table, ids->count, values, memory, what, call == context->ops->rows_update));
    if (failed) taken.count = 0;
    return leave(context, failed && !together ? -1 : ask_rows(table, failed, &taken, values, memory, stream, call));
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
    if (table->exact) return leave(table->context, 0); /* the backend would not notice if other ranks change these rows */
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

/* ---- rows that n-grams name ---- */

struct naming {
    const struct ngram_law *law;
    const struct ngram_tokens *of;
    uint64_t count;
    int64_t *rows;
    unsigned workers;
};

static int name_share(void *context, unsigned worker) {
    const struct naming *naming = context;
    uint64_t first, end;
    pool_share(naming->count, worker, naming->workers, &first, &end);
    for (; first < end; first++) naming->rows[first] = (int64_t)ngram_row(naming->law, naming->of, first);
    return 0;
}

enum sptx_status sptx_ngrams(struct sptx_context *context, const struct sptx_ngram_law *law, const struct sptx_ids *tokens, uint64_t batch,
                             uint64_t skip, int64_t *rows, void *stream) {
    if (!context) return SPTX_USAGE;
    struct sptx_ngram_law all = {0};
    struct ngram_law own = {0};
    int wrong = 0;
    enter(context);
    if (!law || !tokens) return leave(context, fail_usage("the law or the tokens are NULL"));
    if (take_options(&all, sizeof all, law) || check_ids(context, tokens, "tokens") || check_aligned(rows, sizeof *rows, "named rows"))
        return leave(context, -1);
    if (!all.order || !all.orders || all.orders > NGRAM_ORDERS || !all.heads || all.heads > SPTX_ROWS_MOST / all.orders)
        return leave(context, fail_usage("%u orders of n-grams with %u heads each; wanted 1..%d orders, and 1 head or more", all.orders, all.heads,
                                         NGRAM_ORDERS));
    for (uint32_t i = 0; i < all.orders; i++) {
        wrong |= !all.order[i] || all.order[i] > SPTX_NGRAM_MOST;
        own.order[i] = all.order[i];
        own.longest = all.order[i] > own.longest ? all.order[i] : own.longest;
    }
    own.seed = all.seed;
    own.part_rows = all.part_rows;
    own.heads = all.heads;
    own.parts = all.orders * all.heads;
    if (wrong || !own.part_rows || own.part_rows > SPTX_ROWS_MOST)
        return leave(context, fail_usage("n-grams have 1..%d tokens, and 1..%u rows for each order and head", SPTX_NGRAM_MOST, SPTX_ROWS_MOST));
    if (batch ? tokens->count % batch || tokens->count / batch < skip : tokens->count != 0)
        return leave(context, fail_usage("%" PRIu64 " tokens are not %" PRIu64 " sequences of the same length, of at least %" PRIu64,
                                         tokens->count, batch, skip));
    struct ngram_tokens of = {tokens->data, batch, batch ? tokens->count / batch : 0, skip, tokens->bits};
    struct naming naming = {&own, &of, batch * (of.length - skip) * own.parts, rows, 1};
    if (naming.count > 1 << 14) naming.workers = pool_threads(context->pool); /* for fewer, waking the other threads would take longer */
    if (!batch || !naming.count) return leave(context, 0);
    if (!rows) return leave(context, fail_usage("the named rows are NULL"));
    if (tokens->memory == SPTX_CUDA) return leave(context, context->ops->ngrams(context->backend, &own, &of, rows, stream));
    return leave(context, naming.workers > 1 ? pool_run(context->pool, name_share, &naming) : name_share(&naming, 0));
}
