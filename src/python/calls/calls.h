/* _calls: a CPython module in C with the calls on a table's rows. It exists for speed: in Python, finding the addresses of two
 * arrays takes as long as a call on some hundred rows; here it takes a tenth of that.
 *
 *   Known     classes, types, functions and attribute names of NumPy and PyTorch                           known.c
 *   operand   an array passed to a call: address, type and shape                                           operands.c
 *   batch     copies the ids of a batch of sptx.speedtorch into one list                                   batch.c
 *   Caller    the calls on a table's rows                                                                  caller.c
 *   Marks     finds ids that occur twice in a batch                                                        marks.c
 *   walk      turns Python's sentences into text                                                           walk.c
 *
 * Only the usual arrays are handled here: exactly numpy.ndarray, torch.Tensor or torch.nn.Parameter, of the expected type, dense,
 * on the right device, and not overlapping the table's memory. For all others a call returns NotImplemented and has changed
 * nothing; then Python (sptx/_table.py, sptx/speedtorch) makes the call, or raises the error. So this module has no error
 * messages, and the package works without it, with the same results.
 *
 * The module uses only CPython's limited API of 3.9, so that one binary works with every later CPython.
 */
#ifndef CALLS_H
#define CALLS_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "sptx.h"

/* The result of a call. EXCEPTION: an exception is set; OTHERS: Python code must make the call (NotImplemented); TAKEN: the call is done. */
enum taken { EXCEPTION = -1, OTHERS = 0, TAKEN = 1 };

/* Returns OTHERS, after clearing an exception that an attribute raised: if it matters, Python's code for the call raises it again. For an
 * interrupt returns EXCEPTION, and keeps it. */
enum taken leave_to_others(void);
PyObject *answer(enum taken taken); /* returns NULL for EXCEPTION, NotImplemented for OTHERS */

/* ---- objects of the libraries, looked up once ---- */

enum name {
    ARRAY_STRUCT,
    DATA_PTR,
    DTYPE,
    GET_DEVICE,
    IS_CONTIGUOUS,
    IS_CPU,
    IS_CUDA,
    IS_NEG,
    LAYOUT,
    NEW_EMPTY,
    REQUIRES_GRAD,
    SHAPE,
    NAMES
};

struct known {
    PyObject head; /* the header of every CPython object */
    PyObject *names[NAMES];
    PyObject *ndarray, *numpy_empty, *numpy_float32;
    /* objects of PyTorch; NULL until a tensor is passed */
    PyObject *tensor, *parameter, *torch_int32, *torch_int64, *torch_float32, *strided;
    PyObject *busy;   /* tuple of functions; if one of them returns true, PyTorch may be tracing or watching calls */
    PyObject *stream; /* function from a GPU's number to its current cudaStream_t */
};

extern PyType_Spec known_spec;
int is_known(PyObject *object);
int is_tensor(const struct known *known, PyObject *object);
/* Return 1 if the attribute, or the method's result, is `value`; 0 if not, or if an exception is set. */
int has(const struct known *known, PyObject *object, enum name attribute, const PyObject *value);
int says(const struct known *known, PyObject *object, enum name method, const PyObject *value);
uint64_t number_said(PyObject *said); /* converts a Python integer, and releases it; returns 0 with an exception for anything else */

/* ---- operands ---- */

enum { DIMS_MOST = 16 };
enum role { IDS, VALUES, OUT };

struct operand {
    void *data;
    uint64_t count; /* number of elements */
    uint32_t bits;  /* bits of an element */
    uint32_t memory;
    int of_torch;
    int dims;
    Py_ssize_t shape[DIMS_MOST];
};

/* The struct that __array_struct__ points to (NumPy's array interface, version 3). */
struct array_struct {
    int two, dims;
    char kind;
    int item_bytes, flags;
    const Py_ssize_t *shape, *strides;
    void *data;
};
enum { C_ORDER = 1, ALIGNED = 0x100, OWN_BYTE_ORDER = 0x200, WRITEABLE = 0x400 };

/* Sets *about to the array's description, and returns the capsule that owns the description. NULL: not an array of NumPy, or an exception is set. */
PyObject *describe(const struct known *known, PyObject *array, const struct array_struct **about);

/* Describes `given`: as ids, as values [ids x dim], or as an array to be filled. gpu: number of the table's GPU; -1: the table is on the CPU. */
enum taken take(const struct known *known, PyObject *given, enum role role, int gpu, struct operand *operand);
/* Returns 1 if PyTorch may be tracing calls; only Python can then find out what to do. In a call with a tensor, call this once, before any
 * attribute of the tensor is used. */
int is_busy(const struct known *known);

/* ---- batches ---- */

struct ids {
    uint32_t *data;
    uint64_t room; /* number of ids that `data` has memory for */
};

struct batch {
    PyObject *capsules[2]; /* owners of the descriptions of the positives and of the negatives, or NULL */
    const struct array_struct *parts[2];
    uint64_t count; /* number of ids of both arrays */
};

enum taken batch_open(const struct known *known, PyObject *positives, PyObject *negatives, struct batch *batch);
void batch_close(struct batch *batch);
/* Returns 1 if the ids are a single dense array; list then gets its address and bits. */
int batch_is_list(const struct batch *batch, struct operand *list);
/* Writes the ids `names` times, one copy after the other; in each copy the ids are `classes` higher than in the one before. Returns OTHERS if an
 * id is not below `classes`. */
enum taken batch_write(const struct batch *batch, uint64_t classes, uint64_t names, struct ids *ids);

extern PyType_Spec caller_spec, marks_spec;
PyObject *walk(PyObject *self, PyObject *arguments);

#endif
