/* tune: sptx_tune(): converts structs of sptx.h to structs of tune/tune.h. */
#include "handles.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "tune/tune.h"

#include <limits.h>

struct listener {
    struct sptx_context *context;
    sptx_progress_fn *progress;
    void *user;
};

/* Calls the caller's progress function after a training, and asks the search to end if that function says so. */
static void took(void *user, const struct tune_tried *tried) {
    struct listener *listener = user;
    char line[1024];
    struct sptx_progress told = {.size = sizeof told,
                                 .step = tried->trial,
                                 .epoch = tried->epochs,
                                 .loss = tried->score == tried->score ? tried->shown : tried->score,
                                 .seconds = tried->seconds,
                                 .line = line};
    if (!listener->progress) return;
    tune_line(tried, line, sizeof line);
    step_out(listener->context);
    int stop = listener->progress(listener->user, &told);
    step_in();
    report_clear();
    if (stop) listener->context->stop = 1;
}

static int keep_answer(struct sptx_context *context, struct sptx_tuned *tuned) {
    const struct tune_answer *a = context->tuned;
    *tuned = (struct sptx_tuned){.trials = a->trials,
                                 .epochs = a->epochs,
                                 .score = a->shown,
                                 .own = a->own,
                                 .measure = a->measure,
                                 .keys = a->keys};
    return 0;
}

int tune(struct sptx_context *context, const struct config *config, struct gathered *data,
         const struct sptx_tune_options *given, sptx_progress_fn *progress, void *user, struct sptx_tuned *tuned) {
    struct sptx_tune_options options = SPTX_TUNE_OPTIONS;
    struct listener listener = {context, progress, user};
    if (!tuned) return fail_usage("what is found goes to a struct sptx_tuned; it is NULL");
    if (given && take_options(&options, sizeof options, given)) return -1;
    if (!(options.minutes >= 0 && options.minutes <= TUNE_MINUTES))
        return fail_usage("minutes = %g is not a number from 0 to %g", options.minutes, TUNE_MINUTES);
    if (options.pair_count > INT_MAX || options.analogy_count > INT_MAX) return fail_usage("so many files cannot be meant");
    if (!context->tuned && !(context->tuned = mem_zalloc(1, sizeof *context->tuned, "what is found"))) return -1;
    const struct tune_request request = {.config = config,
                                         .data = data,
                                         .seconds = 60 * options.minutes,
                                         .trials = options.trials,
                                         .pairs = options.pairs,
                                         .analogies = options.analogies,
                                         .pair_count = (int)options.pair_count,
                                         .analogy_count = (int)options.analogy_count,
                                         .out = options.out,
                                         .took = took,
                                         .user = &listener};
    interrupt_flag *before = interrupt_use(&context->stop);
    int result = tune_run(context->tuned, &request);
    interrupt_use(before);
    return result ? -1 : keep_answer(context, tuned);
}

enum sptx_status sptx_tune(struct sptx_context *context, const char *path, const char *const *settings, uint64_t count,
                           const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user,
                           struct sptx_tuned *tuned) {
    struct config config = {0};
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    int result =
        read_keys(&config, context, path, settings, count) ? -1 : tune(context, &config, NULL, options, progress, user, tuned);
    config_release(&config);
    context->stop = 0;
    return leave(context, result);
}
