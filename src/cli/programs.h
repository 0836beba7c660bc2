/* programs: reads the flags and files of word2vec.c's and GloVe's programs, for the commands of these names (cmd_word2vec.c, cmd_glove.c). */
#ifndef SPTX_PROGRAMS_H
#define SPTX_PROGRAMS_H

#include "base/directory.h"
#include "config/config.h"

/* ---- flags, each followed by its value (program_flags.def) ---- */

enum program { WORD2VEC, WORD2PHRASE, VOCAB_COUNT, COOCCUR, SHUFFLE, GLOVE };

struct program_flag {
    enum program program;
    const char *name;     /* "-size", padded with blanks */
    const char *key;      /* key of the configuration that the flag sets; NULL: the command itself uses the value */
    const char *fallback; /* default value; "": none */
    const char *value;    /* the value given, or the default */
};

enum {
    PROGRAM_FLAGS = 0
#define KEY(program, flag, key, fallback, help) +1
#define OWN(program, flag, fallback, help)      +1
#include "program_flags.def"
};

/* Reads a command line: writes each flag's value to flags[PROGRAM_FLAGS], and to the flag's key in `config`, which begins with the defaults. Keys
 * (--section.key=value) may follow the flags. -debug 0 and -verbose 0 make the program quiet. Returns 0, or -1 after fail(). */
int program_flags_read(struct program_flag *flags, struct config *config, enum program program, int argc, char **argv);
/* Returns the value of one of this program's flags. */
const char *program_flag(const struct program_flag *flags, enum program program, const char *name);
/* Reads a flag's value as a whole number up to `most`. Returns 0, or -1 after fail_usage(). */
int program_flag_count(const struct program_flag *flags, enum program program, const char *name, uint64_t most, uint64_t *count);

/* ---- what several programs do; each returns 0, or -1 after fail() ---- */

/* Sets a key to a path followed by an ending. */
int program_set_path(struct config *config, const char *key, const char *value, const char *ending);
/* Reads a file of lines word, blank, count, and sets corpus.vocab to a copy of the lines whose word occurs `least` times and is not `but` (NULL:
 * any). *words: descriptor of this nameless copy, which the caller closes; -1: none. */
int program_read_words(const char *path, uint64_t least, const char *but, struct config *config, int *words);
/* Makes the directory in which the run is trained, and which is removed at the end: run.dir with a mark, which an earlier, stopped call may have
 * left. Sets run.dir to a directory in it, and *place to its path, which the caller frees. */
int program_make_place(struct config *config, const struct directory_mark *mark, char **place);
/* Removes that directory, unless it still contains the run of a stopped call, or the encoded corpus. */
int program_leave_place(const char *place, const struct directory_mark *mark);

#endif
