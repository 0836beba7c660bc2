/* _calls: a CPython module in C with the calls on a table's rows. It exists for speed: in Python, finding the addresses of two
 * arrays takes as long as a call on some hundred rows; here it takes a tenth of that.
 *
 *   Known     classes, types, functions and attribute names of NumPy and PyTorch
 *   operand   an array passed to a call: address, type and shape
 *   batch     copies the ids of a batch of sptx.speedtorch into one list
 *   Caller    the calls on a table's rows
 *   Marks     finds ids that occur twice in a batch
 *   walk      turns Python's sentences into text
 *
 * Only the usual arrays are handled here: exactly numpy.ndarray, torch.Tensor or torch.nn.Parameter, of the expected type, dense,
 * on the right device, and not overlapping the table's memory. For all others a call returns NotImplemented and has changed
 * nothing; then Python (sptx/_table.py, sptx/speedtorch) makes the call, or raises the error. So this module has no error
 * messages, and the package works without it, with the same results.
 *
 * The module uses only CPython's limited API of 3.9, so that one binary works with every later CPython.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/checks.h"
#include "sptx.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The result of a call. EXCEPTION: an exception is set; OTHERS: Python code must make the call (NotImplemented); TAKEN: the call is done. */
enum taken { EXCEPTION = -1, OTHERS = 0, TAKEN = 1 };

/* ==== known ==== */

/* The objects of NumPy and PyTorch that the calls use; each is looked up once. */

#define EACH_NAME \
    NAME(ARRAY_STRUCT, "__array_struct__") NAME(DATA_PTR, "data_ptr") NAME(DTYPE, "dtype") \
    NAME(GET_DEVICE, "get_device") NAME(IS_CONTIGUOUS, "is_contiguous") NAME(IS_CPU, "is_cpu") \
    NAME(IS_CUDA, "is_cuda") NAME(IS_NEG, "is_neg") NAME(LAYOUT, "layout") \
    NAME(NEW_EMPTY, "new_empty") NAME(SHAPE, "shape") NAME(REQUIRES_GRAD, "requires_grad")
enum name {
#define NAME(name, spelled) name,
    EACH_NAME
#undef NAME
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

static const char *const SPELLED[NAMES] = {
#define NAME(name, spelled) [name] = spelled,
    EACH_NAME
#undef NAME
};

/* Returns OTHERS, after clearing an exception that an attribute raised: if it matters, Python's code for the call raises it again. For an
 * interrupt returns EXCEPTION, and keeps it. */
static enum taken leave_to_others(void) {
    if (!PyErr_Occurred()) return OTHERS;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return EXCEPTION;
    PyErr_Clear();
    return OTHERS;
}

/* Returns NULL for EXCEPTION, NotImplemented for OTHERS. */
static PyObject *answer(enum taken taken) {
    if (taken == EXCEPTION) return NULL;
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

static int is_tensor(const struct known *known, PyObject *object) {
    const PyObject *kind = (PyObject *)Py_TYPE(object);
    return kind == known->tensor || kind == known->parameter;
}

static int is_value(PyObject *got, const PyObject *value) {
    Py_XDECREF(got); /* this reference is not needed: these objects are singletons, so their addresses stay valid */
    return got && got == value;
}

/* Return 1 if the attribute, or the method's result, is `value`; 0 if not, or if an exception is set. */
static int has(const struct known *known, PyObject *object, enum name attribute, const PyObject *value) {
    return is_value(PyObject_GetAttr(object, known->names[attribute]), value);
}

static int says(const struct known *known, PyObject *object, enum name method, const PyObject *value) {
    return is_value(PyObject_CallMethodObjArgs(object, known->names[method], NULL), value);
}

/* Converts a Python integer, and releases it. Returns 0 with an exception for anything else. */
static uint64_t number_said(PyObject *said) {
    uint64_t number = said ? PyLong_AsUnsignedLongLong(said) : 0;
    Py_XDECREF(said);
    return PyErr_Occurred() ? 0 : number;
}

/* ---- the class ---- */

static void known_free(PyObject *self) {
    struct known *known = (struct known *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *held[] = {known->ndarray,   known->numpy_empty, known->numpy_float32, known->tensor,
                        known->parameter, known->torch_int32, known->torch_int64,   known->torch_float32,
                        known->strided,   known->busy,        known->stream};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) Py_XDECREF(held[i]);
    for (int i = 0; i < NAMES; i++) Py_XDECREF(known->names[i]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int is_known(PyObject *object) {
    return PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)known_free;
}

static PyObject *known_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *ndarray, *empty, *float32;
    if (!PyArg_ParseTuple(arguments, "OOO", &ndarray, &empty, &float32)) return NULL;
    struct known *known = (struct known *)PyType_GenericAlloc(type, 0);
    if (!known) return NULL;
    Py_INCREF(known->ndarray = ndarray);
    Py_INCREF(known->numpy_empty = empty);
    Py_INCREF(known->numpy_float32 = float32);
    for (int i = 0; i < NAMES; i++)
        if (!(known->names[i] = PyUnicode_InternFromString(SPELLED[i]))) {
            Py_DECREF(known);
            return NULL;
        }
    return (PyObject *)known;
}

static PyObject *learn_torch(PyObject *self, PyObject *arguments) {
    struct known *known = (struct known *)self;
    if (known->tensor) Py_RETURN_NONE;
    if (!PyArg_ParseTuple(arguments, "OOOOOOO!O", &known->tensor, &known->parameter, &known->torch_int32, &known->torch_int64,
                          &known->torch_float32, &known->strided, &PyTuple_Type, &known->busy, &known->stream)) {
        known->tensor = known->parameter = known->torch_int32 = known->torch_int64 = NULL;
        known->torch_float32 = known->strided = known->busy = known->stream = NULL;
        return NULL;
    }
    PyObject *held[] = {known->tensor,        known->parameter, known->torch_int32, known->torch_int64,
                        known->torch_float32, known->strided,   known->busy,        known->stream};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) Py_INCREF(held[i]);
    Py_RETURN_NONE;
}

static PyMethodDef known_methods[] = {
    {"learn_torch", learn_torch, METH_VARARGS,
     "learn_torch(Tensor, Parameter, int32, int64, float32, strided, busy, stream): tensors are taken from now on."},
    {0}};
static PyType_Slot known_slots[] = {
    {Py_tp_new, known_new},
    {Py_tp_dealloc, known_free},
    {Py_tp_methods, known_methods},
    {Py_tp_doc, "Known(ndarray, empty, float32): what calls ask of NumPy, and later of PyTorch."},
    {0, NULL}};
static PyType_Spec known_spec = {"sptx._calls.Known", sizeof(struct known), 0, Py_TPFLAGS_DEFAULT, known_slots};

/* ==== operands ==== */

/* Describes arrays of NumPy, by __array_struct__, and tensors of PyTorch, by a few attributes. */

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

/* ---- NumPy ---- */

/* Sets *about to the array's description, and returns the capsule that owns the description. NULL: not an array of NumPy, or an exception is set. */
static PyObject *describe(const struct known *known, PyObject *array, const struct array_struct **about) {
    if ((PyObject *)Py_TYPE(array) != known->ndarray) return NULL;
    PyObject *capsule = PyObject_GetAttr(array, known->names[ARRAY_STRUCT]);
    *about = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (*about && (*about)->two == 2 && (*about)->dims <= DIMS_MOST) return capsule;
    Py_XDECREF(capsule);
    return NULL;
}

static int suits(const struct array_struct *about, enum role role) {
    int wanted = C_ORDER | ALIGNED | OWN_BYTE_ORDER | (role == OUT ? WRITEABLE : 0);
    int bytes = about->item_bytes;
    return (about->flags & wanted) == wanted &&
           (role == IDS ? about->kind == 'i' && (bytes == 4 || bytes == 8) : about->kind == 'f' && bytes == 4);
}

static enum taken take_array(const struct known *known, PyObject *array, enum role role, struct operand *operand) {
    const struct array_struct *about;
    PyObject *capsule = describe(known, array, &about);
    if (!capsule) return leave_to_others();
    int suited = suits(about, role);
    if (suited) {
        *operand = (struct operand){
            .data = about->data, .count = 1, .bits = 8 * about->item_bytes, .memory = SPTX_HOST, .dims = about->dims};
        for (int i = 0; i < about->dims; i++) operand->count *= operand->shape[i] = about->shape[i];
    }
    Py_DECREF(capsule);
    return suited ? TAKEN : OTHERS;
}

/* ---- PyTorch ---- */

/* Returns 1 if PyTorch may be tracing calls; only Python can then find out what to do. In a call with a tensor, call this once, before any
 * attribute of the tensor is used. */
static int is_busy(const struct known *known) {
    if (!known->busy) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(known->busy); i++) {
        PyObject *said = PyObject_CallObject(PyTuple_GetItem(known->busy, i), NULL);
        int busy = !said || PyObject_IsTrue(said);
        Py_XDECREF(said);
        if (busy) return 1;
    }
    return 0;
}

static int take_type(const struct known *known, PyObject *tensor, enum role role, struct operand *operand) {
    PyObject *dtype = PyObject_GetAttr(tensor, known->names[DTYPE]);
    Py_XDECREF(dtype);
    operand->bits = dtype && dtype == known->torch_int64 ? 64 : 32;
    if (role != IDS) return dtype && dtype == known->torch_float32;
    return dtype && (dtype == known->torch_int64 || dtype == known->torch_int32);
}

static int take_memory(const struct known *known, PyObject *tensor, int gpu, struct operand *operand) {
    if (has(known, tensor, IS_CPU, Py_True)) {
        operand->memory = SPTX_HOST;
        return 1;
    }
    if (PyErr_Occurred() || gpu < 0 || !has(known, tensor, IS_CUDA, Py_True)) return 0;
    operand->memory = SPTX_CUDA;
    return number_said(PyObject_CallMethodObjArgs(tensor, known->names[GET_DEVICE], NULL)) == (uint64_t)gpu && !PyErr_Occurred();
}

static int take_shape(const struct known *known, PyObject *tensor, struct operand *operand) {
    PyObject *shape = PyObject_GetAttr(tensor, known->names[SHAPE]);
    operand->dims = shape && PyTuple_Check(shape) ? (int)PyTuple_Size(shape) : DIMS_MOST + 1;
    operand->count = 1;
    for (int i = 0; i < operand->dims && operand->dims <= DIMS_MOST; i++)
        operand->count *= operand->shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
    Py_XDECREF(shape);
    return operand->dims <= DIMS_MOST && !PyErr_Occurred();
}

static int take_address(const struct known *known, PyObject *tensor, struct operand *operand) {
    uint64_t address = number_said(PyObject_CallMethodObjArgs(tensor, known->names[DATA_PTR], NULL));
    operand->data = (void *)(uintptr_t)address;
    return !PyErr_Occurred() && address % (operand->bits / 8) == 0;
}

static enum taken take_tensor(const struct known *known, PyObject *tensor, enum role role, int gpu, struct operand *operand) {
    operand->of_torch = 1;
    if (take_type(known, tensor, role, operand) && has(known, tensor, LAYOUT, known->strided) &&
        take_memory(known, tensor, gpu, operand) && says(known, tensor, IS_CONTIGUOUS, Py_True) &&
        (role == IDS || says(known, tensor, IS_NEG, Py_False)) && (role != OUT || has(known, tensor, REQUIRES_GRAD, Py_False)) &&
        take_shape(known, tensor, operand) && take_address(known, tensor, operand))
        return TAKEN;
    return leave_to_others();
}

/* Describes `given`: as ids, as values [ids x dim], or as an array to be filled. gpu: number of the table's GPU; -1: the table is on the CPU. */
static enum taken take(const struct known *known, PyObject *given, enum role role, int gpu, struct operand *operand) {
    return is_tensor(known, given) ? take_tensor(known, given, role, gpu, operand) : take_array(known, given, role, operand);
}

/* ==== batches ==== */

/* Turns the ids of a batch of sptx.speedtorch, one or two arrays of any shape and order, into one list. */

struct ids {
    uint32_t *data;
    uint64_t room; /* number of ids that `data` has memory for */
};

struct batch {
    PyObject *capsules[2]; /* owners of the descriptions of the positives and of the negatives, or NULL */
    const struct array_struct *parts[2];
    uint64_t count; /* number of ids of both arrays */
};

static void batch_close(struct batch *batch) {
    Py_XDECREF(batch->capsules[0]);
    Py_XDECREF(batch->capsules[1]);
}

static enum taken batch_open(const struct known *known, PyObject *positives, PyObject *negatives, struct batch *batch) {
    PyObject *given[2] = {positives, negatives == Py_None ? NULL : negatives};
    *batch = (struct batch){0};
    for (int i = 0; i < 2 && given[i]; i++) {
        const struct array_struct **part = &batch->parts[i];
        batch->capsules[i] = describe(known, given[i], part);
        int whole = batch->capsules[i] && (*part)->kind == 'i' && ((*part)->item_bytes == 4 || (*part)->item_bytes == 8);
        if (!whole || !((*part)->flags & ALIGNED) || !((*part)->flags & OWN_BYTE_ORDER)) {
            batch_close(batch);
            return leave_to_others();
        }
        uint64_t count = 1; /* cannot overflow: NumPy arrays have at most 2^60 elements, also if strides are zero */
        for (int d = 0; d < (*part)->dims; d++) count *= (*part)->shape[d];
        batch->count += count;
    }
    return TAKEN;
}

/* Returns 1 if the ids are a single dense array; list then gets its address and bits. */
static int batch_is_list(const struct batch *batch, struct operand *list) {
    const struct array_struct *only = batch->parts[0];
    list->data = only->data;
    list->bits = 8 * only->item_bytes;
    return !batch->parts[1] && only->flags & C_ORDER;
}

/* ---- writing the list ---- */

struct writing {
    uint32_t *next;
    uint64_t classes;
    int wrong; /* 1: an id is not in 0 .. classes - 1 */
};

static void write_line(struct writing *to, const char *data, Py_ssize_t count, Py_ssize_t stride, int bytes) {
    if (stride == bytes) to->wrong |= ids_take(data, 8 * bytes, count, to->classes, to->next);
    else
        for (Py_ssize_t i = 0; i < count; i++) to->wrong |= ids_take(data + i * stride, 8 * bytes, 1, to->classes, to->next + i);
    to->next += count;
}

static void write_part(struct writing *to, const struct array_struct *part, int dim, const char *data) {
    if (part->flags & C_ORDER || part->dims == 0) {
        Py_ssize_t count = 1;
        for (int d = 0; d < part->dims; d++) count *= part->shape[d];
        write_line(to, data, count, part->item_bytes, part->item_bytes);
    } else if (dim == part->dims - 1) {
        write_line(to, data, part->shape[dim], part->strides[dim], part->item_bytes);
    } else {
        for (Py_ssize_t i = 0; i < part->shape[dim]; i++) write_part(to, part, dim + 1, data + i * part->strides[dim]);
    }
}

static int make_room(struct ids *ids, uint64_t count) {
    if (count <= ids->room) return 0;
    void *data = realloc(ids->data, count * sizeof *ids->data);
    if (!data) return -1;
    *ids = (struct ids){data, count};
    return 0;
}

/* Writes the ids `names` times, one copy after the other; in each copy the ids are `classes` higher than in the one before. Returns OTHERS if an
 * id is not below `classes`. */
static enum taken batch_write(const struct batch *batch, uint64_t classes, uint64_t names, struct ids *ids) {
    if (!classes || classes * names > INT32_MAX || batch->count > UINT32_MAX / names || make_room(ids, batch->count * names))
        return OTHERS;
    struct writing to = {.next = ids->data, .classes = classes};
    for (int i = 0; i < 2 && batch->parts[i]; i++) write_part(&to, batch->parts[i], 0, batch->parts[i]->data);
    for (uint64_t k = 1; k < names; k++)
        for (uint64_t i = 0; i < batch->count; i++) ids->data[k * batch->count + i] = ids->data[i] + (uint32_t)(k * classes);
    return to.wrong ? OTHERS : TAKEN;
}

/* ==== Marks ==== */

/* Marks: finds out whether an id occurs twice in a batch, in two passes over the ids and a hash table of a few of them.
 *
 *   slots      16 for each id of the batch; an id's slot is the id modulo the number of slots. The first pass marks slots that
 *              an id has, and slots that a second id has. Different ids below the number of slots never share one
 *   suspects   ids whose slot a second id has: all ids that occur twice, and a few others
 *   places     a hash table of the suspects, which finds the ids that occur twice
 *
 * For most batches the first pass is nearly all of the work. It has no branch and needs little memory: 131,072 ids take 0.2 ms.
 * A hash table of all ids would take 2 ms, longer than moving their rows to the GPU.
 */

struct slots {
    uint64_t once, again; /* two bits for each of 64 slots: an id has this slot; a second id has it */
};

/* A buffer that is cleared for each batch. */
struct space {
    void *data;
    uint64_t bytes;
};

struct marks {
    PyObject head; /* the header of every CPython object */
    struct known *known;
    struct ids ids;
    struct space slots;  /* array of struct slots */
    struct space places; /* array of uint32_t: 1 + index of the suspect at this place; 0: empty */
};

enum { SLOTS_AN_ID = 16, PLACES_AN_ID = 2, IDS_MOST = 1 << 28 };

/* Returns a cleared array of the space. It has at least `least` items, rounded up to a power of two; *count is set to this number. NULL: out of
 * memory. */
static void *cleared(struct space *space, uint64_t least, size_t size, uint64_t *count) {
    for (*count = 1; *count < least;) *count *= 2;
    if (*count * size > space->bytes) {
        void *more = realloc(space->data, *count * size);
        if (!more) return NULL;
        *space = (struct space){more, *count * size};
    }
    return memset(space->data, 0, *count * size);
}

/* Moves the suspects to the front of the ids. Returns their number, or -1 if memory is short. */
static int64_t suspect(struct marks *marks, uint32_t count) {
    uint32_t *ids = marks->ids.data, kept = 0;
    uint64_t words, late = 0, least = (uint64_t)SLOTS_AN_ID * count / 64;
    struct slots *slots = cleared(&marks->slots, least, sizeof *slots, &words);
    if (!slots) return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct slots *at = &slots[ids[i] / 64 & (words - 1)];
        uint64_t bit = UINT64_C(1) << ids[i] % 64, before = at->once;
        late |= before & bit;
        at->again |= before & bit;
        at->once = before | bit;
    }
    for (uint32_t i = 0; late && i < count; i++) {
        uint32_t id = ids[i];
        ids[kept] = id;
        kept += slots[id / 64 & (words - 1)].again >> id % 64 & 1;
    }
    return kept;
}

/* Returns 1 if an id occurs twice, 0 if not, -1 if memory is short. */
static int stand_twice(struct marks *marks, uint32_t count) {
    int64_t suspects = suspect(marks, count);
    uint64_t size;
    if (suspects <= 0) return (int)suspects;
    uint32_t *places = cleared(&marks->places, PLACES_AN_ID * suspects, sizeof *places, &size);
    const uint32_t *ids = marks->ids.data;
    if (!places) return -1;
    for (uint32_t i = 0; i < suspects; i++) {
        uint64_t place = ids[i] * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (size - 1);
        for (; places[place]; place = (place + 1) & (size - 1))
            if (ids[places[place] - 1] == ids[i]) return 1;
        places[place] = i + 1;
    }
    return 0;
}

static PyObject *twice(PyObject *self, PyObject *arguments) {
    struct marks *marks = (struct marks *)self;
    PyObject *positives, *negatives;
    if (!PyArg_UnpackTuple(arguments, "twice", 2, 2, &positives, &negatives)) return NULL;
    struct batch batch;
    enum taken taken = batch_open(marks->known, positives, negatives, &batch);
    if (taken != TAKEN) return answer(taken);
    taken = batch.count > IDS_MOST ? OTHERS : batch_write(&batch, INT32_MAX, 1, &marks->ids);
    int found = taken == TAKEN ? stand_twice(marks, (uint32_t)batch.count) : 0;
    batch_close(&batch);
    return taken != TAKEN || found < 0 ? answer(taken == EXCEPTION ? EXCEPTION : OTHERS) : PyBool_FromLong(found);
}

/* ---- the class ---- */

static PyObject *marks_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *known;
    if (!PyArg_ParseTuple(arguments, "O", &known)) return NULL;
    if (!is_known(known)) return PyErr_Format(PyExc_TypeError, "Marks are made with what is Known");
    struct marks *marks = (struct marks *)PyType_GenericAlloc(type, 0);
    if (!marks) return NULL;
    Py_INCREF(known);
    marks->known = (struct known *)known;
    return (PyObject *)marks;
}

static void marks_free(PyObject *self) {
    struct marks *marks = (struct marks *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(marks->known);
    free(marks->ids.data);
    free(marks->slots.data);
    free(marks->places.data);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef marks_methods[] = {
    {"twice", twice, METH_VARARGS, "twice(positives, negatives or None) -> whether an id stands twice among both."},
    {0}};
static PyType_Slot marks_slots[] = {
    {Py_tp_new, marks_new},
    {Py_tp_dealloc, marks_free},
    {Py_tp_methods, marks_methods},
    {Py_tp_doc, "Marks(known): finds ids that stand twice in a batch."},
    {0, NULL}};
static PyType_Spec marks_spec = {"sptx._calls.Marks", sizeof(struct marks), 0, Py_TPFLAGS_DEFAULT, marks_slots};

/* ==== walk ==== */

/* walk: turns an iterable of sentences into the text that sptx_corpus_sentences() reads, a million tokens at a time.
 *
 *   walk(iterator, convert, words_only, most) -> (text, offsets, starts, ended)
 *
 *   text      bytes: the tokens, one behind the other
 *   offsets   bytes of int64 [tokens + 1]: token i is text[offsets[i] : offsets[i + 1]]
 *   starts    bytes of uint64 [sentences + 1]: sentence i is the tokens starts[i] .. starts[i + 1] - 1
 *   ended     False: `most` tokens or more were taken, and the iterator may have more sentences
 *
 * A sentence is walked here if it is a list or tuple of str, bytes or int; with words_only, of str that a line of a vocabulary file can
 * hold. For any other sentence convert(sentence, number of the sentence in this call) returns a list of bytes, or raises. */

/* Part of CPython since 3.3, and of the limited API since 3.10. */
extern const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size);

struct array {
    char *data;
    uint64_t used, capacity; /* in bytes */
};

struct walked {
    struct array text, offsets, starts;
    uint64_t tokens, sentences;
};

static int append_bytes(struct array *array, const void *bytes, uint64_t count) {
    if (array->used + count >= array->capacity) { /* `data` is allocated even for 0 items, so that it is never NULL afterwards */
        uint64_t capacity = 2 * (array->used + count) + 4096;
        char *grown = realloc(array->data, capacity);
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        array->data = grown;
        array->capacity = capacity;
    }
    memcpy(array->data + array->used, bytes, count);
    array->used += count;
    return 0;
}

/* Returns 1 if a line of a vocabulary file can contain the word unchanged. Words that begin with \x01 are names that Python has made (_corpus.py). */
static int is_plain(const char *word, Py_ssize_t length) {
    if (!length || *word == 1) return 0;
    for (Py_ssize_t i = 0; i < length; i++)
        if (!word[i] || (word[i] >= '\t' && word[i] <= '\r')) return 0;
    return 1;
}

static enum taken take_token(struct walked *walked, PyObject *token, int words_only) {
    Py_ssize_t length = 0;
    const char *word = NULL;
    char digits[24];
    if (PyUnicode_Check(token)) {
        word = PyUnicode_AsUTF8AndSize(token, &length);
        if (!word) return leave_to_others(); /* a lone surrogate */
        if (words_only && !is_plain(word, length)) return OTHERS;
    } else if (PyBytes_Check(token) && !words_only) {
        char *bytes = NULL;
        if (PyBytes_AsStringAndSize(token, &bytes, &length)) return leave_to_others();
        word = bytes;
    } else if (PyLong_CheckExact(token) && !words_only) {
        int past;
        long long number = PyLong_AsLongLongAndOverflow(token, &past);
        if (past || (number == -1 && PyErr_Occurred())) return leave_to_others();
        length = snprintf(digits, sizeof digits, "%lld", number);
        word = digits;
    }
    if (!word) return OTHERS;
    if (append_bytes(&walked->text, word, (uint64_t)length) || append_bytes(&walked->offsets, &walked->text.used, sizeof walked->text.used))
        return EXCEPTION;
    walked->tokens++;
    return TAKEN;
}

/* Appends a sentence. If one of its tokens is of a type that only Python handles, nothing is appended. */
static enum taken take_sentence(struct walked *walked, PyObject *sentence, int words_only) {
    const struct walked before = *walked;
    int is_list = PyList_CheckExact(sentence);
    if (!is_list && !PyTuple_Check(sentence)) return OTHERS;
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(sentence) : PyTuple_Size(sentence)); i++) {
        PyObject *token = is_list ? PyList_GetItem(sentence, i) : PyTuple_GetItem(sentence, i); /* borrowed: no Python code runs here */
        enum taken taken = token ? take_token(walked, token, words_only) : EXCEPTION;
        if (taken == TAKEN) continue;
        walked->text.used = before.text.used;
        walked->offsets.used = before.offsets.used;
        walked->tokens = before.tokens;
        return taken;
    }
    walked->sentences++;
    return append_bytes(&walked->starts, &walked->tokens, sizeof walked->tokens) ? EXCEPTION : TAKEN;
}

static enum taken take_any(struct walked *walked, PyObject *sentence, PyObject *convert, int words_only) {
    enum taken taken = take_sentence(walked, sentence, words_only);
    if (taken != OTHERS) return taken;
    PyObject *number = PyLong_FromUnsignedLongLong(walked->sentences);
    PyObject *plain = number ? PyObject_CallFunctionObjArgs(convert, sentence, number, NULL) : NULL;
    Py_XDECREF(number);
    taken = plain ? take_sentence(walked, plain, 0) : EXCEPTION;
    Py_XDECREF(plain);
    if (taken == OTHERS) PyErr_SetString(PyExc_TypeError, "convert() returned no list of bytes");
    return taken == TAKEN ? TAKEN : EXCEPTION;
}

static PyObject *walk(PyObject *self, PyObject *arguments) {
    PyObject *iterator, *convert, *sentence;
    int words_only;
    unsigned long long most;
    struct walked walked = {.tokens = 0};
    enum taken taken = TAKEN;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OOpK", &iterator, &convert, &words_only, &most)) return NULL;
    if (!PyIter_Check(iterator)) return PyErr_Format(PyExc_TypeError, "walk() walks an iterator");
    if (append_bytes(&walked.offsets, &walked.tokens, sizeof walked.tokens) || append_bytes(&walked.starts, &walked.tokens, sizeof walked.tokens))
        taken = EXCEPTION;
    int ended = 0;
    while (taken == TAKEN && walked.tokens < most && walked.sentences < most) {
        sentence = PyIter_Next(iterator);
        ended = !sentence;
        if (ended) break;
        taken = take_any(&walked, sentence, convert, words_only);
        Py_DECREF(sentence);
        if (taken == TAKEN && PyErr_CheckSignals()) taken = EXCEPTION;
    }
    if (ended && PyErr_Occurred()) taken = EXCEPTION;
    PyObject *found = taken == TAKEN ? Py_BuildValue("y#y#y#O", walked.text.data ? walked.text.data : "", (Py_ssize_t)walked.text.used,
                                                     walked.offsets.data, (Py_ssize_t)walked.offsets.used, walked.starts.data,
                                                     (Py_ssize_t)walked.starts.used, ended ? Py_True : Py_False)
                                     : NULL;
    free(walked.text.data);
    free(walked.offsets.data);
    free(walked.starts.data);
    return found;
}

/* ==== Caller ==== */

/* Caller: makes the calls on a table's rows. Each call waits for its turn in the context, as calls from Python do (sptx/_context.py). While it has
 * its turn no Python code runs, so no interrupt can occur. */

typedef enum sptx_status prefetch_call(struct sptx_table *, const struct sptx_ids *, void *);
typedef enum sptx_status rows_call(struct sptx_table *, const struct sptx_ids *, void *, enum sptx_memory, void *);
typedef const char *error_call(const struct sptx_context *);

struct range {
    uint64_t low, high; /* addresses of the first byte and of the byte after the last */
};

struct caller {
    PyObject head; /* the header of every CPython object */
    struct known *known;
    PyObject *handle; /* keeps the table open */
    /* objects of the Python context */
    PyObject *take_turn, *end_turn, *leaving, *close_what_waits, *said, *warn, *raise_for;
    PyObject *make_template;
    PyObject *template; /* an empty tensor from which tensors for rows are made; NULL until the first one is needed */
    enum sptx_memory template_memory;
    struct sptx_context *context;
    struct sptx_table *table;
    rows_call *fetch, *update, *store;
    prefetch_call *prefetch;
    error_call *error;
    uint64_t rows;
    uint32_t dim;
    int gpu;           /* number of the table's GPU; -1: it is on the CPU */
    unsigned forks;    /* value of `forks` when the object was made */
    struct range *own; /* [ranges] host memory of the table, which operands must not overlap */
    Py_ssize_t ranges;
    struct ids ids; /* buffer for the ids of a batch; used only while holding the turn */
};

static unsigned forks; /* number of forks between the process that loaded this module and this one */

static void count_fork(void) {
    forks++;
}

/* ---- a call's turn ---- */

static int call_python(PyObject *function) {
    PyObject *result = PyObject_CallObject(function, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int raise_for(const struct caller *caller, enum sptx_status status, const char *sentence) {
    PyObject *number = PyLong_FromLong(status), *text = PyUnicode_DecodeUTF8(sentence, strlen(sentence), "replace");
    PyObject *result = number && text ? PyObject_CallFunctionObjArgs(caller->raise_for, number, text, NULL) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(text);
    Py_XDECREF(result);
    return -1;
}

/* Runs after a turn has ended: closes the handles that waited for its end, and gives the warnings of the call. */
static int after_turn(const struct caller *caller) {
    if (PyObject_Size(caller->leaving) > 0 && call_python(caller->close_what_waits)) return -1;
    return PyObject_Size(caller->said) > 0 ? call_python(caller->warn) : 0;
}

/* Finds the stream for a call: PyTorch's current stream, if one of the arguments is on the GPU. */
static int find_stream(const struct caller *caller, int on_gpu, void **stream) {
    *stream = NULL;
    if (!on_gpu) return 0;
    PyObject *number = PyLong_FromLong(caller->gpu);
    PyObject *said = number ? PyObject_CallFunctionObjArgs(caller->known->stream, number, NULL) : NULL;
    Py_XDECREF(number);
    *stream = (void *)(uintptr_t)number_said(said);
    return PyErr_Occurred() ? -1 : 0;
}

/* Calls the library, then ends the turn; called when the turn has begun. values: NULL for a prefetch. */
static int ask_in_turn(const struct caller *caller, rows_call *call, const struct sptx_ids *ids,
                       const struct operand *values, void *stream) {
    PyThreadState *thread = PyEval_SaveThread();
    enum sptx_status status = values ? call(caller->table, ids, values->data, values->memory, stream) : caller->prefetch(caller->table, ids, stream);
    PyEval_RestoreThread(thread);
    char *sentence = status ? strdup(caller->error(caller->context)) : NULL; /* copied: the next call may change it */
    int ended = call_python(caller->end_turn) || after_turn(caller) ? -1 : 0;
    if (!ended && status) ended = raise_for(caller, status, sentence ? sentence : "");
    free(sentence);
    return ended;
}

static int ask_library(const struct caller *caller, rows_call *call, const struct operand *which, const struct operand *values) {
    struct sptx_ids ids = {which->data, which->count, which->bits, which->memory};
    int on_gpu = which->memory == SPTX_CUDA || (values && values->memory == SPTX_CUDA);
    void *stream;
    if (find_stream(caller, on_gpu, &stream) || call_python(caller->take_turn)) return -1;
    return ask_in_turn(caller, call, &ids, values, stream);
}

/* ---- operands of this table ---- */

static int overlap(const struct operand *operand, uint64_t low, uint64_t high) {
    uint64_t start = (uintptr_t)operand->data;
    return start < high && low < start + operand->count * (operand->bits / 8);
}

static int in_own_memory(const struct caller *caller, const struct operand *operand) {
    for (Py_ssize_t i = 0; i < caller->ranges; i++)
        if (overlap(operand, caller->own[i].low, caller->own[i].high)) return 1;
    return 0;
}

static enum taken take_apart(const struct caller *caller, PyObject *given, enum role role, struct operand *operand) {
    enum taken taken = take(caller->known, given, role, caller->gpu, operand);
    return taken == TAKEN && in_own_memory(caller, operand) ? OTHERS : taken;
}

static enum taken take_ids(const struct caller *caller, PyObject *given, struct operand *ids) {
    if (forks != caller->forks) return OTHERS;
    if (is_tensor(caller->known, given) && is_busy(caller->known)) return leave_to_others();
    enum taken taken = take_apart(caller, given, IDS, ids);
    return taken == TAKEN && (ids->count > UINT32_MAX || ids->dims == DIMS_MOST) ? OTHERS : taken;
}

static int have_shape(const struct operand *values, const struct operand *ids, uint32_t dim) {
    size_t bytes = ids->dims * sizeof *ids->shape;
    return values->dims == ids->dims + 1 && !memcmp(values->shape, ids->shape, bytes) && values->shape[ids->dims] == dim;
}

static enum taken take_values(const struct caller *caller, PyObject *given, enum role role, const struct operand *ids,
                              struct operand *values) {
    if (!ids->of_torch && is_tensor(caller->known, given) && is_busy(caller->known)) return leave_to_others();
    enum taken taken = take_apart(caller, given, role, values);
    if (taken == TAKEN && !have_shape(values, ids, caller->dim)) return OTHERS;
    if (taken == TAKEN && role == OUT) {
        uint64_t low = (uintptr_t)ids->data;
        return overlap(values, low, low + ids->count * (ids->bits / 8)) ? OTHERS : TAKEN;
    }
    return taken;
}

/* ---- new rows ---- */

static PyObject *shape_of(const Py_ssize_t *shape, int dims, uint32_t dim) {
    PyObject *tuple = PyTuple_New(dims + 1);
    for (int i = 0; tuple && i <= dims; i++) {
        PyObject *length = PyLong_FromSsize_t(i < dims ? shape[i] : (Py_ssize_t)dim);
        if (!length || PyTuple_SetItem(tuple, i, length)) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *new_array(const struct known *known, PyObject *shape, struct operand *rows) {
    PyObject *array = PyObject_CallFunctionObjArgs(known->numpy_empty, shape, known->numpy_float32, NULL);
    if (array && take(known, array, OUT, -1, rows) != TAKEN) Py_CLEAR(array);
    return array;
}

/* Makes a tensor and stores its address and kind of memory in *rows, whose other fields stay zero. */
static PyObject *new_tensor(struct caller *caller, PyObject *shape, struct operand *rows) {
    const struct known *known = caller->known;
    if (!caller->template && (caller->template = PyObject_CallObject(caller->make_template, NULL)))
        caller->template_memory = has(caller->known, caller->template, IS_CUDA, Py_True) ? SPTX_CUDA : SPTX_HOST;
    if (!caller->template) return NULL;
    PyObject *tensor = PyObject_CallMethodObjArgs(caller->template, known->names[NEW_EMPTY], shape, NULL);
    uint64_t address = tensor ? number_said(PyObject_CallMethodObjArgs(tensor, known->names[DATA_PTR], NULL)) : 0;
    *rows = (struct operand){.data = (void *)(uintptr_t)address, .memory = caller->template_memory};
    if (PyErr_Occurred()) Py_CLEAR(tensor);
    return tensor;
}

/* Makes an array [shape.. x dim], of PyTorch if of_torch is 1, else of NumPy, and describes it in *rows. Returns NULL with an
 * exception, or NULL without one if Python must make the call. */
static PyObject *new_rows(struct caller *caller, const Py_ssize_t *shape, int dims, int of_torch, struct operand *rows) {
    PyObject *tuple = shape_of(shape, dims, caller->dim);
    if (!tuple) return NULL;
    PyObject *array = of_torch ? new_tensor(caller, tuple, rows) : new_array(caller->known, tuple, rows);
    Py_DECREF(tuple);
    return array;
}

/* ---- fetch, prefetch, update, store ---- */

static PyObject *fetch_new(struct caller *caller, const struct operand *ids) {
    struct operand rows;
    PyObject *array = new_rows(caller, ids->shape, ids->dims, ids->of_torch, &rows);
    if (!array) return PyErr_Occurred() ? NULL : answer(OTHERS);
    if (ask_library(caller, caller->fetch, ids, &rows)) Py_CLEAR(array);
    return array;
}

static PyObject *caller_fetch(PyObject *self, PyObject *arguments) {
    struct caller *caller = (struct caller *)self;
    PyObject *given, *out;
    if (!PyArg_UnpackTuple(arguments, "fetch", 2, 2, &given, &out)) return NULL;
    struct operand ids, rows;
    enum taken taken = take_ids(caller, given, &ids);
    if (taken == TAKEN && out == Py_None) return fetch_new(caller, &ids);
    if (taken == TAKEN) taken = take_values(caller, out, OUT, &ids, &rows);
    if (taken != TAKEN) return answer(taken);
    if (ask_library(caller, caller->fetch, &ids, &rows)) return NULL;
    Py_INCREF(out);
    return out;
}

static PyObject *caller_prefetch(PyObject *self, PyObject *arguments) {
    struct caller *caller = (struct caller *)self;
    PyObject *given;
    if (!PyArg_UnpackTuple(arguments, "prefetch", 1, 1, &given)) return NULL;
    struct operand ids;
    enum taken taken = take_ids(caller, given, &ids);
    if (taken != TAKEN) return answer(taken);
    if (ask_library(caller, NULL, &ids, NULL)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *give(const struct caller *caller, PyObject *arguments, const char *name, rows_call *call) {
    PyObject *given, *floats;
    if (!PyArg_UnpackTuple(arguments, name, 2, 2, &given, &floats)) return NULL;
    struct operand ids, values;
    enum taken taken = take_ids(caller, given, &ids);
    if (taken == TAKEN) taken = take_values(caller, floats, VALUES, &ids, &values);
    if (taken != TAKEN) return answer(taken);
    if (ask_library(caller, call, &ids, &values)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *caller_update(PyObject *self, PyObject *arguments) {
    return give((struct caller *)self, arguments, "update", ((struct caller *)self)->update);
}

static PyObject *caller_store(PyObject *self, PyObject *arguments) {
    return give((struct caller *)self, arguments, "store", ((struct caller *)self)->store);
}

/* ---- sptx.speedtorch: batches ---- */

/* Makes a call with the ids of a batch. If these are not one list yet, they are copied to caller->ids during the turn. */
static enum taken ask_batch(struct caller *caller, rows_call *call, const struct batch *batch, uint64_t names,
                            const struct operand *values) {
    struct operand list = {.count = batch->count * names, .bits = 32};
    void *stream;
    int is_list = names == 1 && batch_is_list(batch, &list) && !in_own_memory(caller, &list);
    if (find_stream(caller, values->memory == SPTX_CUDA, &stream) || call_python(caller->take_turn)) return EXCEPTION;
    if (!is_list) {
        enum taken written = batch_write(batch, caller->rows / names, names, &caller->ids);
        if (written != TAKEN) return call_python(caller->end_turn) || after_turn(caller) ? EXCEPTION : written;
        list.data = caller->ids.data, list.bits = 32;
    }
    const struct sptx_ids ids = {list.data, list.count, list.bits, SPTX_HOST};
    return ask_in_turn(caller, call, &ids, values, stream) ? EXCEPTION : TAKEN;
}

static enum taken open_batch(const struct caller *caller, PyObject *positives, PyObject *negatives, uint64_t names,
                             struct batch *batch) {
    if (!names || forks != caller->forks || !caller->known->tensor || is_busy(caller->known)) return leave_to_others();
    enum taken taken = batch_open(caller->known, positives, negatives, batch);
    if (taken != TAKEN || batch->count <= UINT32_MAX / names) return taken;
    batch_close(batch);
    return OTHERS;
}

static PyObject *gather(PyObject *self, PyObject *arguments) {
    struct caller *caller = (struct caller *)self;
    PyObject *positives, *negatives;
    Py_ssize_t names;
    if (!PyArg_ParseTuple(arguments, "OOn", &positives, &negatives, &names)) return NULL;
    struct batch batch;
    enum taken taken = open_batch(caller, positives, negatives, names, &batch);
    if (taken != TAKEN) return answer(taken);
    struct operand rows;
    const Py_ssize_t count = batch.count * names;
    PyObject *tensor = new_rows(caller, &count, 1, 1, &rows);
    taken = tensor ? ask_batch(caller, caller->fetch, &batch, names, &rows) : PyErr_Occurred() ? EXCEPTION : OTHERS;
    batch_close(&batch);
    if (taken == TAKEN) return tensor;
    Py_XDECREF(tensor);
    return answer(taken);
}

/* Describes the values of a batch as one operand. The batch has one tensor for each named table; they must follow each other in memory. */
static enum taken take_together(const struct caller *caller, PyObject *tensors, Py_ssize_t names, uint64_t count,
                                struct operand *all) {
    const struct operand ids = {
        .dims = 1, .shape = {(Py_ssize_t)count}, .of_torch = 1}; /* open_batch() has checked that PyTorch is loaded */
    for (Py_ssize_t k = 0; k < names; k++) {
        struct operand one;
        PyObject *tensor = PyList_GetItem(tensors, k);
        if (!is_tensor(caller->known, tensor)) return OTHERS;
        enum taken taken = take_values(caller, tensor, VALUES, &ids, &one);
        if (taken != TAKEN) return taken;
        if (k == 0) *all = one;
        const char *place = (char *)all->data + k * count * caller->dim * sizeof(float);
        if (one.memory != all->memory || one.data != place) return OTHERS;
    }
    return TAKEN;
}

static PyObject *scatter(PyObject *self, PyObject *arguments) {
    struct caller *caller = (struct caller *)self;
    PyObject *positives, *negatives, *tensors;
    if (!PyArg_ParseTuple(arguments, "OOO!", &positives, &negatives, &PyList_Type, &tensors)) return NULL;
    Py_ssize_t names = PyList_Size(tensors);
    struct batch batch;
    enum taken taken = open_batch(caller, positives, negatives, names, &batch);
    if (taken != TAKEN) return answer(taken);
    struct operand values;
    taken = take_together(caller, tensors, names, batch.count, &values);
    if (taken == TAKEN) taken = ask_batch(caller, caller->store, &batch, names, &values);
    batch_close(&batch);
    if (taken != TAKEN) return answer(taken);
    Py_RETURN_NONE;
}

/* ---- the class ---- */

static int take_own(struct caller *caller, PyObject *own) {
    caller->ranges = PyTuple_Size(own) / 2;
    caller->own = calloc(caller->ranges + 1, sizeof *caller->own);
    if (!caller->own) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < caller->ranges; i++) {
        caller->own[i].low = PyLong_AsUnsignedLongLong(PyTuple_GetItem(own, 2 * i));
        caller->own[i].high = PyLong_AsUnsignedLongLong(PyTuple_GetItem(own, 2 * i + 1));
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *known, *own;
    struct caller it = {.forks = forks};
    unsigned long long context, table, fetch, prefetch, update, store, error, rows;
    if (!PyArg_ParseTuple(arguments, "OO(OOOOOOO)O(KKKKKKK)KIiO!", &known, &it.handle, &it.take_turn, &it.end_turn, &it.leaving,
                          &it.close_what_waits, &it.said, &it.warn, &it.raise_for, &it.make_template, &context, &table, &fetch,
                          &prefetch, &update, &store, &error, &rows, &it.dim, &it.gpu, &PyTuple_Type, &own))
        return NULL;
    if (!is_known(known)) return PyErr_Format(PyExc_TypeError, "a Caller is made with what is Known");
    struct caller *caller = (struct caller *)PyType_GenericAlloc(type, 0);
    if (!caller) return NULL;
    it.known = (struct known *)known;
    it.context = (void *)(uintptr_t)context, it.table = (void *)(uintptr_t)table, it.rows = rows;
    it.fetch = (rows_call *)(uintptr_t)fetch, it.prefetch = (prefetch_call *)(uintptr_t)prefetch;
    it.update = (rows_call *)(uintptr_t)update, it.store = (rows_call *)(uintptr_t)store;
    it.error = (error_call *)(uintptr_t)error;
    memcpy((char *)caller + sizeof(PyObject), (char *)&it + sizeof(PyObject), sizeof it - sizeof(PyObject));
    PyObject *held[] = {known,   it.handle, it.take_turn, it.end_turn,     it.leaving, it.close_what_waits,
                        it.said, it.warn,   it.raise_for, it.make_template};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) Py_INCREF(held[i]);
    if (take_own(caller, own)) Py_CLEAR(caller);
    return (PyObject *)caller;
}

static void caller_free(PyObject *self) {
    struct caller *caller = (struct caller *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *held[] = {(PyObject *)caller->known, caller->handle,           caller->take_turn, caller->end_turn,
                        caller->leaving,           caller->close_what_waits, caller->said,      caller->warn,
                        caller->raise_for,         caller->make_template,    caller->template};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) Py_XDECREF(held[i]);
    free(caller->own);
    free(caller->ids.data);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef caller_methods[] = {
    {"fetch", caller_fetch, METH_VARARGS, "fetch(ids, out or None) -> rows"},
    {"prefetch", caller_prefetch, METH_VARARGS, "prefetch(ids)"},
    {"update", caller_update, METH_VARARGS, "update(ids, gradients)"},
    {"store", caller_store, METH_VARARGS, "store(ids, values)"},
    {"gather", gather, METH_VARARGS,
     "gather(positives, negatives or None, names) -> a tensor [names * ids x dim]: the rows of all ids, then those of the next name."},
    {"scatter", scatter, METH_VARARGS, "scatter(positives, negatives or None, [a tensor a name])"},
    {0}};
static PyType_Slot caller_slots[] = {{Py_tp_new, caller_new},
                              {Py_tp_dealloc, caller_free},
                              {Py_tp_methods, caller_methods},
                              {Py_tp_doc, "A table's calls. NotImplemented: it is for the package's Python to do."},
                              {0, NULL}};
static PyType_Spec caller_spec = {"sptx._calls.Caller", sizeof(struct caller), 0, Py_TPFLAGS_DEFAULT, caller_slots};

/* ---- the module ---- */

static int add_class(PyObject *module, PyType_Spec *spec, const char *name) {
    PyObject *type = PyType_FromSpec(spec);
    if (type && !PyModule_AddObject(module, name, type)) return 0; /* PyModule_AddObject() has taken over the reference */
    Py_XDECREF(type);
    return -1;
}

static void notice_forks(void) {
    pthread_atfork(NULL, NULL, count_fork);
}

static int begin_module(PyObject *module) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, notice_forks);
    return add_class(module, &known_spec, "Known") || add_class(module, &caller_spec, "Caller") ||
                   add_class(module, &marks_spec, "Marks") ? -1 : 0;
}

/* The module supports no subinterpreter with its own lock: without the slot for that, CPython refuses to load it there. */
static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, begin_module}, {0, NULL}};
static PyMethodDef functions[] = {
    {"walk", walk, METH_VARARGS, "walk(iterator, convert, words_only, most) -> (text, offsets, starts, ended): see calls.c."},
    {0}};
static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT,
                                    .m_name = "sptx._calls",
                                    .m_doc = "The calls of rows, compiled: see _compiled.py.",
                                    .m_methods = functions,
                                    .m_slots = module_slots};

PyMODINIT_FUNC PyInit__calls(void) {
    return PyModuleDef_Init(&module);
}
