/* Tests the calls of libsptx for knowledge graphs. Uses only sptx.h and libsptx.so, as any user's program does. */
#define _GNU_SOURCE
#include "../testing.h"

#include "sptx.h"

#include "open_cpu.h"

enum { ENTITIES = 12, RELATIONS = 2, TRIPLES = 60, DIM = 6, K = 5 };

static char directory[64];

static int make_directory(void **state) {
    strcpy(directory, "/tmp/sptx-triples.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

/* The terms of each triple, as integers. Some triples come twice. */
struct terms {
    int32_t heads[TRIPLES], relations[TRIPLES], tails[TRIPLES];
};
static struct terms draw(void) {
    struct terms t;
    for (int i = 0; i < TRIPLES; i++) {
        t.heads[i] = i * 5 % ENTITIES;
        t.relations[i] = i / 7 % RELATIONS;
        t.tails[i] = (t.heads[i] + 3 + 4 * t.relations[i] + i / 40) % ENTITIES;
    }
    return t;
}

static struct sptx_tokens numbers(const int32_t *values, uint64_t count) {
    return (struct sptx_tokens){SPTX_NUMBERS, 32, values, NULL, count};
}

static enum sptx_status add(struct sptx_corpus *corpus, const struct terms *t, int first, int count) {
    const struct sptx_tokens heads = numbers(t->heads + first, (uint64_t)count),
                             relations = numbers(t->relations + first, (uint64_t)count),
                             tails = numbers(t->tails + first, (uint64_t)count);
    return sptx_corpus_triples(corpus, &heads, &relations, &tails);
}

static enum sptx_status open_corpus(struct sptx_context *context, const char *run, struct sptx_corpus **corpus) {
    char dir[128];
    snprintf(dir, sizeof dir, "run.dir=%s/%s", directory, run);
    const char *settings[] = {"corpus.format=triples", "model.dim=6", "train.epochs=3", dir};
    return sptx_corpus_open(context, NULL, settings, sizeof settings / sizeof *settings, corpus);
}

static struct sptx_run *open_run(struct sptx_context *context, const char *name) {
    char path[128];
    struct sptx_run *run;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (sptx_run_open(context, path, &run)) fail_msg("%s", sptx_error(context));
    return run;
}

static void train_on_file(struct sptx_context *context, const struct terms *t) {
    char path[128], of[160], dir[128];
    snprintf(path, sizeof path, "%s/triples", directory);
    snprintf(of, sizeof of, "corpus.path=%s", path);
    snprintf(dir, sizeof dir, "run.dir=%s/file", directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < TRIPLES; i++) fprintf(file, "%d %d %d\n", t->heads[i], t->relations[i], t->tails[i]);
    fclose(file);
    const char *settings[] = {of, dir, "corpus.format=triples", "model.dim=6", "train.epochs=3"};
    if (sptx_train(context, NULL, settings, sizeof settings / sizeof *settings, SPTX_ANEW, NULL, NULL))
        fail_msg("%s", sptx_error(context));
}

static void same_vectors(struct sptx_run *a, struct sptx_run *b) {
    enum { ROWS = ENTITIES + 2 * RELATIONS };
    float one[ROWS * DIM], other[ROWS * DIM];
    for (int table = 0; table < 2; table++) {
        assert_int_equal(sptx_run_rows(a), ROWS);
        assert_int_equal(sptx_run_vectors(a, table ? "context" : "target", NULL, ROWS, one), SPTX_OK);
        assert_int_equal(sptx_run_vectors(b, table ? "context" : "target", NULL, ROWS, other), SPTX_OK);
        assert_memory_equal(one, other, sizeof one);
    }
}

/* Asks for all tails of the entities, and compares them with products computed here. */
static void answers_are_products(struct sptx_run *run) {
    uint64_t entities[ENTITIES], relations[ENTITIES], relation;
    uint32_t rows[ENTITIES * K];
    float scores[ENTITIES * K], heads[ENTITIES * DIM], tails[ENTITIES * DIM], row[DIM], product[DIM];
    struct sptx_answers_options options = SPTX_ANSWERS_OPTIONS;
    assert_int_equal(sptx_run_find(run, "relation:1", &relation), SPTX_OK);
    for (uint64_t i = 0; i < ENTITIES; i++) entities[i] = i, relations[i] = relation;
    options.seen = 1;
    assert_int_equal(sptx_run_answers(run, entities, relations, ENTITIES, &options, K, rows, scores), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, "target", NULL, ENTITIES, heads), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, "context", NULL, ENTITIES, tails), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, "target", &relation, 1, row), SPTX_OK);
    for (int i = 0; i < ENTITIES; i++) {
        for (int j = 0; j < DIM / 2; j++) {
            const float *head = heads + i * DIM;
            product[j] = head[j] * row[j] - head[j + DIM / 2] * row[j + DIM / 2];
            product[j + DIM / 2] = head[j] * row[j + DIM / 2] + head[j + DIM / 2] * row[j];
        }
        for (int k = 0; k < K; k++) {
            float score = 0;
            for (int j = 0; j < DIM; j++) score += product[j] * tails[rows[i * K + k] * DIM + (unsigned)j];
            assert_float_equal(scores[i * K + k], score, 1e-5);
        }
    }
}

static void known_answers_are_left_out(struct sptx_run *run, const struct terms *t) {
    uint64_t row[3], relation;
    char name[16];
    uint32_t rows[ENTITIES];
    float scores[ENTITIES];
    struct sptx_answers_options options = SPTX_ANSWERS_OPTIONS;
    for (uint64_t heads = 0; heads < 2; heads++)
        for (int i = 0; i < TRIPLES; i++) {
            snprintf(name, sizeof name, "relation:%d", t->relations[i]);
            assert_int_equal(sptx_run_find(run, name, &relation), SPTX_OK);
            snprintf(name, sizeof name, "%d", heads ? t->tails[i] : t->heads[i]);
            assert_int_equal(sptx_run_find(run, name, &row[0]), SPTX_OK);
            snprintf(name, sizeof name, "%d", heads ? t->heads[i] : t->tails[i]);
            assert_int_equal(sptx_run_find(run, name, &row[1]), SPTX_OK);
            options.heads = heads;
            assert_int_equal(sptx_run_answers(run, &row[0], &relation, 1, &options, ENTITIES, rows, scores), SPTX_OK);
            for (int j = 0; j < ENTITIES; j++) assert_int_not_equal(rows[j], row[1]);
            assert_int_equal(rows[ENTITIES - 1], UINT32_MAX);
        }
}

/* The score of a triple is the mean of the scores of its tail and of its head as answers. */
static void scores_are_those_of_answers(struct sptx_run *run, const struct sptx_data *triples, const struct terms *t) {
    struct sptx_answers_options options = SPTX_ANSWERS_OPTIONS;
    struct sptx_score_options calibrated = SPTX_SCORE_OPTIONS;
    const struct sptx_scored *scored;
    uint64_t count, relation, row[2];
    uint32_t rows[ENTITIES];
    float scores[ENTITIES];
    char name[32];
    options.seen = 1;
    calibrated.validation = triples;
    assert_int_equal(sptx_run_score(run, triples, NULL, &scored, &count), SPTX_OK);
    assert_true(count == TRIPLES && isnan(scored[0].probability));
    for (int i = 0; i < TRIPLES; i++) {
        double sum = 0;
        for (int end = 0; end < 2; end++) {
            snprintf(name, sizeof name, "%d", end ? t->tails[i] : t->heads[i]);
            assert_int_equal(sptx_run_find(run, name, &row[end]), SPTX_OK);
        }
        snprintf(name, sizeof name, "relation:%d", t->relations[i]);
        assert_int_equal(sptx_run_find(run, name, &relation), SPTX_OK);
        for (options.heads = 0; options.heads < 2; options.heads++) {
            assert_int_equal(sptx_run_answers(run, &row[options.heads], &relation, 1, &options, ENTITIES, rows, scores), SPTX_OK);
            for (int j = 0; j < ENTITIES; j++) sum += rows[j] == row[!options.heads] ? (double)scores[j] / 2 : 0;
        }
        assert_float_equal(scored[i].score, sum, 1e-5);
    }
    const double first = scored[0].score;
    assert_int_equal(sptx_run_score(run, triples, &calibrated, &scored, &count), SPTX_OK);
    assert_true(scored[0].score == first);
    for (int i = 0; i < TRIPLES; i++) assert_true(scored[i].probability > 0 && scored[i].probability < 1);
}

static void triples_are_the_file(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct terms t = draw();
    struct sptx_corpus *corpus;
    train_on_file(context, &t);
    assert_int_equal(open_corpus(context, "given", &corpus), SPTX_OK);
    assert_int_equal(add(corpus, &t, 0, 25), SPTX_OK);
    assert_int_equal(add(corpus, &t, 25, TRIPLES - 25), SPTX_OK);
    if (sptx_corpus_train(corpus, SPTX_ANEW, NULL, NULL)) fail_msg("%s", sptx_error(context));
    sptx_corpus_close(corpus);
    struct sptx_run *file = open_run(context, "file"), *given = open_run(context, "given");
    same_vectors(file, given);
    answers_are_products(given);
    known_answers_are_left_out(given, &t);
    char path[128];
    const struct sptx_number *of_file, *of_corpus;
    uint64_t count, other;
    snprintf(path, sizeof path, "%s/triples", directory);
    assert_int_equal(open_corpus(context, "none", &corpus), SPTX_OK);
    assert_int_equal(add(corpus, &t, 0, TRIPLES), SPTX_OK);
    const struct sptx_data as_file = {path, NULL}, as_corpus = {NULL, corpus};
    struct sptx_evaluate_options known = SPTX_EVALUATE_OPTIONS;
    known.known = &as_file;
    assert_int_equal(sptx_run_evaluate(file, "triples", &as_file, NULL, &of_file, &count), SPTX_OK);
    assert_int_equal(sptx_run_evaluate(given, "triples", &as_corpus, &known, &of_corpus, &other), SPTX_OK);
    assert_int_equal(count, other);
    for (uint64_t i = 0; i < count; i++) {
        assert_string_equal(of_file[i].name, of_corpus[i].name);
        assert_true(of_file[i].value == of_corpus[i].value && of_file[i].count == of_corpus[i].count);
        const char *name = of_file[i].name;
        if (!strcmp(name, "triples") || !strcmp(name, "trained")) assert_float_equal(of_file[i].value, TRIPLES, 0);
        if (!strcmp(name, "asked")) assert_float_equal(of_file[i].value, 2 * TRIPLES, 0);
        if (!strcmp(name, "filtered_trained")) assert_float_equal(of_file[i].value, 1, 0);
        if (!strcmp(name, "mrr")) assert_true(of_file[i].value > 0 && of_file[i].value <= 1 && of_file[i].count == 2 * TRIPLES);
    }
    scores_are_those_of_answers(file, &as_file, &t);
    scores_are_those_of_answers(given, &as_corpus, &t);
    sptx_corpus_close(corpus);
    sptx_run_close(file);
    sptx_run_close(given);
    sptx_close(context);
}

#define REFUSED(call, words)                                                                                                       \
    do {                                                                                                                           \
        assert_int_equal(call, SPTX_USAGE);                                                                                        \
        if (!strstr(sptx_error(context), words)) fail_msg("'%s' lacks '%s'", sptx_error(context), words);                          \
    } while (0)

static void wrong_calls_are_told(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct terms t = draw();
    struct sptx_corpus *corpus;
    const struct sptx_tokens two = numbers(t.heads, 2), three = numbers(t.tails, 3);
    uint32_t rows[K];
    float scores[K];
    const struct sptx_number *numbers;
    uint64_t count;
    train_on_file(context, &t);
    struct sptx_run *run = open_run(context, "file");
    assert_int_equal(sptx_run_relations(run), RELATIONS);
    assert_int_equal(sptx_run_relations(NULL), 0);
    const uint64_t entity = 0, relation = ENTITIES, past = ENTITIES + 2 * RELATIONS;
    struct sptx_answers_options options = SPTX_ANSWERS_OPTIONS;
    assert_int_equal(open_corpus(context, "none", &corpus), SPTX_OK);
    REFUSED(sptx_corpus_triples(corpus, &two, &two, &three), "2 heads, 2 relations and 3 tails; wanted the same number of each");
    REFUSED(sptx_corpus_triples(corpus, &two, NULL, &two), "relations are NULL");
    REFUSED(sptx_corpus_edges(corpus, &two, &two, NULL), "such data is given as triples");
    REFUSED(sptx_run_answers(run, &relation, &relation, 1, NULL, K, rows, scores), "is that of 'relation:");
    REFUSED(sptx_run_answers(run, &entity, &entity, 1, NULL, K, rows, scores), "is no row of a relation");
    REFUSED(sptx_run_answers(run, &entity, &past, 1, NULL, K, rows, scores), "is no row of a relation");
    REFUSED(sptx_run_answers(run, &entity, NULL, 1, NULL, K, rows, scores), "one is NULL");
    options.heads = 2;
    REFUSED(sptx_run_answers(run, &entity, &relation, 1, &options, K, rows, scores), "heads and seen are 0 or 1");
    REFUSED(sptx_run_evaluate(run, "triples", NULL, NULL, &numbers, &count), "triples is wanted");
    const struct sptx_data data = {NULL, corpus};
    REFUSED(sptx_run_evaluate(run, "triples", &data, NULL, NULL, &count), "NULL");
    const struct sptx_scored *scored;
    REFUSED(sptx_run_score(run, NULL, NULL, &scored, &count), "triples is wanted");
    REFUSED(sptx_run_score(run, &data, NULL, NULL, &count), "NULL");
    REFUSED(sptx_run_evaluate(run, "labelled", &data, NULL, &numbers, &count), "labelled is wanted as a file");
    assert_int_equal(sptx_run_score(NULL, &data, NULL, &scored, &count), SPTX_USAGE);
    assert_int_equal(sptx_corpus_triples(NULL, &two, &two, &two), SPTX_USAGE);
    assert_int_equal(sptx_run_answers(NULL, &entity, &relation, 1, NULL, K, rows, scores), SPTX_USAGE);
    sptx_corpus_close(corpus);
    sptx_run_close(run);
    sptx_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(triples_are_the_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(wrong_calls_are_told, make_directory, remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
