/* random_tree: a tree of words with random counts, whose paths a source of examples uses. Include this after testing.h. */
#ifndef SPTX_TESTS_RANDOM_TREE_H
#define SPTX_TESTS_RANDOM_TREE_H

#include "corpus/huffman.h"
#include "kernels/examples.h"

/* Makes a tree of the first `words` rows, which have these counts, and gives its paths to the source. The caller releases the
 * tree. */
static inline struct huffman add_paths(struct example_source *source, const uint64_t *counts, uint64_t words) {
    struct huffman tree;
    assert_int_equal(huffman_make(&tree, counts, words), 0);
    source->paths = (struct example_paths){tree.starts, tree.nodes, words, tree.starts[2 * words], tree.longest};
    source->negatives = 0;
    source->per_pair = 0;
    return tree;
}

#endif
