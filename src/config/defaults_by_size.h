/* defaults_by_size: the keys whose default follows the size and shape of the data.
 *
 * config_resolve() runs before the data is read and gives these keys a plain value. Once the data is encoded, the session counts
 * it and defaults_by_size() puts the value of the table (defaults_by_size.def) in its place, but never where the user has set the
 * key. The counts are of the data alone, so threads, ranks and the backend change no value.
 */
#ifndef SPTX_DEFAULTS_BY_SIZE_H
#define SPTX_DEFAULTS_BY_SIZE_H

#include "config.h"

/* What the data holds; 0 where the kind of data has no such thing. */
struct data_size {
    uint64_t tokens; /* of text and items: tokens of words in the vocabulary; of lists: pairs of a list and an item */
    uint64_t words;  /* words, items or nodes: rows of the context table */
    uint64_t lists;  /* lists that have rows of their own; lines of adjacency */
    uint64_t arcs;   /* of a graph; an undirected edge is two */
};

enum { DEFAULTS_TEXT = 256 };

/* Gives each key of the table that nobody has set its value for data of this size. `chosen` receives the values that differ from
 * the plain ones ("examples.subsample = 0, train.epochs = 20"), or "". Returns 0, or -1 after fail(). */
int defaults_by_size(struct config *config, const struct data_size *size, char chosen[DEFAULTS_TEXT]);

/* Gives keys of the table that nobody has set their values in the resolved config of a run that goes on, or of the same data. */
void defaults_keep(struct config *config, const struct config *before);

/* Describes how a key's default follows the size, for `help keys`: "text: 0; 1e-4 from 1,000,000 tokens". "" for a key that is not
 * in the table. */
enum { DEFAULTS_HELP = 512 };
void defaults_describe(const char *name, char out[DEFAULTS_HELP]);

#endif
