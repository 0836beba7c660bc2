#include "word2vec_flags.h"

#include "base/report.h"
#include "base/text.h"
#include "commands.h"

#include <string.h>

static const struct word2vec_flag all_flags[WORD2VEC_FLAGS] = {
#define KEY(program, flag, key, fallback, help) {program, flag, key, fallback, fallback},
#define OWN(program, flag, fallback, help)      {program, flag, NULL, fallback, fallback},
#include "word2vec_flags.def"
};
static const char *const names[] = {[WORD2VEC] = "word2vec", [WORD2PHRASE] = "word2phrase"};

static int is_flag(const struct word2vec_flag *flag, enum word2vec_program program, const char *name) {
    size_t length = strcspn(flag->name, " ");
    return flag->program == program && !strncmp(flag->name, name, length) && !name[length];
}

static struct word2vec_flag *find(struct word2vec_flag *flags, enum word2vec_program program, const char *name) {
    for (int i = 0; i < WORD2VEC_FLAGS; i++)
        if (is_flag(&flags[i], program, name)) return &flags[i];
    return NULL;
}

static int take_flag(struct word2vec_flag *flags, enum word2vec_program program, const char *name, const char *value) {
    struct word2vec_flag *flag = find(flags, program, name);
    if (!flag) return fail_usage("%s has no flag '%.100s'; see 'sptx-w2v help %s'", names[program], name, names[program]);
    if (!value) return fail_usage("%s: a value is missing behind %s", names[program], name);
    flag->value = value;
    return 0;
}

int word2vec_flags_read(struct word2vec_flag *flags, struct config *config, enum word2vec_program program, int argc, char **argv) {
    memcpy(flags, all_flags, sizeof all_flags);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) && take_flag(flags, program, argv[i], argv[i + 1]))
            return -1;
        else
            i += strncmp(argv[i], "--", 2) != 0;
    for (int i = 0; i < WORD2VEC_FLAGS; i++)
        if (flags[i].program == program && flags[i].key && *flags[i].value && command_set_key(config, flags[i].key, flags[i].value))
            return -1;
    for (int i = 1; i < argc; i++) {
        int foreign = strncmp(argv[i], "--", 2) ? i++, 0 : config_argument(config, argv[i]);
        if (foreign)
            return foreign < 0
                       ? -1
                       : fail_usage("%s has no flag '%.100s'; see 'sptx-w2v help %s'", names[program], argv[i], names[program]);
    }
    return 0;
}

const char *word2vec_flag(const struct word2vec_flag *flags, enum word2vec_program program, const char *name) {
    return find((struct word2vec_flag *)flags, program, name)->value;
}

int word2vec_flag_count(const struct word2vec_flag *flags, enum word2vec_program program, const char *name, uint64_t most,
                        uint64_t *count) {
    const char *text = word2vec_flag(flags, program, name);
    if (!text_count(text, count) && *count <= most) return 0;
    return fail_usage("%s: %s = '%.100s' is not a whole number from 0 to %llu", names[program], name, text,
                      (unsigned long long)most);
}
