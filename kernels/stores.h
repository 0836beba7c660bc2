/* stores: how a table's records are laid out in memory; backends and plans use the same rule. Weights and state share a record
 * if they have the same place; otherwise they are two stores with the same row numbers (backend.h draws both). */
#ifndef SPTX_STORES_H
#define SPTX_STORES_H

#include "backend.h"

/* Alignment of records, in bytes. Memory delivers a line of 128 bytes at a time, so records begin on lines. Shorter records
 * would leave most of a line empty, so they begin at multiples of 32: a record of 96 bytes occupies 96. */
enum { STORE_LINE = 128, STORE_SHORT = 32 };

FN uint64_t store_stride(uint64_t record) {
    uint64_t align = record < STORE_LINE ? STORE_SHORT : STORE_LINE;
    return (record + align - 1) / align * align;
}

struct store_shape {
    enum place place;
    uint64_t stride;   /* bytes of a record, with padding */
    uint64_t gpu_rows; /* rows first_row .. gpu_rows - 1 are on the GPU: for the gpu place all rows, for the others the hot rows */
    uint64_t on_gpu, on_host; /* numbers of rows on the GPU and on the host */
};

struct table_shape {
    unsigned stores;  /* 1: weights and state share a record; 2: store[1] holds the state */
    uint64_t weights; /* bytes of the weights; if the record is shared, the state begins after them */
    uint64_t state;   /* bytes of the state; 0: records have no state */
    struct store_shape store[2];
};

FN struct store_shape store_shape(const struct table_spec *spec, enum place place, uint64_t record, int gpu) {
    struct store_shape shape;
    uint64_t hot = spec->hot_rows < spec->rows ? spec->hot_rows : spec->rows;
    if (hot < spec->first_row || !gpu) hot = spec->first_row;
    shape.place = place;
    shape.stride = store_stride(record);
    shape.gpu_rows = gpu && place == PLACE_GPU ? spec->rows : hot;
    shape.on_gpu = shape.gpu_rows - spec->first_row;
    shape.on_host = spec->rows - shape.gpu_rows;
    return shape;
}

/* Returns the shape of a table's stores. `gpu`: 1 if the backend has a GPU. Without a GPU, the places pinned and gpu both mean
 * plain host memory, and no row is hot. */
FN struct table_shape table_shape(const struct table_spec *spec, int gpu) {
    struct table_shape shape;
    const struct record_layout *layout = &spec->layout;
    enum place weights = spec->weights, state = spec->state;
    if (!gpu && weights == PLACE_GPU) weights = PLACE_PINNED;
    if (!gpu && state == PLACE_GPU) state = PLACE_PINNED;
    shape.weights = record_weights_bytes(layout);
    shape.state = record_state_bytes(layout);
    shape.stores = shape.state && weights != state ? 2 : 1;
    shape.store[0] = store_shape(spec, weights, shape.weights + (shape.stores == 1 ? shape.state : 0), gpu);
    shape.store[1] = store_shape(spec, state, shape.state, gpu);
    return shape;
}

#endif
