#include "idstream.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int piece_sum_open(struct piece_sum *sum) {
    *sum = (struct piece_sum){XXH3_createState(), XXH3_createState(), 0};
    int ready = sum->piece && sum->all && XXH3_64bits_reset(sum->piece) == XXH_OK && XXH3_64bits_reset(sum->all) == XXH_OK;
    return ready ? 0 : fail("not enough memory for a checksum");
}

static void end_piece(struct piece_sum *sum) {
    uint64_t hash = XXH3_64bits_digest(sum->piece);
    XXH3_64bits_update(sum->all, &hash, sizeof hash);
    XXH3_64bits_reset(sum->piece);
    sum->in_piece = 0;
}

void piece_sum_add(struct piece_sum *sum, const void *data, uint64_t length) {
    const char *bytes = data;
    for (uint64_t at = 0, n; at < length; at += n) {
        n = SUM_PIECE - sum->in_piece < length - at ? SUM_PIECE - sum->in_piece : length - at;
        XXH3_64bits_update(sum->piece, bytes + at, n);
        sum->in_piece += n;
        if (sum->in_piece == SUM_PIECE) end_piece(sum);
    }
}

uint64_t piece_sum_end(struct piece_sum *sum) {
    if (sum->in_piece) end_piece(sum);
    return XXH3_64bits_digest(sum->all);
}

void piece_sum_close(struct piece_sum *sum) {
    XXH3_freeState(sum->piece);
    XXH3_freeState(sum->all);
    *sum = (struct piece_sum){0};
}

/* ---- of an existing file ---- */

/* State of computing one checksum; the workers share it. */
struct summing {
    const char *bytes;
    uint64_t size;
    piece_look *look;
    void *user;
    uint64_t *sums; /* [pieces] */
    _Atomic uint64_t next;
};

static int check_pieces(void *context, unsigned worker) {
    struct summing *c = context;
    uint64_t from, to;
    while (pool_take(&c->next, c->size, SUM_PIECE, &from, &to)) {
        if (interrupt_check()) return -1;
        c->sums[from / SUM_PIECE] = XXH3_64bits(c->bytes + from, to - from);
        if (c->look) c->look(c->user, from, to);
    }
    return 0;
}

int piece_sum_of(const char *bytes, uint64_t size, struct pool *pool, piece_look *look, void *user, uint64_t *sum) {
    uint64_t pieces = (size + SUM_PIECE - 1) / SUM_PIECE;
    struct summing c = {.bytes = bytes, .size = size, .look = look, .user = user};
    c.sums = mem_alloc(pieces, sizeof *c.sums, "checking a file");
    int result = c.sums ? pool_run(pool, check_pieces, &c) : -1;
    if (!result) *sum = XXH3_64bits(c.sums, pieces * sizeof *c.sums);
    free(c.sums);
    return result;
}

/* `sum` is a checksum of all bytes after the header: in version 1 their XXH3, from version 2 on a checksum that threads compute together
 * (piece_sum). A stream is written as the lowest version that has the fields it needs. */
struct header {
    char magic[8];
    uint32_t version, weighed; /* weighed: enum pair_weights; 0 before version 3 */
    uint64_t fingerprint, tokens, sentences, sum;
    uint32_t triples; /* 1: a stream of triples; 0 before version 4 */
    char rest[IDSTREAM_HEADER - 52];
};
enum { VERSION_WITHOUT_WEIGHTS = 2, VERSION_WITH_WEIGHTS = 3, VERSION_OF_TRIPLES = 4 };
_Static_assert(sizeof(struct header) == IDSTREAM_HEADER, "ids start at byte 128");

static uint64_t padded(uint64_t tokens) {
    return (tokens + 1) / 2 * 2;
}

/* ---- writing ---- */

int idstream_writer_open(struct idstream_writer *writer, const char *path) {
    static const struct header none;
    *writer = (struct idstream_writer){.file.fd = -1};
    if (file_writer_open(&writer->file, path)) return -1;
    if (piece_sum_open(&writer->sum) ||
        mem_grow(&writer->starts, &writer->capacity, 1, sizeof *writer->starts, "the sentences' starts") ||
        file_write(&writer->file, &none, sizeof none)) {
        idstream_writer_abandon(writer);
        return -1;
    }
    writer->starts[0] = 0;
    return 0;
}

static int put(struct idstream_writer *writer, const void *data, uint64_t length) {
    if (!writer->pool) piece_sum_add(&writer->sum, data, length);
    return length ? file_write(&writer->file, data, length) : 0;
}

int idstream_put(struct idstream_writer *writer, const uint32_t *ids, uint64_t count) {
    writer->tokens += count;
    return put(writer, ids, count * sizeof *ids);
}

int idstream_put_at(struct idstream_writer *writer, uint64_t first, const uint32_t *ids, uint64_t count) {
    return count ? file_write_apart(&writer->file, sizeof(struct header) + first * sizeof *ids, ids, count * sizeof *ids) : 0;
}

int idstream_put_weights_at(struct idstream_writer *writer, uint64_t first, const float *weights, uint64_t count) {
    uint64_t before = sizeof(struct header) + padded(writer->tokens) * sizeof(uint32_t);
    return count ? file_write_apart(&writer->file, before + first * sizeof *weights, weights, count * sizeof *weights) : 0;
}

/* Pads ids or weights, whose items have 4 bytes, to a multiple of 8 bytes. */
static int pad(struct idstream_writer *writer) {
    static const uint32_t padding;
    return put(writer, &padding, (padded(writer->tokens) - writer->tokens) * sizeof padding);
}

int idstream_put_weights(struct idstream_writer *writer, const float *weights, uint64_t count) {
    if (count && !writer->weights && pad(writer)) return -1;
    writer->weights += count;
    return put(writer, weights, count * sizeof *weights);
}

int idstream_end_sentence(struct idstream_writer *writer, uint64_t end) {
    if (mem_grow(&writer->starts, &writer->capacity, writer->sentences + 2, sizeof *writer->starts,
                 "the sentences' starts"))
        return -1;
    writer->starts[++writer->sentences] = end;
    return 0;
}

int idstream_append(struct idstream_writer *writer, const uint32_t *ids, uint64_t count) {
    if (!count) return 0;
    return idstream_put(writer, ids, count) || idstream_end_sentence(writer, writer->tokens) ? -1 : 0;
}

/* Computes the checksum of the bytes that were written to the file. */
static int sum_written(struct idstream_writer *writer, uint64_t *sum) {
    ENDED_BY(file_map_close) struct file_map map = {.data = NULL};
    int result = file_finish(&writer->file) || file_map_open(&map, writer->file.partial) ? -1 : 0;
    if (!result)
        result = piece_sum_of(map.data + sizeof(struct header), map.size - sizeof(struct header), writer->pool, NULL, NULL, sum);
    return result;
}

int idstream_writer_commit(struct idstream_writer *writer, uint64_t fingerprint) {
    int result = 0, apart = writer->pool != NULL;
    if (apart) result = file_skip(&writer->file, writer->tokens * sizeof(uint32_t));
    if (apart && !result && writer->weighed)
        result = pad(writer) || file_skip(&writer->file, writer->tokens * sizeof(float)) ? -1 : 0;
    if (!result) result = pad(writer);
    if (!result && writer->triples) result = idstream_end_sentence(writer, writer->tokens);
    if (!result) result = put(writer, writer->starts, (writer->sentences + 1) * sizeof *writer->starts);
    struct header header = {.version = writer->triples   ? VERSION_OF_TRIPLES
                                       : writer->weighed ? VERSION_WITH_WEIGHTS
                                                         : VERSION_WITHOUT_WEIGHTS,
                            .triples = writer->triples > 0,
                            .weighed = writer->weighed,
                            .fingerprint = fingerprint,
                            .tokens = writer->tokens,
                            .sentences = writer->sentences,
                            .sum = writer->pool ? 0 : piece_sum_end(&writer->sum)};
    memcpy(header.magic, CORPUS_STREAM_MAGIC, sizeof header.magic);
    if (!result && writer->pool) result = sum_written(writer, &header.sum);
    if (!result) result = file_write_at(&writer->file, 0, &header, sizeof header);
    if (!result) result = file_commit(&writer->file);
    idstream_writer_abandon(writer);
    return result;
}

void idstream_writer_abandon(struct idstream_writer *writer) {
    file_abandon(&writer->file);
    piece_sum_close(&writer->sum);
    free(writer->starts);
    *writer = (struct idstream_writer){.file.fd = -1};
}

/* ---- checking ---- */

/* Returns the bytes of the ids and weights, with their padding. */
static uint64_t items_bytes(uint64_t tokens, int weighed) {
    return padded(tokens) * (sizeof(uint32_t) + (weighed ? sizeof(float) : 0));
}

uint64_t idstream_bytes(uint64_t tokens, uint64_t sentences, int weighed) {
    return sizeof(struct header) + items_bytes(tokens, weighed) + (sentences + 1) * sizeof(uint64_t);
}

/* Returns 1 if a stream with the numbers in this header has exactly `size` bytes. The first test keeps the sums from overflowing. */
static int sizes_agree(const struct header *header, uint64_t size) {
    uint64_t words = (size - sizeof *header) / 4;
    if (size % 8 || header->tokens > words || header->sentences > words) return 0;
    return idstream_bytes(header->tokens, header->sentences, header->weighed > 0) == size;
}

static int header_fits(const struct file_map *map, struct header *header) {
    if (map->size < sizeof *header + 8) return 0;
    memcpy(header, map->data, sizeof *header);
    int known = !memcmp(header->magic, CORPUS_STREAM_MAGIC, sizeof header->magic) && header->version >= 1 &&
                header->version <= VERSION_OF_TRIPLES && sizes_agree(header, map->size);
    if (header->version < VERSION_OF_TRIPLES)
        return known && header->weighed <= PAIR_WEIGHTS_LOG && !header->weighed == (header->version < VERSION_WITH_WEIGHTS);
    return known && header->triples == 1 && !header->weighed && header->tokens % 3 == 0 && header->sentences == 1;
}

/* State of checking a stream's values, with all threads. Even a file whose checksum is right may contain an id without a row, or a sentence that
 * ends before it begins. */
struct checking {
    const struct idstream *stream;
    uint64_t rows;
    atomic_int senseless;
};

static int weights_are_sound(const struct idstream *stream, uint64_t first, uint64_t end) {
    int sound = 1;
    for (uint64_t i = first; i < end; i++) sound &= stream->weights[i] >= 0 && stream->weights[i] <= FLT_MAX;
    return sound;
}

/* Returns 1 if sentences first .. end - 1 each have at least one token, and the stream's first sentence begins at 0 and its last one ends with the
 * last token. */
static int sentences_follow(const struct idstream *stream, uint64_t first, uint64_t end) {
    const uint64_t *starts = stream->starts;
    int fall = (first == 0 && starts[0] != 0) || starts[stream->sentences] != stream->tokens;
    for (uint64_t i = first; i < end; i++) fall |= starts[i] >= starts[i + 1];
    return !fall;
}

/* Finds the items that begin in bytes from .. to - 1: items *first .. *end - 1. Item 0 begins at byte 0; each of the `most` items has `size`
 * bytes. */
static void items_between(uint64_t from, uint64_t to, uint64_t size, uint64_t most, uint64_t *first, uint64_t *end) {
    *first = from / size < most ? from / size : most;
    *end = to / size < most ? to / size : most;
}

/* Does the same as items_between() if item 0 begins at byte `at`. */
static void items_behind(uint64_t at, uint64_t from, uint64_t to, uint64_t size, uint64_t most, uint64_t *first, uint64_t *end) {
    items_between(from > at ? from - at : 0, to > at ? to - at : 0, size, most, first, end);
}

static void look_at_piece(void *context, uint64_t from, uint64_t to) {
    struct checking *c = context;
    const struct idstream *stream = c->stream;
    uint64_t first, end;
    items_between(from, to, sizeof *stream->ids, stream->tokens, &first, &end);
    uint32_t highest = 0;
    for (uint64_t i = first; i < end; i++) highest = stream->ids[i] > highest ? stream->ids[i] : highest;
    int sense = first >= end || highest < c->rows;
    if (stream->weights) {
        items_behind(items_bytes(stream->tokens, 0), from, to, sizeof *stream->weights, stream->tokens, &first, &end);
        sense &= weights_are_sound(stream, first, end);
    }
    items_behind(items_bytes(stream->tokens, stream->weights != NULL), from, to, sizeof *stream->starts, stream->sentences, &first,
                 &end);
    if (!sense || !sentences_follow(stream, first, end)) atomic_store(&c->senseless, 1);
}

/* Fails with a message that names the first impossible value. There must be one. */
static int say_senseless(const struct idstream *stream, const char *path, uint64_t rows) {
    for (uint64_t i = 0; i < stream->tokens; i++)
        if (stream->ids[i] >= rows)
            return fail("id stream '%s' holds id %" PRIu32 " as token %" PRIu64 ", and the vocabulary has %" PRIu64 " words, the first of id 0",
                        path, stream->ids[i], i, rows);
    for (uint64_t i = 0; i < stream->tokens && stream->weights; i++)
        if (!weights_are_sound(stream, i, i + 1))
            return fail("id stream '%s': token %" PRIu64 " weighs %g; wanted a finite number from 0 on", path, i,
                        (double)stream->weights[i]);
    for (uint64_t i = 0; i < stream->sentences; i++)
        if (stream->starts[i] >= stream->starts[i + 1] || (i == 0 && stream->starts[0]))
            return fail("id stream '%s': sentence %" PRIu64 " goes from token %" PRIu64 " to %" PRIu64
                        ", where each begins at the end of the one before and has a token or more",
                        path, i, stream->starts[i], stream->starts[i + 1]);
    return fail("id stream '%s': its sentences end at token %" PRIu64 ", and it has %" PRIu64, path,
                stream->starts[stream->sentences], stream->tokens);
}

static int say_damaged(const char *path, uint64_t size) {
    return fail("id stream '%s' is damaged or of another version: %" PRIu64 " bytes do not hold what its header says", path,
                size);
}

/* Reads the whole stream once, and checks its checksum and its values. Sets stream->checksum as version 2 computes it, whatever the file's
 * version, so that streams with equal contents have equal checksums. */
static int check(struct idstream *stream, const struct header *header, const char *path, uint64_t rows, struct pool *pool) {
    struct checking c = {.stream = stream, .rows = rows};
    const char *bytes = stream->map.data + sizeof *header;
    uint64_t size = stream->map.size - sizeof *header;
    if (piece_sum_of(bytes, size, pool, look_at_piece, &c, &stream->checksum)) return -1;
    uint64_t sum = header->version == 1 ? XXH3_64bits(bytes, size) : stream->checksum;
    if (sum != header->sum) return say_damaged(path, stream->map.size);
    if (c.senseless) return say_senseless(stream, path, rows);
    if (!stream->triples) return 0;
    stream->sentences = stream->triples;
    stream->starts = NULL;
    return 0;
}

/* ---- reading ---- */

static void view(struct idstream *stream, const struct file_map *map, const struct header *header) {
    const char *ids = map->data + sizeof *header;
    *stream = (struct idstream){.ids = (const uint32_t *)ids,
                                .starts = (const uint64_t *)(ids + items_bytes(header->tokens, header->weighed > 0)),
                                .weights = header->weighed ? (const float *)(ids + items_bytes(header->tokens, 0)) : NULL,
                                .weighed = (enum pair_weights)header->weighed,
                                .tokens = header->tokens,
                                .sentences = header->sentences,
                                .triples = header->version == VERSION_OF_TRIPLES ? header->tokens / 3 : 0,
                                .map = *map};
}

/* Maps a stream as idstream_open() does. The header must contain *fingerprint; fingerprint = NULL: any will do. */
static int open_as(struct idstream *stream, const char *path, const uint64_t *fingerprint, uint64_t rows, struct pool *pool) {
    struct header header;
    struct file_map map;
    *stream = (struct idstream){0};
    if (file_map_open(&map, path)) return -1;
    int result = !header_fits(&map, &header) ? say_damaged(path, map.size)
                 : fingerprint && header.fingerprint != *fingerprint
                     ? fail("id stream '%s' was made with another vocabulary than this one of %" PRIu64 " words", path, rows)
                 : !header.tokens ? fail("id stream '%s' is empty", path)
                                  : 0;
    if (!result) {
        view(stream, &map, &header);
        result = check(stream, &header, path, rows, pool);
    }
    if (result) {
        file_map_close(&map);
        *stream = (struct idstream){0};
    }
    return result;
}

int idstream_open(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool) {
    return open_as(stream, path, &fingerprint, rows, pool);
}

int idstream_open_any(struct idstream *stream, const char *path, uint64_t rows, struct pool *pool) {
    return open_as(stream, path, NULL, rows, pool);
}

int idstream_reuse(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool) {
    int failed_before = report_exit_code();
    *stream = (struct idstream){0};
    int there = file_exists(path);
    if (there > 0 && !idstream_open(stream, path, fingerprint, rows, pool)) return 1;
    if (!failed_before) report_clear(); /* no message yet: the caller makes the stream again, and if that fails too, says why */
    return 0;
}

int idstream_has(const char *path, uint64_t checksum) {
    char head[sizeof(struct header) + 1] = "";
    struct header header;
    int there = file_head(path, head, sizeof head);
    memcpy(&header, head, sizeof header);
    return there < 0 ? -1 : !memcmp(header.magic, CORPUS_STREAM_MAGIC, sizeof header.magic) && header.sum == checksum;
}

void idstream_close(struct idstream *stream) {
    file_map_close(&stream->map);
    *stream = (struct idstream){0};
}
