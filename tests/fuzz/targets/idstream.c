/* idstream: takes any bytes as an encoded corpus. A file that is accepted must be safe to train on.
 *
 *   byte 0     rows of the vocabulary, and which of sizes, fingerprint and checksum are made right
 *   byte 1     how examples are made of the stream; version of the format
 *   then       the number of sentences (one byte), or the numbers that are not made right, eight bytes each
 *   the rest   the file after its header: ids and starts
 */
#include "base/memory.h"
#include "corpus/idstream.h"
#include "tests/fuzz/fuzz.h"
#include "train/examples.h"

#include <xxhash.h>

enum { ROWS_MOST = 8, FILE_MOST = 4096 };
static struct pool *pool;
static struct vocab vocabs[ROWS_MOST]; /* vocabs[i] has i + 1 words */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    char text[256] = "";
    pool = pool_open(1);
    if (!pool || fuzz_begin()) return -1;
    for (int i = 0; i < ROWS_MOST; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "w%d\t%d\n", i, ROWS_MOST - i);
        if (vocab_read(&vocabs[i], scratch_text("words", text))) return -1;
    }
    return 0;
}

/* The numbers of a header. Each 0 is replaced by the right number. */
struct numbers {
    uint64_t fingerprint, tokens, sentences, sum;
};

static struct numbers read_numbers(struct fuzz_input *input, unsigned how) {
    struct numbers numbers = {.sentences = how & 1 ? fuzz_number(input) : fuzz_byte(input)};
    if (how & 1) numbers.tokens = fuzz_number(input);
    if (how & 2) numbers.fingerprint = fuzz_number(input);
    if (how & 4) numbers.sum = fuzz_number(input);
    return numbers;
}

/* Version 2 hashes the hashes of pieces. A file of a few bytes has one piece. */
static uint64_t checksum(unsigned version, const uint8_t *bytes, uint64_t length) {
    uint64_t sum = XXH3_64bits(bytes, length);
    return version == 1 ? sum : XXH3_64bits(&sum, sizeof sum);
}

/* Writes the header of a file, after which `length` bytes follow. */
static void put_header(uint8_t *file, uint64_t length, unsigned how, unsigned version, struct numbers numbers,
                       const struct vocab *vocab) {
    uint64_t words = length / 4, of_starts = 2 * (numbers.sentences + 1);
    if (!(how & 1)) numbers.tokens = words > of_starts ? words - of_starts : 0;
    if (!(how & 2)) numbers.fingerprint = vocab_fingerprint(vocab);
    if (!(how & 4)) numbers.sum = checksum(version, file + IDSTREAM_HEADER, length);
    memset(file, 0, IDSTREAM_HEADER);
    memcpy(file, CORPUS_STREAM_MAGIC, 8);
    file[8] = (uint8_t)version;
    memcpy(file + 16, &numbers, sizeof numbers);
}

static void check_bounds(const struct idstream *s, const struct vocab *vocab) {
    HOLDS(s->tokens && s->starts[0] == 0 && s->starts[s->sentences] == s->tokens, "the ends are wrong");
    for (uint64_t i = 0; i < s->sentences; i++)
        HOLDS(s->starts[i] < s->starts[i + 1] && s->starts[i + 1] <= s->tokens,
              "a sentence is empty or passes the end");
    for (uint64_t i = 0; i < s->tokens; i++) HOLDS(s->ids[i] < vocab->size, "an id is past the rows");
}

/* Writes the same sentences again. The new stream must equal the old one. */
static void write_and_read(const struct idstream *s, const struct vocab *vocab) {
    struct idstream_writer writer;
    struct idstream again;
    char *path = in_scratch("again");
    HOLDS(!idstream_writer_open(&writer, path), "it cannot be written");
    for (uint64_t i = 0; i < s->sentences; i++)
        HOLDS(!idstream_append(&writer, s->ids + s->starts[i], s->starts[i + 1] - s->starts[i]),
              "it cannot be written");
    HOLDS(!idstream_writer_commit(&writer, vocab_fingerprint(vocab)), "it cannot be written");
    HOLDS(idstream_reuse(&again, path, vocab_fingerprint(vocab), vocab->size, pool), "what was written cannot be read");
    HOLDS(again.tokens == s->tokens && !memcmp(again.ids, s->ids, s->tokens * sizeof *s->ids), "other ids");
    idstream_close(&again);
}

/* Makes all examples of the stream, which reads all of it. */
static void make_examples(const struct idstream *s, const struct vocab *vocab, unsigned how) {
    struct config config;
    struct examples examples = {0};
    static const char *const formats[] = {"text", "lists", "adjacency"};
    HOLDS(!config_init(&config) && !config_set(&config, "corpus", "format", formats[how % 3], "here") &&
              (how % 3 == 0 || !config_set(&config, "examples", "positives", how & 8 ? "0" : "2", "here")) && !config_resolve(&config),
          "no configuration");
    if (fuzz_accepted(examples_init(&examples, &config, vocab, s)))
        examples_capacity(&examples, examples_batch(&examples, 1 + how / 16 % 8), 1);
    examples_release(&examples);
    config_release(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static uint8_t file[IDSTREAM_HEADER + FILE_MOST];
    struct fuzz_input input = {bytes, length};
    unsigned how = fuzz_byte(&input), examples = fuzz_byte(&input);
    const struct vocab *vocab = &vocabs[how % ROWS_MOST];
    struct idstream stream;
    struct numbers numbers = read_numbers(&input, how / ROWS_MOST);
    uint64_t used = input.left < FILE_MOST ? input.left : FILE_MOST;
    if (used) memcpy(file + IDSTREAM_HEADER, input.at, used);
    put_header(file, used, how / ROWS_MOST, 1 + (examples >> 7), numbers, vocab);
    char *path = scratch_file("given.ids", file, IDSTREAM_HEADER + used);
    if (fuzz_accepted(idstream_open(&stream, path, vocab_fingerprint(vocab), vocab->size, pool))) {
        check_bounds(&stream, vocab);
        write_and_read(&stream, vocab);
        make_examples(&stream, vocab, examples);
        idstream_close(&stream);
    }
    return 0;
}
