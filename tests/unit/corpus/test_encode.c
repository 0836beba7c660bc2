#include "tests/testing.h"

#include "base/directory.h"
#include "base/memory.h"
#include "corpus/encode.h"
#include "corpus/numbered.h"
#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/unit/plain_options.h"
#include "tests/unit/sentence.h"

/* A corpus with its vocabulary and its stream. */
struct case_ {
    struct pool *pool;
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream;
    int result, reused;
};
/* Opens a case. In every second case the words are numbered while they are counted, as cache.h does it. In the other cases the file is read a
 * second time. */
static struct case_ open_case(const struct corpus_options *options, char *path, unsigned threads, uint64_t block) {
    static int cases;
    struct numbered numbered = {.fd = -1};
    struct case_ c = {.pool = pool_open(threads), .corpus = scratch_corpus(path, block)};
    assert_non_null(c.pool);
    assert_non_null(c.corpus);
    if (cases++ % 2) {
        assert_int_equal(numbered_open(&numbered, in_scratch("ids")), 0);
        corpus_set_numbered(c.corpus, &numbered);
    }
    int built = vocab_build(&c.vocab, c.corpus, options, c.pool);
    c.result = built ? -1 : encode_open(&c.stream, in_scratch("ids"), c.corpus, &c.vocab, options, c.pool, &c.reused);
    corpus_set_numbered(c.corpus, NULL);
    if (numbered.fd >= 0) numbered_close(&numbered);
    return c;
}
static void close_case(struct case_ *c) {
    idstream_close(&c->stream);
    vocab_release(&c->vocab);
    corpus_close(c->corpus);
    pool_close(c->pool);
}

/* Returns the stream's sentences as words: "a b | c". */
static const char *listed(const struct case_ *c) {
    static char out[8192];
    char *at = out;
    *out = 0;
    for (uint64_t i = 0; i < 3 * c->stream.triples; i++)
        at += sprintf(at, "%s%s", vocab_word(&c->vocab, c->stream.ids[i], NULL), i % 3 == 2 ? ";" : " ");
    if (c->stream.triples) {
        assert_int_equal(c->stream.sentences, c->stream.triples);
        assert_null(c->stream.starts);
        return out;
    }
    assert_int_equal(c->stream.starts[0], 0);
    for (uint64_t s = 0; s < c->stream.sentences; s++) {
        assert_true(c->stream.starts[s] < c->stream.starts[s + 1]);
        if (s) at += sprintf(at, "| ");
        for (uint64_t i = c->stream.starts[s]; i < c->stream.starts[s + 1]; i++)
            at += sprintf(at, "%s ", vocab_word(&c->vocab, c->stream.ids[i], NULL));
    }
    assert_int_equal(c->stream.starts[c->stream.sentences], c->stream.tokens);
    return out;
}

static const struct {
    unsigned threads;
    uint64_t block;
} ways[] = {{1, CORPUS_BLOCK}, {1, 1}, {2, 1}, {2, 3}, {5, 2}, {5, 7}, {2, 64}, {5, 1000}};
enum { WAYS = sizeof ways / sizeof *ways };

static void no_rest_is_left(void) {
    char **names;
    int64_t count = directory_list(scratch, &names);
    for (int64_t i = 0; i < count; i++) assert_false(strstr(names[i], "partial") || strstr(names[i], "pairs"));
    mem_free_texts(names, count);
}

/* Checks that each way to encode gives these sentences, and the same bytes. */
static void encodes_as(const struct corpus_options *options, const char *text, const char *wanted) {
    char *path = scratch_text("corpus", text), *first = NULL;
    uint64_t size = 0, length;
    for (int w = 0; w < 2 * WAYS; w++) {
        file_remove(in_scratch("ids"));
        struct case_ c = open_case(options, path, ways[w / 2].threads, ways[w / 2].block);
        if (c.result) print_error("%s\n", report_sentence());
        assert_int_equal(c.result, 0);
        assert_int_equal(c.reused, 0);
        if (wanted) assert_string_equal(listed(&c), wanted);
        close_case(&c);
        no_rest_is_left();
        char *bytes = file_read(in_scratch("ids"), &length);
        if (!first)
            first = bytes, size = length;
        else {
            assert_int_equal(length, size);
            assert_memory_equal(bytes, first, size);
            free(bytes);
        }
    }
    free(first);
}

static void text_is_its_lines(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    encodes_as(&options, "a b c\n\n  \nd\r\n\r\n e a", "a b c | d | e a ");
    options.min_count = 2;
    encodes_as(&options, "a b x\ny z\nb a\nw\n", "a b | b a ");
}

static void long_sentences_are_cut_at_kept_tokens(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    options.min_count = 2;
    options.max_sentence = 3;
    encodes_as(&options, "a x b y c d a b\nz c d a\nb c d a", "a b c | d a b | c d a | b c d | a ");
    options.max_sentence = 1;
    encodes_as(&options, "a a\na b b", "a | a | a | b | b ");
}

static void lists_are_lines_without_their_names(void **state) {
    struct corpus_options options = plain_options(FORMAT_LISTS);
    options.max_sentence = 2; /* this limit cuts only lines of text */
    encodes_as(&options, "a b c d\nb\n\n  c a b\n\td d", "b c d | a b | d ");
    options.min_count = 2;
    encodes_as(&options, "u1 x a b\nu2 y\nu3 a b z\nu4 z1 z2\nlonger-than-a-block-is a\n", "a b | a b | a ");
}

static void adjacency_needs_a_target_and_a_context(void **state) {
    struct corpus_options options = plain_options(FORMAT_ADJACENCY);
    options.min_count = 2;
    encodes_as(&options, "t a b\nq a b a a b t\nt p y\n\n  t\na t x b\nb   z   t\n", "t a b | a t b | b t ");
    encodes_as(&options, "t a x x2 x3\nt x4 x5 x6 x7 x8 a\nt x9 x10 x11 x12\nx13 t t t\na a x14", "t a | t a | a a ");
    options.min_count = 1;
    encodes_as(&options, "a\nb c\nd\ne f", "b c | e f ");
}

static void triples_are_sorted_and_count_once(void **state) {
    struct corpus_options options = plain_options(FORMAT_TRIPLES);
    options.list_rows = 1;
    encodes_as(&options, "b r a\na s b\na r a\nb r a\nb r c\n",
               "a relation:r a;a relation:s b;b relation:r a;b relation:r c;"); /* a comes four times, b three times, c once */
    options.reciprocal = 1;
    encodes_as(&options, "7,1,8\n8,1,7\n8,8,8\n", "8 relation:1 7;8 relation:8 8;7 relation:1 8;");
    options.min_count = 2;
    encodes_as(&options, "a r b\nb s a\nc r a\nb t d\n", "a relation:r b;b relation:s a;");
    options.max_vocab = 2;
    options.min_count = 1;
    encodes_as(&options, "<a> <r> <b> .\n# none\n<b> <s> <a> .\n<c> <r> <a> .\n", "a relation:r b;b relation:s a;");
}

static void relations_are_the_last_rows_and_may_have_reciprocals(void **state) {
    struct corpus_options options = plain_options(FORMAT_TRIPLES);
    options.list_rows = options.reciprocal = 1;
    struct case_ c = open_case(&options, scratch_text("corpus", "a s b\na r s\nc t a\n"), 1, 0);
    static const char *const words[] = {"a", "b", "s", "c", "relation:s", "relation:r", "relation:t", "relation:s^-1", "relation:r^-1", "relation:t^-1"};
    assert_int_equal(c.result, 0);
    assert_int_equal(c.vocab.size, 10);
    assert_int_equal(c.vocab.lists, 6);
    for (uint64_t i = 0; i < 10; i++) assert_string_equal(vocab_word(&c.vocab, i, NULL), words[i]);
    assert_int_equal(vocab_find_list(&c.vocab, "r", 1), 5);
    assert_int_equal(vocab_find(&c.vocab, "s", 1), 2);
    assert_true(vocab_is_reciprocal(&c.vocab));
    struct vocab read;
    assert_int_equal(vocab_write(&c.vocab, in_scratch("vocab.tsv")), 0);
    assert_int_equal(vocab_read(&read, in_scratch("vocab.tsv")), 0);
    assert_int_equal(read.lists, 6);
    assert_true(vocab_is_reciprocal(&read));
    read.lists--;
    assert_false(vocab_is_reciprocal(&read));
    vocab_release(&read);
    close_case(&c);
    options.reciprocal = 0;
    c = open_case(&options, scratch_text("corpus", "a s b\na s^-1 b\n"), 1, 0);
    assert_int_equal(c.result, 0);
    assert_int_equal(c.vocab.lists, 2);
    close_case(&c);
    options.reciprocal = 1;
    c = open_case(&options, scratch_text("corpus", "a s b\na s^-1 b\n"), 1, 0);
    assert_int_equal(c.result, -1);
    sentence_holds("the relation 's^-1' ends with ^-1");
    close_case(&c);
    options.min_count = 3;
    c = open_case(&options, scratch_text("corpus", "a s b\na r c\na r d\n"), 1, 0);
    assert_int_equal(c.result, -1);
    sentence_holds("no triple of the corpus 'here' is left");
    close_case(&c);
}

static void pairs_are_put_together_by_list(void **state) {
    struct corpus_options options = plain_options(FORMAT_PAIRS);
    encodes_as(&options, "u2 a 5\nu1 b 1\nu2 c 4\nu3 a\nu1\tc\t3\t99\nu2 b", "a c b | b c | a ");
    options.min_rating = 3;
    encodes_as(&options, "user item rating\nu1 b 1\nu2 a 5\nu1 c 3\nu2 c 4\nu3 a 1\nu1 a 4\n", "a c | c a ");
    options.min_count = 2;
    encodes_as(&options, "u1 x 5\nu2 a 5\nu1 a 5\n", "a | a ");
}

static void given_ids_are_taken_as_they_stand(void **state) {
    struct corpus_options options = plain_options(FORMAT_LISTS);
    options.order = ORDER_GIVEN;
    encodes_as(&options, "u 7 3\nv 3 03 0\n", "7 3 | 3 3 0 ");
    options.min_count = 2;
    encodes_as(&options, "u 7 3\nv 3 9\n", "3 | 3 ");
}

static void a_vocabulary_that_is_read_decides(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    options.vocab = scratch_text("v", "c 0\na 0\n");
    encodes_as(&options, "a b c\nb\nc d", "a c | c ");
    options.order = ORDER_GIVEN; /* the numbers in the file become the ids */
    encodes_as(&options, "a b c\nb\nc d", "a c | c ");
}

/* ---- random corpora against a plain encoder ---- */

static void random_text(char *out, int lines) {
    out += sprintf(out, "w1 w1 w1 w1 w1\n"); /* the words of this line are always kept, so the vocabulary is never empty */
    for (int line = 0; line < lines; line++) {
        for (unsigned words = scratch_random(9); words; words--)
            out += sprintf(out, "%sw%u%s", scratch_random(6) ? "" : " ", scratch_random(scratch_random(2) ? 12 : 60),
                           words > 1 || scratch_random(2) ? " " : "");
        *out++ = '\n';
    }
    if (scratch_random(2)) out--;
    *out = 0;
}

/* Encodes the lines of a text by the rules in encode.h, in the simplest way, and writes them in the form of listed(). */
static void plain_encoding(const char *text, const struct corpus_options *options, const struct vocab *vocab, char *out) {
    char *copy = strdup(text), *rest = copy, *line;
    uint64_t most = options->format == FORMAT_TEXT ? options->max_sentence : UINT64_MAX, sentences = 0;
    *out = 0;
    while ((line = strsep(&rest, "\n"))) {
        char *kept[64], *word, *tokens = line;
        uint64_t count = 0, index = 0, lost = 0;
        while ((word = strsep(&tokens, " "))) {
            if (!*word) continue;
            int64_t id = vocab_find(vocab, word, strlen(word));
            int name = options->format == FORMAT_LISTS && index == 0;
            if (options->format == FORMAT_ADJACENCY && index == 0 && id < 0) lost = 1;
            if (!name && id >= 0) kept[count++] = word;
            index++;
        }
        if (lost || (options->format == FORMAT_ADJACENCY && count < 2)) continue;
        for (uint64_t i = 0; i < count; i++) {
            if (i % most == 0 && sentences++) out += sprintf(out, "| ");
            out += sprintf(out, "%s ", kept[i]);
        }
    }
    free(copy);
}

static void random_corpora_agree_with_a_plain_encoder(void **state) {
    static const int formats[] = {FORMAT_TEXT, FORMAT_LISTS, FORMAT_ADJACENCY};
    char text[4096], wanted[8192];
    for (int round = 0; round < 90; round++) {
        struct corpus_options options = plain_options(formats[round % 3]);
        options.min_count = 1 + scratch_random(4);
        options.max_sentence = 1 + scratch_random(5);
        options.look.names = NAMES_YES;
        random_text(text, 30);
        char *path = scratch_text("corpus", text);
        int w = round % WAYS;
        file_remove(in_scratch("ids"));
        struct case_ c = open_case(&options, path, ways[w].threads, 1 + scratch_random(50));
        assert_int_equal(c.result, 0);
        assert_int_equal(vocab_index(&c.vocab, path, c.pool), 0);
        plain_encoding(text, &options, &c.vocab, wanted);
        assert_string_equal(listed(&c), wanted);
        close_case(&c);
    }
}

static void a_long_token_and_long_lines_cross_many_blocks(void **state) {
    struct corpus_options options = plain_options(FORMAT_LISTS);
    uint64_t length = 100000;
    char *text = malloc(3 * length), *at = text;
    memset(at, 'N', length); /* a list's name of 100,000 bytes */
    at += length;
    at += sprintf(at, " a ");
    memset(at, 'L', length);
    at += length;
    for (int i = 0; i < 5000; i++) at += sprintf(at, " i%d", i % 7);
    sprintf(at, "\nname a");
    encodes_as(&options, text, NULL);
    struct case_ c = open_case(&options, in_scratch("corpus"), 1, 0);
    assert_int_equal(c.stream.sentences, 2);
    assert_int_equal(c.stream.starts[1], 5002);
    assert_int_equal(c.stream.tokens, 5003);
    close_case(&c);
    free(text);
}

/* ---- the file ---- */

static void an_unchanged_corpus_is_encoded_once(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    char *path = scratch_text("corpus", "a b c a");
    struct case_ c = open_case(&options, path, 2, 0);
    assert_int_equal(c.reused, 0);
    close_case(&c);
    c = open_case(&options, path, 1, 3);
    assert_int_equal(c.result, 0);
    assert_int_equal(c.reused, 1);
    assert_string_equal(listed(&c), "a b c a ");
    close_case(&c);
    options.max_sentence = 2;
    c = open_case(&options, path, 1, 0);
    assert_int_equal(c.reused, 0);
    assert_string_equal(listed(&c), "a b | c a ");
    close_case(&c);
    options.min_count = 2;
    c = open_case(&options, path, 1, 0);
    assert_int_equal(c.reused, 0);
    assert_string_equal(listed(&c), "a a ");
    close_case(&c);
    options.min_count = 1;
    options.format = FORMAT_LISTS;
    c = open_case(&options, path, 1, 0);
    assert_int_equal(c.reused, 0);
    close_case(&c);
    scratch_text("corpus", "a b c a d");
    c = open_case(&options, path, 1, 0);
    assert_int_equal(c.reused, 0);
    assert_string_equal(listed(&c), "b c a d ");
    close_case(&c);
}

static void a_damaged_stream_is_made_again(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    char *path = scratch_text("corpus", "a b c a\nb a\n");
    struct case_ c = open_case(&options, path, 1, 0);
    close_case(&c);
    uint64_t length;
    char *good = file_read(in_scratch("ids"), &length);
    assert_int_equal(length, IDSTREAM_HEADER + 6 * 4 + 3 * 8);
    for (uint64_t at = 0; at < length; at++) {
        if (at == 48) at = IDSTREAM_HEADER;
        good[at] ^= 1;
        scratch_file("ids", good, length);
        good[at] ^= 1;
        c = open_case(&options, path, 1, 0);
        assert_int_equal(c.result, 0);
        assert_int_equal(c.reused, 0);
        close_case(&c);
    }
    for (uint64_t cut = 0; cut < length; cut += 4) {
        scratch_file("ids", good, cut);
        c = open_case(&options, path, 1, 0);
        assert_int_equal(c.reused, 0);
        close_case(&c);
    }
    scratch_file("ids", good, length);
    c = open_case(&options, path, 1, 0);
    assert_int_equal(c.reused, 1);
    close_case(&c);
    free(good);
    assert_string_equal(report_sentence(), "");
}

static void what_a_kill_leaves_is_known_by_name(void **state) {
    static const char *const left[] = {"ids.7.pairs", "ids.12345.pairs", "ids.7.pairs.7-0123456789abcdef.partial"};
    static const char *const others[] = {"ids", "ids.pairs", "ids.7.pair", "ids.x.pairs", "ids.7.pairs.partial", "aids.7.pairs",
                                         "ids.7.pairs.txt", "id.7.pairs", "ids7.pairs"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) assert_true(encode_is_leftover(left[i], "ids"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(encode_is_leftover(others[i], "ids"));
}

/* ---- failures ---- */

static void nothing_in_the_vocabulary_is_a_failure(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    options.vocab = scratch_text("v", "q 1\nr 1\n");
    char *path = scratch_text("corpus", "a b\nc");
    struct case_ c = open_case(&options, path, 2, 2);
    assert_int_equal(c.result, -1);
    sentence_holds("no token of the corpus 'here' is in the vocabulary of 2 words");
    close_case(&c);
    options = plain_options(FORMAT_ADJACENCY);
    c = open_case(&options, scratch_text("corpus", "a\nb\n"), 2, 2);
    assert_int_equal(c.result, -1);
    sentence_holds(
        "no line of the corpus 'here' is left: none has its target and a context in the vocabulary of 2 words");
    close_case(&c);
    assert_false(file_exists(in_scratch("ids")));
    no_rest_is_left();
}

static void write_gzip(const char *name, uint64_t cut) {
    static char text[1000000]; /* the text is longer than the part by which a file's kind is found out */
    char *at = text;
    while (at < text + sizeof text - 16) at += sprintf(at, "w%u ", scratch_random(5000));
    uLongf packed = 0;
    gzFile file = gzopen(in_scratch(name), "wb");
    gzwrite(file, text, (unsigned)(at - text));
    gzclose(file);
    struct stat about;
    stat(in_scratch(name), &about);
    packed = (uLongf)about.st_size;
    if (cut) assert_int_equal(truncate(in_scratch(name), (off_t)(packed - cut)), 0);
}

static void a_file_cut_short_stops_all_workers(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct pool *pool = pool_open(5);
    struct vocab vocab;
    struct idstream stream;
    int reused;
    write_gzip("cut.gz", 100);
    struct corpus *corpus = scratch_corpus(in_scratch("cut.gz"), 50);
    assert_int_equal(vocab_build(&vocab, corpus, &options, pool), -1);
    sentence_holds("cut.gz' is cut short");
    assert_int_equal(vocab_read(&vocab, scratch_text("v", "w1 5\n")), 0);
    assert_int_equal(encode_open(&stream, in_scratch("ids"), corpus, &vocab, &options, pool, &reused), -1);
    sentence_holds("cut.gz' is cut short");
    assert_false(file_exists(in_scratch("ids")));
    no_rest_is_left();
    vocab_release(&vocab);
    corpus_close(corpus);
    pool_close(pool);
}

static void no_room_to_write(int format) {
    struct corpus_options options = plain_options(format);
    char *text = malloc(4000000), *at = text;
    for (int i = 0; i < 300000; i++) at += sprintf(at, "u%d i%d\n", i % 1000, i % 100);
    char *path = scratch_text("corpus", text);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    struct case_ c = open_case(&options, path, 2, 10000);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(c.result, -1);
    sentence_holds("ids': File too large");
    close_case(&c);
    assert_false(file_exists(in_scratch("ids")));
    no_rest_is_left();
    free(text);
}

/* The file grows between counting and encoding, so that the counts would not fit the stream. It must be refused. */
static void a_file_that_grows_meanwhile_is_refused(void **state) {
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct vocab vocab;
    struct idstream stream;
    struct pool *pool = pool_open(2);
    struct corpus *corpus = scratch_corpus(scratch_text("growing", "a b a b\n"), 0);
    int reused;
    assert_int_equal(vocab_build(&vocab, corpus, &options, pool), 0);
    scratch_text("growing", "a b a b\na a\n");
    corpus_rewind(corpus);
    assert_int_equal(encode_open(&stream, in_scratch("ids"), corpus, &vocab, &options, pool, &reused), -1);
    sentence_holds("growing' was changed while it was read: it had 8 bytes and has 12; train when nothing writes to it");
    assert_int_equal(file_exists(in_scratch("ids")), 0);
    vocab_release(&vocab);
    corpus_close(corpus);
    pool_close(pool);
}

static void a_full_disk_leaves_nothing(void **state) {
    for (int numbered = 0; numbered < 2; numbered++) {
        no_room_to_write(FORMAT_TEXT);
        no_room_to_write(FORMAT_PAIRS);
        no_room_to_write(FORMAT_LISTS);
    }
}

/* ---- a stream as the corpus ---- */

static void a_stream_with_its_vocabulary_is_a_corpus(void **state) {
    static const uint32_t ids[] = {1, 0, 1};
    struct corpus_options options = plain_options(FORMAT_TEXT);
    struct idstream_writer writer;
    struct vocab vocab;
    scratch_text("x.ids.vocab.tsv", "b\t2\na\t1\n");
    assert_int_equal(vocab_read(&vocab, in_scratch("x.ids.vocab.tsv")), 0);
    uint64_t fingerprint = vocab_fingerprint(&vocab);
    vocab_release(&vocab);
    assert_int_equal(idstream_writer_open(&writer, in_scratch("x.ids")), 0);
    assert_int_equal(idstream_append(&writer, ids, 3), 0);
    assert_int_equal(idstream_writer_commit(&writer, fingerprint), 0);
    struct case_ c = open_case(&options, in_scratch("x.ids"), 1, 0);
    assert_int_equal(c.result, 0);
    assert_int_equal(c.reused, 1);
    assert_string_equal(listed(&c), "a b a ");
    assert_int_equal(encode_fingerprint(c.corpus, &c.vocab, &options), fingerprint);
    close_case(&c);
    assert_false(file_exists(in_scratch("ids")));
    scratch_text("x.ids.vocab.tsv", "b\t2\nc\t1\n");
    c = open_case(&options, in_scratch("x.ids"), 1, 0);
    assert_int_equal(c.result, -1);
    sentence_holds("x.ids' was made with another vocabulary than this one of 2 words");
    close_case(&c);
    assert_int_equal(truncate(in_scratch("x.ids"), IDSTREAM_HEADER), 0);
    c = open_case(&options, in_scratch("x.ids"), 1, 0);
    assert_int_equal(c.result, -1);
    sentence_holds("x.ids' is damaged or of another version");
    close_case(&c);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(text_is_its_lines),
        IN_SCRATCH(long_sentences_are_cut_at_kept_tokens),
        IN_SCRATCH(lists_are_lines_without_their_names),
        IN_SCRATCH(adjacency_needs_a_target_and_a_context),
        IN_SCRATCH(triples_are_sorted_and_count_once),
        IN_SCRATCH(relations_are_the_last_rows_and_may_have_reciprocals),
        IN_SCRATCH(pairs_are_put_together_by_list),
        IN_SCRATCH(given_ids_are_taken_as_they_stand),
        IN_SCRATCH(a_vocabulary_that_is_read_decides),
        IN_SCRATCH(random_corpora_agree_with_a_plain_encoder),
        IN_SCRATCH(a_long_token_and_long_lines_cross_many_blocks),
        IN_SCRATCH(an_unchanged_corpus_is_encoded_once),
        IN_SCRATCH(a_damaged_stream_is_made_again),
        IN_SCRATCH(what_a_kill_leaves_is_known_by_name),
        IN_SCRATCH(nothing_in_the_vocabulary_is_a_failure),
        IN_SCRATCH(a_file_cut_short_stops_all_workers),
        IN_SCRATCH(a_file_that_grows_meanwhile_is_refused),
        IN_SCRATCH(a_full_disk_leaves_nothing),
        IN_SCRATCH(a_stream_with_its_vocabulary_is_a_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
