#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/evaluate.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PLACES = 1000000, MOST_SHARES = 16, MEASURES_MOST = 16 };

/* The test sets of a call. */
struct sets {
    struct files {
        const char *paths[OPTION_TIMES];
        int count;
    } of[MEASURES_MOST]; /* by index of evaluate_measures */
    const char *train, *known, *thresholds, *format;
    int directed;
    struct evaluate_request request;
    struct arguments arguments;
};

/* Returns 1 if there are test sets for this measure. */
static int is_given(const struct sets *sets, const char *measure) {
    return sets->of[evaluate_named(measure) - evaluate_measures].count > 0;
}

static int check_sets(const struct sets *sets, const char *share) {
    int any = 0, held_out = is_given(sets, "held_out"), edges = is_given(sets, "edges"), triples = is_given(sets, "triples");
    for (int i = 0; evaluate_measures[i].name; i++) any += sets->of[i].count;
    if (sets->arguments.count != 1)
        return fail_usage("evaluate wants one run directory, %d given; see 'sptx-w2v help evaluate'", sets->arguments.count);
    if (!sets->train != !held_out) return fail_usage("evaluate wants --train=LISTS and --held-out=LISTS together, or neither");
    if (sets->request.options.score && !held_out)
        return fail_usage("evaluate: --score is how held-out items are scored; wanted --train=LISTS and --held-out=LISTS, too");
    if ((sets->request.features.path || sets->request.features.lists || sets->request.features.words ||
         sets->request.features.share != FEATURES_AUTO) &&
        !held_out)
        return fail_usage("evaluate: --item-features, --list-features, --feature-words and --new-share are for held-out items; wanted --train=LISTS and "
                          "--held-out=LISTS, too");
    if (sets->format && !held_out)
        return fail_usage("evaluate: --format is how files of lists are read; wanted --train=LISTS and --held-out=LISTS, too");
    if ((sets->known || sets->directed) && !edges && (sets->directed || !triples))
        return fail_usage("evaluate: --known and --directed belong to --edges=FILE, which is wanted, too (--known also to --triples=FILE)");
    if (!sets->thresholds != !is_given(sets, "labelled"))
        return fail_usage("evaluate wants --labelled=FILE and --thresholds=FILE together, or neither: thresholds are not chosen by the triples that "
                          "are judged");
    if (sets->known && edges && triples)
        return fail_usage("evaluate: --known belongs to --edges or to --triples, and both are given");
    char all[400] = "";
    for (size_t i = 0, at = 0; evaluate_measures[i].name; i++)
        at = text_add(all, sizeof all, at, "%s--%s=FILE", i ? ", " : "", evaluate_measures[i].name);
    for (char *at = all; *at; at++) *at = *at == '_' ? '-' : *at;
    if (!any) return fail_usage("evaluate wants one of %s (--held-out with --train=LISTS)", all);
    if (share && !is_given(sets, "labels"))
        return fail_usage("evaluate: --share is of the nodes of --labels=FILE, which is wanted, too");
    return 0;
}

/* Reads --share: numbers between 0 and 1, separated by commas. */
static int read_shares(double shares[MOST_SHARES], uint64_t *count, const char *at) {
    while (at) {
        size_t length = strcspn(at, ",");
        char one[32] = "";
        double share = 0;
        if (length < sizeof one) memcpy(one, at, length);
        if (text_real(one, &share) || share <= 0 || share >= 1)
            return fail_usage("evaluate: --share = '%.*s' is not a number between 0 and 1", text_shown(length), at);
        if (*count == MOST_SHARES) return fail_usage("evaluate: --share takes at most %d numbers", MOST_SHARES);
        shares[(*count)++] = share;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

/* Judges by each file, even after one has failed. */
static int judge(struct sets *sets, struct model *model, const struct config *config) {
    int result = 0;
    for (int i = 0; evaluate_measures[i].name; i++)
        for (int j = 0; j < sets->of[i].count; j++) {
            const struct measure *measure = &evaluate_measures[i];
            struct evaluate_request request = sets->request;
            ENDED_BY(answer_release) struct answer answer = {.count = 0};
            request.path = sets->of[i].paths[j];
            request.known = !measure->known ? NULL
                            : !strcmp(measure->known, "train") ? sets->train
                            : !strcmp(measure->known, "thresholds") ? sets->thresholds : sets->known;
            if (evaluate(&answer, model, measure, &request, config))
                result = -1;
            else
                answer_print(&answer, request.path);
        }
    return result;
}

/* sptx-w2v evaluate RUN [--pairs=FILE ...] [--analogies=FILE ...] [--restrict=30000] [--train=LISTS --held-out=LISTS]
 * [--format=F] [--groups=FILE --met=5 --sample=2000] [--labels=FILE --share=0.5] [--edges=FILE --known=FILE
 * --directed] [--triples=FILE --known=FILES --sample=N] [--labelled=FILE --thresholds=FILE] [--k=20] [--table=TABLE]
 * [--score=SCORE] */
int cmd_evaluate(int argc, char **argv) {
    struct sets sets = {.request.options = SPTX_EVALUATE_OPTIONS};
    struct sptx_evaluate_options *options = &sets.request.options;
    const char *features = NULL, *list_features = NULL, *words = NULL, *new_share = NULL, *first = NULL, *k = NULL, *met = NULL,
               *sample = NULL, *share = NULL;
    double shares[MOST_SHARES];
    char names[MEASURES_MOST][16]; /* of the measures' options: held-out for held_out */
    struct option taken[MEASURES_MOST + 17] = {{.name = "restrict", .text = &first},
                                               {.name = "train", .text = &sets.train},
                                               {.name = "format", .text = &sets.format},
                                               {.name = "met", .text = &met},
                                               {.name = "sample", .text = &sample},
                                               {.name = "share", .text = &share, .several = "--share=0.1,0.5"},
                                               {.name = "known", .text = &sets.known, .several = "--known=FILE,FILE (with --triples)"},
                                               {.name = "thresholds", .text = &sets.thresholds},
                                               {.name = "directed", .flag = &sets.directed},
                                               {.name = "k", .text = &k},
                                               {.name = "table", .text = &options->table},
                                               {.name = "score", .text = &options->score},
                                               {.name = "item-features", .text = &features},
                                               {.name = "list-features", .text = &list_features},
                                               {.name = "feature-words", .text = &words},
                                               {.name = "new-share", .text = &new_share}};
    int count = 16, result = -1;
    for (int i = 0; evaluate_measures[i].name; i++) {
        snprintf(names[i], sizeof names[i], "%s", evaluate_measures[i].name);
        for (char *at; (at = strchr(names[i], '_'));) *at = '-';
        taken[count++] = (struct option){.name = names[i], .texts = sets.of[i].paths, .count = &sets.of[i].count};
    }
    ENDED_BY(model_close) struct model model = {.rows = 0};
    ENDED_BY(config_release) struct config config = {.name = NULL}, run = {.name = NULL};
    if (arguments_read(&sets.arguments, "evaluate", argc, argv, taken, "device, memory, corpus")) goto out;
    options->shares = shares;
    sets.request.features = (struct features_asked){features, words, list_features, FEATURES_AUTO, 0};
    if (arguments_share("evaluate", "new-share", new_share, &sets.request.features.share) || check_sets(&sets, share) ||
        read_shares(shares, &options->share_count, share))
        goto out;
    if (arguments_number("evaluate", "restrict", first, 0, UINT32_MAX, &options->first) ||
        arguments_number("evaluate", "met", met, 0, UINT64_MAX / 4, &options->met) ||
        arguments_number("evaluate", "sample", sample, 1, UINT32_MAX, &options->sample) ||
        arguments_number("evaluate", "k", k, 1, MOST_PLACES, &options->k))
        goto out;
    options->directed = (uint64_t)sets.directed;
    if ((options->table && model_view_named(options->table) < 0) || (options->score && list_score_named(options->score) < 0)) goto out;
    if (arguments_config_beside(&config, &sets.arguments) || model_open(&model, sets.arguments.given[0])) goto out;
    if ((is_given(&sets, "held_out") || is_given(&sets, "triples") || is_given(&sets, "labelled")) &&
        arguments_reading(&sets.request.reading, &sets.request.look, &run, &model, sets.format, &sets.arguments))
        goto out;
    result = judge(&sets, &model, &config);
out:
    arguments_release(&sets.arguments);
    return result;
}
