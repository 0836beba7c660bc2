#include "commands.h"
#include "vectors/export.h"
#include "base/interrupt.h"
#include "base/report.h"
#include "base/text.h"

/* sptx-w2v export RUN --format=F --out=FILE [--table=target|context|sum|normsum] */
int cmd_export(int argc, char **argv) {
    const char *format_name = NULL, *path = NULL, *table = "target";
    const struct option options[] = {{.name = "format", .text = &format_name},
                                     {.name = "out", .text = &path},
                                     {.name = "table", .text = &table},
                                     {0}};
    struct arguments arguments;
    struct model model = {.rows = 0};
    struct interrupt watch;
    char count[TEXT_BYTES];
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
    int format = export_format_named(format_name), view = model_view_named(table);
    if (format < 0 || view < 0 || model_open(&model, arguments.given[0])) goto out;
    interrupt_watch(&watch);
    result = export_write(&model, (enum model_view)view, (enum export_format)format, path);
    interrupt_end(&watch);
    if (result) goto out;
    note("wrote '%s': %s rows of %u columns", path, text_of_count(count, model.rows), model.dim);
out:
    model_close(&model);
    arguments_release(&arguments);
    return result;
}
