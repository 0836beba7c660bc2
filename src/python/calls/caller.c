/* Caller: makes the calls on a table's rows. Each call waits for its turn in the context, as calls from Python do (sptx/_context.py). While it has
 * its turn no Python code runs, so no interrupt can occur. */
#include "calls.h"

#include <pthread.h>
#include <string.h>

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

static PyMethodDef methods[] = {
    {"fetch", caller_fetch, METH_VARARGS, "fetch(ids, out or None) -> rows"},
    {"prefetch", caller_prefetch, METH_VARARGS, "prefetch(ids)"},
    {"update", caller_update, METH_VARARGS, "update(ids, gradients)"},
    {"store", caller_store, METH_VARARGS, "store(ids, values)"},
    {"gather", gather, METH_VARARGS,
     "gather(positives, negatives or None, names) -> a tensor [names * ids x dim]: the rows of all ids, then those of the next name."},
    {"scatter", scatter, METH_VARARGS, "scatter(positives, negatives or None, [a tensor a name])"},
    {0}};
static PyType_Slot slots[] = {{Py_tp_new, caller_new},
                              {Py_tp_dealloc, caller_free},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "A table's calls. NotImplemented: it is for the package's Python to do."},
                              {0, NULL}};
PyType_Spec caller_spec = {"sptx._calls.Caller", sizeof(struct caller), 0, Py_TPFLAGS_DEFAULT, slots};

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
    {"walk", walk, METH_VARARGS, "walk(iterator, convert, words_only, most) -> (text, offsets, starts, ended): see walk.c."},
    {0}};
static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT,
                                    .m_name = "sptx._calls",
                                    .m_doc = "The calls of rows, compiled: see _compiled.py.",
                                    .m_methods = functions,
                                    .m_slots = module_slots};

PyMODINIT_FUNC PyInit__calls(void) {
    return PyModuleDef_Init(&module);
}
