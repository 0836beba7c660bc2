/* corpus: takes any bytes as a corpus of each format, and counts and encodes it.
 *
 *   byte 0     format and order of ids
 *   byte 1     limits on counts and lengths
 *   byte 2     size of a block
 *   byte 3     number of threads, and the lowest rating
 *   the rest   the corpus
 *
 * The result must be that of a plain reading of the same bytes, for any size of a block and number of threads.
 */
#include "base/memory.h"
#include "corpus/encode.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/plain_options.h"

enum { THREADS = 2, TOKENS_MOST = 4096 };
static struct pool *pools[THREADS];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    for (unsigned i = 0; i < THREADS; i++)
        if (!(pools[i] = pool_open(i + 1))) return -1;
    return fuzz_begin();
}

/* ---- counted and encoded ---- */

struct encoded_case {
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream;
    int result;
};

static void encode(struct encoded_case *e, char *path, char *ids, const struct corpus_options *options, uint64_t block,
                   unsigned threads) {
    int reused;
    *e = (struct encoded_case){.corpus = scratch_corpus(path, block), .result = -1};
    file_remove(ids);
    if (e->corpus && !vocab_build(&e->vocab, e->corpus, options, pools[threads]))
        e->result = encode_open(&e->stream, ids, e->corpus, &e->vocab, options, pools[threads], &reused);
    fuzz_accepted(e->result);
}

static void release(struct encoded_case *e) {
    idstream_close(&e->stream);
    vocab_release(&e->vocab);
    corpus_close(e->corpus);
}

static void check_bounds(const struct encoded_case *e) {
    const struct idstream *s = &e->stream;
    HOLDS(s->tokens && s->sentences && s->starts[0] == 0 && s->starts[s->sentences] == s->tokens, "the ends are wrong");
    for (uint64_t i = 0; i < s->sentences; i++) HOLDS(s->starts[i] < s->starts[i + 1], "a sentence is empty");
    for (uint64_t i = 0; i < s->tokens; i++) HOLDS(s->ids[i] < e->vocab.size, "an id is past the rows");
}

/* ---- a plain reading of text, lists and adjacency ---- */

struct plain {
    uint32_t ids[TOKENS_MOST];
    uint64_t starts[TOKENS_MOST + 1], tokens, sentences, words; /* words: number of distinct words, including those that are left
                                                                 * out */
};

static int is_white(uint8_t byte) {
    return byte == ' ' || (byte >= 9 && byte <= 13);
}

static void end_sentence(struct plain *plain) {
    if (plain->tokens > plain->starts[plain->sentences]) plain->starts[++plain->sentences] = plain->tokens;
}

/* Removes the ids of the sentence that has not ended. */
static void drop_sentence(struct plain *plain) {
    plain->tokens = plain->starts[plain->sentences];
}

static void take_word(struct plain *plain, const struct corpus_options *options, uint64_t index, int64_t id,
                      int *lost) {
    if (options->format == FORMAT_LISTS && index == 0) return;
    plain->words++;
    if (options->format == FORMAT_ADJACENCY && index == 0) *lost = id < 0;
    if (id < 0) return;
    plain->ids[plain->tokens++] = (uint32_t)id;
    if (options->format == FORMAT_TEXT && plain->tokens - plain->starts[plain->sentences] == options->max_sentence)
        end_sentence(plain);
}

static void end_line(struct plain *plain, const struct corpus_options *options, int *lost) {
    uint64_t kept = plain->tokens - plain->starts[plain->sentences];
    if (options->format == FORMAT_ADJACENCY && (*lost || kept < 2)) drop_sentence(plain);
    end_sentence(plain);
    *lost = 0;
}

/* Reads the corpus in the simplest way. There is no byte order mark. LF ends a line; without any LF in the file, CR does. */
static void read_plainly(struct plain *plain, const struct corpus_options *options, const struct vocab *vocab,
                         const uint8_t *bytes, uint64_t length) {
    uint64_t index = 0, first = length > 2 && !memcmp(bytes, "\xEF\xBB\xBF", 3) ? 3 : 0;
    uint8_t ends = memchr(bytes, '\n', length) ? '\n' : '\r';
    int lost = 0;
    *plain = (struct plain){.tokens = 0};
    for (uint64_t i = first; i < length;) {
        if (bytes[i] == ends) {
            end_line(plain, options, &lost);
            index = 0;
        }
        if (is_white(bytes[i])) {
            i++;
            continue;
        }
        first = i;
        while (i < length && !is_white(bytes[i])) i++;
        uint64_t number;
        const char *word = (const char *)bytes + first;
        int64_t id = vocab_find(vocab, word, i - first);
        if (options->order == ORDER_GIVEN) { /* "07" is row 7, even if the vocabulary writes that number differently */
            id = vocab_given_id(word, i - first, &number) || number >= vocab->size ? -1 : (int64_t)number;
            if (id >= 0 && !vocab_count(vocab, id)) id = -1;
        }
        take_word(plain, options, index++, id, &lost);
    }
    end_line(plain, options, &lost);
}

static void check_plainly(const struct encoded_case *e, const struct corpus_options *options, const uint8_t *bytes,
                          uint64_t length) {
    static struct plain plain;
    const struct idstream *s = &e->stream;
    read_plainly(&plain, options, &e->vocab, bytes, length);
    HOLDS(plain.words == e->vocab.tokens, "%llu words, counted were %llu", (unsigned long long)plain.words,
          (unsigned long long)e->vocab.tokens);
    HOLDS(plain.tokens == s->tokens && plain.sentences == s->sentences,
          "%llu tokens in %llu sentences, encoded %llu in %llu", (unsigned long long)plain.tokens,
          (unsigned long long)plain.sentences, (unsigned long long)s->tokens, (unsigned long long)s->sentences);
    HOLDS(!memcmp(plain.ids, s->ids, s->tokens * sizeof *s->ids), "other ids");
    HOLDS(!memcmp(plain.starts, s->starts, (s->sentences + 1) * sizeof *s->starts), "other sentences");
}

/* ---- the whole ---- */

static struct corpus_options read_options(struct fuzz_input *input) {
    unsigned what = fuzz_byte(input), bounds = fuzz_byte(input);
    static const enum corpus_format formats[] = {FORMAT_TEXT, FORMAT_LISTS, FORMAT_ADJACENCY, FORMAT_PAIRS};
    struct corpus_options options = plain_options(what >= 128 ? FORMAT_DOCUMENTS : formats[what % 4]);
    options.order = what / 4 % 3;
    options.min_count = 1 + bounds % 3;
    options.max_vocab = bounds / 4 % 4 * 2;
    options.max_sentence = bounds / 16 % 4 ? bounds / 16 % 4 : 1000;
    return options;
}

/* Returns 1 if the file begins like a compressed file or an encoded corpus, which the plain reading does not know. */
static int is_special(const uint8_t *bytes, uint64_t length) {
    return length > 3 && (!memcmp(bytes, "\x1F\x8B\x08", 3) || !memcmp(bytes, "\x28\xB5\x2F\xFD", 4) ||
                          !memcmp(bytes + 1, "\x2A\x4D\x18", 3) || !memcmp(bytes, "SPTX", 4) ||
                          !memcmp(bytes,
                                  "\xFD"
                                  "7zX",
                                  4) ||
                          !memcmp(bytes, "BZh", 3));
}

/* Returns 1 if a number would make too many rows for a test; numbers up to 4,294,967,293 may be rows. */
static int has_giant_id(const uint8_t *bytes, uint64_t length) {
    for (uint64_t i = 0, run = 0; i < length; i++) {
        run = bytes[i] >= '0' && bytes[i] <= '9' ? run + 1 : 0;
        if (run > 5) return 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct fuzz_input input = {bytes, length};
    struct corpus_options options = read_options(&input);
    uint64_t block = fuzz_byte(&input);
    unsigned rest = fuzz_byte(&input);
    if (options.format == FORMAT_PAIRS && rest & 4) options.min_rating = rest >> 4;
    if (input.left / 2 >= TOKENS_MOST || is_special(input.at, input.left)) return 0;
    if (options.order == ORDER_GIVEN && has_giant_id(input.at, input.left)) return 0;
    char *path = scratch_file("corpus", input.at, input.left), *ids = in_scratch("ids"),
         *other_ids = in_scratch("other");
    struct encoded_case one, other;
    encode(&one, path, ids, &options, 1 + block, rest & 1);
    encode(&other, path, other_ids, &options, 0, 0);
    HOLDS(!one.result == !other.result, "blocks of %llu bytes: %d, of the usual size: %d",
          (unsigned long long)block + 1, one.result, other.result);
    if (!one.result) {
        check_bounds(&one);
        HOLDS(fuzz_same_files(ids, other_ids), "the size of a block changes the stream");
        HOLDS(vocab_fingerprint(&one.vocab) == vocab_fingerprint(&other.vocab),
              "the size of a block changes the vocabulary");
        if (options.format != FORMAT_PAIRS && options.format != FORMAT_DOCUMENTS) check_plainly(&one, &options, input.at, input.left);
    }
    release(&one);
    release(&other);
    return 0;
}
