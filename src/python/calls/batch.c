/* batch: turns the ids of a batch of sptx.speedtorch, one or two arrays of any shape and order, into one list. */
#include "calls.h"

#include "base/checks.h"

enum taken batch_open(const struct known *known, PyObject *positives, PyObject *negatives, struct batch *batch) {
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

void batch_close(struct batch *batch) {
    Py_XDECREF(batch->capsules[0]);
    Py_XDECREF(batch->capsules[1]);
}

int batch_is_list(const struct batch *batch, struct operand *list) {
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

enum taken batch_write(const struct batch *batch, uint64_t classes, uint64_t names, struct ids *ids) {
    if (!classes || classes * names > INT32_MAX || batch->count > UINT32_MAX / names || make_room(ids, batch->count * names))
        return OTHERS;
    struct writing to = {.next = ids->data, .classes = classes};
    for (int i = 0; i < 2 && batch->parts[i]; i++) write_part(&to, batch->parts[i], 0, batch->parts[i]->data);
    for (uint64_t k = 1; k < names; k++)
        for (uint64_t i = 0; i < batch->count; i++) ids->data[k * batch->count + i] = ids->data[i] + (uint32_t)(k * classes);
    return to.wrong ? OTHERS : TAKEN;
}
