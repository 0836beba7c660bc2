/* fake_tables: tables in plain memory behind the backend's interface, for tests of code that only reads and writes
 * rows. */
#ifndef SPTX_TEST_FAKE_TABLES_H
#define SPTX_TEST_FAKE_TABLES_H

#include "kernels/backend.h"
#include "base/report.h"

#include <stdlib.h>
#include <string.h>

struct backend {
    const struct backend_ops *ops;
    uint64_t reads, writes;
    uint64_t fail_read_at; /* number of the read that is to fail, from 1; 0: no read fails */
};
struct backend_table {
    struct table_spec spec;
    char *packed; /* [rows x layout.packed] */
};

static int fake_open(struct backend *backend, const struct table_spec *spec, struct backend_table **out) {
    struct backend_table *table = calloc(1, sizeof *table);
    table->spec = *spec;
    table->packed = malloc(spec->rows * spec->layout.packed);
    memset(table->packed, 0xAB, spec->rows * spec->layout.packed);
    *out = table;
    return 0;
}
static void fake_close(struct backend *backend, struct backend_table *table) {
    free(table->packed);
    free(table);
}
static int fake_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed) {
    if (++backend->reads == backend->fail_read_at) return fail("the device is gone");
    if (first < table->spec.first_row || first + count > table->spec.rows) return fail("rows that the table does not have");
    memcpy(packed, table->packed + first * table->spec.layout.packed, count * table->spec.layout.packed);
    return 0;
}
static int fake_write(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count,
                      const void *packed) {
    backend->writes++;
    if (first < table->spec.first_row || first + count > table->spec.rows) return fail("rows that the table does not have");
    memcpy(table->packed + first * table->spec.layout.packed, packed, count * table->spec.layout.packed);
    return 0;
}

static const struct backend_ops fake_ops = {
    .name = "fake", .table_open = fake_open, .table_close = fake_close, .table_read = fake_read, .table_write = fake_write};

#endif
