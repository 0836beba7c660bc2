/* npy: NumPy's file format (version 1.0), for tables with named fields and for plain float32 matrices.
 *
 *   structured: descr [('weights','<f4',(D,)),('exp_avg','<f4',(D,)),('updates','<u4')], shape (V,)
 *   plain:      descr '<f4', shape (V, D)
 *
 * NumPy has no bfloat16. A bfloat16 field is stored as ('weights_bfloat16','<u2',(D,)): the upper halves of float32 numbers. Codes of
 * coarse rows (kernels/record.h) are ('weights_int8','|i1',(D,)) and ('weights_float8','|u1',(D,)), and ('scale','<f4',(1,)) is last.
 */
#ifndef SPTX_NPY_H
#define SPTX_NPY_H

#include "file.h"

#include <stdint.h>

enum { NPY_FIELDS = 8, NPY_NAME = 32 };

/* A field of an array's records. */
struct npy_field {
    char name[NPY_NAME]; /* name of the field, without an ending such as "_bfloat16" that it has in the file; "": a plain array */
    uint32_t columns;    /* number of values in a row; 1 for a field without a shape */
    uint64_t offset;     /* bytes from the start of a record */
    char kind;           /* 'f' is float32, 'u' uint32, 'h' bfloat16, 'b' int8, 'B' float8 (e4m3); 'e' is float16: only written. Plain arrays
                          * of 'b', 'B' (uint8) and 'e' are only written */
};

/* An array: its fields, and its file if npy_open() has mapped it. */
struct npy {
    uint64_t rows;
    uint64_t record;     /* bytes of a row, over all fields */
    uint64_t data;       /* offset of row 0 in the file: a multiple of 4; of 64 in files that this program writes */
    uint32_t fields;
    struct npy_field field[NPY_FIELDS];
    struct file_map map; /* the mapped file, after npy_open() */
};

/* Maps a file. Refuses arrays of another form, and files that are too short for their number of rows. Returns 0, or -1 after fail(). */
int npy_open(struct npy *npy, const char *path);
void npy_close(struct npy *npy);
/* Returns the field with this name, or NULL. The one field of a plain array is found as "weights", too. */
const struct npy_field *npy_find(const struct npy *npy, const char *name);
/* Returns the address of a field of a row in the mapped file; a multiple of 4 if all fields are of kind 'f' or 'u'. */
const void *npy_row(const struct npy *npy, const struct npy_field *field, uint64_t row);

/* Writes the header for npy->rows rows with the given fields (name, columns, kind), and sets their offsets. Returns 0, or -1 after fail(). */
int npy_write_header(struct npy *npy, struct file_writer *writer);

#endif
