#include "tests/testing.h"

#include "corpus/look.h"
#include "base/report.h"

/* Finds the format of the file 'f' with this text. Returns the description without "columns    ", or the error message without
 * "'f' ". */
static const char *looked(const char *text, enum look_rows rows, const struct look_keys *keys) {
    static char out[LOOK_SAID + LOOK_LIKE + 400];
    struct look look;
    if (look_at_lines(&look, text, strlen(text), 1, rows, keys, "f")) {
        snprintf(out, sizeof out, "%s", report_sentence() + strlen("'f' "));
        report_clear();
    } else {
        snprintf(out, sizeof out, "%s%s%s", *look.said ? look.said + strlen("columns    ") : "", *look.doubt ? " BUT " : "", look.doubt);
    }
    return out;
}

struct case_ {
    const char *text, *wanted;
};
static void assert_looks(const struct case_ *cases, size_t count, enum look_rows rows) {
    const struct look_keys keys = LOOK_AUTO;
    for (size_t i = 0; i < count; i++) {
        const char *got = looked(cases[i].text, rows, &keys);
        if (strcmp(got, cases[i].wanted))
            fail_msg("of \"%s\"\n  wanted \"%s\"\n  got    \"%s\"", cases[i].text, cases[i].wanted, got);
    }
}
#define LOOKS(rows, ...)                                                                                               \
    do {                                                                                                               \
        const struct case_ cases[] = {__VA_ARGS__};                                                                    \
        assert_looks(cases, sizeof cases / sizeof *cases, rows);                                                       \
    } while (0)

static void pairs_are_parted_as_all_lines_agree(void **state) {
    LOOKS(LOOK_PAIRS, {"1 2\n3 4\n", "list = column 1, item = column 2, rating = none; blanks, no header"},
          {"ann\tNew York\nbob\tRome, Italy\n", "list = column 1, item = column 2, rating = none; tabs, no header"},
          {"1::2::5::978\n1::3::4::979\n", "list = column 1, item = column 2, rating = column 3; '::', no header"},
          {"a;b;1,5\nc;d;2\n", "list = column 1, item = column 2, rating = column 3; semicolons, no header, decimal commas"},
          {"ann bob 1,5\ncid dan 2\n", "list = column 1, item = column 2, rating = column 3; blanks, no header, decimal commas"},
          {"7,\"Dune, revised\"\n8,Emma\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {"a|b c\nd|e f\n", "list = column 1, item = column 2, rating = none; '|', no header"});
}

static void a_header_is_a_word_above_numbers_or_a_known_name(void **state) {
    LOOKS(LOOK_PAIRS, {"\"Person\",\"item\"\n1,\"citrus fruit\"\n1,rye\n", "list = Person, item = item, rating = none; commas, a header"},
          {"playlist_id,track_uri\n0,t:aa\n0,t:bb\n", "list = playlist_id, item = track_uri, rating = none; commas, a header"},
          {"用户,电影\n1,甲\n2,乙\n", "list = 用户, item = 电影, rating = none; commas, a header"},
          {"a,b\n1,甲\n2,乙\n", "list = a, item = b, rating = none; commas, a header"},
          {"who,what\nc1,x\nc2,y\nc3,x\nc4,z\n", "list = who, item = what, rating = none; commas, a header"},
          {"when,what\n2019-01-01 10:00,x\n2019-01-02 11:00,y\n", "list = when, item = what, rating = none; commas, a header"},
          {"alice,1984\n1,2\nbob,3\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {"c0,x\nc1,x\nc2,y\nc3,x\nc4,z\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {"alice,dune\nbob,emma\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {",user,item\n0,ann,x\n1,bob,y\n", "list = user, item = item, rating = none of 3; commas, a header"},
          {",who,what\n0,1,x\n1,2,y\n", "list = who, item = what, rating = none of 3; commas, a header"},
          {"\"who\" \"what\"\n\"1\" \"ann\" \"x\"\n\"2\" \"bob\" \"y\"\n", "list = who, item = what, rating = none of 3; blanks, a header"});
}

static void known_names_choose_columns_in_any_order(void **state) {
    LOOKS(LOOK_PAIRS,
          {"invoice,sku,quantity,day,customer_id\n1,x,2,3,c\n", "list = customer_id, item = sku, rating = quantity; commas, a header"},
          {"Member_number,Date,itemDescription\n18,21-07-2015,tropical fruit\n25,05-01-2015,whole milk\n",
           "list = Member_number, item = itemDescription, rating = none of 3; commas, a header"},
          {"sku,shop\nx,1\ny,2\n", "list = shop, item = sku, rating = none; commas, a header"});
    LOOKS(LOOK_EDGES, {"Weight;Target;Source\n2;a;b\n", "source = Source, target = Target, weight = Weight; semicolons, a header"},
          {"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 .5\n", "source = 3, target = 3, weight = 2; blanks, a header"});
    LOOKS(LOOK_LABELS, {"id,split,class\n1,train,a\n", "name = id, label = class; commas, a header"});
    LOOKS(LOOK_FEATURES, {"movieId,title,genres\n1,Emma,Drama|Noir\n", "name = movieId; commas, a header"},
          {"color,item,size\nred,a,b\nblue,c,d\n", "name = item; commas, a header"}, {"a\tb c\nd\te\n", "name = column 1; tabs, no header"},
          {"a b c\nd e\n", "name = column 1; blanks, no header"});
    LOOKS(LOOK_TITLES, {"genre\ttitle\tmovieId\nx\tEmma\t1\n", "id = movieId, title = title; tabs, a header"});
    LOOKS(LOOK_WORDS, {"word1\tword2\tPOS\tSimLex999\nold\tnew\tA\t1.58\n", "word = word1, second word = word2, score = SimLex999; tabs, a header"},
          {"Word 1,Word 2,Human (mean)\nlove,sex,6.77\n", "word = Word 1, second word = Word 2, score = Human (mean); commas, a header"});
}

static void triples_are_three_columns(void **state) {
    LOOKS(LOOK_TRIPLES,
          {"ulm\tin\tgermany\nbern\tin\tswitzerland\n", "head = column 1, relation = column 2, tail = column 3; tabs, no header"},
          {"New York,in,\"Earth, Sol\"\nRome,in,Italy\n", "head = column 1, relation = column 2, tail = column 3; commas, no header"},
          {"head,relation,tail\na,r,b\n", "head = head, relation = relation, tail = tail; commas, a header"},
          {"Object;Subject;Predicate;Since\nb;a;r;1\n", "head = Subject, relation = Predicate, tail = Object; semicolons, a header"},
          {"h r t\na in b\n", "head = h, relation = r, tail = t; blanks, a header"},
          {"1 0 2\n3 1 4\n", "head = column 1, relation = column 2, tail = column 3; blanks, no header"},
          {"a,r,b,\nc,r,d,\n", "head = column 1, relation = column 2, tail = column 3; commas, no header"},
          {"<Ulm>\t<in>\t<Germany>\n", "head = column 1, relation = column 2, tail = column 3; tabs, no header"},
          {"# made by hand\n<http://a/x> <http://a/r> _:b .\n\n_:b <http://a/r> \"x y\"@en .\n",
           "head, relation, tail = subject, predicate, object of N-Triples, without < and >"});
    LOOKS(LOOK_TRIPLES, {"a b\nc d\n", "line 1: 2 fields with blanks between; wanted head, relation, tail: a b"},
          {"a,r,b,1\nc,r,d,2\n", "line 1: nothing tells which columns are wanted: a,r,b,1; say which columns are head, relation and tail by "
                                "corpus.columns, as in corpus.columns = 1,2,3 or by their names"},
          {"<?xml version='1.0'?>\n", "holds XML, and no rows of fields: write a line for each edge or pair first"},
          {"@prefix a: <http://a/> .\na:x a:r a:y .\n",
           "holds Turtle, and no rows of fields: write N-Triples first (rapper -i turtle -o ntriples)"});
}

static void corpus_columns_of_triples_are_head_relation_tail(void **state) {
    static const struct {
        const char *columns, *text, *wanted;
    } cases[] = {{"1,3,2", "a b r\n", "head = column 1, relation = column 3, tail = column 2; blanks, no header"},
                 {"u,how,v", "v,u,how,n\nb,a,r,1\n", "head = u, relation = how, tail = v; commas, a header"},
                 {"1,3", "a r b\n", "names two columns, and a triple has three: head, relation, tail"},
                 {"1,1,2", "a r b\n", "names one column of 'f' twice"},
                 {"1,2,3", "<a> <r> <b> .\n", "holds N-Triples, whose terms are subject, predicate and object: leave out corpus.columns = 1,2,3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct look_keys keys = LOOK_AUTO;
        keys.columns = cases[i].columns;
        keys.header = strchr(cases[i].columns, 'h') ? HEADER_YES : HEADER_AUTO;
        assert_non_null(strstr(looked(cases[i].text, LOOK_TRIPLES, &keys), cases[i].wanted));
    }
}

static void ntriples_have_no_header_and_no_other_separator(void **state) {
    struct look_keys header = LOOK_AUTO, separator = LOOK_AUTO;
    header.header = HEADER_YES;
    separator.separator = SEPARATOR_TAB;
    assert_non_null(strstr(looked("<a> <r> <b> .\n", LOOK_TRIPLES, &header), "have no header and blanks between their terms: leave out corpus.header = yes"));
    assert_non_null(strstr(looked("<a> <r> <b> .\n", LOOK_TRIPLES, &separator), "leave out corpus.separator"));
}

static void columns_of_another_file_give_way_to_what_a_file_says_itself(void **state) {
    static const struct {
        enum look_rows rows;
        const char *text, *wanted;
    } cases[] = {{LOOK_TRIPLES, "<a> <r> <b> .\n", "head, relation, tail = subject, predicate, object of N-Triples, without < and >"},
                 {LOOK_TRIPLES, "<a>\t<r>\t<b> .\n", "head, relation, tail = subject, predicate, object of N-Triples, without < and >"},
                 {LOOK_TRIPLES, "relation\thead\ttail\nr\ta\tb\n", "head = head, relation = relation, tail = tail; tabs, a header"},
                 {LOOK_TRIPLES, "r\tb\ta\n", "head = column 3, relation = column 1, tail = column 2; tabs, no header"},
                 {LOOK_PAIRS, "item\trating\tuser\nx\t1\tu\n", "list = user, item = item, rating = rating; tabs, a header"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct look_keys keys = {.header = HEADER_NO, .separator = SEPARATOR_TAB, .columns = "3,1,2", .hints = 1};
        assert_non_null(strstr(looked(cases[i].text, cases[i].rows, &keys), cases[i].wanted));
    }
}

#define ASK(set) "; say which columns are " set " by corpus.columns, as in corpus.columns = 1,3 or by their names"
static void what_is_no_such_row_is_refused(void **state) {
    LOOKS(LOOK_PAIRS,
          {"ann,likes,rye\nbob,likes,milk\n",
           "line 1: the third column is no rating, and nothing tells which column is what: ann,likes,rye" ASK("list and item")},
          {"1,2,3,4,5\n6,7,8,9,10\n", "line 1: nothing tells which columns are wanted: 1,2,3,4,5" ASK("list and item")},
          {"sku,a,b\nx,1,y\n", "line 1: the header does not name all columns that are wanted: sku,a,b" ASK("list and item")},
          {"{\"user\": 1}\n{\"user\": 2}\n",
           "holds JSON; wanted fields with commas or tabs between on each line: write it so first (in Python: pandas.read_json, then to_csv)"});
    LOOKS(LOOK_EDGES, {"aspirin treats pain\nrain causes flood\n",
                       "line 1: 'aspirin treats pain' looks like a triple (head, relation, tail): its third column is no weight; "
                       "set corpus.format = triples to train triples, corpus.columns = 1,3 to read head and tail as an edge, or "
                       "graph.weights = no to ignore the third column"});
    LOOKS(LOOK_LISTS, {"[\n{\"a\": 1},\n]\n",
                       "holds JSON; wanted a list on each line: write it so first (in Python: pandas.read_json, then to_csv)"});
}

static void files_of_other_formats_are_refused_by_name(void **state) {
    LOOKS(LOOK_EDGES, {"<?xml version=\"1.0\"?>\n<graphml>\n", "holds XML, and no rows of fields: write a line for each edge or pair first"},
          {"<a> <r> <b> .\n<b> <r> <c> .\n", "holds N-Triples: corpus.format = triples reads them"},
          {"graph [\n  node [\n    id 0\n", "holds GML, and no rows of fields: in Python: sptx.fit(networkx.read_gml(path), ..)"},
          {"*Vertices 2\n1 a\n2 b\n", "holds a graph of Pajek's, and no rows of fields: in Python: sptx.fit(networkx.read_pajek(path), ..)"});
    LOOKS(LOOK_PAIRS, {"1,\"['rye', 'salt']\"\n2,\"['rye']\"\n",
                       "line 1: column 2 holds whole lists, as a program prints them: 1,\"['rye', 'salt']\"; write a line for each item "
                       "(in Python: frame.explode)"});
}

/* A line of text may have thousands of words, far more than the columns that a look remembers. */
static void long_lines_are_looked_at_within_bounds(void **state) {
    static char text[40000];
    const struct look_keys keys = LOOK_AUTO;
    size_t used = 0;
    for (int line = 0; line < 3; line++) {
        for (int word = 0; word < 3000; word++) used += (size_t)sprintf(text + used, "a%d ", word % 10);
        text[used++] = '\n';
    }
    for (int rows = LOOK_LISTS; rows < LOOK_ROWS; rows++) assert_true(strlen(looked(text, (enum look_rows)rows, &keys)) > 0);
    assert_int_equal(look_for_pairs(text, used, NULL), LINES_LISTS);
    char like[LOOK_LIKE];
    look_for_rows(like, text, used, LOOK_TEXT);
    assert_string_equal(like, "");
}

/* Files as users have them. Each of them was once misread without a warning. */
static void what_people_have_is_read_rightly_or_refused(void **state) {
    LOOKS(LOOK_EDGES, {"1 -> 2\n2 -> 3\n", "source = column 1, target = column 3, weight = none of 3; blanks, no header"},
          {"1,2,\n2,3,\n", "source = column 1, target = column 2, weight = none of 3; commas, no header"},
          {"a b NA\nb c 1\nc d 2\n", "source = column 1, target = column 2, weight = column 3; blanks, no header"},
          {"c by hand\np edge 4 2\ne 1 2\ne 2 3\n", "line 2: a graph of DIMACS, and no rows of fields; keep its lines of edges without "
           "their first letter (awk '/^[ea] /{print $2, $3}')"},
          {"(0, 1)\n(0, 2)\n", "line 1 begins each line with a bracket, as tuples are printed; write the fields with tabs or commas between"});
    LOOKS(LOOK_PAIRS, {"# user item\n1\t5\n2\t5\n", "list = user, item = item, rating = none; blanks, a header"},
          {"user,film\nann,dune\nbob,emma\n", "list = user, item = film, rating = none; commas, a header"},
          {"user,opus\nann,dune\nuser,emma\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {"% bip weighted\n1 1 5\n", "list = column 1, item = column 2, rating = column 3; blanks, no header, 1 comment left out"},
          {"# made by hand, in 2020\n# user\topus\n1\t5\n2\t6\n", "list = user, item = opus, rating = none; tabs, a header, 1 comment left out"},
          {"# made by hand\n1,5\n2,6\n", "list = column 1, item = column 2, rating = none; commas, no header, 1 comment left out"},
          {"#a\t5\n#b\t6\nc\t7\n", "list = column 1, item = column 2, rating = none; tabs, no header"},
          {"# a\t5\nb\t6\n# c\t7\n", "list = column 1, item = column 2, rating = none; tabs, no header"},
          {"%%MatrixMarket matrix coordinate\n%\n3 9 3\n1 7 5\n2 9 1\n1 1 2\n",
           "list = column 1, item = column 2, rating = column 3; blanks, no header, 2 comments left out, a count in the first line"},
          {"3 9 3\n1 7 5\n2 9 1\n1 1 2\n", "list = column 1, item = column 2, rating = column 3; blanks, no header, a count in the first line"},
          {"3 9 3\n1 7 5\n4 9 1\n1 1 2\n", "list = column 1, item = column 2, rating = column 3; blanks, no header"},
          {"an address\n1,5\n2,6\n", "line 1: 1 field with commas between, and each line after it has 2: an address; remove it if it is no data"},
          {"user,rating,opus\nann,5,10\nbob,4,11\n", "line 1: the header does not name all columns that are wanted: user,rating,opus" ASK("list and item")},
          {"review_id,author,opus,stars\n1,10,20,5\n", "line 1: the header names a value, but not the columns that are wanted: review_id,author,opus,stars" ASK("list and item")},
          {"user,item,count\na,x,\"1,234\"\nb,y,12\n", " column 3 has numbers such as 1,234, whose comma may be a decimal sign or separate thousands; write them without, or with a point"});
    LOOKS(LOOK_LISTS, {"1,['rye', 'salt']\n2,['ale', 'rye']\n", "line 1 holds lists as a program prints them; write the items with tabs or commas between (in Python: '\\t'.join(items))"},
          {"1 -1 2 3 -1 -2\n4 -1 -2\n", "line 1 ends each line with -2, as sequences of SPMF do; remove -1 and -2, which are no items"});
    LOOKS(LOOK_EDGES, {"%%MatrixMarket matrix coordinate\n3 9 2\n1 7 5\n2 9 1\n", "line 2: a matrix of 3 rows and 9 columns is no graph, in which row "
           "1 and column 1 would be one node; corpus.format = pairs reads it as lists and items"},
          {"0 1 2 3 4\n1 2 3\n2 3\n", "line 1: lines differ in length, and corpus.format = adjacency reads a node and its neighbours: 0 1 2 3 4"
           ASK("source and target")});
    LOOKS(LOOK_WORDS, {"# From a paper (2002)\n# Word 1\tWord 2\tHuman (mean)\nred\tsea green\t6.7\n", "word = Word 1, second word = Word 2, score = Human "
           "(mean); tabs, a header, 1 comment left out"});
    LOOKS(LOOK_ADJACENCY, {"#nx.py\n# GMT Sat\n# A Club\n0 1 2\n1 2\n", "target = the first, contexts = the others; blanks, no header, 3 comments left out"},
          {"#a b\n#b c d\nc d\n", "target = the first, contexts = the others; blanks, no header"},
          {"1: 2 3\n2: 1\n", "line 1 has a colon behind each line's first word, which would be a part of the name; remove it (sed 's/:/ /')"});
}

/* Some programs write fields and lines that are not names. These must be refused. */
static void what_programs_write_beside_names_is_refused(void **state) {
    LOOKS(LOOK_PAIRS,
          {"'ann','dune'\n'bob','emma'\n", "line 1: column 1 has single quotes, which would be parts of the names: 'ann','dune'; write double quotes (sed \"s/'/\\\"/g\")"},
          {"'t Hooft,dune\nbob,emma\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {"ann,=\"A1\"\nbob,=\"A2\"\n", "line 1: column 2 has formulas of a spreadsheet: ann,=\"A1\"; write the values alone (sed 's/=\"/\"/g')"},
          {"ann,dune\nbob,\\N\n", "line 2: column 2 has \\N, which databases write where a value is missing: bob,\\N; remove such lines"},
          {"1,10\n2,NA\n3,12\n", "line 2: column 2 has a field without a value: 2,NA; remove such lines"},
          {"ann,fr\nbob,na\ncid,de\n", "list = column 1, item = column 2, rating = none; commas, no header"}, /* na: Namibia */
          {"ann,2024-01-31,3\nbob,2024-02-01,4\n", "line 1: column 2 has dates: ann,2024-01-31,3; say by corpus.columns which columns are wanted, as in corpus.columns = 1,3 or by their names"},
          {"ann,31.1.2024 10:00\nbob,1.2.2024 11:00\n", "line 1: column 2 has dates: ann,31.1.2024 10:00; say by corpus.columns which columns are wanted, as in corpus.columns = 1,3 or by their names"},
          {"ann,1.2.3\nbob,2024\n", "list = column 1, item = column 2, rating = none; commas, no header"},
          {" user | item\n------+------\n ann  | dune\n(1 row)\n", "line 2 draws a table, as psql and mysql print results; write CSV (psql --csv, mysql --batch)"},
          {"+----+----+\n| a  | b  |\n+----+----+\n", "line 1 draws a table, as psql and mysql print results; write CSV (psql --csv, mysql --batch)"},
          {"// user, item\nann,dune\nbob,emma\n", "line 1 is a comment; remove such lines (grep -v '^//')"});
    LOOKS(LOOK_EDGES, {"a b\n; the second\nb c\n", "line 2 is a comment; remove such lines (grep -v '^;')"},
          {"a -> b\na -- b\n", "source = column 1, target = column 3, weight = none of 3; blanks, no header"});
    LOOKS(LOOK_LISTS, {"| list | items |\n|---|---|\n| a | b |\n", "line 2 draws a table, as psql and mysql print results; write CSV (psql --csv, mysql --batch)"});
}

/* A column whose fields are lists is refused: each list would be read as one item, or its first item as part of the list's name. */
static void lists_within_a_column_are_refused(void **state) {
#define WITHIN(how, row, python, key) "line 2: column 2 holds whole lists, " how ": " row "; write a line for each item (in Python: " python "frame.explode)" key
#define BY_SEPARATOR "; or corpus.separator says which separates the items"
#define BY_COLUMNS "; corpus.columns = .. takes them as names"
    LOOKS(LOOK_LISTS, {"id,kinds\n1,fun|kids|air\n2,war|sea\n", WITHIN("with '|' between", "1,fun|kids|air", "str.split('|') and ", BY_SEPARATOR)},
          {"id,tracks\n1,27|60|55\n2,64|58|60\n", WITHIN("with '|' between", "1,27|60|55", "str.split('|') and ", BY_SEPARATOR)},
          {"id,tracks\n1,27 60 55\n2,64 58\n", WITHIN("with blanks between", "1,27 60 55", "str.split(' ') and ", BY_SEPARATOR)},
          {"u1;a,b\nu2;d,e\nu3;a,d,f\n", WITHIN("with commas between", "u2;d,e", "str.split(',') and ", BY_SEPARATOR)},
          {"id,tracks\n1,\"[27, 60, 55]\"\n2,\"[64, 27]\"\n", WITHIN("as a program prints them", "1,\"[27, 60, 55]\"", "", "")},
          {"tracks\n\"[27, 60]\"\n\"[64]\"\n", "line 2 holds lists as a program prints them; write the items with tabs or commas between (in Python: '\\t'.join(items))"},
          {"u1\ta b c\nu2\td e\n", "list = the first, items = the others; blanks, no header"},
          {"u1,Doe|John\nu2,Roe|Jane\n", "list = the first, items = the others; '|', no header"});
    LOOKS(LOOK_PAIRS, {"user,item\n1,27 60 55\n2,64 58\n", WITHIN("with blanks between", "1,27 60 55", "str.split(' ') and ", BY_COLUMNS)},
          {"user,item\n1,Austin|TX\n2,Salem|OR\n", "list = user, item = item, rating = none; commas, a header"},
          {"user;item\n1;sofa, red\n2;lamp\n3;cup, blue, old\n", "list = user, item = item, rating = none; semicolons, a header"},
          {"user,item\n1,whole milk 2\n2,7 up\n", "list = user, item = item, rating = none; commas, a header"});
}

static void what_may_be_something_else_is_said(void **state) {
    LOOKS(LOOK_EDGES, {"user_id,movie_id,rating\n1,7,5\n7,2,4\n", "source = user_id, target = movie_id, weight = rating; commas, a header BUT have 1 name in both "
                       "columns, each of which is one node; user_id and movie_id look like two kinds, which corpus.format = pairs keeps apart"},
          {"user_id,movie_id\na,7\nb,2\n", "source = user_id, target = movie_id, weight = none; commas, a header"},
          {"source,target\n1,7\n7,2\n", "source = source, target = target, weight = none; commas, a header"});
    LOOKS(LOOK_PAIRS, {"user,item\n1,fr\n2,null\n3,null\n", "list = user, item = item, rating = none; commas, a header BUT have the item 'null' 2 times, as programs "
                       "write where a value is missing; remove such lines if it is none"});
    LOOKS(LOOK_LISTS, {"ann nan dune\nbob emma\n", "list = the first, items = the others; blanks, no header BUT have the item 'nan' 1 time, as programs write where "
                       "a value is missing; remove such lines if it is none"},
          {"ann none dune\nbob emma\n", "list = the first, items = the others; blanks, no header"},
          {"1 3:1 10:2\n2 3:1 7:1\n", "list = the first, items = the others; blanks, no header BUT look like libsvm's, index:value, each of which is an item here; "
           "write list, index, value and set corpus.format = pairs"},
          {"id,title,day,fun\n1,Toys (1995),01-Jan-1995,0\n2,Eye (1995),01-Jan-1995,1\n", "list = the first, items = the others; commas, a header BUT are a table of "
           "4 columns of words and of numbers, each value of which is an item here; corpus.format = pairs reads two columns"},
          {"\"3\",\"Wall St.\",\"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c\"\n", "list = the first, items = the others; blanks, no header BUT are CSV "
           "with quotes, whose words are items here; corpus.separator = comma takes its fields, corpus.format = documents its texts"},
          {"list,a,b,c\nu1,dune,7,x\nu2,emma,dune,y\n", "list = the first, items = the others; commas, no header"});
}

static void row_numbers_are_no_lists(void **state) {
    LOOKS(LOOK_PAIRS, {"0,ann,dune\n1,ann,emma\n2,bob,dune\n3,bob,ulysses\n4,cid,emma\n", "list = column 2, item = column 3, rating = none of 3; commas, no header"},
          {"1,7,12\n2,7,13\n3,8,12\n4,8,14\n5,9,13\n",
           "line 1: the first column has the lines' numbers, or each list has one line: 1,7,12" ASK("list and item")},
          {"1,7,12\n1,8,13\n2,8,12\n3,8,14\n4,9,13\n", "list = column 1, item = column 2, rating = column 3; commas, no header"},
          {"0 a\n1 b\n2 a\n3 c\n4 a\n", "list = column 1, item = column 2, rating = none; blanks, no header"});
    LOOKS(LOOK_EDGES, {"1 2 .5\n2 3 .5\n3 4 .5\n4 5 1\n5 6 1\n", "source = column 1, target = column 2, weight = column 3; blanks, no header"});
}

static void bars_and_colons_may_be_within_names(void **state) {
    LOOKS(LOOK_PAIRS, {"ann,War|Drama,5\nbob,Love|Drama,4\n", "list = column 1, item = column 2, rating = column 3; commas, no header"},
          {"user,item\nann,War|Drama\nbob,Love|Drama\n", "list = user, item = item, rating = none; commas, a header"},
          {"ann,War|Drama\nbob,Love|Drama\n", "line 1: both '|' and commas split all lines: ann,War|Drama; say which by corpus.separator"},
          {"ann,std::list\nbob,std::map\n", "line 1: both '::' and commas split all lines: ann,std::list; say which by corpus.separator"},
          {"ann|Rome, Italy\nbob|York, England\n", "list = column 1, item = column 2, rating = none; '|', no header"},
          {"ann|dune|1,5\nbob|emma|2,5\n", "list = column 1, item = column 2, rating = column 3; '|', no header, decimal commas"});
}

static void labels_and_titles_of_public_data(void **state) {
    LOOKS(LOOK_LABELS, {"31336 0 1 0 Neural_Networks\n1061127 1 0 0 Rule_Learning\n", "name = column 1, label = column 5; blanks, no header"},
          {"1 0 1 0\n2 1 0 0\n", "line 1: 3 columns of 0 and 1 are no labels; keep the first column and that of the label (awk '{print $1, $NF}')"},
          {"1 3 5 7\n2 3 0 1\n", "name = column 1, label = column 2; blanks, no header"},
          {"movieId,title,genres\n1,Emma,Drama|Romance\n", "name = movieId, label = genres; commas, a header"});
    LOOKS(LOOK_TITLES, {"tconst\ttitleType\tprimaryTitle\toriginalTitle\ntt1\tshort\tCarmencita\tCarmencita\n", "id = tconst, title = primaryTitle; tabs, a header"},
          {"id,year,Movie name\n1,1999,Emma\n2,2001,Dune\n", "line 1: the header names no title among its 3 columns: id,year,Movie name; call that column title"});
}

static void a_spreadsheet_may_name_its_separator(void **state) {
    LOOKS(LOOK_PAIRS, {"sep=;\nuser;item;rating\n1;2;3,5\n", "list = user, item = item, rating = rating; semicolons, a header, decimal commas"},
          {"SEP=,\na,b c\n", "list = column 1, item = column 2, rating = none; commas, no header"});
}

static void times_are_no_weights(void **state) {
    LOOKS(LOOK_EDGES, {"1 2 1082040961\n3 4 1082155839\n", "source = column 1, target = column 2, weight = none (the third column holds times); blanks, no header"},
          {"source,target,weight\n1,2,1082040961\n", "source = source, target = target, weight = weight; commas, a header"},
          {"1 2 1082040961\n3 4 7\n", "source = column 1, target = column 2, weight = column 3; blanks, no header"});
    LOOKS(LOOK_PAIRS, {"1,2,1082040961000\n3,4,1082155839000\n", "list = column 1, item = column 2, rating = none (the third column holds times); commas, no header"});
}

static void networkx_attributes_are_one_field(void **state) {
    LOOKS(LOOK_EDGES, {"1 2 {'weight': 3, 'c': 'x y'}\n2 3 {}\n", "source = column 1, target = column 2, weight = networkx' attributes; blanks, no header"},
          {"1,2,{'weight': 3}\n2,3,{'weight': 1}\n", "source = column 1, target = column 2, weight = networkx' attributes; commas, no header"},
          {"1 2 {}\n2 3 {}\n", "source = column 1, target = column 2, weight = none; blanks, no header"});
}

static void lists_may_differ_in_length_and_have_no_names(void **state) {
    const char *named = "list = the first, items = the others; ";
    char wanted[4][96];
    static const char *const parts[] = {"commas, no header", "tabs, no header", "blanks, no header", "commas, a header"};
    for (int i = 0; i < 4; i++) snprintf(wanted[i], sizeof wanted[i], "%s%s", named, parts[i]);
    LOOKS(LOOK_LISTS, {"b1,whole milk,rye bread\nb2,rye\n", wanted[0]}, {"b1\twhole milk\trye\nb2\trye\tsalt\n", wanted[1]},
          {"u1\ta b c\nu2\tc d\n", wanted[2]}, {"u1 a;b c\n", wanted[2]}, {"u1 a,b c\n", wanted[2]}, {"u1 a,b c d e f g\nu2 h i j k l\nu3 m n o\n", wanted[2]},
          {"2,rye,salt\n2,milk,ale\n1,rye\n3,milk,ale,rye\n",
           "list = the first, items = the others (3 names in 4 lines: lines of one name are one list); commas, no header"},
          {"basket,items\n1,whole milk\n2,rye,salt\n", wanted[3]}, {"0 0 1 2\n1 1 2\n2 0 2\n3 1\n", wanted[2]},
          {"milk,rye\nrye,milk\nmilk,salt,rye\nyogurt\nmilk\n",
           "items = all, and each list is named by its line's number (corpus.names = yes: by its first); commas, no header"});
    LOOKS(LOOK_ADJACENCY, {"p1,p2,p3\np2,p1\n", "target = the first, contexts = the others; commas, no header"});
}

static void keys_decide(void **state) {
    struct look_keys keys = LOOK_AUTO;
    keys.separator = SEPARATOR_BLANK;
    assert_string_equal(looked("a,b c\nd,e f\n", LOOK_PAIRS, &keys), "list = column 1, item = column 2, rating = none; blanks, no header");
    keys = LOOK_AUTO;
    keys.columns = "3, 1";
    assert_string_equal(looked("a,b,c\nd,e,f\n", LOOK_PAIRS, &keys), "list = column 3, item = column 1, rating = none of 3; commas, no header");
    keys.columns = "1,1";
    assert_non_null(strstr(looked("a,b,c\nd,e,f\n", LOOK_PAIRS, &keys), "names one column of 'f' twice"));
    keys.columns = "sku,who,n";
    assert_string_equal(looked("n,x,who,sku\n1,2,3,4\n", LOOK_PAIRS, &keys), "list = sku, item = who, rating = n; commas, a header");
    assert_non_null(strstr(looked("n,x,who,ski\n1,2,3,4\n", LOOK_PAIRS, &keys), "no column of its header is called 'sku'"));
    assert_non_null(strstr(looked("1,2,3,4\n1,2,3,4\n", LOOK_PAIRS, &keys), "has no header that could name the column 'sku'"));
    keys = LOOK_AUTO;
    keys.header = HEADER_YES;
    assert_string_equal(looked("a b\nc d\n", LOOK_PAIRS, &keys), "list = a, item = b, rating = none; blanks, a header");
    keys.header = HEADER_NO;
    assert_string_equal(looked("user,item\n1,2\n", LOOK_PAIRS, &keys), "list = column 1, item = column 2, rating = none; commas, no header");
    keys = LOOK_AUTO;
    keys.names = NAMES_NO;
    assert_non_null(strstr(looked("a b\nc d\n", LOOK_LISTS, &keys), "named by its line's number"));
    keys = LOOK_AUTO;
    keys.no_values = 1;
    assert_string_equal(looked("a likes b\nc likes d\n", LOOK_EDGES, &keys),
                        "source = column 1, target = column 2, weight = none of 3; blanks, no header");
    assert_int_equal(look_columns_valid("a,b"), 0);
    assert_int_equal(look_columns_valid("1, 2 ,rating"), 0);
    assert_int_equal(look_columns_valid("a"), 0); /* the text of documents that are named by their lines */
    assert_int_equal(look_columns_valid(""), -1);
    assert_int_equal(look_columns_valid("a,b,c,d"), -1);
}

/* ---- lists or pairs? ---- */

static void a_few_lines_are_judged(void **state) {
    static const struct {
        const char *text;
        enum look_kind kind;
    } all[] = {{"user,item,rating\n1,2,3\n4,5,6\n7,8,4.5\n", LINES_RATINGS},
               {"a,b,3\na,c,5\nb,c,1\nb,d,2\n", LINES_RATINGS},
               {"a,b,3\na,c,5\nb,c,1", LINES_RATINGS}, /* the last line has no line end */
               {"1\t2\t3\t881250949\n1\t3\t3\t881250949\n1\t4\t2\t881250949\n2\t4\t5\t881250949\n", LINES_RATINGS},
               {"a,b,3\n", LINES_PAIRS},                                 /* too few lines for ratings */
               {"a,b\na,c\na,d\na,e\n", LINES_PAIRS},                    /* no ratings */
               {"1,\"ready soups\"\n1,rye\n2,salt\n", LINES_PAIRS},      /* item names with blanks */
               {"a,b,3\na,c,5\nb,c,1\nyes, a,b,2\n", LINES_LISTS},       /* the last line is a sentence */
               {"a b 3\na c 5\nb c 1\nb d 2\n", LINES_PAIRS},            /* the last number may be an item or a rating */
               {"a,b,c\na,b,d\na,b,e\na,b,f\n", LINES_LISTS},            /* lists of two items */
               {"a,b,3,x,y\na,c,5,x,y\nb,c,1,x,y\n", LINES_LISTS},       /* five fields */
               {"a b c\na b d e\n", LINES_LISTS},                        /* lines of different lengths */
               {"a b c d e\nb c d e f\n", LINES_LISTS},                  /* five fields, no numbers */
               {"a\nb\n", LINES_LISTS},                                  /* one field */
               {"a b c\nb c d\n", LINES_LISTS},                          /* the third field is not a number */
               {"a b\nb c\na d\n", LINES_UNCLEAR},                       /* could be lists of one item, or pairs: the data is the same */
               {"a 7 3\nb 8 4\n", LINES_UNCLEAR},                        /* could be a list of two items, or an item and a rating */
               {"user item rating\na b 3\na c 5\nb c 1\n", LINES_RATINGS}, /* a header says so */
               {"\n\n a,b,3\n\na,c,5\nb,c,1\n", LINES_RATINGS},          /* empty lines are skipped */
               {"\n", LINES_UNCLEAR},
               {"", LINES_UNCLEAR}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (look_for_pairs(all[i].text, strlen(all[i].text), NULL) != all[i].kind) fail_msg("of \"%s\"", all[i].text);
}

/* Looks at 100 lines "name, line number, number". names: how many different names; numbers: how many different third fields. */
static enum look_kind kind_of_numbers(int names, int numbers, char between) {
    char text[4000], *at = text;
    for (int line = 0; line < 100; line++)
        at += sprintf(at, "n%d%c%d%c%d\n", line % names, between, line, between, line % numbers);
    return look_for_pairs(text, (uint64_t)(at - text), NULL);
}

static void many_lines_tell_ratings_from_lists_of_two(void **state) {
    assert_int_equal(kind_of_numbers(100, 100, '\t'), LINES_LISTS);
    assert_int_equal(kind_of_numbers(100, 100, ' '), LINES_LISTS);
    assert_int_equal(kind_of_numbers(100, 5, '\t'), LINES_RATINGS); /* few distinct numbers */
    assert_int_equal(kind_of_numbers(100, 5, ' '), LINES_PAIRS);
    assert_int_equal(kind_of_numbers(50, 100, '\t'), LINES_RATINGS); /* names are repeated */
    assert_int_equal(kind_of_numbers(100, 100, ','), LINES_RATINGS);
}

static void text_that_looks_like_rows_is_said(void **state) {
    static const char *const none[] = {"a sentence\nand another one, longer\n", "to be\nor not\n", "1 2\n", "",
                                       "Hello, world\nGoodbye, all\nYes, no\n", "Creator of worlds\nand of words\n", "<b> a\n<c> d\n",
                                       "one,two\nthree,four\n", "it was 1,234\nor 5,678\nor 9,000\n", "a; b\nc; d\ne; f\n"};
    static const struct case_ like[] = {{"1 a b\n2 c d e\n3 a\n4 b c\n5 d\n", "corpus.format = lists"},
                                        {"1 2\n2 3\n3 1\n4 1\n5 2\n", "corpus.format = graph"},
                                        {"a,b,3\na,c,5\nb,c,1\n", "corpus.format = pairs"},
                                        {"a,b\na,c\nb,c\nd,e\nf,g\n", "corpus.format = pairs"},
                                        {"{\"text\": \"a b\"}\n{\"text\": \"c\"}\n", "JSON"},
                                        {"alga\tisa\tentity\nalga\tpart\torganism\nrat\tisa\tanimal\n", "corpus.format = triples"},
                                        {"4\n8 4 3\n2 7 0\n3 8 4\n9 4 4\n", "corpus.format = triples"},
                                        {"id_1,id_2\n6,9\n7,9\n", "corpus.format = graph reads source, target"},
                                        {"source,target,weight\n6,9,1\n6,8,2\n7,9,1\n", "corpus.format = graph reads source, target"},
                                        {"\"3\",\"Bears\",\"red green blue, red\"\n\"2\",\"Oil\",\"green, red red\"\n", "documents a name and a text"},
                                        {"1::Toy Story (1995)::a|b\n2::GoldenEye (1995)::a\n3::Heat (1995)::b\n", "corpus.format ="},
                                        {"a,b,c\n0,1,0\n1,1,0\n0,0,1\n", "corpus.format = "},
                                        {"<http://a/1> <http://b/p> <http://a/2> <http://g> .\n", "N-Triples: corpus.format = triples"},
                                        {"graph\n[\n  node\n", "are GML, and no text: in Python: sptx.fit(networkx.read_gml"},
                                        {"<?xml version=\"1.0\"?>\n<page>\n", "are XML, and no text: write its text alone"}};
    char got[LOOK_LIKE];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        look_for_rows(got, none[i], strlen(none[i]), LOOK_TEXT);
        if (*got) fail_msg("of \"%s\": %s", none[i], got);
    }
    for (size_t i = 0; i < sizeof like / sizeof *like; i++) {
        look_for_rows(got, like[i].text, strlen(like[i].text), LOOK_TEXT);
        if (!strstr(got, like[i].wanted)) fail_msg("of \"%s\": %s", like[i].text, got);
    }
}

/* ---- documents ---- */

#define TOPIC " the cat sat on the mat\n"
static void what_names_a_document_is_found(void **state) {
    LOOKS(LOOK_DOCUMENTS,
          {"a7 b1 c3 b2\na7 b9 c1\nb6 c3 c2\n", "document = the line's number, text = all of it (corpus.names = yes: its first word names it)"},
          {"d1" TOPIC "d2" TOPIC "d3" TOPIC, "document = the first word, text = the others"},
          {"_*1" TOPIC "_*2" TOPIC, "document = the first word, text = the others"},
          {"d1" TOPIC "d1" TOPIC "d2" TOPIC, "document = the first word, text = the others (2 names in 3 lines: lines of one name are one document)"},
          {"The" TOPIC "A" TOPIC "All" TOPIC, "document = the line's number, text = all of it (corpus.names = yes: its first word names it)"},
          {"Doc one\tthe cat sat\nDoc two\ta dog\n", "document = column 1, text = column 2; tabs, no header"},
          {"earn\tthe cat sat\nearn\ta dog\nacq\ta bird\n", "document = the line's number, text = column 2; tabs, no header; unused: column 1"},
          {"__label__air __label__sea How to fly\n__label__air Who\n", "document = the line's number, text = all of it (corpus.names = yes: its first word names it) BUT "
           "have labels (__label__..), which are words of the texts here: a document's row learns them; remove them for rows of the text alone (sed "
           "'s/__label__[^ ]* *//g')"},
          {"id,title,text\n7,\"Cats, all\",\"the cat, sat\"\n8,Dogs,a dog\n", "document = id, text = text; commas, a header; unused: title"},
          {"review,sentiment\n\"good, it was\",positive\n\"bad, it was not\",negative\n\"bad, too\",negative\n",
           "document = the line's number, text = review; commas, a header; unused: sentiment"},
          {"1,\"the cat, sat\"\n2,\"a dog\"\n3,\"a bird\"\n", "document = column 1, text = column 2; commas, no header"},
          {"story,title,user\n142,The cat sat,ann\n141,A dog,bob\n", "document = story, text = title; commas, a header; unused: user"},
          {"{\"id\": \"7\", \"text\": \"the cat\"}\n{\"id\": \"8\", \"text\": \"a dog\"}\n", "holds JSON, whose braces and names would be "
           "words; write its texts alone first, one on each line (in Python: pandas.read_json(path, lines=True)[['id', 'text']].to_csv(..))"},
          {"[\n\"the cat\",\n", "holds JSON, whose braces and names would be words; write its texts alone first, one on each line (in Python: "
           "pandas.read_json(path, lines=True)[['id', 'text']].to_csv(..))"},
          {"{\\rtf the cat\na dog}\n", "document = the line's number, text = all of it (corpus.names = yes: its first word names it)"},
          {"Hello, world of cats\nGoodbye, world of dogs\n", "document = the line's number, text = all of it (corpus.names = yes: its first word names it)"});
}

static void keys_of_documents_decide(void **state) {
    struct look_keys keys = LOOK_AUTO;
    keys.names = NAMES_YES;
    assert_string_equal(looked("a b c\na d e\n", LOOK_DOCUMENTS, &keys),
                        "document = the first word, text = the others (1 names in 2 lines: lines of one name are one document)");
    keys.names = NAMES_FILE;
    assert_string_equal(looked("d1 a b\nd2 c d\n", LOOK_DOCUMENTS, &keys), "document = each file, named by its path");
    keys = LOOK_AUTO;
    keys.columns = "3";
    assert_string_equal(looked("1\tx\tthe cat\n2\ty\ta dog\n", LOOK_DOCUMENTS, &keys), "document = the line's number, text = column 3; tabs, no header");
    keys.columns = "id,body,more";
    assert_string_equal(looked("more,body,id\na b,c d,7\n", LOOK_DOCUMENTS, &keys), "document = id, text = body and text = more; commas, a header");
    keys = LOOK_AUTO;
    keys.separator = SEPARATOR_COMMA;
    assert_string_equal(looked("u,the cat\nv,a dog\n", LOOK_DOCUMENTS, &keys), "document = column 1, text = column 2; commas, no header");
    keys.files = 3;
    keys.separator = SEPARATOR_AUTO;
    assert_string_equal(looked("the cat sat\na dog\n", LOOK_DOCUMENTS, &keys), "document = each file, named by its path");
}

/* ---- triples, events, counts, matrices ---- */

static const char *repeated(const char *(*line)(int i), int count, char between) {
    static char out[1 << 16];
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        const char *fields = line(i);
        for (; *fields; fields++) out[used++] = *fields == ' ' ? between : *fields;
        out[used++] = '\n';
    }
    out[used] = 0;
    return out;
}
static char made[64];
#define LINE(name, ...)                                                                                                \
    static const char *name(int i) {                                                                                   \
        snprintf(made, sizeof made, __VA_ARGS__);                                                                      \
        return made;                                                                                                   \
    }
LINE(head_tail_relation, "e%d e%d r%d", i * 7 % 40, i * 11 % 40, i % 3)
LINE(relation_head_tail, "r%d e%d e%d", i % 3, i * 7 % 40, i * 11 % 40)
LINE(numbers_h_t_r, "%d %d %d", i * 7 % 40, i * 11 % 40, i % 3)
LINE(numbers_h_r_t, "%d %d %d", i * 7 % 40, i % 3, i * 11 % 40)
LINE(users_and_genres, "u%d likes g%d", i, i % 3)
LINE(users_items_events, "u%d i%d %s", i % 7, i, i % 3 ? "view" : "cart")
LINE(users_items_clicks, "u%d i%d %d", i % 7, i, i % 2)

static void the_relation_of_triples_is_found(void **state) {
    const char *usual = "head = column 1, relation = column 2, tail = column 3; tabs, no header";
    const struct look_keys keys = LOOK_AUTO;
    assert_non_null(strstr(looked(repeated(head_tail_relation, 60, '\t'), LOOK_TRIPLES, &keys), "relation = column 3, tail = column 2 (the relation has few names)"));
    assert_non_null(strstr(looked(repeated(numbers_h_t_r, 60, '\t'), LOOK_TRIPLES, &keys), "relation = column 3, tail = column 2 (the relation has few names)"));
    assert_non_null(strstr(looked(repeated(relation_head_tail, 60, '\t'), LOOK_TRIPLES, &keys), "head = column 2, relation = column 1, tail = column 3"));
    assert_string_equal(looked(repeated(numbers_h_r_t, 60, '\t'), LOOK_TRIPLES, &keys), usual);
    assert_string_equal(looked(repeated(users_and_genres, 60, '\t'), LOOK_TRIPLES, &keys), usual);
}

static void a_count_in_the_first_line_is_no_row(void **state) {
    LOOKS(LOOK_TRIPLES, {"3\na r b\nb r c\nc r a\n", "head = column 1, relation = column 2, tail = column 3; blanks, no header, a count in the first line"},);
    LOOKS(LOOK_EDGES, {"4 3\n1 2\n2 3\n3 4\n", "source = column 1, target = column 2, weight = none; blanks, no header, a count in the first line"},
          {"4 3\n1 2\n2 3\n3 5\n", "source = column 1, target = column 2, weight = none; blanks, no header"});
    LOOKS(LOOK_TITLES, {"2\nUlm\t0\nBern\t1\n", "id = column 1, title = column 2; tabs, no header, a count in the first line"});
}

static void what_happened_is_said(void **state) {
    const struct look_keys keys = LOOK_AUTO;
    assert_non_null(strstr(looked(repeated(users_items_events, 60, ','), LOOK_PAIRS, &keys),
                           "event = column 3 (cart 20, view 40: all count alike; corpus.events = WORD,.. keeps some); commas"));
    assert_non_null(strstr(looked(repeated(users_items_clicks, 60, ','), LOOK_PAIRS, &keys), "rating = column 3 (lines of 0 are left out); commas"));
    LOOKS(LOOK_PAIRS, {"utente;film\nann;dune\nbob;emma\n", "list = utente, item = film, rating = none; semicolons, a header"},
          {"u1,i1,1.7e308\nu2,i2,2\nu1,i2,3\n", "list = column 1, item = column 2, rating = column 3; commas, no header"});
}

static void matrices_are_no_lists(void **state) {
    const struct look_keys keys = LOOK_AUTO;
    static const struct {
        const char *text;
        enum look_rows rows;
    } all[] = {{"bread,milk,tea\nFalse,True,True\nTrue,False,True\nTrue,True,False\n", LOOK_LISTS},
               {"name,bread,milk,tea\nann,0,3,0\nbob,0,0,1\ncid,2,0,0\n", LOOK_LISTS},
               {"0 1 0\n1 0 1\n0 1 0\n", LOOK_ADJACENCY},
               {"0 1 0\n1 0 1\n0 1 0\n", LOOK_EDGES},
               {"0 2 0 0\n2 0 1 0\n0 1 0 5\n0 0 5 0\n", LOOK_EDGES}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strstr(looked(all[i].text, all[i].rows, &keys), "are a matrix")) fail_msg("of \"%s\": %s", all[i].text, looked(all[i].text, all[i].rows, &keys));
    assert_non_null(strstr(looked("4 3\n2\n1 3\n2 4\n3\n", LOOK_ADJACENCY, &keys), "holds a graph of METIS (4 nodes, 3 edges"));
    LOOKS(LOOK_LISTS, {"u1,m1,m2,m3\nu2,m2,m3,m4\nu3,m1,m5,m6\n", "list = the first, items = the others; commas, no header"},
          {"user,a,b,c\n1,23,56,88\n2,23,11,4\n3,9,56,7\n", "list = the first, items = the others; commas, a header"});
    LOOKS(LOOK_ADJACENCY, {"1 2 3\n2 1 3\n3 1 2\n", "target = the first, contexts = the others; blanks, no header"});
}

/* ---- rows that a program passes ---- */

/* Looks at rows of fields that blanks separate; a field of digits is a number. names: names of the columns, or NULL. */
static const char *looked_typed(const char *const *rows, size_t count, const char *const *names, enum look_rows asked) {
    static char out[LOOK_SAID + LOOK_LIKE + 400];
    static struct look_field fields[64 * 4];
    const struct look_keys keys = LOOK_AUTO;
    struct look look;
    size_t columns = 0;
    memset(fields, 0, sizeof fields);
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0, at = 0; c < 4 && rows[i][at]; c++) {
            size_t length = strcspn(rows[i] + at, "|");
            int is_number = strspn(rows[i] + at, "0123456789.") == length;
            fields[i * 4 + c] = (struct look_field){rows[i] + at, length, !length ? FIELD_MISSING : is_number ? FIELD_INTEGER : FIELD_TEXT};
            at += length + (rows[i][at + length] != 0);
            if (c + 1 > columns) columns = c + 1;
        }
    struct look_field packed[64 * 4];
    for (size_t i = 0; i < count; i++) memcpy(packed + i * columns, fields + i * 4, columns * sizeof *packed);
    const struct look_data data = {packed, count, columns, names, "the frame"};
    if (look_at_rows(&look, &data, asked, &keys)) {
        snprintf(out, sizeof out, "%s", report_sentence());
        report_clear();
    } else {
        snprintf(out, sizeof out, "%d %s%s%s", look.rows, *look.said ? look.said + strlen("columns    ") : "", *look.doubt ? " BUT " : "", look.doubt);
    }
    return out;
}
#define TYPED(asked, names, wanted, ...)                                                                               \
    do {                                                                                                               \
        const char *const rows[] = {__VA_ARGS__};                                                                      \
        const char *got = looked_typed(rows, sizeof rows / sizeof *rows, names, asked);                                \
        char all[LOOK_SAID + 200];                                                                                     \
        snprintf(all, sizeof all, "%s", wanted);                                                                       \
        if (strcmp(got, all)) fail_msg("wanted \"%s\"\n  got    \"%s\"", all, got);                                    \
    } while (0)

static void typed_rows_come_by_the_same_door(void **state) {
    static const char *const user_item[] = {"user", "film", "stars"}, *const id_text[] = {"id", "text"}, *const htr[] = {"head", "tail", "rel"};
    char wanted[LOOK_SAID];
#define IS(rows, said) (snprintf(wanted, sizeof wanted, "%d %s; the frame", rows, said), wanted)
    TYPED(LOOK_ANY, user_item, IS(LOOK_PAIRS, "list = user, item = film, rating = stars"), "1|2|5", "1|3|4", "2|2|1");
    TYPED(LOOK_ANY, id_text, IS(LOOK_DOCUMENTS, "document = id, text = text"), "1|the cat\tsat, \"so", "2|a dog");
    TYPED(LOOK_ANY, htr, IS(LOOK_TRIPLES, "head = head, relation = rel, tail = tail"), "a|b|in", "c|d|in");
    TYPED(LOOK_ANY, NULL, IS(LOOK_PAIRS, "list = column 1, item = column 2, rating = none"), "ann|dune", "bob|emma");
    TYPED(LOOK_ANY, NULL, IS(LOOK_EDGES, "source = column 1, target = column 2, weight = column 3"), "a|b|2.0", "b|c|1.0");
    TYPED(LOOK_ANY, NULL, IS(LOOK_TRIPLES, "head = column 1, relation = column 2, tail = column 3"), "Ulm|in|Germany", "Bern|in|Switzerland");
    TYPED(LOOK_PAIRS, NULL, IS(LOOK_PAIRS, "list = column 1, item = column 2, rating = none"), "1|2", "1|3");
    TYPED(LOOK_TRIPLES, NULL, "row 0 of the frame: 2 fields; wanted head, relation, tail: 1, 2", "1|2", "1|3");
    const char *choices = "the frame: 2 rows of 2 columns could be several things; say which by corpus.format: pairs (list, item[, rating]), graph "
                          "(source, target[, weight]), triples (head, relation, tail), documents (document, text), lists (a row is a list) or text";
    TYPED(LOOK_ANY, NULL, choices, "1|2", "1|3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_names_a_document_is_found),
        cmocka_unit_test(keys_of_documents_decide),
        cmocka_unit_test(the_relation_of_triples_is_found),
        cmocka_unit_test(a_count_in_the_first_line_is_no_row),
        cmocka_unit_test(what_happened_is_said),
        cmocka_unit_test(matrices_are_no_lists),
        cmocka_unit_test(typed_rows_come_by_the_same_door),
        cmocka_unit_test(pairs_are_parted_as_all_lines_agree),
        cmocka_unit_test(a_header_is_a_word_above_numbers_or_a_known_name),
        cmocka_unit_test(known_names_choose_columns_in_any_order),
        cmocka_unit_test(triples_are_three_columns),
        cmocka_unit_test(corpus_columns_of_triples_are_head_relation_tail),
        cmocka_unit_test(ntriples_have_no_header_and_no_other_separator),
        cmocka_unit_test(columns_of_another_file_give_way_to_what_a_file_says_itself),
        cmocka_unit_test(what_is_no_such_row_is_refused),
        cmocka_unit_test(files_of_other_formats_are_refused_by_name),
        cmocka_unit_test(long_lines_are_looked_at_within_bounds),
        cmocka_unit_test(what_people_have_is_read_rightly_or_refused),
        cmocka_unit_test(what_programs_write_beside_names_is_refused),
        cmocka_unit_test(lists_within_a_column_are_refused),
        cmocka_unit_test(what_may_be_something_else_is_said),
        cmocka_unit_test(row_numbers_are_no_lists),
        cmocka_unit_test(bars_and_colons_may_be_within_names),
        cmocka_unit_test(labels_and_titles_of_public_data),
        cmocka_unit_test(a_spreadsheet_may_name_its_separator),
        cmocka_unit_test(times_are_no_weights),
        cmocka_unit_test(networkx_attributes_are_one_field),
        cmocka_unit_test(lists_may_differ_in_length_and_have_no_names),
        cmocka_unit_test(keys_decide),
        cmocka_unit_test(a_few_lines_are_judged),
        cmocka_unit_test(many_lines_tell_ratings_from_lists_of_two),
        cmocka_unit_test(text_that_looks_like_rows_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
