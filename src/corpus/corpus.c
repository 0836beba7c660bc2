#define _GNU_SOURCE
#include "corpus.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "numbered.h"
#include "reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

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
    struct corpus_file *replaced; /* [replaced_count] the original files, if corpus_replace() replaced their text; NULL: it did not */
    uint64_t replaced_count;
    int replacement; /* descriptor of the nameless file with the replacing text; -1: corpus_replace() was not called */
    struct numbered *numbered;          /* owned by the caller; NULL: not set */
    struct gathered *gathered;          /* owned by the caller; NULL: the corpus is read from files */
    struct gathered *replaced_gathered; /* the original gathered data, if corpus_replace() replaced its text; NULL: it did not */

    pthread_mutex_t lock; /* held while the fields below are used */
    pthread_cond_t moved; /* `placed` or `failed` has changed */
    struct reader reader; /* reads the current file; only one file is open at a time */
    unsigned threads;     /* number of threads that may unpack a file together */
    uint64_t at;          /* for a file that is not compressed: the offset at which the next range begins */
    uint64_t taken, placed; /* taken: ranges that threads have begun to read; placed: ranges of these that have become blocks, in the file's order */
    int failed;           /* 1: a thread has failed, so no more blocks are returned */
    uint64_t next;        /* index of the next file to open */
    uint64_t skip;        /* bytes at the current file's beginning that are not data (header, byte order mark) and are not in a block yet */
    char own_said[LOOK_SAID]; /* the last printed description of a file's format (look.said) */
    char *said;               /* points to it, or to corpus_options.said */
    int said_rows;        /* number of files whose lines look like another format; only the first is named in a warning */
    int said_encoding;    /* number of files that are not UTF-8; only the first is named in a warning */
    int file_named;       /* 1: the current file is one document, and a block already contains its name, the file's path */
    uint64_t list_lines;   /* for lists without names: number of lines read so far; a list is named by the number of its line */
    char *carry;          /* bytes that were read together with an earlier block and belong to the next block */
    uint64_t carried, carry_capacity;
    uint64_t number, offset, line; /* values of the fields of the same names in the next struct corpus_block */
    int line_open;
    _Atomic uint64_t done;
};

static const struct columns_form *corpus_form(const struct corpus_file *file) {
    return &file->front.look.form;
}

/* Returns what to look for in the first bytes of a file. */
static struct first_look corpus_wanted(const struct corpus_file *file, const struct corpus_format_properties *format,
                                              const struct look_keys *keys) {
    return (struct first_look){.path = file->path, .name = file->name, .rows = format->rows, .keys = keys};
}

static uint64_t count_newlines(const char *bytes, uint64_t length) {
    uint64_t total = 0;
    while (length) {
        uint64_t piece = length < 4096 ? length : 4096;
        uint32_t count = 0;
        for (uint64_t i = 0; i < piece; i++) count += bytes[i] == '\n';
        total += count;
        bytes += piece;
        length -= piece;
    }
    return total;
}

/* ---- the corpus' files ---- */

static const char input_name[] = "standard input";

/* Stores a hash of some bytes of the file in *sample. It notices a change that keeps the file's size and modification time, as tar, rsync and
 * touch can. A small file is hashed whole; of a larger file, up to 65 blocks at equal distances, including the first and the last. Returns 0, or
 * -1 with errno. */
static int sample_bytes(int fd, uint64_t size, uint64_t *sample) {
    enum { BLOCK = 4096, BLOCKS = 64 };
    char block[BLOCK];
    uint64_t last = size > BLOCK ? size - BLOCK : 0, steps = last / BLOCK < BLOCKS ? last / BLOCK + 1 : BLOCKS;
    *sample = 0;
    for (uint64_t i = 0; i <= steps; i++) {
        int64_t n = retry_read_at(fd, block, sizeof block, (uint64_t)((unsigned __int128)last * i / steps));
        if (n < 0) return -1;
        *sample = XXH3_64bits_withSeed(block, (size_t)n, *sample);
    }
    return 0;
}

/* Adds a file, and opens it once: a file that cannot be read or is not text is found now, and not after hours of counting. name: how messages call
 * the file; NULL: by its path. */
static int add_file(struct corpus *corpus, const char *path, const char *name) {
    struct stat about;
    char magic[8];
    uint64_t sample = 0;
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return -1;
    int result = fstat(fd, &about) ? fail_system("look at", path) : 0;
    int64_t n = result ? 0 : retry_read_at(fd, magic, sizeof magic, 0);
    if (n < 0 || (!result && sample_bytes(fd, (uint64_t)about.st_size, &sample))) result = fail_system("read", path);
    close(fd);
    if (result ||
        mem_grow(&corpus->files, &corpus->capacity, corpus->count + 1, sizeof *corpus->files, "the corpus' files"))
        return -1;
    struct corpus_file *file = &corpus->files[corpus->count];
    *file = (struct corpus_file){.path = mem_text(path, strlen(path), "a path"),
                                 .size = (uint64_t)about.st_size,
                                 .modified = {(uint64_t)about.st_mtim.tv_sec, (uint64_t)about.st_mtim.tv_nsec},
                                 .sample = sample};
    file->name = name ? name : file->path;
    if (!file->path) return -1;
    corpus->count++;
    corpus->size += file->size;
    int stream = n == sizeof magic && !memcmp(magic, CORPUS_STREAM_MAGIC, sizeof magic);
    if (stream) corpus->stream = 1;
    return stream ? 0 : first_bytes_check(path, file->name);
}

/* Adds the plain files in a directory and its subdirectories, and links to plain files. Links to directories are not followed, since they may lead
 * in a circle. Other kinds, such as sockets and pipes, are skipped. */
static int add_directory(struct corpus *corpus, const char *path) {
    struct stat own, about;
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count; i++) {
        int hidden = *names[i] == '.'; /* skipped: hidden files belong to an editor or to the system */
        OWNED char *inner = result || hidden ? NULL : file_join(path, names[i]);
        if (!hidden && !inner) result = -1;
        else if (!hidden && (lstat(inner, &own) || stat(inner, &about))) result = fail_system("look at", inner);
        else if (!hidden && S_ISDIR(own.st_mode)) result = add_directory(corpus, inner);
        else if (!hidden && S_ISREG(about.st_mode)) result = add_file(corpus, inner, NULL);
        free(names[i]);
    }
    free(names);
    return result;
}

static int add_path(struct corpus *corpus, const char *path) {
    struct stat about;
    uint64_t before = corpus->count;
    if (!strcmp(path, CORPUS_INPUT)) { /* copied into a nameless file, since a corpus is read more than once */
        char spool[64];
        if (corpus->spool >= 0) return fail("standard input (-) is named twice, and can be read once");
        corpus->spool = spool_all(STDIN_FILENO, input_name);
        snprintf(spool, sizeof spool, "/proc/self/fd/%d", corpus->spool);
        return corpus->spool < 0 ? -1 : add_file(corpus, spool, input_name);
    }
    if (stat(path, &about)) return fail_system("open", path);
    if (S_ISREG(about.st_mode)) return add_file(corpus, path, NULL);
    if (!S_ISDIR(about.st_mode))
        return fail("'%s' is neither a plain file nor a directory; the corpus is read more than once, and of pipes only - is kept",
                    path);
    if (add_directory(corpus, path)) return -1;
    return corpus->count > before ? 0 : fail("directory '%s' holds no file", path);
}

int corpus_replace(struct corpus *corpus, int fd) {
    char path[64];
    corpus->replaced_gathered = corpus->gathered;
    corpus->gathered = NULL;
    corpus->replaced = corpus->files;
    corpus->replaced_count = corpus->count;
    corpus->files = NULL;
    corpus->count = corpus->capacity = corpus->size = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (add_file(corpus, path, "the joined text")) return -1;
    corpus->replacement = fd;
    return 0;
}

static struct corpus *make_corpus(void) {
    struct corpus *corpus = mem_zalloc(1, sizeof *corpus, "the corpus");
    if (!corpus) return NULL;
    corpus->said = corpus->own_said;
    pthread_mutex_init(&corpus->lock, NULL);
    pthread_cond_init(&corpus->moved, NULL);
    corpus->reader.fd = corpus->spool = corpus->replacement = -1;
    corpus->threads = 1;
    corpus->block_bytes = CORPUS_BLOCK;
    corpus->max_word = CORPUS_WORD;
    corpus->format = corpus_formats;
    return corpus;
}

struct corpus *corpus_open_gathered(struct gathered *gathered) {
    struct corpus *corpus = make_corpus();
    if (corpus) corpus->gathered = gathered;
    return corpus;
}

struct gathered *corpus_gathered(const struct corpus *corpus) {
    return corpus->gathered;
}

void corpus_set_numbered(struct corpus *corpus, struct numbered *numbered) {
    corpus->numbered = numbered;
}

struct numbered *corpus_numbered(const struct corpus *corpus) {
    return corpus->numbered;
}

struct corpus *corpus_open(char *const *paths, uint64_t count) {
    struct corpus *corpus = make_corpus();
    if (!corpus) return NULL;
    int result = count ? 0 : fail("no corpus is named; set corpus.path to a file or a directory");
    for (uint64_t i = 0; i < count && !result; i++) result = add_path(corpus, paths[i]);
    if (!result && corpus->stream && corpus->count > 1)
        result = fail("an id stream is among the %" PRIu64 " files of the corpus; it can only be the whole corpus",
                      corpus->count);
    if (!result) {
        corpus_rewind(corpus);
        return corpus;
    }
    corpus_close(corpus);
    return NULL;
}

const char *corpus_stream(const struct corpus *corpus) {
    return corpus->stream ? corpus->files[0].path : NULL;
}

uint64_t corpus_size(const struct corpus *corpus) {
    return corpus->size;
}

uint64_t corpus_done(const struct corpus *corpus) {
    return atomic_load_explicit(&corpus->done, memory_order_relaxed);
}

/* Returns the files that the user named, even if corpus_replace() has replaced their text. */
static const struct corpus_file *named_files(const struct corpus *corpus, uint64_t *count) {
    int replaced = corpus->replacement >= 0;
    *count = replaced ? corpus->replaced_count : corpus->count;
    return replaced ? corpus->replaced : corpus->files;
}

uint64_t corpus_fingerprint(const struct corpus *corpus) {
    uint64_t count, sum;
    const struct corpus_file *files = named_files(corpus, &count);
    const struct gathered *gathered = corpus->gathered ? corpus->gathered : corpus->replaced_gathered;
    sum = gathered ? gathered_fingerprint(gathered) : count;
    for (uint64_t i = 0; i < count; i++) {
        const struct corpus_file *file = &files[i];
        uint64_t facts[] = {file->size, file->modified[0], file->modified[1], file->sample};
        sum = XXH3_64bits_withSeed(file->path, strlen(file->path), sum);
        sum = XXH3_64bits_withSeed(facts, sizeof facts, sum);
    }
    return sum;
}

int corpus_check_unchanged(const struct corpus *corpus) {
    uint64_t count;
    const struct corpus_file *files = named_files(corpus, &count);
    for (uint64_t i = 0; i < count; i++) {
        const struct corpus_file *file = &files[i];
        struct stat now;
        if (stat(file->path, &now)) return fail_system("look at", file->path);
        if ((uint64_t)now.st_size != file->size)
            return fail("'%s' was changed while it was read: it had %" PRIu64 " bytes and has %" PRIu64 "; train when nothing writes to it",
                        file->path, file->size, (uint64_t)now.st_size);
        if ((uint64_t)now.st_mtim.tv_sec != file->modified[0] || (uint64_t)now.st_mtim.tv_nsec != file->modified[1])
            return fail("'%s' was written to while it was read; train when nothing writes to it", file->path);
    }
    return 0;
}

void corpus_set_block(struct corpus *corpus, uint64_t bytes) {
    corpus->block_bytes = bytes ? bytes : 1;
}

uint64_t corpus_block_bytes(const struct corpus *corpus) {
    return corpus->block_bytes;
}

/* Returns the user's keys about lines, without those that do not apply to this format. */
static struct look_keys keys_of(const struct corpus_options *options) {
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    struct look_keys keys = options->look;
    if (!format->columns) keys.columns = NULL;
    return keys;
}

static int keys_are_alike(const struct look_keys *a, const struct look_keys *b) {
    const char *one = a->columns ? a->columns : "", *other = b->columns ? b->columns : "";
    return a->header == b->header && a->names == b->names && a->separator == b->separator && a->no_values == b->no_values &&
           !strcmp(one, other) && !strcmp(a->events ? a->events : "", b->events ? b->events : "") && a->hints == b->hints;
}

void corpus_set_threads(struct corpus *corpus, unsigned threads) {
    corpus->threads = threads;
}

/* For a corpus of several document files: decides whether each file is one document. It is, unless the first files' lines agree on what names a
 * document. */
static int find_naming(struct corpus *corpus, struct look_keys *keys) {
    char said[LOOK_SAID] = "";
    for (uint64_t i = 0; i < corpus->count && i < CORPUS_LOOK_FILES && keys->names == NAMES_AUTO; i++) {
        struct first_look wanted = corpus_wanted(&corpus->files[i], corpus->format, keys);
        struct first_bytes front;
        if (first_bytes_look(&front, &wanted)) return -1;
        if (!front.look.sure || (*said && strcmp(said, front.look.said))) keys->names = NAMES_FILE;
        snprintf(said, sizeof said, "%s", front.look.said);
    }
    return 0;
}

int corpus_read_as(struct corpus *corpus, const struct corpus_options *options) {
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    struct look_keys keys = keys_of(options);
    int alike = keys_are_alike(&keys, &corpus->asked) && format == corpus->format;
    corpus->max_word = options->max_word ? options->max_word : CORPUS_WORD;
    corpus->said = options->said ? options->said : corpus->own_said;
    if (alike) return 0;
    for (uint64_t i = 0; i < corpus->count; i++) corpus->files[i].looked_at = 0;
    corpus->format = format;
    corpus->asked = keys;
    keys.files = corpus->count < INT_MAX ? (int)corpus->count : INT_MAX;
    int several = format->documents && corpus->count > 1 && !corpus->stream && keys.separator == SEPARATOR_AUTO && !(keys.columns && *keys.columns);
    int result = several ? find_naming(corpus, &keys) : 0;
    corpus->keys = keys;
    return result;
}

void corpus_left_add(struct corpus_left *to, const struct corpus_left *some) {
    uint64_t *sums = (uint64_t *)(void *)to;
    const uint64_t *one = (const uint64_t *)(const void *)some;
    for (size_t i = 0; i < sizeof *to / sizeof *sums; i++) __atomic_fetch_add(&sums[i], one[i], __ATOMIC_RELAXED);
}

/* Prints how many rows of how many were left out, and why. */
static void say_left(uint64_t count, const struct corpus_left *left, const char *rows, const char *why) {
    char some[TEXT_BYTES], all[TEXT_BYTES];
    if (count) remark("left out   %s of %s %.*s%s", text_of_count(some, count), text_of_count(all, left->rows), TEXT_NOUN(left->rows, rows), why);
}

int corpus_left_say(const struct corpus_left *left, const struct corpus_options *options) {
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    char kept[TEXT_BYTES];
    say_left(left->literals, left, "triples", ", whose subject or object is a literal (corpus.literals = yes keeps them)");
    if (left->blanks)
        remark("kept       %s triple%s with blank nodes, which are entities of their file alone", text_of_count(kept, left->blanks),
               text_plural(left->blanks));
    if (left->graphs)
        remark("unused     the fourth term of %s line%s, the graph of N-Quads", text_of_count(kept, left->graphs), text_plural(left->graphs));
    if (!format->ratings) return 0;
    if (left->rows && left->zeros == left->rows)
        return fail("all %" PRIu64 " ratings of the corpus '%s' are 0, and pairs of rating 0 are left out; corpus.columns = LIST,ITEM reads "
                    "pairs without ratings",
                    left->rows, options->path);
    if (left->rows && left->missing == left->rows)
        return fail("no line of the corpus '%s' has both a list and an item: their columns are empty", options->path);
    if (left->rows && left->events == left->rows)
        return fail("no pair of the corpus '%s' has an event that corpus.events = %s names", options->path, options->look.events);
    say_left(left->missing, left, "pairs", ", which have no list or no item");
    say_left(left->zeros, left, "pairs", ", whose rating is 0");
    say_left(left->events, left, "pairs", ", whose event corpus.events does not name");
    return 0;
}

void corpus_close(struct corpus *corpus) {
    if (!corpus) return;
    reader_close(&corpus->reader);
    for (uint64_t i = 0; i < corpus->count; i++) free(corpus->files[i].path);
    for (uint64_t i = 0; i < corpus->replaced_count; i++) free(corpus->replaced[i].path);
    if (corpus->spool >= 0) close(corpus->spool);
    if (corpus->replacement >= 0) close(corpus->replacement);
    mem_free(corpus->files, corpus->replaced, corpus->carry);
    pthread_mutex_destroy(&corpus->lock);
    pthread_cond_destroy(&corpus->moved);
    free(corpus);
}

int corpus_look(const struct corpus *corpus, const struct corpus_options *options, uint64_t files,
                int (*take)(void *user, const struct corpus_block *block), void *user) {
    int result = 0;
    for (uint64_t i = 0; i < corpus->count && i < files && !result; i++) {
        struct first_bytes front;
        struct corpus_block block = {.path = corpus->files[i].name, .line = 1};
        const struct look_keys keys = keys_of(options);
        struct first_look wanted = corpus_wanted(&corpus->files[i], &corpus_formats[options->format], &keys);
        block.bytes = first_bytes_read(&front, &wanted, &block.length);
        block.form = &front.look.form;
        block.value_name = front.look.value;
        block.skip = front.skip < block.length ? front.skip : block.length;
        result = block.bytes ? take(user, &block) : -1;
        free(block.bytes);
    }
    return result;
}

/* ---- tokens ---- */

void corpus_cursor_start(struct corpus_cursor *cursor, const struct corpus_block *block) {
    *cursor = (struct corpus_cursor){block->bytes + block->skip, block->bytes + block->length,
                                     block->line + count_newlines(block->bytes, block->skip)};
}

/* ---- blocks ---- */

/* Blocks of a corpus. An uncompressed file is cut into ranges of equal length; each is read by one thread, without a lock. A file may be cut only
 * at some offsets; a block begins at the first of these from the range's begin on, and ends at the first from the range's end on. The blocks then
 * get their numbers in the file's order. A compressed file is read by one thread at a time, which holds the lock. */

/* Returns 1 if blocks may end only where lines end, because the format reads whole lines, allows blanks in words, or numbers its lines. */
static int needs_whole_lines(const struct corpus *corpus, const struct corpus_file *file) {
    if (corpus->format->whole_lines) return 1;
    const struct columns_form *form = corpus_form(file);
    return corpus->format->rows != LOOK_TEXT && (*form->separator != ' ' || form->quotes != QUOTES_BYTES || form->naming == NAMED_BY_LINE);
}

/* ---- blocks ---- */

/* Returns where a block may be cut: just after the last white-space byte (or line end) of bytes[looked .. length - 2]; 0 if it contains none. The
 * very last byte is left to the next block, so that another block follows unless the file has ended. */
static uint64_t find_cut(const struct corpus_block *block, uint64_t looked, int whole_lines) {
    if (whole_lines) {
        const char *newline = memrchr(block->bytes + looked, '\n', block->length - 1 - looked);
        return newline ? (uint64_t)(newline - block->bytes) + 1 : 0;
    }
    for (uint64_t i = block->length - 1; i > looked; i--)
        if (token_is_white(block->bytes[i - 1])) return i;
    return 0;
}

static int left_open(const struct corpus_block *block, int before) {
    for (uint64_t i = block->length; i > block->skip; i--) {
        if (block->bytes[i - 1] == '\n') return 0;
        if (!token_is_white(block->bytes[i - 1])) return 1;
    }
    return before;
}

/* Finds a word of a block of the current file of more than max_word bytes. Returns the index of its first byte, or the block's length if no word
 * is so long. Such a word covers at least one of bytes most, 2 most + 1, 3 most + 2 .. (most = max_word), so only the words at these bytes are
 * measured. */
static uint64_t find_long_word(const struct corpus *corpus, const struct corpus_block *block) {
    const char *separators = corpus->format->rows == LOOK_TEXT ? "" : corpus_form(&corpus->files[corpus->next - 1])->separator;
    uint64_t most = corpus->max_word;
    for (uint64_t at = most; at < block->length; at += most + 1) {
        uint64_t from = at, to = at;
        while (from && to - from <= most && !token_ends(block->bytes[from - 1], separators)) from--;
        while (to < block->length && to - from <= most && !token_ends(block->bytes[to], separators)) to++;
        if (to - from > most) return from;
    }
    return block->length;
}

/* Highest number of words in a line that is read as a whole: a pair or an edge. */
enum { LINE_WORDS = 4 };

static int check_words(const struct corpus *corpus, const struct corpus_block *block) {
    char most[TEXT_BYTES];
    uint64_t at = find_long_word(corpus, block);
    if (at == block->length) return 0;
    return fail("'%s' line %" PRIu64 ": the word that begins with '%.*s' has more than %s (corpus.max_word); wanted words with "
                "blanks or line ends between them",
                corpus->files[corpus->next - 1].name, corpus->line + count_newlines(block->bytes, at),
                text_shown(corpus->max_word), block->bytes + at, text_of_bytes(most, corpus->max_word));
}

/* Returns 1 if the block's last line is too long for a pair or an edge. */
static int is_long_line(const struct corpus *corpus, const struct corpus_block *block) {
    uint64_t most = (corpus->max_word + CORPUS_BLOCK) * LINE_WORDS;
    return corpus->format->columns && !corpus->format->documents && block->length > most &&
           !memchr(block->bytes + block->length - most, '\n', most);
}

/* Called before a block grows because it cannot be cut. Fails if its last word, or its last line in a format of pairs or edges, is too long. */
static int check_growth(const struct corpus *corpus, const struct corpus_block *block) {
    if (check_words(corpus, block)) return -1;
    if (!is_long_line(corpus, block)) return 0;
    return fail("'%s' line %" PRIu64 " has more than %" PRIu64 " bytes; wanted %s", corpus->files[corpus->next - 1].name,
                corpus->line + count_newlines(block->bytes, block->length), (corpus->max_word + CORPUS_BLOCK) * LINE_WORDS,
                corpus->format->wanted);
}

static void end_lines_with_lf(char *bytes, uint64_t length) {
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i] == '\r') bytes[i] = '\n';
}

/* Fills a block, and sets *ended if the file ends with it. Bytes after the cut are kept for the next block. */
static int fill(struct corpus *corpus, struct corpus_block *block, int *ended) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    int cr_ends = file->front.cr_ends, whole_lines = needs_whole_lines(corpus, file);
    uint64_t want = (corpus->carried > corpus->block_bytes ? corpus->carried : corpus->block_bytes) + 1, looked = 0, cut = 0;
    *ended = 0;
    if (mem_grow(&block->bytes, &block->capacity, want + CORPUS_PADDING, 1, "a block of the corpus")) return -1;
    if (corpus->carried) memcpy(block->bytes, corpus->carry, corpus->carried);
    block->length = corpus->carried;
    corpus->carried = 0;
    while (!cut) {
        while (block->length < want) {
            int64_t n = reader_read(&corpus->reader, block->bytes + block->length, want - block->length);
            if (n < 0) return -1;
            if (n == 0) {
                *ended = 1;
                return check_words(corpus, block);
            }
            if (cr_ends) end_lines_with_lf(block->bytes + block->length, (uint64_t)n);
            block->length += (uint64_t)n;
        }
        cut = find_cut(block, looked, whole_lines);
        looked = block->length - 1;
        want = block->length * 2;
        if (!cut && check_growth(corpus, block)) return -1;
        if (!cut && mem_grow(&block->bytes, &block->capacity, want + CORPUS_PADDING, 1, "a long token or line")) return -1;
    }
    INVARIANT(cut < block->length); /* the last byte is the next block's */
    corpus->carried = block->length - cut;
    if (mem_grow(&corpus->carry, &corpus->carry_capacity, corpus->carried, 1, "a block of the corpus")) return -1;
    memcpy(corpus->carry, block->bytes + cut, corpus->carried);
    block->length = cut;
    return check_words(corpus, block);
}

static int look_at_file(struct corpus *corpus, struct corpus_file *file) {
    if (file->looked_at) return 0;
    struct first_look wanted = corpus_wanted(file, corpus->format, &corpus->keys);
    if (first_bytes_look(&file->front, &wanted)) return -1;
    file->looked_at = 1;
    const char *doubt = file->front.look.doubt;
    if (*doubt && !corpus->said_rows++) warn("the lines of '%s' %s", file->name, doubt);
    if (file->front.bad_line && !corpus->said_encoding++)
        remark("encoding   line %" PRIu64 " of '%s' is not UTF-8; words are kept byte for byte (iconv -f LATIN1 -t UTF-8 changes Latin-1)",
               file->front.bad_line, file->name);
    const char *said = file->front.look.said;
    if (!*said || !strcmp(said, corpus->said)) return 0; /* the file before had the same format */
    remark("%s%s%s%s", said, corpus->count > 1 ? " ('" : "", corpus->count > 1 ? file->name : "", corpus->count > 1 ? "')" : "");
    snprintf(corpus->said, LOOK_SAID, "%s", said);
    return 0;
}

static int open_next(struct corpus *corpus) {
    struct corpus_file *file = &corpus->files[corpus->next++];
    corpus->line = 1;
    corpus->line_open = 0;
    corpus->at = 0;
    if (look_at_file(corpus, file)) return -1;
    corpus->skip = file->front.skip;
    corpus->file_named = 0;
    int result = reader_open(&corpus->reader, file->path, corpus->threads, &corpus->done);
    corpus->reader.path = file->name;
    return result;
}

/* Returns 1 if more bytes of the current file can be read. */
static int is_open(const struct corpus *corpus) {
    return corpus->reader.fd >= 0 && (corpus->reader.packing || corpus->at < corpus->files[corpus->next - 1].size);
}

/* Replaces a block's bytes by `length` new ones, which the block then owns. */
static void replace_bytes(struct corpus_block *block, char *bytes, uint64_t length, uint64_t capacity) {
    free(block->bytes);
    block->bytes = bytes;
    block->length = length;
    block->capacity = capacity;
}

enum { NUMBER_BYTES = 24 }; /* largest number of bytes of a line number and the separator after it */

/* Writes a line number and a separator before each non-empty line of a block: the names of lists that have none. */
static int number_lines(struct corpus *corpus, struct corpus_block *block, const char *separator) {
    uint64_t lines = count_newlines(block->bytes, block->length) + 1,
             capacity = block->length + lines * NUMBER_BYTES + CORPUS_PADDING;
    char *bytes = mem_alloc(capacity, 1, "lists without names"), *out = bytes;
    const char *at = block->bytes, *end = at + block->length;
    if (!bytes) return -1;
    for (; at < block->bytes + block->skip; at++) *out++ = *at;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline + 1 : end, *first = at;
        while (first < stop && token_is_white(*first)) first++;
        corpus->list_lines++;
        if (first < stop) out += snprintf(out, NUMBER_BYTES, "%" PRIu64 "%s", corpus->list_lines, separator);
        memcpy(out, at, (size_t)(stop - at));
        out += stop - at;
        at = stop;
    }
    replace_bytes(block, bytes, (uint64_t)(out - bytes), capacity);
    return 0;
}

/* Rewrites each line of a table of documents as: the document's name (or the line's number), a tab, the text. */
static int part_documents(struct corpus *corpus, struct corpus_block *block, const struct columns_form *form) {
    unsigned name = form->column[COLUMN_A], text = form->column[COLUMN_B], more = form->column[COLUMN_VALUE];
    uint64_t lines = count_newlines(block->bytes, block->length) + 1,
             capacity = 2 * block->length + lines * NUMBER_BYTES + CORPUS_PADDING;
    struct corpus_cursor cursor = {block->bytes + block->skip, block->bytes + block->length, corpus->line};
    struct table_line line;
    char *bytes = mem_alloc(capacity, 1, "documents"), *out = bytes;
    if (!bytes) return -1;
    memcpy(out, block->bytes, block->skip);
    out += block->skip;
    for (uint64_t at = 0; at < block->skip; at++) cursor.line += block->bytes[at] == '\n';
    for (uint64_t number = cursor.line; columns_next(&cursor, form, &line); number = cursor.line) {
        const char *end = cursor.at;
        corpus->list_lines++;
        if (line.count && columns_check(&line, form, LOOK_DOCUMENTS, corpus->files[corpus->next - 1].name, number)) {
            free(bytes);
            return -1;
        }
        while (end > block->bytes && (end[-1] == '\n' || end[-1] == '\r')) end--;
        int rest = *form->separator == '\t' && text + 1 == form->columns && line.count > form->columns && !line.quoted; /* tabs within the text */
        if (line.count && name < NO_COLUMN)
            out += sprintf(out, "%.*s\t", (int)line.length[name], line.word[name]);
        else if (line.count)
            out += sprintf(out, "%" PRIu64 "\t", corpus->list_lines);
        uint64_t length = !line.count ? 0 : rest ? (uint64_t)(end - line.word[text]) : line.length[text];
        memcpy(out, length ? line.word[text] : "", length);
        out += length;
        if (line.count && more < line.count && more < COLUMNS_READ) {
            *out++ = ' ';
            memcpy(out, line.word[more], line.length[more]);
            out += line.length[more];
        }
        if (cursor.at[-1] == '\n') *out++ = '\n';
    }
    replace_bytes(block, bytes, (uint64_t)(out - bytes), capacity);
    return 0;
}

/* Makes the file one document: line ends become blanks, and its first block begins with the file's path (the name) and a tab. */
static int name_by_file(struct corpus *corpus, struct corpus_block *block) {
    const char *path = corpus->files[corpus->next - 1].name;
    uint64_t length = corpus->file_named ? 0 : strlen(path) + 1, capacity = block->length + length + CORPUS_PADDING, skip = block->skip;
    for (uint64_t i = skip; i < block->length; i++)
        if (block->bytes[i] == '\n' || block->bytes[i] == '\r') block->bytes[i] = ' ';
    if (corpus->file_named++) return 0;
    char *bytes = mem_alloc(capacity, 1, "documents");
    if (!bytes) return -1;
    memcpy(bytes, block->bytes, skip);
    memcpy(bytes + skip, path, length - 1);
    for (uint64_t i = skip; i + 1 < skip + length; i++)
        if (token_is_white(bytes[i])) bytes[i] = ' ';
    bytes[skip + length - 1] = '\t';
    memcpy(bytes + skip + length, block->bytes + skip, block->length - skip);
    replace_bytes(block, bytes, block->length + length, capacity);
    return 0;
}

/* Fills in the number, offset and line of the current file's next block. Called in the file's order. */
static int place(struct corpus *corpus, struct corpus_block *block, uint64_t newlines, int ended) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    block->skip = corpus->skip < block->length ? corpus->skip : block->length;
    corpus->skip -= block->skip;
    INVARIANT(block->skip <= block->length && block->length < block->capacity);
    block->path = file->name;
    block->form = corpus_form(file);
    block->value_name = file->front.look.value;
    const struct columns_form *form = block->form;
    block->tabs = corpus->format->documents && (form->naming || *form->separator != ' ');
    if (block->tabs && form->naming == NAMED_BY_FILE ? name_by_file(corpus, block)
        : block->tabs && *form->separator != ' '     ? part_documents(corpus, block, form)
        : form->naming == NAMED_BY_LINE              ? number_lines(corpus, block, block->tabs ? "\t" : form->separator)
                                                     : 0)
        return -1;
    block->number = corpus->number++;
    block->offset = corpus->offset;
    block->line = corpus->line;
    block->continues = corpus->line_open;
    block->line_open = ended ? 0 : left_open(block, corpus->line_open);
    corpus->offset += block->length;
    corpus->line += newlines;
    corpus->line_open = block->line_open;
    return 1;
}

/* ---- packed files ---- */

/* Reads the next block of a compressed file. Returns 1, or 0 at the end of the file; -1 after fail(). */
static int next_packed(struct corpus *corpus, struct corpus_block *block) {
    int ended;
    if (fill(corpus, block, &ended)) return -1;
    if (ended) reader_close(&corpus->reader);
    return block->length ? place(corpus, block, count_newlines(block->bytes, block->length), ended) : 0;
}

/* ---- ranges ---- */

/* Finds the first offset, at least `from`, where the current file may be cut: after white space (or a line end), or at the file's end. Returns 1;
 * 0 if that offset is beyond `to`; -1 after fail(). */
static int find_place(const struct corpus *corpus, uint64_t from, uint64_t to, uint64_t *place) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    int whole_lines = needs_whole_lines(corpus, file);
    char probe[4096], line_end = file->front.cr_ends ? '\r' : '\n';
    *place = from;
    if (from == 0 || from >= file->size) return 1;
    for (uint64_t at = from - 1; at < to;) {
        uint64_t want = at < from ? 256 : sizeof probe;
        int64_t n = retry_read_at(corpus->reader.fd, probe, want, at);
        if (n < 0) return fail_system("read", file->name);
        if (!n) return 1;
        for (int64_t i = 0; i < n; i++) {
            *place = at + (uint64_t)i + 1;
            if (whole_lines ? probe[i] == line_end : token_is_white(probe[i])) return *place <= to;
        }
        at += (uint64_t)n;
        *place = at;
    }
    return 0;
}

/* Reads bytes from .. end - 1 of the current file; fewer if the file has become shorter. */
static int read_bytes(const struct corpus *corpus, struct corpus_block *block, uint64_t from, uint64_t end) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    if (mem_grow(&block->bytes, &block->capacity, end - from + CORPUS_PADDING, 1, "a block of the corpus")) return -1;
    int64_t n = retry_read_at(corpus->reader.fd, block->bytes, end - from, from);
    if (n < 0) return fail_system("read", file->name);
    block->length = (uint64_t)n;
    if (file->front.cr_ends) end_lines_with_lf(block->bytes, block->length);
    return 0;
}

/* Reads the block of a range of the current file; the block is empty if the file cannot be cut within the range. Stops early at a word or line
 * that is too long. *end: where the block ends. */
static int read_range(const struct corpus *corpus, struct corpus_block *block, uint64_t from, uint64_t to, uint64_t *end) {
    uint64_t start;
    block->length = 0;
    int found = find_place(corpus, from, to - 1, &start);
    if (found <= 0) return found;
    found = 0;
    for (uint64_t more = corpus->max_word; !found; more *= 2) {
        found = find_place(corpus, to, to + more, end);
        if (found < 0 || read_bytes(corpus, block, start, *end)) return -1;
        if (find_long_word(corpus, block) < block->length || (!found && is_long_line(corpus, block))) return 0;
    }
    return 0;
}

/* Reads the next range of the current file, without holding the lock. Returns 1, or 0 if the range contains no block; -1 after fail(). */
static int next_range(struct corpus *corpus, struct corpus_block *block) {
    uint64_t size = corpus->files[corpus->next - 1].size, from = corpus->at, number = corpus->taken++;
    uint64_t to = size - from < corpus->block_bytes ? size : from + corpus->block_bytes, end = to;
    corpus->at = to;
    pthread_mutex_unlock(&corpus->lock);
    int result = read_range(corpus, block, from, to, &end);
    uint64_t newlines = result ? 0 : count_newlines(block->bytes, block->length);
    atomic_fetch_add_explicit(&corpus->done, to - from, memory_order_relaxed);
    pthread_mutex_lock(&corpus->lock);
    while (!corpus->failed && corpus->placed != number) pthread_cond_wait(&corpus->moved, &corpus->lock);
    if (result || corpus->failed) return result;
    if (check_growth(corpus, block)) return -1;
    corpus->placed++;
    pthread_cond_broadcast(&corpus->moved);
    return block->length ? place(corpus, block, newlines, end == size) : 0;
}

/* ---- all files ---- */

static int next_locked(struct corpus *corpus, struct corpus_block *block) {
    for (int result; !corpus->failed;) {
        if (interrupt_check()) return -1;
        if (!is_open(corpus)) { /* the next file is opened once all blocks of this one are placed */
            while (!corpus->failed && corpus->placed != corpus->taken) pthread_cond_wait(&corpus->moved, &corpus->lock);
            if (corpus->failed) return 0;
            if (is_open(corpus)) continue; /* another thread has opened it meanwhile */
            reader_close(&corpus->reader);
            if (corpus->next == corpus->count) return 0;
            if (open_next(corpus)) return -1;
        } else if ((result = corpus->reader.packing ? next_packed(corpus, block) : next_range(corpus, block)))
            return result;
    }
    return 0;
}

int corpus_next(struct corpus *corpus, struct corpus_block *block) {
    pthread_mutex_lock(&corpus->lock);
    int result = next_locked(corpus, block);
    if (result < 0) {
        corpus->failed = 1; /* other threads must not get a block that was only half read */
        pthread_cond_broadcast(&corpus->moved);
    }
    pthread_mutex_unlock(&corpus->lock);
    return result;
}

void corpus_block_release(struct corpus_block *block) {
    free(block->bytes);
    *block = (struct corpus_block){0};
}

void corpus_rewind(struct corpus *corpus) {
    pthread_mutex_lock(&corpus->lock);
    reader_close(&corpus->reader);
    corpus->next = corpus->carried = corpus->number = corpus->offset = corpus->list_lines = 0;
    corpus->line = 1;
    corpus->line_open = corpus->failed = 0;
    corpus->at = corpus->taken = corpus->placed = 0;
    atomic_store_explicit(&corpus->done, 0, memory_order_relaxed);
    pthread_mutex_unlock(&corpus->lock);
}

/* ---- what the look finds in all files ---- */

/* Warns if some files are named like training data and others like validation or test data, since most users mean the training data alone. */
static void say_split(const struct corpus *corpus) {
    enum { NAMED = 3 }; /* most files that the warning names */
    const char *first = corpus->files[0].path, *trained = NULL;
    char names[512] = "";
    uint64_t shared = strlen(first), others = 0;
    size_t used = 0;
    for (uint64_t i = 1; i < corpus->count; i++)
        for (uint64_t n = 0; n < shared; n++)
            if (corpus->files[i].path[n] != first[n]) shared = n;
    while (shared && first[shared - 1] != '/') shared--;
    for (uint64_t i = 0; i < corpus->count; i++) {
        const char *path = corpus->files[i].path, *rest = path + shared;
        int test = strcasestr(rest, "test") || strcasestr(rest, "valid") || !strncasecmp(rest, "dev", 3);
        if (test && others++ < NAMED) used = text_add(names, sizeof names, used, "%s%s", used ? ", " : "", rest);
        if (!test && !trained && strcasestr(rest, "train")) trained = path;
    }
    if (!trained || !others) return;
    if (others > NAMED) text_add(names, sizeof names, used, " and %" PRIu64 " more", others - NAMED);
    const char *end = strcasestr(trained + shared, "train");
    end += strcspn(end, "/");
    warn("%s %s trained, too; corpus.path = %.*s leaves %s out", names, others == 1 ? "is" : "are", (int)(end - trained), trained,
         others == 1 ? "it" : "them");
}

static const char *const separator_names[] = {[SEPARATOR_TAB] = "\t", [SEPARATOR_COMMA] = ",", [SEPARATOR_SEMICOLON] = ";",
                                              [SEPARATOR_PIPE] = "|", [SEPARATOR_COLONS] = "::", [SEPARATOR_BLANK] = " "};

/* Replaces each key that is still "auto" by the first file's value, if all files agree on it. */
static void fill_in(const struct corpus *corpus, struct corpus_found *found) {
    const struct look *look = &corpus->files[0].front.look;
    const struct columns_form *form = &look->form;
    struct look_keys *keys = &found->keys;
    int header = !look->counted, separator = 1, columns = 1, naming = 1;
    for (uint64_t i = 1; i < corpus->count; i++) {
        const struct look *other = &corpus->files[i].front.look;
        header &= other->header == look->header && !other->counted;
        separator &= !strcmp(other->form.separator, form->separator);
        columns &= !strcmp(other->columns, look->columns);
        naming &= other->form.naming == form->naming;
    }
    if (form->ntriples) return;
    if (keys->header == HEADER_AUTO && header) keys->header = look->header ? HEADER_YES : HEADER_NO;
    for (int s = SEPARATOR_TAB; keys->separator == SEPARATOR_AUTO && separator && s <= SEPARATOR_BLANK; s++)
        if (!strcmp(separator_names[s], form->separator)) keys->separator = (enum corpus_separator)s;
    if (corpus->format->columns && !(keys->columns && *keys->columns) && columns && header && *look->columns) {
        snprintf(found->columns, sizeof found->columns, "%s", look->columns);
        keys->columns = found->columns;
    }
    int names = corpus->format->rows == LOOK_LISTS || (corpus->format->documents && !*look->columns);
    if (names && keys->names == NAMES_AUTO && naming)
        keys->names = form->naming == NAMED_BY_FILE ? NAMES_FILE : form->naming == NAMED_BY_LINE ? NAMES_NO : NAMES_YES;
}

int corpus_find(struct corpus *corpus, const struct corpus_options *options, struct corpus_found *found) {
    *found = (struct corpus_found){.keys = keys_of(options)};
    if (corpus->stream || corpus->gathered || !corpus->count) return 0;
    if (corpus->count > 1) say_split(corpus);
    if (corpus_formats[options->format].rows == LOOK_TEXT) return 0;
    if (corpus_read_as(corpus, options)) return -1;
    for (uint64_t i = 0; i < corpus->count && i < CORPUS_LOOK_FILES; i++)
        if (look_at_file(corpus, &corpus->files[i])) return -1;
    snprintf(found->said, sizeof found->said, "%s", corpus->files[0].front.look.said);
    if (corpus->count <= CORPUS_LOOK_FILES) fill_in(corpus, found);
    if (corpus->keys.names == NAMES_FILE) found->keys.names = NAMES_FILE;
    corpus->found = &found->keys;
    return 0;
}

const struct look_keys *corpus_keys(const struct corpus *corpus) {
    return corpus->found;
}
