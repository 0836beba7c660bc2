#include "tests/testing.h"

#include "corpus/idstream.h"
#include "tests/unit/scratch.h"

#include <xxhash.h>

#include "tests/unit/sentence.h"

/* The file of an id stream in memory. Its header is an array of uint64; these are the indices of the numbers of tokens and
 * sentences, and of the checksum. */
enum { TOKENS = 3, SENTENCES = 4, SUM = 5, PIECE = 1 << 18 };

static struct pool *pool;

static int set_up(void **state) {
    pool = pool_open(3);
    return scratch_make(state);
}
static int tear_down(void **state) {
    pool_close(pool);
    return scratch_remove(state);
}

static int reuse(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows) {
    int result = idstream_reuse(stream, path, fingerprint, rows, pool);
    assert_string_equal(report_sentence(), "");
    return result;
}

/* ---- writing ---- */

static void sentences_are_written_as_given(void **state) {
    static const uint32_t ids[] = {5, 4294967293u, 7};
    struct idstream_writer writer;
    struct idstream stream;
    uint64_t rows = 4294967294u;
    assert_int_equal(idstream_writer_open(&writer, in_scratch("ids")), 0);
    assert_int_equal(idstream_append(&writer, ids, 2), 0);
    assert_int_equal(idstream_append(&writer, ids, 0), 0);
    assert_int_equal(idstream_append(&writer, ids + 2, 1), 0);
    assert_int_equal(idstream_writer_commit(&writer, 42), 0);
    assert_int_equal(reuse(&stream, in_scratch("ids"), 43, rows), 0);
    assert_int_equal(reuse(&stream, in_scratch("ids"), 42, rows - 1), 0);
    assert_int_equal(reuse(&stream, in_scratch("ids"), 42, rows), 1);
    assert_int_equal(stream.tokens, 3);
    assert_int_equal(stream.sentences, 2);
    assert_int_equal(stream.starts[1], 2);
    assert_int_equal(stream.starts[2], 3);
    assert_memory_equal(stream.ids, ids, sizeof ids);
    idstream_close(&stream);
    idstream_close(&stream);
    assert_int_equal(idstream_writer_open(&writer, in_scratch("other")), 0);
    idstream_writer_abandon(&writer);
    idstream_writer_abandon(&writer);
    assert_false(file_exists(in_scratch("other.partial")));
    assert_int_equal(idstream_writer_open(&writer, in_scratch("no/such")), -1);
    sentence_holds("no/such': No such file");
}

/* ---- what is not believed ---- */

static void a_header_that_promises_too_much_is_not_believed(void **state) {
    static const uint64_t lies[] = {UINT64_MAX, UINT64_MAX / 4, UINT64_MAX / 8, (uint64_t)1 << 62, 1000};
    uint64_t header[IDSTREAM_HEADER / 8 + 4] = {0};
    struct idstream stream;
    memcpy(header, "SPTX-IDS\2\0\0", 12);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            header[TOKENS] = lies[i];
            header[SENTENCES] = lies[j];
            assert_int_equal(reuse(&stream, scratch_file("lie", header, sizeof header), 0, 9), 0);
        }
    assert_int_equal(reuse(&stream, in_scratch("absent"), 0, 9), 0);
    assert_int_equal(reuse(&stream, scratch, 0, 9), 0);
}

/* Writes the right checksum into the header, computed in the simplest way from the format. */
static void seal(char *file, uint64_t size, unsigned version) {
    const char *bytes = file + IDSTREAM_HEADER;
    uint64_t length = size - IDSTREAM_HEADER, *header = (uint64_t *)(void *)file, pieces = 0, sums[64];
    for (uint64_t at = 0; at < length; at += PIECE)
        sums[pieces++] = XXH3_64bits(bytes + at, length - at < PIECE ? length - at : PIECE);
    file[8] = (char)version;
    header[SUM] = version == 1 ? XXH3_64bits(bytes, length) : XXH3_64bits(sums, pieces * 8);
}

/* The words are "0" to VOCAB - 1. The stream has TOTAL tokens in sentences of 3, and many pieces. */
enum { VOCAB = 10, TOTAL = 450001 };
struct example {
    struct vocab vocab;
    char *file; /* [size] the whole file */
    uint64_t size;
    uint32_t *ids;    /* points into `file` */
    uint64_t *starts; /* points into `file` */
    uint64_t sentences;
};

static void make_example(struct example *e) {
    struct idstream_writer writer;
    scratch_text("v", "0\t1\n1\t1\n2\t1\n3\t1\n4\t1\n5\t1\n6\t1\n7\t1\n8\t1\n9\t1\n");
    assert_int_equal(vocab_read(&e->vocab, in_scratch("v")), 0);
    assert_int_equal(idstream_writer_open(&writer, in_scratch("ids")), 0);
    for (uint32_t i = 0; i < TOTAL; i += 3) {
        uint32_t ids[3] = {i % VOCAB, 9, i / 3 % VOCAB};
        assert_int_equal(idstream_append(&writer, ids, i + 3 <= TOTAL ? 3 : TOTAL - i), 0);
    }
    assert_int_equal(idstream_writer_commit(&writer, vocab_fingerprint(&e->vocab)), 0);
    e->file = file_read(in_scratch("ids"), &e->size);
    assert_true(e->size > 8 * PIECE && e->size < 64 * PIECE);
    e->ids = (uint32_t *)(void *)(e->file + IDSTREAM_HEADER);
    e->starts = (uint64_t *)(void *)(e->ids + TOTAL + TOTAL % 2);
    e->sentences = (TOTAL + 2) / 3;
}
static void drop_example(struct example *e) {
    vocab_release(&e->vocab);
    free(e->file);
}

/* The file has the right checksum but an invalid value. It must be refused with this message, and not be used from a cache. */
static void refused_for(struct example *e, const char *sentence) {
    struct idstream stream;
    seal(e->file, e->size, 2);
    scratch_file("changed", e->file, e->size);
    assert_int_equal(idstream_open(&stream, in_scratch("changed"), vocab_fingerprint(&e->vocab), e->vocab.size, pool), -1);
    sentence_holds(sentence);
    assert_null(stream.ids);
    assert_int_equal(reuse(&stream, in_scratch("changed"), vocab_fingerprint(&e->vocab), VOCAB), 0);
}

static void what_is_written_is_what_the_format_says(void **state) {
    struct example e;
    struct idstream stream, older;
    make_example(&e);
    char *own = malloc(e.size);
    memcpy(own, e.file, e.size);
    seal(e.file, e.size, 2);
    assert_memory_equal(own, e.file, e.size);
    assert_int_equal(idstream_open(&stream, in_scratch("ids"), vocab_fingerprint(&e.vocab), e.vocab.size, pool), 0);
    assert_int_equal(stream.tokens, TOTAL);
    assert_int_equal(stream.sentences, e.sentences);
    assert_memory_equal(stream.ids, e.ids, TOTAL * 4);
    seal(e.file, e.size, 1);
    scratch_file("older", e.file, e.size);
    assert_int_equal(idstream_open(&older, in_scratch("older"), vocab_fingerprint(&e.vocab), e.vocab.size, pool), 0);
    assert_true(older.checksum == stream.checksum); /* the checksum is of the content, so it is the same in every version of the
                                                     * format */
    idstream_close(&older);
    e.file[e.size - 1] ^= 1;
    scratch_file("older", e.file, e.size);
    assert_int_equal(idstream_open(&older, in_scratch("older"), vocab_fingerprint(&e.vocab), e.vocab.size, pool), -1);
    sentence_holds("older' is damaged or of another version");
    e.file[8] = 3;
    scratch_file("older", e.file, e.size);
    assert_int_equal(idstream_open(&older, in_scratch("older"), vocab_fingerprint(&e.vocab), e.vocab.size, pool), -1);
    sentence_holds("older' is damaged or of another version");
    idstream_close(&stream);
    free(own);
    drop_example(&e);
}

static void ids_without_a_row_are_refused(void **state) {
    static const uint64_t places[] = {0, 1, PIECE / 4 - 1, PIECE / 4, 300000, TOTAL - 1};
    struct example e;
    char sentence[96];
    make_example(&e);
    for (int i = 0; i < 6; i++)
        for (int high = 0; high < 2; high++) {
            uint32_t kept = e.ids[places[i]];
            e.ids[places[i]] = high ? UINT32_MAX : VOCAB;
            snprintf(sentence, sizeof sentence, "changed' holds id %u as token %d, and the vocabulary has 10 words",
                     e.ids[places[i]], (int)places[i]);
            refused_for(&e, sentence);
            e.ids[places[i]] = kept;
        }
    drop_example(&e);
}

static void sentences_that_fall_or_pass_the_tokens_are_refused(void **state) {
    static const uint64_t wrong[] = {0, 5, TOTAL + 1, UINT64_MAX};
    struct example e;
    char sentence[96];
    make_example(&e);
    uint64_t in_piece = (PIECE - (TOTAL + TOTAL % 2) * 4 % PIECE) / 8; /* the first start in the next piece */
    const uint64_t places[] = {1, in_piece - 1, in_piece, in_piece + 1, e.sentences - 1};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++) {
            uint64_t kept = e.starts[places[i]], n = places[i];
            if (n == 1 && wrong[j] == 5) continue; /* this value is between its neighbours, so it is valid */
            e.starts[n] = wrong[j];
            n -= e.starts[n - 1] >= e.starts[n];
            snprintf(sentence, sizeof sentence, "changed': sentence %d goes from token", (int)n);
            refused_for(&e, sentence);
            e.starts[places[i]] = kept;
        }
    e.starts[0] = 1;
    refused_for(&e, "changed': sentence 0 goes from token 1 to 3");
    e.starts[0] = 0;
    e.starts[e.sentences] = TOTAL + 1;
    refused_for(&e, "changed': its sentences end at token 450002, and it has 450001");
    e.starts[e.sentences] = TOTAL;
    e.starts[1] = e.starts[2];
    refused_for(&e, "changed': sentence 1 goes from token 6 to 6");
    drop_example(&e);
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sentences_are_written_as_given),
        TEST(a_header_that_promises_too_much_is_not_believed),
        TEST(what_is_written_is_what_the_format_says),
        TEST(ids_without_a_row_are_refused),
        TEST(sentences_that_fall_or_pass_the_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
