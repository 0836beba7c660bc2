/* hogwild: the call for lock-free training on the GPU. It chooses one of four kernels for a request, and collects the result.
 *
 *   hogwild_windows.cu   windows of a text with sgd, in registers
 *   hogwild_pooled.cu    windows of a text with sgd, whose words are pooled to one vector (CBOW)
 *   hogwild_subwords.cu  windows of a text with sgd, whose words share the rows of their n-grams
 *   hogwild_rows.cu      everything else
 */
#include "hogwild_words.cuh"

namespace {

struct hogwild_memory {
    hogwild_totals *totals; /* pinned, mapped: the kernel's result, which the host reads after the kernel */
    hogwild_totals *device_totals;
    gpu_array scratch;
    drawn_walks walks; /* the walks of the current part of a request; used only if the corpus is a graph */
};

/* Returns a bit mask of hogwild_part that says which of a table's weights and state have rows in a file. `weights` is the bit's
 * number for this table's weights; the state's is the next number. */
unsigned parts_in_file(const backend_table *t, unsigned weights) {
    const part_view *parts[2] = {&t->view.weights, &t->view.state};
    unsigned bits = 0;
    for (unsigned i = 0; i < (t->view.slots ? 2u : 1u); i++)
        if (!parts[i]->home && parts[i]->hot_rows < t->view.rows) bits |= 1u << (weights + i);
    return bits;
}

int check_request(const hogwild_request *r) {
    char why[HOGWILD_WHY];
    hogwild_asked asked = {};
    asked.rule = *r->rule;
    asked.gpu = 1;
    asked.frozen = r->target->frozen || r->context->frozen;
    asked.in_file = parts_in_file(r->target, HOGWILD_TARGET) | parts_in_file(r->context, HOGWILD_CONTEXT);
    return hogwild_refuses(&asked, why) ? fail("%s", why) : 0;
}

int open_memory(backend *backend, hogwild_memory **out) {
    if (!backend->hogwild) {
        hogwild_memory *m = (hogwild_memory *)mem_zalloc(1, sizeof *m, "lock-free training");
        if (!m) return -1;
        backend->hogwild = m;
        if (buffer_take(backend, (void **)&m->totals, sizeof *m->totals) ||
            gpu_take(backend, (void **)&m->device_totals, sizeof *m->device_totals, "lock-free training"))
            return -1;
    }
    *out = (hogwild_memory *)backend->hogwild;
    return 0;
}

/* Computes how much scratch the general kernel needs, and lowers *warps to the number of warps for which there is scratch. */
int size_scratch(backend *backend, hogwild_memory *m, hogwild_job *job, uint64_t *warps) {
    const example_source &s = backend->source.host;
    struct hogwild_scratch scratch = hogwild_scratch(&s);
    struct example_row row = {};
    row.count = s.longest;
    example_row_sizes(&s, &row);
    if (s.mode == EXAMPLE_WINDOW) row.wanted = 1, row.negatives = s.negatives;
    if (example_check_row(&row)) return -1;
    job->most_contexts = (uint32_t)scratch.contexts;
    job->most_words = (uint32_t)scratch.window_targets;
    job->most_targets = (uint32_t)scratch.targets;
    job->most_vectors = (uint32_t)scratch.vectors;
    job->scratch_words = scratch.words;
    *warps = hogwild_warps(*warps, (uint64_t)backend->processors, &scratch);
    if (gpu_grow(backend, &m->scratch, *warps * job->scratch_words * sizeof(uint32_t), "lock-free training")) return -1;
    job->scratch = (uint32_t *)m->scratch.data;
    return 0;
}

/* Returns true if some rows of a table are in host memory. with_state: 1: rows have state, too. */
bool is_partly_on_host(const table_view &t, int with_state) {
    return t.weights.hot_rows < t.rows || (with_state && t.state.hot_rows < t.rows);
}

/* Computes the keys of the random bits for rounding. Each part of a request has different keys. */
void make_keys(const hogwild_request *r, hogwild_job *job) {
    job->target_key = round_step_key(&r->target->spec.rounding, DRAW_ROUND_WEIGHTS, job->global_step);
    job->context_key = round_step_key(&r->context->spec.rounding, DRAW_ROUND_WEIGHTS, job->global_step);
}

void make_job(const backend *backend, const hogwild_request *r, const hogwild_memory *m, hogwild_job *job) {
    *job = {};
    job->target = r->target->view;
    job->context = r->context->view;
    job->source = backend->source.view;
    if (job->source.shuffle) job->order = example_order(&job->source, r->epoch);
    job->quads = job->target.quads;
    job->epoch = r->epoch;
    job->first = r->first;
    job->count = r->count;
    job->lr_first = (float)r->lr_first;
    job->lr_slope = hogwild_slope(r);
    job->decay = (float)r->rule->weight_decay;
    job->eps = (float)r->rule->eps;
    job->linear = hogwild_is_linear(r->rule);
    job->adagrad = r->rule->rule == RULE_ADAGRAD;
    job->counted = job->adagrad && job->target.counted;
    job->on_host = is_partly_on_host(job->target, job->adagrad) || is_partly_on_host(job->context, job->adagrad);
    job->lr_decay = r->rule->lr_decay;
    job->global_step = r->global_step;
    job->halves = has_halves(&r->target->spec.layout);
    job->state_halves = state_halves(&r->target->spec.layout);
    make_keys(r, job);
    job->loss_mask = hogwild_loss_mask(r->count);
    job->totals = m->device_totals;
}

int launch(backend *backend, hogwild_memory *m, const hogwild_request *r, hogwild_job *job) {
    uint64_t warps = r->workers ? r->workers : hogwild_wanted_warps(&job->source);
    if (hogwild_subwords_can(job)) return hogwild_subwords_launch(job, warps, backend->processors, backend->compute);
    if (hogwild_pooled_can(job)) return hogwild_pooled_launch(job, warps, backend->processors, backend->compute);
    if (hogwild_windows_can(job)) return hogwild_windows_launch(job, warps, backend->processors, backend->compute);
    if (size_scratch(backend, m, job, &warps)) return -1;
    job->node_limit = (float)HOGWILD_NODE_AT_ONCE / (float)warps;
    return hogwild_rows_launch(job, warps, backend->compute);
}

/* Trains a request part after part. The walks of a part are drawn just before it. */
int launch_walks(backend *backend, hogwild_memory *m, const hogwild_request *r, const hogwild_job *whole) {
    if (cuda_walks_grow(backend, &m->walks, r->count < WALKED_AT_ONCE ? r->count : WALKED_AT_ONCE)) return -1;
    for (uint64_t done = 0; done < r->count; done += WALKED_AT_ONCE) {
        hogwild_job job = *whole;
        job.first += done;
        job.count = r->count - done < WALKED_AT_ONCE ? r->count - done : WALKED_AT_ONCE;
        job.lr_first = hogwild_rate(whole->lr_first, whole->lr_slope, done);
        job.global_step += done;
        make_keys(r, &job);
        job.source = cuda_walks_source(backend, &m->walks, job.first, job.count);
        CK(cudaMemsetAsync(&m->device_totals->next, 0, sizeof m->device_totals->next, backend->compute));
        if (cuda_walks_draw_part(&job.source, job.epoch, job.count, backend->compute) || launch(backend, m, r, &job)) return -1;
    }
    return 0;
}

} // namespace

int cuda_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result) {
    hogwild_memory *m = NULL;
    hogwild_job job;
    *result = {};
    if (request->count == 0) return 0;
    CK(cudaSetDevice(backend->device));
    if (check_request(request) || cuda_drain(backend) || open_memory(backend, &m)) return -1;
    cuda_snapshot_await(request->target);
    cuda_snapshot_await(request->context);
    make_job(backend, request, m, &job);
    CK(cudaMemsetAsync(m->device_totals, 0, sizeof *m->device_totals, backend->compute));
    if (job.source.walks.length ? launch_walks(backend, m, request, &job) : launch(backend, m, request, &job)) return -1;
    CK(cudaMemcpyAsync(m->totals, m->device_totals, sizeof *m->totals, cudaMemcpyDeviceToHost, backend->compute));
    CK(cudaStreamSynchronize(backend->compute));
    result->done = request->count;
    result->words = backend->source.host.mode == EXAMPLE_WINDOW ? request->count : 0;
    result->examples = m->totals->examples;
    result->pairs = m->totals->pairs;
    result->loss = m->totals->loss;
    result->sampled_examples = m->totals->sampled_examples;
    result->sampled_pairs = m->totals->sampled_pairs;
    result->sampled_terms = m->totals->sampled_terms;
    result->link_bytes = m->totals->host_rows * record_weights_bytes(&request->target->spec.layout);
    return 0;
}

void cuda_hogwild_close(struct backend *backend) {
    hogwild_memory *m = (hogwild_memory *)backend->hogwild;
    if (!m) return;
    gpu_drop(backend, &m->scratch);
    cuda_walks_drop(backend, &m->walks);
    if (m->device_totals) gpu_give(backend, m->device_totals, sizeof *m->device_totals);
    buffer_give(backend, m->totals, sizeof *m->totals);
    free(m);
    backend->hogwild = NULL;
}
