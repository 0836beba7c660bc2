/* ops: the table of the CUDA backend. It is C, whose initializers have names; its functions are in .cu files. */
#include "ops.h"

#include "arrays.h"

const struct backend_ops backend_cuda = {
    .name = "cuda",
    .has_gpu = 1,
    .halves = 1,
    .present = cuda_present,
    .devices = cuda_devices,
    .estimate = cuda_estimate,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .table_open = cuda_table_open,
    .table_close = cuda_table_close,
    .table_read = cuda_table_read,
    .table_write = cuda_table_write,
    .source = cuda_source_set,
    .make_batch = cuda_make_batch,
    .set_batch = cuda_set_batch,
    .batch_view = cuda_batch_view,
    .step = cuda_step,
    .result = cuda_result,
    .drain = cuda_drain,
    .rows_fetch = cuda_by_id_fetch,
    .rows_prefetch = cuda_by_id_prefetch,
    .rows_update = cuda_by_id_update,
    .rows_store = cuda_by_id_store,
    .rows_wait = cuda_by_id_wait,
    .rows_view = cuda_by_id_view,
    .draw_walks = cuda_draw_walks,
    .hogwild = cuda_hogwild,
    .topk = cuda_topk,
    .filter = cuda_filter,
    .bench_transfer = cuda_bench_transfer,
    .bench_limits = cuda_bench_limits,
};
