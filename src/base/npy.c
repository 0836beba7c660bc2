#include "npy.h"

#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
/* Types that NumPy does not have, or that mean more than numbers: by kind, the type in the file, and the ending of the field's name. */
static const struct named_type {
    char kind;
    const char *type, *ending;
} named_types[] = {{'h', "<u2", "_bfloat16"}, {'b', "|i1", "_int8"}, {'B', "|u1", "_float8"}};
enum { NAMED_TYPES = sizeof named_types / sizeof *named_types };
enum { MAGIC = 6, ALIGNMENT = 64, HEADER_BYTES = 2048 };

/* ---- reading the header: a Python dict of three keys, as NumPy writes it ---- */

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *cursor) {
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at) cursor->at++;
}

/* If the next byte that is not blank is `wanted`, moves past it and returns 1; otherwise returns 0. */
static int take_mark(struct cursor *cursor, char wanted) {
    skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted) return 0;
    cursor->at++;
    return 1;
}

static int take_word(struct cursor *cursor, const char *wanted) {
    size_t n = strlen(wanted);
    skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < n || memcmp(cursor->at, wanted, n)) return 0;
    cursor->at += n;
    return 1;
}

/* Reads a quoted string without escapes into `out`. Returns 1, or 0 if the text is something else. */
static int take_quoted(struct cursor *cursor, char *out, size_t capacity) {
    char quote = take_mark(cursor, '\'') ? '\'' : take_mark(cursor, '"') ? '"' : 0;
    size_t n = 0;
    if (!quote) return 0;
    for (; cursor->at < cursor->end && *cursor->at != quote; cursor->at++) {
        if (*cursor->at == '\\' || n + 1 >= capacity) return 0;
        out[n++] = *cursor->at;
    }
    out[n] = 0;
    return take_mark(cursor, quote);
}

static int take_number(struct cursor *cursor, uint64_t *value) {
    skip_blanks(cursor);
    const char *first = cursor->at;
    *value = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*cursor->at - '0'), value))
            return 0;
    return cursor->at > first;
}

/* Reads a tuple of at most two numbers. Returns their count, or -1 if the text is something else. */
static int take_shape(struct cursor *cursor, uint64_t shape[2]) {
    int n = 0;
    if (!take_mark(cursor, '(')) return -1;
    while (!take_mark(cursor, ')')) {
        if (n == 2 || !take_number(cursor, &shape[n++])) return -1;
        if (!take_mark(cursor, ',')) return take_mark(cursor, ')') ? n : -1;
    }
    return n;
}

static int refuse_header(const char *path, const char *what) {
    return fail("'%s' is not a table of this program: %s", path, what);
}

/* If the field's name has the ending of a named type, removes the ending and sets the kind. */
static int set_kind(struct npy_field *field, const char *type, const char *path) {
    size_t length = strlen(field->name);
    if (!strcmp(type, "<f4")) field->kind = 'f';
    if (!strcmp(type, "<u4")) field->kind = 'u';
    for (int i = 0; !field->kind && i < NAMED_TYPES; i++) {
        const struct named_type *named = &named_types[i];
        size_t ending = strlen(named->ending);
        if (strcmp(type, named->type) || length <= ending || strcmp(field->name + length - ending, named->ending)) continue;
        field->kind = named->kind;
        field->name[length - ending] = 0;
    }
    return field->kind ? 0
                       : fail("'%s' holds numbers of type '%s', wanted '<f4', '<u4', or '<u2', '|i1' or '|u1' in a field whose name ends in "
                              "_bfloat16, _int8 or _float8",
                              path, type);
}

/* Reads a field such as ('weights', '<f4', (400,)), after its opening bracket. */
static int read_field(struct npy_field *field, struct cursor *cursor, const char *path) {
    char type[16];
    uint64_t shape[2];
    *field = (struct npy_field){.columns = 1};
    if (!take_quoted(cursor, field->name, NPY_NAME) || !field->name[0] || !take_mark(cursor, ',') ||
        !take_quoted(cursor, type, sizeof type))
        return refuse_header(path, "a field of its header does not read as ('name', 'type', (columns,))");
    if (set_kind(field, type, path)) return -1;
    if (take_mark(cursor, ')')) return 0;
    if (!take_mark(cursor, ',')) return refuse_header(path, "a field of its header has no closing bracket");
    if (take_mark(cursor, ')')) return 0;
    if (take_shape(cursor, shape) != 1 || !shape[0] || shape[0] > UINT32_MAX)
        return fail("'%s' has a field '%s' whose shape is not one number of columns", path, field->name);
    field->columns = (uint32_t)shape[0];
    take_mark(cursor, ',');
    return take_mark(cursor, ')') ? 0 : refuse_header(path, "a field of its header has no closing bracket");
}

static int read_type(struct npy *npy, struct cursor *cursor, const char *path) {
    if (!take_mark(cursor, '[')) {
        char type[16];
        npy->fields = 1;
        npy->field[0] = (struct npy_field){.columns = 1};
        if (!take_quoted(cursor, type, sizeof type)) return refuse_header(path, "its header has no readable 'descr'");
        return set_kind(&npy->field[0], type, path);
    }
    while (take_mark(cursor, '(')) {
        if (npy->fields == NPY_FIELDS) return fail("'%s' has more than %d fields", path, NPY_FIELDS);
        if (read_field(&npy->field[npy->fields++], cursor, path)) return -1;
        if (!take_mark(cursor, ',')) break;
    }
    if (!npy->fields || !take_mark(cursor, ']')) return refuse_header(path, "its header's list of fields does not end");
    return 0;
}

static int read_shape(struct npy *npy, struct cursor *cursor, int *dimensions, uint64_t *columns, const char *path) {
    uint64_t shape[2];
    *dimensions = take_shape(cursor, shape);
    if (*dimensions < 1) return refuse_header(path, "its shape is not (rows,) or (rows, columns)");
    npy->rows = shape[0];
    *columns = *dimensions == 2 ? shape[1] : 1;
    return 0;
}

/* Sets each field's offset, and the bytes of a record; fields follow each other without gaps. */
static void lay_out(struct npy *npy) {
    npy->record = 0;
    for (uint32_t i = 0; i < npy->fields; i++) {
        npy->field[i].offset = npy->record;
        char kind = npy->field[i].kind;
        npy->record += (uint64_t)npy->field[i].columns * (kind == 'h' || kind == 'e' ? 2 : kind == 'b' || kind == 'B' ? 1 : 4);
    }
}

static int read_header(struct npy *npy, struct cursor *cursor, const char *path) {
    int types = 0, orders = 0, dimensions = 0;
    uint64_t columns = 1;
    char key[32];
    if (!take_mark(cursor, '{')) return refuse_header(path, "its header is not a dict");
    while (!take_mark(cursor, '}')) {
        if (!take_quoted(cursor, key, sizeof key) || !take_mark(cursor, ':'))
            return refuse_header(path, "its header does not read as a dict");
        if (!strcmp(key, "descr") && !types++) {
            if (read_type(npy, cursor, path)) return -1;
        } else if (!strcmp(key, "fortran_order") && !orders++) {
            if (take_word(cursor, "True")) return fail("'%s' is stored column by column, wanted row by row", path);
            if (!take_word(cursor, "False")) return refuse_header(path, "its 'fortran_order' is neither True nor False");
        } else if (!strcmp(key, "shape") && !dimensions) {
            if (read_shape(npy, cursor, &dimensions, &columns, path)) return -1;
        } else {
            return refuse_header(path, "its header has a key twice or one that is not descr, fortran_order or shape");
        }
        if (!take_mark(cursor, ',') && !(cursor->at < cursor->end && *cursor->at == '}'))
            return refuse_header(path, "its header does not read as a dict");
    }
    if (!types || !orders || !dimensions) return refuse_header(path, "its header lacks descr, fortran_order or shape");
    if (npy->field[0].name[0] && dimensions == 2) return refuse_header(path, "it has named fields and a second dimension");
    if (!columns || columns > UINT32_MAX) return refuse_header(path, "its rows have no column or too many");
    if (!npy->field[0].name[0]) npy->field[0].columns = (uint32_t)columns;
    lay_out(npy);
    return 0;
}

/* Finds the header's text, whose length has two bytes in version 1.0, four in 2.0 and 3.0. */
static int find_header(struct npy *npy, struct cursor *cursor, const char *path) {
    const unsigned char *bytes = (const unsigned char *)npy->map.data;
    if (npy->map.size < 12 || memcmp(bytes, magic, MAGIC)) return refuse_header(path, "it does not begin as a NumPy file does");
    uint64_t length, from = bytes[MAGIC] == 1 ? 10 : 12;
    if (bytes[MAGIC] < 1 || bytes[MAGIC] > 3) return fail("'%s' is of NumPy format %u, wanted 1 to 3", path, bytes[MAGIC]);
    length = (uint64_t)bytes[8] | (uint64_t)bytes[9] << 8;
    if (from == 12) length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    npy->data = from + length;
    if (npy->data > npy->map.size) return fail("'%s' is cut off in its header", path);
    if (npy->data % 4) return refuse_header(path, "its rows do not begin at a multiple of four bytes");
    *cursor = (struct cursor){npy->map.data + from, npy->map.data + npy->data};
    return 0;
}

static int check_size(const struct npy *npy, const char *path) {
    uint64_t bytes, whole;
    if (__builtin_mul_overflow(npy->rows, npy->record, &bytes) || __builtin_add_overflow(npy->data, bytes, &whole) ||
        whole > npy->map.size)
        return fail("'%s' says %" PRIu64 " rows of %" PRIu64 " bytes, but has %" PRIu64 " bytes behind its header: it is cut off",
                    path, npy->rows, npy->record, npy->map.size - npy->data);
    return 0;
}

int npy_open(struct npy *npy, const char *path) {
    struct cursor cursor = {NULL, NULL};
    *npy = (struct npy){0};
    if (file_map_open(&npy->map, path)) return -1;
    if (find_header(npy, &cursor, path) || read_header(npy, &cursor, path) || check_size(npy, path)) {
        npy_close(npy);
        return -1;
    }
    return 0;
}

void npy_close(struct npy *npy) {
    file_map_close(&npy->map);
    *npy = (struct npy){0};
}

const struct npy_field *npy_find(const struct npy *npy, const char *name) {
    if (npy->fields == 1 && !npy->field[0].name[0] && !strcmp(name, "weights")) return &npy->field[0];
    for (uint32_t i = 0; i < npy->fields; i++)
        if (!strcmp(npy->field[i].name, name)) return &npy->field[i];
    return NULL;
}

const void *npy_row(const struct npy *npy, const struct npy_field *field, uint64_t row) {
    return npy->map.data + npy->data + row * npy->record + field->offset;
}

/* ---- writing ---- */

/* Appends a field of a structured type. A field of floats always has a shape, so that NumPy reads even one column as a matrix. */
static size_t add_field(char *out, size_t capacity, size_t at, const struct npy_field *field) {
    if (field->kind == 'u' && field->columns == 1) return text_add(out, capacity, at, "('%s', '<u4')", field->name);
    for (int i = 0; i < NAMED_TYPES; i++)
        if (field->kind == named_types[i].kind)
            return text_add(out, capacity, at, "('%s%s', '%s', (%u,))", field->name, named_types[i].ending, named_types[i].type, field->columns);
    return text_add(out, capacity, at, "('%s', '<%c4', (%u,))", field->name, field->kind, field->columns);
}

static const char *type_of_kind(char kind) {
    return kind == 'e' ? "<f2" : kind == 'u' ? "<u4" : kind == 'b' ? "|i1" : kind == 'B' ? "|u1" : "<f4";
}

int npy_write_header(struct npy *npy, struct file_writer *writer) {
    char text[HEADER_BYTES];
    size_t n = 0;
    lay_out(npy);
    if (npy->fields == 1 && !npy->field[0].name[0]) {
        n = text_add(text, sizeof text, n, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ", %u), }",
                     type_of_kind(npy->field[0].kind), npy->rows, npy->field[0].columns);
    } else {
        n = text_add(text, sizeof text, n, "{'descr': [");
        for (uint32_t i = 0; i < npy->fields; i++) {
            if (i) n = text_add(text, sizeof text, n, ", ");
            n = add_field(text, sizeof text, n, &npy->field[i]);
        }
        n = text_add(text, sizeof text, n, "], 'fortran_order': False, 'shape': (%" PRIu64 ",), }", npy->rows);
    }
    /* The text always fits: eight fields with names of 40 letters need 700 bytes. */
    size_t before = MAGIC + 4, whole = (before + n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = whole - before;
    memset(text + n, ' ', length - n);
    text[length - 1] = '\n';
    unsigned char head[MAGIC + 4];
    memcpy(head, magic, MAGIC);
    head[6] = 1, head[7] = 0, head[8] = (unsigned char)(length & 255), head[9] = (unsigned char)(length >> 8);
    npy->data = whole;
    return file_write(writer, head, sizeof head) || file_write(writer, text, length) ? -1 : 0;
}
