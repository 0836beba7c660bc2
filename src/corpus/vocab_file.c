/* Reads and writes vocab.tsv: line n is the word of id n, a TAB, its count and an LF. Files of other programs are read too: they
 * may have blanks instead of the TAB, CR LF, or no LF at the end. */
#include "vocab.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "kind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- reading ---- */

/* A line of the file: its word and its count. */
struct line {
    const char *word;
    uint64_t length, count;
};

/* Returns 1 for bytes that may separate a word from its count. VT and FF are not among them: words in other programs' files may
 * contain them. */
static int separates(char byte) {
    return byte == ' ' || byte == '\t';
}

/* Parses a line as this program writes it: a word, the line's only TAB, and at most 19 digits. Returns 0 if it is no such line. */
static int read_own_line(struct line *out, const char *text, uint64_t length) {
    const char *tab = memchr(text, '\t', length), *end = text + length;
    uint64_t count = 0;
    if (!tab || tab == text || tab + 1 == end || end - tab > 20) return 0;
    for (const char *at = tab + 1; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) return 0;
        count = count * 10 + digit;
    }
    *out = (struct line){text, (uint64_t)(tab - text), count};
    return 1;
}

/* Parses a line, without its LF: "word TAB count" or "word blank count". A word may contain spaces, or begin or end with them,
 * only if a TAB follows it: quoted names and tokens that a program gave can have spaces. */
static int read_line(struct line *out, const char *path, uint64_t number, const char *text, uint64_t length) {
    if (read_own_line(out, text, length)) return 0; /* nearly all lines */
    uint64_t stop = length, digits, end; /* the word is text[0 .. end), the count text[digits .. stop) */
    while (stop && (separates(text[stop - 1]) || text[stop - 1] == '\r')) stop--;
    for (digits = stop; digits && !separates(text[digits - 1]); digits--) continue;
    for (end = digits; end && separates(text[end - 1]); end--) continue;
    const char *tab = memchr(text + end, '\t', digits - end); /* the word may then have spaces in it */
    int ours = tab && tab + 1 == text + digits;               /* the only TAB, directly before the count: this program wrote the
                                                               * line */
    if (ours) end = digits - 1;
    if (!stop) return fail("vocabulary '%s' line %" PRIu64 " is empty; wanted word TAB count", path, number);
    if (*text == '\t' || (*text == ' ' && !ours))
        return fail("vocabulary '%s' line %" PRIu64 " has no word; wanted word TAB count", path, number);
    if (!end)
        return fail("vocabulary '%s' line %" PRIu64 ": '%.*s' has no count; wanted word TAB count", path, number,
                    text_shown(stop), text);
    *out = (struct line){text, end, 0};
    for (uint64_t i = digits; i < stop; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(out->count, 10, &out->count) ||
            __builtin_add_overflow(out->count, digit, &out->count))
            return fail("vocabulary '%s' line %" PRIu64 ": the count '%.*s' is not a whole number below 2^64", path,
                        number, text_shown(stop - digits), text + digits);
    }
    for (uint64_t i = 0; i < end; i++)
        if (text[i] == '\t' || (text[i] == ' ' && !tab))
            return fail("vocabulary '%s' line %" PRIu64 ": the word '%.*s' has a blank in it; wanted word TAB count",
                        path, number, text_shown(end), text);
    return 0;
}

/* Returns 1 if the row is a list or a relation: only they have such a prefix and a count of 0. */
static int is_list(const struct vocab *vocab, uint64_t id) {
    const char *word = vocab_word(vocab, id, NULL);
    return !vocab_count(vocab, id) &&
           (!strncmp(word, VOCAB_LIST, strlen(VOCAB_LIST)) || !strncmp(word, VOCAB_RELATION, strlen(VOCAB_RELATION)));
}

/* The lines of a vocabulary file that are still to be read, after its byte order mark. */
struct lines {
    const char *path, *at, *end;
    uint64_t number; /* number of the next line: the file's first line is 1 or, in a chunk that a worker reads, the chunk's first */
};

/* Bytes of a line. A longer line cannot be of a vocabulary, so its end is not searched. */
enum { LINE_MOST = CORPUS_WORD_MOST + 64 };

/* Stores the next line, without its LF. Returns 1, 0 at the end of the file, -1 after fail(). */
static int next_line(struct lines *lines, const char **text, uint64_t *length) {
    uint64_t left = (uint64_t)(lines->end - lines->at), looked = left < LINE_MOST ? left : LINE_MOST;
    const char *newline = left ? memchr(lines->at, '\n', looked) : NULL;
    if (!left) return 0;
    if (!newline && looked < left)
        return fail("vocabulary '%s' line %" PRIu64 " has more than %d bytes; wanted word TAB count", lines->path,
                    lines->number, LINE_MOST);
    *text = lines->at;
    *length = (uint64_t)((newline ? newline : lines->end) - lines->at);
    lines->at = newline ? newline + 1 : lines->end;
    lines->number++;
    return 1;
}

/* Reads the next line. Returns 1, 0 at the end of the file, -1 after fail(). Adds its count to *sum. */
static int take_counted_line(struct lines *lines, struct line *line, uint64_t *sum) {
    const char *text = "";
    uint64_t length = 0;
    int more = next_line(lines, &text, &length);
    if (more <= 0) return more;
    if (read_line(line, lines->path, lines->number - 1, text, length)) return -1;
    if (__builtin_add_overflow(*sum, line->count, sum))
        return fail("vocabulary '%s' line %" PRIu64 ": the counts add up to more than 2^64", lines->path, lines->number - 1);
    return 1;
}

/* A part of the file. It begins with the first line that begins in it. */
struct chunk {
    uint64_t words, bytes, tokens; /* numbers of words and of their bytes with NULs, and the sum of their counts: of the chunk before this
                                    * one; after count_file(): of all chunks before this one */
    int large;                     /* 1: a count is VOCAB_LARGE or more */
};
enum { CHUNK = 1 << 20 };

/* State of reading a file by all threads: each chunk is read once to count its words, and again to store them. */
struct reading {
    struct vocab *vocab;
    struct lines all;
    struct chunk *chunks; /* [chunk_count + 1]: chunk i is counted in chunks[i + 1] */
    uint64_t chunk_count;
    int (*take)(const struct reading *reading, uint64_t chunk);
    _Atomic uint64_t next;
    _Atomic int failed;   /* 1: a line cannot be read */
};

/* Finds the first line that begins at `at` or later, and returns its beginning. Returns NULL if no line begins within LINE_MOST bytes. */
static const char *next_begin(const struct lines *all, const char *at) {
    if (at <= all->at || at >= all->end) return at <= all->at ? all->at : all->end;
    uint64_t left = (uint64_t)(all->end - at);
    const char *newline = memchr(at - 1, '\n', left < LINE_MOST ? left + 1 : LINE_MOST);
    return newline ? newline + 1 : left < LINE_MOST ? all->end : NULL;
}

/* Returns the lines of a chunk; `at` is NULL if a line is too long. */
static struct lines lines_of(const struct reading *reading, uint64_t chunk) {
    struct lines lines = reading->all;
    const char *begin = lines.at + chunk * CHUNK;
    uint64_t left = (uint64_t)(lines.end - begin);
    lines.at = next_begin(&reading->all, begin);
    lines.end = next_begin(&reading->all, begin + (left < CHUNK ? left : CHUNK));
    if (!lines.end) lines.at = NULL;
    return lines;
}

static int count_chunk(const struct reading *reading, uint64_t number) {
    struct chunk *chunk = &reading->chunks[number + 1];
    struct lines lines = lines_of(reading, number);
    struct line line;
    int more;
    if (!lines.at) return -1;
    while ((more = take_counted_line(&lines, &line, &chunk->tokens)) > 0) {
        chunk->words++;
        chunk->bytes += line.length + 1;
        chunk->large |= line.count >= VOCAB_LARGE;
    }
    return more;
}

static int store_chunk(const struct reading *reading, uint64_t number) {
    const struct chunk *chunk = &reading->chunks[number], *after = chunk + 1;
    struct words *words = &reading->vocab->words;
    struct lines lines = lines_of(reading, number);
    struct line line;
    uint64_t at = chunk->bytes, tokens = 0;
    for (uint64_t id = chunk->words; id < after->words; id++) {
        if (!lines.at || take_counted_line(&lines, &line, &tokens) <= 0 || line.length + 1 > after->bytes - at) return -1;
        words_set_offset(words, id, at);
        memcpy(words->bytes + at, line.word, line.length);
        words->bytes[at + line.length] = 0;
        at += line.length + 1;
        reading->vocab->counts[id] = vocab_small_count(line.count);
    }
    return at == after->bytes ? 0 : -1;
}

/* Fails at the first line that cannot be read. Threads find mistakes in any order, so the lines are then read once more. */
static int refuse_lines(struct lines lines) {
    struct line line;
    uint64_t tokens = 0;
    int more;
    report_clear();
    while ((more = take_counted_line(&lines, &line, &tokens)) > 0) continue;
    return more < 0 ? -1 : fail("vocabulary '%s' changed while it was read", lines.path);
}

/* Stores the large counts of a chunk, whose other counts are stored. */
static int store_large(const struct reading *reading, uint64_t number) {
    struct lines lines = lines_of(reading, number);
    struct line line;
    uint64_t tokens = 0;
    for (uint64_t id = reading->chunks[number].words; id < reading->chunks[number + 1].words; id++) {
        if (!lines.at || take_counted_line(&lines, &line, &tokens) <= 0) return refuse_lines(reading->all);
        if (line.count >= VOCAB_LARGE && vocab_set_count(reading->vocab, id, line.count)) return -1;
    }
    return 0;
}

static int take_chunks(void *context, unsigned worker) {
    struct reading *reading = context;
    uint64_t chunk, end;
    (void)worker;
    while (!reading->failed && pool_take(&reading->next, reading->chunk_count, 1, &chunk, &end)) {
        if (interrupt_check()) return -1;
        if (reading->take(reading, chunk)) reading->failed = 1;
    }
    return 0;
}

/* Calls `take` for all chunks. Fails if it failed, or if the user has interrupted the program. */
static int for_chunks(struct reading *reading, struct pool *pool, int (*take)(const struct reading *, uint64_t chunk)) {
    reading->take = take;
    reading->next = 0;
    if (pool_run(pool, take_chunks, reading)) return -1;
    return reading->failed ? refuse_lines(reading->all) : 0;
}

/* Counts the words of all chunks. Fails if the file is no vocabulary. */
static int count_file(struct reading *reading, struct pool *pool) {
    if (for_chunks(reading, pool, count_chunk)) return -1;
    for (uint64_t i = 0; i < reading->chunk_count; i++) {
        struct chunk *chunk = &reading->chunks[i];
        chunk[1].words += chunk->words;
        chunk[1].bytes += chunk->bytes;
        if (__builtin_add_overflow(chunk[1].tokens, chunk->tokens, &chunk[1].tokens)) return refuse_lines(reading->all);
    }
    uint64_t count = reading->chunks[reading->chunk_count].words;
    if (!count) return fail("vocabulary '%s' is empty; wanted lines of word TAB count", reading->all.path);
    if (count <= WORDS_MOST) return 0;
    return fail("vocabulary '%s' has %" PRIu64 " words, more than the %u that ids can name", reading->all.path, count, WORDS_MOST);
}

/* Stores the words of all chunks in the vocabulary. */
static int store_words(struct reading *reading, struct pool *pool) {
    const struct chunk *all = &reading->chunks[reading->chunk_count];
    struct vocab *vocab = reading->vocab;
    if (vocab_reserve(vocab, all->words, all->bytes)) return -1;
    if (for_chunks(reading, pool, store_chunk)) return -1;
    for (uint64_t i = 0; i < reading->chunk_count; i++)
        if (reading->chunks[i + 1].large && store_large(reading, i)) return -1;
    vocab->size = vocab->words.size = vocab->distinct = all->words;
    vocab->words.used = all->bytes;
    words_set_offset(&vocab->words, all->words, all->bytes);
    vocab->kept = vocab->tokens = all->tokens;
    while (vocab->lists < vocab->size && is_list(vocab, vocab->size - 1 - vocab->lists)) vocab->lists++;
    return 0;
}

static int read_chunks(struct reading *reading, struct pool *pool) {
    uint64_t bytes = (uint64_t)(reading->all.end - reading->all.at);
    reading->chunk_count = bytes / CHUNK + (bytes % CHUNK > 0);
    reading->chunks = mem_zalloc(reading->chunk_count + 1, sizeof *reading->chunks, "a vocabulary");
    int result = reading->chunks ? count_file(reading, pool) || store_words(reading, pool) : -1;
    free(reading->chunks);
    return result ? -1 : 0;
}

int vocab_read_words(struct vocab *vocab, const char *path, int given, struct pool *pool) {
    struct file_map map;
    *vocab = (struct vocab){0};
    if (file_map_open(&map, path)) return -1;
    uint64_t mark = given ? text_mark(map.data, map.size) : 0;
    struct reading reading = {.vocab = vocab, .all = {path, map.data, map.data, 1}}; /* if the file is empty, map.data is NULL */
    if (map.size) reading.all = (struct lines){path, map.data + mark, map.data + map.size, 1};
    int result = (given && kind_check_format(path, map.data, map.size, 0)) || read_chunks(&reading, pool) ? -1 : 0;
    file_map_close(&map);
    if (result) vocab_release(vocab);
    return result;
}

/* ---- writing ---- */

enum { TAIL_MOST = 22, BLOCK = 1 << 16 };

/* Writes "TAB count LF" and returns its end. */
static char *put_tail(char *at, uint64_t count) {
    char digits[TAIL_MOST], *first = digits + TAIL_MOST;
    do *--first = (char)('0' + count % 10);
    while (count /= 10);
    *at++ = '\t';
    for (; first < digits + TAIL_MOST; first++) *at++ = *first;
    *at++ = '\n';
    return at;
}

/* Gives the bytes of vocab.tsv to `take`, in blocks. Returns what `take` returned, if it was not 0. */
static int for_blocks(const struct vocab *vocab, int (*take)(void *user, const void *bytes, uint64_t count), void *user) {
    char block[BLOCK], *at = block;
    uint64_t length;
    int result = 0;
    for (uint64_t id = 0; id < vocab->size && !result; id++) {
        const char *word = vocab_word(vocab, id, &length);
        if (length + TAIL_MOST > (uint64_t)(block + BLOCK - at)) {
            result = take(user, block, (uint64_t)(at - block));
            at = block;
        }
        if (length + TAIL_MOST > BLOCK) result = result ? result : take(user, word, length);
        else at = (char *)memcpy(at, word, length) + length;
        at = put_tail(at, vocab_count(vocab, id));
    }
    return result ? result : take(user, block, (uint64_t)(at - block));
}

static int write_block(void *writer, const void *bytes, uint64_t count) {
    return file_write(writer, bytes, count);
}

int vocab_write(const struct vocab *vocab, const char *path) {
    struct file_writer writer;
    if (file_writer_open(&writer, path)) return -1;
    if (!for_blocks(vocab, write_block, &writer)) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

static int hash_block(void *state, const void *bytes, uint64_t count) {
    XXH3_64bits_update(state, bytes, count);
    return 0;
}

uint64_t vocab_fingerprint(const struct vocab *vocab) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for_blocks(vocab, hash_block, &state);
    return XXH3_64bits_digest(&state);
}
