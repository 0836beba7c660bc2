/* corpus: reads files and directories, plain or compressed, as blocks of bytes that end where a token ends.
 *
 *   paths -> files in order (of a directory: its files and those of its subdirectories, by name) -> unpacked if their
 *   first bytes are those of a packed file -> blocks of a few MiB, numbered -> tokens
 *
 * Any thread may ask for the next block. Threads read a file that is not packed by ranges, each without waiting for the others; a
 * packed file is unpacked by one thread at a time. A block never cuts a token in two. It may cut a line, since a text may have no
 * line ends: then line_open is 1, and the block's last line continues in the next block.
 *
 * A token is a run of bytes other than blank, TAB, LF, CR, VT and FF. All these bytes are kept, even NUL and invalid UTF-8; only a
 * byte order mark at the beginning of a file is left out. Lines end in LF, or in CR if the file has no LF.
 *
 * A file that is not text is refused when the corpus is opened, by its first bytes (first_bytes.h). A token of more than max_word bytes is
 * refused when it is read.
 */
#ifndef SPTX_CORPUS_H
#define SPTX_CORPUS_H

#include "first_bytes.h"
#include "look.h"
#include "tokens.h"

#include <stdint.h>

/* phrase_score: decides which bigrams are phrases, as word2phrase and gensim's Phrases do. A bigram is joined if its score is above
 * the threshold. a, b: counts of its first and its last word; ab: count of the bigram.
 *
 *   word2phrase   (ab - min_count) / a / b * words, in float32; 0 if a, b or ab is below min_count
 *   default       (ab - min_count) / (a * b) * distinct words and bigrams
 *   npmi          ln(p(ab) / (p(a) p(b))) / -ln p(ab); -infinity if ab is below min_count
 */

/* Numbered in the order of phrases.score in config.def. */
enum phrase_score { PHRASES_WORD2PHRASE, PHRASES_DEFAULT, PHRASES_NPMI };

/* How words are joined: the keys of [phrases]. The caller owns the strings. */
struct phrase_options {
    int joins; /* corpus.phrases */
    enum phrase_score score;
    uint64_t min_count, passes; /* number of passes; UINT64_MAX: as many as there are thresholds */
    const char *threshold;      /* "auto", or numbers separated by commas, one for each pass */
    const char *delimiter;      /* text between the words of a phrase */
    const char *connectors;     /* path of a file of words that may be within a phrase but neither begin nor end it; "": no such
                                 * words */
    uint64_t memory;            /* bytes of memory for counting bigrams; UINT64_MAX: half of the available memory */
};

enum { PHRASE_PASSES = 16 }; /* largest number of thresholds */

/* Reads numbers separated by commas. Returns how many there are, or -1 if the text is anything else. */
int phrase_thresholds(const char *text, double thresholds[PHRASE_PASSES]);

/* Stores the threshold of each pass. Returns the number of passes, or -1 after fail() if the options contradict each other. */
int phrase_passes(const struct phrase_options *options, double thresholds[PHRASE_PASSES]);

struct phrase_totals {
    uint64_t words, distinct; /* number of words in the text; number of different words and bigrams */
};
double phrase_score(const struct phrase_options *options, const struct phrase_totals *totals, uint64_t a, uint64_t b, uint64_t ab);

/* format: the formats of a corpus and their properties, as a table (formats.def). Code that depends on the format tests a
 * property; it does not compare with a format's name.
 *
 *   block of bytes -> the format's reader -> fields (a word, the name of a list, a line's end), one at a time
 */

enum corpus_format {
#define FORMAT(name, enumerator, ...) enumerator,
#include "formats.def"
    CORPUS_FORMATS
};

/* The meaning of a field of a line. */
enum token_part { PART_WORD, PART_NAME, PART_RATING };

struct corpus_fields;
struct corpus_field;
/* Stores the next field and returns 1; returns 0 at the end of the block; -1 after fail(). */
typedef int corpus_reader(struct corpus_fields *fields, struct corpus_field *field);

struct corpus_format_properties {
    const char *name;         /* value of corpus.format */
    corpus_reader *read;      /* reads a block field by field (fields.h) */
    const char *lines;        /* name of the lines in messages: "lists" */
    enum token_part parts[3]; /* meaning of a line's first field, of its second field, and of all later fields */
    int sentences;            /* 1: lines are running text, cut after corpus.max_sentence tokens */
    int targets;              /* 1: the first word of a line is a target, the others are its contexts */
    int documents;            /* 1: a line is a document: its name, which always has a row of its own, then text that is not cut */
    int names;                /* 1: lists have names, so each may have a row of its own (corpus_options.list_rows) */
    enum look_rows rows;      /* the meaning of a line, for finding its format (look.h) */
    int columns;              /* 1: all lines have the same columns, and corpus.columns may be set */
    int ratings;              /* 1: lines may have a column of ratings */
    int edges;                /* 1: a line is an edge, and the corpus is encoded as a graph (graph.h) instead of an id stream */
    int triples;              /* 1: a line is a triple, whose relation has a row of its own (fields.h) */
    const char *wanted;       /* for formats with columns: the fields of a line, for messages */
    int whole_lines;          /* 1: all fields of a line are read together, so blocks must end where lines end */
    int scattered;            /* 1: a line has one item of a list, and other lines anywhere may have its other items */
};
extern const struct corpus_format_properties corpus_formats[CORPUS_FORMATS];

/* Returns the meaning of field number `index` of a line. */
static inline enum token_part corpus_part(const struct corpus_format_properties *format, uint64_t index) {
    return format->parts[index < 2 ? index : 2];
}

/* The names of all formats, each after a separator of one byte ("|text|lists.."), and their descriptions; used by config.def. */
extern const char corpus_format_names[], corpus_format_help[];

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
    const struct vocab *older; /* vocabulary of an older run whose words are added; NULL: no words are added */
    const char *grown; /* for a resumed run that kept words of an older run: path of its vocab.tsv, which is read instead of
                        * counting words; otherwise NULL */
    enum corpus_format format;
    enum corpus_order order;
    struct look_keys look; /* the user's keys about the format of lines; for keys that are not set, look.h finds the format */
    struct phrase_options phrases; /* which words of a text are joined before they are counted */
    uint64_t max_sentence;     /* most tokens of a sentence of running text; a longer one is cut */
    uint64_t max_word;     /* most bytes of a word; a longer word is an error; 0: CORPUS_WORD */
    uint64_t min_count;    /* words that occur less often are left out */
    uint64_t max_vocab;    /* most words that are kept: the most frequent ones; 0: all words */
    double min_rating;     /* pairs with a lower rating are left out; -infinity: all pairs are kept */
    enum pair_weights pair_weights; /* how pairs are weighted by their ratings; unless it is PAIR_WEIGHTS_NONE, pairs of weight 0
                                     * are left out */
    int directed;          /* for graphs: 1: an edge leads only from its first node to its second; 0: it leads both ways */
    enum corpus_weights weights; /* for graphs: whether edges have weights. graph_settle() replaces WEIGHTS_AUTO; before it,
                                  * WEIGHTS_AUTO means no weights */
    int list_rows;         /* 1: each list has a row of its own, whose id is the first id of the list's sentence (vocab.h).
                            * Always 1 for triples, whose relations are the lists */
    int reciprocal;        /* for triples: 1: each relation has a second row, for triples from tail to head (vocab.h) */
    char *said;            /* [LOOK_SAID] the last printed description of a file's format, which is not printed again: for several corpora
                            * of one question. NULL: each corpus has its own */
    double report_seconds; /* seconds between two updates of the progress line */
};

/* Numbers of rows that were left out while a corpus was read. */
struct corpus_left {
    uint64_t rows;     /* all rows, also those that were kept */
    uint64_t loops;    /* edges from a node to itself */
    uint64_t zeros;    /* edges and pairs of weight 0, and pairs of which the data says that they did not happen */
    uint64_t low;      /* pairs with a rating below corpus.min_rating */
    uint64_t missing;  /* pairs without a list or an item */
    uint64_t events;   /* pairs with an event that corpus.events does not name */
    uint64_t literals; /* triples of which one end is a literal */
    uint64_t blanks;   /* triples of which one end is a blank node; they are kept */
    uint64_t graphs;   /* triples with a fourth term, N-Quads' graph, which is not read; they are kept */
};
void corpus_left_add(struct corpus_left *to, const struct corpus_left *some); /* threads may add at the same time */
/* Prints what was left out of pairs or triples, if there is something. Fails if nothing is left of pairs. `name`: name of the column
 * of ratings, or "". */
int corpus_left_say(const struct corpus_left *left, const struct corpus_options *options);

struct corpus; /* the files of a run in order, with their open files */

/* Consecutive bytes of one file, unpacked, that end where a token ends. */
struct corpus_block {
    char *bytes;       /* owned by the block, grown when needed; CORPUS_PADDING bytes after the last one may be read */
    uint64_t length;   /* number of bytes of the block */
    uint64_t capacity;
    uint64_t skip;     /* number of bytes at the beginning that are not data: a byte order mark, a header */
    uint64_t number;   /* number of the block, from 0, counted over all files */
    uint64_t offset;   /* number of bytes of the unpacked corpus before this block */
    uint64_t line;     /* number of the line, in its file, that contains bytes[0]; from 1 */
    const char *path;  /* the name of the file in messages; owned by the corpus */
    const struct columns_form *form; /* format of the file's lines; owned by the corpus; NULL: COLUMNS_PLAIN */
    const char *value_name;          /* name of the rating or weight column in the header, or ""; owned by the corpus */
    int tabs;          /* documents, 1: the name at a line's beginning ends at a tab, and may contain blanks */
    int line_open;     /* 1: the block's last line continues in the next block, and already has a token */
    int continues;     /* 1: the block's first line began in an earlier block, and has a token there */
};

#define CORPUS_INPUT "-" /* this path means standard input, which is read to its end when the corpus is opened */

/* Opens the files and directories that corpus.path names (config_paths() splits it). Returns NULL after fail(): a path does not
 * exist or is not readable, or a directory has no file in it. */
struct corpus *corpus_open(char *const *paths, uint64_t count);
void corpus_close(struct corpus *corpus);

/* Replaces the corpus' text by the file `fd`: blocks are then read from it. Fingerprints and checks for changes still use the
 * original files or gathered data. The corpus owns `fd` from now on. Returns 0, or -1 after fail(). */
int corpus_replace(struct corpus *corpus, int fd);

/* Opens a corpus of data that a program has handed over (numbered.h); it has no files and no blocks. `gathered` stays the
 * caller's and must outlive the corpus. Returns NULL after fail(). */
struct gathered;
struct corpus *corpus_open_gathered(struct gathered *gathered);
struct gathered *corpus_gathered(const struct corpus *corpus); /* returns NULL if the corpus is read from files */

/* Sets where the numbers of the corpus' words are written when its words are counted (numbered.h), so that encoding needs no second
 * reading. The caller owns `numbered`. corpus_numbered() returns NULL if nothing was set. */
struct numbered;
void corpus_set_numbered(struct corpus *corpus, struct numbered *numbered);
struct numbered *corpus_numbered(const struct corpus *corpus);

/* Reads the next block into `block`, whose memory is used again. Returns 1; 0 at the end; -1 after fail().
 * corpus_block_release() frees the block's bytes. */
int corpus_next(struct corpus *corpus, struct corpus_block *block);
void corpus_block_release(struct corpus_block *block);
void corpus_rewind(struct corpus *corpus);

/* Default size of a block in bytes. A block grows beyond it if a token is longer (up to max_word). Results do not depend on the
 * size. */
enum { CORPUS_BLOCK = 2 << 20, CORPUS_PADDING = 64 };
void corpus_set_block(struct corpus *corpus, uint64_t bytes);
uint64_t corpus_block_bytes(const struct corpus *corpus);
/* Sets how many threads may unpack a file together; 1 before this call. */
void corpus_set_threads(struct corpus *corpus, unsigned threads);
/* Sets corpus.format, corpus.max_word and the user's keys about the format of lines (look.h). The strings in `options` must stay
 * valid while the corpus is read. Before this call, files are read as text. Of several files of documents it looks at the first ones:
 * each file is a document, unless their lines agree on names. Returns 0, or -1 after fail(). */
int corpus_read_as(struct corpus *corpus, const struct corpus_options *options);

/* The form that the look found in all files of a corpus. Its keys read the same files the same way again. */
struct corpus_found {
    struct look_keys keys;  /* as the caller set them; "auto" is replaced where all files agree. `columns` points to the field below, or
                             * to the caller's text */
    char columns[96];
    char said[LOOK_SAID];   /* look.said of the first file; "": files have no fields */
};
/* Looks at the files, prints their formats, and fills in *found, which must outlive the corpus: encode_fingerprint() uses it. Also
 * says if files of training, validation and test are all read. Files beyond the first CORPUS_LOOK_FILES are not looked at, and then only
 * `names` is filled in. Returns 0, or -1 after fail(). */
int corpus_find(struct corpus *corpus, const struct corpus_options *options, struct corpus_found *found);
const struct look_keys *corpus_keys(const struct corpus *corpus); /* found->keys; NULL: corpus_find() was not called */

/* Bytes of a word: the default of corpus.max_word, and its highest value. */
enum { CORPUS_WORD = 1 << 20, CORPUS_WORD_MOST = 64 << 20 };

enum { CORPUS_LOOK_FILES = 16 }; /* most files whose first lines are examined: the first files of the corpus */
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

/* Returns 0 if each file still has the size and the modification time that it had at corpus_open(): then all readings saw the
 * same bytes. Otherwise returns -1 after fail(), which names a changed file. */
int corpus_check_unchanged(const struct corpus *corpus);

/* Sets the cursor to the first token of a block (tokens.h). */
void corpus_cursor_start(struct corpus_cursor *cursor, const struct corpus_block *block);

#endif
