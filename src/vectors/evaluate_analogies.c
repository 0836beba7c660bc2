#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct question {
    int64_t word[4]; /* "a is to b as c is to d": first the index of each word's name; later the word's row */
    uint64_t section;
};

/* A file of analogies while it is read. */
struct asking {
    struct names names;
    struct question *questions;
    uint64_t count, capacity;
    struct analogies_section *sections;
    uint64_t section_count, section_capacity;
};

/* Begins a section. A name such as "gram1-adjective-to-adverb" makes it syntactic. */
static int begin_section(struct asking *asking, const char *name, uint64_t length) {
    if (mem_grow(&asking->sections, &asking->section_capacity, asking->section_count + 1, sizeof *asking->sections, "analogies"))
        return -1;
    struct analogies_section *section = &asking->sections[asking->section_count];
    *section = (struct analogies_section){.name = mem_text(name, length, "analogies"),
                                          .syntactic = length >= 4 && !memcmp(name, "gram", 4)};
    asking->section_count += section->name != NULL;
    return section->name ? 0 : -1;
}

static int read_section(struct asking *asking, struct lines *lines) {
    struct token name = {"", 0};
    lines->line++;
    lines_token(lines, &name);
    return begin_section(asking, name.text, name.length);
}

static int read_questions(struct asking *asking, struct lines *lines) {
    struct token token, words[4];
    if (begin_section(asking, "", 0)) return -1;
    while (lines_next(lines)) {
        int n = 0;
        if (lines->line < lines->stop && *lines->line == ':') {
            if (read_section(asking, lines)) return -1;
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

/* Drops questions that have a word without a row, and replaces name numbers by rows. Returns the number of questions kept. */
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

static int ask_questions(struct search *search, struct search_block *block, const struct question *questions, uint64_t count) {
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

/* Fails with the reason why no question could be judged. */
static int refuse_questions(uint64_t total, const struct model *model, const char *path, uint64_t rows) {
    if (!total) return fail("'%s' has no line of four words with blanks or tabs between", path);
    return fail("none of the %" PRIu64 " analogies of '%s' has its four words among the %" PRIu64 " most frequent of '%s'", total,
                path, rows, model->directory);
}

static int ask_all(struct asking *asking, uint64_t known, const struct model *model, enum model_view view, uint64_t rows,
                   const struct config *config) {
    struct search search = {.rows = 0};
    struct search_block block = {.rows = 0};
    int result =
        search_open(&search, model, view, METRIC_COSINE, rows, config) || search_block_init(&block, model->dim, 1, known) ? -1 : 0;
    for (uint64_t first = 0; !result && first < known; first += block.rows) {
        uint64_t n = known - first < block.rows ? known - first : block.rows;
        result = ask_questions(&search, &block, asking->questions + first, n);
        for (uint64_t i = 0; !result && i < n; i++) {
            const struct question *question = &asking->questions[first + i];
            asking->sections[question->section].covered++;
            asking->sections[question->section].right += (int64_t)block.ids[i] == question->word[3];
        }
    }
    search_block_release(&block);
    search_close(&search);
    return result;
}

int evaluate_analogies_sections(struct analogies_section **sections, uint64_t *count, const struct model *model,
                                enum model_view view, const char *path, uint64_t restrict_rows, const struct config *config) {
    struct asking asking = {.count = 0};
    struct lines lines;
    uint64_t items = model_items(model), rows = restrict_rows && restrict_rows < items ? restrict_rows : items;
    char *text = lines_open(&lines, path);
    int result = !text || read_questions(&asking, &lines) || names_locate(&asking.names, model, rows) ? -1 : 0;
    uint64_t known = result ? 0 : keep_known(asking.questions, asking.count, &asking.names);
    if (!result)
        result = known ? ask_all(&asking, known, model, view, rows, config) : refuse_questions(asking.count, model, path, rows);
    *sections = asking.sections;
    *count = asking.section_count;
    free(text);
    free(asking.questions);
    names_release(&asking.names);
    return result;
}

void analogies_sections_free(struct analogies_section *sections, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) free(sections[i].name);
    free(sections);
}

int evaluate_analogies(struct sptx_analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config) {
    struct analogies_section *sections;
    uint64_t count, asked[2] = {0, 0}, right[2] = {0, 0};
    *score = (struct sptx_analogies_score){.accuracy = NAN, .semantic = NAN, .syntactic = NAN};
    int result = evaluate_analogies_sections(&sections, &count, model, view, path, restrict_rows, config);
    for (uint64_t i = 0; i < count; i++) {
        score->total += sections[i].total;
        asked[sections[i].syntactic] += sections[i].covered;
        right[sections[i].syntactic] += sections[i].right;
    }
    score->covered = asked[0] + asked[1];
    score->accuracy = share(right[0] + right[1], score->covered);
    score->semantic = share(right[0], asked[0]);
    score->syntactic = share(right[1], asked[1]);
    analogies_sections_free(sections, count);
    return result;
}
