/* examples: the configuration, the vocabulary and the corpus, which is an id stream or a graph, as one example_source: what makes
 * every batch. */
#ifndef SPTX_EXAMPLES_H
#define SPTX_EXAMPLES_H

#include "config/config.h"
#include "corpus/graph.h"
#include "corpus/huffman.h"
#include "corpus/idstream.h"
#include "kernels/backend.h"

struct examples {
    struct example_source source;
    uint32_t *keep;      /* [rows] or NULL */
    struct alias *alias; /* [rows] or NULL */
    struct alias *arcs;  /* [arcs] of a graph with weights, or NULL */
    struct huffman tree; /* whose nodes are the contexts with train.loss = hierarchical; all zeros otherwise */
    uint64_t least;      /* words that a sentence, list or line needs so that examples come of it */
    uint64_t too_short;  /* how many have fewer: they are never trained */
    struct {
        double least, most, mean;
    } weights; /* of all items, as the stream has them (log: logarithms); zeros where items have none */
};

/* Takes the corpus, which outlives the examples: the ids of a stream, or the graph that is walked with examples.mode =
 * walk. 0, or -1 after fail(). */
int examples_init(struct examples *examples, const struct config *config, const struct vocab *vocab,
                  const struct idstream *stream);
int examples_init_walks(struct examples *examples, const struct config *config, const struct vocab *vocab,
                        const struct graph *graph, struct pool *pool);
void examples_release(struct examples *examples); /* harmless on a zeroed one */
uint64_t examples_bytes(const struct examples *examples); /* of `keep`, `alias`, `arcs` and `tree` */

/* word2vec's rule: a word of frequency f is kept with probability sqrt(t / f) + t / f, as a threshold of 2^32. */
uint32_t examples_keep(uint64_t count, uint64_t total, double t);
/* The chance that a word of this row is kept. */
double examples_kept(const struct example_source *source, uint64_t row);
/* Vose's alias table of weights[rows] (not negative, a positive sum). */
int examples_alias(struct alias *table, const double *weights, uint64_t rows);

/* Examples of a whole batch: `batch`, or all where an epoch has fewer. */
uint64_t examples_batch(const struct examples *examples, uint64_t batch);

/* The expected numbers of an epoch, computed from counts alone: for the plan and for learning-rate schedules. */
struct examples_expected {
    double blocks;   /* a batch's examples that make a block, per example */
    double targets;  /* target rows of a block */
    double contexts; /* context rows of a block */
    double pairs;    /* per block */
};
struct examples_expected examples_expect(const struct examples *examples);

/* The capacity that is enough for every batch of `batch` examples of which this share is used: what the largest batch is
 * expected to make, going by its sentences, and a margin for what is drawn (window widths, dropped words, the order, which
 * examples are used). Reads the whole corpus. */
struct example_sizes examples_capacity(const struct examples *examples, uint64_t batch, double share);

#endif
