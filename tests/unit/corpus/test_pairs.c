#include "tests/testing.h"

#include "corpus/fields.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

static void read_as_pairs(struct corpus *corpus, enum corpus_header header) {
    struct corpus_options options = plain_options(FORMAT_PAIRS);
    options.look.header = header;
    corpus_read_as(corpus, &options);
}

static void whole_lines_end_blocks_at_lines(void **state) {
    struct corpus *corpus = scratch_corpus(scratch_text("lines", "one two three\nfour\n\nfive six"), 3);
    struct corpus_block block = {0};
    read_as_pairs(corpus, HEADER_AUTO);
    while (corpus_next(corpus, &block) > 0) {
        assert_int_equal(block.continues, 0);
        assert_int_equal(block.line_open, 0);
        assert_true(block.bytes[block.length - 1] == '\n' || block.bytes[block.length - 1] == 'x');
    }
    corpus_block_release(&block);
    corpus_close(corpus);
}

/* Returns "list:item;" for each pair that is kept, or the error message. */
static const char *pairs_of_bytes(const char *text, uint64_t length, double min_rating, enum corpus_header header) {
    static char out[1024];
    struct corpus *corpus = scratch_corpus(scratch_file("pairs", text, length), 4);
    struct corpus_block block = {0};
    struct corpus_options options = plain_options(FORMAT_PAIRS);
    struct corpus_left left = {0};
    struct corpus_cursor cursor;
    struct pair_line pair;
    options.min_rating = min_rating;
    char *at = out;
    int more, failed = 0;
    *out = 0;
    read_as_pairs(corpus, header);
    while (!failed && (more = corpus_next(corpus, &block)) != 0) {
        failed = more < 0;
        if (failed) break;
        corpus_cursor_start(&cursor, &block);
        while ((more = pairs_next(&cursor, &block, &options, &left, &pair)) > 0)
            at += sprintf(at, "%.*s:%.*s;", (int)pair.list_length, pair.list, (int)pair.item_length, pair.item);
        failed = more < 0;
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    if (failed) snprintf(out, sizeof out, "%s", strchr(report_sentence(), 'l'));
    report_clear();
    return strstr(out, "line") ? strstr(out, "line") : out;
}

static const char *pairs_of(const char *text, double min_rating) {
    return pairs_of_bytes(text, strlen(text), min_rating, HEADER_AUTO);
}

static void pairs_come_apart_at_blanks_tabs_and_commas(void **state) {
    assert_string_equal(pairs_of("u1 a\nu1\tb\t5\r\n\n  u2   d 3\nu3 e", -INFINITY), "u1:a;u1:b;u2:d;u3:e;");
    assert_string_equal(pairs_of("u2,c,4.5\n\n  u2 , d , 3 , 978300760\nu3,e", -INFINITY), "u2:c;u2:d;u3:e;");
    assert_string_equal(pairs_of("u2\tNew York\nu3\tRome\n", -INFINITY), "u2:New York;u3:Rome;");
    assert_string_equal(pairs_of("u1 a,b\nu2 c,d\n", -INFINITY), "u1 a:b;u2 c:d;");
    assert_string_equal(pairs_of("u1 a 5\nu1 b 3.9\nu2 c 4\nu2 d -1\nu2 e 1e1\n", 4), "u1:a;u2:c;u2:e;");
    assert_string_equal(pairs_of("user,item,rating\n1,2,3\n", -INFINITY), "1:2;");
    assert_string_equal(pairs_of("", 1), "");
}

/* The reader does not use strtod() for ratings that consist of digits only. It must return the same doubles as strtod(). */
static void ratings_are_the_nearest_doubles(void **state) {
    static const char *const words[] = {"0",
                                        "7",
                                        "5.",
                                        ".5",
                                        "0.1",
                                        "4.35",
                                        "123456789012345",
                                        "0.00000000000001",
                                        "9007199254740993",
                                        "99999999999.9999",
                                        "1e3",
                                        "-2.5",
                                        "+1",
                                        "0.30000000000000004"};
    static const char *const none[] = {"", ".", "1.2.3", "..", "1a", "-", "1,5", "nan", "inf", "1 2"};
    const struct columns_form point = COLUMNS_PLAIN, comma = {.separator = ";", .decimal_comma = 1};
    double value;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(columns_number(&point, words[i], strlen(words[i]), &value), 0);
        assert_true(value == strtod(words[i], NULL));
    }
    for (int i = 0; i < 20000; i++) {
        char word[32];
        snprintf(word, sizeof word, "%u.%0*u", scratch_random(100000), 1 + (int)scratch_random(9), scratch_random(1000000));
        assert_int_equal(columns_number(&point, word, strlen(word), &value), 0);
        assert_true(value == strtod(word, NULL));
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(columns_number(&point, none[i], strlen(none[i]), &value), -1);
    assert_int_equal(columns_number(&comma, "1,5", 3, &value), 0);
    assert_true(value == 1.5);
    assert_int_equal(columns_number(&comma, "-1,5e2", 6, &value), 0);
    assert_true(value == -150);
}

#define UNTOLD(why, line)                                                                                              \
    "line 1: " why ": " line "; say which columns are list and item by corpus.columns, as in corpus.columns = 1,3 or by their names"

static void bad_pairs_name_their_line(void **state) {
    assert_string_equal(pairs_of("1,2,3\nuser,item,rating\n", -INFINITY),
                        "line 2: the rating 'rating' is not a number");
    assert_string_equal(pairs_of("a,b,1\na,b,nan\n", -INFINITY), "line 2: the rating 'nan' is not a number");
    assert_string_equal(pairs_of("a,b,c\na,b,nan\n", -INFINITY), UNTOLD("the third column is no rating, and nothing tells which "
                                                                        "column is what", "a,b,c"));
    assert_string_equal(pairs_of("a,b,c\na,b,3\n", -INFINITY), "a:b;"); /* the line is a header, since its third field is not a number */
    assert_string_equal(pairs_of("1 2\n\nlonely\n", -INFINITY),
                        "line 3: 1 field with blanks between; wanted list, item[, rating]: lonely");
    assert_string_equal(pairs_of("1 2 3 4 5\n", -INFINITY),
                        UNTOLD("nothing tells which columns are wanted", "1 2 3 4 5"));
    assert_string_equal(pairs_of("1 2 3\n1 2\n", 3), "line 2: no rating, and corpus.min_rating is set");
    /* Pairs without a list or an item are left out and counted. */
    assert_string_equal(pairs_of("1,,3\n", -INFINITY), "");
    assert_string_equal(pairs_of(",2,3\n", -INFINITY), "");
    assert_string_equal(pairs_of("1 , , 3\n", -INFINITY), "");
    assert_string_equal(pairs_of("1,2,\n2,3,4\n", -INFINITY), "1:2;2:3;"); /* the third field is empty: the pair has no rating */
    assert_string_equal(pairs_of("1,2\n3,4\n5,6,7\n", -INFINITY), "1:2;3:4;5:6;");
}

static void assert_pairs(const char *text, enum corpus_header header, const char *wanted) {
    const char *got = pairs_of_bytes(text, strlen(text), -INFINITY, header);
    if (strcmp(got, wanted)) fail_msg("of \"%s\"\n  wanted \"%s\"\n  got    \"%s\"", text, wanted, got);
}

/* The first line that is not empty is left out as a header if one of its fields is text and the lines below have numbers in that
 * column. */
static void headers_are_left_out(void **state) {
    static const char *const headers[][2] = {{"user_id,book_id,rating\n1,2,3\n", "1:2;"},
                                             {"user\titem\trating\ttimestamp\r\n1\t2\t3\t4\r\n5\t6\t7\t8", "1:2;5:6;"},
                                             {"user item rating\n\n\n1 2 -3.5\n", "1:2;"},
                                             {"\n \n\nuser,item\n\n 1 , 2\n", "1:2;"},
                                             {"userId,movieId\n1,2\n3,4", "1:2;3:4;"},
                                             {"User ID, Book ID, My rating\na b,c\n", NULL},
                                             {"User ID,Book ID,My rating\na,b,3\n", "a:b;"},
                                             {"\"user\",\"item\",\"rating\"\nalice,dune,5\n", "alice:dune;"},
                                             {"\xEF\xBB\xBFuser,item,rating\n1,2,3\n", "1:2;"},
                                             {"user,item,rating\r1,2,3\r4,5,6", "1:2;4:5;"},
                                             {"user,item,rating", ""},
                                             {"user,item,rating\n1,2\n", "1:2;"}};
    static const char named[] = UNTOLD("the third column is no rating, and nothing tells which column is what", "u,i,good");
    static const char *const data[][2] = {
        {"1,2,3\n4,5,6\n", "1:2;4:5;"},
        {"u1,b1\nu2,b2\n", "u1:b1;u2:b2;"},
        {"alice,dune\n1,2\nbob,3\n", NULL}, /* two columns, in which numbers follow names: no header */
        {"alice,1984\n1,2\n", "alice:1984;1:2;"},
        {"alice,dune\n1,1984\n", "1:1984;"}, /* a word above a column of numbers is a header */
        {"user,item", ""},
        {"u,i,good\nu,j,bad\n", named},
        {",row,thing,rating\n0,1,2,3\n", "1:2;"}, /* a file that pandas wrote: its index column has no name */
        {"a,b,c,d,e\n1,2,3,4,5\n", UNTOLD("nothing tells which columns are wanted", "a,b,c,d,e")}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (headers[i][1]) assert_pairs(headers[i][0], HEADER_AUTO, headers[i][1]);
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if (data[i][1]) assert_pairs(data[i][0], HEADER_AUTO, data[i][1]);
    assert_pairs(
        "user,item,rating\n1,2,3\n", HEADER_NO,
        "line 1: the rating 'rating' is not a number; where the line names the columns, set corpus.header = yes");
    assert_pairs("user,item\n1,2\n", HEADER_NO, "user:item;1:2;");
    assert_pairs("user,item\n1,2\n", HEADER_YES, "1:2;");
    assert_pairs("\n\nu1,b1\nu2,b2", HEADER_YES, "u2:b2;");
    assert_pairs("\xEF\xBB\xBF\r\nu1,b1\r\nu2,b2", HEADER_YES, "u2:b2;");
    assert_pairs("1,2,3\n", HEADER_YES, "");
    assert_pairs("1,2,3", HEADER_YES, "");
    assert_pairs("", HEADER_YES, "");
    assert_pairs("user,item,rating\n1,2,3\nx,y,z\n", HEADER_AUTO, "line 3: the rating 'z' is not a number");
}

/* The names in a header say which column is which, in any order and among other columns. */
static void headers_name_columns(void **state) {
    static const char *const files[][2] = {
        {"rating,Title,userId,movieId,when\n5,\"Dune, \"\"revised\"\"\",u1,m1,3\n,x,u1,m2,3\n", "u1:m1;u1:m2;"},
        {"\"User-ID\";\"ISBN\";\"Book-Rating\"\r\n\"276725\";\"034545104X\";\"0\"\r\n", "276725:034545104X;"},
        {",user,item,rating\n0,1,2,3\n", "1:2;"}, /* an index column without a name */
        {"book_id\tuser_id\nThe Hobbit\tanne\n", "anne:The Hobbit;"},
        {"item user rating\n1 2 3\n", "2:1;"},
        {"item|user\n1|2\n\n 3 | 4 \n", "2:1;4:3;"},
        {"timestamp::user::item\n1::2::3\n", "2:3;"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) assert_pairs(files[i][0], HEADER_AUTO, files[i][1]);
    assert_pairs("user,x,item\n1,2\n", HEADER_AUTO,
                 "line 2: 2 columns; list and item are columns 1 and 3");
    assert_pairs("user,x,item\n1,2,\n", HEADER_AUTO, "");
    assert_pairs("item,user\n1,2\n", HEADER_YES, "2:1;");
    assert_pairs("item,user\n1,2\n", HEADER_NO, "item:user;1:2;");
    assert_string_equal(pairs_of("rating,user,item\n5,a,b\n3,a,c\n", 4), "a:b;");
    assert_string_equal(pairs_of("rating,user,item\n5,a,b\n,a,c\n", 4),
                        "line 3: no rating, and corpus.min_rating is set");
}

/* A separator other than blanks and commas is used only if blanks and commas do not split the first line. */
static void columns_come_apart_as_people_write_them(void **state) {
    static const char *const files[][2] = {{"1::1193::5::978300760\n1::661::3::97\n", "1:1193;1:661;"},
                                           {"a;b;3\nc;d;4\n", "a:b;c:d;"},
                                           {"a|b\nc|New York\n", "a:b;c:New York;"},
                                           {"a,\"Paris, Texas\"\nb,x\n", "a:Paris, Texas;b:x;"},
                                           {"a,\" Rome \"\nb,x\n", "a:Rome;b:x;"},         /* the blanks within quotes are no
                                                                                            * part of the name */
                                           {"\"\tb\n\"\tc\nx\t\"y\n", "\":b;\":c;x:\"y;"}, /* a quote that is not closed is part
                                                                                            * of a name */
                                           {"a ;|; 1 x\n\"b c 2 y\n", "a:;|;;\"b:c;"},
                                           {"\"a\" ; \"say \"\"b\"\"\"\n", "a:say \"b\";"},
                                           {"a|x b|y 5\nc d 4\n", "a|x:b|y;c:d;"}, /* here | is part of names */
                                           {"u:1,i::2\n", "u:1,i:2;"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) assert_pairs(files[i][0], HEADER_AUTO, files[i][1]);
    const char *open = "line 1: a double quote is not closed in its line, or something follows it";
    assert_pairs("a,\"b\nc\",d\n", HEADER_AUTO, open);
    assert_pairs("a,\"b\"c\n", HEADER_AUTO, open);
    assert_pairs("a,\"b\tc\"\nd,e\n", HEADER_AUTO, "line 1: column 2, 'b\\tc', has a tab or a line's end in it");
    assert_pairs("user;item\na\tb;c\n", HEADER_AUTO, "line 2: column 1, 'a\\tb', has a tab or a line's end in it");
    assert_pairs("a,\" \"\n", HEADER_AUTO, "");
    assert_pairs("a;;3\n", HEADER_AUTO, "");
}

/* Each file of a directory can begin with a header of its own. */
static void every_file_may_have_a_header(void **state) {
    char seen[64] = "";
    mkdir(in_scratch("d"), 0777);
    scratch_text("d/a", "user,item\n1,2\n");
    scratch_text("d/b", "3,4\n");
    scratch_text("d/c", "user,item\n5,6\n");
    struct corpus *corpus = scratch_corpus(in_scratch("d"), 4);
    struct corpus_block block = {0};
    const struct corpus_options options = plain_options(FORMAT_PAIRS);
    struct corpus_left left = {0};
    struct corpus_cursor cursor;
    struct pair_line pair;
    read_as_pairs(corpus, HEADER_AUTO);
    for (int pass = 0; pass < 2; pass++) {
        corpus_rewind(corpus);
        while (corpus_next(corpus, &block) > 0) {
            corpus_cursor_start(&cursor, &block);
            while (pairs_next(&cursor, &block, &options, &left, &pair) > 0)
                sprintf(seen + strlen(seen), "%.*s%d ", (int)pair.list_length, pair.list, (int)pair.line);
        }
    }
    assert_string_equal(seen, "12 31 52 12 31 52 ");
    corpus_block_release(&block);
    corpus_close(corpus);
}

/* The first or second line ends exactly at the end of the part in which a header is searched, or near it. */
static void headers_are_looked_for_in_the_front(void **state) {
    char *text = malloc(2 * FIRST_BYTES);
    for (int end = FIRST_BYTES - 3; end <= FIRST_BYTES + 3; end++) {
        int inside = end <= FIRST_BYTES;
        uint64_t n = (uint64_t)sprintf(text, "user,item,rating%*s\n1,2,3\n4,5,6\n", end - 17, "");
        const char *got = pairs_of_bytes(text, n, -INFINITY, HEADER_YES);
        assert_true(inside ? !strcmp(got, "1:2;4:5;") : strstr(got, "is longer than 65536 bytes") != NULL);
        n = (uint64_t)sprintf(text, "user,item,rating\n1,2,3%*s\n4,5,6\n", end - 23, "");
        got = pairs_of_bytes(text, n, -INFINITY, HEADER_AUTO);
        assert_true(!strcmp(got, "1:2;4:5;")); /* a single line in that part can still be a header */
        n = (uint64_t)sprintf(text, "user,item\n1,2%*s\n4,5\n", end - 14, "");
        got = pairs_of_bytes(text, n, -INFINITY, HEADER_AUTO);
        assert_string_equal(got, "1:2;4:5;");
    }
    free(text);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(whole_lines_end_blocks_at_lines),
        IN_SCRATCH(pairs_come_apart_at_blanks_tabs_and_commas),
        IN_SCRATCH(ratings_are_the_nearest_doubles),
        IN_SCRATCH(bad_pairs_name_their_line),
        IN_SCRATCH(headers_are_left_out),
        IN_SCRATCH(headers_name_columns),
        IN_SCRATCH(columns_come_apart_as_people_write_them),
        IN_SCRATCH(every_file_may_have_a_header),
        IN_SCRATCH(headers_are_looked_for_in_the_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
