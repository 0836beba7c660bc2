/* look_refuse: refuses files that are not rows of fields, and columns whose fields are not names; tables list the known cases.
 * Without this, such a file would be misread without a message. */
#define _GNU_SOURCE
#include "look_lines.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* ---- files of other formats ---- */

static int is_json(const struct looked_line *line) {
    const char *at = line->at, *end = line->end;
    while (at < end && text_is_blank(*at)) at++;
    while (end > at && (text_is_blank(end[-1]) || end[-1] == ',')) end--;
    return end - at > 1 && (memchr(at, '"', (size_t)(end - at)) || memchr(at, ':', (size_t)(end - at))) &&
           ((*at == '{' && end[-1] == '}') || (*at == '[' && end[-1] == ']'));
}

static int is_json_begun(const struct looked_line *line) {
    return line->end - line->at == 1 && (*line->at == '[' || *line->at == '{');
}

static int are_json(const struct looked_lines *lines) {
    if (lines->count && is_json_begun(&lines->line[0])) return 1;
    for (uint64_t i = 0; i < lines->count; i++)
        if (!is_json(&lines->line[i])) return 0;
    return lines->count > 0;
}

/* Formats of files that cannot be read as tables. Each entry has the first bytes of such a file, the format's name, and the
 * advice to the user. */
static const struct {
    const char *begin, *what, *then;
} others[] = {{"<", "XML", "write a line for each edge or pair first"},
              {"@prefix ", "Turtle", "write N-Triples first (rapper -i turtle -o ntriples)"},
              {"@base ", "Turtle", "write N-Triples first (rapper -i turtle -o ntriples)"},
              {"graph [", "GML", "in Python: sptx.fit(networkx.read_gml(path), ..)"},
              {"Creator ", "GML", "in Python: sptx.fit(networkx.read_gml(path), ..)"},
              {"*vertices", "a graph of Pajek's", "in Python: sptx.fit(networkx.read_pajek(path), ..)"},
              {"*network", "a graph of Pajek's", "in Python: sptx.fit(networkx.read_pajek(path), ..)"},
              {"digraph ", "a graph of Graphviz'", "write an edge on each line first"},
              {"graph {", "a graph of Graphviz'", "write an edge on each line first"},
              {"@relation", "ARFF", "write its lines of data first"}};

static int begins_with(const struct looked_line *line, const char *text) {
    return (size_t)(line->end - line->at) >= strlen(text) && !memcmp(line->at, text, strlen(text));
}

static int refuse_other_formats(const struct looked_lines *lines, enum look_rows rows, const char *path) {
    const struct looked_line *line = &lines->line[0];
    int names = rows == LOOK_TRIPLES && *line->at == '<' && !begins_with(line, "<?xml") && !begins_with(line, "<rdf"); /* <Ulm> */
    if (looked_are_ntriples(lines)) return fail("'%s' holds N-Triples: corpus.format = triples reads them", path);
    for (size_t i = 0; i < sizeof others / sizeof *others && !names; i++)
        if ((size_t)(line->end - line->at) >= strlen(others[i].begin) && !strncasecmp(line->at, others[i].begin, strlen(others[i].begin)))
            return fail("'%s' holds %s, and no rows of fields: %s", path, others[i].what, others[i].then);
    return 0;
}

static int ends_with(const struct looked_line *line, const char *text) {
    return (size_t)(line->end - line->at) >= strlen(text) && !memcmp(line->end - strlen(text), text, strlen(text));
}
static int holds(const struct looked_line *line, const char *text) {
    return memmem(line->at, (size_t)(line->end - line->at), text, strlen(text)) != NULL;
}
/* Returns 1 if the line's first word ends with a colon, as in "1: 2 3". */
static int names_with_colon(const struct looked_line *line, const char *unused) {
    const char *at = line->at;
    while (at < line->end && !token_is_white(*at)) at++;
    return at > line->at && at < line->end && at[-1] == ':';
}

/* Returns 1 for a line that draws a part of a table: "+----+----+" or "---+---". */
static int draws_table(const struct looked_line *line, const char *unused) {
    uint64_t dashes = 0;
    for (const char *at = line->at; at < line->end; at++) {
        if (!strchr("-+|=: ", *at)) return 0;
        dashes += *at == '-' || *at == '=';
    }
    return dashes >= 3;
}

/* Signs that lines are not rows of fields. */
static const struct {
    int (*is)(const struct looked_line *line, const char *text);
    const char *text;
    int one; /* 1: one line with the sign suffices; 0: all lines must have it */
    int lists, tables; /* 1: checked for lists and adjacency; 1: checked for all other rows */
    const char *sentence;
} marks[] = {
    {holds, "['", 0, 1, 0, "holds lists as a program prints them; write the items with tabs or commas between (in Python: '\\t'.join(items))"},
    {ends_with, " -2", 0, 1, 0, "ends each line with -2, as sequences of SPMF do; remove -1 and -2, which are no items"},
    {names_with_colon, "", 0, 1, 0, "has a colon behind each line's first word, which would be a part of the name; remove it (sed 's/:/ /')"},
    {begins_with, "(", 0, 0, 1, "begins each line with a bracket, as tuples are printed; write the fields with tabs or commas between"},
    {begins_with, "// ", 1, 1, 1, "is a comment; remove such lines (grep -v '^//')"},
    {begins_with, "; ", 1, 0, 1, "is a comment; remove such lines (grep -v '^;')"},
    {draws_table, "", 1, 1, 1, "draws a table, as psql and mysql print results; write CSV (psql --csv, mysql --batch)"}};

static int refuse_marks(const struct looked_lines *lines, enum look_rows rows, const char *path) {
    int lists = looked_is_of_lists(rows);
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
        uint64_t count = 0, first = 0;
        if (!(lists ? marks[m].lists : marks[m].tables)) continue;
        for (uint64_t i = 0; i < lines->count; i++)
            if (marks[m].is(&lines->line[i], marks[m].text) && !count++) first = i;
        if (marks[m].one ? count : count == lines->count)
            return fail("'%s' line %" PRIu64 " %s", path, lines->line[first].number, marks[m].sentence);
    }
    for (uint64_t i = 0; i < lines->count && rows == LOOK_EDGES; i++)
        if (begins_with(&lines->line[i], "p edge ") || begins_with(&lines->line[i], "p sp ") || begins_with(&lines->line[i], "p col "))
            return fail("'%s' line %" PRIu64 ": a graph of DIMACS, and no rows of fields; keep its lines of edges without their first "
                        "letter (awk '/^[ea] /{print $2, $3}')",
                        path, lines->line[i].number);
    if (rows == LOOK_PAIRS && begins_with(&lines->line[0], "%"))
        return fail("'%s' line %" PRIu64 " is a comment of KONECT or Matrix Market; corpus.format = graph passes over such lines, pairs "
                    "does not: remove them",
                    path, lines->line[0].number);
    return 0;
}

int looked_refuse_lines(const struct looked_lines *lines, enum look_rows rows, int braces, const char *path) {
    if (!braces && are_json(lines))
        return fail("'%s' holds JSON; wanted %s on each line: write it so first (in Python: pandas.read_json, then to_csv)", path,
                    looked_is_of_lists(rows) ? "a list" : "fields with commas or tabs between");
    return refuse_other_formats(lines, rows, path) || refuse_marks(lines, rows, path) ? -1 : 0;
}

/* ---- columns whose fields are not names ---- */

int looked_is_missing(const char *word, uint64_t length) {
    static const char *const names[] = {"NA", "N/A", "NULL", "\\N", "nan", "None", "-", "?"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncasecmp(names[i], word, length)) return 1;
    return 0;
}

static int is_null_of_sql(const char *word, uint64_t length) {
    return length == 2 && !memcmp(word, "\\N", 2);
}
static int is_in_single_quotes(const char *word, uint64_t length) {
    return length > 1 && *word == '\'' && word[length - 1] == '\'';
}
static int is_formula(const char *word, uint64_t length) {
    return length > 2 && word[0] == '=' && word[1] == '"' && word[length - 1] == '"';
}
static int is_printed_list(const char *word, uint64_t length) {
    return length > 1 && *word == '[' && word[length - 1] == ']';
}

/* Returns 1 for a day, maybe with a time after it: 2024-01-31, 31.1.2024, 1/31/2024 10:00. */
static int is_date(const char *word, uint64_t length) {
    uint64_t digits[3] = {0}, part = 0, i = 0;
    char sign = 0;
    for (; i < length && part < 3; i++) {
        if (word[i] >= '0' && word[i] <= '9') {
            digits[part]++;
        } else if (part < 2 && digits[part] && strchr("-/.", word[i]) && (!sign || sign == word[i])) {
            sign = word[i];
            part++;
        } else {
            break;
        }
    }
    int ends = i == length || text_is_blank(word[i]) || word[i] == 'T';
    return ends && part == 2 && digits[1] <= 2 && ((digits[0] == 4 && digits[2] && digits[2] <= 2) || (digits[0] <= 2 && digits[2] == 4));
}

/* How many of a column's non-empty fields must match for the column to be refused. */
enum how_many {
    ONE,              /* at least one field */
    ALL,              /* all fields */
    ONE_BESIDE_DIGITS /* at least one field, if all other fields are numbers */
};
/* The columns to which a rule applies. */
enum checked {
    BOTH,            /* COLUMN_A and COLUMN_B of any file */
    BOTH_OF_PAIRS,   /* COLUMN_A and COLUMN_B of pairs and edges */
    ITEM,            /* COLUMN_B of pairs and edges */
    ITEM_BY_POSITION /* COLUMN_B of pairs and edges, unless it was chosen by its name or by corpus.columns */
};
static const struct {
    int (*is)(const char *word, uint64_t length);
    enum how_many how_many;
    enum checked checked;
    const char *what, *then;
} fields[] = {
    {is_null_of_sql, ONE, BOTH, "has \\N, which databases write where a value is missing", "remove such lines"},
    {looked_is_missing, ONE_BESIDE_DIGITS, BOTH_OF_PAIRS, "has a field without a value", "remove such lines"},
    {is_in_single_quotes, ALL, BOTH, "has single quotes, which would be parts of the names", "write double quotes (sed \"s/'/\\\"/g\")"},
    {is_formula, ALL, BOTH, "has formulas of a spreadsheet", "write the values alone (sed 's/=\"/\"/g')"},
    {is_date, ALL, ITEM_BY_POSITION, "has dates", "say by corpus.columns which columns are wanted, as in corpus.columns = 1,3 or by their names"},
    {is_printed_list, ALL, ITEM, "holds whole lists, as a program prints them", "write a line for each item (in Python: frame.explode)"}};

static int is_checked(enum checked checked, enum column_meaning meaning, enum look_rows rows, const struct columns_form *form) {
    if (checked == BOTH) return 1;
    if (rows != LOOK_PAIRS && rows != LOOK_EDGES) return 0;
    return checked == BOTH_OF_PAIRS || (meaning == COLUMN_B && (checked == ITEM || !form->named));
}

/* Fails if enough fields of the column match the rule fields[rule]. */
static int refuse_column(const struct looked_lines *lines, uint64_t first, const struct columns_form *form, unsigned column, size_t rule,
                         const char *path) {
    uint64_t filled = 0, such = 0, digits = 0, where = 0;
    for (uint64_t i = first; i < lines->count; i++) {
        struct table_line parts = looked_part(&lines->line[i], form);
        if (column >= parts.count || column >= COLUMNS_READ || !parts.length[column]) continue;
        int is = fields[rule].is(parts.word[column], parts.length[column]);
        if (is && !such++) where = i;
        filled++;
        digits += !is && looked_is_digits(parts.word[column], parts.length[column]);
    }
    if (!such || (fields[rule].how_many == ALL && such < filled)) return 0;
    if (fields[rule].how_many == ONE_BESIDE_DIGITS && (!digits || digits + such < filled)) return 0;
    const struct looked_line *line = &lines->line[where];
    return fail("'%s' line %" PRIu64 ": column %u %s: %.*s; %s", path, line->number, column + 1, fields[rule].what,
                text_shown((uint64_t)(line->end - line->at)), line->at, fields[rule].then);
}

int looked_refuse_fields(const struct looked_lines *lines, uint64_t first, const struct columns_form *form, enum look_rows rows,
                         const char *path) {
    for (size_t rule = 0; rule < sizeof fields / sizeof *fields; rule++)
        for (int meaning = COLUMN_A; meaning <= COLUMN_B; meaning++)
            if (is_checked(fields[rule].checked, (enum column_meaning)meaning, rows, form) &&
                refuse_column(lines, first, form, form->column[meaning], rule, path))
                return -1;
    return 0;
}
