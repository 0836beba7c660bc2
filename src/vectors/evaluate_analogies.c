#include "evaluate.h"

#include "lines.h"
#include "names.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct question {
    int64_t word[4]; /* first numbers of names, then rows: a is to b as c is to d */
    int syntactic;
};

/* Sections such as ": gram1-adjective-to-adverb" are syntactic. */
static int is_syntactic(struct lines section) {
    struct token name;
    section.line++;
    return lines_token(&section, &name) && name.length >= 4 && !memcmp(name.text, "gram", 4);
}

static int read_questions(struct lines *lines, struct names *names, struct question **questions, uint64_t *count) {
    struct token token;
    uint64_t capacity = 0;
    int syntactic = 0;
    while (lines_next(lines)) {
        if (lines->line < lines->stop && *lines->line == ':') {
            syntactic = is_syntactic(*lines);
            continue;
        }
        struct token words[4];
        int n = 0;
        while (n < 4 && lines_token(lines, &token)) words[n++] = token;
        if (n < 4) continue;
        if (mem_grow(questions, &capacity, *count + 1, sizeof **questions, "analogies")) return -1;
        struct question *question = &(*questions)[(*count)++];
        question->syntactic = syntactic;
        for (int i = 0; i < 4; i++)
            if ((question->word[i] = names_add_lower(names, words[i].text, words[i].length)) < 0) return -1;
    }
    return 0;
}

/* Keeps the questions whose four words have a row, and puts the rows in the names' place. */
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

static int ask_questions(struct search *search, struct search_block *block, const struct question *questions,
                         uint64_t count) {
    if (mem_grow(&block->banned, &block->banned_capacity, 3 * count, sizeof *block->banned, "queries")) return -1;
    block->banned_starts[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        const int64_t *word = questions[i].word;
        uint32_t rows[3] = {(uint32_t)word[0], (uint32_t)word[1], (uint32_t)word[2]};
        uint64_t at = block->banned_starts[i];
        int64_t excluded = search_analogy(search, rows, NULL, block->queries + i * search->dim, block->banned + at);
        if (excluded < 0) return -1;
        block->banned_starts[i + 1] = at + (uint64_t)excluded;
    }
    return search_top(search, block->queries, count, 1, block->banned_starts, block->banned, block->ids, block->scores);
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

/* Says why there is no accuracy. */
static int refuse_questions(const struct analogies_score *score, const struct model *model, const char *path,
                            uint64_t rows) {
    if (!score->total) return fail("'%s' has no line of four words with blanks or tabs between", path);
    return fail("none of the %" PRIu64 " analogies of '%s' has its four words among the %" PRIu64
                " most frequent of '%s'",
                score->total, path, rows, model->directory);
}

int evaluate_analogies(struct analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config) {
    struct lines lines;
    struct names names = {.capacity = 0};
    struct question *questions = NULL;
    struct search search = {.rows = 0};
    struct search_block block = {.rows = 0};
    uint64_t count = 0, asked[2] = {0, 0}, right[2] = {0, 0};
    int result = -1;
    *score = (struct analogies_score){.accuracy = NAN, .semantic = NAN, .syntactic = NAN};
    uint64_t items = model_items(model), rows = restrict_rows && restrict_rows < items ? restrict_rows : items;
    char *text = lines_open(&lines, path);
    if (!text || read_questions(&lines, &names, &questions, &count) || names_locate(&names, model, rows)) goto out;
    uint64_t known = keep_known(questions, count, &names);
    score->covered = known;
    score->total = count;
    if (!known) {
        refuse_questions(score, model, path, rows);
        goto out;
    }
    if (search_open(&search, model, view, METRIC_COSINE, rows, config)) goto out;
    if (search_block_init(&block, model->dim, 1, known)) goto out;
    for (uint64_t first = 0; first < known; first += block.rows) {
        uint64_t n = known - first < block.rows ? known - first : block.rows;
        if (ask_questions(&search, &block, questions + first, n)) goto out;
        for (uint64_t i = 0; i < n; i++) {
            int part = questions[first + i].syntactic;
            asked[part]++;
            right[part] += (int64_t)block.ids[i] == questions[first + i].word[3];
        }
    }
    score->accuracy = share(right[0] + right[1], known);
    score->semantic = share(right[0], asked[0]);
    score->syntactic = share(right[1], asked[1]);
    result = 0;
out:
    free(text);
    free(questions);
    names_release(&names);
    search_block_release(&block);
    search_close(&search);
    return result;
}
