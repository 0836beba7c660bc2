/* examples: makes an example_source, from which the kernels make all batches, out of the configuration, the vocabulary and the corpus (an id
 * stream or a graph). */
#ifndef SPTX_EXAMPLES_H
#define SPTX_EXAMPLES_H

#include "config/config.h"
#include "corpus/graph.h"
#include "corpus/huffman.h"
#include "corpus/idstream.h"
#include "kernels/backend.h"

/* An example_source, and the tables to which it points. */
struct examples {
    struct example_source source;
    uint32_t *keep;      /* [rows] subsampling threshold of each row (examples_keep); NULL: no subsampling */
    struct alias *alias; /* [rows] alias table from which negatives are drawn; NULL: the noise distribution needs no table */
    struct alias *arcs;  /* [arcs] alias tables from which a walk draws its next arc; NULL: the arcs have no weights */
    uint32_t *begins;    /* [source.walks.begun] nodes where walks over triples begin; NULL: no triples are walked */
    struct huffman tree; /* with train.loss = hierarchical: the tree whose inner nodes are the contexts; otherwise zeros */
    uint64_t least;      /* a sentence, list or line needs this many words to make an example */
    uint64_t too_short;  /* number of sentences, lists or lines with fewer words than that; they are not trained */
    struct {
        double least, most, mean;
    } weights; /* the weights of all items, as the stream stores them (logarithms with corpus.weights = log); zeros: no weights */
};

/* Make the examples of an id stream, or of a graph (examples.mode = walk), which must outlive them. Return 0, or -1 after fail(). */
int examples_init(struct examples *examples, const struct config *config, const struct vocab *vocab, const struct idstream *stream);
int examples_init_walks(struct examples *examples, const struct config *config, const struct vocab *vocab,
                        const struct graph *graph, struct pool *pool);
void examples_release(struct examples *examples); /* may be called on a struct of zeros */
uint64_t examples_bytes(const struct examples *examples); /* returns the bytes of the tables keep, alias, arcs and tree */

/* Returns the subsampling threshold of a word that occurs `count` times among `total` tokens: a token of the word is kept if its 32-bit draw is at
 * most the threshold. By word2vec's rule it is kept with probability sqrt(t / f) + t / f, where f is the word's frequency. */
uint32_t examples_keep(uint64_t count, uint64_t total, double t);
/* Makes a table by which a row is drawn in proportion to weights[rows], with one draw (Vose's alias method). Weights must not be negative, and
 * their sum must be positive. */
int examples_alias(struct alias *table, const double *weights, uint64_t rows);

/* Returns the number of examples in a full batch: `batch`, or all examples of an epoch if there are fewer. */
uint64_t examples_batch(const struct examples *examples, uint64_t batch);

/* Returns sizes that are large enough for every batch of `batch` examples, if only the share `share` of all examples is used: the sizes of the
 * largest batch, plus a margin for random differences (sizes of windows, dropped words, the order and the choice of examples). Reads the whole
 * corpus. */
struct example_sizes examples_capacity(const struct examples *examples, uint64_t batch, double share);

/* examples_walks: lets an example_source use walks over a graph as its sentences. */

#endif
