#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "vectors/triple_scores.h"

#include <stdio.h>

/* Prints head, relation, tail, score and, if a calibration was fitted, probability. */
static void print_triple(const struct model *model, const struct scored_triples *triples, const struct scored_triple *triple,
                         const struct calibration *calibration) {
    for (int i = 0; i < TRIPLE_TERMS; i++) {
        uint64_t length, skip = i == TRIPLE_RELATION && triple->is_known ? strlen(VOCAB_RELATION) : 0;
        const char *name = triple->is_known ? vocab_word(&model->vocab, triple->rows[i], &length)
                                            : words_get(&triples->others, triple->rows[i], &length);
        terminal_print(name + skip, length - skip);
        putchar('\t');
    }
    const double numbers[] = {(double)triple->score, calibration->line ? calibration_probability(calibration, triple) : 0};
    for (int i = 0; i < 1 + (calibration->line != NULL); i++)
        if (triple->is_known)
            printf("%s%.6f", i ? "\t" : "", numbers[i]);
        else
            printf("%snan", i ? "\t" : "");
    putchar('\n');
}

/* sptx-w2v score RUN --triples=FILE [--validation=FILE] */
int cmd_score(int argc, char **argv) {
    const char *path = NULL, *validation = NULL;
    const struct option options[] = {{.name = "triples", .text = &path}, {.name = "validation", .text = &validation}, {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL}, run = {.name = NULL};
    ENDED_BY(model_close) struct model model = {.rows = 0};
    ENDED_BY(scored_triples_release) struct scored_triples asked = {.count = 0}, valid = {.count = 0};
    ENDED_BY(calibration_release) struct calibration calibration = {.items = 0};
    struct corpus_options reading;
    int look;
    if (arguments_read(&arguments, "score", argc, argv, options, "device, corpus")) return -1;
    if (arguments.count != 1 || !path)
        return fail_usage("score wants one run directory and --triples=FILE; see 'sptx-w2v help score'");
    if (arguments_config_beside(&config, &arguments) || model_open(&model, arguments.given[0]) || run_triples_check(&model) ||
        arguments_reading(&reading, &look, &run, &model, NULL, &arguments))
        return -1;
    ENDED_BY(pool_end) struct pool *pool = pool_open((unsigned)config.device_threads);
    if (!pool || (validation && scored_triples_read(&valid, &model, validation, NULL, &reading.look, 1, pool)) ||
        (validation && calibration_fit(&calibration, &model, &valid, validation, pool)) ||
        scored_triples_read(&asked, &model, path, NULL, &reading.look, 0, pool))
        return -1;
    for (uint64_t i = 0; i < asked.count; i++) {
        print_triple(&model, &asked, &asked.triple[i], &calibration);
        if (ferror(stdout)) return terminal_flush();
    }
    return 0;
}
