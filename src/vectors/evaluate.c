#include "evaluate.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

int answer_add(struct answer *answer, const char *part, const char *name, double value, uint64_t of, const char *format, ...) {
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (mem_grow(&answer->numbers, &answer->capacity, answer->count + 1, sizeof *answer->numbers, "an answer")) return -1;
    struct sptx_number *number = &answer->numbers[answer->count++];
    *number = (struct sptx_number){.part = mem_text(part, strlen(part), "an answer"), .name = name, .value = value, .count = of,
                                   .text = mem_text(text, strlen(text), "an answer")};
    return number->part && number->text ? 0 : -1;
}

double answer_value(const struct answer *answer, const char *part, const char *name) {
    for (uint64_t i = 0; i < answer->count; i++)
        if (!strcmp(answer->numbers[i].part, part) && !strcmp(answer->numbers[i].name, name)) return answer->numbers[i].value;
    return NAN;
}

void answer_release(struct answer *answer) {
    for (uint64_t i = 0; i < answer->count; i++) {
        mem_free((char *)answer->numbers[i].part, (char *)answer->numbers[i].text);
    }
    free(answer->numbers);
    *answer = (struct answer){.count = 0};
}

/* Prints the texts of those numbers first .. end - 1 that belong to this part of the answer. *begins: 1: nothing is printed on the line yet. */
static void print_part(const struct answer *answer, const char *part, const char *path, int *begins) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > 4 && !strcmp(name + length - 4, ".txt")) length -= 4;
    for (uint64_t i = 0; i < answer->count; i++) {
        const struct sptx_number *number = &answer->numbers[i];
        if (strcmp(number->part, part)) continue;
        for (const char *at = number->text; *at; at++) {
            if (*begins && *at == ' ') terminal_print(name, length);
            *begins = *at == '\n';
            if (*at != '#')
                putchar(*at);
            else if (isnan(number->value)) /* printf would print some as "-nan" */
                printf("nan");
            else if (number->count)
                printf("%.4f", number->value);
            else
                printf("%" PRIu64, (uint64_t)number->value);
        }
    }
}

void answer_print(const struct answer *answer, const char *path) {
    for (uint64_t i = 0; i < answer->count; i++) {
        const char *part = answer->numbers[i].part;
        int begins = 1;
        if (i && (!*part || !strcmp(part, answer->numbers[i - 1].part))) continue; /* a number without a part is printed at the end of every part's
                                                                                    * line */
        print_part(answer, part, path, &begins);
        if (*part) print_part(answer, "", path, &begins);
        putchar('\n');
    }
}

/* ---- questions ---- */

const struct measure evaluate_measures[] = {
    {"pairs", NULL, evaluate_pairs, NULL, 1, 0},
    {"analogies", NULL, evaluate_analogies, NULL, 1, 0},
    {"held_out", "train", evaluate_lists, "", 0, 1},
    {"groups", NULL, evaluate_groups, NULL, 1, 0},
    {"labels", NULL, evaluate_labels, "pairs", 1, 0},
    {"edges", "known", evaluate_links, "graph", 1, 0},
    {"triples", "known", evaluate_triples, "triples", 0, 0},
    {"labelled", "thresholds", evaluate_labelled, NULL, 0, 1},
    {0},
};

const struct measure *evaluate_named(const char *name) {
    char wanted[256];
    size_t n = 0;
    for (const struct measure *measure = evaluate_measures; measure->name; measure++) {
        if (name && !strcmp(measure->name, name)) return measure;
        n = text_add(wanted, sizeof wanted, n, "%s%s", !n ? "" : measure[1].name ? ", " : " or ", measure->name);
    }
    fail_usage("'%s' is not a measure; wanted %s", name ? name : "NULL", wanted);
    return NULL;
}

/* Chooses which table to judge, and which score of lists: the score that the user has named, else the one that compares rows of the table that the
 * user has named, else the run's default. */
static int choose_rows(struct evaluate_request *request, struct model *model, const struct measure *measure, unsigned threads) {
    const char *table = request->options.table, *score = request->options.score;
    int view = table || measure->tables ? answers_view_named(model, table, threads) : 0;
    int list_score = view < 0 ? -1 : table && !score ? (int)list_score_of_view((enum model_view)view)
                     : measure->judge == evaluate_lists ? answers_score_named(model, score, 1, threads) : 0;
    request->view = (enum model_view)view;
    request->score = (enum list_score)list_score;
    return view < 0 || list_score < 0 ? -1 : 0;
}

int evaluate(struct answer *answer, struct model *model, const struct measure *measure, struct evaluate_request *request,
             const struct config *config) {
    struct sptx_evaluate_options *options = &request->options;
    static const double half = 0.5;
    if (!options->share_count) options->shares = &half, options->share_count = 1;
    if (!options->k) return fail_usage("k = 0 places are none; wanted at least 1");
    if (options->k > UINT32_MAX || options->first > UINT32_MAX || options->met > UINT64_MAX / 4 || options->sample > UINT32_MAX)
        return fail_usage("k, first, met or sample is larger than any run");
    if (options->directed > 1) return fail_usage("directed = %" PRIu64 " is neither 0 nor 1", options->directed);
    if (!options->shares) return fail_usage("%" PRIu64 " shares at NULL", options->share_count);
    for (uint64_t i = 0; i < options->share_count; i++)
        if (!(options->shares[i] > 0 && options->shares[i] < 1))
            return fail_usage("a share of %g is not between 0 and 1", options->shares[i]);
    unsigned threads = config ? (unsigned)config->device_threads : 0;
    return choose_rows(request, model, measure, threads) ||
                   (measure->judge == evaluate_lists && list_scores_features(model, &request->features, request->score, threads)) ||
                           measure->judge(answer, model, request, config)
               ? -1 : 0;
}
