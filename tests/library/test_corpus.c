/* Tests corpora that a program fills block by block. Uses only sptx.h and libsptx.so, as any user's program does. */
#define _GNU_SOURCE
#include "../testing.h"

#include "sptx.h"

#include "open_cpu.h"

enum { SENTENCES = 300, WORDS = 4 };

static char directory[64];

static int make_directory(void **state) {
    strcpy(directory, "/tmp/sptx-corpus.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

/* Returns word j of sentence i, as a number. */
static int number(int i, int j) {
    return (i * (j + 2) + j * j) % 17;
}

/* Settings of every run in this file. */
#define SMALL                                                                                                          \
    "corpus.min_count=1", "model.dim=4", "train.epochs=2", "train.update=batch", "train.batch=64", "negatives.count=2"

/* Opens a corpus of a format, for a run with the name `run`. */
static enum sptx_status open_corpus(struct sptx_context *context, const char *format, const char *run,
                                    struct sptx_corpus **corpus) {
    char as[64], dir[128];
    snprintf(as, sizeof as, "corpus.format=%s", format);
    snprintf(dir, sizeof dir, "run.dir=%s/%s", directory, run);
    const char *settings[] = {as, dir, SMALL, "examples.mode=auto"};
    return sptx_corpus_open(context, NULL, settings, sizeof settings / sizeof *settings, corpus);
}

static void read_vectors(struct sptx_context *context, const char *name, float *out) {
    char path[128];
    struct sptx_run *run;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(sptx_run_open(context, path, &run), SPTX_OK);
    assert_int_equal(sptx_run_rows(run), 17);
    assert_int_equal(sptx_run_vectors(run, "target", NULL, 17, out), SPTX_OK);
    sptx_run_close(run);
}

static void train_on_file(struct sptx_context *context) {
    char path[128], of[160], dir[128];
    snprintf(path, sizeof path, "%s/text", directory);
    snprintf(of, sizeof of, "corpus.path=%s", path);
    snprintf(dir, sizeof dir, "run.dir=%s/file", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < SENTENCES; i++)
        for (int j = 0; j < WORDS; j++) fprintf(file, "%d%c", number(i, j), j + 1 < WORDS ? ' ' : '\n');
    fclose(file);
    const char *settings[] = {of, dir, SMALL};
    assert_int_equal(sptx_train(context, NULL, settings, sizeof settings / sizeof *settings, 0, NULL, NULL), SPTX_OK);
}

/* Tokens are passed as integers of both widths, as text, and by a dictionary in another order. Each way must give the vectors of a file of the
 * same data. */
static void every_kind_of_tokens_is_the_file(void **state) {
    static const char *const runs[] = {"numbers32", "numbers64", "bytes", "known"};
    struct sptx_context *context = open_cpu(2);
    int32_t narrow[WORDS], offsets[WORDS + 1];
    int64_t wide[WORDS], backwards[17];
    const uint64_t starts[] = {0, 1, WORDS}, whole[] = {0, WORDS};
    float wanted[17 * 4], got[17 * 4];
    char text[64];
    train_on_file(context);
    read_vectors(context, "file", wanted);
    for (int i = 0; i < 17; i++) backwards[i] = 16 - i;
    for (int kind = 0; kind < 4; kind++) {
        struct sptx_corpus *corpus;
        const struct sptx_tokens dictionary = {SPTX_NUMBERS, 64, backwards, NULL, 17};
        assert_int_equal(open_corpus(context, "text", runs[kind], &corpus), SPTX_OK);
        assert_int_equal(sptx_corpus_words(corpus, 0, &dictionary), SPTX_OK);
        for (int i = 0; i < SENTENCES; i++) {
            int length = 0;
            for (int j = 0; j < WORDS; j++) {
                narrow[j] = number(i, j);
                wide[j] = kind == 3 ? 16 - number(i, j) : number(i, j);
                offsets[j] = length;
                length += sprintf(text + length, "%d", number(i, j));
                offsets[j + 1] = length;
            }
            const struct sptx_tokens tokens[] = {{SPTX_NUMBERS, 32, narrow, NULL, WORDS},
                                                 {SPTX_NUMBERS, 64, wide, NULL, WORDS},
                                                 {SPTX_TEXT, 32, text, offsets, WORDS},
                                                 {SPTX_KNOWN, 64, wide, NULL, WORDS}};
            assert_int_equal(sptx_corpus_sentences(corpus, &tokens[kind], whole, 1, NULL), SPTX_OK);
            assert_int_equal(sptx_corpus_sentences(corpus, &tokens[kind], starts, 0, NULL), SPTX_OK);
        }
        enum sptx_status status = sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL);
        if (status) fail_msg("%s", sptx_error(context));
        if (kind == 2) assert_int_equal(sptx_corpus_train(corpus, SPTX_OVERWRITE, NULL, NULL), SPTX_OK); /* a corpus keeps its data */
        sptx_corpus_close(corpus);
        read_vectors(context, runs[kind], got);
        assert_memory_equal(got, wanted, sizeof got);
    }
    sptx_close(context);
}

/* Edges are given in two blocks, once as integers and once as numbers of words in a dictionary. Each way must give the vectors of
 * training on the same edges in a file. */
static void edges_are_the_file(void **state) {
    static const char *const runs[] = {"graph", "dictionary"};
    enum { EDGES = 60 };
    struct sptx_context *context = open_cpu(2);
    char path[128], of[160], dir[128];
    int32_t from[EDGES], to[EDGES];
    int64_t backwards[17];
    double weights[EDGES];
    float wanted[17 * 4], got[17 * 4];
    snprintf(path, sizeof path, "%s/edges", directory);
    snprintf(of, sizeof of, "corpus.path=%s", path);
    snprintf(dir, sizeof dir, "run.dir=%s/edges-file", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < EDGES; i++) {
        from[i] = i % 17;
        to[i] = number(i, i % 5);
        weights[i] = i % 4;
        fprintf(file, "%d %d %g\n", from[i], to[i], weights[i]);
    }
    fclose(file);
    const char *settings[] = {of, dir, "corpus.format=graph", SMALL};
    assert_int_equal(sptx_train(context, NULL, settings, sizeof settings / sizeof *settings, 0, NULL, NULL), SPTX_OK);
    read_vectors(context, "edges-file", wanted);
    for (int i = 0; i < 17; i++) backwards[i] = 16 - i;
    for (int known = 0; known < 2; known++) {
        struct sptx_corpus *corpus;
        const struct sptx_tokens dictionary = {SPTX_NUMBERS, 64, backwards, NULL, 17};
        assert_int_equal(open_corpus(context, "graph", runs[known], &corpus), SPTX_OK);
        assert_int_equal(sptx_corpus_words(corpus, 0, &dictionary), SPTX_OK);
        for (int i = 0; i < EDGES && known; i++) from[i] = 16 - from[i], to[i] = 16 - to[i];
        for (int half = 0; half < EDGES; half += EDGES / 2) {
            const struct sptx_tokens ends[2] = {{known ? SPTX_KNOWN : SPTX_NUMBERS, 32, from + half, NULL, EDGES / 2},
                                                {known ? SPTX_KNOWN : SPTX_NUMBERS, 32, to + half, NULL, EDGES / 2}};
            assert_int_equal(sptx_corpus_edges(corpus, &ends[0], &ends[1], weights + half), SPTX_OK);
        }
        if (sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL)) fail_msg("%s", sptx_error(context));
        sptx_corpus_close(corpus);
        read_vectors(context, runs[known], got);
        assert_memory_equal(got, wanted, sizeof got);
    }
    sptx_close(context);
}

#define REFUSED(call, words)                                                                                           \
    do {                                                                                                               \
        assert_int_equal(call, SPTX_USAGE);                                                                            \
        if (!strstr(sptx_error(context), words)) fail_msg("'%s' lacks '%s'", sptx_error(context), words);              \
    } while (0)

static void wrong_calls_are_told(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_corpus *corpus, *pairs, *other;
    const int32_t ids[] = {0, 1, 2};
    const uint64_t past[] = {0, 4}, falling[] = {2, 1}, one[] = {0, 1};
    const struct sptx_tokens good = {SPTX_NUMBERS, 32, ids, NULL, 3}, odd = {3, 32, ids, NULL, 3},
                             bits = {SPTX_NUMBERS, 16, ids, NULL, 3}, lost = {SPTX_TEXT, 32, ids, NULL, 3},
                             two = {SPTX_NUMBERS, 32, ids, NULL, 2}, unknown = {SPTX_KNOWN, 32, ids, NULL, 3};
    const char *path[] = {"corpus.path=x"}, *wrong[] = {"corpus.formt=text"};
    REFUSED(sptx_corpus_open(context, NULL, path, 1, &corpus), "corpus.path = x");
    assert_null(corpus);
    REFUSED(sptx_corpus_open(context, NULL, wrong, 1, &corpus), "formt");
    REFUSED(sptx_corpus_open(context, NULL, NULL, 0, NULL), "into a pointer");
    assert_int_equal(open_corpus(context, "text", "run", &corpus), SPTX_OK);
    assert_int_equal(open_corpus(context, "pairs", "run", &pairs), SPTX_OK);
    assert_int_equal(open_corpus(context, "text", "run", &other), SPTX_OK);
    REFUSED(sptx_corpus_sentences(corpus, NULL, one, 1, NULL), "tokens are NULL");
    REFUSED(sptx_corpus_sentences(corpus, &odd, one, 1, NULL), "of kind 3");
    REFUSED(sptx_corpus_sentences(corpus, &bits, one, 1, NULL), "have 16 bits");
    REFUSED(sptx_corpus_sentences(corpus, &lost, one, 1, NULL), "lie at NULL");
    REFUSED(sptx_corpus_sentences(corpus, &good, NULL, 1, NULL), "starts are NULL");
    REFUSED(sptx_corpus_sentences(corpus, &good, one, 1, &two), "1 lists have 2 names");
    REFUSED(sptx_corpus_words(corpus, 2, &good), "of items (lists = 0) or of lists (1)");
    REFUSED(sptx_corpus_words(corpus, 0, &unknown), "words are text or numbers");
    REFUSED(sptx_corpus_pairs(corpus, &good, &good, NULL), "given as sentences");
    REFUSED(sptx_corpus_sentences(pairs, &good, one, 1, NULL), "given as pairs");
    REFUSED(sptx_corpus_pairs(pairs, &good, &two, NULL), "3 lists and 2 items");
    REFUSED(sptx_corpus_edges(pairs, &good, &good, NULL), "given as pairs");
    struct sptx_corpus *graph;
    const double weights[] = {1, 2, -3};
    assert_int_equal(open_corpus(context, "graph", "run", &graph), SPTX_OK);
    REFUSED(sptx_corpus_sentences(graph, &good, one, 1, NULL), "given as edges");
    REFUSED(sptx_corpus_pairs(graph, &good, &good, NULL), "given as edges");
    REFUSED(sptx_corpus_edges(graph, &good, &two, NULL), "3 nodes and 2 nodes are no edges");
    REFUSED(sptx_corpus_edges(graph, NULL, &good, NULL), "from are NULL");
    assert_int_equal(sptx_corpus_edges(graph, &good, &(struct sptx_tokens){SPTX_NUMBERS, 32, ids + 1, NULL, 2}, NULL), SPTX_USAGE);
    assert_int_equal(sptx_corpus_edges(graph, &good,
                                       &(struct sptx_tokens){SPTX_NUMBERS, 32, (const int32_t[]){1, 2, 0}, NULL, 3},
                                       NULL),
                     SPTX_OK);
    REFUSED(sptx_corpus_edges(graph, &good, &good, weights), "some edges have weights, and others have none");
    const struct sptx_tokens holes = {SPTX_TEXT, 32, "ab", (const int32_t[]){0, 1, 1, 2}, 3};
    assert_int_equal(sptx_corpus_pairs(pairs, &good, &holes, NULL), SPTX_OK); /* the pair without an item is left out */
    const struct sptx_tokens tab = {SPTX_TEXT, 32, "a\tb", (const int32_t[]){0, 1, 2, 3}, 3};
    assert_int_equal(sptx_corpus_pairs(pairs, &good, &tab, NULL), SPTX_FAILED);
    assert_non_null(strstr(sptx_error(context), "has a tab or a line's end in it"));
    assert_int_equal(sptx_corpus_edges(graph, &good, &holes, NULL), SPTX_FAILED); /* fails after adding the first edges */
    assert_non_null(strstr(sptx_error(context), "is empty"));
    REFUSED(sptx_corpus_edges(graph, &good, &good, NULL), "the corpus is closed");
    sptx_corpus_close(graph);
    REFUSED(sptx_corpus_sentences(corpus, &good, past, 1, NULL), "from token 0 to 4 of 3");
    REFUSED(sptx_corpus_sentences(corpus, &good, falling, 1, NULL), "from token 2 to 1");
    REFUSED(sptx_corpus_sentences(corpus, &unknown, one, 1, NULL), "word 0 of a dictionary of 0");
    REFUSED(sptx_corpus_train(other, (enum sptx_beginning)7, NULL, NULL), "beginning = 7 is not one of SPTX_ANEW");
    assert_int_equal(sptx_corpus_sentences(other, &good, one, 1, NULL), SPTX_OK); /* the refused call left the corpus open */
    REFUSED(sptx_corpus_train(other, (enum sptx_beginning)-1, NULL, NULL), "is not one of SPTX_ANEW");
    struct sptx_tuned tuned;
    volatile double zero = 0;
    for (int i = 0; i < 3; i++) {
        struct sptx_tune_options options = SPTX_TUNE_OPTIONS;
        options.trials = 1;
        options.minutes = (const double[]){0.0 / zero, 1 / zero, -1}[i];
        REFUSED(sptx_corpus_tune(other, &options, NULL, NULL, &tuned), "is not a number from 0 to 1e+06");
    }
    assert_int_equal(sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL), SPTX_FAILED); /* the corpus is empty */
    assert_int_equal(sptx_corpus_sentences(NULL, &good, one, 1, NULL), SPTX_USAGE);
    assert_int_equal(sptx_corpus_pairs(NULL, &good, &good, NULL), SPTX_USAGE);
    assert_int_equal(sptx_corpus_words(NULL, 0, &good), SPTX_USAGE);
    assert_int_equal(sptx_corpus_train(NULL, SPTX_ANEW, NULL, NULL), SPTX_USAGE);
    sptx_corpus_close(NULL);
    sptx_corpus_close(corpus);
    sptx_corpus_close(pairs);
    sptx_corpus_close(other);
    sptx_close(context);
}

/* Lines of text are passed in blocks that end anywhere between two words, with one thread and with three. The vectors must be those of a file. */
static void lines_of_text_are_the_file(void **state) {
    static char text[SENTENCES * WORDS * 4];
    float wanted[17 * 4], got[17 * 4];
    uint64_t length = 0;
    struct sptx_context *context = open_cpu(2);
    train_on_file(context);
    read_vectors(context, "file", wanted);
    sptx_close(context);
    for (int i = 0; i < SENTENCES * WORDS; i++)
        length += (uint64_t)sprintf(text + length, "%d%s", number(i / WORDS, i % WORDS), (i + 1) % WORDS ? "  " : "\n");
    for (unsigned threads = 1; threads < 4; threads += 2) {
        struct sptx_corpus *corpus;
        context = open_cpu(threads);
        assert_int_equal(open_corpus(context, "text", threads == 1 ? "one" : "three", &corpus), SPTX_OK);
        for (uint64_t from = 0, end; from < length; from = end) {
            for (end = from + 200 * threads; end < length && text[end] != ' ' && text[end] != '\n'; end++) {}
            if (end > length) end = length;
            assert_int_equal(sptx_corpus_text(corpus, text + from, end - from), SPTX_OK);
        }
        if (sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL)) fail_msg("%s", sptx_error(context));
        sptx_corpus_close(corpus);
        read_vectors(context, threads == 1 ? "one" : "three", got);
        assert_memory_equal(got, wanted, sizeof got);
        sptx_close(context);
    }
}

/* Counts words first, and then sets the next training by the counts. One call returns the words of several rows. */
static void what_a_corpus_has_is_counted(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_corpus *corpus;
    struct sptx_run *run;
    struct sptx_counted counted = {.size = sizeof counted};
    struct sptx_tokens words;
    uint64_t offsets[5], counts[4];
    char path[128];
    assert_int_equal(open_corpus(context, "text", "counted", &corpus), SPTX_OK);
    assert_int_equal(sptx_corpus_counted(corpus, &counted), SPTX_OK);
    assert_true(!counted.words.count && !counted.sentences && !counted.tokens);
    assert_int_equal(sptx_corpus_text(corpus, " the cat\tsat\n\n the  dog\r\nthe", 28), SPTX_OK);
    assert_int_equal(sptx_corpus_text(corpus, " cat", 4), SPTX_OK); /* the same line */
    assert_int_equal(sptx_corpus_text(corpus, NULL, 0), SPTX_OK);
    assert_int_equal(sptx_corpus_text(corpus, NULL, 0), SPTX_OK);
    assert_int_equal(sptx_corpus_counted(corpus, &counted), SPTX_OK);
    assert_true(counted.words.count == 4 && counted.sentences == 4 && counted.tokens == 7);
    const uint64_t *at = counted.words.offsets, wanted[] = {3, 2, 1, 1};
    assert_memory_equal((const char *)counted.words.data + at[0], "the\0cat\0sat\0dog", 16);
    assert_memory_equal(counted.counts, wanted, sizeof wanted);
    REFUSED(sptx_corpus_text(corpus, NULL, 3), "NULL");
    REFUSED(sptx_corpus_counted(corpus, NULL), "struct sptx_counted");
    const char *settings[] = {"corpus.min_count=2", "model.dim=8"}, *others[] = {"corpus.format=lists"}, *none[] = {"no.key=1"};
    REFUSED(sptx_corpus_set(corpus, others, 1), "change how data is read");
    REFUSED(sptx_corpus_set(corpus, none, 1), "there is no section");
    assert_int_equal(sptx_corpus_set(corpus, settings, 2), SPTX_OK);
    if (sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL)) fail_msg("%s", sptx_error(context));
    snprintf(path, sizeof path, "%s/counted", directory);
    assert_int_equal(sptx_run_open(context, path, &run), SPTX_OK);
    assert_true(sptx_run_rows(run) == 2 && sptx_run_dim(run) == 8);
    assert_int_equal(sptx_run_words(run, 0, 2, offsets, counts, &words), SPTX_OK);
    assert_memory_equal((const char *)words.data + offsets[0], "the\0cat", 8);
    assert_true(words.count == 2 && offsets[1] - offsets[0] == 4 && counts[0] == 3 && counts[1] == 2);
    assert_int_equal(sptx_run_words(run, 2, 0, offsets, NULL, &words), SPTX_OK);
    REFUSED(sptx_run_words(run, 1, 2, offsets, NULL, &words), "there are 2");
    sptx_run_close(run);
    sptx_corpus_close(corpus);
    assert_int_equal(open_corpus(context, "lists", "lists", &corpus), SPTX_OK);
    REFUSED(sptx_corpus_text(corpus, "a b", 3), "given as sentences");
    sptx_corpus_close(corpus);
    sptx_close(context);
}

static char said[256];
static void hear(void *user, const char *text) {
    snprintf(said, sizeof said, "%s", text);
}

/* Rows of fields are examined as the lines of a file are. The line about the result is stored in the run's config.ini. */
static void rows_are_looked_at(void **state) {
    const struct sptx_context_options machine = {sizeof machine, "cpu", 1, 0, 0, hear, NULL};
    struct sptx_context *context;
    struct sptx_corpus *corpus;
    struct sptx_looked looked = {.size = sizeof looked};
    struct sptx_field fields[60];
    static char names[60][8];
    const char *const called[] = {"item", "x", "user"};
    char path[128], line[512] = "";
    const char *none[] = {"model.dim=4", "corpus.min_count=1", "train.epochs=1", NULL};
    char dir[128];
    snprintf(dir, sizeof dir, "run.dir=%s/looked", directory);
    none[3] = dir;
    for (int i = 0; i < 60; i++) {
        sprintf(names[i], "%c%d", "axb"[i % 3], i % 3 == 1 ? 1 : i * 7 % 5);
        fields[i] = (struct sptx_field){names[i], strlen(names[i]), SPTX_FIELD_TEXT, 0};
    }
    const struct sptx_rows rows = {sizeof rows, fields, 20, 3, called, "the rows"}, empty = {sizeof rows, fields, 0, 3, NULL, "nothing"};
    assert_int_equal(sptx_open(&context, &machine), SPTX_OK);
    assert_int_equal(sptx_corpus_open(context, NULL, none, 4, &corpus), SPTX_OK);
    REFUSED(sptx_corpus_look(corpus, &empty, &looked), "nothing: there are no rows");
    REFUSED(sptx_corpus_look(corpus, &rows, NULL), "with their sizes");
    REFUSED(sptx_corpus_say(corpus, "two\nlines"), "one line");
    if (sptx_corpus_look(corpus, &rows, &looked)) fail_msg("%s", sptx_error(context));
    assert_string_equal(looked.format, "pairs");
    assert_true(looked.column[0] == 2 && looked.column[1] == 0 && looked.column[2] == -1 && !looked.events);
    assert_string_equal(said, "columns    list = user, item = item, rating = none of 3; the rows");
    for (int i = 0; i < 60; i += 3) {
        const uint64_t whole[] = {0, 2};
        const struct sptx_tokens user = {SPTX_TEXT, 64, names[i + 2], whole, 1}, item = {SPTX_TEXT, 64, names[i], whole, 1};
        assert_int_equal(sptx_corpus_pairs(corpus, &user, &item, NULL), SPTX_OK);
    }
    REFUSED(sptx_corpus_look(corpus, &rows, &looked), "before the corpus has some of it");
    char before[256];
    strcpy(before, said);
    if (sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL)) fail_msg("%s", sptx_error(context));
    sptx_corpus_close(corpus);
    snprintf(path, sizeof path, "%s/looked/config.ini", directory);
    FILE *config = fopen(path, "r");
    while (config && fgets(line, sizeof line, config) && strncmp(line, "# columns", 9)) {}
    if (config) fclose(config);
    assert_memory_equal(line + 2, before, strlen(before));
    sptx_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_of_text_are_the_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(rows_are_looked_at, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_a_corpus_has_is_counted, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(edges_are_the_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(every_kind_of_tokens_is_the_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(wrong_calls_are_told, make_directory, remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
