/* judge: analogies, evaluation, scores of triples, export and the report of a run. Each call uses the functions of src/vectors that a command of the
 * program uses. */
#include "handles.h"

#include "base/file.h"
#include "base/memory.h"
#include "vectors/evaluate.h"
#include "vectors/export.h"
#include "vectors/known.h"
#include "vectors/numeric.h"
#include "vectors/page.h"
#include "vectors/triple_scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LISTED = 1000000 }; /* most rows whose nearest rows a page lists, as in `sptx-w2v report`; the limit on a page's bytes is reached far
                                 * earlier */

/* ---- analogies ---- */

enum sptx_status sptx_run_analogy(struct sptx_run *run, const char *table, const uint64_t asked[3], uint32_t k,
                                  uint32_t *rows, float *scores) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!k) return leave(run->context, 0);
    if (!asked || !rows || !scores) return leave(run->context, fail_usage("three rows, rows and scores are wanted; one is NULL"));
    if (check_aligned(asked, sizeof *asked, "the three rows") || check_answers(rows, scores)) return leave(run->context, -1);
    uint32_t words[3], banned[3];
    uint64_t starts[2] = {0, 0};
    float query[SPTX_COLUMNS_MOST];
    for (int i = 0; i < 3; i++) {
        if (asked[i] >= run->model.rows)
            return leave(run->context, fail_usage("%" PRIu64 " is no row of a run of %" PRIu64, asked[i], run->model.rows));
        words[i] = (uint32_t)asked[i];
    }
    int64_t excluded = open_search(run, table, METRIC_COSINE, 0) ? -1 : search_analogy(&run->search, words, NULL, query, banned);
    starts[1] = (uint64_t)excluded;
    int result = excluded < 0 ? -1 : search_top(&run->search, query, 1, k, starts, banned, rows, scores);
    return leave(run->context, result);
}

/* ---- measures ---- */

/* Sets *path or *data to the file or the corpus that the caller gave. For a corpus, *path is `name`, for messages. format: as in struct measure.
 * Returns 0, or -1 after fail_usage(): exactly one of the two must be given. */
static int take_data(const char **path, const struct gathered **data, const struct sptx_data *given, const char *format,
                     const char *name) {
    if (!given || !given->path == !given->corpus) return fail_usage("%s is wanted as a file or as a corpus, and not as both", name);
    if (given->corpus && !format) return fail_usage("%s is wanted as a file; a corpus is given", name);
    if (given->path && !*given->path) return fail_usage("%s is wanted as a file; its path is empty", name);
    *path = given->corpus ? name : given->path;
    *data = given->corpus ? corpus_data(given->corpus, *format ? format : NULL) : NULL;
    return given->corpus && !*data ? -1 : 0;
}

/* Converts the caller's options to a request. keys: set to a copy of the run's keys that owns strings of the request; the caller releases it even
 * if this fails. */
static int take_request(struct evaluate_request *request, struct config *keys, const struct sptx_run *run, const struct measure *measure,
                        const struct sptx_data *data) {
    const struct sptx_evaluate_options *options = &request->options;
    const struct sptx_data *known = options->known;
    if (take_data(&request->path, &request->data, data, measure->format, measure->name) ||
        (known && !measure->known && fail_usage("%s needs no data that training had, and `known` has some", measure->name)) ||
        ((known || measure->wants_known) &&
         take_data(&request->known, &request->known_data, known, measure->format, measure->known)) ||
        (measure->tables ? config_init(keys) : model_copy_keys(keys, &run->model)) ||
        (options->format && config_set(keys, "corpus", "format", options->format, "the caller")))
        return -1;
    request->reading = config_corpus(keys);
    request->reading.look.hints = 1;
    request->look = !options->format;
    return 0;
}

enum sptx_status sptx_run_evaluate(struct sptx_run *run, const char *name, const struct sptx_data *data,
                                   const struct sptx_evaluate_options *given, const struct sptx_number **numbers, uint64_t *count) {
    struct evaluate_request request = {.options = SPTX_EVALUATE_OPTIONS, .features = {.share = FEATURES_AUTO}};
    ENDED_BY(config_release) struct config config = {.name = NULL}, keys = {.name = NULL};
    struct answer answer = {.count = 0};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    const struct measure *measure = evaluate_named(name);
    int result = !measure || take_options(&request.options, sizeof request.options, given) ? -1 : 0;
    if (!result && (!numbers || !count)) result = fail_usage("numbers and a place for their count are wanted; one is NULL");
    if (!result)
        result = take_request(&request, &keys, run, measure, data) || device_config(run->context, &config) ||
                         evaluate(&answer, &run->model, measure, &request, &config)
                     ? -1 : 0;
    answer_release(result ? &answer : &run->answer);
    if (!result) {
        run->answer = answer;
        *numbers = answer.numbers;
        *count = answer.count;
    }
    return leave(run->context, result);
}

/* ---- triples ---- */

enum sptx_status sptx_run_score(struct sptx_run *run, const struct sptx_data *triples, const struct sptx_score_options *given,
                                const struct sptx_scored **scored, uint64_t *count) {
    struct sptx_score_options options = SPTX_SCORE_OPTIONS;
    ENDED_BY(config_release) struct config keys = {.name = NULL};
    ENDED_BY(scored_triples_release) struct scored_triples asked = {.count = 0}, valid = {.count = 0};
    ENDED_BY(calibration_release) struct calibration calibration = {.items = 0};
    const char *path, *by = NULL;
    const struct gathered *data, *by_data = NULL;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    const struct model *model = &run->model;
    struct pool *pool = run->context->pool;
    if (take_options(&options, sizeof options, given)) return leave(run->context, -1);
    if (!scored || !count) return leave(run->context, fail_usage("scores and a place for their count are wanted; one is NULL"));
    if (run_triples_check(model) || take_data(&path, &data, triples, "triples", "triples") ||
        (options.validation && take_data(&by, &by_data, options.validation, "triples", "validation")) || model_copy_keys(&keys, model))
        return leave(run->context, -1);
    struct look_keys look = config_corpus(&keys).look;
    look.hints = 1;
    int result = (by && (scored_triples_read(&valid, model, by, by_data, &look, 1, pool) ||
                         calibration_fit(&calibration, model, &valid, by, pool))) ||
                         scored_triples_read(&asked, model, path, data, &look, 0, pool) ? -1 : 0;
    struct sptx_scored *out = result ? NULL : mem_alloc(asked.count, sizeof *out, "scores");
    if (!out) return leave(run->context, -1);
    for (uint64_t i = 0; i < asked.count; i++)
        out[i] = (struct sptx_scored){(double)asked.triple[i].score, by ? calibration_probability(&calibration, &asked.triple[i]) : NAN};
    free(run->scored);
    run->scored = out;
    *scored = out;
    *count = asked.count;
    return leave(run->context, 0);
}

/* ---- files ---- */

enum sptx_status sptx_run_export(struct sptx_run *run, const char *format_name, const char *path,
                                 const struct sptx_export_options *given) {
    struct sptx_export_options options = SPTX_EXPORT_OPTIONS;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (take_options(&options, sizeof options, given)) return leave(run->context, -1);
    if (!format_name || !path || !*path) return leave(run->context, fail_usage("a format and a file are wanted; one is NULL"));
    if (options.lists > 1) return leave(run->context, fail_usage("lists = %" PRIu64 " is neither 0 nor 1", options.lists));
    unsigned threads = pool_threads(run->context->pool);
    struct quantizer_loss loss = {.most = UINT64_MAX};
    int format = export_format_named(format_name), type = format < 0 ? -1 : export_type_for((enum export_format)format, options.type),
        view = type < 0 ? -1 : answers_view_named(&run->model, options.table, threads);
    struct export export = {.model = &run->model, .view = (enum model_view)view, .type = (enum export_type)type,
                            .columns = options.columns, .threads = threads, .loss = options.recall ? &loss : NULL};
    int result = view < 0 || !(export.rows = answers_rows(&run->model, (int)options.lists)) ||
                         export_write(&export, (enum export_format)format, path) ? -1 : 0;
    if (!result && options.recall) options.recall[0] = loss.recall, options.recall[1] = loss.rescored;
    return leave(run->context, result);
}

enum sptx_status sptx_run_report(struct sptx_run *run, const char *path, const struct sptx_report_options *given) {
    struct sptx_report_options options = SPTX_REPORT_OPTIONS;
    ENDED_BY(titles_release) struct titles titles = {NULL, NULL};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    struct page_size size;
    int view = -1;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!path || !*path) return leave(run->context, fail_usage("a page is written to a file; none was given"));
    int result = take_options(&options, sizeof options, given);
    if (!result && options.lists > 1) result = fail_usage("lists = %" PRIu64 " is neither 0 nor 1", options.lists);
    if (!result && (!options.top || options.top > MAP_ROWS))
        result = fail_usage("a map of %" PRIu64 " rows cannot be drawn; wanted 1 to %d", options.top, MAP_ROWS);
    if (!result && (!options.listed || options.listed > MOST_LISTED))
        result = fail_usage("%" PRIu64 " rows cannot be searched in a page; wanted 1 to %d", options.listed, MOST_LISTED);
    if (!result && options.evaluation_count && !options.evaluations)
        result = fail_usage("%" PRIu64 " evaluations at NULL", options.evaluation_count);
    if (!result && ((options.labels && options.colour) || ((options.features || options.words) && !options.colour)))
        result = fail_usage("the map is coloured by labels, or by a column (colour) of a file of features");
    if (!result) view = answers_view_named(&run->model, options.table, pool_threads(run->context->pool));
    struct page_request request = {.run = options.run ? options.run : run->model.directory,
                                   .view = (enum model_view)view,
                                   .rows = view < 0 ? 0 : answers_rows(&run->model, (int)options.lists),
                                   .top = options.top,
                                   .listed = options.listed,
                                   .titles = &titles,
                                   .labels = options.labels,
                                   .colour = options.colour,
                                   .features = options.features,
                                   .words = options.words,
                                   .evaluations = options.evaluations,
                                   .evaluation_count = (int)options.evaluation_count};
    result = !request.rows || (options.titles && titles_read(&titles, &run->model, options.titles)) ||
                     device_config(run->context, &config) || page_write(&run->model, &request, &config, path, &size)
                 ? -1 : 0;
    return leave(run->context, result);
}
