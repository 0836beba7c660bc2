#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "prompt.h"
#include "vectors/list_scores.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_ANSWERS = 1000000000 };

/* The question: the rows of the three words, or unit vectors of words that have no row. */
struct asked {
    enum model_view view;
    uint32_t rows[3]; /* DRAW_NONE: the word has no row, and `unseen` has its vector */
    float *unseen;    /* [3 x dim] unit vectors of words without a row */
};

static int find_words(const struct model *model, const char *const *words, struct asked *asked) {
    asked->unseen = mem_alloc(3, model->dim * sizeof *asked->unseen, "three words");
    if (!asked->unseen) return -1;
    for (int i = 0; i < 3; i++) {
        float *vector = asked->unseen + (uint64_t)i * model->dim;
        int64_t row = model_find_or_make(model, asked->view, words[i], vector);
        if (row < 0) return -1;
        if (row == DRAW_NONE) model_make_unit(vector, model->dim);
        asked->rows[i] = (uint32_t)row;
    }
    return 0;
}

static void print_answers(const struct model *model, const uint32_t *ids, const float *scores, uint32_t k) {
    for (uint32_t i = 0; i < k && ids[i] != DRAW_NONE; i++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, ids[i], &length);
        terminal_print(word, length);
        printf("\t%.6f\n", (double)scores[i]);
    }
}

static int answer(const struct model *model, const struct asked *asked, uint32_t k, const struct config *config) {
    struct search search = {.rows = 0};
    uint64_t starts[2] = {0, 0};
    uint32_t banned[3];
    float *query = mem_alloc(model->dim, sizeof *query, "a query"), *scores = mem_alloc(k, sizeof *scores, "answers");
    uint32_t *ids = mem_alloc(k, sizeof *ids, "answers");
    int result = -1;
    if (!query || !scores || !ids || search_open(&search, model, asked->view, METRIC_COSINE, answers_rows(model, 0), config))
        goto out;
    int64_t excluded = search_analogy(&search, asked->rows, asked->unseen, query, banned);
    if (excluded < 0) goto out;
    starts[1] = (uint64_t)excluded;
    result = search_top(&search, query, 1, k, starts, banned, ids, scores);
    if (!result) print_answers(model, ids, scores, k);
out:
    search_close(&search);
    free(query);
    free(scores);
    free(ids);
    return result;
}

/* sptx-w2v analogy RUN A B C [--k=10] */
int cmd_analogy(int argc, char **argv) {
    const char *k_text = NULL;
    const struct option options[] = {{.name = "k", .text = &k_text}, {0}};
    struct arguments arguments;
    struct model model = {.rows = 0};
    struct config config = {.name = NULL};
    uint64_t k = 10;
    struct asked asked = {.unseen = NULL};
    int result = -1;
    if (arguments_read(&arguments, "analogy", argc, argv, options, "device, memory") ||
        arguments_number("analogy", "k", k_text, 1, MOST_ANSWERS, &k)) goto out;
    if (arguments.count == 1 && prompt_is_possible()) {
        result = arguments_config(&config, 0, NULL, &arguments) ? -1 : prompt_run(&(struct prompt_request){
            .path = arguments.given[0], .analogy = 1, .plain = 1, .k = (uint32_t)k, .config = &config});
        goto out;
    }
    if (arguments.count != 4) {
        fail_usage("analogy wants a run directory and three words: four arguments, %d given; see 'sptx-w2v help analogy'",
                   arguments.count);
        goto out;
    }
    if (arguments_config(&config, 0, NULL, &arguments) || model_open(&model, arguments.given[0])) goto out;
    int view = answers_view_named(&model, NULL, (unsigned)config.device_threads);
    if (view < 0) goto out;
    asked.view = (enum model_view)view;
    if (find_words(&model, arguments.given + 1, &asked)) goto out;
    result = answer(&model, &asked, (uint32_t)(k < model.rows ? k : model.rows), &config);
out:
    free(asked.unseen);
    model_close(&model);
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
