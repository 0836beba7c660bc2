/* written_run: runs in the scratch directory with the files that training leaves. Each file has just enough bytes to tell one
 * run from another. Include this header after scratch.h and before cmocka.h. */
#ifndef SPTX_WRITTEN_RUN_H
#define SPTX_WRITTEN_RUN_H

#include "base/file.h"
#include "base/memory.h"
#include "config/config.h"
#include "corpus/vocab.h"
#include "run/checkpoint.h"
#include "run/run_directory.h"
#include "run/state.h"

static void write_text(const char *path, const char *text) {
    if (file_replace(path, text, strlen(text))) abort();
}

/* Returns the text of a file, or "(none)" if there is no file. The text is overwritten by the fourth call after this one. */
static inline const char *text_of(const char *path) {
    static char texts[4][4096];
    static int turn;
    char *text = texts[turn++ % 4];
    int kind = file_head(path, text, sizeof *texts);
    return kind == 1 ? text : kind == 0 ? "(none)" : "(no file)";
}

/* Makes a vocabulary of two words, of which `word` is the second. */
static struct vocab two_words(const char *word) {
    struct vocab vocab;
    char text[64];
    snprintf(text, sizeof text, "the\t9\n%s\t3\n", word);
    write_text("two-words", text);
    if (vocab_read(&vocab, "two-words") || file_remove("two-words")) abort();
    return vocab;
}

static void write_checkpoint(const char *run, uint64_t step, const char *word, const char *table) {
    struct vocab vocab = two_words(word);
    struct run_state state = {.progress = {.step = step}, .corpus = {vocab_fingerprint(&vocab), 1}};
    char name[CHECKPOINT_NAME], path[512];
    checkpoint_name(name, step, CHECKPOINT_IN_PLACE);
    snprintf(path, sizeof path, "%s/%s", run, name);
    if (directory_make(path) || state_write(path, &state)) abort();
    snprintf(path, sizeof path, "%s/%s/target.npy", run, name);
    write_text(path, table);
    snprintf(path, sizeof path, "%s/%s/context.npy", run, name);
    write_text(path, table);
    snprintf(path, sizeof path, "%s/latest", run);
    strcat(name, "\n");
    write_text(path, name);
    vocab_release(&vocab);
}

/* Writes a run with one checkpoint, at step 5. Every file of the run contains `word`. */
static inline void write_run(const char *run, const char *word) {
    struct vocab vocab = two_words(word);
    struct config config;
    char path[512], line[64];
    vocab.age = mem_zalloc(vocab.size, sizeof *vocab.age, "ages"); /* so that the run has an ages.txt, too */
    if (!vocab.age || directory_make(run) || config_init(&config) || config_set(&config, "corpus", "path", word, "here") ||
        run_files_write(run, &config, &vocab))
        abort();
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    snprintf(line, sizeof line, "{\"step\": 5, \"word\": \"%s\"}\n", word);
    write_text(path, line);
    write_checkpoint(run, 5, word, word);
    config_release(&config);
    vocab_release(&vocab);
}

/* Returns the names in a directory, separated by blanks. */
static const char *names_in(const char *directory) {
    static char seen[4096];
    char **names;
    int64_t count = directory_list(directory, &names);
    *seen = 0;
    for (int64_t i = 0; i < count; i++) strcat(strcat(seen, i ? " " : ""), names[i]);
    mem_free_texts(names, count);
    return seen;
}

#endif
