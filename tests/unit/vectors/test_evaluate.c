#include "vectors/evaluate.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/opened_run.h"

#include <math.h>

/* Twelve words as vectors in a plane, given by angle in degrees and of any length. "King" and "king" differ only in case. */
static const char words[] = "the\t90\nKing\t80\nqueen\t70\nman\t60\nwoman\t50\nking\t40\nboy\t30\ngirl\t20\nparis\t10\n"
                            "france\t9\n\xD1\x81\xD0\xBB\xD0\xBE\t8\nzero\t7\n";
enum { ROWS = 12 };
static const double degrees[ROWS] = {200, 50, 80, 20, 55, 290, 25, 61, 140, 100, 240, 0};

static int set_up(void **state) {
    float rows[ROWS * 2];
    for (int i = 0; i < ROWS; i++) {
        double length = i == ROWS - 1 ? 0 : 1 + i % 3;
        rows[2 * i] = (float)(length * cos(degrees[i] * M_PI / 180));
        rows[2 * i + 1] = (float)(length * sin(degrees[i] * M_PI / 180));
    }
    return open_run(words, ROWS, 2, rows);
}

static struct answer found; /* what was found last */

static int tear_down_all(void **state) {
    answer_release(&found);
    return tear_down(state);
}

static struct evaluate_request by_target(void) {
    return (struct evaluate_request){.path = file, .options = {.table = "target", .k = 20}};
}

/* Judges the model by a request; the answer is in `found`. */
static int judge(const char *measure, struct evaluate_request request) {
    answer_release(&found);
    return evaluate(&found, &model, evaluate_named(measure), &request, NULL);
}

/* Judges by a file of this text. */
static void score(const char *measure, const char *text, struct evaluate_request request) {
    text_is(text);
    int result = judge(measure, request);
    if (result) print_message("%s\n", report_sentence());
    assert_int_equal(result, 0);
}

#define NUMBER(name) answer_value(&found, "", name)

static void score_pairs(const char *text) {
    score("pairs", text, by_target());
}

/* ---- pairs ---- */

static void pairs_in_order(void **state) {
    /* angles 30, 35, 60, 90 with scores 9, 8, 7, 6: a perfect order; with one pair swapped 0.8 (d^2 = 2, 1 - 6 x 2 / 60) */
    score_pairs("king queen 9\nman woman 8\nthe paris 7\nparis king\t6\n");
    assert_float_equal(NUMBER("rho"), 1, 1e-12);
    assert_float_equal(NUMBER("covered"), 4, 0);
    score_pairs("king queen 8\nman woman 9\nthe paris 7\nparis king\t6\n");
    assert_float_equal(NUMBER("rho"), 0.8, 1e-12);
    score_pairs("king queen 6\nman woman 7\nthe paris 8\nparis king\t9\n");
    assert_float_equal(NUMBER("rho"), -1, 1e-12);
}

/* ASCII letters match in any case, so "king" is "King", the more frequent of the two; other letters match only in the same case. Pairs with
 * unknown words and short lines are not covered. */
static void pairs_coverage(void **state) {
    score_pairs("# a comment line\n\nKING\tQueen\t9.5 more\r\nman unknown 3\nunknown 3\n"
                                           "MAN woman 1e0\rthe \xD1\x81\xD0\xBB\xD0\xBE .5\n\xFF\xFE man 4");
    assert_float_equal(NUMBER("total"), 5, 0); /* this comment line has no number where a score should be, so it is taken for a header */
    assert_float_equal(NUMBER("covered"), 3, 0);
    assert_true(isfinite(NUMBER("rho")));
    score_pairs("\xEF\xBB\xBFking queen 1\nman woman 2\n"); /* a byte order mark is no letter */
    assert_float_equal(NUMBER("covered"), 2, 0);
}

/* Scores 1 1 2 3 have ranks 0.5 0.5 2 3; cosines in falling order have ranks 3 2 1 0. Pearson: -4.5 / sqrt(4.5 x 5). */
static void pairs_ties(void **state) {
    score_pairs("king queen 1\nman woman 1\nthe paris 2\nparis king 3\n");
    assert_float_equal(NUMBER("rho"), -4.5 / sqrt(4.5 * 5), 1e-12);
    score_pairs("king queen 1\nqueen king 2\nman woman 3\n"); /* the same cosine twice */
    assert_float_equal(NUMBER("rho"), -1.5 / sqrt(1.5 * 2), 1e-12);
}

static void pairs_refused(void **state) {
    text_is("Word 1 Score\nking queen 1\nking man high\n"); /* no word of the header is in the model, so the line is skipped */
    assert_failed_with(judge("pairs", by_target()), "line 3: 'high' is not a score");
    struct evaluate_request nowhere = by_target();
    nowhere.path = "/nonexistent";
    assert_failed_with(judge("pairs", nowhere), "/nonexistent");
    static const char *const texts[][2] = {
        {"", "has no line of two words and a score"},
        {"\n \r\n\t\n", "has no line of two words and a score"},
        {"king,queen\nman,woman\n", "has no line of two words and a score with tabs, commas or blanks between"},
        {"king unheard 5\nthe \xD0\xA1\xD0\xBB\xD0\xBE 1\n", "none of the 2 pairs of"},
        {"king queen 5\n", "the 1 pairs of"},
        {"king queen 5\nman woman 5\nking unheard 4", "that are covered, of 3, tell of no order"},
        {"king queen 5\nqueen king 4\n", "tell of no order"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        text_is(texts[i][0]);
        assert_failed_with(judge("pairs", by_target()), texts[i][1]);
    }
}

/* ---- analogies ---- */

static void score_analogies(const char *text, uint64_t restrict_rows) {
    struct evaluate_request request = by_target();
    request.options.first = restrict_rows;
    score("analogies", text, request);
}

static void analogies(void **state) {
    /* woman 55 - man 20 + king 50: the sum has angle 72; of the words not asked, queen (80) is nearest */
    score_analogies("man woman king queen\n", 0);
    assert_float_equal(NUMBER("covered"), 1, 0);
    assert_float_equal(NUMBER("accuracy"), 1, 0);
    assert_float_equal(NUMBER("semantic"), 1, 0);
    assert_true(isnan(NUMBER("syntactic")));
    score_analogies(
        ": capital\nMan woman King queen\nman woman king paris\n: gram1-x\nman woman king queen extra\n"
        "man woman king\n:  grammar\nman woman king unknown\nman woman king woman\n:Gram\nman woman king queen",
        0);
    assert_float_equal(NUMBER("total"), 6, 0);
    assert_float_equal(NUMBER("covered"), 5, 0);
    assert_float_equal(NUMBER("accuracy"), 0.6, 1e-12);
    assert_float_equal(NUMBER("semantic"), 2.0 / 3, 1e-12);
    assert_float_equal(NUMBER("syntactic"), 0.5, 1e-12);
}

static void analogies_restricted(void **state) {
    score_analogies("man woman king queen\nparis france man woman\n", 5);
    assert_float_equal(NUMBER("total"), 2, 0);
    assert_float_equal(NUMBER("covered"), 1, 0);
    assert_float_equal(NUMBER("accuracy"), 1, 0);
    score_analogies("man man man queen\n", 3 + 1); /* b - a + c is man itself, which is not allowed as an answer */
    assert_float_equal(NUMBER("covered"), 1, 0);
    assert_float_equal(NUMBER("accuracy"), 0, 0);
}

static void analogies_refused(void **state) {
    struct evaluate_request request = by_target();
    request.options.first = 5;
    static const char *const texts[][2] = {{"", "has no line of four words"},
                                           {": capital\nman woman king\n\n", "has no line of four words"},
                                           {"man,woman,king,queen\n", "has no line of four words"},
                                           {"paris france man woman\nking man woman unheard\n",
                                            "has its four words among the 5 most frequent of"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        text_is(texts[i][0]);
        assert_failed_with(judge("analogies", request), texts[i][1]);
    }
}

/* ---- lists ---- */

static struct evaluate_request of_lists(struct corpus_options reading, const char *train, uint32_t k) {
    return (struct evaluate_request){
        .path = file, .known = train, .reading = reading, .options = {.table = "target", .k = k}};
}

static void score_lists_of(struct corpus_options reading, const char *train, const char *held_out, uint32_t k) {
    char *other = small_path(run.directory, "train");
    small_write(run.directory, "train", train, strlen(train));
    score("held_out", held_out, of_lists(reading, other, k));
    free(other);
}

static void score_lists(const char *train, const char *held_out, uint32_t k) {
    score_lists_of(plain_options(FORMAT_LISTS), train, held_out, k);
}

static void lists(void **state) {
    /* Rows are named by their angles in degrees. The list contains king, at 290. Nearest by cosine are 240 (50 degrees away), then 20 and 200 (90
     * away) and the row of zeros, whose cosine is also 0. */
    score_lists("u1 king\n", "u1 \xD1\x81\xD0\xBB\xD0\xBE\n", 1);
    assert_float_equal(NUMBER("lists"), 1, 0);
    assert_float_equal(NUMBER("recall"), 1, 0);
    assert_float_equal(NUMBER("ndcg"), 1, 0);
    assert_float_equal(NUMBER("hit"), 1, 0);
    /* the held-out item is its second answer: the gain is 1 / log2(3) of at most 1 */
    score_lists("u1 man\n", "u1 King\n", 2); /* man 20: boy 25, King 50 */
    assert_float_equal(NUMBER("ndcg"), 1 / log2(3), 1e-12);
    assert_float_equal(NUMBER("recall"), 1, 0);
    score_lists("u1 man\n", "u1 King\n", 1);
    assert_float_equal(NUMBER("recall") + NUMBER("ndcg") + NUMBER("hit"), 0, 0);
}

/* A list's training items are left out of its answer and, if they are held out as well, of the score. An unknown held-out item
 * counts as one miss, however often it occurs. */
static void lists_own_and_unknown(void **state) {
    /* the list searches with the mean of 20 and 25. Its own items boy and man are no answers, so King 50, woman 55, girl 61 are */
    score_lists("u1 man boy ghost\n", "u1 woman woman ghost ghost other boy\n", 2);
    assert_float_equal(NUMBER("unknown"), 2, 0);
    assert_float_equal(NUMBER("held_out"), 4, 0);
    assert_float_equal(NUMBER("trained"), 1, 0);
    assert_float_equal(NUMBER("recall"), 1.0 / 3, 1e-12); /* found: woman, of {woman, ghost, other} */
    assert_float_equal(NUMBER("ndcg"), (1 / log2(3)) / (1 + 1 / log2(3)), 1e-12);
    assert_float_equal(NUMBER("hit"), 1, 0);
}

/* A list may have several lines. It is not scored if it has no line in the training file, or no held-out items. If none of its training items is
 * known, it is scored: all rows score the same, so its answers are the rows with the lowest ids. */
static void lists_that_count(void **state) {
    score_lists("u1 man\nu2 girl\nu3 king\nu1 boy\nu4 ghost\n\n  \n",
                                           "u1\nu2\nu5 king\nu1 King\r\nu1 woman\nu4 the\n", 2);
    assert_float_equal(NUMBER("lists"), 2, 0);
    assert_float_equal(NUMBER("cold"), 1, 0); /* list u5 has no line in the training file */
    assert_float_equal(NUMBER("unknown"), 0, 0);
    assert_float_equal(NUMBER("recall"), 1, 1e-12); /* u1 finds King and woman; u4 finds 'the', which is row 0 */
    assert_float_equal(NUMBER("ndcg"), 1, 1e-12);
}

static void more_places_than_rows(void **state) {
    score_lists("u1 man boy\n", "u1 zero king\n", 100);
    assert_float_equal(NUMBER("recall"), 1, 0);
    assert_true(NUMBER("ndcg") > 0 && NUMBER("ndcg") < 1);
}

static void same_numbers(const struct answer *wanted) {
    assert_int_equal(found.count, wanted->count);
    for (uint64_t i = 0; i < found.count; i++) {
        assert_string_equal(found.numbers[i].name, wanted->numbers[i].name);
        assert_true(found.numbers[i].value == wanted->numbers[i].value && found.numbers[i].count == wanted->numbers[i].count);
    }
}

/* Lists get the same scores whichever format their file is in. */
static void lists_of_every_format(void **state) {
    struct answer wanted;
    score_lists("u1 man boy\nu2 girl\n", "u1 woman King\nu2 queen the\n", 3);
    wanted = found;
    found = (struct answer){.count = 0};
    static const enum corpus_format formats[] = {FORMAT_LISTS, FORMAT_TEXT, FORMAT_ADJACENCY};
    assert_true(answer_value(&wanted, "", "lists") == 2);
    for (int i = 0; i < 3; i++) {
        score_lists_of(plain_options(formats[i]), "u1\tman  boy\r\nu2 girl",
                               "\xEF\xBB\xBFu1 woman King\ru2 queen the\r", 3);
        same_numbers(&wanted);
    }
    struct corpus_options pairs = plain_options(FORMAT_PAIRS);
    report_quiet(1); /* hides the note about the header */
    score_lists_of(pairs, "user,item,rating\nu1,man,1\nu2,girl,2\nu1,boy,3\n",
                           "u2,queen,5\nu1,woman,4\nu1,King,4.5\nu2,the,3,978300760\n", 3);
    same_numbers(&wanted); /* the rating must not be read as an item */
    pairs.min_rating = 3;
    score_lists_of(pairs, "u1 man 5\nu1 paris 2\nu2 girl 3\nu1 boy 3\n",
                           "u1 woman 3\nu1 King 9\nu1 zero 2.9\nu3 zero 1\nu2 queen 3\nu2 the 3", 3);
    same_numbers(&wanted);
    answer_release(&wanted);
}

static int refuse_lists(enum corpus_format format, const char *train, const char *held_out) {
    struct evaluate_request request = of_lists(plain_options(format), train, 20);
    request.path = held_out;
    return judge("held_out", request);
}

static void lists_refused(void **state) {
    char *other = small_path(run.directory, "train");
    small_write(run.directory, "train", "u1 man\n", 7);
    text_is("u2 king\nu1\n");
    assert_failed_with(refuse_lists(FORMAT_LISTS, other, file), "no list of");
    assert_failed_with(refuse_lists(FORMAT_LISTS, "/nonexistent", file), "/nonexistent");
    assert_failed_with(refuse_lists(FORMAT_LISTS, other, "/nonexistent"), "/nonexistent");
    assert_failed_with(refuse_lists(FORMAT_PAIRS, other, file), "line 2: 1 field with blanks between; wanted list, item");
    small_write(run.directory, "file", "u1 man king man\n", 16);
    assert_int_equal(refuse_lists(FORMAT_LISTS, other, file), 0); /* one of the two held-out items is a training item, which is allowed */
    small_write(run.directory, "file", "u1 man man\n", 11);
    assert_failed_with(refuse_lists(FORMAT_LISTS, other, file), "1 of 1 held-out items of");
    text_is("");
    assert_failed_with(refuse_lists(FORMAT_LISTS, other, file), "has no list with an item");
    small_write(run.directory, "file", "SPTX-IDS and more", 17);
    assert_failed_with(refuse_lists(FORMAT_LISTS, other, file), "is an id stream");
    free(other);
}

/* ---- groups ---- */

/* Groups, with the angles of their words: King (50), woman (55), girl (61); man (20), boy (25); the (200), slovo (240); paris
 * (140), france (100), queen (80). Each word but queen, whose nearest is girl, has its nearest word in its own group. zero is
 * alone in its group; king has no group. */
static const char planted[] =
    "King A x\nwoman A y\ngirl\tA\tz\nman B x\r\nboy B y\n\nthe C x\n\xD1\x81\xD0\xBB\xD0\xBE C y\n"
    "paris D x\nfrance D y\nqueen D z\nzero E z\nunheard A x";

static int score_groups(const char *text, uint64_t met, uint64_t sample, uint32_t k) {
    struct evaluate_request request = by_target();
    request.options.met = met;
    request.options.sample = sample;
    request.options.k = k;
    text_is(text);
    return judge("groups", request);
}

#define COLUMN(number, name) answer_value(&found, number, name)

static void groups_are_found(void **state) {
    assert_int_equal(score_groups(planted, 0, 100, 1), 0);
    assert_float_equal(COLUMN("1", "rows"), 11, 0);
    assert_float_equal(COLUMN("1", "asked"), 10, 0); /* zero has no other row in its group */
    assert_float_equal(COLUMN("1", "share"), 0.9, 1e-12);
    assert_float_equal(COLUMN("1", "chance"), 16.0 / 11 / 10, 1e-12);
    assert_float_equal(COLUMN("2", "asked"), 11, 0); /* in groups x, y and z hardly any neighbour is in the same group */
    assert_true(COLUMN("2", "share") < 0.5);
}

/* The rows that occur at least 20 times are the first eight; among them, "the" and "queen" are alone in their groups. Of the five neighbours of
 * each other row only one or two can be in its group, and all of these are found. */
static void groups_of_rows_met_often(void **state) {
    assert_int_equal(score_groups(planted, 20, 100, 5), 0);
    assert_float_equal(COLUMN("1", "rows"), 7, 0);
    assert_float_equal(COLUMN("1", "asked"), 5, 0);
    assert_float_equal(COLUMN("1", "share"), 1, 1e-12);
    assert_float_equal(COLUMN("1", "chance"), 5.0 / 7, 1e-12);
    assert_int_equal(score_groups(planted, 20, 3, 50), 0); /* k is larger than the number of rows */
    assert_float_equal(COLUMN("1", "rows"), 7, 0);
    assert_true(COLUMN("2", "asked") <= 3);
    assert_float_equal(COLUMN("2", "share"), 1, 1e-12);
    assert_float_equal(COLUMN("2", "chance"), 1, 1e-12);
}

static void groups_that_cannot_be_read(void **state) {
    static const char *const texts[] = {
        "",           "\n\r\n", "King\n", "King A\nwoman A y\n", "King A B\nwoman A\n", "King 1 2 3 4 5 6 7 8 9\n",
        "unheard A\n"};
    static const char *const parts[] = {"has no line",
                                        "has no line",
                                        "the first line has 0 groups",
                                        "line 2 has 2 groups behind its word, the first line 1",
                                        "line 2 has 1 groups behind its word, the first line 2",
                                        "wanted 1 to 8",
                                        "no word that the corpus names 5 times or more stands in"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_failed_with(score_groups(texts[i], 5, 10, 3), parts[i]);
    assert_failed_with(score_groups(planted, 91, 10, 3), "is named 91 times or more");
    assert_failed_with(score_groups("King A\nwoman B\nman C\n", 5, 10, 3), "has another one in its group");
}

/* Tries 600 random rows that have nothing to do with their 20 groups, and 600 rows that are near the rows of their group. */
static void random_vectors_get_what_chance_gives(void **state) {
    enum { MANY = 600, DIM = 8, GROUPS = 20 };
    static float rows[MANY * DIM];
    char vocabulary[MANY * 16] = "", text[MANY * 16] = "";
    struct small_run many;
    struct model of_many;
    struct evaluate_request request = {.options = {.table = "target", .met = 1, .sample = MANY, .k = 10}};
    for (int i = 0; i < MANY; i++) {
        sprintf(vocabulary + strlen(vocabulary), "w%d\t%d\n", i, MANY - i);
        sprintf(text + strlen(text), "w%d\t%d\n", i, i % GROUPS);
    }
    for (int planting = 0; planting < 2; planting++) {
        for (uint32_t i = 0; i < MANY * DIM; i++) {
            uint32_t of = planting ? i / DIM % GROUPS * DIM + i % DIM : i;
            rows[i] = draw_unit(draw_at(1, DRAW_INIT_TARGET, of, 0, 0).word[0]) - 0.5f;
        }
        small_run_make(&many, vocabulary, MANY, DIM, rows, rows);
        assert_int_equal(model_open(&of_many, many.directory), 0);
        small_write(many.directory, "file", text, strlen(text));
        char *path = small_path(many.directory, "file");
        request.path = path;
        answer_release(&found);
        assert_int_equal(evaluate(&found, &of_many, evaluate_named("groups"), &request, NULL), 0);
        assert_float_equal(COLUMN("1", "asked"), MANY, 0);
        assert_float_equal(COLUMN("1", "chance"), 29.0 / 599, 1e-12);
        /* of 6,000 neighbours 290 are expected to be right by chance, with a standard deviation of 17, or of 24 if neighbours
         * occur in pairs; a result may differ by 4.5 times 24 */
        assert_float_equal(COLUMN("1", "share"), planting ? 1 : 29.0 / 599, planting ? 1e-12 : 4.5 * 24 / 6000);
        free(path);
        model_close(&of_many);
        small_run_remove(&many);
    }
}

/* ---- labels ---- */

static void score_labels(const char *text, double share) {
    struct evaluate_request request = by_target();
    request.options.shares = &share;
    request.options.share_count = 1;
    score("labels", text, request);
}

/* Nodes whose vectors point to the right have one label, nodes whose vectors point to the left have another. A node that the run
 * does not know has a vector of zeros. */
static void labels_of_half_planes(void **state) {
    static const char halves[] = "King right\nqueen right\nman right\nwoman right\nking right\nboy right\ngirl right train\n"
                                 "the left\nparis left\n\xD1\x81\xD0\xBB\xD0\xBE left test\nfrance\nunheard right\n";
    score_labels(halves, 0.9);
    assert_float_equal(COLUMN("1", "total"), 11, 0);
    assert_float_equal(COLUMN("1", "covered"), 10, 0);
    assert_float_equal(COLUMN("1", "labels"), 2, 0);
    assert_true(COLUMN("1", "micro") >= 0.9 && COLUMN("1", "micro") <= 1 && COLUMN("1", "macro") > 0.6 && COLUMN("1", "micro_spread") < 0.3);
}

/* A node gets as many predicted labels as it has labels, so for a node with all labels all are right. A label that every training node has is
 * predicted first. */
static void labels_that_need_no_regression(void **state) {
    score_labels("king a b\nqueen b a\nman a b a\nwoman a b\nboy a\nboy b\n", 0.5);
    assert_float_equal(COLUMN("1", "total"), 5, 0);
    assert_float_equal(COLUMN("1", "micro"), 1, 0);
    assert_float_equal(COLUMN("1", "macro"), 1, 1e-12);
    score_labels("king a\nqueen a\nman a\nwoman a\nboy a b\n", 0.2);
    assert_true(COLUMN("1", "micro") > 0.7 && COLUMN("1", "micro") < 1);
}

int main(void) {
#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down_all)
    const struct CMUnitTest tests[] = {
        ON_RUN(pairs_in_order),
        ON_RUN(pairs_coverage),
        ON_RUN(pairs_ties),
        ON_RUN(pairs_refused),
        ON_RUN(analogies),
        ON_RUN(analogies_restricted),
        ON_RUN(analogies_refused),
        ON_RUN(lists),
        ON_RUN(lists_own_and_unknown),
        ON_RUN(lists_that_count),
        ON_RUN(more_places_than_rows),
        ON_RUN(lists_of_every_format),
        ON_RUN(lists_refused),
        ON_RUN(groups_are_found),
        ON_RUN(groups_of_rows_met_often),
        ON_RUN(groups_that_cannot_be_read),
        ON_RUN(random_vectors_get_what_chance_gives),
        ON_RUN(labels_of_half_planes),
        ON_RUN(labels_that_need_no_regression),
    };
    return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
