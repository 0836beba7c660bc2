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

/* How bigrams are joined to phrases: the keys of [phrases]. The caller owns the strings. */
struct phrase_options {
    int joins; /* corpus.phrases */
    enum phrase_score score;
    uint64_t min_count, passes; /* number of passes; UINT64_MAX: as many as there are thresholds */
    const char *threshold;      /* "auto", or numbers separated by commas, one for each pass */
    const char *delimiter;      /* text between the words of a phrase */
    const char *connectors;     /* path of a file of words that may be within a phrase but not at its ends; "": no file */
    uint64_t memory;            /* bytes of memory for counting bigrams; UINT64_MAX: half of the available memory */
};

enum { PHRASE_PASSES = 16 }; /* largest number of thresholds */

/* Reads numbers separated by commas. Returns their number, or -1 if the text is not of this form. */
int phrase_thresholds(const char *text, double thresholds[PHRASE_PASSES]);

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

/* The kind of a field of a line: a word, a list's name, or a rating. */
enum token_part { PART_WORD, PART_NAME, PART_RATING };

struct corpus_fields;
struct corpus_field;
/* Stores the next field and returns 1; returns 0 at the end of the block; -1 after fail(). */
typedef int corpus_reader(struct corpus_fields *fields, struct corpus_field *field);

struct corpus_format_properties {
    const char *name;         /* value of corpus.format */
    corpus_reader *read;      /* reads a block field by field (fields.h) */
    const char *lines;        /* name of the lines in messages: "lists" */
    enum token_part parts[3]; /* meanings of a line's first field, its second field, and all later fields */
    int sentences;            /* 1: lines are running text, cut after corpus.max_sentence tokens */
    int targets;              /* 1: the first word of a line is a target, the others are its contexts */
    int documents;            /* 1: a line is a document: its name, which always has a row of its own, then text that is not cut */
    int names;                /* 1: lists have names, so each may have a row of its own (corpus_options.list_rows) */
    enum look_rows rows;      /* kind of row that a line is; look.h finds the columns by it */
    int columns;              /* 1: every line has the same columns, so corpus.columns may be set */
    int ratings;              /* 1: lines may have a column of ratings */
    int edges;                /* 1: a line is an edge, and the corpus is always encoded as a graph (graph.h) */
    int triples;              /* 1: a line is a triple, whose relation has a row of its own (fields.h) */
    const char *wanted;       /* for formats with columns: the fields of a line, for messages */
    int whole_lines;          /* 1: all fields of a line are read together, so blocks must end where lines end */
    int scattered;            /* 1: a line has only one item of a list; the list's other items may be in lines anywhere */
};
extern const struct corpus_format_properties corpus_formats[CORPUS_FORMATS];

/* Returns the meaning of field number `index` of a line. */
static inline enum token_part corpus_part(const struct corpus_format_properties *format, uint64_t index) {
    return format->parts[index < 2 ? index : 2];
}

/* The names of all formats, each after a separator of one byte ("|text|lists.."), and their descriptions; used by config.def. */
extern const char corpus_format_names[], corpus_format_help[];

/* corpus.order: how words get their ids. Numbered like the choices of this key in config.def. */
enum corpus_order { ORDER_FREQUENCY, ORDER_FIRST_SEEN, ORDER_GIVEN };

/* corpus.forget: which words leave if a run that grows has more than max_vocab. Numbered like the choices of this key in config.def. */
enum corpus_forget { FORGET_NO, FORGET_COUNT, FORGET_AGE };

/* graph.weights: whether edges have weights. Numbered like the choices of this key in config.def. */
enum corpus_weights { WEIGHTS_AUTO, WEIGHTS_YES, WEIGHTS_NO };

/* corpus.weights: the weight of a pair is 1, its rating, or log(1 + rating). Numbered like the choices of this key in config.def. */
enum pair_weights { PAIR_WEIGHTS_NONE, PAIR_WEIGHTS_LINEAR, PAIR_WEIGHTS_LOG };

/* How a corpus is read, and which words get rows: keys of [corpus], [phrases] and [graph]. The caller owns the strings. */
struct corpus_options {
    const char *path;  /* corpus.path as the user wrote it, for messages */
    const char *vocab; /* path of a vocabulary that is read instead of counting words; "" or NULL: words are counted */
    const struct vocab *older; /* vocabulary of an older run whose words are added; NULL: no words are added */
    const char *grown; /* for a resumed run that kept words of an older run: path of its vocab.tsv, which is read instead of
                        * counting words; otherwise NULL */
    enum corpus_format format;
    enum corpus_order order;
    struct look_keys look; /* the user's keys about the format of lines; look.h finds out what the user has not set */
    struct phrase_options phrases; /* which bigrams of a text are joined to one word before words are counted */
    uint64_t max_sentence;     /* most tokens of a sentence of running text; a longer one is cut */
    uint64_t max_word;     /* most bytes of a word; a longer word is an error; 0: CORPUS_WORD */
    uint64_t min_count;    /* words that occur less often are left out */
    uint64_t max_vocab;    /* most words that are kept: the most frequent ones; 0: all words. With `older`, it counts only new words, unless
                            * `forget` is set */
    enum corpus_forget forget; /* which words leave if the corpus and `older` together have more than max_vocab words */
    double min_rating;     /* pairs with a lower rating are left out; -infinity: all pairs are kept */
    enum pair_weights pair_weights; /* how a pair's weight depends on its rating; except with PAIR_WEIGHTS_NONE, pairs of weight 0 are left out */
    int directed;          /* graphs: 1 if an edge leads only from its first node to its second, 0 if it leads both ways */
    enum corpus_weights weights; /* graphs: whether edges have weights. WEIGHTS_AUTO means no weights until graph_settle() replaces it */
    int list_rows;         /* 1: each list has a row of its own, whose id is the first id of the list's sentence (vocab.h). For triples: each relation
                            * has a row, as lists have or, if `walked` is 1, as words have */
    int walked;            /* triples: 1 if they are encoded as a graph, over which walks go; 0: as an id stream */
    int reciprocal;        /* triples: 1 if each relation has a second row, which trains triples from tail to head (vocab.h) */
    char *said;            /* [LOOK_SAID] the last description of a file's format that was printed; the same text is not printed twice, even by
                            * several corpora that share `said`. NULL: not shared */
    double report_seconds; /* seconds between two updates of the progress line */
};

/* Returns 1 if the corpus is encoded as a graph (graph.h). */
static inline int corpus_is_graph(const struct corpus_options *options) {
    return corpus_formats[options->format].edges || options->walked;
}

/* Returns 1 if relations of triples are words of the vocabulary, which have counts and may be drawn as negatives (vocab.h). */
static inline int corpus_has_relation_words(const struct corpus_options *options) {
    return options->walked && options->list_rows;
}

/* Numbers of rows that were left out while a corpus was read. */
struct corpus_left {
    uint64_t rows;     /* all rows, also those that were kept */
    uint64_t loops;    /* edges from a node to itself */
    uint64_t zeros;    /* edges and pairs of weight 0, and pairs that did not happen according to the data */
    uint64_t low;      /* pairs with a rating below corpus.min_rating */
    uint64_t missing;  /* pairs without a list or an item */
    uint64_t events;   /* pairs whose event is not one of corpus.events */
    uint64_t literals; /* triples whose head or tail is a literal */
    uint64_t blanks;   /* triples whose head or tail is a blank node; these are kept */
    uint64_t graphs;   /* triples with a fourth term (the graph of N-Quads), which is ignored; these are kept */
};
void corpus_left_add(struct corpus_left *to, const struct corpus_left *some); /* threads may add at the same time */
/* Prints how many pairs or triples were left out, if any. Fails if no pair is left. `name`: name of the rating column, or "". */
int corpus_left_say(const struct corpus_left *left, const struct corpus_options *options);

struct corpus; /* the files of a run in order, with their open files */

/* Consecutive unpacked bytes of one file, which end at the end of a token. */
struct corpus_block {
    char *bytes;       /* owned by the block, which grows when needed; up to CORPUS_PADDING bytes after the last byte may be read */
    uint64_t length;   /* number of bytes of the block */
    uint64_t capacity;
    uint64_t skip;     /* number of bytes at the beginning that are not data (byte order mark, header) */
    uint64_t number;   /* number of the block, from 0, counted over all files */
    uint64_t offset;   /* number of bytes of the unpacked corpus before this block */
    uint64_t line;     /* number of the line, in its file, that contains bytes[0]; from 1 */
    const char *path;  /* the name of the file in messages; owned by the corpus */
    const struct columns_form *form; /* format of the file's lines; owned by the corpus; NULL: COLUMNS_PLAIN */
    const char *value_name;          /* name of the rating or weight column in the header, or ""; owned by the corpus */
    int tabs;          /* documents: 1 if the name at a line's beginning ends at a tab and may contain blanks */
    int line_open;     /* 1: the block's last line continues in the next block, and already has a token */
    int continues;     /* 1: the block's first line began in an earlier block, and has a token there */
};

#define CORPUS_INPUT "-" /* this path means standard input, which is read to its end when the corpus is opened */

/* Opens the files and directories that corpus.path names (config_paths() splits it). Returns NULL after fail(): a path does not
 * exist or is not readable, or a directory has no file in it. */
struct corpus *corpus_open(char *const *paths, uint64_t count);
void corpus_close(struct corpus *corpus);
/* Closes a corpus that a local pointer declared ENDED_BY(corpus_end) points to. */
static inline void corpus_end(struct corpus **corpus) {
    corpus_close(*corpus);
}

/* From now on, reads the corpus' text from the file `fd`. Fingerprints and checks for changes still use the original files or gathered data. The
 * corpus then owns `fd`. Returns 0, or -1 after fail(). */
int corpus_replace(struct corpus *corpus, int fd);

/* Opens a corpus of data that a program has handed over (numbered.h); it has no files and no blocks. `gathered` stays the
 * caller's and must outlive the corpus. Returns NULL after fail(). */
struct gathered;
struct corpus *corpus_open_gathered(struct gathered *gathered);
struct gathered *corpus_gathered(const struct corpus *corpus); /* returns NULL if the corpus is read from files */

/* Tells vocab_build() to write each word's number to `numbered` (numbered.h) while it counts words, so that encoding need not read the text again.
 * The caller owns `numbered`. corpus_numbered() returns it, or NULL if none was set. */
struct numbered;
void corpus_set_numbered(struct corpus *corpus, struct numbered *numbered);
struct numbered *corpus_numbered(const struct corpus *corpus);

/* Reads the next block into `block`, whose memory is reused. Returns 1; 0 at the end; -1 after fail(). corpus_block_release() frees it. */
int corpus_next(struct corpus *corpus, struct corpus_block *block);
void corpus_block_release(struct corpus_block *block);
void corpus_rewind(struct corpus *corpus);

/* Default size of a block in bytes. A block grows beyond it if a token is longer (up to max_word). Results do not depend on the
 * size. */
enum { CORPUS_BLOCK = 2 << 20, CORPUS_PADDING = 64 };
void corpus_set_block(struct corpus *corpus, uint64_t bytes);
uint64_t corpus_block_bytes(const struct corpus *corpus);
/* Sets how many threads may unpack one file together; without this call 1. */
void corpus_set_threads(struct corpus *corpus, unsigned threads);
/* Sets corpus.format, corpus.max_word and the user's keys about the format of lines (look.h). The strings in `options` must stay
 * valid while the corpus is read. Before this call, files are read as text. Of several files of documents it looks at the first ones:
 * each file is a document, unless their lines agree on names. Returns 0, or -1 after fail(). */
int corpus_read_as(struct corpus *corpus, const struct corpus_options *options);

/* The format of lines on which all files of a corpus agree, as keys: with these keys the files are read the same way again. */
struct corpus_found {
    struct look_keys keys;  /* the caller's keys, with "auto" replaced where all files agree. `columns` points to the field below, or to the
                             * caller's text */
    char columns[96];
    char said[LOOK_SAID];   /* the description of the first file's format (look.said); "": lines have no fields */
};
/* Examines the first CORPUS_LOOK_FILES files, prints their formats, and fills in *found, which must outlive the corpus because
 * encode_fingerprint() reads it. Says if files of training, validation and test are all read. If there are more files, fills in `names` only.
 * Returns 0, or -1 after fail(). */
int corpus_find(struct corpus *corpus, const struct corpus_options *options, struct corpus_found *found);
const struct look_keys *corpus_keys(const struct corpus *corpus); /* found->keys; NULL: corpus_find() was not called */

/* Longest word in bytes: the default of corpus.max_word, and the largest value that it may have. */
enum { CORPUS_WORD = 1 << 20, CORPUS_WORD_MOST = 64 << 20 };

enum { CORPUS_LOOK_FILES = 16 }; /* number of files whose first lines are examined: the first files of the corpus */
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
