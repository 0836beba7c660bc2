/* _calls: the calls of rows for CPython, compiled. Finding out from Python where two arrays lie takes as long as a call
 * of some hundred rows itself; here it takes a tenth of that.
 *
 *   Known     what was found of NumPy and PyTorch: classes, types, functions, the names of attributes      known.c
 *   operand   an array of a call: where its elements lie                                                   operands.c
 *   batch     the ids of a batch of sptx.speedtorch, one after the other                                   batch.c
 *   Caller    a table's calls                                                                              caller.c
 *   Marks     finds ids that stand twice                                                                   marks.c
 *
 * Only what is usual is done here: arrays of exactly numpy.ndarray, torch.Tensor and torch.nn.Parameter, of the wanted
 * type, dense, in the right place, outside of the table's own memory. Everything else gets NotImplemented, has changed
 * nothing, and is asked again from Python (sptx/_table.py, sptx/speedtorch), which does it or says what is wrong. So no
 * sentence stands here, and where this module cannot be loaded every answer is the same.
 *
 * CPython's limited API of 3.9 is all that is used, so that one file serves every later CPython.
 */
#ifndef CALLS_H
#define CALLS_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "sptx.h"

/* Says whether something was done here. Otherwise the answer is NotImplemented, or there is an exception. */
enum taken { EXCEPTION = -1, OTHERS = 0, TAKEN = 1 };

/* Returns OTHERS; where an attribute raised, without its exception, which the other way meets again. Interrupts are
 * kept. */
enum taken leave_to_others(void);
PyObject *answer(enum taken taken); /* of a call that was not TAKEN */

/* ---- facts about the libraries, looked up once ---- */

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
    PyObject head; /* which CPython has in each object */
    PyObject *names[NAMES];
    PyObject *ndarray, *numpy_empty, *numpy_float32;
    /* objects of PyTorch; NULL as long as no one has passed a tensor */
    PyObject *tensor, *parameter, *torch_int32, *torch_int64, *torch_float32, *strided;
    PyObject *busy;   /* a tuple of functions: where one of them returns true, calls may be traced or watched */
    PyObject *stream; /* a GPU's number -> its current cudaStream_t */
};

extern PyType_Spec known_spec;
int is_known(PyObject *object);
int is_tensor(const struct known *known, PyObject *object);
/* These return 0 where it is not so, or where there is an exception. */
int has(const struct known *known, PyObject *object, enum name attribute, const PyObject *value);
int says(const struct known *known, PyObject *object, enum name method, const PyObject *value);
uint64_t number_said(PyObject *said); /* takes the reference; 0 and an exception where it is no number */

/* ---- operands ---- */

enum { DIMS_MOST = 16 };
enum role { IDS, VALUES, OUT };

struct operand {
    void *data;
    uint64_t count; /* of elements */
    uint32_t bits;  /* of an element */
    uint32_t memory;
    int of_torch;
    int dims;
    Py_ssize_t shape[DIMS_MOST];
};

/* This is what __array_struct__ points to (NumPy's array interface, version 3). */
struct array_struct {
    int two, dims;
    char kind;
    int item_bytes, flags;
    const Py_ssize_t *shape, *strides;
    void *data;
};
enum { C_ORDER = 1, ALIGNED = 0x100, OWN_BYTE_ORDER = 0x200, WRITEABLE = 0x400 };

/* Returns the capsule that holds *about, or NULL: the array is another library's, or there is an exception. */
PyObject *describe(const struct known *known, PyObject *array, const struct array_struct **about);

/* Fills an operand of ids, of values [ids x dim] or of a place for them. gpu: the table's, -1: it runs on the CPU. */
enum taken take(const struct known *known, PyObject *given, enum role role, int gpu, struct operand *operand);
/* Returns whether PyTorch may be tracing, which only the other way can tell exactly. Where there is a tensor in a call
 * this is asked once, before anything is asked of the tensor. */
int is_busy(const struct known *known);

/* ---- batches ---- */

struct ids {
    uint32_t *data;
    uint64_t room; /* ids that it can hold */
};

struct batch {
    PyObject *capsules[2]; /* positives, then negatives or NULL */
    const struct array_struct *parts[2];
    uint64_t count; /* of ids in both */
};

enum taken batch_open(const struct known *known, PyObject *positives, PyObject *negatives, struct batch *batch);
void batch_close(struct batch *batch);
/* Returns whether the ids lie one after the other already; then sets where, and their bits. */
int batch_is_list(const struct batch *batch, struct operand *list);
/* Writes `names` lists of the ids, each `classes` above the one before. OTHERS where an id is no number below
 * `classes`. */
enum taken batch_write(const struct batch *batch, uint64_t classes, uint64_t names, struct ids *ids);

extern PyType_Spec caller_spec, marks_spec;

#endif
