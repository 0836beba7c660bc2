/* judge: analogies, evaluation, export and the report of a run. Each call does what a command of the program does, with the same
 * functions of src/vectors. */
#include "handles.h"

#include "base/file.h"
#include "vectors/evaluate.h"
#include "vectors/export.h"
#include "vectors/known.h"
#include "vectors/map.h"
#include "vectors/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LISTED = 1000000 }; /* largest `listed`, as in `sptx-w2v report`; the limit on a page's size is reached far earlier */

/* Returns the table with the name `table`; -1 after fail_usage(), also if `path` or `result` is missing. */
static int judged_table(struct sptx_run *run, const char *table, const char *path, const void *result) {
    if (!path || !*path || !result) return fail_usage("a file and a place for the result are wanted; one is NULL");
    return answers_view_named(&run->model, table, pool_threads(run->context->pool));
}

/* ---- analogies ---- */

static int ask_analogy(struct sptx_run *run, const uint64_t asked[3], uint32_t k, uint32_t *rows, float *scores) {
    uint32_t words[3], banned[3];
    uint64_t starts[2] = {0, 0};
    float query[SPTX_COLUMNS_MOST];
    for (int i = 0; i < 3; i++) {
        if (asked[i] >= run->model.rows) return fail_usage("%" PRIu64 " is no row of a run of %" PRIu64, asked[i], run->model.rows);
        words[i] = (uint32_t)asked[i];
    }
    int64_t excluded = search_analogy(&run->search, words, NULL, query, banned);
    if (excluded < 0) return -1;
    starts[1] = (uint64_t)excluded;
    return search_top(&run->search, query, 1, k, starts, banned, rows, scores);
}

enum sptx_status sptx_run_analogy(struct sptx_run *run, const char *table, const uint64_t asked[3], uint32_t k,
                                  uint32_t *rows, float *scores) {
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!k) return leave(run->context, 0);
    if (!asked || !rows || !scores) return leave(run->context, fail_usage("three rows, rows and scores are wanted; one is NULL"));
    if (check_aligned(asked, sizeof *asked, "the three rows") || check_answers(rows, scores)) return leave(run->context, -1);
    int result = open_search(run, table, METRIC_COSINE, 0) || ask_analogy(run, asked, k, rows, scores) ? -1 : 0;
    return leave(run->context, result);
}

/* ---- measures ---- */

enum sptx_status sptx_run_evaluate_pairs(struct sptx_run *run, const char *table, const char *path,
                                         struct sptx_pairs_score *score) {
    struct sptx_pairs_score found;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = judged_table(run, table, path, score);
    int result = view < 0 ? -1 : evaluate_pairs(&found, &run->model, (enum model_view)view, path);
    if (!result) *score = found;
    return leave(run->context, result);
}

enum sptx_status sptx_run_evaluate_analogies(struct sptx_run *run, const char *table, const char *path, uint64_t first,
                                             struct sptx_analogies_score *score) {
    struct sptx_analogies_score found;
    struct config config = {.name = NULL};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = judged_table(run, table, path, score);
    int result = view < 0 || device_config(run->context, &config)
                     ? -1 : evaluate_analogies(&found, &run->model, (enum model_view)view, path, first, &config);
    if (!result) *score = found;
    config_release(&config);
    return leave(run->context, result);
}

/* Chooses the score of lists: the one named, else the one that compares rows of `table`, else the run's default. */
static int score_of_lists(struct sptx_run *run, const char *table, const char *score) {
    unsigned threads = pool_threads(run->context->pool);
    if (score || !table) return answers_score_named(&run->model, score, 1, threads);
    int view = answers_view_named(&run->model, table, threads);
    return view < 0 ? -1 : (int)list_score_of_view((enum model_view)view);
}

/* Reads the run's config.ini, which says how its corpus was read. The caller releases it in any case. */
static int read_as_trained(struct config *config, const struct sptx_run *run, const char *format) {
    char *path = file_join(run->model.directory, "config.ini");
    *config = (struct config){.name = NULL};
    int result = !path || config_init(config) || config_read(config, path) ||
                         (format && config_set(config, "corpus", "format", format, "the caller")) ? -1 : 0;
    free(path);
    return result;
}

static int evaluate_held_out(struct sptx_lists_score *found, const struct sptx_run *run, struct lists_request *request,
                             const char *format) {
    struct config config = {.name = NULL}, trained;
    int result = read_as_trained(&trained, run, format) || device_config(run->context, &config) ? -1 : 0;
    if (!result) {
        request->reading = config_corpus(&trained);
        request->reading.look.hints = 1;
        request->look = !format;
        result = evaluate_lists(found, &run->model, request, &config);
    }
    config_release(&trained);
    config_release(&config);
    return result;
}

/* Sets *path and *data from a file or a corpus given by the caller. For a corpus, *path is `name`, for error messages. Returns 0,
 * or -1 after fail_usage(), also if both or neither are given. */
static int take_data(const char **path, const struct gathered **data, const struct sptx_data *given, const char *format,
                     const char *name) {
    if (!given || !given->path == !given->corpus) return fail_usage("%s is wanted as a file or as a corpus, and not as both", name);
    *path = given->corpus ? name : given->path;
    *data = given->corpus ? corpus_data(given->corpus, format) : NULL;
    return given->corpus && !*data ? -1 : 0;
}

enum sptx_status sptx_run_evaluate_lists_of(struct sptx_run *run, const char *table, const struct sptx_data *train,
                                            const struct sptx_data *held_out, const char *format, const char *score, uint32_t k,
                                            struct sptx_lists_score *out) {
    struct sptx_lists_score found;
    struct lists_request request = {.k = k};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int named = score_of_lists(run, table, score);
    int result = named < 0 || take_data(&request.train, &request.train_data, train, NULL, "train") ||
                         take_data(&request.held_out, &request.held_out_data, held_out, NULL, "held_out") ||
                         judged_table(run, NULL, request.train, out) < 0 || judged_table(run, NULL, request.held_out, out) < 0
                     ? -1 : 0;
    if (!result && !k) result = fail_usage("k = 0 places are none; wanted at least 1");
    request.score = result ? 0 : (enum list_score)named;
    if (!result) result = evaluate_held_out(&found, run, &request, format);
    if (!result) *out = found;
    return leave(run->context, result);
}

enum sptx_status sptx_run_evaluate_lists(struct sptx_run *run, const char *table, const char *train, const char *held_out,
                                         const char *format, const char *score, uint32_t k, struct sptx_lists_score *out) {
    const struct sptx_data files[] = {{train, NULL}, {held_out, NULL}};
    return sptx_run_evaluate_lists_of(run, table, &files[0], &files[1], format, score, k, out);
}

enum sptx_status sptx_run_evaluate_groups(struct sptx_run *run, const char *table, const char *path, uint64_t met, uint64_t sample,
                                          uint32_t k, struct sptx_groups_score *scores, uint32_t *columns) {
    struct sptx_groups_score found[SPTX_GROUPS_MOST];
    struct groups_request request = {.met = met, .sample = sample, .k = k};
    struct config config = {.name = NULL};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = judged_table(run, table, path, columns && scores ? scores : NULL), count = -1;
    if (view >= 0 && (!k || !sample))
        fail_usage("k = %u and sample = %" PRIu64 " are wanted to be at least 1", k, sample);
    else if (view >= 0 && !device_config(run->context, &config))
        count = evaluate_groups(found, &run->model, (enum model_view)view, path, &request, &config);
    if (count >= 0) memcpy(scores, found, (size_t)count * sizeof *found), *columns = (uint32_t)count;
    config_release(&config);
    return leave(run->context, count < 0 ? -1 : 0);
}

static int check_shares(const double *shares, uint32_t count) {
    if (!shares || !count || count > SPTX_SHARES_MOST)
        return fail_usage("%u shares are asked for, wanted 1 to %d, and where they are", count, SPTX_SHARES_MOST);
    for (uint32_t i = 0; i < count; i++)
        if (!(shares[i] > 0 && shares[i] < 1)) return fail_usage("a share of %g is not between 0 and 1", shares[i]);
    return 0;
}

enum sptx_status sptx_run_evaluate_labels_of(struct sptx_run *run, const char *table, const struct sptx_data *labels,
                                             const double *shares, uint32_t count, struct sptx_labels_score *scores) {
    struct sptx_labels_score found[SPTX_SHARES_MOST];
    struct config config = {.name = NULL};
    const struct gathered *data = NULL;
    const char *path = NULL;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = take_data(&path, &data, labels, "pairs", "labels") ? -1 : judged_table(run, table, path, scores);
    int result = view < 0 || check_shares(shares, count) || device_config(run->context, &config) ? -1 : 0;
    if (!result)
        result = data ? evaluate_labels_of(found, &run->model, (enum model_view)view, data, path, shares, (int)count, &config)
                      : evaluate_labels(found, &run->model, (enum model_view)view, path, shares, (int)count, &config);
    if (!result) memcpy(scores, found, count * sizeof *found);
    config_release(&config);
    return leave(run->context, result);
}

enum sptx_status sptx_run_evaluate_labels(struct sptx_run *run, const char *table, const char *path, const double *shares,
                                          uint32_t count, struct sptx_labels_score *scores) {
    const struct sptx_data file = {path, NULL};
    return sptx_run_evaluate_labels_of(run, table, &file, shares, count, scores);
}

_Static_assert((int)SPTX_LINK_SCORES == (int)LINK_SCORES, "the header tells of all scores");

static int take_links(struct links_request *request, const struct sptx_data *held_out, const struct sptx_data *known) {
    if (take_data(&request->held_out, &request->held_out_data, held_out, "graph", "edges")) return -1;
    if (known && take_data(&request->known, &request->known_data, known, "graph", "known")) return -1;
    return request->directed > 1 ? fail_usage("directed = %d is neither 0 nor 1", request->directed) : 0;
}

enum sptx_status sptx_run_evaluate_links_of(struct sptx_run *run, const char *table, const struct sptx_data *held_out,
                                            const struct sptx_data *known, uint32_t directed, struct sptx_links_score *scores,
                                            struct sptx_links_counts *counts) {
    struct sptx_links_score found[LINK_SCORES];
    struct sptx_links_counts counted;
    struct links_request request = {.directed = directed > 1 ? 2 : (int)directed};
    struct config config = {.name = NULL};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    int view = take_links(&request, held_out, known)
                   ? -1
                   : judged_table(run, table, request.held_out, counts ? (const void *)scores : NULL);
    int result = view < 0 || device_config(run->context, &config)
                     ? -1 : evaluate_links(found, &counted, &run->model, (enum model_view)view, &request, &config);
    if (!result) memcpy(scores, found, sizeof found), *counts = counted;
    config_release(&config);
    return leave(run->context, result);
}

enum sptx_status sptx_run_evaluate_links(struct sptx_run *run, const char *table, const char *held_out, const char *known,
                                         uint32_t directed, struct sptx_links_score *scores, struct sptx_links_counts *counts) {
    const struct sptx_data files[] = {{held_out, NULL}, {known, NULL}};
    return sptx_run_evaluate_links_of(run, table, &files[0], known ? &files[1] : NULL, directed, scores, counts);
}

enum sptx_status sptx_run_evaluate_triples(struct sptx_run *run, const struct sptx_data *held_out, const struct sptx_data *known,
                                           uint64_t sample, struct sptx_triples_score *score) {
    struct sptx_triples_score found;
    struct triples_request request = {.sample = sample};
    struct config config = {.name = NULL}, trained = {.name = NULL};
    if (!run) return SPTX_USAGE;
    enter(run->context);
    request.threads = pool_threads(run->context->pool);
    int result = take_data(&request.held_out, &request.held_out_data, held_out, "triples", "triples") ||
                         (known && take_data(&request.known, &request.known_data, known, "triples", "known"))
                     ? -1 : 0;
    if (!result && !score) result = fail_usage("a score is written to a struct; it is NULL");
    if (!result) result = run_triples_check(&run->model) || read_as_trained(&trained, run, NULL) ? -1 : 0;
    if (!result) {
        request.look = config_corpus(&trained).look;
        request.look.hints = 1;
        result = device_config(run->context, &config) || evaluate_triples(&found, &run->model, &request, &config) ? -1 : 0;
    }
    if (!result) *score = found;
    config_release(&trained);
    config_release(&config);
    return leave(run->context, result);
}

/* ---- files ---- */

enum sptx_status sptx_run_export_with(struct sptx_run *run, const char *format_name, const char *path,
                                      const struct sptx_export_options *given) {
    struct sptx_export_options options = SPTX_EXPORT_OPTIONS;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (given && take_options(&options, sizeof options, given)) return leave(run->context, -1);
    if (!format_name || !path || !*path) return leave(run->context, fail_usage("a format and a file are wanted; one is NULL"));
    if (options.lists > 1) return leave(run->context, fail_usage("lists = %llu is neither 0 nor 1", (unsigned long long)options.lists));
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

enum sptx_status sptx_run_export_as(struct sptx_run *run, const char *table, uint32_t lists, const char *format, const char *type,
                                    const char *path) {
    return sptx_run_export_with(run, format, path, &(struct sptx_export_options){sizeof(struct sptx_export_options), table, type, lists, 0, 0, 0});
}

enum sptx_status sptx_run_export(struct sptx_run *run, const char *table, uint32_t lists, const char *format, const char *path) {
    return sptx_run_export_as(run, table, lists, format, NULL, path);
}

static int check_report(const struct sptx_report_options *options) {
    if (options->lists > 1) return fail_usage("lists = %" PRIu64 " is neither 0 nor 1", options->lists);
    if (!options->top || options->top > MAP_ROWS)
        return fail_usage("a map of %" PRIu64 " rows cannot be drawn; wanted 1 to %d", options->top, MAP_ROWS);
    if (!options->listed || options->listed > MOST_LISTED)
        return fail_usage("%" PRIu64 " rows cannot be searched in a page; wanted 1 to %d", options->listed, MOST_LISTED);
    if (options->evaluation_count && !options->evaluations)
        return fail_usage("%" PRIu64 " evaluations at NULL", options->evaluation_count);
    return 0;
}

static int write_report(struct sptx_run *run, const char *path, const struct sptx_report_options *options) {
    struct titles titles = {NULL, NULL};
    struct config config = {.name = NULL};
    struct page_size size;
    int view = answers_view_named(&run->model, options->table, pool_threads(run->context->pool));
    struct page_request request = {.run = options->run ? options->run : run->model.directory,
                                   .view = (enum model_view)view,
                                   .rows = answers_rows(&run->model, (int)options->lists),
                                   .top = options->top,
                                   .listed = options->listed,
                                   .titles = &titles,
                                   .labels = options->labels,
                                   .evaluations = options->evaluations,
                                   .evaluation_count = (int)options->evaluation_count};
    int result = view < 0 || !request.rows || (options->titles && titles_read(&titles, &run->model, options->titles)) ||
                         device_config(run->context, &config) || page_write(&run->model, &request, &config, path, &size) ? -1 : 0;
    titles_release(&titles);
    config_release(&config);
    return result;
}

enum sptx_status sptx_run_report(struct sptx_run *run, const char *path, const struct sptx_report_options *given) {
    struct sptx_report_options options = SPTX_REPORT_OPTIONS;
    if (!run) return SPTX_USAGE;
    enter(run->context);
    if (!path || !*path) return leave(run->context, fail_usage("a page is written to a file; none was given"));
    int result = given ? take_options(&options, sizeof options, given) : 0;
    if (!result) result = check_report(&options) || write_report(run, path, &options) ? -1 : 0;
    return leave(run->context, result);
}
