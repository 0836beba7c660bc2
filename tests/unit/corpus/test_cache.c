#include "tests/testing.h"

#include "base/directory.h"
#include "corpus/cache.h"
#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/plain_options.h"
#include "tests/unit/sentence.h"

/* A corpus that is opened through the cache in scratch/cache. */
struct case_ {
    struct pool *pool;
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream;
    struct graph graph;
    int result, reused;
};
static struct case_ open_with(const char *text_path, struct corpus_options options) {
    struct case_ c = {.pool = pool_open(2), .corpus = scratch_corpus((char *)text_path, 0)};
    assert_non_null(c.corpus);
    c.result = cache_open(in_scratch("cache"), c.corpus, &options, c.pool, &c.vocab, &c.stream, &c.graph, &c.reused);
    return c;
}
static struct case_ open_case(const char *text_path) {
    return open_with(text_path, plain_options(FORMAT_TEXT));
}
static void close_case(struct case_ *c) {
    idstream_close(&c->stream);
    graph_close(&c->graph);
    vocab_release(&c->vocab);
    corpus_close(c->corpus);
    pool_close(c->pool);
}

/* Checks that the corpus is `wanted`, and whether it was found in the cache (reused = 1) or made anew (0). */
static void comes_as(const char *path, const char *wanted, int reused) {
    char out[256] = "";
    struct case_ c = open_case(path);
    if (c.result) print_error("%s\n", report_sentence());
    assert_int_equal(c.result, 0);
    assert_int_equal(c.reused, reused);
    assert_null(c.vocab.words.slots); /* memory that only a look-up needs */
    for (uint64_t i = 0; i < c.stream.tokens; i++) strcat(strcat(out, vocab_word(&c.vocab, c.stream.ids[i], NULL)), " ");
    assert_string_equal(out, wanted);
    assert_string_equal(report_sentence(), "");
    close_case(&c);
}

static void names_are(const char *wanted) {
    char seen[1024] = "", **names;
    int64_t count = directory_list(in_scratch("cache"), &names);
    for (int64_t i = 0; i < count; i++) strcat(strcat(seen, i ? " " : ""), names[i]);
    mem_free_texts(names, count);
    assert_string_equal(seen, wanted);
}

static void made_once_and_found(void **state) {
    char *path = scratch_text("corpus", "a b c a\n");
    comes_as(path, "a b c a ", 0);
    names_are("corpus.ids corpus.vocab.tsv");
    comes_as(path, "a b c a ", 1);
    comes_as(scratch_text("corpus", "a b c a d d d\n"), "a b c a d d d ", 0);
    comes_as(path, "a b c a d d d ", 1);
}

/* Checks the graph's number of arcs, and whether the graph was found in the cache (reused = 1) or made anew (0). */
static void graph_comes_with(const char *path, struct corpus_options options, uint64_t arcs, int reused) {
    struct case_ c = open_with(path, options);
    if (c.result) print_error("%s\n", report_sentence());
    assert_int_equal(c.result, 0);
    assert_int_equal(c.reused, reused);
    assert_int_equal(c.graph.arcs, arcs);
    assert_int_equal(c.graph.nodes, c.vocab.size);
    assert_null(c.stream.ids);
    close_case(&c);
}

static void a_graph_is_made_once_and_found(void **state) {
    struct corpus_options options = plain_options(FORMAT_GRAPH), directed = options;
    char *path = scratch_text("corpus", "a b 2\nb c 1\n");
    directed.directed = 1;
    graph_comes_with(path, options, 4, 0);
    names_are("corpus.graph corpus.vocab.tsv");
    graph_comes_with(path, options, 4, 1);
    graph_comes_with(path, directed, 2, 0);
    graph_comes_with(path, directed, 2, 1);
    options.weights = WEIGHTS_YES; /* the value that looking at the file has given before */
    graph_comes_with(path, options, 4, 0);
    options.weights = WEIGHTS_AUTO;
    graph_comes_with(path, options, 4, 1);
    options.weights = WEIGHTS_NO;
    graph_comes_with(path, options, 4, 0);
}

/* A cache contains either ids or a graph, with its vocabulary. Making one removes the other. */
static void ids_and_a_graph_replace_each_other(void **state) {
    struct corpus_options options = plain_options(FORMAT_GRAPH);
    char *path = scratch_text("corpus", "a b\nb c\n");
    comes_as(path, "a b b c ", 0);
    graph_comes_with(path, options, 4, 0);
    names_are("corpus.graph corpus.vocab.tsv");
    comes_as(path, "a b b c ", 0);
    names_are("corpus.ids corpus.vocab.tsv");
}

/* While another process replaces the files, a reader may find files of two builds. These must not be used together. */
static void files_of_two_builds_are_not_mixed(void **state) {
    char *one = scratch_text("one", "a b c a\n"), *two = scratch_text("two", "c c b\n");
    uint64_t length[2];
    comes_as(one, "a b c a ", 0);
    char *words = file_read(in_scratch("cache/corpus.vocab.tsv"), &length[0]);
    char *ids = file_read(in_scratch("cache/corpus.ids"), &length[1]);
    comes_as(two, "c c b ", 0);
    scratch_file("cache/corpus.vocab.tsv", words, length[0]); /* the vocabulary of build 1, beside the ids of build 2 */
    comes_as(one, "a b c a ", 0);
    comes_as(two, "c c b ", 0);
    scratch_file("cache/corpus.ids", ids, length[1]);
    comes_as(one, "a b c a ", 0);
    assert_int_equal(file_remove(in_scratch("cache/corpus.vocab.tsv")), 0); /* the vocabulary is missing, as after a kill or if
                                                                             * someone removed it */
    comes_as(one, "a b c a ", 0);
    free(words);
    free(ids);
}

/* Files with the names of a cache's files but with other content are refused. So is a vocabulary without a stream, since a cache writes its stream
 * first. */
static void other_files_of_its_names_are_refused(void **state) {
    static const char *const names[] = {"corpus.ids", "corpus.vocab.tsv", "corpus.graph"};
    char *path = scratch_text("corpus", "a b\n"), name[64];
    assert_int_equal(directory_make(in_scratch("cache")), 0);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "cache/%s", names[i % 3]);
        if (i < 3) scratch_text(name, "the user's\n");
        else assert_int_equal(symlink("../corpus", in_scratch(name)), 0);
        struct case_ c = open_case(path);
        assert_int_equal(c.result, -1);
        sentence_holds("is in the way");
        close_case(&c);
        assert_false(file_exists(in_scratch("cache/corpus.lock")));
        char *text = file_read(in_scratch(name), NULL);
        assert_string_equal(text, i < 3 ? "the user's\n" : "a b\n");
        free(text);
        assert_int_equal(file_remove(in_scratch(name)), 0);
    }
    for (int length = 0; length < 12; length++) { /* a stream that was cut short still belongs to the cache, so it may be
                                                   * replaced */
        scratch_file("cache/corpus.ids", "SPTX-IDS\1\0\0", (uint64_t)length);
        comes_as(path, "a b ", 0);
    }
}

static void leftovers_go_and_other_files_stay(void **state) {
    static const char *const names[] = {"corpus.ids.7-0123456789abcdef.partial",
                                        "corpus.vocab.tsv.8-0123456789abcdef.partial",
                                        "corpus.ids.9.pairs",
                                        "corpus.graph.9-0123456789abcdef.partial",
                                        "corpus.ids.notes",
                                        "other.7-0123456789abcdef.partial"};
    char *path = scratch_text("corpus", "a b\n"), name[64];
    assert_int_equal(directory_make(in_scratch("cache")), 0);
    for (int i = 0; i < 6; i++) assert_int_equal(cache_owns(names[i]), i < 4);
    assert_true(cache_owns("corpus.ids") && cache_owns("corpus.graph") && cache_owns("corpus.vocab.tsv") &&
                cache_owns("corpus.lock"));
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "cache/%s", names[i]);
        scratch_text(name, "x");
    }
    comes_as(path, "a b ", 0);
    names_are("corpus.ids corpus.ids.notes corpus.vocab.tsv other.7-0123456789abcdef.partial");
}

/* Starts a child that takes the lock, calls then(), and ends without giving the lock back. */
static pid_t with_lock_held(void (*then)(void)) {
    int ready[2];
    char byte, holder[LOCK_HOLDER];
    assert_int_equal(directory_make(in_scratch("cache")), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lock lock;
        int taken = lock_try(&lock, in_scratch("cache/corpus.lock"), holder);
        if (write(ready[1], taken ? "n" : "y", 1) != 1) _exit(1);
        usleep(200000);
        then();
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void do_nothing(void) {
}
static void keep_it(void) {
    pause();
}
static void copy_it(void) {
    uint64_t length;
    char *bytes = file_read(in_scratch("kept.ids"), &length);
    scratch_file("cache/corpus.ids", bytes, length);
    bytes = file_read(in_scratch("kept.tsv"), &length);
    scratch_file("cache/corpus.vocab.tsv", bytes, length);
}

static void a_builder_is_waited_for(void **state) {
    char *path = scratch_text("corpus", "a b b\n");
    comes_as(path, "a b b ", 0);
    assert_int_equal(rename(in_scratch("cache/corpus.ids"), in_scratch("kept.ids")), 0);
    assert_int_equal(rename(in_scratch("cache/corpus.vocab.tsv"), in_scratch("kept.tsv")), 0);
    pid_t child = with_lock_held(copy_it);
    comes_as(path, "a b b ", 1); /* the corpus that the child has put into the cache */
    assert_int_equal(waitpid(child, NULL, 0), child);
    names_are("corpus.ids corpus.vocab.tsv");
}

static void a_builder_that_dies_is_followed(void **state) {
    char *path = scratch_text("corpus", "a b b\n");
    pid_t child = with_lock_held(do_nothing);
    comes_as(path, "a b b ", 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    names_are("corpus.ids corpus.vocab.tsv");
}

static void what_is_found_is_read_past_a_lock(void **state) {
    char *path = scratch_text("corpus", "a b b\n");
    comes_as(path, "a b b ", 0);
    pid_t child = with_lock_held(keep_it);
    comes_as(path, "a b b ", 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static int find_it(const char *path) {
    struct case_ c = open_case(path);
    int found = c.result ? -1 : c.reused;
    close_case(&c);
    return found;
}

static void a_directory_that_cannot_be_written_serves(void **state) {
    char *path = scratch_text("corpus", "a b b\n"), *other = scratch_text("other", "a c\n");
    comes_as(path, "a b b ", 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(chmod(in_scratch("cache"), 0555), 0);
    int found = without_rights(find_it, path), made = without_rights(find_it, other);
    assert_int_equal(chmod(in_scratch("cache"), 0755), 0);
    if (found == 77) skip();
    assert_int_equal(found, 1);
    assert_int_equal(made, -1);
    sentence_holds("corpus.lock': Permission denied");
}

/* Without this check, training would use the rows of lists as its only target rows, and read outside the table. */
static void a_vocabulary_has_rows_of_lists_only_if_the_run_has_them(void **state) {
    static const struct {
        const char *rows;
        enum corpus_format format;
        int list_rows;
        const char *refusal; /* NULL: the vocabulary is used */
    } cases[] = {
        {"list:a\t0\nlist:b\t0\n", FORMAT_TEXT, 0, "ends with rows of lists (its last word is 'list:b'), and this run has no such rows"},
        {"list:a\t0\nlist:b\t0\n", FORMAT_GRAPH, 0, "ends with rows of lists"},
        {"list:a\t0\nlist:b\t0\n", FORMAT_TRIPLES, 1, "ends with rows of lists"},
        {"relation:b\t0\n", FORMAT_DOCUMENTS, 1, "ends with rows of relations (its last word is 'relation:b')"},
        {"relation:a\t0\n", FORMAT_TRIPLES, 1, NULL},
        {"list:a\t0\nlist:b\t0\n", FORMAT_DOCUMENTS, 1, NULL},
        {"list:a\t1\n", FORMAT_TEXT, 0, NULL}, /* an item, since it has a count */
        {"list:a\t0\nd\t1\n", FORMAT_TEXT, 0, NULL}, /* the list is not among the last rows */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[64];
        struct corpus_options options = plain_options(cases[i].format);
        snprintf(words, sizeof words, "b\t2\nc\t1\n%s", cases[i].rows);
        options.vocab = scratch_text("given.tsv", words);
        options.list_rows = cases[i].list_rows;
        if (cases[i].format == FORMAT_DOCUMENTS) options.look.names = NAMES_YES;
        struct case_ c = open_with(scratch_text("text", cases[i].format == FORMAT_GRAPH ? "b c\n" : "b a c\n"), options);
        assert_int_equal(c.result, cases[i].refusal ? -1 : 0);
        if (cases[i].refusal) sentence_holds(cases[i].refusal);
        close_case(&c);
        cache_remove(in_scratch("cache"));
    }
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(made_once_and_found),
        IN_SCRATCH(a_graph_is_made_once_and_found),
        IN_SCRATCH(ids_and_a_graph_replace_each_other),
        IN_SCRATCH(files_of_two_builds_are_not_mixed),
        IN_SCRATCH(other_files_of_its_names_are_refused), IN_SCRATCH(leftovers_go_and_other_files_stay),
        IN_SCRATCH(a_builder_is_waited_for),
        IN_SCRATCH(a_builder_that_dies_is_followed),
        IN_SCRATCH(what_is_found_is_read_past_a_lock),
        IN_SCRATCH(a_directory_that_cannot_be_written_serves),
        IN_SCRATCH(a_vocabulary_has_rows_of_lists_only_if_the_run_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
