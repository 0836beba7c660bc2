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
    if (!result)
        note("wrote '%s': %s rows of %u columns, table %s", path, text_of_count(count, export->rows), export->model->dim,
             model_view_name(export->view));
    return result;
}

/* sptx-w2v export RUN --format=F --out=FILE [--type=f32|bf16|f16] [--table=TABLE] [--lists] */
int cmd_export(int argc, char **argv) {
    const char *format_name = NULL, *path = NULL, *table = NULL, *type_name = "f32";
    int lists = 0;
    const struct option options[] = {{.name = "format", .text = &format_name},
                                     {.name = "out", .text = &path},
                                     {.name = "type", .text = &type_name},
                                     {.name = "table", .text = &table},
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
    if (!format_name || !path) {
        fail_usage("export wants --%s; see 'sptx-w2v help export'", format_name ? "out=FILE" : "format=F");
        goto out;
    }
    int format = export_format_named(format_name), type = format < 0 ? -1 : export_type_named(type_name);
    if (type < 0 || (table && model_view_named(table) < 0) || model_open(&model, arguments.given[0])) goto out;
    int view = answers_view_named(&model, table, 0);
    if (view < 0) goto out;
    struct export export = {.model = &model, .view = (enum model_view)view, .type = (enum export_type)type};
    result = write_rows(&export, (enum export_format)format, path, lists);
out:
    model_close(&model);
    arguments_release(&arguments);
    return result;
}
