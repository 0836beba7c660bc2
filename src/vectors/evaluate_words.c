/* evaluate_words: judges vectors of words by human scores of pairs, by analogies, and by groups of words. */
#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- pairs ---- */

struct pair {
    uint64_t line;
    int64_t a, b;      /* numbers of the two words' names */
    const char *score; /* text in the file's copy, not NUL-terminated */
    uint64_t score_length;
};

struct value {
    double value;
    uint64_t place;
};

/* Computes the ranks of the values, from 0; equal values get their mean rank. Sorts `values`. */
static void rank(struct value *values, uint64_t count, double *ranks) {
    qsort(values, count, sizeof *values, mem_by_double);
    for (uint64_t i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && values[j].value == values[i].value;) j++;
        for (uint64_t same = i; same < j; same++) ranks[values[same].place] = (double)(i + j - 1) / 2;
    }
}

/* Returns Pearson's correlation; NaN if one side is constant or `count` is 0. */
static double correlation(const double *a, const double *b, uint64_t count) {
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (uint64_t i = 0; i < count; i++) mean_a += a[i], mean_b += b[i];
    mean_a /= (double)count, mean_b /= (double)count;
    for (uint64_t i = 0; i < count; i++) {
        double x = a[i] - mean_a, y = b[i] - mean_b;
        ab += x * y, aa += x * x, bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

/* Returns the cosine, rounded to float32 so that cosines that differ only by rounding are equal. */
static double cosine(const float *a, const float *b, uint32_t dim) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < dim; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return (float)(ab / (fmax(sqrt(aa), 1e-12) * fmax(sqrt(bb), 1e-12)));
}

/* Reads pairs: lines of two words and a score. Skips lines with fewer fields. */
static int read_pairs(struct field_file *file, struct names *names, struct pair **pairs, uint64_t *count) {
    uint64_t capacity = 0, a_length, b_length, score_length;
    int more;
    while ((more = field_file_next(file)) > 0) {
        char *a = (char *)field_file_field(file, COLUMN_A, &a_length), *b = (char *)field_file_field(file, COLUMN_B, &b_length);
        const char *score = field_file_field(file, COLUMN_VALUE, &score_length);
        if (!a || !b || !score) continue;
        if (mem_grow(pairs, &capacity, *count + 1, sizeof **pairs, "pairs of words")) return -1;
        struct pair *pair = &(*pairs)[(*count)++];
        *pair = (struct pair){file->number, names_add_lower(names, a, a_length), names_add_lower(names, b, b_length), score,
                              score_length};
        if (pair->a < 0 || pair->b < 0) return -1;
    }
    return more;
}

/* Writes the vector of a name. Returns 1; 0 if the model has no vector for it; -1 after fail(). */
static int vector_of(const struct model *model, enum model_view view, const struct names *names, int64_t name, float *out) {
    uint64_t length;
    const char *word = words_get(&names->words, (uint64_t)name, &length);
    if (names->row[name] < 0) return model_unseen(model, view, word, length, out);
    model_rows(model, view, (uint64_t)names->row[name], 1, out);
    return 1;
}

/* Fails with the reason why the correlation cannot be computed. */
static int refuse_pairs(uint64_t covered, uint64_t total, const struct model *model, const char *path) {
    if (!total) return fail("'%s' has no line of two words and a score with tabs, commas or blanks between", path);
    if (!covered)
        return fail("none of the %" PRIu64 " pairs of '%s' has both words in the vocabulary of '%s'", total, path, model->directory);
    return fail("the %" PRIu64 " pairs of '%s' that are covered, of %" PRIu64 ", tell of no order: their scores or their cosines are all the same",
                covered, path, total);
}

int evaluate_pairs(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    const char *path = request->path;
    ENDED_BY(field_file_close) struct field_file file = {0};
    ENDED_BY(names_release) struct names names = {.capacity = 0};
    OWNED struct pair *pairs = NULL;
    uint64_t count = 0;
    if (field_file_open(&file, path, LOOK_WORDS) || read_pairs(&file, &names, &pairs, &count) ||
        names_locate(&names, model, model_items(model)))
        return -1;
    OWNED struct value *values = mem_alloc(count, 2 * sizeof *values, "scores of pairs"); /* [2 x count] first the file's scores, then cosines */
    OWNED double *ranks = mem_alloc(count, 2 * sizeof *ranks, "ranks of pairs");          /* [2 x count] their ranks */
    if (!values || !ranks) return -1;
    OWNED float *rows = mem_alloc(2, model->dim * sizeof *rows, "two rows");
    int64_t known = rows ? 0 : -1; /* number of pairs whose words both have vectors */
    for (uint64_t i = 0; known >= 0 && i < count; i++) {
        int a = vector_of(model, request->view, &names, pairs[i].a, rows), b = vector_of(model, request->view, &names, pairs[i].b, rows + model->dim);
        double gold;
        if (a < 0 || b < 0) known = -1;
        if (a <= 0 || b <= 0) continue;
        if (columns_number(&file.look.form, pairs[i].score, pairs[i].score_length, &gold)) {
            known = fail("'%s' line %" PRIu64 ": '%.*s' is not a score", path, pairs[i].line, text_shown(pairs[i].score_length),
                         pairs[i].score);
            break;
        }
        double near = cosine(rows, rows + model->dim, model->dim);
        if (!isfinite(near)) {
            known = fail("the vector of '%s' or of '%s' in '%s' holds NaN or infinity", words_get(&names.words, (uint64_t)pairs[i].a, NULL),
                         words_get(&names.words, (uint64_t)pairs[i].b, NULL), model->directory);
            break;
        }
        values[known] = (struct value){gold, (uint64_t)known};
        values[count + (uint64_t)known] = (struct value){near, (uint64_t)known};
        known++;
    }
    if (known < 0) return -1;
    rank(values, (uint64_t)known, ranks);
    rank(values + count, (uint64_t)known, ranks + count);
    double rho = correlation(ranks, ranks + count, (uint64_t)known);
    if (!isfinite(rho)) return refuse_pairs((uint64_t)known, count, model, path);
    return answer_add(answer, "", "rho", rho, (uint64_t)known, " rho #") || answer_add(answer, "", "covered", (double)known, 0, " covered #") ||
                   answer_add(answer, "", "total", (double)count, 0, "/#")
               ? -1 : 0;
}

/* ---- analogies ---- */

struct question {
    int64_t word[4]; /* "a is to b as c is to d": first the numbers of the words' names; later the words' rows */
    uint64_t section;
};

/* A file of analogies. */
struct asking {
    struct names names;
    struct question *questions;
    uint64_t count, capacity;
    struct analogies_section *sections;
    uint64_t section_count, section_capacity;
    struct search search;
};

/* Begins a section. A name such as "gram1-adjective-to-adverb" means that its questions are about grammar. */
static int begin_section(struct asking *asking, const char *name, uint64_t length) {
    if (mem_grow(&asking->sections, &asking->section_capacity, asking->section_count + 1, sizeof *asking->sections, "analogies"))
        return -1;
    struct analogies_section *section = &asking->sections[asking->section_count];
    *section = (struct analogies_section){.name = mem_text(name, length, "analogies"),
                                          .syntactic = length >= 4 && !memcmp(name, "gram", 4)};
    asking->section_count += section->name != NULL;
    return section->name ? 0 : -1;
}

static int read_questions(struct asking *asking, struct lines *lines) {
    struct token token, words[4];
    if (begin_section(asking, "", 0)) return -1;
    while (lines_next(lines)) {
        int n = 0;
        if (lines->line < lines->stop && *lines->line == ':') {
            token = (struct token){"", 0};
            lines->line++;
            lines_token(lines, &token);
            if (begin_section(asking, token.text, token.length)) return -1;
            continue;
        }
        while (n < 4 && lines_token(lines, &token)) words[n++] = token;
        if (n < 4) continue;
        if (mem_grow(&asking->questions, &asking->capacity, asking->count + 1, sizeof *asking->questions, "analogies")) return -1;
        struct question *question = &asking->questions[asking->count++];
        question->section = asking->section_count - 1;
        asking->sections[question->section].total++;
        for (int i = 0; i < 4; i++)
            if ((question->word[i] = names_add_lower(&asking->names, words[i].text, words[i].length)) < 0) return -1;
    }
    return 0;
}

/* Removes questions with a word that has no row, and replaces numbers of names by rows. Returns how many questions are left. */
static uint64_t keep_known(struct question *questions, uint64_t count, const struct names *names) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct question question = questions[i];
        int known = 1;
        for (int j = 0; j < 4; j++) {
            question.word[j] = names->row[question.word[j]];
            known &= question.word[j] >= 0;
        }
        if (known) questions[kept++] = question;
    }
    return kept;
}

static int fill_question(void *user, uint64_t i, float *query, struct search_block *block) {
    const struct asking *asking = user;
    const int64_t *word = asking->questions[i].word;
    const uint32_t rows[3] = {(uint32_t)word[0], (uint32_t)word[1], (uint32_t)word[2]};
    uint32_t banned[3];
    int64_t excluded = search_analogy(&asking->search, rows, NULL, query, banned);
    return excluded < 0 ? -1 : search_ban(block, banned, (uint64_t)excluded);
}

static int take_analogy(void *user, uint64_t i, const struct search_found *found) {
    const struct asking *asking = user;
    struct analogies_section *section = &asking->sections[asking->questions[i].section];
    section->covered++;
    section->right += (int64_t)found->ids[0] == asking->questions[i].word[3];
    return 0;
}

int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model,
                                enum model_view view, const char *path, uint64_t restrict_rows, const struct config *config) {
    static const struct search_calls calls = {.fill = fill_question, .take = take_analogy};
    struct asking asking = {.count = 0};
    struct lines lines;
    uint64_t items = model_items(model), rows = restrict_rows && restrict_rows < items ? restrict_rows : items;
    OWNED char *text = lines_open(&lines, path);
    int result = !text || read_questions(&asking, &lines) || names_locate(&asking.names, model, rows) ? -1 : 0;
    uint64_t known = result ? 0 : keep_known(asking.questions, asking.count, &asking.names);
    if (!result && !asking.count)
        result = fail("'%s' has no line of four words with blanks or tabs between", path);
    else if (!result && !known)
        result = fail("none of the %" PRIu64 " analogies of '%s' has its four words among the %" PRIu64 " most frequent of '%s'",
                      asking.count, path, rows, model->directory);
    if (!result)
        result = search_open(&asking.search, model, view, METRIC_COSINE, rows, config) ||
                         search_each(&asking.search, known, 1, &calls, &asking)
                     ? -1 : 0;
    search_close(&asking.search);
    *sections = asking.sections;
    *count = asking.section_count;
    free(asking.questions);
    names_release(&asking.names);
    return result;
}

void analogies_sections_free(struct analogies_section *sections, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) free(sections[i].name);
    free(sections);
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

int evaluate_analogies(struct answer *answer, const struct model *model, const struct evaluate_request *request,
                       const struct config *config) {
    struct analogies_section *sections;
    uint64_t count, total = 0, asked[2] = {0, 0}, right[2] = {0, 0};
    int result = evaluate_analogies_sections(&sections, &count, model, request->view, request->path, request->options.first, config);
    for (uint64_t i = 0; i < count; i++) {
        total += sections[i].total;
        asked[sections[i].syntactic] += sections[i].covered;
        right[sections[i].syntactic] += sections[i].right;
    }
    analogies_sections_free(sections, count);
    uint64_t covered = asked[0] + asked[1];
    int both = asked[0] && asked[1];
    if (!result)
        result = answer_add(answer, "", "accuracy", share(right[0] + right[1], covered), covered, " accuracy #") ||
                         answer_add(answer, "", "semantic", share(right[0], asked[0]), asked[0], "%s", both ? " semantic #" : "") ||
                         answer_add(answer, "", "syntactic", share(right[1], asked[1]), asked[1], "%s", both ? " syntactic #" : "") ||
                         answer_add(answer, "", "covered", (double)covered, 0, " covered #") ||
                         answer_add(answer, "", "total", (double)total, 0, "/#")
                     ? -1 : 0;
    return result;
}

/* ---- groups ---- */

enum { GROUPS_MOST = 8, GROUPS_SAMPLE = 2000 }; /* most columns of groups in a file; rows that are judged if sample = 0 */

/* A column of groups. */
struct column {
    struct names labels;
    uint32_t *group; /* [rows] number of the row's label, plus 1; 0: it has none in this column */
    uint64_t *size;  /* [labels] number of searched rows with this label */
    double share, chance; /* sums over the judged rows whose group contains another row */
    uint64_t asked;
};

struct groups_job {
    const struct sptx_evaluate_options *options;
    const struct model *model;
    const char *path;
    struct search search;
    uint64_t rows; /* number of rows that are searched: up to the last row that occurs `met` times in the corpus */
    int columns;
    struct column column[GROUPS_MOST];
    uint32_t *asked;              /* rows whose nearest rows are searched */
};

static int take_groups(struct field_file *file, struct groups_job *job) {
    int columns = (int)file->line.count - 1;
    if (!job->columns && (columns < 1 || columns > GROUPS_MOST))
        return fail("'%s': the first line has %d groups behind its word; wanted 1 to %d", job->path, columns, GROUPS_MOST);
    for (int first = !job->columns; first && job->columns < columns; job->columns++)
        if (!(job->column[job->columns].group = mem_zalloc(job->rows, sizeof(uint32_t), "the groups of rows"))) return -1;
    if (columns != job->columns)
        return fail("'%s' line %" PRIu64 " has %d groups behind its word, the first line %d", job->path, file->number, columns,
                    job->columns);
    int64_t row = vocab_find(&job->model->vocab, file->line.word[0], file->line.length[0]);
    for (int column = 0; column < columns && row >= 0 && (uint64_t)row < job->rows; column++) {
        int64_t number = names_add(&job->column[column].labels, file->line.word[column + 1], file->line.length[column + 1]);
        if (number < 0) return -1;
        job->column[column].group[row] = (uint32_t)number + 1;
    }
    return 0;
}

static int count_members(struct groups_job *job) {
    for (struct column *column = job->column; column < job->column + job->columns; column++) {
        column->size = mem_zalloc(column->labels.words.size + 1, sizeof *column->size, "the sizes of groups");
        if (!column->size) return -1;
        for (uint64_t row = 0; row < job->rows; row++)
            if (column->group[row]) column->size[column->group[row] - 1]++;
    }
    return 0;
}

/* Chooses the rows to judge: the first `sample` suitable rows of a fixed random order. *all: number of suitable rows. */
static int choose_rows(struct groups_job *job, uint64_t *asked, uint64_t *all) {
    uint64_t sample = job->options->sample ? job->options->sample : GROUPS_SAMPLE, most = sample < job->rows ? sample : job->rows;
    struct shuffle order = shuffle_make(job->rows, draw_at(1, DRAW_SHUFFLE, 0, 0, 0));
    job->asked = mem_alloc(most, sizeof *job->asked, "the rows asked");
    if (!job->asked) return -1;
    for (uint64_t i = *asked = *all = 0; i < job->rows; i++) {
        uint64_t row = shuffle_at(&order, i);
        if (vocab_count(&job->model->vocab, row) < job->options->met || !job->column[0].group[row]) continue;
        if (*asked < most) job->asked[(*asked)++] = (uint32_t)row;
        ++*all;
    }
    if (!*asked)
        return fail("no word that the corpus names %" PRIu64 " times or more stands in '%s'", job->options->met, job->path);
    return 0;
}

static int fill_row(void *user, uint64_t i, float *query, struct search_block *block) {
    const struct groups_job *job = user;
    memcpy(query, job->search.base + (uint64_t)job->asked[i] * job->search.dim, job->search.dim * sizeof *query);
    return search_ban(block, &job->asked[i], 1); /* the row itself is not one of its nearest rows */
}

/* Judges the nearest rows of one query row, and adds the result to the sums of each column of labels in which another row has the query's label. */
static int score_groups(void *user, uint64_t asked, const struct search_found *found) {
    struct groups_job *job = user;
    uint32_t k = (uint32_t)job->options->k, row = job->asked[asked];
    for (struct column *column = job->column; column < job->column + job->columns; column++) {
        const uint32_t *group = column->group;
        uint64_t others = group[row] ? column->size[group[row] - 1] - 1 : 0, hits = 0;
        double possible = fmin(k, (double)others);
        if (!others) continue;
        for (uint32_t i = 0; i < k; i++) hits += found->ids[i] != DRAW_NONE && group[found->ids[i]] == group[row];
        column->share += (double)hits / possible;
        column->chance += fmin(k, (double)(job->rows - 1)) * (double)others / (double)(job->rows - 1) / possible;
        column->asked++;
    }
    return 0;
}

/* Adds each column's numbers. Fails if no judged row shares a group with another row. rows: how many rows of the file could have been judged. */
static int add_columns(const struct groups_job *job, struct answer *answer, uint64_t rows) {
    uint64_t all = 0;
    for (int i = 0; i < job->columns; i++) {
        const struct column *column = &job->column[i];
        double asked = column->asked ? (double)column->asked : NAN;
        char part[16];
        snprintf(part, sizeof part, "%d", i + 1);
        all += column->asked;
        if (answer_add(answer, part, "share", column->share / asked, column->asked, " column %d share@%" PRIu64 " #", i + 1,
                       job->options->k) ||
            answer_add(answer, part, "chance", column->chance / asked, column->asked, " chance #") ||
            answer_add(answer, part, "asked", (double)column->asked, 0, " asked #") ||
            answer_add(answer, part, "rows", (double)rows, 0, "/#"))
            return -1;
    }
    return all ? 0 : fail("no row of '%s' that was asked has another one in its group", job->path);
}

static int judge_groups(struct groups_job *job, struct field_file *file, struct answer *answer, enum model_view view,
                        const struct config *config) {
    static const struct search_calls calls = {.fill = fill_row, .take = score_groups};
    uint64_t asked, all;
    int more = 0, result = field_file_open(file, job->path, LOOK_LABELS);
    if (!result && !job->rows)
        return fail("no word of '%s' is named %" PRIu64 " times or more by its corpus", job->model->directory, job->options->met);
    while (!result && (more = field_file_next(file)) > 0) result = take_groups(file, job);
    if (result || more) return -1;
    if (!job->columns) return fail("'%s' has no line: wanted a word and its groups on each", job->path);
    return count_members(job) || choose_rows(job, &asked, &all) ||
                   search_open(&job->search, job->model, view, METRIC_COSINE, job->rows, config) ||
                   search_each(&job->search, asked, (uint32_t)job->options->k, &calls, job) ||
                   add_columns(job, answer, all)
               ? -1 : 0;
}

int evaluate_groups(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    struct groups_job job = {.options = &request->options, .model = model, .path = request->path, .rows = model_items(model)};
    struct field_file file;
    while (job.rows && vocab_count(&model->vocab, job.rows - 1) < job.options->met) job.rows--;
    int result = judge_groups(&job, &file, answer, request->view, config);
    field_file_close(&file);
    for (struct column *column = job.column; column < job.column + GROUPS_MOST; column++) {
        names_release(&column->labels);
        mem_free(column->group, column->size);
    }
    free(job.asked);
    search_close(&job.search);
    return result;
}
