/* scratch: makes a fresh directory for a test, writes files into it, and opens them as a corpus. */
#include "corpus/corpus.h"
#include "base/file.h"
#include "base/report.h"
#include "tests/fresh_directory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[256];
static char scratch_paths[64][512];

static int scratch_make(void **state) {
    report_clear();
    report_quiet(1);
    memset(scratch_paths, 0, sizeof scratch_paths);
    return fresh_directory(scratch, sizeof scratch, "scratch");
}

static int scratch_remove(void **state) {
    report_clear();
    return directory_remove_tree(scratch);
}

/* Makes a scratch directory, which is the working directory until scratch_leave(). */
static char *scratch_before; /* the working directory before the test */
static inline int scratch_enter(void **state) {
    scratch_before = getcwd(NULL, 0);
    return !scratch_before || scratch_make(state) || chdir(scratch) ? -1 : 0;
}
static inline int scratch_leave(void **state) {
    int result = chdir(scratch_before);
    free(scratch_before);
    return scratch_remove(state) || result ? -1 : 0;
}

/* Returns the path of a name in the scratch directory. The memory is valid until the test ends. */
static char *in_scratch(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    for (int i = 0; i < 64; i++) {
        if (!*scratch_paths[i]) strcpy(scratch_paths[i], path);
        if (!strcmp(scratch_paths[i], path)) return scratch_paths[i];
    }
    abort();
}

static char *scratch_file(const char *name, const void *bytes, uint64_t length) {
    char *path = in_scratch(name);
    FILE *file = fopen(path, "wb");
    if (!file || (length && fwrite(bytes, length, 1, file) != 1) || fclose(file)) {
        perror(path);
        abort();
    }
    return path;
}

static inline char *scratch_text(const char *name, const char *text) {
    return scratch_file(name, text, strlen(text));
}

static inline struct corpus *scratch_corpus(char *path, uint64_t block) {
    struct corpus *corpus = corpus_open(&path, 1);
    if (corpus && block) corpus_set_block(corpus, block);
    return corpus;
}

/* A small random generator for tests, which shares no code with the program's. */
static uint64_t scratch_seed = 1;
static inline uint32_t scratch_random(uint32_t below) {
    scratch_seed = scratch_seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((scratch_seed >> 33) % below);
}

/* Runs work(path) and returns its result. If the test runs as root, work() runs as a user without rights. */
static inline int without_rights(int (*work)(const char *), const char *path) {
    int root = geteuid() == 0;
    if (root && seteuid(65534)) return 77;
    int result = work(path);
    if (root && seteuid(0)) abort();
    return result;
}
