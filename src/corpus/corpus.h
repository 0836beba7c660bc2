/* corpus: reads files and directories, plain or compressed, as blocks of bytes that end where a token ends.
 *
 *   paths -> files in order (of a directory: its files and those of its subdirectories, by name) -> unpacked if their
 *   first bytes are those of a packed file -> blocks of a few MiB, numbered -> tokens
 *
 * Any thread may ask for the next block; a lock is held only while the block is read. A block never cuts a token in two. It may cut
 * a line, since a text may have no newlines: line_open = 1 then says that its last line continues in the next block.
 * A file that is not text is refused when the corpus is opened, by its first bytes (kind.h). A token of more than max_word bytes is
 * refused when it is read. A token is a run of bytes other than blank, TAB, LF, CR, VT and FF. All other bytes are kept, even NUL
 * and invalid UTF-8; only a byte order mark at a file's front is left out. Lines end in LF, or in CR if the file has no LF.
 */
#ifndef SPTX_CORPUS_H
#define SPTX_CORPUS_H

#include "first_bytes.h"
#include "format.h"
#include "phrase_score.h"
#include "tokens.h"

#include <stdint.h>

/* corpus.order: how words get their ids. Numbered in the order of its choices in config.def. */
enum corpus_order { ORDER_FREQUENCY, ORDER_FIRST_SEEN, ORDER_GIVEN };

/* graph.weights: whether edges have weights. Numbered in the order of its choices in config.def. */
enum corpus_weights { WEIGHTS_AUTO, WEIGHTS_YES, WEIGHTS_NO };

/* corpus.weights: the weight of a pair is 1, its rating, or log(1 + rating). Numbered in the order of its choices in config.def. */
enum pair_weights { PAIR_WEIGHTS_NONE, PAIR_WEIGHTS_LINEAR, PAIR_WEIGHTS_LOG };

/* How a corpus is read, and which of its words become rows: keys of [corpus], [phrases] and [graph]. The caller owns the
 * strings. */
struct corpus_options {
    const char *path;  /* corpus.path as the user wrote it, for messages */
    const char *vocab; /* path of a vocabulary that is read instead of counting words; "" or NULL: words are counted */
    const struct vocab *older; /* vocabulary of an older run, whose words are added (vocab_older.h); NULL: there is no older run */
    const char *grown; /* path of vocab.tsv of a resumed run that kept words of an older run; read instead of counting; NULL: no
                        * such run */
    enum corpus_format format;
    enum corpus_order order;
    struct look_keys look; /* keys that override the format of lines which look.h finds */
    struct phrase_options phrases; /* which words of a text are joined before they are counted */
    uint64_t max_sentence;     /* a sentence of running text is cut after this many tokens */
    uint64_t max_word;     /* bytes; a longer word is an error; 0: CORPUS_WORD */
    uint64_t min_count;    /* words that occur less often are left out */
    uint64_t max_vocab;    /* only this many of the most frequent words are kept; 0: all */
    double min_rating;     /* pairs with a lower rating are left out; -infinity: all pairs are kept */
    enum pair_weights pair_weights; /* of pairs; unless it is PAIR_WEIGHTS_NONE, pairs of weight 0 are left out */
    int directed;          /* graphs. 1: an edge leads only from its first node to its second; 0: both ways */
    enum corpus_weights weights; /* graphs. graph_settle() replaces WEIGHTS_AUTO; if it is still WEIGHTS_AUTO, edges have no
                                  * weights */
    int list_rows;         /* 1: each list has a row of its own, whose id begins the list's sentence (vocab.h) */
    double report_seconds; /* time between two updates of the progress line */
};

struct corpus; /* the files of a run in order, with their open files */

/* Some bytes of one file, unpacked, that end where a token ends. */
struct corpus_block {
    char *bytes;       /* owned by the block; grows when needed; CORPUS_PADDING bytes behind the last one may be read */
    uint64_t length;   /* bytes in use */
    uint64_t capacity;
    uint64_t skip;     /* number of bytes at the front that are not data: a byte order mark, a header */
    uint64_t number;   /* 0, 1, 2.. over the blocks of all files, without a gap */
    uint64_t offset;   /* bytes of the unpacked corpus before bytes[0] */
    uint64_t line;     /* number of the line of bytes[0] in its file, from 1 */
    const char *path;  /* the name of the file in messages; owned by the corpus */
    const struct columns_form *form; /* format of the file's lines; owned by the corpus; NULL: COLUMNS_PLAIN */
    const char *value_name;          /* name of the rating or weight column in the header, or ""; owned by the corpus */
    int line_open;     /* 1: the last line continues in the next block, and has had a token so far */
    int continues;     /* 1: the first line began in an earlier block, and had a token there */
};

#define CORPUS_INPUT "-" /* the path that means standard input, which is read to its end when the corpus is opened */

/* Opens the files and directories that corpus.path names (config_paths() splits it). Returns NULL after fail(): a path does not
 * exist or is not readable, or a directory has no file in it. */
struct corpus *corpus_open(char *const *paths, uint64_t count);
void corpus_close(struct corpus *corpus);

/* Makes the file `fd` the corpus' text: blocks are read from it. Fingerprints and checks for changes still use the original
 * files or gathered data. The corpus then owns `fd`. Returns 0, or -1 after fail(). */
int corpus_replace(struct corpus *corpus, int fd);

/* Opens a corpus of data that a program has handed over (gathered.h); it has no files and no blocks. `gathered` stays the
 * caller's and must outlive the corpus. Returns NULL after fail(). */
struct gathered;
struct corpus *corpus_open_gathered(struct gathered *gathered);
struct gathered *corpus_gathered(const struct corpus *corpus); /* returns NULL if the corpus is read from files */

/* Where the words' numbers are recorded when the corpus is counted (recorded.h), for encoding it without a second reading. The
 * caller owns `recorded`. corpus_recorded() returns NULL if nothing is set. */
struct recorded;
void corpus_set_recorded(struct corpus *corpus, struct recorded *recorded);
struct recorded *corpus_recorded(const struct corpus *corpus);

/* Reads the next block into `block`, whose memory is reused. Returns 1, 0 at the end, -1 after fail(). corpus_block_release()
 * frees the block's bytes. */
int corpus_next(struct corpus *corpus, struct corpus_block *block);
void corpus_block_release(struct corpus_block *block);
void corpus_rewind(struct corpus *corpus);

/* Default size of a block in bytes. A block grows beyond it if a token is longer (up to max_word). Results do not depend on the
 * size. */
enum { CORPUS_BLOCK = 2 << 20, CORPUS_PADDING = 64 };
void corpus_set_block(struct corpus *corpus, uint64_t bytes);
/* Sets corpus.format, corpus.max_word and the user's keys about the format of lines (look.h). The strings in `options` must stay
 * valid while the corpus is read. Before this call, files are read as text. */
void corpus_read_as(struct corpus *corpus, const struct corpus_options *options);

/* Bytes of a word: the default of corpus.max_word, and its highest value. */
enum { CORPUS_WORD = 1 << 20, CORPUS_WORD_MOST = 64 << 20 };

enum { CORPUS_LOOK_FILES = 16 }; /* number of first files whose first lines are examined, if a corpus has many files */
/* Reads the first whole lines of each of the first `files` files, and passes them to `take` as one block a file. `take` returns
 * 0, or -1 after fail(). Used to examine the data before all of it is read. */
int corpus_look(const struct corpus *corpus, const struct corpus_options *options, uint64_t files,
                int (*take)(void *user, const struct corpus_block *block), void *user);

/* Returns the path of the corpus if it is one encoded id stream (idstream.h), otherwise NULL. */
#define CORPUS_STREAM_MAGIC "SPTX-IDS"
const char *corpus_stream(const struct corpus *corpus);

/* corpus_size() returns the bytes of all files on disk; corpus_done() returns how many of them have been read, for progress. */
uint64_t corpus_size(const struct corpus *corpus);
uint64_t corpus_done(const struct corpus *corpus);

/* Returns a hash of the paths of all files, their sizes, modification times and a sample of their bytes (all bytes up to 256
 * KiB). A cache is valid only for a corpus with the same hash. */
uint64_t corpus_fingerprint(const struct corpus *corpus);

/* Returns 0 if each file still has the size and modification time that it had at corpus_open(), so that every reading saw the
 * same bytes. Returns -1 after fail(), which names a changed file. */
int corpus_check_unchanged(const struct corpus *corpus);

/* Sets the cursor to the first token of a block (tokens.h). */
void corpus_cursor_start(struct corpus_cursor *cursor, const struct corpus_block *block);

#endif
