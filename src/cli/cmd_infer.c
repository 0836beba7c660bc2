#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"
#include "corpus/look.h"
#include "vectors/infer.h"
#include "vectors/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EPOCHS = 1000000 };

/* The documents of a file: words words[starts[i]] .. words[starts[i + 1] - 1] of document i, as rows of the model. */
struct documents {
    struct token *names; /* [count] text NULL: the document's name is the number of its line */
    uint64_t *lines;     /* [count] number of its line */
    uint64_t *starts, *words;
    uint64_t count, word_count, names_capacity, lines_capacity, starts_capacity, words_capacity;
};

/* Adds the words of the line's rest. */
static int add_words(struct documents *d, struct lines *lines, const struct model *model) {
    struct token token;
    while (lines_token(lines, &token)) {
        int64_t row = vocab_find(&model->vocab, token.text, token.length);
        if (row < 0 || (uint64_t)row >= model_items(model)) continue;
        if (mem_grow(&d->words, &d->words_capacity, d->word_count + 1, sizeof *d->words, "the words of documents")) return -1;
        d->words[d->word_count++] = (uint64_t)row;
    }
    return 0;
}

/* Ends a document, whose words were added. */
static int add_document(struct documents *d, const struct lines *lines, struct token name) {
    if (mem_grow(&d->names, &d->names_capacity, d->count + 1, sizeof *d->names, "documents") ||
        mem_grow(&d->lines, &d->lines_capacity, d->count + 1, sizeof *d->lines, "documents") ||
        mem_grow(&d->starts, &d->starts_capacity, d->count + 2, sizeof *d->starts, "documents"))
        return -1;
    d->names[d->count] = name;
    d->lines[d->count] = lines->number;
    d->starts[++d->count] = d->word_count;
    return 0;
}

/* Returns 1 if the run was trained on a table, and the file's lines are a table with its columns, which `look` then describes; otherwise 0: lines
 * are text. Returns -1 after fail(). */
static int find_table(struct look *look, const struct lines *lines, const struct model *model, const char *path) {
    struct look_keys keys = config_corpus(&model->keys).look;
    unsigned last = 0;
    if (!keys.columns || !*keys.columns || !strcmp(keys.columns, "auto")) return 0;
    keys.hints = 1;
    int failed = report_exit_code();
    if (look_at_lines(look, lines->at, (uint64_t)(lines->end - lines->at), 1, LOOK_DOCUMENTS, &keys, path)) {
        if (!failed) report_clear(); /* not a table: lines are read as text */
        return 0;
    }
    const struct columns_form *form = &look->form;
    for (int c = 0; c < COLUMN_MEANINGS; c++)
        if (form->column[c] != NO_COLUMN && form->column[c] > last) last = form->column[c];
    int same = look->header || !strcmp(look->columns, keys.columns);
    if (form->column[COLUMN_B] == NO_COLUMN || *form->separator == ' ' || form->columns <= last || !same) return 0;
    remark("%s ('%s')", look->said, path);
    return 1;
}

static int read_documents(struct documents *d, struct lines *lines, const struct model *model, const char *path, int named) {
    struct look look;
    struct table_line parts;
    int table = named ? 0 : find_table(&look, lines, model, path);
    for (uint64_t i = 0; table && i < look.skip; i++) lines->number += *lines->at++ == '\n';
    if (mem_grow(&d->starts, &d->starts_capacity, 1, sizeof *d->starts, "documents")) return -1;
    d->starts[0] = 0;
    while (lines_next(lines)) {
        struct token name = {NULL, 0};
        if (named && !lines_token(lines, &name)) continue;
        if (!table && add_words(d, lines, model)) return -1;
        if (table) {
            columns_part(&parts, lines->line, lines->stop, &look.form, 0);
            if (!parts.count) continue;
            if (columns_check(&parts, &look.form, LOOK_DOCUMENTS, path, lines->number)) return -1;
            for (int meaning = COLUMN_A; meaning < COLUMN_MEANINGS; meaning++) {
                unsigned column = look.form.column[meaning];
                if (column >= parts.count) continue;
                lines->line = (char *)parts.word[column];
                lines->stop = lines->line + parts.length[column];
                if (meaning == COLUMN_A) name = (struct token){lines->line, parts.length[column]};
                else if (add_words(d, lines, model)) return -1;
            }
        }
        if (add_document(d, lines, name)) return -1;
    }
    if (!d->word_count) return fail("no word of '%s' is in the vocabulary of '%s'", path, model->directory);
    return 0;
}

/* sptx-w2v infer RUN --text=FILE [--names] [--epochs=N] */
int cmd_infer(int argc, char **argv) {
    const char *text = NULL, *epochs_text = NULL;
    int named = 0, result = -1;
    const struct option options[] = {
        {.name = "text", .text = &text}, {.name = "names", .flag = &named}, {.name = "epochs", .text = &epochs_text}, {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    ENDED_BY(model_close) struct model model = {.rows = 0};
    struct documents documents = {.count = 0};
    struct lines lines;
    struct infer infer = {.model = NULL};
    struct pool *pool = NULL;
    char *bytes = NULL;
    float *rows = NULL;
    struct infer_passes passes = {.epochs = 0};
    if (arguments_read(&arguments, "infer", argc, argv, options, "device")) goto out;
    if (arguments.count != 1 || !text) {
        fail_usage("infer wants a run directory and --text=FILE; see 'sptx-w2v help infer'");
        goto out;
    }
    if (arguments_number("infer", "epochs", epochs_text, 1, MOST_EPOCHS, &passes.epochs) || arguments_config(&config, 0, NULL, &arguments) ||
        model_open(&model, arguments.given[0]) || !(pool = pool_open((unsigned)config.device_threads)) ||
        infer_open(&infer, &model, pool) || !(bytes = lines_open(&lines, text)) ||
        read_documents(&documents, &lines, &model, text, named) ||
        !(rows = mem_alloc(documents.count, model.dim * sizeof *rows, "rows of documents")) ||
        infer_rows(&infer, &passes, documents.starts, documents.words, documents.count, rows))
        goto out;
    for (uint64_t i = 0; i < documents.count; i++) {
        if (documents.names[i].text) terminal_print(documents.names[i].text, documents.names[i].length);
        else printf("%" PRIu64, documents.lines[i]);
        for (uint64_t j = 0; j < model.dim; j++) printf("%c%.9g", j ? ' ' : '\t', (double)rows[i * model.dim + j]);
        putchar('\n');
    }
    result = 0;
out:
    infer_close(&infer);
    if (pool) pool_close(pool);
    mem_free(documents.names, documents.lines, documents.starts, documents.words, bytes, rows);
    return result;
}
