#define _GNU_SOURCE
#include "corpus_inner.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "gathered.h"

#include <errno.h>
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

/* ---- the corpus' files ---- */

static const char input_name[] = "standard input";

/* Hashes some bytes of a file. Files of the same size and modification time differ in their hash, since tar, rsync and touch
 * restore old times. A small file is hashed whole; of a larger file, up to 65 blocks at equal distances, the first and last one
 * included. Returns -1 with errno. */
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

/* Adds a file, and opens it once: a file that cannot be read or is not text is found now, and not after hours of counting.
 * Messages call it `name`; NULL: its path. */
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

static int add_directory(struct corpus *corpus, const char *path);

/* Adds an entry of a directory: a plain file, a link to a plain file, or all files of a directory. Links to directories are not
 * followed, since they may lead in a circle. Other kinds, such as sockets and pipes, are skipped. */
static int add_entry(struct corpus *corpus, const char *path) {
    struct stat own, about;
    if (lstat(path, &own) || stat(path, &about)) return fail_system("look at", path);
    if (S_ISDIR(own.st_mode)) return add_directory(corpus, path);
    return S_ISREG(about.st_mode) ? add_file(corpus, path, NULL) : 0;
}

static int add_directory(struct corpus *corpus, const char *path) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count; i++) {
        int hidden = *names[i] == '.'; /* skipped: hidden files belong to an editor or to the system */
        char *inner = result || hidden ? NULL : file_join(path, names[i]);
        if (!hidden && (!inner || add_entry(corpus, inner))) result = -1;
        free(inner);
        free(names[i]);
    }
    free(names);
    return result;
}

/* Copies standard input into a nameless file, since a corpus is read more than once. */
static int add_input(struct corpus *corpus) {
    char path[64];
    if (corpus->spool >= 0) return fail("standard input (-) is named twice, and can be read once");
    corpus->spool = spool_all(STDIN_FILENO, input_name);
    if (corpus->spool < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", corpus->spool);
    return add_file(corpus, path, input_name);
}

static int add_path(struct corpus *corpus, const char *path) {
    struct stat about;
    uint64_t before = corpus->count;
    if (!strcmp(path, CORPUS_INPUT)) return add_input(corpus);
    if (stat(path, &about)) return fail_system("open", path);
    if (S_ISREG(about.st_mode)) return add_file(corpus, path, NULL);
    if (!S_ISDIR(about.st_mode))
        return fail("'%s' is neither a plain file nor a directory; the corpus is read more than once, and of pipes "
                    "only - is kept",
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
            return fail("'%s' was changed while it was read: it had %" PRIu64 " bytes and has %" PRIu64
                        "; train when nothing writes to it",
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

/* Returns the user's keys; keys that do not apply to the corpus' format are left out. */
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

/* Of several files of documents, finds out whether a file is a document: it is, unless the lines of the first files agree on what
 * names a document. */
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

/* Says if the files are those of training and of validation or test: usually only the first are meant. */
static void say_split(const struct corpus *corpus) {
    const char *first = corpus->files[0].path, *trained = NULL, *held_out = NULL;
    uint64_t shared = strlen(first);
    for (uint64_t i = 1; i < corpus->count; i++)
        for (uint64_t n = 0; n < shared; n++)
            if (corpus->files[i].path[n] != first[n]) shared = n;
    while (shared && first[shared - 1] != '/') shared--;
    for (uint64_t i = 0; i < corpus->count; i++) {
        const char *path = corpus->files[i].path, *rest = path + shared;
        int test = strcasestr(rest, "test") || strcasestr(rest, "valid") || !strncasecmp(rest, "dev", 3);
        if (test && !held_out) held_out = path;
        if (!test && !trained && strcasestr(rest, "train")) trained = path;
    }
    if (!trained || !held_out) return;
    const char *end = strcasestr(trained + shared, "train");
    end += strcspn(end, "/");
    remark("files      all %" PRIu64 " are trained, '%s' and '%s' too; corpus.path = %.*s takes those of training alone", corpus->count, trained,
           held_out, (int)(end - trained), trained);
}

static const char *const separator_names[] = {[SEPARATOR_TAB] = "\t", [SEPARATOR_COMMA] = ",", [SEPARATOR_SEMICOLON] = ";",
                                              [SEPARATOR_PIPE] = "|", [SEPARATOR_COLONS] = "::", [SEPARATOR_BLANK] = " "};

/* Fills in the keys that are still "auto" from the format of the first file, where all files agree. */
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
        if (corpus_look_at(corpus, &corpus->files[i])) return -1;
    snprintf(found->said, sizeof found->said, "%s", corpus->files[0].front.look.said);
    if (corpus->count <= CORPUS_LOOK_FILES) fill_in(corpus, found);
    if (corpus->keys.names == NAMES_FILE) found->keys.names = NAMES_FILE;
    corpus->found = &found->keys;
    return 0;
}

const struct look_keys *corpus_keys(const struct corpus *corpus) {
    return corpus->found;
}

void corpus_left_add(struct corpus_left *to, const struct corpus_left *some) {
    uint64_t *sums = (uint64_t *)(void *)to;
    const uint64_t *one = (const uint64_t *)(const void *)some;
    for (size_t i = 0; i < sizeof *to / sizeof *sums; i++) __atomic_fetch_add(&sums[i], one[i], __ATOMIC_RELAXED);
}

/* Prints how many rows were left out, of how many, and why. */
static void say_left(uint64_t count, const struct corpus_left *left, const char *rows, const char *why) {
    char some[TEXT_BYTES], all[TEXT_BYTES];
    if (count) remark("left out   %s of %s %s%s", text_of_count(some, count), text_of_count(all, left->rows), rows, why);
}

int corpus_left_say(const struct corpus_left *left, const struct corpus_options *options) {
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    char blanks[TEXT_BYTES];
    say_left(left->literals, left, "triples", ", whose subject or object is a literal (corpus.literals = yes keeps them)");
    if (left->blanks) remark("kept       %s triples with blank nodes, which are entities of their file alone", text_of_count(blanks, left->blanks));
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
    free(corpus->files);
    free(corpus->replaced);
    free(corpus->carry);
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
                                     block->line + corpus_newlines(block->bytes, block->skip)};
}
