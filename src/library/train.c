#include "handles.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listener {
    const struct sptx_context *context;
    sptx_progress_fn *progress;
    void *user;
};

static int hear(void *user, const struct sptx_progress *report) {
    const struct listener *listener = user;
    step_out(listener->context);
    int stop = listener->progress(listener->user, report);
    step_in();
    report_clear(); /* if a call in the callback failed, its error is not why training ends */
    return stop;
}

int set_key(struct config *config, const char *setting) {
    if (!setting) return fail_usage("a setting is NULL");
    uint64_t capacity = strlen(setting) + sizeof "--";
    char *argument = mem_alloc(capacity, 1, "a setting");
    if (!argument) return -1;
    snprintf(argument, capacity, "--%s", setting);
    int result = config_argument(config, argument);
    free(argument);
    return result > 0 ? fail_usage("'%s' is not of the form section.key=value", setting) : result;
}

int read_keys(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
              uint64_t count) {
    if (count && !settings) return fail_usage("%llu settings at NULL", (unsigned long long)count);
    if (config_init(config) || (path && config_read(config, path))) return -1;
    for (uint64_t i = 0; i < count; i++)
        if (set_key(config, settings[i])) return -1;
    if (config->device_backend == BACKEND_AUTO && config_set(config, "device", "backend", context->ops->name, "the context"))
        return -1;
    if (!config->device_threads) config->device_threads = pool_threads(context->pool);
    return 0;
}

int read_config(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
                uint64_t count) {
    return read_keys(config, context, path, settings, count) || config_resolve(config) ? -1 : 0;
}

/* Stores the directory of a run, for sptx_trained(). */
static int keep_directory(struct sptx_context *context, const char *directory) {
    free(context->trained);
    context->trained = directory ? mem_text(directory, strlen(directory), "a run directory") : NULL;
    return directory && !context->trained ? -1 : 0;
}

const char *sptx_trained(const struct sptx_context *context) {
    return context && context->trained ? context->trained : "";
}

int train(struct sptx_context *context, struct config *config, struct gathered *data, int beginning,
          sptx_progress_fn *progress, void *user) {
    struct listener listener = {context, progress, user};
    struct trainer_options options = {.data = data,
                                      .resume = beginning == SPTX_RESUME,
                                      .overwrite = beginning == SPTX_OVERWRITE,
                                      .keep_signals = 1,
                                      .judge = judge_checkpoint,
                                      .hear = progress ? hear : NULL,
                                      .user = &listener};
    if (beginning < SPTX_ANEW || beginning > SPTX_OVERWRITE)
        return fail_usage("beginning = %d is not one of SPTX_ANEW, SPTX_RESUME and SPTX_OVERWRITE", beginning);
    interrupt_flag *before = interrupt_use(&context->stop);
    int result = trainer_run(config, &options);
    interrupt_use(before);
    return keep_directory(context, config->run_dir) ? -1 : result;
}

enum sptx_status leave_training(struct sptx_context *context, int result) {
    context->stop = 0;
    enum sptx_status status = leave(context, result < 0 ? -1 : 0);
    return result > 0 ? SPTX_STOPPED : status;
}

enum sptx_status sptx_train(struct sptx_context *context, const char *path, const char *const *settings, uint64_t count,
                            int beginning, sptx_progress_fn *progress, void *user) {
    struct config config = {0};
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!context->backend) return leave(context, fail_usage("the context is not open"));
    int result =
        read_config(&config, context, path, settings, count) ? -1 : train(context, &config, NULL, beginning, progress, user);
    config_release(&config);
    return leave_training(context, result);
}
