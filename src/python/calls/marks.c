/* Marks: finds ids that stand twice in a batch. Each id is marked in a table of a few places an id, at the first free
 * place from its own on. Marks are numbered through all batches, so that those of earlier ones need not be wiped out.
 */
#include "calls.h"

#include <string.h>

struct marks {
    PyObject head; /* which CPython has in each object */
    struct known *known;
    struct ids ids;
    uint32_t *places; /* [1 << log2_places] number of the id that is marked here; below `first`: free */
    unsigned log2_places;
    uint32_t first; /* number of this batch's first id, above 0 */
};

enum { PLACES_AN_ID = 2, IDS_MOST = 1 << 28 };

/* Makes the table fit for a batch. */
static int prepare(struct marks *marks, uint32_t count) {
    unsigned wanted = marks->log2_places;
    while ((UINT64_C(1) << wanted) < (uint64_t)PLACES_AN_ID * count) wanted++;
    if (!marks->places || wanted > marks->log2_places) {
        uint32_t *places = calloc(UINT64_C(1) << wanted, sizeof *places);
        if (!places) return -1;
        free(marks->places);
        marks->places = places, marks->log2_places = wanted;
    }
    if (marks->first > UINT32_MAX - count) {
        memset(marks->places, 0, sizeof *marks->places << marks->log2_places);
        marks->first = 1;
    }
    return 0;
}

static int stand_twice(struct marks *marks, uint32_t count) {
    const int32_t *ids = marks->ids.data;
    uint32_t mask = (UINT32_C(1) << marks->log2_places) - 1, first = marks->first;
    marks->first += count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = (uint32_t)(((uint32_t)ids[i] * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
        for (; marks->places[place] >= first; place = (place + 1) & mask)
            if (ids[marks->places[place] - first] == ids[i]) return 1;
        marks->places[place] = first + i;
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
    if (taken == TAKEN && prepare(marks, (uint32_t)batch.count)) taken = OTHERS;
    PyObject *result = taken == TAKEN ? PyBool_FromLong(stand_twice(marks, (uint32_t)batch.count)) : answer(taken);
    batch_close(&batch);
    return result;
}

/* ---- the class ---- */

static PyObject *marks_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    PyObject *known;
    unsigned first = 1;
    if (!PyArg_ParseTuple(arguments, "O|I", &known, &first)) return NULL;
    if (!is_known(known)) return PyErr_Format(PyExc_TypeError, "Marks are made with what is Known");
    struct marks *marks = (struct marks *)PyType_GenericAlloc(type, 0);
    if (!marks) return NULL;
    Py_INCREF(known);
    marks->known = (struct known *)known;
    marks->first = first;
    return (PyObject *)marks;
}

static void marks_free(PyObject *self) {
    struct marks *marks = (struct marks *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(marks->known);
    free(marks->ids.data);
    free(marks->places);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"twice", twice, METH_VARARGS, "twice(positives, negatives or None) -> whether an id stands twice among both."},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_new, marks_new},
    {Py_tp_dealloc, marks_free},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Marks(known, first=1): finds ids that stand twice in a batch. first: the number of the first mark."},
    {0, NULL}};
PyType_Spec marks_spec = {"sptx._calls.Marks", sizeof(struct marks), 0, Py_TPFLAGS_DEFAULT, slots};
