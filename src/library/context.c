#include "handles.h"

#include "base/memory.h"
#include "config/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sptx_version(void) {
    return SPTX_VERSION;
}

/* Sets the default floating-point mode and the default locale in the calling thread, so that it computes like the pool's workers. *mode: set to
 * the thread's former mode. Returns its former locale. */
static locale_t take_thread(fenv_t *mode) {
    fegetenv(mode);
    fesetenv(FE_DFL_ENV);
    return numbers_enter();
}

void enter(struct sptx_context *context) {
    fenv_t mode;
    locale_t numbers = take_thread(&mode);
    if (!context->calls++) {
        context->before = report_use(context->report);
        context->numbers = numbers;
        context->mode = mode;
    }
    report_clear();
}

enum sptx_status leave(struct sptx_context *context, int result) {
    int code = result ? report_exit_code() : 0;
    if (!--context->calls) report_use(context->before);
    step_out(context); /* if a callback made this call, the callback goes on in its own mode and locale */
    if (!result) return SPTX_OK;
    return code == REPORT_STOPPED ? SPTX_STOPPED : code == 2 ? SPTX_USAGE : SPTX_FAILED;
}

void step_out(const struct sptx_context *context) {
    numbers_leave(context->numbers);
    fesetenv(&context->mode);
}

void step_in(void) {
    fenv_t mode;
    take_thread(&mode);
}

static void tell_warning(void *user, const char *text) {
    const struct sptx_context *context = user;
    step_out(context);
    context->warning(context->user, text);
    step_in();
}

int take_options(void *options, uint64_t size, const void *given) {
    uint64_t theirs;
    if (!given) return 0;
    memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs || theirs > 65536)
        return fail_usage("options begin with their size; %llu is none", (unsigned long long)theirs);
    const unsigned char *bytes = given;
    for (uint64_t i = size; i < theirs; i++)
        if (bytes[i]) return fail_usage("options of a newer version than this library, %s", SPTX_VERSION);
    memcpy(options, given, theirs < size ? theirs : size);
    return 0;
}

int check_aligned(const void *at, unsigned bytes, const char *what) {
    if ((uintptr_t)at % bytes == 0) return 0;
    return fail_usage("%s lie at %p, which is no multiple of their %u bytes: copy them to memory that is aligned", what, at, bytes);
}

int check_count(uint64_t count, const char *what) {
    if (count <= UINT32_MAX) return 0;
    return fail_usage("%" PRIu64 " %s in one call are more than %u", count, what, UINT32_MAX);
}

/* ---- opening ---- */

/* Returns the backend whose name `device` begins with; the number of a GPU may follow the name. NULL if there is none. */
static const struct backend_ops *find_device(const char *device, unsigned *index) {
    char name[16], *end;
    size_t length = strcspn(device, ":");
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, device);
    const struct backend_ops *ops = backend_named(name);
    *index = 0;
    if (!device[length]) return ops;
    *index = (unsigned)strtoul(device + length + 1, &end, 10);
    return ops && ops->has_gpu && end != device + length + 1 && !*end && *index <= 1023 ? ops : NULL;
}

/* Sets the context's backend and GPU from the text "auto", "cpu", "cuda" or "cuda:N". */
static int choose_device(struct sptx_context *context, const char *device) {
    char why[256] = "";
    context->ops = backend_best();
    context->index = 0;
    if (!device || !strcmp(device, "auto")) return 0;
    const struct backend_ops *ops = find_device(device, &context->index);
    if (!ops) return fail_usage("device '%s' is none of auto, cpu, cuda, cuda:N", device);
    if (!ops->present(why, sizeof why)) return fail("device '%s': %s", device, why);
    context->ops = ops;
    return 0;
}

_Static_assert((int)SPTX_THREADS_MOST == (int)POOL_THREADS_MOST, "the header tells of the pool's limit");

static int open_machine(struct sptx_context *context, const struct sptx_context_options *options) {
    struct backend_options machine = {.threads = options->threads,
                                      .depth = 1,
                                      .gpu_budget = options->gpu_budget ? options->gpu_budget : UINT64_MAX};
    if (options->threads > POOL_THREADS_MOST)
        return fail_usage("threads = %u is more than %d", options->threads, POOL_THREADS_MOST);
    if (choose_device(context, options->device)) return -1;
    machine.index = context->index;
    if (!(context->pool = pool_open(options->threads)) || context->ops->open(&context->backend, &machine)) {
        context->backend = NULL;
        return -1;
    }
    int n = snprintf(context->device, sizeof context->device, "%s", context->ops->name);
    if (context->ops->has_gpu) snprintf(context->device + n, sizeof context->device - (size_t)n, ":%u", context->index);
    return context->ops->info(context->backend, &context->machine);
}

enum sptx_status sptx_open(struct sptx_context **out, const struct sptx_context_options *given) {
    struct sptx_context_options options = SPTX_CONTEXT_OPTIONS;
    if (!out) return SPTX_USAGE;
    *out = NULL;
    struct sptx_context *context = calloc(1, sizeof *context);
    if (!context) return SPTX_FAILED;
    uint64_t size = 0; /* size of *given; read here, since the warning function must be set before anything is reported */
    if (given) memcpy(&size, given, sizeof size);
    int hears = size >= sizeof options;
    context->warning = hears ? given->warning : NULL;
    context->user = hears ? given->user : NULL;
    context->report = report_open(context->warning ? tell_warning : NULL, context);
    if (!context->report) {
        free(context);
        return SPTX_FAILED;
    }
    *out = context;
    enter(context);
    if (!given) return leave(context, fail_usage("the options are NULL"));
    return leave(context, take_options(&options, sizeof options, given) || open_machine(context, &options) ? -1 : 0);
}

void sptx_close(struct sptx_context *context) {
    if (!context) return;
    while (context->keyed) sptx_keyed_close(context->keyed);
    while (context->tables) sptx_table_close(context->tables);
    while (context->runs) sptx_run_close(context->runs);
    enter(context);
    if (context->backend) context->ops->close(context->backend);
    pool_close(context->pool);
    mem_free(context->trained, context->tuned);
    leave(context, 0);
    report_close(context->report);
    free(context);
}

void sptx_stop(struct sptx_context *context) {
    if (context) context->stop = 1;
}

const char *sptx_error(const struct sptx_context *context) {
    if (!context) return "the context is NULL";
    struct report *before = report_use(context->report);
    const char *sentence = report_sentence();
    report_use(before);
    return sentence;
}

const char *sptx_device(const struct sptx_context *context) {
    return context ? context->device : "";
}

enum sptx_status sptx_wait(struct sptx_context *context) {
    if (!context) return SPTX_USAGE;
    enter(context);
    return leave(context, context->backend ? context->ops->rows_wait(context->backend) : fail_usage("the context is not open"));
}
