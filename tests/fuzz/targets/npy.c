/* npy: takes any bytes as a .npy file. An accepted file must contain all its rows, and its header must be the same after it is
 * written and read. */
#include "base/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

/* Reads the first and the last bytes of each field. If the file is too short, this causes a bus error. */
static void touch(const struct npy *npy) {
    uint32_t ends = 0; /* returned, so that the compiler does not remove the reads */
    uint64_t offset = 0;
    for (uint32_t i = 0; i < npy->fields; i++) {
        const struct npy_field *field = &npy->field[i];
        HOLDS(field->offset == offset, "field %u lies elsewhere", i);
        offset += 4 * (uint64_t)field->columns;
        HOLDS(field->columns, "field %u has no column", i);
        if (!npy->rows) continue;
        const uint32_t *first = npy_row(npy, field, 0), *last = npy_row(npy, field, npy->rows - 1);
        ends ^= *first ^ last[field->columns - 1];
        HOLDS((const char *)(last + field->columns) <= npy->map.data + npy->map.size, "field %u passes the file's end",
              i);
    }
    HOLDS(offset == npy->record, "the record is longer than its fields, %u", ends);
}

static void write_and_read(const struct npy *npy, const char *path) {
    struct file_writer writer;
    struct npy copy = *npy, again;
    /* writes only the header, as of a file without rows */
    copy.rows = 0;
    HOLDS(!file_writer_open(&writer, path) && !npy_write_header(&copy, &writer) && !file_commit(&writer),
          "not written");
    HOLDS(!npy_open(&again, path), "what was written cannot be read");
    HOLDS(again.rows == 0 && again.fields == npy->fields && again.record == npy->record,
          "it reads back as something else");
    for (uint32_t i = 0; i < npy->fields; i++) {
        const struct npy_field *a = &npy->field[i], *b = &again.field[i];
        HOLDS(!strcmp(a->name, b->name) && a->columns == b->columns && a->kind == b->kind && a->offset == b->offset,
              "field %u reads back as something else", i);
    }
    npy_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct npy npy;
    if (!fuzz_accepted(npy_open(&npy, scratch_file("given", bytes, length)))) return 0;
    touch(&npy);
    write_and_read(&npy, in_scratch("again"));
    npy_close(&npy);
    return 0;
}
