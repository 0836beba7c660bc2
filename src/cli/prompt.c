#include "prompt.h"

#include "base/memory.h"
#include "base/progress.h"
#include "vectors/list_scores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MOST_ASKED = 100, NAME_WIDTH = 50 };

struct prompt {
    const struct prompt_request *request;
    struct model model;
    enum model_view view;
    struct search search;
    uint32_t k;
    char *words[WORDS_MOST_ASKED]; /* words of the question */
    uint32_t rows[WORDS_MOST_ASKED];
    int count;
    float *query, *scores;
    uint32_t *ids;
};

int prompt_is_possible(void) {
    return isatty(STDIN_FILENO);
}

/* Finds the words' rows, and prints the position of each. Returns 1 if all words are known. */
static int find_words(struct prompt *p) {
    for (int i = 0; i < p->count; i++) {
        int64_t row = vocab_find(&p->model.vocab, p->words[i], strlen(p->words[i]));
        int known = row >= 0 && (uint64_t)row < p->search.rows;
        if (!p->request->plain) {
            printf("\nWord: ");
            terminal_print_name(p->words[i]);
            printf("  Position in vocabulary: %lld\n", known ? (long long)row : -1);
        }
        if (!known) {
            puts(p->request->plain ? "a word is not known" : "Out of dictionary word!");
            return 0;
        }
        p->rows[i] = (uint32_t)row;
    }
    return p->count > 0;
}

static int make_query(struct prompt *p) {
    uint32_t banned[3];
    float *one = p->search.base;
    if (p->request->analogy) return search_analogy(&p->search, p->rows, NULL, p->query, banned) < 0 ? -1 : 0;
    memset(p->query, 0, p->model.dim * sizeof *p->query);
    for (int i = 0; i < p->count; i++)
        for (uint32_t column = 0; column < p->model.dim; column++)
            p->query[column] += one[(uint64_t)p->rows[i] * p->model.dim + column];
    return 0;
}

static void print_answer(const struct prompt *p, uint32_t id, float score) {
    uint64_t length;
    const char *word = vocab_word(&p->model.vocab, id, &length);
    if (!p->request->plain && length < NAME_WIDTH) printf("%*s", (int)(NAME_WIDTH - length), "");
    terminal_print(word, length);
    printf(p->request->plain ? "\t%.6f\n" : "\t\t%f\n", (double)score);
}

static int answer_question(struct prompt *p) {
    static const char *const heads[] = {"Word       Cosine distance", "Word              Distance"};
    if (p->request->analogy && p->count < 3) {
        printf("Only %d words were entered.. three words are needed at the input to perform the calculation\n", p->count);
        return 0;
    }
    if (!find_words(p)) return 0;
    if (make_query(p)) return -1;
    uint64_t starts[2] = {0, search_distinct(p->rows, (uint64_t)p->count)};
    if (search_top(&p->search, p->query, 1, p->k, starts, p->rows, p->ids, p->scores)) return -1;
    if (!p->request->plain)
        printf("\n%46s%s\n------------------------------------------------------------------------\n", "",
               heads[p->request->analogy]);
    for (uint32_t i = 0; i < p->k && p->ids[i] != DRAW_NONE; i++) print_answer(p, p->ids[i], p->scores[i]);
    return 0;
}

static int ask_terminal(struct prompt *p) {
    char *line = NULL;
    size_t capacity = 0;
    int result = 0;
    for (;;) {
        fputs(p->request->analogy ? "Enter three words (EXIT to break): " : "Enter word or sentence (EXIT to break): ", stdout);
        if ((result = terminal_flush())) break;
        if (getline(&line, &capacity, stdin) < 0) break;
        char *rest = line, *word;
        p->count = 0;
        while ((word = strsep(&rest, " \t\r\n")))
            if (*word && p->count < WORDS_MOST_ASKED) p->words[p->count++] = word;
        if (p->count == 1 && !strcmp(p->words[0], "EXIT")) break;
        if (p->count && (result = answer_question(p))) break;
    }
    free(line);
    return result;
}

static int open_prompt(struct prompt *p) {
    int view = answers_view_named(&p->model, NULL, (unsigned)p->request->config->device_threads);
    uint64_t rows = view < 0 ? 0 : answers_rows(&p->model, 0);
    if (!rows) return -1;
    p->view = (enum model_view)view;
    p->k = p->request->k < rows ? p->request->k : (uint32_t)rows;
    p->query = mem_alloc(p->model.dim, sizeof *p->query, "a query");
    p->scores = mem_alloc(p->k, sizeof *p->scores, "answers");
    p->ids = mem_alloc(p->k, sizeof *p->ids, "answers");
    if (!p->query || !p->scores || !p->ids) return -1;
    return search_open(&p->search, &p->model, p->view, METRIC_COSINE, rows, p->request->config);
}

int prompt_run(const struct prompt_request *request) {
    struct prompt p = {.request = request};
    int result = model_open(&p.model, request->path) || open_prompt(&p) || ask_terminal(&p) ? -1 : 0;
    search_close(&p.search);
    model_close(&p.model);
    free(p.query);
    free(p.scores);
    free(p.ids);
    return result;
}
