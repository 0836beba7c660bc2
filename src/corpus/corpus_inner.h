/* corpus_inner: the state of a corpus that corpus.c and corpus_blocks.c share. No other file includes it. */
#ifndef SPTX_CORPUS_INNER_H
#define SPTX_CORPUS_INNER_H

#include "corpus.h"

#include "reader.h"

#include <pthread.h>

/* A file of the corpus. */
struct corpus_file {
    char *path;
    const char *name; /* name of the file in messages: its path, or "standard input" */
    uint64_t size;
    uint64_t modified[2]; /* modification time: seconds, nanoseconds */
    uint64_t sample;      /* hash of some of the file's bytes (sample_bytes) */
    struct first_bytes front;
    int looked_at; /* 1: `front` is filled in */
};

struct corpus {
    struct corpus_file *files;
    uint64_t count, capacity;
    uint64_t size;
    uint64_t block_bytes, max_word;
    const struct corpus_format_properties *format;
    struct look_keys asked; /* keys as the caller set them */
    struct look_keys keys;  /* these, with what corpus_read_as() has found */
    const struct look_keys *found; /* of corpus_find(); NULL: it was not called */
    int stream; /* 1: the corpus is one file, an id stream */
    int spool;  /* a copy of standard input, which can be read only once (base/file.h); -1: standard input is not part of the
                 * corpus */
    struct corpus_file *replaced; /* [replaced_count] the files whose text corpus_replace() replaced; NULL: none */
    uint64_t replaced_count;
    int replacement; /* the nameless file with the text that replaces `replaced`; -1: corpus_replace() was not called */
    struct numbered *numbered;          /* owned by the caller; NULL: not set */
    struct gathered *gathered;          /* owned by the caller; NULL: the corpus is read from files */
    struct gathered *replaced_gathered; /* the gathered data whose text corpus_replace() replaced; NULL: none */

    pthread_mutex_t lock; /* held while the fields below are used */
    pthread_cond_t moved; /* `placed` or `failed` has changed */
    struct reader reader; /* reads the current file; only one file is open at a time */
    unsigned threads;     /* number of threads that may unpack a file together */
    uint64_t at;          /* for a file that is not packed: where the next range begins */
    uint64_t taken, placed; /* ranges that threads have begun to read; how many of them became blocks, in the file's order */
    int failed;           /* 1: a thread has failed, so that no more blocks are given */
    uint64_t next;        /* index of the next file to open */
    uint64_t skip;        /* of the bytes at the beginning of the current file that are not data: how many are not in a block yet */
    char said[LOOK_SAID]; /* the last printed description of a file's format (look.said) */
    int said_rows;        /* number of files whose lines look like another format; a warning names only the first */
    int said_encoding;    /* number of files that are not UTF-8; a warning names only the first */
    int file_named;       /* 1: the path of the current file, which names its document, is in a block already */
    uint64_t list_lines;   /* for lists without names: number of lines read so far, by which the current list is named */
    char *carry;          /* bytes that were read together with an earlier block and belong to the next block */
    uint64_t carried, carry_capacity;
    uint64_t number, offset, line; /* the fields of this name in the next struct corpus_block */
    int line_open;
    _Atomic uint64_t done;
};

static inline const struct columns_form *corpus_form(const struct corpus_file *file) {
    return &file->front.look.form;
}

/* How the first bytes of a file are to be examined. */
static inline struct first_look corpus_wanted(const struct corpus_file *file, const struct corpus_format_properties *format,
                                              const struct look_keys *keys) {
    return (struct first_look){.path = file->path, .name = file->name, .rows = format->rows, .keys = keys};
}

/* Looks at a file, unless that is done, and says its format. Returns 0, or -1 after fail(). */
int corpus_look_at(struct corpus *corpus, struct corpus_file *file);
uint64_t corpus_newlines(const char *bytes, uint64_t length); /* returns the number of line ends */

#endif
