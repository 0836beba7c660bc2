/* ops: the functions of backend_cuda, grouped by file; backend.h says what each one does. They have C linkage, since their table is in a C file,
 * ops.c. */
#ifndef SPTX_CUDA_OPS_H
#define SPTX_CUDA_OPS_H

#include "kernels/backend.h"

/* cuda_estimate() is declared in arrays.h, since it is compiled without nvcc as well */

/* backend.cu */
int cuda_present(char *why, size_t capacity);
int cuda_devices(struct backend_info *info, int capacity);
int cuda_open(struct backend **backend, const struct backend_options *options);
void cuda_close(struct backend *backend);
int cuda_info(struct backend *backend, struct backend_info *info);

/* rows.cu */
int cuda_table_open(struct backend *backend, const struct table_spec *spec, struct backend_table **table);
void cuda_table_close(struct backend *backend, struct backend_table *table);
int cuda_table_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
int cuda_table_write(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, const void *packed);
int cuda_table_move(struct backend *backend, struct backend_table *table, const uint32_t *row, uint64_t count, void *packed, int write);
int cuda_host_pin(struct backend *backend, void *memory, uint64_t bytes);
void cuda_host_unpin(struct backend *backend, void *memory, uint64_t bytes);
int cuda_host_copy(struct backend *backend, void *to, const void *from, uint64_t bytes, void *stream);

/* snapshot.cu */
int cuda_snapshot_begin(struct backend *backend, struct backend_table *table, uint64_t most);
int cuda_snapshot_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed);
void cuda_snapshot_stop(struct backend_table *table);
void cuda_snapshot_end(struct backend *backend, struct backend_table *table);

/* batch.cu */
int cuda_source_set(struct backend *backend, const struct example_source *source);

/* batch.cu */
int cuda_make_batch(struct backend *backend, unsigned stage, const struct batch_request *request);
int cuda_set_batch(struct backend *backend, unsigned stage, const struct batch_view *view);
int cuda_batch_view(struct backend *backend, unsigned stage, struct batch_view *view);

/* stage.cu */
int cuda_step(struct backend *backend, unsigned stage, const struct step_request *request);
int cuda_result(struct backend *backend, unsigned stage, struct step_result *result);
int cuda_drain(struct backend *backend);

/* by_id.cu */
int cuda_by_id_room(struct backend *backend, uint64_t count, uint32_t **ids);
int cuda_by_id_fetch(struct backend *backend, const struct rows_request *request);
int cuda_by_id_prefetch(struct backend *backend, const struct rows_request *request);
int cuda_by_id_update(struct backend *backend, const struct rows_request *request);
int cuda_by_id_store(struct backend *backend, const struct rows_request *request);
int cuda_rows_send(struct backend *backend, const struct rows_request *request, const uint32_t *places, float *home);
/* key_index.cu */
int cuda_keys_open(struct backend *backend, uint64_t capacity, uint64_t secret, enum keys_evict evict, struct key_index **index);
void cuda_keys_close(struct backend *backend, struct key_index *index);
int cuda_keys_set(struct backend *backend, struct key_index *index, const struct key_row *rows, uint64_t used, uint64_t keys);
int cuda_keys_counts(struct backend *backend, const struct key_index *index, struct key_row *rows);
int cuda_keys_find(struct backend *backend, struct key_index *index, const uint64_t *keys, uint64_t count, uint64_t plan, void *stream,
                   struct key_finding *found);
int cuda_keys_victims(struct backend *backend, struct key_index *index, uint64_t wanted, uint64_t plan, uint64_t highest, uint32_t *rows);
int cuda_keys_commit(struct backend *backend, struct key_index *index, const struct key_change *change, void *stream);

int cuda_ngrams(struct backend *backend, const struct ngram_law *law, const struct ngram_tokens *of, int64_t *rows, void *stream);
int cuda_by_id_wait(struct backend *backend);
int cuda_cache_rows(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count);
struct rows_view cuda_by_id_view(struct backend *backend, const struct backend_table *table, const struct record_field *field);

/* batch_examples.cu */
int cuda_draw_walks(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids);

/* hogwild.cu, search_topk.cu, filter.cu, copies.cu, fold_in.cu, bench.cu */
int cuda_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result);
int cuda_topk(struct backend *backend, const struct topk_request *request);
int cuda_filter(struct backend *backend, const struct filter_request *request);
int cuda_copies_open(struct backend *const *backends, struct backend_table *const *tables, unsigned count, struct backend_copies **copies);
int cuda_copies_merge(struct backend_copies *copies);
void cuda_copies_close(struct backend_copies *copies);
int cuda_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **fold);
int cuda_fold_solve(struct backend_fold *fold, const struct fold_lists *lists);
void cuda_fold_close(struct backend_fold *fold);
int cuda_bench_transfer(struct backend *backend, const struct bench_request *request, struct bench_times *times);
int cuda_bench_limits(struct backend *backend, struct bench_limits *limits);

#endif
