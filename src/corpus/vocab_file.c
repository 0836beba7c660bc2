/* Reads and writes vocab.tsv: line n is the word of id n, a TAB, its count and an LF. Files of other programs are read too: they
 * may have blanks instead of the TAB, CR LF, or no LF at the end. */
#include "vocab.h"

#include "base/file.h"
#include "base/file_map.h"
#include "base/report.h"
#include "base/text.h"
#include "kind.h"

#include <inttypes.h>
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

/* Parses a line, without its LF: "word TAB count" or "word blank count". A word may contain spaces, or begin or end with them,
 * only if a TAB follows it: quoted names and tokens that a program gave can have spaces. */
static int read_line(struct line *out, const char *path, uint64_t number, const char *text, uint64_t length) {
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
    return !vocab->counts[id] &&
           (!strncmp(word, VOCAB_LIST, strlen(VOCAB_LIST)) || !strncmp(word, VOCAB_RELATION, strlen(VOCAB_RELATION)));
}

/* The lines of a vocabulary file that are still to be read, after its byte order mark. */
struct lines {
    const char *path, *at, *end;
    uint64_t number; /* of the next line, from 1 */
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

/* Appends the words of all lines to the vocabulary, which has memory reserved for them. */
static int take_lines(struct vocab *vocab, struct lines lines) {
    const char *text = "";
    uint64_t length = 0;
    int more;
    while ((more = next_line(&lines, &text, &length)) > 0) {
        struct line line = {0};
        if (read_line(&line, lines.path, lines.number - 1, text, length)) return -1;
        vocab_append(vocab, line.word, line.length, line.count);
        if (__builtin_add_overflow(vocab->tokens, line.count, &vocab->tokens))
            return fail("vocabulary '%s' line %" PRIu64 ": the counts add up to more than 2^64", lines.path,
                        lines.number - 1);
    }
    vocab->kept = vocab->tokens;
    vocab->distinct = vocab->size;
    while (vocab->lists < vocab->size && is_list(vocab, vocab->size - 1 - vocab->lists)) vocab->lists++;
    return more;
}

/* Counts the lines. Fails if the first one shows that the file is no vocabulary. */
static int count_lines(struct lines lines, uint64_t *count) {
    const char *text = "";
    uint64_t length = 0;
    int more;
    for (*count = 0; (more = next_line(&lines, &text, &length)) > 0; ++*count)
        if (!*count && read_line(&(struct line){0}, lines.path, 1, text, length)) return -1;
    if (more < 0) return -1;
    if (!*count) return fail("vocabulary '%s' is empty; wanted lines of word TAB count", lines.path);
    if (*count <= WORDS_MOST) return 0;
    return fail("vocabulary '%s' has %" PRIu64 " words, more than the %u that ids can name", lines.path, *count,
                WORDS_MOST);
}

static int read_file(struct vocab *vocab, const char *path, int given) {
    struct file_map map;
    uint64_t count;
    *vocab = (struct vocab){0};
    if (file_map_open(&map, path)) return -1;
    uint64_t mark = given ? text_mark(map.data, map.size) : 0;
    struct lines lines = {path, map.data, map.data, 1}; /* if the file is empty, map.data is NULL */
    if (map.size) lines = (struct lines){path, map.data + mark, map.data + map.size, 1};
    /* A line has at least as many bytes as its word and a NUL, except a last line without an LF, which has one byte less. */
    int result = (given && kind_check_format(path, map.data, map.size, 0)) || count_lines(lines, &count) ||
                         vocab_reserve(vocab, count, map.size + 1) || take_lines(vocab, lines) ||
                         vocab_index(vocab, path)
                     ? -1
                     : 0;
    file_map_close(&map);
    if (result) vocab_release(vocab);
    return result;
}

int vocab_read(struct vocab *vocab, const char *path) {
    return read_file(vocab, path, 0);
}

int vocab_read_given(struct vocab *vocab, const char *path) {
    return read_file(vocab, path, 1);
}

/* ---- writing ---- */

/* Writes "TAB count LF" and returns its length. */
static unsigned tail_of(char out[24], uint64_t count) {
    unsigned at = 24;
    out[--at] = '\n';
    do out[--at] = (char)('0' + count % 10);
    while (count /= 10);
    out[--at] = '\t';
    memmove(out, out + at, 24 - at);
    return 24 - at;
}

int vocab_write(const struct vocab *vocab, const char *path) {
    struct file_writer writer;
    char tail[24];
    uint64_t length;
    int result = 0;
    if (file_writer_open(&writer, path)) return -1;
    for (uint64_t id = 0; id < vocab->size && !result; id++) {
        const char *word = vocab_word(vocab, id, &length);
        result = file_write(&writer, word, length);
        if (!result) result = file_write(&writer, tail, tail_of(tail, vocab->counts[id]));
    }
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

uint64_t vocab_fingerprint(const struct vocab *vocab) {
    XXH3_state_t state;
    char tail[24];
    uint64_t length;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for (uint64_t id = 0; id < vocab->size; id++) {
        const char *word = vocab_word(vocab, id, &length);
        XXH3_64bits_update(&state, word, length);
        XXH3_64bits_update(&state, tail, tail_of(tail, vocab->counts[id]));
    }
    return XXH3_64bits_digest(&state);
}
