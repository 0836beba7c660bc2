/* known: the objects of NumPy and PyTorch that the calls use; each is looked up once. */
#include "calls.h"

static const char *const SPELLED[NAMES] = {[ARRAY_STRUCT] = "__array_struct__",
                                           [DATA_PTR] = "data_ptr",
                                           [DTYPE] = "dtype",
                                           [GET_DEVICE] = "get_device",
                                           [IS_CONTIGUOUS] = "is_contiguous",
                                           [IS_CPU] = "is_cpu",
                                           [IS_CUDA] = "is_cuda",
                                           [IS_NEG] = "is_neg",
                                           [LAYOUT] = "layout",
                                           [NEW_EMPTY] = "new_empty",
                                           [SHAPE] = "shape",
                                           [REQUIRES_GRAD] = "requires_grad"};

enum taken leave_to_others(void) {
    if (!PyErr_Occurred()) return OTHERS;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return EXCEPTION;
    PyErr_Clear();
    return OTHERS;
}

PyObject *answer(enum taken taken) {
    if (taken == EXCEPTION) return NULL;
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

int is_tensor(const struct known *known, PyObject *object) {
    const PyObject *kind = (PyObject *)Py_TYPE(object);
    return kind == known->tensor || kind == known->parameter;
}

static int is_value(PyObject *got, const PyObject *value) {
    Py_XDECREF(got); /* this reference is not needed: these objects are singletons, so their addresses stay valid */
    return got && got == value;
}

int has(const struct known *known, PyObject *object, enum name attribute, const PyObject *value) {
    return is_value(PyObject_GetAttr(object, known->names[attribute]), value);
}

int says(const struct known *known, PyObject *object, enum name method, const PyObject *value) {
    return is_value(PyObject_CallMethodObjArgs(object, known->names[method], NULL), value);
}

uint64_t number_said(PyObject *said) {
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

int is_known(PyObject *object) {
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

static PyMethodDef methods[] = {
    {"learn_torch", learn_torch, METH_VARARGS,
     "learn_torch(Tensor, Parameter, int32, int64, float32, strided, busy, stream): tensors are taken from now on."},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_new, known_new},
    {Py_tp_dealloc, known_free},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Known(ndarray, empty, float32): what calls ask of NumPy, and later of PyTorch."},
    {0, NULL}};
PyType_Spec known_spec = {"sptx._calls.Known", sizeof(struct known), 0, Py_TPFLAGS_DEFAULT, slots};
