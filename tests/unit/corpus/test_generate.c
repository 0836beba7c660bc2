#include "tests/testing.h"
#include <signal.h>
#include <sys/resource.h>

#include "corpus/encode.h"
#include "corpus/generate.h"
#include "tests/unit/scratch.h"

#include <zstd.h>

#include "tests/unit/sentence.h"

static struct generate_options options(enum generate_kind kind, uint64_t rows, uint64_t lists, uint32_t seed) {
    struct generate_options wanted = {.kind = kind, .rows = rows, .lists = lists, .seed = seed};
    if (kind == GENERATE_TRIPLES) wanted.relations = 20, wanted.groups = 32, wanted.held_out = 100, wanted.noise = .1;
    return wanted;
}

static struct planted_best best; /* of the last graph of triples */

static char *generated(const char *name, struct generate_options wanted) {
    char *path = in_scratch(name);
    if (generate_write(&wanted, path, &best)) print_error("%s\n", report_sentence());
    assert_int_equal(report_exit_code(), 0);
    return path;
}

static int same_files(const char *a, const char *b) {
    uint64_t n, m;
    char *x = file_read(a, &n), *y = file_read(b, &m);
    int same = n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

static void the_same_seed_makes_the_same_bytes(void **state) {
    for (int kind = 0; kind < GENERATE_KINDS; kind++) {
        char *a = generated("a", options(kind, 9000, 300, 1)), *b = generated("b", options(kind, 9000, 300, 1));
        char *c = generated("c", options(kind, 9000, 300, 2));
        assert_true(same_files(a, b));
        if (kind != GENERATE_GRAPH) assert_true(same_files(in_scratch("a.groups.tsv"), in_scratch("b.groups.tsv")));
        assert_false(same_files(a, c));
    }
    /* If a corpus has more lines, its first lines are the same. */
    uint64_t n, m;
    char *few = file_read(generated("a", options(GENERATE_BOOKS, 9000, 100, 1)), &n);
    char *many = file_read(generated("b", options(GENERATE_BOOKS, 9000, 300, 1)), &m);
    assert_true(m > n);
    assert_memory_equal(few, many, n);
    free(few);
    free(many);
}

/* Lines of a corpus as numbers: [0] is the name or target, and the tokens follow. */
struct lines {
    uint32_t number[40000][100];
    uint64_t count[40000], size;
};
static struct lines *read_lines(const char *path, const char *first, char letter) {
    struct lines *lines = calloc(1, sizeof *lines);
    char *text = file_read(path, NULL), *at = text;
    assert_non_null(lines);
    while (*at) {
        uint64_t n = 0, length = strlen(first);
        if (*first) {
            assert_memory_equal(at, first, length);
            lines->number[lines->size][n++] = (uint32_t)strtoul(at + length, &at, 10);
        }
        while (*at != '\n') {
            if (*at == ' ') at++;
            assert_int_equal(*at, letter);
            lines->number[lines->size][n++] = (uint32_t)strtoul(at + 1, &at, 10);
        }
        at++;
        lines->count[lines->size++] = n;
    }
    free(text);
    return lines;
}

/* Reads lines of numbers that are separated by one blank. */
static struct lines *read_lines_of_numbers(const char *path) {
    struct lines *lines = calloc(1, sizeof *lines);
    char *text = file_read(path, NULL), *at = text;
    assert_non_null(lines);
    for (; *at; at++) {
        uint64_t n = 0;
        while (*at != '\n') lines->number[lines->size][n++] = (uint32_t)strtoul(at, &at, 10);
        lines->count[lines->size++] = n;
    }
    free(text);
    return lines;
}

static void books_have_different_items_in_few_genres_and_series(void **state) {
    struct lines *lines = read_lines(generated("books", options(GENERATE_BOOKS, 100000, 20000, 7)), "user", 'b');
    uint64_t tokens = 0, on = 0, in_three = 0, shortest = 100, longest = 0;
    assert_int_equal(lines->size, 20000);
    for (uint64_t l = 0; l < lines->size; l++) {
        const uint32_t *book = lines->number[l] + 1;
        uint64_t n = lines->count[l] - 1, genres[100] = {0}, most[3] = {0};
        assert_int_equal(lines->number[l][0], l);
        if (n < shortest) shortest = n;
        if (n > longest) longest = n;
        for (uint64_t i = 0; i < n; i++) {
            assert_true(book[i] < 100000);
            for (uint64_t j = 0; j < i; j++) assert_int_not_equal(book[i], book[j]);
            on += i && book[i] / 8 == book[i - 1] / 8;
            genres[book[i] / 4096]++;
        }
        for (int g = 0; g < 100; g++)
            for (int k = 0; k < 3; k++)
                if (genres[g] > most[k]) {
                    uint64_t kept = most[k];
                    most[k] = genres[g];
                    genres[g] = kept;
                }
        in_three += most[0] + most[1] + most[2];
        tokens += n;
    }
    assert_int_equal(shortest, 5);
    assert_int_equal(longest, 79);
    assert_true((double)tokens / 20000 > 26 && (double)tokens / 20000 < 28); /* expected mean length: (80 - 5) / ln 16 less a
                                                                              * half */
    assert_true((double)on / (double)tokens > 0.25 && (double)on / (double)tokens < 0.40);
    assert_true((double)in_three / (double)tokens > 0.80);
    free(lines);
}

static void papers_cite_their_field_nine_times_in_ten(void **state) {
    struct lines *lines = read_lines(generated("papers", options(GENERATE_PAPERS, 30000, 40000, 7)), "p", 'p');
    uint64_t tokens = 0, inside = 0;
    unsigned char *cited = calloc(30000, 1);
    for (uint64_t l = 0; l < lines->size; l++) {
        uint32_t target = lines->number[l][0];
        assert_int_equal(cited[target]++, l / 30000); /* no paper is cited twice before every paper is cited once */
        for (uint64_t i = 1; i < lines->count[l]; i++) {
            assert_int_not_equal(lines->number[l][i], target);
            for (uint64_t j = 1; j < i; j++) assert_int_not_equal(lines->number[l][i], lines->number[l][j]);
            inside += lines->number[l][i] / 2048 == target / 2048;
            tokens++;
        }
        assert_in_range(lines->count[l] - 1, 4, 43);
    }
    /* the share is 0.9, plus a fifteenth of the rest. A citation that already exists is drawn again, slightly more often in another field */
    assert_true(fabs((double)inside / (double)tokens - 0.9) < 0.012);
    free(cited);
    free(lines);
}

static void sentences_have_one_topic(void **state) {
    struct lines *lines = read_lines(generated("words", options(GENERATE_WORDS, 20000, 20000, 7)), "", 'w');
    uint64_t of_topic = 0;
    for (uint64_t l = 0; l < lines->size; l++) {
        uint64_t topics[40] = {0}, most = 0;
        assert_int_equal(lines->count[l], 20);
        for (uint64_t i = 0; i < 20; i++)
            if (++topics[lines->number[l][i] / 512] > most) most = topics[lines->number[l][i] / 512];
        of_topic += most;
    }
    assert_true((double)of_topic / 400000 > 0.5 && (double)of_topic / 400000 < 0.56);
    free(lines);
}

/* Every draw obeys P(k) = ln(1 + 1/(k+1)) / ln(rows + 1), since all rows are in one group. */
static void popularity_is_zipfs(void **state) {
    enum { ROWS = 400, LINES = 20000 };
    struct lines *lines = read_lines(generated("words", options(GENERATE_WORDS, ROWS, LINES, 3)), "", 'w');
    double counts[ROWS] = {0}, chi = 0;
    for (uint64_t l = 0; l < lines->size; l++)
        for (uint64_t i = 0; i < lines->count[l]; i++) counts[lines->number[l][i]]++;
    for (int k = 0; k < ROWS; k++) {
        double expected = 20.0 * LINES * log1p(1.0 / (k + 1)) / log(ROWS + 1);
        chi += (counts[k] - expected) * (counts[k] - expected) / expected;
    }
    /* The mean of 399 degrees of freedom is 399, and their standard deviation 28.2: one seed in 100,000 is further away
     * than 4.5 of them. */
    assert_true(chi > 399 - 4.5 * 28.2 && chi < 399 + 4.5 * 28.2);
    free(lines);
}

/* A row's rank occurs in several groups, of which the last is smaller. The expected count of a rank is the sum over both sizes
 * of group. */
static void popularity_over_groups_is_as_stated(void **state) {
    enum { ROWS = 1300, SIZE = 512, GROUPS = 3, LINES = 20000 };
    struct lines *lines = read_lines(generated("words", options(GENERATE_WORDS, ROWS, LINES, 5)), "", 'w');
    static double counts[ROWS];
    double chi = 0;
    for (uint64_t l = 0; l < lines->size; l++)
        for (uint64_t i = 0; i < lines->count[l]; i++) counts[lines->number[l][i]]++;
    int rank = 0;
    for (int member = 0; member < SIZE; member++)
        for (int group = 0; group < GROUPS; group++) {
            int row = group * SIZE + member, size = group == 2 ? ROWS - 2 * SIZE : SIZE;
            if (member >= size) continue;
            double anywhere = log1p(1.0 / (rank++ + 1)) / log(ROWS + 1),
                   inside = log1p(1.0 / (member + 1)) / log(size + 1) / GROUPS;
            double expected = 20.0 * LINES * (0.5 * anywhere + 0.5 * inside);
            chi += (counts[row] - expected) * (counts[row] - expected) / expected;
        }
    assert_int_equal(rank, ROWS);
    /* Words of one sentence share a topic, so counts vary more than independent draws would. Twice the mean is far
     * below what a wrong law gives (thousands). */
    assert_true(chi < 2 * ROWS);
    free(lines);
}

static void groups_say_what_was_planted(void **state) {
    static const char *const wanted[] = {"b0\t0\t0\nb1\t0\t0\n", "p0\t0\np1\t0\n", "w0\t0\nw1\t0\n"};
    static const char *const last[] = {"b8999\t1124\t2\n", "p8999\t4\n", "w8999\t17\n"};
    for (int kind = 0; kind < 3; kind++) {
        uint64_t length;
        generated("c", options(kind, 9000, 10, 1));
        char *text = file_read(in_scratch("c.groups.tsv"), &length);
        assert_memory_equal(text, wanted[kind], strlen(wanted[kind]));
        assert_string_equal(text + length - strlen(last[kind]), last[kind]);
        free(text);
    }
}

/* The two bits of an edge at each level choose one of four quadrants, with the probabilities of R-MAT. If the number of nodes is
 * no power of two, an edge to a node that does not exist is drawn again. */
static void graphs_are_drawn_as_r_mat(void **state) {
    enum { BITS = 10, LINES = 40000 };
    static const double wanted[4] = {37356, 49807 - 37356, 62259 - 49807,
                                     65536 - 62259}; /* shares of the quadrants: neither bit, the second, the first, both */
    struct lines *lines = read_lines_of_numbers(generated("graph", options(GENERATE_GRAPH, 1 << BITS, LINES, 3)));
    double counts[4] = {0}, chi = 0;
    assert_int_equal(lines->size, LINES);
    assert_false(file_exists(in_scratch("graph.groups.tsv")));
    for (uint64_t l = 0; l < lines->size; l++) {
        assert_int_equal(lines->count[l], 2);
        assert_int_not_equal(lines->number[l][0], lines->number[l][1]);
        for (int bit = 0; bit < BITS; bit++)
            counts[(lines->number[l][0] >> bit & 1) * 2 + (lines->number[l][1] >> bit & 1)]++;
    }
    for (int i = 0; i < 4; i++) {
        double expected = wanted[i] / 65536 * BITS * LINES;
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    /* Self-loops (one edge in 120) are drawn again, which changes the counts by a few standard deviations. A wrong distribution
     * would change them by hundreds. */
    assert_true(chi < 100);
    free(lines);
    lines = read_lines_of_numbers(generated("graph", options(GENERATE_GRAPH, 1000, 1000, 3)));
    for (uint64_t l = 0; l < lines->size; l++) assert_true(lines->number[l][0] < 1000 && lines->number[l][1] < 1000);
    free(lines);
}

/* Nine of ten tails are of the group to which the relation leads from the head's. Another seed draws other triples, but relations lead to the same
 * groups. Every entity is a head. */
static void relations_lead_from_group_to_group(void **state) {
    enum { ROWS = 5000, GROUPS = 32, RELATIONS = 20, LINES = 20000 };
    static uint32_t leads[RELATIONS][GROUPS][GROUPS];
    static uint8_t is_head[ROWS];
    memset(leads, 0, sizeof leads);
    for (uint32_t seed = 1; seed <= 2; seed++) {
        struct lines *lines = read_lines_of_numbers(generated("triples", options(GENERATE_TRIPLES, ROWS, LINES, seed)));
        uint64_t of_relation[RELATIONS] = {0};
        assert_int_equal(lines->size, LINES);
        memset(is_head, 0, sizeof is_head);
        for (uint64_t l = 0; l < LINES; l++) {
            uint64_t head = lines->number[l][0], relation = lines->number[l][1], tail = lines->number[l][2];
            assert_int_equal(lines->count[l], 3);
            assert_true(head < ROWS && relation < RELATIONS && tail < ROWS);
            assert_int_equal(head % GROUPS / 16, relation % 2);
            of_relation[relation]++;
            leads[relation][head % GROUPS][tail % GROUPS]++;
            is_head[head] = 1;
        }
        for (uint64_t row = 0; row < ROWS; row++) assert_true(is_head[row]);
        assert_true(of_relation[0] > 3 * of_relation[9] && of_relation[9] > of_relation[19]);
        free(lines);
    }
    uint64_t follow = 0;
    for (int relation = 0; relation < RELATIONS; relation++)
        for (int group = 0; group < GROUPS; group++) {
            uint32_t most = 0;
            for (int to = 0; to < GROUPS; to++) most = leads[relation][group][to] > most ? leads[relation][group][to] : most;
            follow += most;
        }
    assert_true(follow > .89 * 2 * LINES && follow < .93 * 2 * LINES); /* and some noise, by chance */
}

static int has_triple(const struct lines *lines, const uint32_t triple[3]) {
    for (uint64_t l = 0; l < lines->size; l++)
        if (!memcmp(lines->number[l], triple, 3 * sizeof *triple)) return 1;
    return 0;
}

/* The test ranks by brute force: it finds the group to which most of a relation's training triples lead, and puts this group's members first. The
 * best MRR that the generator prints must be the same. No held-out triple may be a training triple. */
static void the_best_rank_is_the_best_that_the_triples_allow(void **state) {
    enum { ROWS = 330, GROUPS = 32, RELATIONS = 4, LINES = 4000 };
    static uint32_t leads[2][RELATIONS][GROUPS][GROUPS];
    struct generate_options wanted = options(GENERATE_TRIPLES, ROWS, LINES, 5);
    wanted.relations = RELATIONS;
    wanted.held_out = 400;
    char *path = generated("t", wanted);
    struct lines *known[3] = {read_lines_of_numbers(path), read_lines_of_numbers(in_scratch("t.valid")),
                              read_lines_of_numbers(in_scratch("t.test"))}, *test = known[2];
    double sums[2] = {0};
    memset(leads, 0, sizeof leads);
    for (uint64_t l = 0; l < LINES; l++)
        for (int head = 0; head < 2; head++)
            leads[head][known[0]->number[l][1]][known[0]->number[l][head ? 2 : 0] % GROUPS][known[0]->number[l][head ? 0 : 2] % GROUPS]++;
    for (uint64_t l = 0; l < test->size; l++) {
        assert_false(has_triple(known[0], test->number[l]) || has_triple(known[1], test->number[l]));
        for (int head = 0; head < 2; head++) {
            uint32_t triple[3], answer = test->number[l][head ? 0 : 2], *to = leads[head][test->number[l][1]][test->number[l][head ? 2 : 0] % GROUPS];
            uint32_t group = 0, rank = 1;
            memcpy(triple, test->number[l], sizeof triple);
            for (uint32_t i = 1; i < GROUPS; i++)
                if (to[i] > to[group]) group = i;
            for (uint32_t row = 0; row < ROWS; row++) {
                int before = row % GROUPS == group ? answer % GROUPS != group || row < answer : answer % GROUPS != group && row < answer;
                triple[head ? 0 : 2] = row;
                if (!before || row == answer) continue;
                rank += !has_triple(known[0], triple) && !has_triple(known[1], triple) && !has_triple(known[2], triple);
            }
            sums[head] += 1.0 / rank;
        }
    }
    assert_int_equal(best.triples, test->size);
    assert_int_equal(best.among, ROWS);
    for (int head = 0; head < 2; head++) {
        /* Noise ranks after the group; there, known answers and other types count differently, which is less than .005. */
        assert_true(fabs(best.best[head] - sums[head] / (double)test->size) < .005);
        assert_true(best.inferred[head] <= best.best[head] + 1e-9 && best.inferred[head] > .95 * best.best[head]);
        assert_true(best.popular[head] < .5 * best.best[head]);
    }
    for (int i = 0; i < 3; i++) free(known[i]);
}

/* Among a sample, the mean reciprocal rank is that of the number of sampled members before the answer, whose distribution is computed here. */
static void a_sample_has_the_mean_over_samples(void **state) {
    enum { ROWS = 1100000, GROUPS = 32, MOST = 400 };
    struct generate_options wanted = options(GENERATE_TRIPLES, ROWS, 10, 5);
    wanted.noise = 0;
    generated("t", wanted);
    struct lines *test = read_lines_of_numbers(in_scratch("t.test"));
    double sum = 0, size = (double)ROWS / GROUPS, *p = calloc(MOST, sizeof *p);
    assert_int_equal(best.among, 10000);
    for (uint64_t l = 0; l < test->size; l++) {
        memset(p, 0, MOST * sizeof *p);
        p[0] = 1;
        for (uint64_t m = 0; m < test->number[l][2] / GROUPS; m++) {
            double share = .75 * log2(1 + 1 / ((double)m + 1)) / log2(size + 1) / GROUPS + 1.25 / ROWS, in = 1 - exp(-5000 * share);
            for (int x = MOST - 1; x >= 0; x--) p[x] = p[x] * (1 - in) + (x ? p[x - 1] * in : 0);
        }
        for (int x = 0; x < MOST; x++) sum += p[x] / (x + 1);
    }
    assert_true(fabs(sum / (double)test->size / best.best[0] - 1) < .005);
    free(p);
    free(test);
}

/* A compressed corpus has the same lines as the text. */
static void a_packed_corpus_is_the_text(void **state) {
    for (int kind = 0; kind < GENERATE_KINDS; kind++) {
        char *text = generated("c.txt", options(kind, 3000, 5000, 9)), *packed = generated("c.zst", options(kind, 3000, 5000, 9));
        uint64_t n, m;
        char *plain = file_read(text, &n), *frames = file_read(packed, &m), *unpacked = malloc(n + 1);
        uint64_t used = 0, at = 0;
        while (at < m) {
            size_t frame = ZSTD_findFrameCompressedSize(frames + at, m - at),
                   made = ZSTD_decompress(unpacked + used, n + 1 - used, frames + at, frame);
            assert_false(ZSTD_isError(frame) || ZSTD_isError(made));
            at += frame;
            used += made;
        }
        assert_int_equal(used, n);
        assert_memory_equal(unpacked, plain, n);
        free(plain);
        free(frames);
        free(unpacked);
    }
}

/* The id stream has the words of the text in the same order; ids are ranks of frequency. */
static void a_stream_is_the_text_in_ids(void **state) {
    static const int formats[] = {FORMAT_LISTS, FORMAT_ADJACENCY, FORMAT_TEXT};
    struct pool *pool = pool_open(2);
    for (int kind = 0; kind < 3; kind++) {
        struct corpus_options read = {.path = "here",
                                .format = formats[kind],
                                .max_sentence = 1000,
                                .min_count = 1,
                                .vocab = "",
                                .min_rating = -INFINITY,
                                .look = LOOK_AUTO,
                                .report_seconds = 1};
        struct corpus *corpora[2] = {scratch_corpus(generated("c.txt", options(kind, 5000, 3000, 9)), 0),
                                     scratch_corpus(generated("c.ids", options(kind, 5000, 3000, 9)), 0)};
        struct vocab vocabs[2];
        struct idstream streams[2];
        int reused;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(vocab_build(&vocabs[i], corpora[i], &read, pool), 0);
            assert_int_equal(
                encode_open(&streams[i], in_scratch("cache"), corpora[i], &vocabs[i], &read, pool, &reused), 0);
            assert_int_equal(reused, i);
        }
        assert_int_equal(vocabs[1].size, 5000);
        assert_int_equal(vocabs[1].tokens, vocabs[0].tokens);
        for (uint64_t id = 1; id < vocabs[1].size; id++) assert_true(vocabs[1].counts[id - 1] >= vocabs[1].counts[id]);
        assert_int_equal(streams[1].tokens, streams[0].tokens);
        assert_int_equal(streams[1].sentences, streams[0].sentences);
        for (uint64_t s = 0; s <= streams[0].sentences; s++)
            assert_int_equal(streams[1].starts[s], streams[0].starts[s]);
        for (uint64_t i = 0; i < streams[0].tokens; i++) {
            uint32_t a = streams[0].ids[i], b = streams[1].ids[i];
            assert_string_equal(vocab_word(&vocabs[0], a, NULL), vocab_word(&vocabs[1], b, NULL));
            assert_int_equal(vocabs[0].counts[a], vocabs[1].counts[b]);
        }
        for (int i = 0; i < 2; i++) {
            idstream_close(&streams[i]);
            vocab_release(&vocabs[i]);
            corpus_close(corpora[i]);
        }
    }
    pool_close(pool);
}

/* Some frequencies are below and some above the limit at which ranking changes from a counting sort to a comparison sort. */
static void very_frequent_rows_are_ranked_too(void **state) {
    struct vocab vocab;
    generated("c.ids", options(GENERATE_WORDS, 30, 60000, 1));
    assert_int_equal(vocab_read(&vocab, in_scratch("c.ids.vocab.tsv")), 0);
    assert_int_equal(vocab.size, 30);
    assert_int_equal(vocab.tokens, 1200000);
    assert_true(vocab.counts[0] > 65536 && vocab.counts[2] > 65536 && vocab.counts[29] < 65536);
    for (uint64_t id = 1; id < vocab.size; id++) assert_true(vocab.counts[id - 1] >= vocab.counts[id]);
    vocab_release(&vocab);
}

static void the_smallest_corpora_can_be_made(void **state) {
    uint64_t length;
    for (int kind = 0; kind < 3; kind++)
        for (uint64_t rows = 1; rows < 12; rows++) {
            free(file_read(generated("c", options(kind, rows, 3, 1)), &length));
            assert_true(length > 0);
            generated("c.ids", options(kind, rows, 3, 1));
        }
    free(file_read(generated("c", options(GENERATE_BOOKS, 4097, 3, 1)), &length));
    char *text = file_read(generated("c", options(GENERATE_WORDS, 1, 1, 1)), &length);
    assert_int_equal(length, 60);
    assert_memory_equal(text, "w0 w0 ", 6);
    assert_int_equal(text[59], '\n');
    free(text);
}

static void what_cannot_be_made_is_refused(void **state) {
    struct generate_options wanted = options(GENERATE_BOOKS, 0, 1, 1);
    assert_int_equal(generate_write(&wanted, in_scratch("c"), &best), -1);
    sentence_holds("0 rows and 1 lines cannot be made");
    wanted.rows = 4294967295u;
    assert_int_equal(generate_write(&wanted, in_scratch("c"), &best), -1);
    sentence_holds("rows go from 1 to 4294967294");
    wanted.rows = 10;
    assert_int_equal(generate_write(&wanted, in_scratch("no/c"), &best), -1);
    sentence_holds("No such file");
    assert_int_equal(generate_write(&wanted, in_scratch("no/c.ids"), &best), -1);
    sentence_holds("No such file");
    wanted = options(GENERATE_GRAPH, 1, 1, 1);
    assert_int_equal(generate_write(&wanted, in_scratch("c"), &best), -1);
    sentence_holds("rows go from 2 to 4294967294");
    wanted.rows = 2;
    assert_int_equal(generate_write(&wanted, in_scratch("c.ids"), &best), -1);
    sentence_holds("edges are not written as an id stream");
    assert_int_equal(generate_kind_named("papers"), GENERATE_PAPERS);
    assert_int_equal(generate_kind_named("graph"), GENERATE_GRAPH);
    assert_int_equal(generate_kind_named("triples"), GENERATE_TRIPLES);
    assert_int_equal(generate_kind_named("book"), -1);
    assert_int_equal(report_exit_code(), 2);
    sentence_holds("'book' is not a kind of corpus; wanted books, papers, words, graph or triples (did you mean books?)");
}

/* The files beside a corpus are put in place together with it, or not at all. */
static void nothing_is_left_of_a_corpus_that_failed(void **state) {
    struct generate_options options = {.kind = GENERATE_WORDS, .rows = 30, .lists = 20, .seed = 1};
    static const char *const names[] = {"text", "stream.ids"};
    for (int i = 0; i < 2; i++) {
        char **left, *path = in_scratch(names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(generate_write(&options, path, &best), -1);
        sentence_holds(names[i]);
        int64_t count = directory_list(scratch, &left);
        assert_int_equal(count, 1);
        mem_free_texts(left, count);
        assert_int_equal(rmdir(path), 0);
    }
}

/* If the disk is full when the last file of the new corpus is written, all files of the old corpus stay. */
static void an_older_corpus_stays_whole_where_the_disk_is_full(void **state) {
    static const char *const endings[] = {"", ".groups.tsv", ".vocab.tsv"};
    struct generate_options older = {.kind = GENERATE_BOOKS, .rows = 60, .lists = 3000, .seed = 1}, newer = older;
    struct rlimit all, less;
    char name[64], *before[3];
    uint64_t length[3];
    newer.rows = 70, newer.seed = 2;
    signal(SIGXFSZ, SIG_IGN);
    for (int ids = 0; ids < 2; ids++) {
        const char *corpus = ids ? "c.ids" : "c.txt";
        assert_int_equal(generate_write(&newer, in_scratch(corpus), &best), 0);
        uint64_t size = (uint64_t)file_size(in_scratch(corpus));
        assert_int_equal(generate_write(&older, in_scratch(corpus), &best), 0);
        for (int i = 0; i < 2 + ids; i++) {
            snprintf(name, sizeof name, "%s%s", corpus, endings[i]);
            assert_non_null(before[i] = file_read(in_scratch(name), &length[i]));
        }
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
        less = (struct rlimit){size - 9, all.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        int result = generate_write(&newer, in_scratch(corpus), &best);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
        assert_int_equal(result, -1);
        sentence_holds("cannot write");
        for (int i = 0; i < 2 + ids; i++) {
            uint64_t now;
            snprintf(name, sizeof name, "%s%s", corpus, endings[i]);
            char *after = file_read(in_scratch(name), &now);
            assert_int_equal(now, length[i]);
            assert_memory_equal(after, before[i], now);
            free(after);
            free(before[i]);
        }
    }
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(the_same_seed_makes_the_same_bytes),
        IN_SCRATCH(books_have_different_items_in_few_genres_and_series),
        IN_SCRATCH(papers_cite_their_field_nine_times_in_ten),
        IN_SCRATCH(sentences_have_one_topic),
        IN_SCRATCH(popularity_is_zipfs),
        IN_SCRATCH(popularity_over_groups_is_as_stated),
        IN_SCRATCH(groups_say_what_was_planted),
        IN_SCRATCH(graphs_are_drawn_as_r_mat),
        IN_SCRATCH(relations_lead_from_group_to_group),
        IN_SCRATCH(the_best_rank_is_the_best_that_the_triples_allow),
        IN_SCRATCH(a_sample_has_the_mean_over_samples),
        IN_SCRATCH(a_packed_corpus_is_the_text),
        IN_SCRATCH(a_stream_is_the_text_in_ids),
        IN_SCRATCH(very_frequent_rows_are_ranked_too),
        IN_SCRATCH(the_smallest_corpora_can_be_made),
        IN_SCRATCH(what_cannot_be_made_is_refused),
        IN_SCRATCH(nothing_is_left_of_a_corpus_that_failed),
        IN_SCRATCH(an_older_corpus_stays_whole_where_the_disk_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
