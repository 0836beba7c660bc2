#include "huffman.h"

#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <xxhash.h>

static const char *const what = "the tree of words";

/* The tree while it is built. Entries below `words` are leaves, by falling count; the others are inner nodes in the order in which they are made,
 * so the last entry is the root. */
struct making {
    uint64_t words;
    uint32_t *leaf;    /* [words] the word of each leaf; NULL: leaf i is word i */
    uint64_t *count;   /* [2 x words - 1] count of each entry */
    uint32_t *parent;  /* [2 x words - 2] id of each entry's parent */
    uint8_t *code;     /* [2 x words - 2] which child of its parent the entry is: 0 or 1 */
    uint8_t *depth[2]; /* [words - 1] by an inner node's id: how many steps on the path from the root to it have code 0, and how many code 1 */
};

/* ---- the order of the leaves ---- */

/* Fills m->count; a word counts at least once: otherwise words that do not occur would form a chain of as many nodes. Sorts the leaves by count,
 * unless ids are ranks of frequency already (corpus.order). */
static int order_leaves(struct making *m, const uint64_t *counts) {
    int sorted = 1;
    for (uint64_t i = 1; i < m->words && sorted; i++) sorted = counts[i] <= counts[i - 1];
    for (uint64_t i = 0; i < m->words; i++) m->count[i] = counts[i] ? counts[i] : 1;
    if (sorted) return 0;
    OWNED struct mem_counted *all = mem_alloc(m->words, sizeof *all, what);
    m->leaf = mem_alloc(m->words, sizeof *m->leaf, what);
    for (uint64_t i = 0; all && m->leaf && i < m->words; i++) all[i] = (struct mem_counted){counts[i], (uint32_t)i};
    if (all && m->leaf) qsort(all, m->words, sizeof *all, mem_by_falling_count);
    for (uint64_t i = 0; all && m->leaf && i < m->words; i++) m->count[i] = all[i].count ? all[i].count : 1, m->leaf[i] = all[i].id;
    return m->leaf ? 0 : -1;
}

/* Returns the id of an inner node. The root is made last and has id 0. */
static uint32_t id_of(const struct making *m, uint64_t entry) {
    return (uint32_t)(2 * m->words - 2 - entry);
}
static uint64_t entry_of(const struct making *m, uint32_t id) {
    return 2 * m->words - 2 - id;
}

/* ---- the tree ---- */

/* Computes above[]: how many steps on the path from the root to `entry` have code 0, and how many code 1. With 64-bit counts a path has fewer than
 * 100 steps. */
static void count_above(const struct making *m, uint64_t entry, uint64_t above[2]) {
    for (int code = 0; code < 2; code++) above[code] = m->depth[code][m->parent[entry]] + (uint64_t)(m->code[entry] == code);
}

static uint64_t word_of(const struct making *m, uint64_t leaf) {
    return m->leaf ? m->leaf[leaf] : leaf;
}

/* Gives entries their parents, from the rarest up. Entries without a parent are in two queues: leaves 0 .. leaves - 1, the rarest last, and inner
 * nodes inner .. made - 1, the oldest first. */
static void join_all(struct making *m) {
    uint64_t leaves = m->words, inner = m->words, pair[2];
    for (uint64_t made = m->words; made < 2 * m->words - 1; made++) {
        for (int code = 0; code < 2; code++) { /* if a leaf and an inner node have the same count, the inner node is joined first */
            int leaf = leaves && (inner == made || m->count[leaves - 1] < m->count[inner]);
            pair[code] = leaf ? --leaves : inner++;
            m->parent[pair[code]] = id_of(m, made);
            m->code[pair[code]] = (uint8_t)code;
        }
        m->count[made] = m->count[pair[0]] + m->count[pair[1]];
    }
    INVARIANT(!leaves && inner == 2 * m->words - 2);
}

static int make(struct huffman *tree, struct making *m, const uint64_t *counts) {
    uint64_t entries = 2 * m->words - 1, above[2];
    m->count = mem_alloc(entries, sizeof *m->count, what);
    m->parent = mem_alloc(entries, sizeof *m->parent, what);
    m->code = mem_zalloc(entries, sizeof *m->code, what);
    m->depth[0] = mem_zalloc(m->words, 1, what);
    m->depth[1] = mem_zalloc(m->words, 1, what);
    tree->starts = mem_zalloc(2 * m->words + 1, sizeof *tree->starts, what);
    tree->counts = mem_alloc(m->words - 1, sizeof *tree->counts, what);
    if (!m->count || !m->parent || !m->code || !m->depth[0] || !m->depth[1] || !tree->starts || !tree->counts || order_leaves(m, counts)) return -1;
    join_all(m);
    for (uint64_t entry = m->words; entry < entries; entry++) tree->counts[id_of(m, entry)] = m->count[entry];
    for (uint64_t entry = entries - 1; entry-- > m->words;) {
        count_above(m, entry, above);
        for (int code = 0; code < 2; code++) m->depth[code][id_of(m, entry)] = (uint8_t)above[code];
    }
    for (uint64_t leaf = 0; leaf < m->words; leaf++) {
        uint64_t word = word_of(m, leaf);
        count_above(m, leaf, above);
        tree->starts[2 * word + 1] = above[0];
        tree->starts[2 * word + 2] = above[1];
        if (above[0] + above[1] > tree->longest) tree->longest = above[0] + above[1];
    }
    for (uint64_t i = 0; i < 2 * m->words; i++) tree->starts[i + 1] += tree->starts[i];
    tree->nodes = mem_alloc(tree->starts[2 * m->words], sizeof *tree->nodes, what);
    if (!tree->nodes) return -1;
    for (uint64_t leaf = 0; leaf < m->words; leaf++) { /* a path is followed from its leaf to the root, so its two lists are filled from their ends */
        uint64_t word = word_of(m, leaf), end[2] = {tree->starts[2 * word + 1], tree->starts[2 * word + 2]};
        for (uint64_t entry = leaf; entry != entry_of(m, 0); entry = entry_of(m, m->parent[entry]))
            tree->nodes[--end[m->code[entry]]] = m->parent[entry];
    }
    return 0;
}

int huffman_make(struct huffman *tree, const uint64_t *counts, uint64_t words) {
    struct making m = {.words = words};
    *tree = (struct huffman){.words = words};
    if (words < 2) return fail("a tree of words needs two of them, the vocabulary has %llu", (unsigned long long)words);
    int result = make(tree, &m, counts);
    mem_free(m.leaf, m.count, m.parent, m.code, m.depth[0], m.depth[1]);
    return result;
}

void huffman_release(struct huffman *tree) {
    mem_free(tree->starts, tree->nodes, tree->counts);
    *tree = (struct huffman){0};
}

uint64_t huffman_bytes(const struct huffman *tree) {
    if (!tree->starts) return 0;
    return (2 * tree->words + 1) * sizeof *tree->starts + tree->starts[2 * tree->words] * sizeof *tree->nodes +
           (tree->words - 1) * sizeof *tree->counts;
}

uint64_t huffman_fingerprint(const struct huffman *tree) {
    uint64_t starts = XXH3_64bits(tree->starts, (2 * tree->words + 1) * sizeof *tree->starts);
    uint64_t both = starts ^ XXH3_64bits(tree->nodes, tree->starts[2 * tree->words] * sizeof *tree->nodes);
    return both ? both : 1;
}
