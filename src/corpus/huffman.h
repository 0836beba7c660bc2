/* huffman: the binary tree of a hierarchical softmax (train.loss = hierarchical). Words are its leaves; frequent words have short
 * paths. It is word2vec.c's tree: made with the same two queues, and with the same choice between equal counts.
 *
 *                  (0)              inner nodes: ids by falling count, 0 is the root
 *              0 /     \ 1          a word's path: the nodes from the root to its leaf
 *             (1)       the         code: which way the path turns at each node
 *          0 /   \ 1
 *          a     of                 the: node 0, code 1.   a: nodes 0 and 1, codes 0 and 0
 *
 * The tree depends on the counts alone, so it is the same on every machine.
 */
#ifndef SPTX_HUFFMAN_H
#define SPTX_HUFFMAN_H

#include <stdint.h>

struct huffman {
    uint64_t words;   /* number of leaves; there are words - 1 inner nodes */
    uint64_t *starts; /* [2 x words + 1] nodes at which word w's path takes code 0: nodes[starts[2 w]] .. nodes[starts[2 w + 1] - 1]; code 1:
                       * nodes[starts[2 w + 1]] .. nodes[starts[2 w + 2] - 1]. In both lists the node nearest to the root is first */
    uint32_t *nodes;  /* [starts[2 x words]]: ids of the inner nodes of all paths */
    uint64_t *counts; /* [words - 1] for each inner node: the sum of the counts of the words below it */
    uint64_t longest; /* number of nodes of the longest path */
};

/* Builds the tree of at least two words, whose counts may be in any order; of words with equal counts, the one with the higher id is treated as
 * rarer. Returns 0, or -1 after fail(); the caller must call huffman_release() in both cases. */
int huffman_make(struct huffman *tree, const uint64_t *counts, uint64_t words);
void huffman_release(struct huffman *tree); /* may be called on a struct of zeros */

uint64_t huffman_bytes(const struct huffman *tree);       /* bytes of memory in use */
uint64_t huffman_fingerprint(const struct huffman *tree); /* XXH3 of all paths; never 0 */

#endif
