/* Fuzzes look_at_lines() with any bytes as a file. Byte 0 of the input chooses the kind of rows and corpus.header, byte 1
 * the other keys; the rest is the file. Checks that a second call finds the same format, that the file's bytes
 * do not change, and that reading lines in this format stays within the file. */
#include "corpus/look.h"
#include "base/report.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

static void check_form(const struct look *look, enum look_rows rows, uint64_t length) {
    const struct columns_form *form = &look->form;
    HOLDS(look->skip <= length, "the header ends behind the file");
    HOLDS(!*look->said || !strchr(look->said, '\n'), "what is said has several lines");
    unsigned most = rows == LOOK_DOCUMENTS ? NO_COLUMN : COLUMNS_READ - 1; /* a document's name and text may be no columns */
    HOLDS(form->column[COLUMN_A] <= most && form->column[COLUMN_B] <= most && form->column[COLUMN_VALUE] <= NO_COLUMN,
          "a column is out of reach");
    HOLDS(rows == LOOK_TEXT || form->column[COLUMN_A] != form->column[COLUMN_B] || form->column[COLUMN_A] == NO_COLUMN, "one column is two");
    HOLDS(*form->separator, "nothing separates");
    HOLDS(rows != LOOK_TRIPLES || form->ntriples || !*look->said || form->column[COLUMN_VALUE] < NO_COLUMN, "a triple has no relation");
}

static void read_lines(const struct look *look, const uint8_t *bytes, uint64_t length) {
    char *copy = malloc(length + 1);
    struct table_line line;
    struct corpus_cursor cursor = {copy + look->skip, copy + length, 1};
    uint64_t lines = 0, newlines = 0;
    HOLDS(copy, "no memory");
    if (length) memcpy(copy, bytes, length);
    for (uint64_t i = look->skip; i < length; i++) newlines += bytes[i] == '\n';
    for (; columns_next(&cursor, &look->form, &line); lines++)
        for (uint64_t c = 0; c < line.count && c < COLUMNS_READ; c++) {
            double value;
            HOLDS(line.word[c] >= copy && line.word[c] + line.length[c] <= copy + length, "a field passes the file");
            columns_number(&look->form, line.word[c], line.length[c], &value);
        }
    HOLDS(lines == newlines || lines == newlines + 1, "%llu lines of %llu", (unsigned long long)lines, (unsigned long long)newlines);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static const char *const columns[] = {NULL, "1,2", "2,1,3", "user,item"};
    struct fuzz_input input = {bytes, length};
    unsigned what = fuzz_byte(&input), how = fuzz_byte(&input);
    enum look_rows rows = what >= 192 ? LOOK_DOCUMENTS : what % 8 || what < 64 ? (enum look_rows)(what % 8) : LOOK_WORDS;
    struct look_keys keys = {.header = (enum corpus_header)(what / 8 % 3), .separator = (enum corpus_separator)(how % 7),
                             .names = (enum corpus_names)(how / 8 % 4), .columns = columns[how / 32 % 4], .no_values = how / 128};
    char *copy = malloc(input.left + 1);
    struct look look, again;
    HOLDS(copy, "no memory");
    if (input.left) memcpy(copy, input.at, input.left);
    int whole = what / 32 % 2;
    if (fuzz_accepted(look_at_lines(&look, copy, input.left, whole, rows, &keys, "f"))) {
        HOLDS(!look_at_lines(&again, copy, input.left, whole, rows, &keys, "f") && !memcmp(&look, &again, sizeof look),
              "a second look decides something else");
        HOLDS(!input.left || !memcmp(copy, input.at, input.left), "the look changes the file");
        check_form(&look, rows, input.left);
        read_lines(&look, input.at, input.left);
    }
    look_for_pairs(copy, input.left, NULL);
    char like[LOOK_LIKE];
    look_for_rows(like, copy, input.left, rows);
    HOLDS(!report_exit_code(), "a failure is left");
    free(copy);
    return 0;
}
