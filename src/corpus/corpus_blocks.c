/* Blocks of a corpus. Threads read a file that is not packed by ranges of equal length, each range by one thread and without a
 * lock. A file may be cut only at some offsets; a block begins at the first of these from the range's begin on, and ends at the
 * first from the range's end on. The blocks then get their numbers in the file's order. A packed file is read under the lock. */
#define _GNU_SOURCE
#include "corpus_inner.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 1 if blocks may end only where lines end: because lines are read as a whole, words may contain blanks, or lines get
 * numbers. */
static int needs_whole_lines(const struct corpus *corpus, const struct corpus_file *file) {
    if (corpus->format->whole_lines) return 1;
    const struct columns_form *form = corpus_form(file);
    return corpus->format->rows != LOOK_TEXT && (*form->separator != ' ' || form->quotes != QUOTES_BYTES || form->naming == NAMED_BY_LINE);
}

/* ---- blocks ---- */

/* Returns the length at which a block may be cut: just after the last white byte (or line end) in bytes[looked .. length - 2]; 0
 * if there is no white byte. The very last byte always belongs to the next block, so that a block follows unless the file has
 * ended. */
static uint64_t find_cut(const struct corpus_block *block, uint64_t looked, int whole_lines) {
    if (whole_lines) {
        const char *newline = memrchr(block->bytes + looked, '\n', block->length - 1 - looked);
        return newline ? (uint64_t)(newline - block->bytes) + 1 : 0;
    }
    for (uint64_t i = block->length - 1; i > looked; i--)
        if (token_is_white(block->bytes[i - 1])) return i;
    return 0;
}

uint64_t corpus_newlines(const char *bytes, uint64_t length) {
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

static int left_open(const struct corpus_block *block, int before) {
    for (uint64_t i = block->length; i > block->skip; i--) {
        if (block->bytes[i - 1] == '\n') return 0;
        if (!token_is_white(block->bytes[i - 1])) return 1;
    }
    return before;
}

/* Finds a word of more than `most` bytes. Returns the index of its first byte, or `length` if no word is so long. A word of more
 * than `most` bytes covers at least one of bytes most, 2 most + 1, 3 most + 2 .., so only the words at these bytes are measured. */
static uint64_t find_long_word(const char *bytes, uint64_t length, uint64_t most, const char *separators) {
    for (uint64_t at = most; at < length; at += most + 1) {
        uint64_t from = at, to = at;
        while (from && to - from <= most && !token_ends(bytes[from - 1], separators)) from--;
        while (to < length && to - from <= most && !token_ends(bytes[to], separators)) to++;
        if (to - from > most) return from;
    }
    return length;
}

/* Highest number of words in a line that is read as a whole: a pair or an edge. */
enum { LINE_WORDS = 4 };

/* Works like find_long_word(), for a block of the current file. */
static uint64_t long_word_of(const struct corpus *corpus, const struct corpus_block *block) {
    const char *separators = corpus->format->rows == LOOK_TEXT ? "" : corpus_form(&corpus->files[corpus->next - 1])->separator;
    return find_long_word(block->bytes, block->length, corpus->max_word, separators);
}

static int check_words(const struct corpus *corpus, const struct corpus_block *block) {
    char most[TEXT_BYTES];
    uint64_t at = long_word_of(corpus, block);
    if (at == block->length) return 0;
    return fail("'%s' line %" PRIu64 ": the word that begins with '%.*s' has more than %s (corpus.max_word); wanted words with "
                "blanks or line ends between them",
                corpus->files[corpus->next - 1].name, corpus->line + corpus_newlines(block->bytes, at),
                text_shown(corpus->max_word), block->bytes + at, text_of_bytes(most, corpus->max_word));
}

/* Returns 1 if the block's last line is too long for a pair or an edge. */
static int is_long_line(const struct corpus *corpus, const struct corpus_block *block) {
    uint64_t most = (corpus->max_word + CORPUS_BLOCK) * LINE_WORDS;
    return corpus->format->columns && !corpus->format->documents && block->length > most &&
           !memchr(block->bytes + block->length - most, '\n', most);
}

/* Called before a block grows because it cannot be cut. Fails if its word, or its line of a pair or an edge, is too long. */
static int check_growth(const struct corpus *corpus, const struct corpus_block *block) {
    if (check_words(corpus, block)) return -1;
    if (!is_long_line(corpus, block)) return 0;
    return fail("'%s' line %" PRIu64 " has more than %" PRIu64 " bytes; wanted %s", corpus->files[corpus->next - 1].name,
                corpus->line + corpus_newlines(block->bytes, block->length), (corpus->max_word + CORPUS_BLOCK) * LINE_WORDS,
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
    corpus->carried = block->length - cut;
    if (mem_grow(&corpus->carry, &corpus->carry_capacity, corpus->carried, 1, "a block of the corpus")) return -1;
    memcpy(corpus->carry, block->bytes + cut, corpus->carried);
    block->length = cut;
    return check_words(corpus, block);
}

/* Prints the format of a file, unless the previous file had the same format. */
static void say_rows(struct corpus *corpus, const struct corpus_file *file) {
    const char *said = file->front.look.said;
    if (!*said || !strcmp(said, corpus->said)) return;
    remark("%s%s%s%s", said, corpus->count > 1 ? " ('" : "", corpus->count > 1 ? file->name : "", corpus->count > 1 ? "')" : "");
    snprintf(corpus->said, sizeof corpus->said, "%s", said);
}

int corpus_look_at(struct corpus *corpus, struct corpus_file *file) {
    if (file->looked_at) return 0;
    struct first_look wanted = corpus_wanted(file, corpus->format, &corpus->keys);
    if (first_bytes_look(&file->front, &wanted)) return -1;
    file->looked_at = 1;
    if (file->front.rows && !corpus->said_rows++) warn("the lines of '%s' %s", file->name, file->front.rows);
    if (file->front.bad_line && !corpus->said_encoding++)
        remark("encoding   line %" PRIu64 " of '%s' is not UTF-8; words are kept byte for byte (iconv -f LATIN1 -t UTF-8 "
               "changes Latin-1)",
               file->front.bad_line, file->name);
    say_rows(corpus, file);
    return 0;
}

static int open_next(struct corpus *corpus) {
    struct corpus_file *file = &corpus->files[corpus->next++];
    corpus->line = 1;
    corpus->line_open = 0;
    corpus->at = 0;
    if (corpus_look_at(corpus, file)) return -1;
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

/* Replaces a block's bytes, which are `length` new ones. */
static void replace_bytes(struct corpus_block *block, char *bytes, uint64_t length, uint64_t capacity) {
    free(block->bytes);
    block->bytes = bytes;
    block->length = length;
    block->capacity = capacity;
}

enum { NUMBER_BYTES = 24 }; /* largest number of bytes of a line number and the separator after it */

/* Writes a line number and a separator at the beginning of each non-empty line of a block. So a list without a name is named by
 * its line number. */
static int number_lines(struct corpus *corpus, struct corpus_block *block, const char *separator) {
    uint64_t lines = corpus_newlines(block->bytes, block->length) + 1,
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

/* Rewrites lines of a table of documents: the document's name or its line's number, a tab, the text. */
static int part_documents(struct corpus *corpus, struct corpus_block *block, const struct columns_form *form) {
    unsigned name = form->column[COLUMN_A], text = form->column[COLUMN_B], more = form->column[COLUMN_VALUE];
    uint64_t lines = corpus_newlines(block->bytes, block->length) + 1,
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

/* Makes a file one document: line ends become blanks, and the file's first block begins with its path and a tab. */
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

/* Completes the next block of the current file, in the file's order. */
static int place(struct corpus *corpus, struct corpus_block *block, uint64_t newlines, int ended) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    block->skip = corpus->skip < block->length ? corpus->skip : block->length;
    corpus->skip -= block->skip;
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

/* Returns 1, or 0 if the file has no more bytes; -1 after fail(). */
static int next_packed(struct corpus *corpus, struct corpus_block *block) {
    int ended;
    if (fill(corpus, block, &ended)) return -1;
    if (ended) reader_close(&corpus->reader);
    return block->length ? place(corpus, block, corpus_newlines(block->bytes, block->length), ended) : 0;
}

/* ---- ranges ---- */

/* Finds the first offset from `from` on at which the current file may be cut: after a white byte (or line end), or at the file's
 * end. Returns 1; 0 if `to` is before that offset; -1 after fail(). */
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

/* Reads bytes from .. end - 1 of the current file. They may be fewer if the file has become shorter. */
static int read_bytes(const struct corpus *corpus, struct corpus_block *block, uint64_t from, uint64_t end) {
    const struct corpus_file *file = &corpus->files[corpus->next - 1];
    if (mem_grow(&block->bytes, &block->capacity, end - from + CORPUS_PADDING, 1, "a block of the corpus")) return -1;
    int64_t n = retry_read_at(corpus->reader.fd, block->bytes, end - from, from);
    if (n < 0) return fail_system("read", file->name);
    block->length = (uint64_t)n;
    if (file->front.cr_ends) end_lines_with_lf(block->bytes, block->length);
    return 0;
}

/* Reads the block of a range of the current file: nothing if the file cannot be cut within the range. Reading ends early at a word
 * or a line that is too long. Stores where the block ends. */
static int read_range(const struct corpus *corpus, struct corpus_block *block, uint64_t from, uint64_t to, uint64_t *end) {
    uint64_t start;
    block->length = 0;
    int found = find_place(corpus, from, to - 1, &start);
    if (found <= 0) return found;
    found = 0;
    for (uint64_t more = corpus->max_word; !found; more *= 2) {
        found = find_place(corpus, to, to + more, end);
        if (found < 0 || read_bytes(corpus, block, start, *end)) return -1;
        if (long_word_of(corpus, block) < block->length || (!found && is_long_line(corpus, block))) return 0;
    }
    return 0;
}

/* Reads the next range of the current file. Returns 1, or 0 if it gives no block; -1 after fail(). Does not hold the lock while it
 * reads. */
static int next_range(struct corpus *corpus, struct corpus_block *block) {
    uint64_t size = corpus->files[corpus->next - 1].size, from = corpus->at, number = corpus->taken++;
    uint64_t to = size - from < corpus->block_bytes ? size : from + corpus->block_bytes, end = to;
    corpus->at = to;
    pthread_mutex_unlock(&corpus->lock);
    int result = read_range(corpus, block, from, to, &end);
    uint64_t newlines = result ? 0 : corpus_newlines(block->bytes, block->length);
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

/* Opens the next file, once all blocks of the current file are placed. Returns 1; 0 if no file is left; -1 after fail(). */
static int go_on(struct corpus *corpus) {
    while (!corpus->failed && corpus->placed != corpus->taken) pthread_cond_wait(&corpus->moved, &corpus->lock);
    if (corpus->failed) return 0;
    if (is_open(corpus)) return 1; /* another thread has opened it meanwhile */
    reader_close(&corpus->reader);
    if (corpus->next == corpus->count) return 0;
    return open_next(corpus) ? -1 : 1;
}

static int next_locked(struct corpus *corpus, struct corpus_block *block) {
    for (int result; !corpus->failed;) {
        if (interrupt_check()) return -1;
        if (!is_open(corpus))
            result = go_on(corpus);
        else if ((result = corpus->reader.packing ? next_packed(corpus, block) : next_range(corpus, block)))
            return result;
        else
            continue;
        if (result <= 0) return result;
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
