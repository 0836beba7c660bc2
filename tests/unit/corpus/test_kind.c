#include "tests/testing.h"

#include "corpus/first_bytes.h"
#include "tests/unit/scratch.h"

#include "tests/unit/sentence.h"

static char bytes[KIND_BYTES];

static int is_text(uint64_t length) {
    int result = kind_check("given", bytes, length, 0);
    if (result) print_error("%s\n", report_sentence());
    report_clear();
    return !result;
}

/* Fills the buffer with repetitions of `piece`, as a corpus could begin. */
static void repeat(const char *piece, uint64_t length) {
    for (uint64_t i = 0; i < sizeof bytes; i++) bytes[i] = piece[i % length];
}

static void formats_are_told_by_their_first_bytes(void **state) {
#define BYTES(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        uint64_t length;
        const char *sentence;
    } files[] = {
        {BYTES("PK\x03\x04\x14\0\0\0"),
         "'given' is a zip archive (as documents, spreadsheets and .npz are) and no text: unpack it"},
        {BYTES("PAR1\x15\x04\x15\x10"), "is a Parquet file and no text: write it as lines"},
        {BYTES("\x93NUMPY\1\0v\0{'descr'"), "is a NumPy array"},
        {BYTES("\x7F"
               "ELF\2\1\1\0"),
         "is a program or a library"},
        {BYTES("MZ\x90\0\3\0\0\0"), "is a program or a library"},
        {BYTES("%PDF-1.7\n%\xE2\xE3\xCF\xD3"), "is a PDF document"},
        {BYTES("\x89PNG\r\n\x1A\n"), "is a picture"},
        {BYTES("SQLite format 3\0"), "is an SQLite database"},
        {BYTES("\x80\x04\x95\x10\0\0\0"), "is a Python pickle"},
        {BYTES("7z\xBC\xAF\x27\x1C\0\4"), "is a 7z archive"},
        {BYTES("\x04\x22\x4D\x18"
               "d@"),
         "is an lz4 file"},
        {BYTES("\xFD"
               "7zXZ\0\0\4"),
         "is an xz file"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(kind_check("given", files[i].bytes, files[i].length, 0), -1);
        sentence_holds(files[i].sentence);
        assert_int_equal(kind_check_format("given", files[i].bytes, files[i].length, 1), -1);
        sentence_holds("'given' holds a");
    }
    memset(bytes, 'a', sizeof bytes);
    memcpy(bytes + 257, "ustar", 5);
    assert_int_equal(kind_check("given", bytes, 512, 0), -1);
    sentence_holds("is a tar archive");
    assert_true(is_text(261)); /* a tar archive is recognized by its bytes from 257 on, so 261 bytes are too few */
}

/* The first words of a text may happen to be the magic number of a file format. */
static void text_may_begin_as_a_format_does(void **state) {
    static const char *const texts[] = {"PAR1 for the course\n",
                                        "ORC and goblin\n",
                                        "MZ was a band\n",
                                        "GIF89 or PNG\n",
                                        "RIFF raff\n",
                                        "ID3 tags are not words\n",
                                        "BZh91 is a name",
                                        "ARROW1\n",
                                        "SPTX-IDS of a corpus file\n",
                                        "PK is the end of packing\n",
                                        "Rar! said he\n",
                                        ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        strcpy(bytes, texts[i]);
        assert_true(is_text(strlen(texts[i])));
    }
}

static void text_of_any_encoding_and_with_odd_words_is_text(void **state) {
    static const struct {
        const char *bytes;
        uint64_t length;
    } texts[] = {
        {BYTES("the quick brown fox\n")},
        {BYTES("\xD1\x81\xD0\xBB\xD0\xBE\xD0\xB2\xD0\xBE \xE4\xB8\xAD\xE6\x96\x87\n")}, /* UTF-8 */
        {BYTES("F\xFC\xDF"
               "e und \xD6l, \xE7"
               "a va tr\xE8s bien\r\n")},                        /* Latin 1 */
        {BYTES("\x93quoted\x94 \x80 5 \x96 \x85 \x8A\n")},       /* Windows 1252 */
        {BYTES("\x93\xFA\x96{\x8C\xEA \x83J\x83^\x83J\x83i\n")}, /* Shift JIS */
        {BYTES("\x1B$B4A;z\x1B(B kanji\n")},                     /* ISO 2022 */
        {BYTES("\xC4\xE3\xBA\xC3 \x81\x30\x81\x30\n")},          /* GB 18030 */
        {BYTES("nul\0in a \1 \xFF\xFE word\n")},
        {BYTES("list\1item\2item more words here\n")},
        {BYTES("\x1B[31mred\x1B[0m bell\7 \x7F\n")},
        {BYTES("a,b\tc\vd\fe\n")},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        repeat(texts[i].bytes, texts[i].length);
        assert_true(is_text(texts[i].length));
        assert_true(is_text(1000));
        assert_true(is_text(sizeof bytes));
    }
    memset(bytes, 0, sizeof bytes);
    assert_true(is_text(0));
    assert_true(is_text(1));
    repeat("plenty of words ", 16);
    for (int i = 0; i < 256; i++) bytes[1000 + i] = (char)i; /* contains each of the 256 byte values once, in a long text */
    assert_true(is_text(sizeof bytes));
}

static void what_has_no_text_in_it_is_told(void **state) {
    for (uint64_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)scratch_random(256);
    bytes[0] = 'x';
    assert_int_equal(kind_check("given", bytes, sizeof bytes, 0), -1);
    sentence_holds("of its first 65536 bytes are control characters; wanted lines of text, lists or pairs");
    assert_int_equal(kind_check("given", bytes, 1000, 1), -1);
    sentence_holds("'given' holds no text: ");
    for (uint64_t i = 0; i < sizeof bytes / 4; i++) memcpy(bytes + 4 * i, &(uint32_t){(uint32_t)i % 10}, 4);
    assert_int_equal(kind_check("given", bytes, 400, 0), -1); /* binary numbers */
    sentence_holds("no text: 3");
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(kind_check("given", bytes, sizeof bytes, 0), -1);
    sentence_holds("no text: 65536 of its first 65536 bytes");
}

static void wide_text_is_told(void **state) {
    static const char words[] = "some words in a line\n";
    for (int big = 0; big < 2; big++)
        for (int mark = 0; mark < 2; mark++) {
            uint64_t n = 0;
            if (mark) memcpy(bytes, big ? "\xFE\xFF" : "\xFF\xFE", 2), n = 2;
            for (int i = 0; n < 2000; i++) {
                bytes[n + !big] = 0;
                bytes[n + big] = words[i % (sizeof words - 1)];
                n += 2;
            }
            assert_int_equal(kind_check("given", bytes, mark ? 30 : 2000, 0), -1);
            sentence_holds("is text in UTF-16: write it in UTF-8 first (iconv -f UTF-16 -t UTF-8)");
        }
    repeat("-N\0N\x0A\0", 6); /* the bytes are seldom zero, and no control character occurs except line ends */
    memcpy(bytes, "\xFF\xFE", 2);
    assert_int_equal(kind_check("given", bytes, 2000, 0), -1);
    sentence_holds("is text in UTF-16: write");
    memcpy(bytes + 2, "\0\0", 2);
    assert_int_equal(kind_check("given", bytes, 2000, 0), -1);
    sentence_holds("is text in UTF-32: write it in UTF-8 first (iconv -f UTF-32 -t UTF-8)");
    repeat("\xFF\xFE is a word\n", 13);
    assert_true(is_text(2000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told_by_their_first_bytes), cmocka_unit_test(text_may_begin_as_a_format_does),
        cmocka_unit_test(text_of_any_encoding_and_with_odd_words_is_text),
        cmocka_unit_test(what_has_no_text_in_it_is_told), cmocka_unit_test(wide_text_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
