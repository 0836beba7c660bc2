#include "tests/testing.h"

#include "base/report.h"
#include "corpus/huffman.h"

#include "tests/unit/sentence.h"

enum { MOST = 5000, DEEPEST = 100 };

/* ---- word2vec.c's tree, as its CreateBinaryTree makes it: one array of counts, a huge one where no node is yet ---- */

struct plain {
    uint64_t words;
    long long count[2 * MOST + 1];
    long long parent[2 * MOST + 1];
    int code[2 * MOST + 1];
};

static long long take(struct plain *p, long long *leaf, long long *inner) {
    if (*leaf >= 0 && p->count[*leaf] < p->count[*inner]) return (*leaf)--;
    return (*inner)++;
}

static void make_plain(struct plain *p, const uint64_t *counts, uint64_t words) {
    long long leaf = (long long)words - 1, inner = (long long)words;
    memset(p, 0, sizeof *p);
    p->words = words;
    for (uint64_t i = 0; i < words; i++) p->count[i] = (long long)counts[i];
    for (uint64_t i = words; i <= 2 * words; i++) p->count[i] = (long long)1e15;
    for (uint64_t a = 0; a + 1 < words; a++) {
        long long first = take(p, &leaf, &inner), second = take(p, &leaf, &inner);
        p->count[words + a] = p->count[first] + p->count[second];
        p->parent[first] = p->parent[second] = (long long)(words + a);
        p->code[second] = 1;
    }
}

/* Writes to nodes[] the ids of those nodes on a word's path, from the root on, at which the path's bit is `code`. Returns their number. */
static int plain_path(const struct plain *p, uint64_t word, int code, uint32_t *nodes) {
    uint32_t up[DEEPEST];
    int count = 0;
    for (long long at = (long long)word; at != (long long)(2 * p->words - 2); at = p->parent[at])
        if (p->code[at] == code) up[count++] = (uint32_t)(2 * (long long)p->words - 2 - p->parent[at]);
    for (int i = 0; i < count; i++) nodes[i] = up[count - 1 - i];
    return count;
}

static void assert_plain(const struct huffman *tree, const struct plain *plain) {
    for (uint64_t word = 0; word < plain->words; word++)
        for (int code = 0; code < 2; code++) {
            uint32_t nodes[DEEPEST];
            uint64_t first = tree->starts[2 * word + (uint64_t)code], end = tree->starts[2 * word + (uint64_t)code + 1];
            int count = plain_path(plain, word, code, nodes);
            assert_int_equal(end - first, count);
            assert_memory_equal(tree->nodes + first, nodes, (size_t)count * sizeof *nodes);
        }
    for (uint64_t node = 0; node + 1 < plain->words; node++)
        assert_int_equal(tree->counts[node], plain->count[2 * plain->words - 2 - node]);
}

static struct plain plain;

static void compare(const uint64_t *counts, uint64_t words) {
    struct huffman tree;
    assert_int_equal(huffman_make(&tree, counts, words), 0);
    make_plain(&plain, counts, words);
    assert_plain(&tree, &plain);
    huffman_release(&tree);
}

static void it_is_the_tree_of_word2vec(void **state) {
    static uint64_t counts[MOST];
    srand(3);
    for (int round = 0; round < 40; round++) {
        uint64_t words = 2 + (uint64_t)rand() % (round < 30 ? 60 : MOST - 2), count = 1 + (uint64_t)rand() % 3;
        for (uint64_t i = words; i-- > 0;) { /* counts rise slowly, so that many are equal */
            if (rand() % (round % 4 + 1) == 0) count += (uint64_t)rand() % (1 + count);
            if (count > 1000000000000) count = 1000000000000;
            counts[i] = count;
        }
        compare(counts, words);
    }
}

static void equal_counts_are_joined_as_word2vec_joins_them(void **state) {
    const uint64_t all_alike[] = {7, 7, 7, 7, 7, 7, 7}, pairs[] = {4, 4, 2, 2, 1, 1}, sums[] = {8, 4, 2, 1, 1}, two[] = {1, 1};
    compare(all_alike, 7);
    compare(pairs, 6);
    compare(sums, 5);
    compare(two, 2);
}

/* Five words with counts a 10, b 4, c 3, d 2, e 1. First d and e are joined (3), then c with these (6), then b (10), then a. */
static void frequent_words_have_short_paths(void **state) {
    const uint64_t counts[] = {10, 4, 3, 2, 1};
    struct huffman tree;
    assert_int_equal(huffman_make(&tree, counts, 5), 0);
    assert_int_equal(tree.starts[2] - tree.starts[0], 1);
    assert_int_equal(tree.nodes[tree.starts[0]], 0);
    assert_int_equal(tree.starts[10] - tree.starts[8], 4);
    assert_int_equal(tree.longest, 4);
    assert_int_equal(tree.counts[0], 20);
    assert_int_equal(tree.counts[3], 3);
    huffman_release(&tree);
}

/* The order of ids does not change the paths, except between words of equal count. */
static void ids_in_any_order_have_the_same_paths(void **state) {
    const uint64_t counts[] = {50, 30, 20, 9, 5, 4}, shuffled[] = {9, 50, 4, 20, 30, 5};
    const int place[] = {1, 4, 3, 0, 5, 2};
    struct huffman tree, other;
    assert_int_equal(huffman_make(&tree, counts, 6), 0);
    assert_int_equal(huffman_make(&other, shuffled, 6), 0);
    for (int word = 0; word < 6; word++)
        for (int code = 0; code < 2; code++) {
            uint64_t from = tree.starts[2 * word + code], count = tree.starts[2 * word + code + 1] - from;
            uint64_t to = other.starts[2 * place[word] + code];
            assert_int_equal(other.starts[2 * place[word] + code + 1] - to, count);
            assert_memory_equal(tree.nodes + from, other.nodes + to, count * sizeof *tree.nodes);
        }
    huffman_release(&tree);
    huffman_release(&other);
}

static void words_that_were_never_met_do_not_make_a_chain(void **state) {
    static uint64_t counts[1000] = {9, 5};
    struct huffman tree;
    assert_int_equal(huffman_make(&tree, counts, 1000), 0);
    assert_in_range(tree.longest, 10, 20);
    huffman_release(&tree);
}

static void the_fingerprint_follows_the_paths(void **state) {
    const uint64_t counts[] = {5, 4, 3, 2}, same[] = {50, 40, 30, 20}, other[] = {9, 4, 3, 2};
    struct huffman a, b, c;
    assert_int_equal(huffman_make(&a, counts, 4) || huffman_make(&b, same, 4) || huffman_make(&c, other, 4), 0);
    assert_int_equal(huffman_fingerprint(&a), huffman_fingerprint(&b));
    assert_int_not_equal(huffman_fingerprint(&a), huffman_fingerprint(&c));
    assert_int_not_equal(huffman_bytes(&a), 0);
    huffman_release(&a);
    huffman_release(&b);
    huffman_release(&c);
    assert_int_equal(huffman_bytes(&a), 0);
}

static void one_word_makes_no_tree(void **state) {
    const uint64_t one[] = {3};
    struct huffman tree;
    assert_int_equal(huffman_make(&tree, one, 1), -1);
    sentence_holds("a tree of words needs two of them, the vocabulary has 1");
    huffman_release(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_tree_of_word2vec),
        cmocka_unit_test(equal_counts_are_joined_as_word2vec_joins_them),
        cmocka_unit_test(frequent_words_have_short_paths),
        cmocka_unit_test(ids_in_any_order_have_the_same_paths),
        cmocka_unit_test(words_that_were_never_met_do_not_make_a_chain),
        cmocka_unit_test(the_fingerprint_follows_the_paths),
        cmocka_unit_test(one_word_makes_no_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
