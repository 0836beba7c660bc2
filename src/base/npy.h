/* npy: NumPy's file format (version 1.0), for tables with named fields and for plain float32 matrices.
 *
 *   structured: descr [('weights','<f4',(D,)),('exp_avg','<f4',(D,)),('updates','<u4')], shape (V,)
 *   plain:      descr '<f4', shape (V, D)
 */
#ifndef SPTX_NPY_H
#define SPTX_NPY_H

#include "file.h"
#include "file_map.h"

#include <stdint.h>

enum { NPY_FIELDS = 8, NPY_NAME = 32 };

struct npy_field {
    char name[NPY_NAME]; /* "" for a plain array */
    uint32_t columns;    /* 1 where the field has no shape */
    uint64_t offset;     /* bytes from the start of a record */
    char kind;           /* 'f' float32, 'u' uint32 */
};

struct npy {
    uint64_t rows;
    uint64_t record;     /* bytes of a row */
    uint64_t data;       /* byte where the rows begin; a multiple of 4, and of 64 in files of ours */
    uint32_t fields;
    struct npy_field field[NPY_FIELDS];
    struct file_map map; /* of an opened file */
};

/* Maps a file; refuses what is not such an array, and a row count that the file's size cannot hold. */
int npy_open(struct npy *npy, const char *path);
void npy_close(struct npy *npy);
/* The field, or NULL. A plain array's only field is found as "weights" too. */
const struct npy_field *npy_find(const struct npy *npy, const char *name);
/* Row `row` of a field, in the mapping (aligned to 4). */
const void *npy_row(const struct npy *npy, const struct npy_field *field, uint64_t row);

/* Writes the header for `rows` and the fields (name, columns, kind; offsets are set here). */
int npy_write_header(struct npy *npy, struct file_writer *writer);

#endif
