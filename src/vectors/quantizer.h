/* quantizer: makes the rows of a view smaller: fewer columns, and fewer bits for each number.
 *
 *   type    a number in the file                       decoded as
 *   f32     float32                                    itself
 *   bf16    bfloat16                                   itself
 *   f16     float16                                    itself
 *   int8    round(x / scale), -127 .. 127              number * scale
 *   uint8   the number of int8 + 128, 1 .. 255         (number - 128) * scale
 *   binary  a bit: 1 if x is above its column's mean   1 or -1
 *
 * scale: a row's largest magnitude / 127. In formats that cannot store a scale for each row, one scale serves all rows, which are first scaled to
 * length 1. So are binary rows; their bits are packed as by numpy.packbits, eight to a byte, the first one highest. Columns: rows are multiplied by
 * the `columns` principal axes of largest variance about 0 (of up to 100,000 unit rows). No other projection to so many columns changes these rows'
 * dot products less. Binary rows may have more columns than the model: they are multiplied by random orthogonal axes, and each further bit adds some
 * information. All results are the same with any number of threads.
 */
#ifndef SPTX_QUANTIZER_H
#define SPTX_QUANTIZER_H

#include "model.h"
#include "base/pool.h"

/* Number type in a file. Values are rounded to the nearest number; rows that a run stores as bfloat16 are not changed by bf16. */
enum export_type { EXPORT_F32, EXPORT_BF16, EXPORT_F16, EXPORT_INT8, EXPORT_UINT8, EXPORT_BINARY, EXPORT_TYPES };

extern const struct export_type_form {
    const char *name, *safetensors;
    char npy;       /* NumPy's kind character, as in npy.h */
    unsigned bits;  /* of a number */
} export_types[EXPORT_TYPES];

int export_type_named(const char *name); /* returns the export_type of a name; -1 after fail_usage(), which lists the names */

enum { QUANTIZER_COLUMNS_MOST = 1024 }; /* most columns before and after rows are multiplied by other axes */

struct quantizer {
    const struct model *model;
    enum model_view view;
    uint64_t rows;
    enum export_type type;
    uint32_t columns;  /* of a quantized row */
    int unit;          /* 1: rows are scaled to length 1 first */
    float *rotation;   /* [dim x columns] one axis in each column; NULL: all columns are kept */
    float *mean;       /* binary: [columns] mean of each column; otherwise NULL */
    float *scales;     /* int8 with a scale for each row: [rows]; otherwise NULL */
    float scale;       /* int8 and uint8 without `scales`: the scale of all rows */
    struct pool *pool;
};

/* Prepares to quantize the first `rows` rows of a view. columns: at most the model's (except for binary); 0: all. one_scale = 1: int8 has one
 * scale for all rows. threads = 0: one for each core. Returns 0, or -1 after fail(); the caller closes in any case. */
int quantizer_open(struct quantizer *quantizer, const struct model *model, enum model_view view, uint64_t rows,
                   enum export_type type, uint32_t columns, int one_scale, unsigned threads);
void quantizer_close(struct quantizer *quantizer); /* harmless on a zeroed one */

/* Scales rows [count x dim] in place to length 1 if `unit` is set, and multiplies them by the rotation. turned: result [count x columns]; without
 * a rotation it may be `values`. */
int quantizer_turn(const struct quantizer *quantizer, float *values, uint64_t count, float *turned);
/* Returns the number of bytes of a quantized row. */
uint64_t quantizer_bytes(const struct quantizer *quantizer);
/* Quantizes a turned row. */
void quantizer_encode(const struct quantizer *quantizer, uint64_t row, const float *turned, void *out);
/* Returns the rows [count x columns] as readers decode them, scaled to length 1; the caller frees them. NULL after fail(). */
float *quantizer_matrix(const struct quantizer *quantizer, uint64_t count);
/* Converts queries [count x dim] to queries [count x columns] for the rows of quantizer_matrix(). Changes `values`. */
int quantizer_queries(const struct quantizer *quantizer, float *values, uint64_t count, float *turned);

/* The quality of quantized rows: how many of a row's ten nearest rows by cosine in float32 a search of the quantized rows finds, too. */
struct quantizer_loss {
    uint64_t most;     /* set by the caller: only this many first rows are searched */
    uint64_t searched; /* rows searched */
    double recall;     /* mean share of the true nearest rows that are found; the queries are the float32 vectors of up to 1,000 rows */
    double rescored;   /* the same share if 100 rows are found first, and then ordered by their float32 vectors */
};
int quantizer_measure(const struct quantizer *quantizer, struct quantizer_loss *loss);

#endif
