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
#include "calls.h"

#include <string.h>

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

static PyMethodDef methods[] = {
    {"twice", twice, METH_VARARGS, "twice(positives, negatives or None) -> whether an id stands twice among both."},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_new, marks_new},
    {Py_tp_dealloc, marks_free},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Marks(known): finds ids that stand twice in a batch."},
    {0, NULL}};
PyType_Spec marks_spec = {"sptx._calls.Marks", sizeof(struct marks), 0, Py_TPFLAGS_DEFAULT, slots};
