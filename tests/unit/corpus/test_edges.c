#include "tests/testing.h"

#include "corpus/fields.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

static struct corpus_left left;

/* Reads a file in blocks of about four bytes. Returns "from:to=weight;" for each edge (without "=1"), or the part of the error
 * message after "edges' ". */
static const char *edges_of(const char *text, enum corpus_weights weights, enum corpus_header header) {
    static char out[1024];
    struct corpus_options options = plain_options(FORMAT_GRAPH);
    struct corpus *corpus = scratch_corpus(scratch_text("edges", text), 4);
    struct corpus_block block = {0};
    struct corpus_cursor cursor;
    struct edge_line edge;
    char *at = out;
    int more, failed = 0;
    *out = 0;
    left = (struct corpus_left){0};
    options.look.header = header;
    options.look.no_values = weights == WEIGHTS_NO;
    corpus_read_as(corpus, &options);
    while (!failed && (more = corpus_next(corpus, &block)) != 0) {
        failed = more < 0;
        if (failed) break;
        corpus_cursor_start(&cursor, &block);
        while ((more = edges_next(&cursor, &block, weights, &left, &edge)) > 0) {
            at += sprintf(at, "%.*s:%.*s", (int)edge.from_length, edge.from, (int)edge.to_length, edge.to);
            at += edge.weight == 1 ? sprintf(at, ";") : sprintf(at, "=%g;", edge.weight);
        }
        failed = more < 0;
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    if (failed) snprintf(out, sizeof out, "%s", strstr(report_sentence(), "edges' ") + 7);
    report_clear();
    return out;
}

static void assert_edges(const char *text, enum corpus_weights weights, const char *wanted) {
    const char *got = edges_of(text, weights, HEADER_AUTO);
    if (strcmp(got, wanted)) fail_msg("of \"%s\"\n  wanted \"%s\"\n  got    \"%s\"", text, wanted, got);
}

#define TRIPLE(text)                                                                                                   \
    "line 1: '" text "' looks like a triple (head, relation, tail): its third column is no weight; set corpus.format = triples " \
    "to train triples, corpus.columns = 1,3 to read head and tail as an edge, or graph.weights = no to ignore the third column"

static void edges_come_apart_at_blanks_tabs_and_commas(void **state) {
    assert_edges("1 2\n2\t3\r\n  4   5  \n\n5 6", WEIGHTS_AUTO, "1:2;2:3;4:5;5:6;");
    assert_edges("3,4\n  4 , 5  \n", WEIGHTS_AUTO, "3:4;4:5;");
    assert_edges("1 2 .5\n2\t3\t4 978300760\n3 4 1e-3\n", WEIGHTS_YES, "1:2=0.5;2:3=4;3:4=0.001;");
    assert_edges("1 2 .5\n2 3 likes\n", WEIGHTS_NO, "1:2;2:3;");
    assert_edges("a b likes\nb c knows 2010\n", WEIGHTS_NO, "a:b;b:c;");
    assert_edges("a likes b\nb knows c\n", WEIGHTS_AUTO, TRIPLE("a likes b"));
    assert_edges("a likes b\nb knows c\n", WEIGHTS_YES, TRIPLE("a likes b"));
    assert_edges("\"New York\",\"San \"\"F\"\"\"\nParis,Rome\n", WEIGHTS_AUTO, "New York:San \"F\";Paris:Rome;");
    assert_edges("a b,c d\n", WEIGHTS_AUTO, "a b:c d;");
    assert_edges("a::b\nb::c\n", WEIGHTS_AUTO, "a:b;b:c;");
    assert_edges("", WEIGHTS_YES, "");
}

static void comments_may_stand_anywhere(void **state) {
    assert_edges("# Nodes: 3\n% more\n1 2\n  # inside\n2 3\n%", WEIGHTS_AUTO, "1:2;2:3;");
    assert_edges("#\n#\n", WEIGHTS_AUTO, "");
    assert_edges("a#b c%\n", WEIGHTS_AUTO, "a#b:c%;");
    assert_edges("\"#tag\",b\n", WEIGHTS_AUTO, "#tag:b;");
    assert_edges("\xEF\xBB\xBF# mark\n1 2\n", WEIGHTS_AUTO, "1:2;");
}

static void headers_are_left_out(void **state) {
    assert_edges("source,target,weight\nann,bob,2\n", WEIGHTS_YES, "ann:bob=2;");
    assert_edges("# made by hand\n\nSource;Target;Type;Id;Weight\nann;bob;Undirected;0;2.5\n", WEIGHTS_YES,
                 "ann:bob=2.5;");
    assert_edges("weight\tdst\tsrc\n3\t1\t2\n", WEIGHTS_YES, "2:1=3;");
    assert_edges("from,to\nann,bob\n", WEIGHTS_AUTO, "ann:bob;");
    assert_edges("x y\n1 2\n", WEIGHTS_AUTO, "1:2;");
    assert_edges("x y z\n1 2 a\n", WEIGHTS_NO, "1:2;");
    assert_edges("ann bob strength\nann bob 2\n", WEIGHTS_YES, "ann:bob=2;");
    assert_edges("%%MatrixMarket matrix coordinate real symmetric\n% by hand\n3 3 2\n1 2 .5\n3 1 2\n", WEIGHTS_YES,
                 "1:2=0.5;3:1=2;");
    assert_edges("% sym unweighted\n% 2 3 3\n1 2\n1 3\n", WEIGHTS_AUTO, "1:2;1:3;");
    assert_string_equal(edges_of("# sizes\n3 3 2\n1 2\n", WEIGHTS_NO, HEADER_YES), "1:2;");
    assert_string_equal(edges_of("source target\n1 2\n", WEIGHTS_NO, HEADER_NO), "source:target;1:2;");
}

static void loops_and_edges_of_weight_0_are_left_out_and_counted(void **state) {
    assert_edges("1 1\n1 2\n11 1\n2 2\n", WEIGHTS_AUTO, "1:2;11:1;");
    assert_int_equal(left.loops, 2);
    assert_edges("1 2 0\n1 2 3\n2 2 0\n2 3 0.0\n", WEIGHTS_YES, "1:2=3;");
    assert_int_equal(left.loops, 1);
    assert_int_equal(left.zeros, 2);
}

static void bad_edges_name_their_line(void **state) {
    static const char *const bad[][2] = {
        {"1 2\nlonely\n", "line 2: 1 field with blanks between; wanted source, target[, weight]: lonely"},
        {"1 2 3 4 5\n", "line 1: nothing tells which columns are wanted: 1 2 3 4 5; say which columns are source and target by corpus.columns, as in "
                           "corpus.columns = 1,3 or by their names"},
        {"1,,3\n", "line 1: its target is empty (column 2)"},
        {"source,target\na,b\n,c\n", "line 3: its source is empty (column 1)"},
        {"source;target\na;b\nc\n", "line 3: 1 column; source and target are columns 1 and 2"}};
    static const char *const weights[][2] = {
        {"1 2 1\n# or\n1 2 -1\n",
         "line 3: the weight '-1' is not a positive finite number; graph.weights = no reads edges without"},
        {"1 2 1\n1 2 nan\n",
         "line 2: the weight 'nan' is not a positive finite number; graph.weights = no reads edges without"},
        {"1 2 1\n1 2 inf\n",
         "line 2: the weight 'inf' is not a positive finite number; graph.weights = no reads edges without"},
        {"1 2 1\n1 2 1e39\n",
         "line 2: the weight '1e39' is not a positive finite number that 32 bits hold (1.2e-38 to 3.4e38)"},
        {"1 2 1\n1 2 1e-40\n",
         "line 2: the weight '1e-40' is not a positive finite number that 32 bits hold (1.2e-38 to 3.4e38)"},
        {"a b 1\nb c 1\na b d\n",
         "line 3: the weight 'd' is not a positive finite number; graph.weights = no reads edges without"},
        {"1 2 1\n1 2\n",
         "line 2: the edge has no weight, and edges have weights; graph.weights = no reads all edges without"},
        {"source,target\n1,2\n",
         "line 2: the edge has no weight, and no column is named as one; graph.weights = no reads all edges without"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_edges(bad[i][0], WEIGHTS_AUTO, bad[i][1]);
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        assert_edges(weights[i][0], WEIGHTS_YES, weights[i][1]);
    assert_edges("1 2\n2 3 .5\n", WEIGHTS_AUTO,
                 "line 2: the edge has a weight, '.5', and not all of the first edges have one; set graph.weights "
                 "to yes or no");
}

static int weighted(const char *text) {
    struct corpus_options options = plain_options(FORMAT_GRAPH);
    struct corpus *corpus = scratch_corpus(scratch_text("edges", text), 0);
    int result = edges_look_weighted(corpus, &options);
    corpus_close(corpus);
    return result;
}

static void a_third_column_of_numbers_is_one_of_weights(void **state) {
    assert_int_equal(weighted("1 2 3\n2 3 .5\n"), 1);
    assert_int_equal(weighted("# a\n1 2 3 4\n"), 1);
    assert_int_equal(weighted("source target weight\na b 1\n"), 1);
    assert_int_equal(weighted("source,target,id,weight\na,b,x,1\n"), 1);
    assert_int_equal(weighted("source,target,id\na,b,1\n"), 0);
    assert_int_equal(weighted("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n"), 0);
    assert_int_equal(weighted("1 2\n2 3\n"), 0);
    assert_int_equal(weighted("1 2 3\n2 3 likes\n2 4 likes\n"), -1);
    report_clear();
    assert_int_equal(weighted("1 2 3\n2 3\n"), 0);
    assert_int_equal(weighted("# nothing\n"), 0);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(edges_come_apart_at_blanks_tabs_and_commas),
        IN_SCRATCH(comments_may_stand_anywhere),
        IN_SCRATCH(headers_are_left_out),
        IN_SCRATCH(loops_and_edges_of_weight_0_are_left_out_and_counted),
        IN_SCRATCH(bad_edges_name_their_line),
        IN_SCRATCH(a_third_column_of_numbers_is_one_of_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
