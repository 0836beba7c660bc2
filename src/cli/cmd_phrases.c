#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "corpus/phrases.h"
#include "run/run_directory.h"

#include <stdio.h>
#include <string.h>

static int take_joined(void *writer, const char *bytes, uint64_t length) {
    return file_write(writer, bytes, length);
}

/* Writes to stdout directly: a file_writer would replace the file that the shell has opened. */
static int write_to_stdout(void *user, const char *bytes, uint64_t length) {
    return fwrite(bytes, 1, length, stdout) == length ? 0 : terminal_flush();
}

static int join_into(struct corpus *corpus, const char *const *paths, int count, const struct corpus_options *options, struct pool *pool,
                     int margin, const char *out) {
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    if (!out || !strcmp(out, CORPUS_INPUT)) return phrases_join(corpus, options, pool, margin, write_to_stdout, NULL);
    for (int i = 0, same; i < count; i++)
        if ((same = strcmp(paths[i], CORPUS_INPUT) ? file_is_same(out, paths[i]) : 0))
            return same < 0 ? -1 : fail_usage("the output is the text '%s' itself, which would be lost; choose another file", paths[i]);
    if (run_owns_refuse(out, "--out") || file_writer_open_given(&writer, out)) return -1;
    return phrases_join(corpus, options, pool, margin, take_joined, &writer) ? -1 : file_commit(&writer);
}

int command_join_words(const struct config *config, const char *const *paths, int count, const char *out, int margin) {
    const struct corpus_options options = config_corpus(config);
    ENDED_BY(pool_end) struct pool *pool = pool_open((unsigned)config->device_threads);
    ENDED_BY(corpus_end) struct corpus *corpus = pool ? corpus_open((char *const *)paths, (uint64_t)count) : NULL;
    struct interrupt watch;
    interrupt_watch(&watch);
    int ends = interrupt_ends_work(1), result = corpus ? join_into(corpus, paths, count, &options, pool, margin, out) : -1;
    interrupt_ends_work(ends);
    interrupt_end(&watch);
    return result;
}

/* The command's options, and the keys that they set. */
static const struct {
    const char *option, *key;
} keys[] = {{"min-count", "phrases.min_count"}, {"threshold", "phrases.threshold"}, {"passes", "phrases.passes"},
            {"score", "phrases.score"},         {"delimiter", "phrases.delimiter"}, {"connectors", "phrases.connectors"},
            {"memory", "phrases.memory"}};
enum { KEYS = sizeof keys / sizeof *keys };

/* sptx-w2v phrases CORPUS... [--out=FILE] [--min-count=5] [--threshold=T[,T]] [--passes=N] [--score=S] [--delimiter=_]
 * [--connectors=FILE] [--memory=SIZE] */
int cmd_phrases(int argc, char **argv) {
    const char *texts[KEYS] = {NULL}, *out = NULL;
    struct option options[KEYS + 2] = {{.name = "out", .text = &out}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    for (int i = 0; i < KEYS; i++) options[i + 1] = (struct option){.name = keys[i].option, .text = &texts[i]};
    if (arguments_read(&arguments, "phrases", argc, argv, options, "phrases, corpus, device")) return -1;
    if (!arguments.count) return fail_usage("phrases wants a file of text, or - for standard input; see 'sptx-w2v help phrases'");
    if (arguments_config(&config, 0, NULL, &arguments)) return -1;
    for (int i = 0; i < KEYS; i++)
        if (texts[i] && command_set_key(&config, keys[i].key, texts[i])) return -1;
    return command_join_words(&config, arguments.given, arguments.count, out, 0);
}
