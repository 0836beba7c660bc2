#include "frozen.h"

#include "base/memory.h"
#include "base/npy.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { HEADER_MOST = 4096 };

/* Allocates the bit map of one table. all: 1: every row is frozen; 0: none is. */
static int open_side(struct frozen *frozen, enum table_side side, int all) {
    uint64_t words = table_frozen_words(frozen->rows);
    frozen->bits[side] = mem_zalloc(words, sizeof(uint32_t), "which rows are frozen");
    if (frozen->bits[side] && all) memset(frozen->bits[side], 0xFF, words * sizeof(uint32_t));
    return frozen->bits[side] ? 0 : -1;
}

int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows) {
    *frozen = (struct frozen){.rows = rows, .known = config->train_freeze == FREEZE_KNOWN};
    switch (config->train_freeze) {
    case FREEZE_TARGET:
        return open_side(frozen, TABLE_TARGET, 1);
    case FREEZE_CONTEXT:
        return open_side(frozen, TABLE_CONTEXT, 1);
    case FREEZE_KNOWN:
        return open_side(frozen, TABLE_TARGET, 0) || open_side(frozen, TABLE_CONTEXT, 0) ? -1 : 0;
    default:
        return 0;
    }
}

void frozen_release(struct frozen *frozen) {
    free(frozen->bits[TABLE_TARGET]);
    free(frozen->bits[TABLE_CONTEXT]);
    *frozen = (struct frozen){0};
}

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row) {
    frozen->bits[side][row / 32] |= 1u << row % 32;
}

uint64_t frozen_bytes(const struct frozen *frozen) {
    return frozen->known ? HEADER_MOST + 2 * sizeof(uint32_t) * table_frozen_words(frozen->rows) : 0;
}

/* ---- known.npy ---- */

/* Describes known.npy: its fields and rows. */
static struct npy describe(const struct frozen *frozen) {
    struct npy npy = {.rows = table_frozen_words(frozen->rows), .fields = 2};
    for (int side = 0; side < 2; side++) {
        strcpy(npy.field[side].name, table_side_name((enum table_side)side));
        npy.field[side].columns = 1;
        npy.field[side].kind = 'u';
    }
    return npy;
}

/* Interleaves the words of both tables as records of known.npy. Returns them, for the caller to free. */
static uint32_t *join(const struct frozen *frozen) {
    uint64_t words = table_frozen_words(frozen->rows);
    uint32_t *records = mem_alloc(words, 2 * sizeof *records, "which rows are frozen");
    for (uint64_t i = 0; records && i < 2 * words; i++) records[i] = frozen->bits[i % 2][i / 2];
    return records;
}

/* Writes the file's bytes, and computes their hash. */
static int put_mark(const struct frozen *frozen, const uint32_t *records, struct file_writer *writer, XXH64_state_t *hash) {
    struct npy npy = describe(frozen);
    uint64_t bytes = npy.rows * 2 * sizeof *records;
    if (npy_write_header(&npy, writer)) return -1;
    XXH64_update(hash, writer->buffer, writer->used); /* the header is far smaller than the buffer, so it has not been flushed
                                                       * yet */
    XXH64_update(hash, records, bytes);
    return file_write(writer, records, bytes);
}

int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum) {
    struct file_writer writer = {.path = NULL};
    XXH64_state_t *hash = XXH64_createState();
    uint32_t *records = join(frozen);
    int result = hash ? 0 : fail("not enough memory for a checksum");
    if (!records || result || file_writer_open(&writer, path)) {
        result = -1;
    } else {
        XXH64_reset(hash, 0);
        result = put_mark(frozen, records, &writer, hash);
        *checksum = XXH64_digest(hash);
        if (result) file_abandon(&writer);
        else result = file_commit(&writer);
    }
    XXH64_freeState(hash);
    free(records);
    return result;
}

int frozen_read(struct frozen *frozen, const char *path) {
    struct npy npy, wanted = describe(frozen);
    if (npy_open(&npy, path)) return -1;
    const struct npy_field *fields[2] = {npy_find(&npy, "target"), npy_find(&npy, "context")};
    int result = fields[0] && fields[1] && npy.fields == 2 && npy.rows == wanted.rows && npy.record == 2 * sizeof(uint32_t)
                     ? 0 : fail("'%s' does not say of %" PRIu64 " rows which came from train.from", path, frozen->rows);
    for (int side = 0; side < 2 && !result; side++)
        for (uint64_t i = 0; i < npy.rows; i++) memcpy(&frozen->bits[side][i], npy_row(&npy, fields[side], i), sizeof(uint32_t));
    npy_close(&npy);
    return result;
}

struct reading {
    struct frozen *frozen;
    const char *checkpoint;
};

static int read_known(void *user) {
    const struct reading *reading = user;
    char *path = file_join(reading->checkpoint, "known.npy");
    int result = path ? frozen_read(reading->frozen, path) : -1;
    free(path);
    return result;
}

int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks) {
    struct reading reading = {frozen, checkpoint};
    uint64_t rows = frozen->rows;
    if (ranks_count(ranks) > 1) ranks_share(ranks, &rows, sizeof rows);
    if (ranks_agree(ranks, rows == frozen->rows ? 0 : fail("its corpus has other words than that of rank 0"))) return -1;
    if (ranks_do(ranks, ranks_first(ranks) ? read_known : NULL, &reading)) return -1;
    for (int side = 0; side < 2 && ranks_count(ranks) > 1; side++)
        ranks_share(ranks, frozen->bits[side], table_frozen_words(frozen->rows) * sizeof(uint32_t));
    return 0;
}
