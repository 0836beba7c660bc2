#include "triple_answers.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

int triple_answers_open(struct triple_answers *answers, const struct model *model, const struct config *config) {
    *answers = (struct triple_answers){.model = model};
    return run_triples_check(model) || search_open(&answers->search, model, VIEW_CONTEXT, METRIC_DOT, model_items(model), config)
               ? -1
               : 0;
}

void triple_answers_close(struct triple_answers *answers) {
    search_close(&answers->search);
    idstream_close(&answers->stream);
}

/* Finds the answers to all questions that the run was trained on. */
static int find_trained(struct triple_answers *answers, struct known_answers *known, uint64_t *questions, uint64_t count,
                        struct pool *pool) {
    if (known_answers_begin(known, answers->model, questions, count)) return -1;
    if (!answers->looked && run_triples_open(&answers->stream, answers->model, pool) < 0) return -1;
    answers->looked = 1;
    return known_answers_add_stream(known, &answers->stream, pool) || known_answers_end(known) ? -1 : 0;
}

/* Answers questions first .. first + block->rows - 1, or fewer if there are no more. */
static int ask_block(struct triple_answers *answers, struct search_block *block, const struct known_answers *known,
                     const uint32_t *entities, const uint32_t *relations, uint64_t count, uint32_t k) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t end = block->banned_starts[i];
        if (run_triples_query(answers->model, entities[i], relations[i], block->queries + i * answers->model->dim)) return -1;
        if (known->count) {
            uint64_t at = (uint64_t)known_answers_find(known, entities[i], relations[i]), more = known->counts[at];
            if (mem_grow(&block->banned, &block->banned_capacity, end + more, sizeof *block->banned, "known answers")) return -1;
            if (more) memcpy(block->banned + end, known->answers + known->starts[at], more * sizeof *block->banned);
            end += more;
        }
        block->banned_starts[i + 1] = end;
    }
    return search_top(&answers->search, block->queries, count, k, block->banned_starts, block->banned, block->ids, block->scores);
}

int triple_answers_ask(struct triple_answers *answers, const uint32_t *entities, const uint32_t *relations, uint64_t count,
                       uint32_t k, int seen, struct pool *pool, uint32_t *ids, float *scores) {
    struct known_answers known = {.count = 0};
    struct search_block block;
    int result = search_block_init(&block, answers->model->dim, k, count);
    uint64_t *questions = seen || result ? NULL : mem_alloc(count, sizeof *questions, "questions");
    for (uint64_t i = 0; questions && i < count; i++) questions[i] = (uint64_t)entities[i] << 32 | relations[i];
    if (!result && !seen) result = questions ? find_trained(answers, &known, questions, count, pool) : -1;
    if (!result) block.banned_starts[0] = 0;
    for (uint64_t first = 0, n; !result && first < count; first += n) {
        n = count - first < block.rows ? count - first : block.rows;
        result = ask_block(answers, &block, &known, entities + first, relations + first, n, k);
        if (result) break;
        memcpy(ids + first * k, block.ids, n * k * sizeof *ids);
        memcpy(scores + first * k, block.scores, n * k * sizeof *scores);
    }
    known_answers_release(&known);
    search_block_release(&block);
    return result;
}
