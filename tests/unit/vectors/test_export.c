#include "base/file.h"
#include "base/interrupt.h"
#include "tests/unit/small_run.h"
#include "vectors/export.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char words[] = "the\t40\nslo\xD1\x81\t30\n\xFFz\t20\n";
static const float targets[6] = {0.1f, -1e-30f, 3.4028235e38f, 1, -0.0f, 16777217.0f}, contexts[6] = {1, 2, 3, 4, 5, 6};

static struct small_run run;
static struct model model;
static char *out;

static int set_up(void **state) {
    small_run_make(&run, words, 3, 2, targets, contexts);
    out = small_path(run.directory, "out");
    return model_open(&model, run.directory);
}
static int tear_down(void **state) {
    model_close(&model);
    small_run_remove(&run);
    free(out);
    return 0;
}

static int write_targets(enum export_format format, const char *path) {
    return export_write(&(struct export){.model = &model, .view = VIEW_TARGET, .rows = model.rows}, format, path);
}

static char *exported(enum model_view view, enum export_format format, uint64_t *length) {
    assert_int_equal(export_write(&(struct export){.model = &model, .view = view, .rows = model.rows}, format, out), 0);
    char *bytes = file_read(out, length);
    assert_non_null(bytes);
    return bytes;
}

static void binary(void **state) {
    uint64_t length;
    char *bytes = exported(VIEW_TARGET, EXPORT_WORD2VEC_BIN, &length), *at = bytes;
    static const char *const wanted[] = {"the ", "slo\xD1\x81 ", "\xFFz "};
    assert_memory_equal(at, "3 2\n", 4);
    at += 4;
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(at, wanted[i], strlen(wanted[i]));
        at += strlen(wanted[i]);
        assert_memory_equal(at, targets + 2 * i, 8);
        assert_int_equal(at[8], '\n');
        at += 9;
    }
    assert_int_equal(at - bytes, length);
    free(bytes);
}

/* Each number in the text, read back, is the same float. */
static void text(void **state) {
    uint64_t length;
    char *bytes = exported(VIEW_TARGET, EXPORT_WORD2VEC_TEXT, &length), *at = bytes;
    assert_memory_equal(bytes, "3 2\nthe 0.100000001 -1e-30\n", 27);
    at = strchr(at, '\n') + 1;
    for (int i = 0; i < 3; i++) {
        at = strchr(at, ' ');
        for (int j = 0; j < 2; j++) {
            float value = strtof(at, &at);
            assert_memory_equal(&value, targets + 2 * i + j, sizeof value);
        }
        assert_int_equal(*at, '\n');
    }
    assert_int_equal(at + 1 - bytes, length);
    free(bytes);
}

/* Compares the whole exported file with `wanted`, byte for byte. */
static void assert_exported(enum model_view view, enum export_format format, const void *wanted, uint64_t length) {
    uint64_t got;
    char *bytes = exported(view, format, &got);
    assert_int_equal(got, length);
    assert_memory_equal(bytes, wanted, length);
    free(bytes);
}

/* glove-text is word2vec-text without its first line. */
static void glove(void **state) {
    static const char wanted[] = "the 1 2\nslo\xD1\x81 3 4\n\xFFz 5 6\n";
    assert_exported(VIEW_CONTEXT, EXPORT_GLOVE_TEXT, wanted, sizeof wanted - 1);
}

#define TWO_AS_INT "\2\0\0\0"
#define ONE        "\0\0\x80\x3F"
#define TWO        "\0\0\0\x40"
#define THREE      "\0\0\x40\x40"
#define FOUR       "\0\0\x80\x40"
#define FIVE       "\0\0\xA0\x40"
#define SIX        "\0\0\xC0\x40"

static void fvecs(void **state) {
    static const char wanted[] = TWO_AS_INT ONE TWO TWO_AS_INT THREE FOUR TWO_AS_INT FIVE SIX;
    assert_exported(VIEW_CONTEXT, EXPORT_FVECS, wanted, sizeof wanted - 1);
}

static void fbin(void **state) {
    static const char wanted[] = "\3\0\0\0" TWO_AS_INT ONE TWO THREE FOUR FIVE SIX;
    assert_exported(VIEW_CONTEXT, EXPORT_FBIN, wanted, sizeof wanted - 1);
}

/* The header is 115 bytes of JSON and five blanks, so that the numbers begin at a multiple of eight. */
static void safetensors(void **state) {
    static const char wanted[] =
        "\x78\0\0\0\0\0\0\0{\"__metadata__\":{\"rows\":\"in the order of vocab.tsv\"},\"context\":{\"dtype\":\"F32\","
        "\"shape\":[3,2],\"data_offsets\":[0,24]}}     " ONE TWO THREE FOUR FIVE SIX;
    assert_exported(VIEW_CONTEXT, EXPORT_SAFETENSORS, wanted, sizeof wanted - 1);
}

static void projector(void **state) {
    static const char vectors[] = "1\t2\n3\t4\n5\t6\n",
                      words_and_counts[] = "word\tcount\nthe\t40\nslo\xD1\x81\t30\n\xFFz\t20\n";
    assert_exported(VIEW_CONTEXT, EXPORT_PROJECTOR, vectors, sizeof vectors - 1);
    uint64_t length;
    char *path = small_path(run.directory, "out.metadata.tsv"), *bytes = file_read(path, &length);
    assert_int_equal(length, sizeof words_and_counts - 1);
    assert_memory_equal(bytes, words_and_counts, length);
    free(bytes);
    free(path);
}

static int names_with_out(void) {
    char **names;
    int found = 0;
    int64_t count = directory_list(run.directory, &names);
    for (int64_t i = 0; i < count; i++) found += strstr(names[i], "out") != NULL;
    mem_free_texts(names, count);
    return found;
}

/* If one of the two files cannot be put in place, the other is not put in place either. */
static void projector_is_atomic(void **state) {
    char *beside = small_path(run.directory, "out.metadata.tsv");
    assert_int_equal(mkdir(beside, 0777), 0);
    assert_failed_with(write_targets(EXPORT_PROJECTOR, out), "out.metadata.tsv': it is no plain file");
    assert_int_equal(rmdir(beside), 0);
    assert_int_equal(mkdir(out, 0777), 0);
    assert_failed_with(write_targets(EXPORT_PROJECTOR, out), "/out': it is no plain file");
    assert_int_equal(rmdir(out), 0);
    assert_int_equal(names_with_out(), 0);
    free(beside);
}

/* normsum is u/|u| + v/|v|, and a row of zeros stays zeros: (3,4) + (0,0); (0,0) + (0,0); (0,0) + (0,-2). */
static void normsum_of_zeros(void **state) {
    static const float some[6] = {3, 4, 0, 0, 0, 0}, others[6] = {0, 0, 0, 0, 0, -2};
    static const float wanted[6] = {0.6f, 0.8f, 0, 0, 0, -1};
    struct small_run zeros;
    struct model with_zeros;
    struct file_map map;
    small_run_make(&zeros, words, 3, 2, some, others);
    assert_int_equal(model_open(&with_zeros, zeros.directory), 0);
    assert_int_equal(export_write(&(struct export){.model = &with_zeros, .view = VIEW_NORMSUM, .rows = with_zeros.rows}, EXPORT_FBIN, out), 0);
    assert_int_equal(file_map_open(&map, out), 0);
    assert_int_equal(map.size, 8 + sizeof wanted);
    for (int i = 0; i < 6; i++) {
        float value;
        memcpy(&value, map.data + 8 + 4 * i, sizeof value);
        assert_true(fabsf(value - wanted[i]) < 1e-7f); /* false for NaN */
    }
    file_map_close(&map);
    model_close(&with_zeros);
    small_run_remove(&zeros);
}

static void plain_npy(void **state) {
    struct npy npy;
    static const float sums[6] = {1.1f, 2, 3.4028235e38f, 5, 5, 16777222.0f};
    assert_int_equal(export_write(&(struct export){.model = &model, .view = VIEW_SUM, .rows = model.rows}, EXPORT_NPY, out), 0);
    assert_int_equal(npy_open(&npy, out), 0);
    assert_int_equal(npy.rows, 3);
    assert_int_equal(npy.record, 8);
    assert_int_equal(npy.map.size, npy.data + 24);
    for (uint64_t row = 0; row < 3; row++) {
        const float *values = npy_row(&npy, npy_find(&npy, "weights"), row);
        for (int i = 0; i < 2; i++) assert_float_equal(values[i], sums[2 * row + (uint64_t)i], fabsf(values[i]) * 1e-7);
    }
    npy_close(&npy);
}

/* The run has more rows than one write takes. */
static void many_rows(void **state) {
    enum { MANY = 30000, DIM = 64 };
    struct small_run large;
    struct model many;
    char *vocabulary = malloc(MANY * 16), *at = vocabulary;
    float *rows = malloc(MANY * DIM * sizeof *rows);
    for (int i = 0; i < MANY; i++) at += sprintf(at, "w%d\t%d\n", i, MANY - i);
    for (int i = 0; i < MANY * DIM; i++) rows[i] = (float)i;
    small_run_make(&large, vocabulary, MANY, DIM, rows, rows);
    assert_int_equal(model_open(&many, large.directory), 0);
    assert_int_equal(export_write(&(struct export){.model = &many, .view = VIEW_CONTEXT, .rows = many.rows}, EXPORT_NPY, out), 0);
    struct file_map map;
    assert_int_equal(file_map_open(&map, out), 0);
    assert_memory_equal(map.data + map.size - MANY * DIM * sizeof *rows, rows, MANY * DIM * sizeof *rows);
    file_map_close(&map);
    model_close(&many);
    small_run_remove(&large);
    free(vocabulary);
    free(rows);
}

/* The old file stays until the new one is whole, and no partial file is left. */
static void atomic(void **state) {
    uint64_t length;
    struct rlimit limit, whole;
    small_write(run.directory, "out", "before", 6);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &whole);
    limit = (struct rlimit){16, whole.rlim_max}; /* imitates a disk that is full after this number of bytes */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int result = write_targets(EXPORT_NPY, out);
    setrlimit(RLIMIT_FSIZE, &whole);
    assert_failed_with(result, "cannot write");
    char *bytes = file_read(out, &length);
    assert_string_equal(bytes, "before");
    free(bytes);
    assert_int_equal(names_with_out(), 1);
    free(exported(VIEW_TARGET, EXPORT_NPY, &length));
    assert_int_equal(names_with_out(), 1);
    assert_true(length > 24);
}

/* Ctrl-C removes the half-written file, and the old file stays. */
static void interrupted(void **state) {
    struct interrupt watch;
    uint64_t length;
    small_write(run.directory, "out", "before", 6);
    interrupt_watch(&watch);
    raise(SIGINT);
    int result = write_targets(EXPORT_NPY, out);
    interrupt_end(&watch);
    assert_failed_with(result, "stopped by a signal");
    assert_int_equal(names_with_out(), 1);
    char *bytes = file_read(out, &length);
    assert_string_equal(bytes, "before");
    free(bytes);
}

static void places(void **state) {
    assert_int_equal(write_targets(EXPORT_NPY, "/dev/null"), 0);
    assert_failed_with(write_targets(EXPORT_PROJECTOR, "/dev/null"), "no plain file but a device");
    assert_failed_with(write_targets(EXPORT_NPY, "/dev/full"), "No space left");
    assert_failed_with(write_targets(EXPORT_NPY, run.directory), "no plain file but a directory");
    assert_failed_with(write_targets(EXPORT_NPY, "/nonexistent/out"), "/nonexistent/out");
    assert_failed_with(export_format_named("glove"), "'glove' is not a format");
    assert_int_equal(export_format_named("npy"), EXPORT_NPY);
    assert_int_equal(export_format_named("projector"), EXPORT_PROJECTOR);
}

/* A vocabulary may contain words with white space. Formats that separate words by white space refuse them; a cell of the
 * projector's TSV may contain a blank. */
static void words_refused(void **state) {
    static const enum export_format lines[] = {EXPORT_WORD2VEC_BIN, EXPORT_WORD2VEC_TEXT, EXPORT_GLOVE_TEXT},
                                    wordless[] = {EXPORT_NPY, EXPORT_FVECS, EXPORT_FBIN, EXPORT_SAFETENSORS};
    char *word = model.vocab.words.bytes + words_offset(&model.vocab.words, 1);
    static const char bad[] = " \n\t\r";
    for (size_t i = 0; i < sizeof bad - 1; i++) {
        word[2] = bad[i];
        for (int j = 0; j < 3; j++) {
            assert_failed_with(write_targets(lines[j], out), "holds white space");
            assert_false(file_exists(out));
        }
        for (int j = 0; j < 4; j++) {
            assert_int_equal(write_targets(wordless[j], out), 0);
            assert_int_equal(file_remove(out), 0);
        }
        if (bad[i] == ' ') {
            assert_int_equal(write_targets(EXPORT_PROJECTOR, out), 0);
            assert_int_equal(file_remove(out), 0);
        } else {
            assert_failed_with(write_targets(EXPORT_PROJECTOR, out), "holds a TAB or a line end");
            assert_false(file_exists(out));
        }
    }
}

int main(void) {
#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_RUN(binary),           ON_RUN(text),          ON_RUN(glove),
        ON_RUN(plain_npy),        ON_RUN(fvecs),         ON_RUN(fbin),
        ON_RUN(safetensors),      ON_RUN(projector),     ON_RUN(projector_is_atomic),
        ON_RUN(normsum_of_zeros), ON_RUN(many_rows),     ON_RUN(atomic), ON_RUN(interrupted),
        ON_RUN(places),   ON_RUN(words_refused),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
