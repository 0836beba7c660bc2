#include "commands.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/generate.h"
#include "corpus/words.h"
#include "run/run_directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Default sizes of each kind of corpus, which can be trained in about a minute. */
static const struct {
    uint64_t rows, lists;
} usual[] = {
    [GENERATE_BOOKS] = {50000, 100000},
    [GENERATE_PAPERS] = {100000, 100000},
    [GENERATE_WORDS] = {20000, 200000},
    [GENERATE_GRAPH] = {100000, 1000000},
    [GENERATE_TRIPLES] = {10000, 500000},
};
enum { USUAL_RELATIONS = 100, USUAL_GROUPS = 256, USUAL_HELD_OUT = 10000 };

static int print_file(const char *path, const char *ending, const char *what) {
    char size[TEXT_BYTES], name[4096];
    snprintf(name, sizeof name, "%s%s", path, ending);
    int64_t bytes = file_size(name);
    if (bytes < 0) return -1;
    terminal_print_name(name);
    printf("\t%s\t%s\n", text_of_bytes(size, (uint64_t)bytes), what);
    return 0;
}

static int print_files(const struct generate_options *options, const char *path) {
    static const char *const corpora[] = {"corpus (corpus.format = lists)", "corpus (corpus.format = adjacency)",
                                          "corpus (corpus.format = text)", "corpus (corpus.format = graph)",
                                          "corpus (corpus.format = triples)"};
    static const char *const groups[] = {"book, series, genre", "paper, field", "word, topic", NULL, "entity, group, type"};
    size_t length = strlen(path);
    int ids = length > 4 && !strcmp(path + length - 4, ".ids");
    if (print_file(path, "", corpora[options->kind])) return -1;
    if (ids && print_file(path, ".vocab.tsv", "its vocabulary")) return -1;
    if (options->held_out &&
        (print_file(path, ".valid", "held-out triples for validation") || print_file(path, ".test", "held-out triples of a test")))
        return -1;
    return groups[options->kind] ? print_file(path, ".groups.tsv", groups[options->kind]) : 0;
}

/* Fails if a file of the corpus would overwrite a file of a run. */
static int refuse_files_of_runs(const char *path) {
    static const char *const endings[] = {"", ".vocab.tsv", ".groups.tsv", ".valid", ".test"};
    char name[4096];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        if (run_owns_refuse(name, "--out")) return -1;
    }
    return 0;
}

static int read_wanted(int argc, char **argv, struct generate_options *wanted, const char **out) {
    const char *rows = NULL, *lists = NULL, *edges = NULL, *seed_text = NULL, *relations_text = NULL, *groups = NULL, *noise = NULL,
               *held_out = NULL;
    const struct option options[] = {{.name = "out", .text = out},
                                     {.name = "rows", .text = &rows},
                                     {.name = "lists", .text = &lists},
                                     {.name = "edges", .text = &edges},
                                     {.name = "relations", .text = &relations_text},
                                     {.name = "groups", .text = &groups},
                                     {.name = "noise", .text = &noise},
                                     {.name = "held-out", .text = &held_out},
                                     {.name = "seed", .text = &seed_text},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    uint64_t seed = 1, relations = USUAL_RELATIONS;
    int kind = -1, result = arguments_read(&arguments, argv[0], argc, argv, options, NULL);
    if (!result && arguments.count != 1) result = fail_usage("generate wants one kind of corpus: books, papers, words, graph or triples");
    if (!result) kind = generate_kind_named(arguments.given[0]);
    if (kind < 0) return -1;
    if (!*out) return fail_usage("generate wants --out=FILE");
    int graph = kind == GENERATE_GRAPH, triples = kind == GENERATE_TRIPLES, has_edges = graph || triples;
    if (has_edges ? lists != NULL : edges != NULL)
        return fail_usage("graphs and triples have edges, and other corpora have lists: wanted --%s=N", has_edges ? "edges" : "lists");
    if ((relations_text || groups || noise || held_out) && !triples)
        return fail_usage("generate: --relations, --groups, --noise and --held-out are those of triples; other kinds have none");
    *wanted = (struct generate_options){.kind = (enum generate_kind)kind, .rows = usual[kind].rows, .lists = usual[kind].lists};
    if (arguments_number("generate", "rows", rows, graph ? 2 : triples ? TYPE_GROUPS : 1, WORDS_MOST, &wanted->rows) ||
        arguments_number("generate", has_edges ? "edges" : "lists", has_edges ? edges : lists, 1, ((uint64_t)1 << 48) - 1,
                         &wanted->lists) ||
        arguments_number("generate", "relations", relations_text, 1, UINT32_MAX - 1, &relations) ||
        arguments_number("generate", "seed", seed_text, 0, UINT32_MAX, &seed))
        return -1;
    wanted->seed = (uint32_t)seed;
    if (!triples) return 0;
    uint64_t most = wanted->rows / TYPE_GROUPS < relations ? wanted->rows / TYPE_GROUPS * TYPE_GROUPS : relations * TYPE_GROUPS;
    wanted->relations = (uint32_t)relations;
    wanted->groups = most < USUAL_GROUPS ? most : USUAL_GROUPS;
    wanted->held_out = wanted->lists / 20 < USUAL_HELD_OUT ? wanted->lists / 20 : USUAL_HELD_OUT;
    wanted->noise = 0.1;
    if (arguments_number("generate", "groups", groups, TYPE_GROUPS, most, &wanted->groups) ||
        arguments_number("generate", "held-out", held_out, 0, 1 << 30, &wanted->held_out) ||
        arguments_share("generate", "noise", noise, &wanted->noise))
        return -1;
    return wanted->groups % TYPE_GROUPS ? fail_usage("generate: --groups=%" PRIu64 ": wanted a multiple of %d", wanted->groups, TYPE_GROUPS) : 0;
}

/* sptx-w2v generate books|papers|words|graph|triples --out=FILE [--rows=N --lists=N --edges=N --relations=N --groups=N --noise=S
 * --held-out=N --seed=S] */
int cmd_generate(int argc, char **argv) {
    struct generate_options wanted;
    struct interrupt watch;
    const char *out = NULL;
    if (read_wanted(argc, argv, &wanted, &out) || refuse_files_of_runs(out)) return -1;
    interrupt_watch(&watch);
    struct planted_best best;
    int result = generate_write(&wanted, out, &best);
    interrupt_end(&watch);
    if (result || print_files(&wanted, out)) return -1;
    /* the MRR that can be reached for the test's triples */
    static const char *const names[] = {"best", "inferred", "popularity"}, *const what[] = {"groups and relations are known",
        "an entity's group is known only as far as its triples of training tell it", "the most popular entities first"};
    const double *const mrr[] = {best.best, best.inferred, best.popular};
    char line[256];
    for (int i = 0; i < 4 && best.triples; i++) {
        if (i < 3)
            snprintf(line, sizeof line, "%s\tmrr %.4f tails %.4f heads %.4f\t%s\n", names[i], (mrr[i][0] + mrr[i][1]) / 2, mrr[i][0], mrr[i][1],
                     what[i]);
        else
            snprintf(line, sizeof line, "random\tmrr %.2g\tof %" PRIu64 " test triples, among %" PRIu64 " entities\n", best.random,
                     best.triples, best.among);
        terminal_print(line, strlen(line));
    }
    return 0;
}
