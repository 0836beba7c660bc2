/* numbered: a corpus as the numbers of its words. They are written while the words are counted, so that the corpus' files are read
 * once; encode.h and graph.h replace them by rows.
 *
 *   text, lists, adjacency   the number of each word, and NUMBERED_END after each line; a list's name only if lists have rows
 *   pairs                    list, item[, weight] of each pair
 *   graph                    node, node[, weight] of each edge
 *   triples                  head, relation, tail of each triple; relations are numbered as names of lists are
 *
 * Each number has 4 bytes, and so has each weight, a float. Which number a word gets depends on the threads; the order of the
 * numbers is that of the words in the corpus.
 */
#ifndef SPTX_NUMBERED_H
#define SPTX_NUMBERED_H

#include "base/file.h"
#include "fields.h"

#include <pthread.h>
#include <stdint.h>

#define NUMBERED_END (UINT32_MAX - 1)

struct numbered {
    int fd;                   /* the nameless file of the numbers; -1: not opened */
    const char *path;         /* a path on the disk that has the file, named in messages; owned by the caller */
    const uint32_t *numbers;  /* [count], mapped by numbered_finish() */
    uint64_t count;
    int complete;             /* 1: numbered_finish() was called */
    uint32_t *items, *lists;  /* by number: rows of words, and of names of lists; WORDS_ABSENT: it has no row. items = NULL: a
                               * word's number is its row; lists = NULL: lists have no rows. The caller fills these arrays */
    uint64_t list_numbers;    /* 1 + the highest number of a list's name */
    struct corpus_left left;   /* for graphs: numbers of edges that were left out */
    struct file_map map;
    pthread_mutex_t lock;     /* held while the fields below are used */
    pthread_cond_t moved;
    uint64_t next;            /* number of the block that is written next */
    int failed;
};

int numbered_open(struct numbered *numbered, const char *path);
/* Writes the numbers of block `block` after the numbers of all earlier blocks. Any thread may call it, once for each block.
 * Waits until the place in the file where the earlier blocks end is known. Returns 0, or -1 after fail() or numbered_give_up(). */
int numbered_put(struct numbered *numbered, uint64_t block, const uint32_t *numbers, uint64_t count);
void numbered_give_up(struct numbered *numbered); /* called after a thread has failed: wakes the threads that wait for its block */
int numbered_finish(struct numbered *numbered);   /* called after the last block: maps the numbers */
void numbered_close(struct numbered *numbered);

/* How many numbers a line of pairs or edges has. */
static inline unsigned numbered_fields(const struct corpus_options *options) {
    return 2 + (corpus_formats[options->format].edges ? options->weights == WEIGHTS_YES : options->pair_weights != PAIR_WEIGHTS_NONE);
}

#endif
