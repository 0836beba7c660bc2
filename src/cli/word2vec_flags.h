/* word2vec_flags: reads the command lines of word2vec.c and word2phrase.c: flags, each followed by its value. */
#ifndef SPTX_WORD2VEC_FLAGS_H
#define SPTX_WORD2VEC_FLAGS_H

#include "config/config.h"

enum word2vec_program { WORD2VEC, WORD2PHRASE };

struct word2vec_flag {
    enum word2vec_program program;
    const char *name;     /* "-size", padded with blanks */
    const char *key;      /* key of the configuration that it sets; NULL: the command itself uses the value */
    const char *fallback; /* default value; "": none */
    const char *value;    /* the value given, or the default */
};

enum {
    WORD2VEC_FLAGS = 0
#define KEY(program, flag, key, fallback, help) +1
#define OWN(program, flag, fallback, help)      +1
#include "word2vec_flags.def"
};

/* Reads a command line. Writes each flag's value to flags[WORD2VEC_FLAGS], and to its key of `config`. Keys of the configuration
 * (--section.key=value) may follow the flags. Returns 0, or -1 after fail(). */
int word2vec_flags_read(struct word2vec_flag *flags, struct config *config, enum word2vec_program program, int argc, char **argv);

/* Returns the value of a flag of this program. */
const char *word2vec_flag(const struct word2vec_flag *flags, enum word2vec_program program, const char *name);
/* Reads a flag's value as a whole number up to `most`. Returns 0, or -1 after fail_usage(). */
int word2vec_flag_count(const struct word2vec_flag *flags, enum word2vec_program program, const char *name, uint64_t most, uint64_t *count);

#endif
