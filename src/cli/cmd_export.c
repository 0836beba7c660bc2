#include "commands.h"
#include "vectors/answers.h"
#include "vectors/export.h"
#include "base/interrupt.h"
#include "base/report.h"
#include "base/text.h"

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
        note("wrote '%s': %s rows of %u columns, table %s", path, text_of_count(count, export->rows), export->model->dim,
             model_view_name(export->view));
    return result;
}

/* sptx-w2v export RUN --format=F --out=FILE [--type=f32|bf16|f16] [--table=TABLE] [--classes=N] [--lists] */
int cmd_export(int argc, char **argv) {
    const char *format_name = NULL, *path = NULL, *table = NULL, *type_name = "f32";
    const char *classes_text = NULL;
    uint64_t classes = 0;
    int lists = 0;
    const struct option options[] = {{.name = "format", .text = &format_name},
                                     {.name = "out", .text = &path},
                                     {.name = "type", .text = &type_name},
                                     {.name = "table", .text = &table},
                                     {.name = "classes", .text = &classes_text},
                                     {.name = "lists", .flag = &lists},
                                     {0}};
    struct arguments arguments;
    struct model model = {.rows = 0};
    int result = -1;
    if (arguments_read(&arguments, "export", argc, argv, options, NULL)) goto out;
    if (arguments.count != 1) {
        fail_usage("export wants one run directory, %d given; see 'sptx-w2v help export'", arguments.count);
        goto out;
    }
    if (classes_text && !format_name) format_name = "classes";
    if (!format_name || !path) {
        fail_usage("export wants --%s; see 'sptx-w2v help export'", format_name ? "out=FILE" : "format=F");
        goto out;
    }
    int format = export_format_named(format_name), type = format < 0 ? -1 : export_type_named(type_name);
    if (arguments_number("export", "classes", classes_text, 1, 1000000, &classes)) goto out;
    if (format >= 0 && (format == EXPORT_CLASSES) != (classes_text != NULL)) {
        fail_usage("export: --classes=N is for --format=classes, which wants it, and the format is %s", format_name);
        goto out;
    }
    if (type < 0 || (table && model_view_named(table) < 0) || model_open(&model, arguments.given[0])) goto out;
    int view = answers_view_named(&model, table, 0);
    if (view < 0) goto out;
    struct export export = {.model = &model, .view = (enum model_view)view, .type = (enum export_type)type, .classes = (uint32_t)classes};
    result = write_rows(&export, (enum export_format)format, path, lists);
out:
    model_close(&model);
    arguments_release(&arguments);
    return result;
}
