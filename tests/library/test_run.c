/* Tests training and finished runs. Uses only sptx.h and libsptx.so, as any user's program does. */
#define _GNU_SOURCE
#include "../testing.h"

#include "sptx.h"

#include "open_cpu.h"

struct heard {
    int times, stop_after;
    double last_done;
    struct sptx_context *context; /* context in which the callback makes a wrong call */
    const char *remove;           /* shell command that the callback runs once */
    struct sptx_context *stop;    /* context whose training the callback stops */
};

static int hear(void *user, const struct sptx_progress *progress) {
    struct heard *heard = user;
    assert_int_equal(progress->size, sizeof *progress);
    assert_true(progress->done >= heard->last_done);
    heard->last_done = progress->done;
    if (heard->context) {
        struct sptx_run *run;
        assert_int_equal(sptx_run_open(heard->context, "/nonexistent", &run), SPTX_FAILED);
        assert_non_null(strstr(sptx_error(heard->context), "/nonexistent"));
    }
    if (heard->remove) assert_int_equal(system(heard->remove), 0);
    heard->remove = NULL;
    sptx_stop(heard->stop);
    return ++heard->times == heard->stop_after;
}

/* Opens a corpus of a single list: `count` (at most 2) words of the run, from row `first` on. */
static struct sptx_corpus *listed(struct sptx_context *context, const struct sptx_run *run, const char *format, uint64_t first,
                                  uint64_t count) {
    const char *settings[] = {format, "examples.mode=user"};
    const uint64_t starts[] = {0, count};
    uint64_t length, offsets[3] = {0};
    char text[64] = "";
    struct sptx_corpus *corpus;
    for (uint64_t i = 0; i < count; i++) {
        strcat(text, sptx_run_word(run, first + i, &length));
        offsets[i + 1] = offsets[i] + length;
    }
    struct sptx_tokens tokens = {.kind = SPTX_TEXT, .bits = 64, .data = text, .offsets = offsets, .count = count};
    assert_int_equal(sptx_corpus_open(context, NULL, settings, strstr(format, "text") ? 1 : 2, &corpus), SPTX_OK);
    assert_int_equal(sptx_corpus_sentences(corpus, &tokens, starts, 1, NULL), SPTX_OK);
    return corpus;
}

/* Evaluates with corpora instead of files: the list's training items are words 0 and 1, and word 2 is held out. */
static void judges_by_corpora(struct sptx_context *context, struct sptx_run *run) {
    struct sptx_corpus *train = listed(context, run, "corpus.format=lists", 0, 2);
    struct sptx_corpus *held_out = listed(context, run, "corpus.format=lists", 2, 1);
    struct sptx_corpus *text = listed(context, run, "corpus.format=text", 2, 1);
    const struct sptx_data of_train = {NULL, train}, of_held_out = {NULL, held_out}, of_text = {NULL, text}, none = {NULL, NULL};
    const struct sptx_data both = {"file", train};
    struct sptx_evaluate_options options = SPTX_EVALUATE_OPTIONS;
    const struct sptx_number *numbers = NULL;
    uint64_t count = 0;
    options.known = &of_train;
    options.k = 7;
    assert_int_equal(sptx_run_evaluate(run, "held_out", &of_held_out, &options, &numbers, &count), SPTX_OK);
    static const struct sptx_number wanted[] = {
        {.name = "recall", .value = 1, .count = 1}, {.name = "ndcg", .value = 1, .count = 1}, {.name = "hit", .value = 1, .count = 1},
        {.name = "lists", .value = 1}, {.name = "unknown"}, {.name = "held_out", .value = 1}, {.name = "trained"}, {.name = "cold"}};
    assert_true(count >= sizeof wanted / sizeof *wanted);
    for (uint64_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_string_equal(numbers[i].name, wanted[i].name);
        assert_string_equal(numbers[i].part, "");
        assert_true(numbers[i].value >= wanted[i].value * 0.1 && numbers[i].value <= wanted[i].value);
        assert_int_equal(numbers[i].count, wanted[i].count);
    }
    assert_string_equal(numbers[0].text, "recall@7 #");
    assert_int_equal(sptx_run_evaluate(run, "held_out", &of_train, &options, &numbers, &count), SPTX_FAILED);
    assert_non_null(strstr(sptx_error(context), "2 of 2 held-out items of 'held_out' are trained ones"));
    assert_string_equal(numbers[0].name, "recall"); /* a call that fails leaves the numbers of the call before it */
#define REFUSED(measure, data, words)                                                                     \
    do {                                                                                                   \
        assert_int_equal(sptx_run_evaluate(run, measure, data, &options, &numbers, &count), SPTX_USAGE);   \
        if (!strstr(sptx_error(context), words)) fail_msg("'%s' lacks '%s'", sptx_error(context), words);  \
    } while (0)
    REFUSED("held_out", &of_text, "corpus.format = text: such data is judged as lists, pairs or adjacency");
    REFUSED("held_out", &none, "held_out is wanted as a file or as a corpus, and not as both");
    REFUSED("held_out", &both, "held_out is wanted as a file or as a corpus, and not as both");
    REFUSED("held_out", NULL, "held_out is wanted as a file or as a corpus, and not as both");
    REFUSED("hold_out", &of_train, "'hold_out' is not a measure; wanted pairs, analogies, held_out,");
    REFUSED("pairs", &of_train, "pairs is wanted as a file; a corpus is given");
    REFUSED("pairs", &(struct sptx_data){.path = ""}, "pairs is wanted as a file; its path is empty");
    REFUSED("pairs", &(struct sptx_data){.path = "file"}, "pairs needs no data that training had");
    REFUSED("edges", &of_train, "such data is judged as graph");
    options.known = &both;
    REFUSED("held_out", &of_held_out, "train is wanted as a file or as a corpus, and not as both");
    options.known = NULL;
    REFUSED("held_out", &of_held_out, "train is wanted as a file or as a corpus, and not as both");
    options.k = 0;
    REFUSED("groups", &(struct sptx_data){.path = "file"}, "k = 0 places are none");
    options.k = 7, options.shares = &(double){1}, options.share_count = 1;
    REFUSED("labels", &(struct sptx_data){.path = "file"}, "a share of 1 is not between 0 and 1");
    options.share_count = 0, options.table = "both";
    REFUSED("pairs", &(struct sptx_data){.path = "file"}, "'both' is not a table");
    options.table = NULL, options.size = 4;
    REFUSED("pairs", &(struct sptx_data){.path = "file"}, "options begin with their size");
    options.size = sizeof options;
    assert_int_equal(sptx_run_evaluate(run, "pairs", &(struct sptx_data){.path = "file"}, NULL, NULL, &count), SPTX_USAGE);
    assert_int_equal(sptx_run_evaluate(NULL, "pairs", NULL, NULL, &numbers, &count), SPTX_USAGE);
#undef REFUSED
    sptx_corpus_close(train);
    sptx_corpus_close(held_out);
    sptx_corpus_close(text);
}

/* Recommends 7 rows by a score. seen: 1: a list's items may be recommended to it. */
static enum sptx_status seven(struct sptx_run *run, const uint64_t *starts, const uint64_t *items, uint64_t count, const char *score,
                              uint64_t seen, uint32_t *rows, float *scores) {
    struct sptx_recommend_options options = SPTX_RECOMMEND_OPTIONS;
    options.score = score;
    options.seen = seen;
    return sptx_run_recommend(run, starts, items, count, &options, 7, rows, scores);
}

/* Recommends for four lists: green items; green items and a row past the end; only unknown rows; nothing. */
static void recommends(struct sptx_context *context, struct sptx_run *run, uint64_t green) {
    const uint64_t starts[] = {0, 1, 3, 4, 4}, falling[] = {1, 0}, items[] = {green, 7, green, UINT64_MAX};
    uint32_t rows[4 * 7], seen[7];
    float scores[4 * 7], seen_scores[7];
    assert_int_equal(seven(run, starts, items, 4, "target", 0, rows, scores), SPTX_OK);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(rows[i] == UINT32_MAX, i == 6); /* there are six other words */
        assert_true(rows[i] != green);
        assert_int_equal(rows[7 + i], rows[i]);
        assert_int_equal(rows[14 + i], UINT32_MAX);
        assert_int_equal(rows[21 + i], UINT32_MAX);
    }
    assert_memory_equal(scores, scores + 7, 7 * sizeof *scores);
    assert_int_equal(seven(run, starts, items, 1, "target", 1, seen, seen_scores), SPTX_OK);
    assert_int_equal(seen[0], green); /* green is nearest to itself */
    assert_memory_equal(seen + 1, rows, 6 * sizeof *rows);
    assert_int_equal(seven(run, starts, items, 1, NULL, 0, seen, seen_scores), SPTX_OK);
    assert_memory_equal(seen_scores, scores, 7 * sizeof *scores); /* the run's default score */
    assert_int_equal(seven(run, starts, items, 1, "context", 0, seen, seen_scores), SPTX_OK);
    assert_memory_not_equal(seen_scores, scores, 6 * sizeof *scores);
    assert_int_equal(seven(run, starts, items, 0, NULL, 0, NULL, NULL), SPTX_OK);
    assert_int_equal(seven(run, starts, items, 1, "best", 0, rows, scores), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "'best' is not a score"));
    struct sptx_recommend_options options = SPTX_RECOMMEND_OPTIONS;
    const uint64_t candidates[] = {rows[3], green, rows[1], rows[3]};
    options.candidates = candidates;
    options.candidate_count = 4;
    assert_int_equal(sptx_run_recommend(run, starts, items, 1, &options, 7, seen, seen_scores), SPTX_OK);
    assert_int_equal(seen[0], rows[1]);
    assert_int_equal(seen[1], rows[3]);
    assert_int_equal(seen[2], UINT32_MAX);
    options.among = 3;
    assert_int_equal(sptx_run_recommend(run, starts, items, 1, &options, 7, seen, seen_scores), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "two choices of rows"));
    options = (struct sptx_recommend_options)SPTX_RECOMMEND_OPTIONS;
    options.names = &(const char *){"mine"};
    assert_int_equal(sptx_run_recommend(run, starts, items, 1, &options, 7, seen, seen_scores), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "keeps no names of lists"));
    assert_int_equal(seven(run, falling, items, 1, NULL, 0, rows, scores), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "starts fall from 1 to 0 at list 0"));
    assert_int_equal(seven(run, starts, items, 1, NULL, 2, rows, scores), SPTX_USAGE);
    assert_int_equal(seven(run, NULL, items, 1, NULL, 0, rows, scores), SPTX_USAGE);
    assert_int_equal(sptx_run_recommend(NULL, starts, items, 1, NULL, 7, rows, scores), SPTX_USAGE);
}

/* Copied vectors must equal mapped ones, because no list has a row. Each wrong call must have its own error message. */
static void vectors(struct sptx_context *context, struct sptx_run *run) {
    const uint64_t wanted[] = {6, 0, 6}, past[] = {7};
    float rows[7 * 16], some[3 * 16];
    struct sptx_view view = {.size = sizeof view};
    assert_int_equal(sptx_run_vector_rows(run), 7);
    assert_int_equal(sptx_run_vector_rows(NULL), 0);
    for (int context_table = 0; context_table < 2; context_table++) {
        const char *table = context_table ? "context" : "target";
        assert_int_equal(sptx_run_view(run, table, &view), SPTX_OK);
        assert_int_equal(sptx_run_vectors(run, table, NULL, 7, rows), SPTX_OK);
        assert_int_equal(sptx_run_vectors(run, table, wanted, 3, some), SPTX_OK);
        for (int i = 0; i < 7; i++) assert_memory_equal(rows + i * 16, (const char *)view.data + i * view.stride, 64);
        for (int i = 0; i < 3; i++) assert_memory_equal(some + i * 16, rows + wanted[i] * 16, 64);
    }
    assert_int_equal(sptx_run_vectors(run, "sum", NULL, 1, some), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, NULL, NULL, 0, NULL), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, "both", NULL, 1, some), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "'both' is not a table"));
    assert_int_equal(sptx_run_vectors(run, "sum", past, 1, some), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "7 is no row of a run of 7"));
    assert_int_equal(sptx_run_vectors(run, "sum", NULL, 1, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "a place for vectors is wanted; it is NULL"));
    assert_int_equal(sptx_run_vectors(run, NULL, NULL, 1, rows), SPTX_OK);
    assert_int_equal(sptx_run_vectors(run, "target", NULL, 1, some), SPTX_OK);
    assert_memory_equal(rows, some, 64); /* the default table for words is target */
    assert_int_equal(sptx_run_items(run), 7);
    assert_int_equal(sptx_run_items(NULL), 0);
    assert_int_equal(sptx_run_check_trained(run, NULL, 6), SPTX_OK);
    assert_int_equal(sptx_run_check_trained(run, "sum", 7), SPTX_USAGE);
    assert_int_equal(sptx_run_check_trained(NULL, "sum", 0), SPTX_USAGE);
    struct sptx_nearest_options both = SPTX_NEAREST_OPTIONS, lists = SPTX_NEAREST_OPTIONS, metric = SPTX_NEAREST_OPTIONS;
    both.table = "both", lists.lists = 2, metric.metric = "euclid";
    assert_int_equal(sptx_run_nearest(run, rows, 1, &both, 1, (uint32_t *)&view, some), SPTX_USAGE);
    assert_int_equal(sptx_run_nearest(run, rows, 1, &metric, 1, (uint32_t *)&view, some), SPTX_USAGE);
    assert_int_equal(sptx_run_nearest(run, rows, 1, &lists, 1, (uint32_t *)&view, some), SPTX_USAGE);
    lists.lists = 1;
    assert_int_equal(sptx_run_nearest(run, rows, 1, &lists, 1, (uint32_t *)&view, some), SPTX_FAILED);
    assert_non_null(strstr(sptx_error(context), "no list has a row in"));
    assert_int_equal(sptx_run_find(run, NULL, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "a word and a place"));
    assert_int_equal(sptx_run_view(run, "target", NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "the view is NULL"));
    assert_int_equal(sptx_run_open(context, "run", NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "into a pointer"));
}

static void a_run_is_trained_stopped_resumed_and_read(void **state) {
    char directory[] = "/tmp/sptx-library.XXXXXX", text[64], corpus[96], run_dir[64];
    assert_non_null(mkdtemp(directory));
    snprintf(text, sizeof text, "%s/text.txt", directory);
    snprintf(corpus, sizeof corpus, "corpus.path=%s", text);
    snprintf(run_dir, sizeof run_dir, "run.dir=%s/run", directory);
    FILE *file = fopen(text, "w");
    for (int i = 0; i < 20000; i++) fprintf(file, i % 2 ? "red green blue\n" : "one two three four\n");
    fclose(file);
    const char *settings[] = {corpus, run_dir, "corpus.min_count=1", "model.dim=16", "train.update=batch", "train.batch=500",
                              "train.epochs=3", "train.report_seconds=0.01", "examples.subsample=0", "optimizer.rule=adagrad", "optimizer.lr=0.05"};
    enum { COUNT = sizeof settings / sizeof *settings };
    struct sptx_context *context = open_cpu(2);
    struct heard heard = {.stop_after = 2, .context = context};
    const char *wrong[] = {"model.dimm=3"}, *none[] = {"model.dim"};
    assert_int_equal(sptx_train(context, NULL, wrong, 1, 0, NULL, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "dimm"));
    assert_int_equal(sptx_train(context, NULL, none, 1, 0, NULL, NULL), SPTX_USAGE);
    sptx_stop(NULL);
    sptx_stop(context); /* a stop before training has read a word leaves no checkpoint */
    assert_int_equal(sptx_train(context, NULL, settings, COUNT, 0, hear, &heard), SPTX_STOPPED);
    assert_non_null(strstr(sptx_error(context), "stopped before training has begun"));
    assert_int_equal(heard.times, 0);
    enum sptx_status status = sptx_train(context, NULL, settings, COUNT, 0, hear, &heard);
    if (status != SPTX_STOPPED) fail_msg("%d: %s", status, sptx_error(context));
    assert_true(heard.last_done < 1);
    heard.stop_after = 0;
    sptx_stop(context); /* if a stop interrupts the reading of a checkpoint, the checkpoint must not count as broken */
    assert_int_equal(sptx_train(context, NULL, settings, COUNT, 1, hear, &heard), SPTX_STOPPED);
    assert_non_null(strstr(sptx_error(context), "nothing new is written"));
    heard.stop = context;
    double done = heard.last_done;
    assert_int_equal(sptx_train(context, NULL, settings, COUNT, 1, hear, &heard), SPTX_STOPPED);
    assert_true(heard.last_done > done && heard.last_done < 1);
    heard.stop = NULL;
    status = sptx_train(context, NULL, settings, COUNT, 1, hear, &heard);
    if (status) fail_msg("%s", sptx_error(context));
    assert_int_equal(sptx_train(context, NULL, settings, COUNT, 0, NULL, NULL), SPTX_FAILED); /* the run exists already */

    struct sptx_run *run;
    uint64_t row, length;
    assert_int_equal(sptx_run_open(context, run_dir + sizeof "run.dir=" - 1, &run), SPTX_OK);
    assert_int_equal(sptx_run_rows(run), 7);
    assert_int_equal(sptx_run_dim(run), 16);
    assert_int_equal(sptx_run_find(run, "green", &row), SPTX_OK);
    assert_string_equal(sptx_run_word(run, row, &length), "green");
    assert_int_equal(length, 5);
    assert_int_equal(sptx_run_count(run, row), 10000);
    assert_string_equal(sptx_run_key(run, "corpus", "format"), "text");
    assert_string_equal(sptx_run_key(run, "corpus", "min_rating"), "none");
    assert_null(sptx_run_key(run, "corpus", "never"));
    assert_null(sptx_run_key(run, NULL, "format"));
    assert_null(sptx_run_key(NULL, "corpus", "format"));
    assert_int_equal(sptx_run_find(run, "grean", &row), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "green"));
    assert_int_equal(sptx_run_find(run, "green", &row), SPTX_OK);
    float unseen[64];
    assert_int_equal(sptx_run_unseen(run, NULL, "grean", unseen), SPTX_USAGE); /* this run has no n-grams */
    assert_int_equal(sptx_run_unseen(run, NULL, NULL, unseen), SPTX_USAGE);
    struct sptx_view view = {.size = sizeof view};
    assert_int_equal(sptx_run_view(run, "target", &view), SPTX_OK);
    uint32_t self = (uint32_t)row, rows[3];
    float scores[3];
    const float *query = (const float *)((const char *)view.data + row * view.stride);
    struct sptx_nearest_options without = SPTX_NEAREST_OPTIONS;
    without.excluded = &self;
    assert_int_equal(sptx_run_nearest(run, query, 1, &without, 3, rows, scores), SPTX_OK);
    assert_int_equal(sptx_run_nearest(run, query, UINT64_MAX, &without, 3, rows, scores), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "18446744073709551615 queries in one call"));
    assert_int_equal(sptx_run_nearest(run, query, UINT64_MAX / 2, NULL, 3, rows, scores), SPTX_USAGE);
    assert_int_equal(sptx_run_nearest(run, (const float *)((const char *)query + 1), 1, &without, 3, rows, scores), SPTX_USAGE);
    assert_int_equal(sptx_run_vectors(run, "target", NULL, UINT64_MAX, scores), SPTX_USAGE);
    assert_int_equal(sptx_run_recommend(run, &row, &row, UINT64_MAX, NULL, 3, rows, scores), SPTX_USAGE);
    for (int i = 0; i < 2; i++) { /* red and blue, in either order */
        const char *word = sptx_run_word(run, rows[i], NULL);
        assert_true(!strcmp(word, "red") || !strcmp(word, "blue"));
        assert_true(scores[i] >= scores[i + 1]);
    }
    assert_int_equal(sptx_run_view(run, "both", &view), SPTX_USAGE);
    recommends(context, run, row);
    judges_by_corpora(context, run);
    vectors(context, run);
    sptx_run_close(run);
    assert_int_equal(sptx_run_open(context, directory, &run), SPTX_FAILED);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s/run", directory); /* this error is reported, not the callback's */
    heard = (struct heard){.context = context, .remove = command};
    assert_int_equal(system(command), 0);
    assert_int_equal(sptx_train(context, NULL, settings, COUNT, 0, hear, &heard), SPTX_FAILED);
    assert_null(heard.remove);
    if (!strstr(sptx_error(context), "removed while a run trained in it")) fail_msg("%s", sptx_error(context));
    sptx_close(context);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_is_trained_stopped_resumed_and_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
