#include "tests/testing.h"

#include "corpus/fields.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

static int literals = 1; /* corpus.literals */

/* Reads a file in blocks of about four bytes. Returns "head:relation:tail;" for each triple, or the part of the error message after
 * "triples' ". */
static const char *triples_of(const char *text) {
    static char out[1 << 16];
    struct corpus_options options = plain_options(FORMAT_TRIPLES);
    struct corpus *corpus = scratch_corpus(scratch_text("triples", text), 4);
    struct corpus_block block = {0};
    struct corpus_left left = {0};
    struct corpus_cursor cursor;
    struct triple_line triple;
    char *at = out;
    int more, failed = 0;
    *out = 0;
    corpus_read_as(corpus, &options);
    while (!failed && (more = corpus_next(corpus, &block)) != 0) {
        failed = more < 0;
        if (failed) break;
        corpus_cursor_start(&cursor, &block);
        while ((more = triples_next(&cursor, &block, literals, &left, &triple)) > 0)
            for (int i = 0; i < TRIPLE_TERMS; i++)
                at += sprintf(at, "%.*s%s", (int)triple.length[i], triple.term[i], i == TRIPLE_TAIL ? ";" : ":");
        failed = more < 0;
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    if (failed) snprintf(out, sizeof out, "%s", strstr(report_sentence(), "triples' ") + strlen("triples' "));
    report_clear();
    return out;
}

static void assert_triples(const char *text, const char *wanted) {
    const char *got = triples_of(text);
    if (strcmp(got, wanted)) fail_msg("of \"%s\"\n  wanted \"%s\"\n  got    \"%s\"", text, wanted, got);
}

static void lines_are_head_relation_tail(void **state) {
    assert_triples("a r b\n\nc  r\td\r\n a r a", "a:r:b;c:r:d;a:r:a;");
    assert_triples("New York\tin\tthe US\nRome\tin\tItaly\n", "New York:in:the US;Rome:in:Italy;");
    assert_triples("tail,head,relation\nb,a,\"r, s\"\nd,c,r\n", "a:r, s:b;c:r:d;");
}

static void wrong_lines_are_named(void **state) {
    assert_triples("a r b\nc d\n", "line 2: 2 fields with blanks between; wanted head, relation, tail: c d");
    assert_triples("a\tr\tb\nc\td\n", "line 2: 2 fields with tabs between; wanted head, relation, tail: c\\td");
    assert_triples("a,r,b\nc,,d\n", "line 2: its relation is empty (column 2)");
    assert_triples("a,r,b\nc,r,\n", "line 2: its tail is empty (column 3)");
    assert_triples("head,relation,tail\na,r,b\nc,r\n", "line 3: 2 columns; head, relation and tail are columns 1, 2 and 3");
    assert_triples("a,r,b,1\nc,r,d,1\n",
                   "line 1: nothing tells which columns are wanted: a,r,b,1; say which columns are head, relation and "
                   "tail by corpus.columns, as in corpus.columns = 1,2,3 or by their names");
    assert_triples("a,r,b\nc,r,d,1\n", "line 2: 4 fields with commas between; the first line has 3: c,r,d,1");
    assert_triples("a\tr\tb\nc\tr\td\ne\tr\tf\tg\n", "line 3: 4 fields with tabs between; the first lines have 3: e\\tr\\tf\\tg");
}

static void a_first_line_that_is_too_long_is_refused(void **state) {
    static char many[(1 << 17) + 64]; /* more bytes than the look reads */
    memset(many, 'x', 1 << 17);
    memcpy(many, "<a> <r> \"", 9);
    strcpy(many + (1 << 17), "\" .\n<a> <r> <b> .\n");
    assert_triples(many, "is longer than 65536 bytes, by which nobody can tell how triples are written: begin with a shorter one");
}

static void ntriples_lose_their_brackets(void **state) {
    assert_triples("# people\n<a:x> <a:r> <a:y> .\n  _:b1\t<a:r>\t_:b2.\n\n<a:x><a:r>_:b1 . # more\n",
                   "a:x:a:r:a:y;_:b1:a:r:_:b2;a:x:a:r:_:b1;");
    assert_triples("<x> <r> \"a.\".\n<x> <r> \"b\"@de.\n<x> <r> \"1\"^^<a:int>.\n", "x:r:\"a.\";x:r:\"b\"@de;x:r:\"1\"^^<a:int>;");
    assert_triples("<x> <name> \"Ulm \\\" . <\"@de .\n<x> <born> \"1\"^^<xsd:int> .\n",
                   "x:name:\"Ulm \" . <\"@de;x:born:\"1\"^^<xsd:int>;");
    assert_triples("<x> <r> <y> <graph> .\n", "x:r:y;");
}

static void escapes_of_ntriples_are_their_characters(void **state) {
    assert_triples("<caf\\u00e9> <r\\u0020\\U0001F600> \"\\u20AC\\\\n\\'\\\"\"^^<\\u00C4> .\n",
                   "caf\xC3\xA9:r \xF0\x9F\x98\x80:\"\xE2\x82\xAC\\n'\"\"^^<\xC3\x84>;");
    assert_triples("<x> <r> \"a\\bb\" .\n", "x:r:\"a\bb\";");
    assert_triples("<x> <r> \"a\\tb\\u0041\\u0000\\u000A\" .\n", "x:r:\"a\\tbA\\u0000\\u000A\";"); /* no name may have these */
    static const char *const wrong[] = {"<x\\t> <r> <y>", "<x\\u00e> <r> <y>", "<x\\ud800> <r> <y>", "<x\\U00110000> <r> <y>", "<x\\u+0e9> <r> <y>"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[100];
        sprintf(text, "<x> <r> <y> .\n%s .\n", wrong[i]);
        const char *got = triples_of(text), *begins = "line 2: its head has an escape that N-Triples do not have: x\\";
        if (strncmp(got, begins, strlen(begins))) fail_msg("of \"%s\": \"%s\"", wrong[i], got);
    }
    assert_triples("<x> <r> \"\\a\" .\n", "line 1: its tail has an escape that N-Triples do not have: \"\\a\"; wanted \\uXXXX or \\UXXXXXXXX, and "
                   "in literals also \\t \\b \\n \\r \\f \\\" \\' \\\\");
}

#define NONE(line) "no triple of N-Triples: " line "; wanted <subject> <predicate> <object> and a dot"
static void wrong_ntriples_are_named(void **state) {
    char many[4096 * 16 + 64], *at = many; /* more lines than the look reads */
    for (int i = 0; i < 4096; i++) at += sprintf(at, "<x> <r> <y> .\n");
    static const char *const wrong[] = {"<x> <r> .",       "<x> <r> <y>",           "<x> <r> <y .", "<x> <r> \"y .",
                                        "<x> <r> <y> . z", "<x> <r> <y> <z> <w> .", "x r y ."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sprintf(at, "%s\n", wrong[i]);
        const char *got = triples_of(many);
        char wanted[200];
        snprintf(wanted, sizeof wanted, "line 4097: " NONE("%s"), wrong[i]);
        if (strcmp(got, wanted)) fail_msg("of \"%s\": \"%s\"", wrong[i], got);
    }
    assert_triples("<x> <> <y> .\n", "line 1: its relation is empty");
    assert_triples("<x> <r> <y> .\n<x> <r> <y>\n<y> <r> <x> .\n", "line 2: " NONE("<x> <r> <y>"));
}

static void a_tab_matters_only_in_a_literal_that_is_kept(void **state) {
    static const char text[] = "<x> <r> \"a\tb\"@en .\n<x> <r> <y> .\n";
    assert_triples(text, "line 1: its tail has a tab in it");
    literals = 0;
    assert_triples(text, "x:r:y;");
    assert_triples("<x\t> <r> \"a\tb\" .\n", "line 1: its head has a tab in it");
    assert_triples("<x> \"r\ts\" \"a\" .\n", "line 1: its relation has a tab in it");
    assert_triples("<x> <r> <a\tb> .\n", "line 1: its tail has a tab in it");
    assert_triples("<x> <r> <y> .\n<x> <r> \"a\tb .\n<x> <r> <z> .\n", "line 2: " NONE("<x> <r> \"a\\tb ."));
    literals = 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_head_relation_tail, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(wrong_lines_are_named, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_first_line_that_is_too_long_is_refused, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(ntriples_lose_their_brackets, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(escapes_of_ntriples_are_their_characters, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(wrong_ntriples_are_named, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_tab_matters_only_in_a_literal_that_is_kept, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
