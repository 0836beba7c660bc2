#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/export.h"
#include "vectors/list_scores.h"

enum { MEASURED = 100000 }; /* rows among which the loss of an export with fewer bits is measured without --measure */

/* Writes the rows, and prints their number and what share of nearest rows they still find. */
static int write_rows(struct export *export, enum export_format format, const char *path, int lists) {
    struct interrupt watch;
    char count[TEXT_BYTES];
    if (!(export->rows = answers_rows(export->model, lists))) return -1;
    interrupt_watch(&watch);
    int result = export_write(export, format, path);
    interrupt_end(&watch);
    if (!result && format == EXPORT_CLASSES)
        note("wrote '%s': %s words, each with its class", path, text_of_count(count, export->rows));
    else if (!result)
        note("wrote '%s': %s rows of %u %s, table %s", path, text_of_count(count, export->rows),
             export->columns ? export->columns : export->model->dim, export->type == EXPORT_BINARY ? "bits" : "columns",
             model_view_name(export->view));
    const struct quantizer_loss *loss = result ? NULL : export->loss;
    if (loss)
        note("recall@10 %.3f: the file's rows find this share of the ten rows nearest by cosine to a float32 row, among %s rows",
             loss->recall, text_of_count(count, loss->searched));
    if (loss && (export->type == EXPORT_BINARY || export->columns))
        note("recall@10 %.3f if 100 rows of the file are found and then ordered by their float32 vectors", loss->rescored);
    return result;
}

/* sptx-w2v export RUN --format=F --out=FILE [--type=T] [--columns=N] [--measure] [--table=TABLE] [--classes=N]
 * [--lists | --features [--item-features=FILE] [--feature-words=COLUMNS]], or sptx-w2v export --check=FILE */
int cmd_export(int argc, char **argv) {
    const char *check = NULL, *format_name = NULL, *path = NULL, *table = NULL, *type_name = NULL;
    const char *classes_text = NULL, *columns_text = NULL;
    uint64_t classes = 0, columns = 0;
    struct features_asked features = {.share = FEATURES_AUTO};
    int lists = 0, measure = 0, only_features = 0;
    const struct option options[] = {{.name = "format", .text = &format_name},
                                     {.name = "out", .text = &path},
                                     {.name = "type", .text = &type_name},
                                     {.name = "columns", .text = &columns_text},
                                     {.name = "measure", .flag = &measure},
                                     {.name = "table", .text = &table},
                                     {.name = "classes", .text = &classes_text},
                                     {.name = "lists", .flag = &lists},
                                     {.name = "features", .flag = &only_features},
                                     {.name = "item-features", .text = &features.path},
                                     {.name = "feature-words", .text = &features.words},
                                     {.name = "check", .text = &check},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(model_close) struct model model = {.rows = 0}, of_features = {.rows = 0};
    if (arguments_read(&arguments, "export", argc, argv, options, NULL)) return -1;
    if (check && !arguments.count && !format_name && !path) {
        int beside = export_check(check);
        if (!beside) note("'%s' has no file of an export beside it that decodes its rows", check);
        if (beside > 0) note("one export  '%s' and %d file%s beside it", check, beside, text_plural((uint64_t)beside));
        return beside < 0 ? -1 : 0;
    }
    if (check) return fail_usage("export --check=FILE wants nothing else; see 'sptx-w2v help export'");
    if (arguments.count != 1)
        return fail_usage("export wants one run directory, %d given; see 'sptx-w2v help export'", arguments.count);
    if (classes_text && !format_name) format_name = "classes";
    if (!format_name || !path)
        return fail_usage("export wants --%s; see 'sptx-w2v help export'", format_name ? "out=FILE" : "format=F");
    int format = export_format_named(format_name), type = format < 0 ? -1 : export_type_for((enum export_format)format, type_name);
    if (arguments_number("export", "classes", classes_text, 1, 1000000, &classes) ||
        arguments_number("export", "columns", columns_text, 1, COLUMNS_MOST, &columns)) return -1;
    if (format == EXPORT_CLASSES && !classes_text) return fail_usage("export: --format=classes wants --classes=N");
    if (format >= 0 && format != EXPORT_CLASSES && classes_text)
        return fail_usage("export: --classes=N is for --format=classes, and the format is %s", format_name);
    int same = type < 0 || directory_exists(path) == 1 ? 0 : file_is_same(path, arguments.given[0]); /* a directory is refused when it is opened */
    if (same == 1) return fail_usage("export: --out = '%s' is the file that is read, which would be lost; choose another", path);
    if (type < 0 || same || (table && model_view_named(table) < 0) || model_open(&model, arguments.given[0])) return -1;
    int view = answers_view_named(&model, table, 0);
    if (view < 0) return -1;
    if (only_features ? lists || table != NULL : features.path || features.words)
        return fail_usage("export: --item-features and --feature-words belong to --features, which writes no lists and has one table");
    if (only_features && (list_scores_features(&model, &features, answers_score(&model, 1), 0) || features_model(&of_features, &model))) return -1;
    if (only_features) view = VIEW_TARGET;
    struct quantizer_loss loss = {.most = measure ? UINT64_MAX : MEASURED};
    struct export export = {.model = only_features ? &of_features : &model, .view = (enum model_view)view, .type = (enum export_type)type,
                            .classes = (uint32_t)classes, .columns = (uint32_t)columns};
    if (measure || type >= EXPORT_INT8 || columns) export.loss = &loss;
    return write_rows(&export, (enum export_format)format, path, lists);
}
