/* distance, word-analogy and compute-accuracy: word2vec's programs that answer questions from a file of vectors. */
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "prompt.h"
#include "vectors/evaluate.h"
#include "vectors/list_scores.h"

#include <inttypes.h>
#include <stdio.h>

enum { ANSWERS = 40, SEMANTIC_SECTIONS = 5 };

/* Reads the arguments of a command: at least a file, and at most `most` arguments. */
static int read_file_argument(struct arguments *arguments, struct config *config, int argc, char **argv, int most) {
    const struct option options[] = {{0}};
    if (arguments_read(arguments, argv[0], argc, argv, options, "device, memory")) return -1;
    if (arguments->count < 1 || arguments->count > most)
        return fail_usage("%s wants a file of vectors, %d arguments given; see 'sptx-w2v help %s'", argv[0], arguments->count,
                          argv[0]);
    return arguments_config(config, 0, NULL, arguments);
}

static int ask_words(int argc, char **argv, int analogy) {
    struct arguments arguments;
    struct config config = {.name = NULL};
    int result = read_file_argument(&arguments, &config, argc, argv, 1);
    struct prompt_request request = {
        .path = arguments.given ? arguments.given[0] : NULL, .analogy = analogy, .k = ANSWERS, .config = &config};
    if (!result) result = prompt_run(&request);
    config_release(&config);
    arguments_release(&arguments);
    return result;
}

/* sptx-w2v distance FILE */
int cmd_distance(int argc, char **argv) {
    return ask_words(argc, argv, 0);
}

/* sptx-w2v word-analogy FILE */
int cmd_word_analogy(int argc, char **argv) {
    return ask_words(argc, argv, 1);
}

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_sections(const struct analogies_section *sections, uint64_t count) {
    uint64_t asked[2] = {0, 0}, right[2] = {0, 0}, total = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct analogies_section *section = &sections[i];
        int syntactic = i > SEMANTIC_SECTIONS;
        total += section->total;
        asked[syntactic] += section->covered;
        right[syntactic] += section->right;
        if (!i) continue; /* questions before the first section's name: compute-accuracy.c prints no line for them either */
        terminal_print_name(section->name);
        printf(":\nACCURACY TOP1: %.2f %%  (%" PRIu64 " / %" PRIu64 ")\n", percent(section->right, section->covered),
               section->right, section->covered ? section->covered : 1);
        printf("Total accuracy: %.2f %%   Semantic accuracy: %.2f %%   Syntactic accuracy: %.2f %% \n",
               percent(right[0] + right[1], asked[0] + asked[1]), percent(right[0], asked[0]), percent(right[1], asked[1]));
    }
    printf("Questions seen / total: %" PRIu64 " %" PRIu64 "   %.2f %% \n", asked[0] + asked[1], total,
           percent(asked[0] + asked[1], total));
}

static int judge_analogies(struct model *model, uint64_t most, const struct config *config) {
    struct analogies_section *sections = NULL;
    uint64_t count = 0;
    int view = answers_view_named(model, NULL, (unsigned)config->device_threads);
    int result =
        view < 0 ? -1 : evaluate_analogies_sections(&sections, &count, model, (enum model_view)view, "/dev/stdin", most, config);
    if (!result) print_sections(sections, count);
    analogies_sections_free(sections, count);
    return result;
}

/* sptx-w2v compute-accuracy FILE [THRESHOLD] < QUESTIONS */
int cmd_compute_accuracy(int argc, char **argv) {
    struct arguments arguments;
    struct config config = {.name = NULL};
    struct model model = {.rows = 0};
    uint64_t most = 0;
    int result = read_file_argument(&arguments, &config, argc, argv, 2);
    if (!result && arguments.count == 2)
        result = text_count(arguments.given[1], &most)
                     ? fail_usage("compute-accuracy: THRESHOLD = '%.100s' is not a whole number", arguments.given[1]) : 0;
    if (!result) result = model_open(&model, arguments.given[0]) || judge_analogies(&model, most, &config) ? -1 : 0;
    model_close(&model);
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
