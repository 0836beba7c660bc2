/* operands: describes arrays of NumPy, by __array_struct__, and tensors of PyTorch, by a few attributes. */
#include "calls.h"

/* ---- NumPy ---- */

PyObject *describe(const struct known *known, PyObject *array, const struct array_struct **about) {
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

int is_busy(const struct known *known) {
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

enum taken take(const struct known *known, PyObject *given, enum role role, int gpu, struct operand *operand) {
    return is_tensor(known, given) ? take_tensor(known, given, role, gpu, operand) : take_array(known, given, role, operand);
}
