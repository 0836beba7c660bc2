#include "vectors/list_scores.h"
#include "base/memory.h"
#include "tests/unit/small_run.h"

#include <fcntl.h>
#include <math.h>

enum { ROWS = 300, DIM = 3 };

static struct small_run run;
static struct model model;
static float rows[2][ROWS * DIM]; /* target rows, context rows */

static int set_up(void **state) {
    char words[ROWS * 16] = "";
    for (int i = 0; i < ROWS; i++) sprintf(words + strlen(words), "w%d\t%d\n", i, 2 * ROWS - i);
    for (int i = 0; i < ROWS * DIM; i++) {
        rows[0][i] = draw_unit(draw_at(1, DRAW_INIT_TARGET, (uint64_t)i, 0, 0).word[0]) - 0.5f;
        rows[1][i] = 3 * draw_unit(draw_at(1, DRAW_INIT_CONTEXT, (uint64_t)i, 0, 0).word[0]) - 1;
    }
    memset(rows[0] + 5 * DIM, 0, DIM * sizeof(float)); /* a row of zeros has no direction: scaled to unit length it is still
                                                        * zeros */
    small_run_make(&run, words, ROWS, DIM, rows[0], rows[1]);
    if (model_open(&model, run.directory)) return -1;
    model.propagated = model_matrix(&model, VIEW_NORMSUM, 0, 0); /* the test needs no rows of a real graph */
    return model.propagated ? 0 : -1;
}

static int tear_down(void **state) {
    model_close(&model);
    small_run_remove(&run);
    return 0;
}

/* ---- in the open, in float64 ---- */

static void unit_of(const float *row, int unit, double *out) {
    double squares = 0;
    for (int i = 0; i < DIM; i++) squares += (double)row[i] * row[i];
    for (int i = 0; i < DIM; i++) out[i] = row[i] / (unit && squares > 0 ? sqrt(squares) : 1);
}

/* Computes a row in the form that the score uses: for an item in a list (of_list = 1), or for an item that may be recommended. */
static void seen_row(enum list_score score, int of_list, uint64_t row, double *out) {
    const float *target = rows[0] + row * DIM, *context = rows[1] + row * DIM;
    double u[DIM], v[DIM];
    float both[DIM];
    switch (score) {
    case LIST_SCORE_TARGET:
        unit_of(target, 1, out);
        return;
    case LIST_SCORE_CONTEXT:
        unit_of(of_list ? target : context, 0, out);
        return;
    case LIST_SCORE_CONTEXT_COSINE:
        unit_of(of_list ? target : context, 1, out);
        return;
    case LIST_SCORE_CONTEXT_CONTEXT:
    case LIST_SCORE_USER_COSINE: /* here the lists have no rows of their own */
        unit_of(context, 1, out);
        return;
    case LIST_SCORE_USER:
        unit_of(context, 0, out);
        return;
    default:
        unit_of(target, score != LIST_SCORE_SUM, u);
        unit_of(context, score != LIST_SCORE_SUM, v);
        for (int i = 0; i < DIM; i++) both[i] = (float)(u[i] + v[i]);
        unit_of(both, 1, out);
    }
}

struct lists {
    uint64_t starts[8], codes[64], count;
};

static double score_of(enum list_score score, const struct lists *lists, uint64_t list, uint64_t row) {
    double mean[DIM] = {0}, item[DIM], dot = 0, squares = 0;
    for (uint64_t i = lists->starts[list]; i < lists->starts[list + 1]; i++) {
        if (lists->codes[i] >= ROWS) continue;
        seen_row(score, 1, lists->codes[i], item);
        for (int j = 0; j < DIM; j++) mean[j] += item[j];
    }
    uint64_t known = 0;
    for (uint64_t i = lists->starts[list]; i < lists->starts[list + 1]; i++) known += lists->codes[i] < ROWS;
    seen_row(score, 0, row, item);
    for (int j = 0; j < DIM; j++) mean[j] /= known ? (double)known : 1;
    for (int j = 0; j < DIM; j++) dot += mean[j] * item[j], squares += mean[j] * mean[j];
    return score == LIST_SCORE_CONTEXT || score == LIST_SCORE_USER || !(squares > 0) ? dot : dot / sqrt(squares);
}

static int has(const struct lists *lists, uint64_t list, uint64_t row) {
    for (uint64_t i = lists->starts[list]; i < lists->starts[list + 1]; i++)
        if (lists->codes[i] == row) return 1;
    return 0;
}

struct hearing {
    const struct lists *lists;
    const struct list_question *question;
    enum list_score score;
    uint64_t among, heard;
};

/* Checks that each answer has the right score, that scores fall, that no better row was left out, and that a list's own items
 * are answers only if the question asks for them. */
static int hear(void *user, uint64_t list, const struct search_found *answer) {
    const uint32_t *ids = answer->ids;
    const float *scores = answer->scores;
    struct hearing *h = user;
    uint64_t k = h->question->k, found = 0, allowed = 0, above = 0;
    assert_int_equal(list, h->question->lists ? h->question->lists[h->heard] : h->heard);
    h->heard++;
    while (found < k && ids[found] != DRAW_NONE) found++;
    for (uint64_t i = 0; i < found; i++) {
        assert_true(ids[i] < h->among);
        assert_true(h->question->seen || !has(h->lists, list, ids[i]));
        assert_true(fabs(scores[i] - score_of(h->score, h->lists, list, ids[i])) < 1e-5);
        if (i) assert_true(scores[i - 1] > scores[i] || (scores[i - 1] == scores[i] && ids[i - 1] < ids[i]));
    }
    for (uint64_t row = 0, place = 0; row < ROWS; row++) {
        int banned = place < answer->banned_count && answer->banned[place] == row;
        assert_int_equal(banned, !h->question->seen && has(h->lists, list, row));
        place += (uint64_t)banned;
    }
    for (uint64_t row = 0; row < h->among; row++) {
        if (!h->question->seen && has(h->lists, list, row)) continue;
        allowed++;
        above += found && score_of(h->score, h->lists, list, row) > scores[found - 1] + 1e-5;
    }
    assert_int_equal(found, allowed < k ? allowed : k);
    assert_true(above < found + !found);
    return 0;
}

/* For each score, the lists contain: an item twice, an unknown item, the row of zeros, only unknown items, nothing. */
static void against_the_definition(void **state) {
    static const struct lists lists = {
        .starts = {0, 3, 7, 8, 10, 10}, .codes = {7, 99, 250, 11, 11, 299, ROWS, 5, ROWS + 4, UINT64_MAX}, .count = 5};
    static const uint64_t some[] = {3, 0, 1};
    for (int score = 0; score < LIST_SCORES; score++)
        for (int way = 0; way < 8; way++) {
            struct list_question question = {.starts = lists.starts, .codes = lists.codes, .count = 5, .k = 10};
            struct hearing h = {&lists, &question, (enum list_score)score, way & 1 ? 100 : ROWS, 0};
            struct list_scores scores;
            question.seen = way >> 1 & 1;
            if (way & 4) question.lists = some, question.count = 3, question.k = 1000;
            assert_int_equal(list_scores_open(&scores, &model, h.score, &(struct list_candidates){.first = way & 1 ? 100 : 0}, NULL), 0);
            assert_int_equal(list_scores_ask(&scores, &question, hear, &h), 0);
            assert_int_equal(h.heard, question.count);
            list_scores_close(&scores);
            list_scores_close(&scores);
        }
}

/* ---- blocks ---- */

struct counting {
    uint64_t heard, stop_at;
    uint32_t first[4]; /* the best answer depends on the list's only item */
};

static int count(void *user, uint64_t list, const struct search_found *answer) {
    struct counting *c = user;
    assert_int_equal(list, c->heard);
    assert_int_equal(answer->ids[0], c->first[list % 4]);
    return ++c->heard == c->stop_at ? -1 : 0;
}

/* Asks about lists of one item each, in turn of four kinds. They fill a block, all but one place of it, one more, or three blocks. */
static void blocks_of_lists(void **state) {
    enum { K = 300 };
    struct list_scores scores;
    struct counting one = {.heard = 0};
    assert_int_equal(list_scores_open(&scores, &model, LIST_SCORE_CONTEXT, &(struct list_candidates){.first = 0}, NULL), 0);
    uint64_t full = search_block_rows(DIM, K), most = 3 * full;
    assert_true(full > 4 && full < 10000);
    uint64_t *starts = mem_alloc(most + 1, sizeof *starts, "a test"), *codes = mem_alloc(most, sizeof *codes, "a test");
    for (uint64_t i = 0; i <= most; i++) starts[i] = i;
    for (uint64_t i = 0; i < most; i++) codes[i] = 10 + i % 4;
    for (uint32_t i = 0; i < 4; i++) {
        const struct lists lists = {.starts = {0, 1}, .codes = {10 + i}, .count = 1};
        double best = -1;
        for (uint32_t row = 0; row < ROWS; row++) {
            double score = row == 10 + i ? -1 : score_of(LIST_SCORE_CONTEXT, &lists, 0, row);
            if (score > best) best = score, one.first[i] = row;
        }
    }
    const uint64_t counts[] = {full - 1, full, full + 1, most};
    for (int i = 0; i < 4; i++) {
        struct counting c = one;
        struct list_question question = {.starts = starts, .codes = codes, .count = counts[i], .k = K};
        assert_int_equal(list_scores_ask(&scores, &question, count, &c), 0);
        assert_int_equal(c.heard, counts[i]);
    }
    struct counting stopped = one;
    struct list_question question = {.starts = starts, .codes = codes, .count = most, .k = K};
    stopped.stop_at = full + 2; /* stops in the second block */
    assert_int_equal(list_scores_ask(&scores, &question, count, &stopped), -1);
    assert_int_equal(stopped.heard, full + 2);
    list_scores_close(&scores);
    free(starts), free(codes);
}

/* A block is also full if its lists have many items in all. Here each list has every row, so a few lists fill a block. */
static void blocks_of_items(void **state) {
    enum { EACH = 1 << 18, LISTS = 9 };
    struct list_scores scores;
    uint64_t starts[LISTS + 1], *codes = mem_alloc(EACH, sizeof *codes, "a test");
    struct counting c = {.first = {1, 1, 1, 1}};
    for (uint64_t i = 0; i < EACH; i++) codes[i] = i % ROWS == 1 ? 0 : i % ROWS;
    uint64_t *all = mem_alloc((uint64_t)EACH * LISTS, sizeof *all, "a test");
    for (uint64_t i = 0; i <= LISTS; i++) starts[i] = i * EACH;
    for (uint64_t i = 0; i < LISTS; i++) memcpy(all + starts[i], codes, EACH * sizeof *codes);
    struct list_question question = {.starts = starts, .codes = all, .count = LISTS, .k = 2};
    assert_int_equal(list_scores_open(&scores, &model, LIST_SCORE_TARGET, &(struct list_candidates){.first = 0}, NULL), 0);
    assert_int_equal(list_scores_ask(&scores, &question, count, &c), 0);
    assert_int_equal(c.heard, LISTS);
    list_scores_close(&scores);
    free(codes), free(all);
}

/* ---- names ---- */

static void names(void **state) {
    for (int i = 0; i < LIST_SCORES; i++) assert_int_equal(list_score_named(list_score_name((enum list_score)i)), i);
    assert_failed_with(list_score_named("contexts"), "'contexts' is not a score of lists; wanted target, context");
    assert_int_equal(list_score_of_view(VIEW_TARGET), LIST_SCORE_TARGET);
    assert_int_equal(list_score_of_view(VIEW_CONTEXT), LIST_SCORE_CONTEXT_CONTEXT);
    assert_int_equal(list_score_of_view(VIEW_SUM), LIST_SCORE_SUM);
    assert_int_equal(list_score_of_view(VIEW_NORMSUM), LIST_SCORE_NORMSUM);
}

/* Writes a number to a target row, in the file that the model has mapped. */
static void write_number(uint64_t row, float number) {
    char *path = small_path(run.checkpoint, "target.npy");
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &number, sizeof number, (off_t)(model.target.data + row * model.target.record)),
                     sizeof number);
    close(fd);
    free(path);
}

/* ---- lists that are means ---- */

struct mean {
    double own;            /* value of examples.own */
    const uint64_t *codes; /* [count] items of the list */
    uint64_t count, list;  /* list: number of the list's own row; ROWS: it has none */
    enum search_metric metric;
};

/* Computes in float64, for each score, the vector with which a list searches. */
static int hear_mean(void *user, uint64_t list, const struct search_found *answer) {
    const uint32_t *ids = answer->ids;
    const float *scores = answer->scores;
    const struct mean *m = user;
    double query[DIM] = {0}, squares = 0, known = (double)m->count, own = known > 0 ? m->own : 1;
    for (uint64_t i = 0; i < m->count; i++)
        for (int j = 0; j < DIM; j++) query[j] += (double)rows[0][m->codes[i] * DIM + (uint64_t)j] / known;
    for (int j = 0; j < DIM && m->list < ROWS; j++)
        query[j] = own * (double)rows[0][m->list * DIM + (uint64_t)j] + (1 - own) * query[j];
    for (int j = 0; j < DIM; j++) squares += query[j] * query[j];
    for (int i = 0; i < 20; i++) {
        double item[DIM], score = 0;
        unit_of(rows[1] + (uint64_t)ids[i] * DIM, m->metric == METRIC_COSINE, item);
        for (int j = 0; j < DIM; j++) score += query[j] * item[j];
        if (m->metric == METRIC_COSINE) score /= sqrt(squares);
        assert_true(fabs(scores[i] - score) < 1e-5 && (!i || scores[i] <= scores[i - 1]));
    }
    return 0;
}

/* Tests lists of a run with examples.own below 1: with and without a row of their own, with and without items. */
static void lists_that_are_means(void **state) {
    static const uint64_t codes[] = {7, 250, 11, 11};
    static const double weights[] = {0, 0.25, 0.75};
    for (int variant = 0; variant < 18; variant++) {
        int cosine = variant & 1, kind = variant / 2 % 3; /* kind: 0: row and items; 1: no row; 2: no items */
        uint64_t starts[] = {0, kind == 2 ? 0 : 4};
        int64_t row = kind == 1 ? -1 : 99;
        struct mean m = {.own = weights[variant / 6], .codes = codes, .count = starts[1], .list = kind == 1 ? ROWS : 99};
        struct list_question question = {.starts = starts, .codes = codes, .rows = &row, .count = 1, .k = 20};
        struct list_scores scores;
        m.metric = cosine ? METRIC_COSINE : METRIC_DOT;
        model.own = m.own;
        assert_int_equal(list_scores_open(&scores, &model, cosine ? LIST_SCORE_USER_COSINE : LIST_SCORE_USER, &(struct list_candidates){.first = 0}, NULL), 0);
        assert_int_equal(list_scores_ask(&scores, &question, hear_mean, &m), 0);
        list_scores_close(&scores);
    }
    model.own = 1;
}

/* The message names a row that contains NaN, both if the row is searched and if it is only an item of a list. */
static void rows_that_are_no_numbers(void **state) {
    static const uint64_t starts[] = {0, 1}, codes[] = {200};
    struct list_question question = {.starts = starts, .codes = codes, .count = 1, .k = 1};
    struct counting c = {.first = {0}};
    struct list_scores scores;
    write_number(200, NAN);
    assert_failed_with(list_scores_open(&scores, &model, LIST_SCORE_TARGET, &(struct list_candidates){.first = 0}, NULL), "the vector of 'w200' in");
    list_scores_close(&scores);
    assert_int_equal(list_scores_open(&scores, &model, LIST_SCORE_CONTEXT, &(struct list_candidates){.first = 0}, NULL), 0); /* searches context rows, which are numbers */
    assert_failed_with(list_scores_ask(&scores, &question, count, &c), "the vector of 'w200' in");
    list_scores_close(&scores);
    assert_int_equal(list_scores_open(&scores, &model, LIST_SCORE_TARGET, &(struct list_candidates){.first = 200}, NULL), 0); /* searches rows 0 .. 199 */
    assert_failed_with(list_scores_ask(&scores, &question, count, &c), "the vector of 'w200' in");
    list_scores_close(&scores);
    write_number(200, rows[0][200 * DIM]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_definition),   cmocka_unit_test(blocks_of_lists),
        cmocka_unit_test(blocks_of_items),          cmocka_unit_test(names),
        cmocka_unit_test(rows_that_are_no_numbers), cmocka_unit_test(lists_that_are_means),
    };
    return cmocka_run_group_tests_name("list_scores", tests, set_up, tear_down);
}
