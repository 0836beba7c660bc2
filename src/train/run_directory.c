#include "run_directory.h"

#include "base/directory.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

int run_directory_describe(const char *run, const struct config *config, const struct vocab *vocab) {
    char *config_path = file_join(run, "config.ini"), *vocab_path = file_join(run, "vocab.tsv");
    struct file_writer writer;
    int result = -1;
    if (!config_path || !vocab_path || vocab_write(vocab, vocab_path) || file_writer_open(&writer, config_path))
        goto out;
    if (config_write(config, 0, &writer)) {
        file_abandon(&writer);
        goto out;
    }
    result = file_commit(&writer);
out:
    free(config_path);
    free(vocab_path);
    return result;
}

int run_directory_clear(const char *run) {
    char **names;
    int64_t count = directory_list(run, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count; i++) {
        int old =
            !strncmp(names[i], "checkpoint-", 11) || !strcmp(names[i], "latest") || !strcmp(names[i], "metrics.jsonl");
        char *path = old ? file_join(run, names[i]) : NULL;
        if (path && directory_remove_tree(path)) result = -1;
        free(path);
        free(names[i]);
    }
    free(names);
    return result;
}
