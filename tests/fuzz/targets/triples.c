/* triples: takes any bytes as triples, and encodes them.
 *
 *   byte 0     order of ids, reciprocals
 *   byte 1     limits on counts, header
 *   byte 2     size of a block
 *   byte 3     number of threads, separator
 *   the rest   the triples
 *
 * The stream must be the same for any size of a block and number of threads. Its triples must be sorted, heads and tails must be
 * rows of entities, and relations rows of relations.
 */
#include "base/memory.h"
#include "corpus/encode.h"
#include "corpus/fields.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/plain_options.h"

enum { THREADS = 2, BYTES_MOST = 4096 };
static struct pool *pools[THREADS];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    for (unsigned i = 0; i < THREADS; i++)
        if (!(pools[i] = pool_open(i + 1))) return -1;
    return fuzz_begin();
}

struct made {
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream;
    int result;
};

static void make(struct made *m, char *path, char *ids, const struct corpus_options *options, uint64_t block, unsigned threads) {
    int reused;
    *m = (struct made){.corpus = scratch_corpus(path, block), .result = -1};
    file_remove(ids);
    if (m->corpus && !corpus_stream(m->corpus) && !vocab_build(&m->vocab, m->corpus, options, pools[threads]))
        m->result = encode_open(&m->stream, ids, m->corpus, &m->vocab, options, pools[threads], &reused);
    if (!m->corpus || !corpus_stream(m->corpus)) fuzz_accepted(m->result);
}

static void release(struct made *m) {
    idstream_close(&m->stream);
    vocab_release(&m->vocab);
    corpus_close(m->corpus);
}

static void check_triples(const struct made *m, int reciprocal) {
    uint64_t entities = m->vocab.size - m->vocab.lists, relations = m->vocab.lists / (reciprocal ? 2 : 1);
    HOLDS(m->stream.triples && m->stream.tokens == TRIPLE_TERMS * m->stream.triples, "no triples");
    HOLDS(!reciprocal || vocab_is_reciprocal(&m->vocab), "relations have no second rows");
    for (uint64_t i = 0; i < m->stream.triples; i++) {
        const uint32_t *ids = m->stream.ids + TRIPLE_TERMS * i, *before = ids - (i ? TRIPLE_TERMS : 0);
        HOLDS(ids[TRIPLE_HEAD] < entities && ids[TRIPLE_TAIL] < entities, "a head or a tail is no entity");
        HOLDS(ids[TRIPLE_RELATION] >= entities && ids[TRIPLE_RELATION] - entities < relations, "a relation is none");
        int rises = 0;
        for (int term = 0; !rises && term < TRIPLE_TERMS; term++) {
            HOLDS(ids[term] >= before[term], "triple %llu is before the one in front of it", (unsigned long long)i);
            rises = ids[term] > before[term];
        }
        HOLDS(rises || !i, "triple %llu occurs twice", (unsigned long long)i);
    }
}

/* Returns 1 if a number would make too many rows for a test; numbers up to 4,294,967,293 may be rows. */
static int has_giant_row(const uint8_t *bytes, uint64_t length) {
    for (uint64_t i = 0, run = 0; i < length; i++) {
        run = bytes[i] >= '0' && bytes[i] <= '9' ? run + 1 : 0;
        if (run > 5) return 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct fuzz_input input = {bytes, length};
    unsigned what = fuzz_byte(&input), bounds = fuzz_byte(&input);
    uint64_t block = fuzz_byte(&input);
    unsigned threads_byte = fuzz_byte(&input), threads = threads_byte % THREADS;
    struct corpus_options options = plain_options(FORMAT_TRIPLES);
    options.list_rows = 1;
    options.reciprocal = what / 4 % 2;
    options.order = what % 3;
    options.min_count = 1 + bounds % 3;
    options.max_vocab = bounds / 4 % 4 * 2;
    options.look.header = (enum corpus_header)(bounds / 16 % 3);
    options.look.separator = (enum corpus_separator)(threads_byte / THREADS % 7);
    if (input.left > BYTES_MOST || (options.order == ORDER_GIVEN && has_giant_row(input.at, input.left))) return 0;
    char *path = scratch_file("corpus", input.at, input.left), *ids = in_scratch("ids"), *other_ids = in_scratch("other");
    struct made one, other;
    make(&one, path, ids, &options, 1 + block, threads);
    make(&other, path, other_ids, &options, 0, 0);
    HOLDS(!one.result == !other.result, "blocks of %llu bytes: %d, of the usual size: %d", (unsigned long long)block + 1, one.result,
          other.result);
    if (!one.result) {
        HOLDS(fuzz_same_files(ids, other_ids), "the size of a block changes the stream");
        check_triples(&one, options.reciprocal);
    }
    release(&one);
    release(&other);
    return 0;
}
