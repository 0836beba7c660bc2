/* programs: see programs.h. */
#include "programs.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags, each followed by its value ---- */

static const struct program_flag all_flags[PROGRAM_FLAGS] = {
#define KEY(program, flag, key, fallback, help) {program, flag, key, fallback, fallback},
#define OWN(program, flag, fallback, help)      {program, flag, NULL, fallback, fallback},
#include "program_flags.def"
};
static const char *const names[] = {[WORD2VEC] = "word2vec", [WORD2PHRASE] = "word2phrase", [VOCAB_COUNT] = "vocab_count", [COOCCUR] = "cooccur",
                                    [SHUFFLE] = "shuffle", [GLOVE] = "glove"};

static int is_flag(const struct program_flag *flag, enum program program, const char *name) {
    size_t length = strcspn(flag->name, " ");
    return flag->program == program && !strncmp(flag->name, name, length) && !name[length];
}

static struct program_flag *find(struct program_flag *flags, enum program program, const char *name) {
    for (int i = 0; i < PROGRAM_FLAGS; i++)
        if (is_flag(&flags[i], program, name)) return &flags[i];
    return NULL;
}

static int take_flag(struct program_flag *flags, enum program program, const char *name, const char *value) {
    struct program_flag *flag = find(flags, program, name);
    if (!flag) return fail_usage("%s has no flag '%.100s'; see 'sptx-w2v help %s'", names[program], name, names[program]);
    if (!value) return fail_usage("%s: a value is missing behind %s", names[program], name);
    flag->value = value;
    return 0;
}

int program_flags_read(struct program_flag *flags, struct config *config, enum program program, int argc, char **argv) {
    const char *loud = program == WORD2VEC || program == WORD2PHRASE ? "-debug" : "-verbose";
    uint64_t level;
    memcpy(flags, all_flags, sizeof all_flags);
    if (config_init(config)) return -1;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) && take_flag(flags, program, argv[i], argv[i + 1]))
            return -1;
        else
            i += strncmp(argv[i], "--", 2) != 0;
    for (int i = 0; i < PROGRAM_FLAGS; i++)
        if (flags[i].program == program && flags[i].key && *flags[i].value && command_set_key(config, flags[i].key, flags[i].value))
            return -1;
    for (int i = 1; i < argc; i++) {
        int foreign = strncmp(argv[i], "--", 2) ? i++, 0 : config_argument(config, argv[i], "command line");
        if (foreign)
            return foreign < 0
                       ? -1
                       : fail_usage("%s has no flag '%.100s'; see 'sptx-w2v help %s'", names[program], argv[i], names[program]);
    }
    if (program_flag_count(flags, program, loud, 9, &level)) return -1;
    if (!level) report_quiet(1);
    return 0;
}

const char *program_flag(const struct program_flag *flags, enum program program, const char *name) {
    return find((struct program_flag *)flags, program, name)->value;
}

int program_flag_count(const struct program_flag *flags, enum program program, const char *name, uint64_t most,
                        uint64_t *count) {
    const char *text = program_flag(flags, program, name);
    if (!text_count(text, count) && *count <= most) return 0;
    return fail_usage("%s: %s = '%.100s' is not a whole number from 0 to %llu", names[program], name, text,
                      (unsigned long long)most);
}

/* ---- what several programs do ---- */

int program_set_path(struct config *config, const char *key, const char *value, const char *ending) {
    char quoted[4096];
    if ((size_t)snprintf(quoted, sizeof quoted, "\"%s%s\"", value, ending) >= sizeof quoted)
        return fail_usage("a path is longer than %zu bytes", sizeof quoted);
    return command_set_key(config, key, quoted);
}

int program_make_place(struct config *config, const struct directory_mark *mark, char **kept) {
    char *place = path_resolve(config->run_dir), *parent = place ? path_parent(place) : NULL, *run = place ? file_join(place, "run") : NULL;
    int there = run ? file_exists(place) : -1, own = there == 1 ? directory_mark_is_there(place, mark) : there;
    if (there == 1 && !own)
        own = fail("'%s' is there, and %s, which would remove it at the end, has not made it: move it away, or name another "
                   "directory by --run.dir", config->run_dir, mark->name);
    if (!there && (!parent || directory_make(parent) || directory_mark_make(place, mark))) own = -1;
    free(parent);
    if (own < 0) {
        mem_free(place, run);
        return -1;
    }
    *kept = place;
    free(config->run_dir);
    config->run_dir = run;
    return 0;
}

int program_leave_place(const char *place, const struct directory_mark *mark) {
    OWNED char *run = file_join(place, "run");
    int there = run ? file_exists(run) : -1;
    return there ? there < 0 ? -1 : 0 : directory_mark_remove(place, mark);
}

/* Writes the words that are frequent enough, as a vocabulary for corpus.vocab. */
static int copy_words(const char *path, struct lines *lines, uint64_t least, const char *but, int to) {
    struct token word, number;
    uint64_t count, written = 0;
    while (lines_next(lines)) {
        char line[4096], text[TEXT_BYTES] = "";
        if (!lines_token(lines, &word)) continue;
        if (!lines_token(lines, &number) || number.length >= sizeof text ||
            (memcpy(text, number.text, number.length), text_count(text, &count)))
            return fail("'%s' line %" PRIu64 ": wanted a word and its count", path, lines->number);
        if (count < least || (but && word.length == strlen(but) && !memcmp(word.text, but, word.length))) continue;
        int length = snprintf(line, sizeof line, "%.*s\t%" PRIu64 "\n", (int)word.length, word.text, count);
        if (length >= (int)sizeof line)
            return fail("'%s' line %" PRIu64 ": the word has more than 4,000 bytes", path, lines->number);
        if (retry_write_at(to, line, (uint64_t)length, written)) return fail_system("write in", spool_directory());
        written += (uint64_t)length;
    }
    return 0;
}

int program_read_words(const char *path, uint64_t least, const char *but, struct config *config, int *words) {
    struct lines lines;
    char copy[64], *text = lines_open(&lines, path);
    *words = text ? spool_open() : -1;
    int result = *words < 0 ? -1 : copy_words(path, &lines, least, but, *words);
    free(text);
    snprintf(copy, sizeof copy, "/proc/self/fd/%d", *words);
    return result ? -1 : command_set_key(config, "corpus.vocab", copy);
}

