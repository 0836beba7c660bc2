/* corpus: files and directories, plain or compressed, as blocks of bytes that end where a token ends.
 *
 *   paths -> files in order (a directory: its plain files by name, deeper ones too) -> unpacked where their first
 *   bytes say so -> blocks of a few MiB, numbered -> tokens
 *
 * Any thread may ask for the next block; the reader holds a lock only while it reads. A block never cuts a token in
 * two; it may cut a line (text without newlines works): `line_open` says that its last line goes on in the next block.
 * What is no text is refused when it is opened, by its first bytes (kind.h), and a token without an end where it is
 * met. A token is a run of bytes other than blank, TAB, LF, CR, VT, FF; every other byte, NUL and bad UTF-8 too, is
 * kept, but for a byte order mark at a file's front. LF ends a line; CR does in a file that has no LF.
 */
#ifndef SPTX_CORPUS_H
#define SPTX_CORPUS_H

#include "first_bytes.h"
#include "format.h"
#include "phrase_score.h"
#include "tokens.h"

#include <stdint.h>

/* Numbered in the order of its list in config.def. */
enum corpus_order { ORDER_FREQUENCY, ORDER_FIRST_SEEN, ORDER_GIVEN };

/* Has a graph's edges weights? Numbered in the order of its list in config.def. */
enum corpus_weights { WEIGHTS_AUTO, WEIGHTS_YES, WEIGHTS_NO };

/* The weight of a pair's positive: 1, its rating, or log(1 + rating). The order is that of the choices in config.def. */
enum pair_weights { PAIR_WEIGHTS_NONE, PAIR_WEIGHTS_LINEAR, PAIR_WEIGHTS_LOG };

/* How a corpus is read, and which of its words become rows: the keys of [corpus] that matter here. The caller owns the
 * texts. */
struct corpus_options {
    const char *path;  /* as the user gave it, for sentences */
    const char *vocab; /* the file of a vocabulary to read instead of counting; "" or NULL: count */
    const struct vocab *older; /* vocabulary of an older run, whose words are added (vocab_older.h); NULL: none */
    const char *grown; /* vocab.tsv of a resumed run that has words of an older run; it is read instead of counting; NULL: count */
    enum corpus_format format;
    enum corpus_order order;
    struct look_keys look; /* the user's keys about the format of lines */
    struct phrase_options phrases; /* which words of a text are joined before they are counted */
    uint64_t max_sentence;     /* tokens of a sentence of running text */
    uint64_t max_word;     /* bytes; a longer word is a failure; 0: as many as CORPUS_WORD */
    uint64_t min_count;    /* rarer words are left out */
    uint64_t max_vocab;    /* the most frequent ones stay; 0: all */
    double min_rating;     /* formats with columns: lower ratings are left out; -infinity: none is */
    enum pair_weights pair_weights; /* formats with ratings; with weights, pairs of weight 0 are left out */
    int directed;          /* of a graph; 1: an edge leads from its first node to its second one, and not back */
    enum corpus_weights weights; /* of a graph. WEIGHTS_AUTO is settled by graph_settle(); where it stays, none has a weight */
    int list_rows;         /* 1: the name of a list is a row too, and stands first in its list (vocab.h) */
    double report_seconds; /* between two updates of the live line */
};

struct corpus; /* the files of a run in order, with their open files */

struct corpus_block {
    char *bytes;       /* owned by the block; grown as needed */
    uint64_t length;   /* bytes in use */
    uint64_t capacity;
    uint64_t skip;     /* how many of them, at the front, are no data: a byte order mark, a header */
    uint64_t number;   /* 0, 1, 2.. over all files, without a gap */
    uint64_t offset;   /* place of bytes[0] in the whole corpus as unpacked */
    uint64_t line;     /* 1-based line of bytes[0] in its file */
    const char *path;  /* of the file; owned by the corpus */
    const struct columns_form *form; /* format of its lines; owned by the corpus; NULL: COLUMNS_PLAIN */
    const char *value_name;          /* name of the rating or weight column in the header, or ""; owned by the corpus */
    int line_open;     /* 1: this block's last line goes on in the next block, and has tokens so far */
    int continues;     /* 1: the first line of this block began in an earlier one, and has tokens there */
};

#define CORPUS_INPUT "-" /* the path that means standard input, which is read to its end when the corpus is opened */

/* Opens the files of `paths`, which are as corpus.path has them (config_paths). Returns NULL after fail(): nothing
 * there, not readable, no file in it. */
struct corpus *corpus_open(char *const *paths, uint64_t count);
void corpus_close(struct corpus *corpus);

/* Makes the file `fd` the corpus' text: blocks are read from it, while fingerprints and checks for changes still use the named
 * files or the gathered data. The corpus then owns `fd`. Returns 0, or -1 after fail(). */
int corpus_replace(struct corpus *corpus, int fd);

/* Opens data that a program has handed over (gathered.h), which stays the caller's and must outlive the corpus. It has
 * no files and no blocks. NULL after fail(). */
struct gathered;
struct corpus *corpus_open_gathered(struct gathered *gathered);
struct gathered *corpus_gathered(const struct corpus *corpus); /* NULL: the corpus is files */

/* Returns 1 with the next block, 0 at the end, -1 after fail(). The block is reused; corpus_block_release() frees its
 * bytes. */
int corpus_next(struct corpus *corpus, struct corpus_block *block);
void corpus_block_release(struct corpus_block *block);
void corpus_rewind(struct corpus *corpus);

/* Bytes that a block is filled to; a longer token makes it longer, up to max_word. Results do not depend on it. */
enum { CORPUS_BLOCK = 2 << 20 };
void corpus_set_block(struct corpus *corpus, uint64_t bytes);
/* Sets corpus.format and the user's keys about the format of lines (look.h). The strings in `options` must stay valid while the
 * corpus is read. Before this call, files are read as text. */
void corpus_read_as(struct corpus *corpus, const struct corpus_options *options);

/* Bytes of a word: the default of max_word, and the most that it allows. */
enum { CORPUS_WORD = 1 << 20, CORPUS_WORD_MOST = 64 << 20 };

enum { CORPUS_LOOK_FILES = 16 }; /* number of first files that are looked at to find the content of a corpus of many files */
/* Gives `take` the first bytes of the first files, in whole lines, one block a file, as corpus_next() would give them.
 * `take` returns 0, or -1 after fail(). It serves a look at the data before all of it is read. */
int corpus_look(const struct corpus *corpus, const struct corpus_options *options, uint64_t files,
                int (*take)(void *user, const struct corpus_block *block), void *user);

/* Returns the path of a corpus that is one encoded id stream (idstream.h), or NULL. */
#define CORPUS_STREAM_MAGIC "SPTX-IDS"
const char *corpus_stream(const struct corpus *corpus);

/* corpus_size: the bytes of all files on disk. corpus_read: the bytes read so far, for progress. */
uint64_t corpus_size(const struct corpus *corpus);
uint64_t corpus_done(const struct corpus *corpus);

/* Returns a number that changes when a path changes, or a file's size, its time of change or a sample of its bytes (all
 * bytes up to 256 KiB). A cache is checked against it. */
uint64_t corpus_fingerprint(const struct corpus *corpus);

/* Returns 0 if each file has the size and time that it had at corpus_open(), so that every reading saw the same bytes. Returns
 * -1 after fail(), which names a file that has changed. */
int corpus_check_unchanged(const struct corpus *corpus);

/* Begins a walk over the tokens of a block (tokens.h). */
void corpus_cursor_start(struct corpus_cursor *cursor, const struct corpus_block *block);

#endif
