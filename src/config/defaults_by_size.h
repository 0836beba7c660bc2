/* defaults_by_size: the keys whose default depends on the size and shape of the data.
 *
 * config_resolve() runs before the data is read, and sets these keys to defaults for data of any size. When the data is encoded,
 * the session counts it, and defaults_by_size() replaces these defaults by the values of a table (defaults_by_size.def). A key that
 * the user has set is never changed. The counts are of the whole data, so they do not depend on threads, ranks or the backend.
 */
#ifndef SPTX_DEFAULTS_BY_SIZE_H
#define SPTX_DEFAULTS_BY_SIZE_H

#include "config.h"

/* Sizes of the data; 0 for a size that this kind of data does not have. */
struct data_size {
    uint64_t tokens; /* tokens whose word is in the vocabulary; for lists, the pairs of a list and an item */
    uint64_t words;  /* distinct words, items or nodes: the rows of the context table */
    uint64_t lists;  /* lists that have target rows; for adjacency, the lines */
    uint64_t arcs;   /* arcs of a graph; an undirected edge counts as two */
    uint64_t relations; /* rows of relations and of their reciprocals */
};

enum { DEFAULTS_TEXT = 256 };

/* Sets each key of the table that the user has not set to its default for data of this size. Writes to `chosen` the keys that this
 * has changed, with their new values ("examples.subsample = 0, train.epochs = 20"), or "". Returns 0, or -1 after fail(). */
int defaults_by_size(struct config *config, const struct data_size *size, char chosen[DEFAULTS_TEXT]);

/* Copies from `before` each key of the table that the user has not set in `config`. `before` is the resolved config of the run that
 * is resumed, or of an earlier run on the same data. */
void defaults_keep(struct config *config, const struct config *before);

/* Describes, for `help keys`, how a key's default depends on the size: lines such as "  for corpus.format = text, at least 200 distinct
 * words: 3e-4", of which the first one that applies counts. Writes "" if the key is not in the table. Returns 0, or -1 after fail(). */
enum { DEFAULTS_HELP = 4096 };
int defaults_describe(const char *name, char out[DEFAULTS_HELP]);

#endif
