#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK_BYTES = 32 << 20 }; /* of queries in one search */

/* ---- lines and tokens of a file in memory ---- */

struct lines {
    char *at, *end;
    char *line, *stop; /* what is left of the current line */
    uint64_t number;
};

/* The next line; LF, CR and CRLF end one. 0 at the end. */
static int next_line(struct lines *lines) {
    if (lines->at == lines->end) return 0;
    char *stop = lines->at;
    while (stop < lines->end && *stop != '\n' && *stop != '\r') stop++;
    lines->line = lines->at;
    lines->stop = stop;
    if (stop < lines->end) stop += stop + 1 < lines->end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1;
    lines->at = stop;
    lines->number++;
    return 1;
}

static int is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\v' || byte == '\f';
}

struct token {
    char *text; /* in the file's copy */
    uint64_t length;
};

/* The next token of the current line. 0 at its end. */
static int next_token(struct lines *lines, struct token *token) {
    while (lines->line < lines->stop && is_blank(*lines->line)) lines->line++;
    token->text = lines->line;
    while (lines->line < lines->stop && !is_blank(*lines->line)) lines->line++;
    token->length = (uint64_t)(lines->line - token->text);
    return token->length > 0;
}

static char *open_lines(struct lines *lines, const char *path) {
    uint64_t length = 0;
    char *text = file_read_given(path, mem_available(), &length);
    *lines = (struct lines){.at = text, .end = text ? text + length : NULL};
    return text;
}

/* Only ASCII letters have another case here: bytes of UTF-8 stay as they are. */
static void copy_lower(char *to, const char *from, uint64_t length) {
    for (uint64_t i = 0; i < length; i++) to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
}

/* ---- a set of names, numbered in the order met; the texts stay in the file's copy ---- */

struct name {
    const char *text;
    uint64_t length;
    int64_t row; /* of the model, or -1 */
};

struct names {
    struct name *name;
    uint64_t count, room;
    uint64_t *slots; /* [slot_count], a power of two: number + 1, or 0 */
    uint64_t slot_count;
};

static void names_release(struct names *names) {
    free(names->name);
    free(names->slots);
    *names = (struct names){NULL, 0, 0, NULL, 0};
}

/* The slot that holds this text, or the empty one where it would go. */
static uint64_t *find_slot(const struct names *names, const char *text, uint64_t length) {
    uint64_t at = XXH64(text, length, 0) & (names->slot_count - 1);
    for (;; at = (at + 1) & (names->slot_count - 1)) {
        const struct name *name = names->slots[at] ? &names->name[names->slots[at] - 1] : NULL;
        if (!name || (name->length == length && !memcmp(name->text, text, length))) return &names->slots[at];
    }
}

static int grow_slots(struct names *names) {
    uint64_t count = names->slot_count ? names->slot_count * 2 : 1024;
    uint64_t *slots = mem_zalloc(count, sizeof *slots, "the names of a file");
    if (!slots) return -1;
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
    for (uint64_t i = 0; i < names->count; i++) *find_slot(names, names->name[i].text, names->name[i].length) = i + 1;
    return 0;
}

/* The number of a name, or -1 where it is not there. */
static int64_t names_find(const struct names *names, struct token token) {
    return names->slot_count ? (int64_t)*find_slot(names, token.text, token.length) - 1 : -1;
}

/* The number of a name that is added where it is new; -1 after fail(). */
static int64_t names_add(struct names *names, struct token token) {
    if (names->count * 2 >= names->slot_count && grow_slots(names)) return -1;
    uint64_t *slot = find_slot(names, token.text, token.length);
    if (!*slot) {
        if (mem_grow(&names->name, &names->room, names->count + 1, sizeof *names->name, "the names of a file"))
            return -1;
        names->name[names->count++] = (struct name){token.text, token.length, -1};
        *slot = names->count;
    }
    return (int64_t)*slot - 1;
}

static int64_t names_add_lower(struct names *names, struct token token) {
    copy_lower(token.text, token.text, token.length);
    return names_add(names, token);
}

/* Gives every name the first of the first `rows` rows whose word, in lower case, it is. One pass over the vocabulary
 * and no copy of it: a file of questions has few words. */
static int names_locate(struct names *names, const struct model *model, uint64_t rows) {
    uint64_t longest = 0, length;
    for (uint64_t i = 0; i < names->count; i++)
        if (names->name[i].length > longest) longest = names->name[i].length;
    char *lower = mem_alloc(longest, 1, "a word");
    if (!lower) return -1;
    for (uint64_t row = 0; row < rows; row++) {
        const char *word = vocab_word(&model->vocab, row, &length);
        if (length > longest) continue;
        copy_lower(lower, word, length);
        int64_t at = names_find(names, (struct token){lower, length});
        if (at >= 0 && names->name[at].row < 0) names->name[at].row = (int64_t)row;
    }
    free(lower);
    return 0;
}

/* ---- pairs ---- */

struct pair {
    uint64_t line;
    int64_t a, b;      /* numbers of names */
    const char *score; /* ended by a NUL */
};

struct value {
    double value;
    uint64_t place;
};

static int by_value(const void *a, const void *b) {
    double x = ((const struct value *)a)->value, y = ((const struct value *)b)->value;
    return x < y ? -1 : x > y;
}

/* Ranks from 0; equal values share the mean of theirs. `values` is sorted. */
static void rank(struct value *values, uint64_t count, double *ranks) {
    qsort(values, count, sizeof *values, by_value);
    for (uint64_t i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && values[j].value == values[i].value;) j++;
        for (uint64_t same = i; same < j; same++) ranks[values[same].place] = (double)(i + j - 1) / 2;
    }
}

/* Pearson's correlation; NaN where a side does not vary. */
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

/* Rounded to float32, so that pairs whose cosines differ in rounding only are ties. */
static double cosine(const float *a, const float *b, uint32_t dim) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < dim; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return (float)(ab / (fmax(sqrt(aa), 1e-12) * fmax(sqrt(bb), 1e-12)));
}

/* Lines of a word, a word and more are pairs; others are passed over. */
static int read_pairs(struct lines *lines, struct names *names, struct pair **pairs, uint64_t *count) {
    struct token a, b, score;
    uint64_t room = 0;
    while (next_line(lines)) {
        if (!next_token(lines, &a) || !next_token(lines, &b) || !next_token(lines, &score)) continue;
        if (mem_grow(pairs, &room, *count + 1, sizeof **pairs, "pairs of words")) return -1;
        struct pair *pair = &(*pairs)[(*count)++];
        score.text[score.length] = 0; /* a blank, the line's end or the NUL behind the file */
        *pair = (struct pair){lines->number, names_add_lower(names, a), names_add_lower(names, b), score.text};
        if (pair->a < 0 || pair->b < 0) return -1;
    }
    return 0;
}

/* Scores and cosines of the pairs whose words are known; how many, or -1. */
static int64_t compare_pairs(const struct model *model, enum model_view view, const struct names *names,
                             const struct pair *pairs, uint64_t count, struct value *golds, struct value *cosines,
                             const char *path) {
    float *rows = mem_alloc(2, model->dim * sizeof *rows, "two rows");
    int64_t known = rows ? 0 : -1;
    for (uint64_t i = 0; known >= 0 && i < count; i++) {
        const struct name *a = &names->name[pairs[i].a], *b = &names->name[pairs[i].b];
        double gold;
        if (a->row < 0 || b->row < 0) continue;
        if (text_real(pairs[i].score, &gold)) {
            known = fail("'%s' line %" PRIu64 ": '%s' is not a score", path, pairs[i].line, pairs[i].score);
            break;
        }
        model_rows(model, view, (uint64_t)a->row, 1, rows);
        model_rows(model, view, (uint64_t)b->row, 1, rows + model->dim);
        double near = cosine(rows, rows + model->dim, model->dim);
        if (!isfinite(near)) {
            known = fail("the vector of '%.*s' or of '%.*s' in '%s' holds NaN or infinity", (int)a->length, a->text,
                         (int)b->length, b->text, model->directory);
            break;
        }
        golds[known] = (struct value){gold, (uint64_t)known};
        cosines[known] = (struct value){near, (uint64_t)known};
        known++;
    }
    free(rows);
    return known;
}

int evaluate_pairs(struct pairs_score *score, const struct model *model, enum model_view view, const char *path) {
    struct lines lines;
    struct names names = {NULL, 0, 0, NULL, 0};
    struct pair *pairs = NULL;
    struct value *golds = NULL, *cosines = NULL;
    double *gold_ranks = NULL, *ranks = NULL;
    uint64_t count = 0;
    int result = -1;
    *score = (struct pairs_score){.rho = NAN};
    char *text = open_lines(&lines, path);
    if (!text || read_pairs(&lines, &names, &pairs, &count) || names_locate(&names, model, model->rows)) goto out;
    golds = mem_alloc(count, sizeof *golds, "scores of pairs");
    cosines = mem_alloc(count, sizeof *cosines, "scores of pairs");
    gold_ranks = mem_alloc(count, sizeof *gold_ranks, "ranks of pairs");
    ranks = mem_alloc(count, sizeof *ranks, "ranks of pairs");
    if (!golds || !cosines || !gold_ranks || !ranks) goto out;
    int64_t known = compare_pairs(model, view, &names, pairs, count, golds, cosines, path);
    if (known < 0) goto out;
    rank(golds, (uint64_t)known, gold_ranks);
    rank(cosines, (uint64_t)known, ranks);
    *score =
        (struct pairs_score){known ? correlation(gold_ranks, ranks, (uint64_t)known) : NAN, (uint64_t)known, count};
    result = 0;
out:
    free(text);
    free(pairs);
    free(golds);
    free(cosines);
    free(gold_ranks);
    free(ranks);
    names_release(&names);
    return result;
}

/* ---- analogies ---- */

struct question {
    int64_t word[4]; /* numbers of names, then rows: a is to b as c is to d */
    int syntactic;
};

/* ": gram1-adjective-to-adverb" and its like are syntactic. */
static int is_syntactic(const struct lines *lines) {
    const char *at = lines->line + 1;
    while (at < lines->stop && is_blank(*at)) at++;
    return lines->stop - at >= 4 && !memcmp(at, "gram", 4);
}

static int read_questions(struct lines *lines, struct names *names, struct question **questions, uint64_t *count) {
    struct token token;
    uint64_t room = 0;
    int syntactic = 0;
    while (next_line(lines)) {
        if (lines->line < lines->stop && *lines->line == ':') {
            syntactic = is_syntactic(lines);
            continue;
        }
        struct token words[4];
        int n = 0;
        while (n < 4 && next_token(lines, &token)) words[n++] = token;
        if (n < 4) continue;
        if (mem_grow(questions, &room, *count + 1, sizeof **questions, "analogies")) return -1;
        struct question *question = &(*questions)[(*count)++];
        question->syntactic = syntactic;
        for (int i = 0; i < 4; i++)
            if ((question->word[i] = names_add_lower(names, words[i])) < 0) return -1;
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
            question.word[j] = names->name[question.word[j]].row;
            known &= question.word[j] >= 0;
        }
        if (known) questions[kept++] = question;
    }
    return kept;
}

/* What one search takes and gives, with room for `rows` queries of `dim` columns. */
struct block {
    float *queries;
    uint64_t *banned_starts;
    uint32_t *banned;
    uint64_t banned_room;
    uint32_t *ids;
    float *scores;
    uint64_t rows;
};

static int block_init(struct block *block, uint32_t dim, uint32_t k, uint64_t wanted) {
    uint64_t rows = BLOCK_BYTES / (dim * sizeof(float)) + 1;
    if (rows > wanted) rows = wanted;
    *block = (struct block){.rows = rows};
    block->queries = mem_aligned(rows, dim * sizeof(float), "queries");
    block->banned_starts = mem_alloc(rows + 1, sizeof *block->banned_starts, "queries");
    block->ids = mem_alloc(rows, k * sizeof *block->ids, "answers");
    block->scores = mem_alloc(rows, k * sizeof *block->scores, "answers");
    return block->queries && block->banned_starts && block->ids && block->scores ? 0 : -1;
}

static void block_release(struct block *block) {
    free(block->queries);
    free(block->banned_starts);
    free(block->banned);
    free(block->ids);
    free(block->scores);
    *block = (struct block){.rows = 0};
}

/* b - a + c of unit rows, a, b and c themselves left out. */
static int ask_questions(struct search *search, struct block *block, const struct question *questions, uint64_t count) {
    uint32_t dim = search->dim;
    if (mem_grow(&block->banned, &block->banned_room, 3 * count, sizeof *block->banned, "queries")) return -1;
    block->banned_starts[0] = 0;
    for (uint64_t i = 0; i < count; i++) {
        const float *row[3];
        uint32_t *own = block->banned + block->banned_starts[i];
        for (int j = 0; j < 3; j++) {
            own[j] = (uint32_t)questions[i].word[j];
            row[j] = search->base + (uint64_t)questions[i].word[j] * dim;
        }
        for (uint32_t column = 0; column < dim; column++)
            block->queries[i * dim + column] = row[1][column] - row[0][column] + row[2][column];
        block->banned_starts[i + 1] = block->banned_starts[i] + search_distinct(own, 3);
    }
    return search_top(search, block->queries, count, 1, block->banned_starts, block->banned, block->ids, block->scores);
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

int evaluate_analogies(struct analogies_score *score, const struct model *model, enum model_view view, const char *path,
                       uint64_t restrict_rows, const struct config *config) {
    struct lines lines;
    struct names names = {NULL, 0, 0, NULL, 0};
    struct question *questions = NULL;
    struct search search = {.rows = 0};
    struct block block = {.rows = 0};
    uint64_t count = 0, asked[2] = {0, 0}, right[2] = {0, 0};
    int result = -1;
    *score = (struct analogies_score){.accuracy = NAN, .semantic = NAN, .syntactic = NAN};
    uint64_t rows = restrict_rows && restrict_rows < model->rows ? restrict_rows : model->rows;
    char *text = open_lines(&lines, path);
    if (!text || read_questions(&lines, &names, &questions, &count) || names_locate(&names, model, rows)) goto out;
    uint64_t known = keep_known(questions, count, &names);
    score->covered = known;
    score->total = count;
    if (known) {
        if (search_open(&search, model, view, METRIC_COSINE, rows, config)) goto out;
        if (block_init(&block, model->dim, 1, known)) goto out;
    }
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
    block_release(&block);
    search_close(&search);
    return result;
}

/* ---- lists ---- */

/* Items in the order met, each with its list; then list by list. */
struct items {
    struct item {
        uint64_t list, code; /* code: a row, or rows + the number of an unknown item */
    } * item;
    uint64_t count, room;
    uint64_t *starts; /* [lists + 1] into codes */
    uint64_t *codes;
};

static void items_release(struct items *items) {
    free(items->item);
    free(items->starts);
    free(items->codes);
    *items = (struct items){.count = 0};
}

static int items_add(struct items *items, uint64_t list, uint64_t code) {
    if (mem_grow(&items->item, &items->room, items->count + 1, sizeof *items->item, "items of lists")) return -1;
    items->item[items->count++] = (struct item){list, code};
    return 0;
}

/* Brings the items of each list together, their order kept. */
static int items_group(struct items *items, uint64_t lists) {
    items->starts = mem_zalloc(lists + 2, sizeof *items->starts, "items of lists");
    items->codes = mem_alloc(items->count, sizeof *items->codes, "items of lists");
    if (!items->starts || !items->codes) return -1;
    for (uint64_t i = 0; i < items->count; i++) items->starts[items->item[i].list + 2]++;
    for (uint64_t list = 0; list < lists; list++) items->starts[list + 2] += items->starts[list + 1];
    for (uint64_t i = 0; i < items->count; i++)
        items->codes[items->starts[items->item[i].list + 1]++] = items->item[i].code;
    return 0;
}

/* Every list of the file, one that comes twice continued; items that the model does not know are told apart by
 * `unknown`. */
static int read_held_out(struct lines *lines, const struct model *model, struct names *lists, struct names *unknown,
                         struct items *items) {
    struct token token;
    while (next_line(lines)) {
        if (!next_token(lines, &token)) continue;
        int64_t list = names_add(lists, token);
        if (list < 0) return -1;
        while (next_token(lines, &token)) {
            int64_t row = vocab_find(&model->vocab, token.text, token.length);
            int64_t number = row < 0 ? names_add(unknown, token) : 0;
            if (number < 0) return -1;
            if (items_add(items, (uint64_t)list, row < 0 ? model->rows + (uint64_t)number : (uint64_t)row)) return -1;
        }
    }
    return 0;
}

/* The known items of those lists that have held-out ones; a list that is there gets row 0 in its name as a mark. */
static int read_train(struct lines *lines, const struct model *model, struct names *lists, struct items *items) {
    struct token token;
    while (next_line(lines)) {
        if (!next_token(lines, &token)) continue;
        int64_t list = names_find(lists, token);
        if (list < 0) continue;
        lists->name[list].row = 0;
        while (next_token(lines, &token)) {
            int64_t row = vocab_find(&model->vocab, token.text, token.length);
            if (row >= 0 && items_add(items, (uint64_t)list, (uint64_t)row)) return -1;
        }
    }
    return 0;
}

struct lists_job {
    struct search search;
    struct block block;
    struct items train, held_out;
    uint64_t *scored; /* the lists that count */
    double *gains;    /* [k] of a hit at each place */
    uint32_t k;
};

/* The mean of a list's unit rows (zeros where none is known) as a query that may not find them again. */
static int ask_list(struct lists_job *job, uint64_t place, uint64_t list) {
    uint32_t dim = job->search.dim;
    float *query = job->block.queries + place * dim;
    const uint64_t *codes = job->train.codes + job->train.starts[list];
    uint64_t count = job->train.starts[list + 1] - job->train.starts[list], from = job->block.banned_starts[place];
    if (mem_grow(&job->block.banned, &job->block.banned_room, from + count, sizeof *job->block.banned, "queries"))
        return -1;
    memset(query, 0, dim * sizeof *query);
    for (uint64_t i = 0; i < count; i++) {
        const float *row = job->search.base + codes[i] * dim;
        for (uint32_t column = 0; column < dim; column++) query[column] += row[column];
        job->block.banned[from + i] = (uint32_t)codes[i];
    }
    for (uint32_t column = 0; count && column < dim; column++) query[column] /= (float)count;
    job->block.banned_starts[place + 1] = from + search_distinct(job->block.banned + from, count);
    return 0;
}

static int by_code(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds one list's answer to the sums. */
static void score_list(struct lists_job *job, struct lists_score *sums, uint64_t place, uint64_t list, uint64_t rows) {
    uint64_t *codes = job->held_out.codes + job->held_out.starts[list];
    uint64_t count = job->held_out.starts[list + 1] - job->held_out.starts[list], distinct = 0, hits = 0;
    double gain = 0, best = 0;
    qsort(codes, count, sizeof *codes, by_code);
    for (uint64_t i = 0; i < count; i++)
        if (!distinct || codes[distinct - 1] != codes[i]) {
            codes[distinct++] = codes[i];
            sums->unknown += codes[distinct - 1] >= rows;
        }
    for (uint32_t i = 0; i < job->k; i++) {
        uint64_t found = job->block.ids[place * job->k + i];
        if (found == DRAW_NONE || !bsearch(&found, codes, distinct, sizeof *codes, by_code)) continue;
        hits++;
        gain += job->gains[i];
    }
    for (uint64_t i = 0; i < distinct && i < job->k; i++) best += job->gains[i];
    sums->recall += (double)hits / (double)distinct;
    sums->ndcg += gain / best;
    sums->hit += hits > 0;
}

static int score_lists(struct lists_job *job, struct lists_score *sums, uint64_t rows) {
    for (uint64_t first = 0; first < sums->lists; first += job->block.rows) {
        uint64_t n = sums->lists - first < job->block.rows ? sums->lists - first : job->block.rows;
        job->block.banned_starts[0] = 0;
        for (uint64_t i = 0; i < n; i++)
            if (ask_list(job, i, job->scored[first + i])) return -1;
        if (search_top(&job->search, job->block.queries, n, job->k, job->block.banned_starts, job->block.banned,
                       job->block.ids, job->block.scores))
            return -1;
        for (uint64_t i = 0; i < n; i++) score_list(job, sums, i, job->scored[first + i], rows);
    }
    return 0;
}

/* Lists that have held-out items and a line in the training file. */
static int choose_lists(struct lists_job *job, const struct names *lists, uint64_t *count) {
    job->scored = mem_alloc(lists->count, sizeof *job->scored, "lists");
    if (!job->scored) return -1;
    for (uint64_t list = 0; list < lists->count; list++)
        if (!lists->name[list].row && job->held_out.starts[list + 1] > job->held_out.starts[list])
            job->scored[(*count)++] = list;
    return 0;
}

int evaluate_lists(struct lists_score *score, const struct model *model, enum model_view view, const char *train,
                   const char *held_out, uint32_t k, const struct config *config) {
    struct lines lines, train_lines;
    struct names lists = {NULL, 0, 0, NULL, 0}, unknown = lists;
    struct lists_job job = {.k = k};
    char *train_text = NULL;
    int result = -1;
    *score = (struct lists_score){.lists = 0};
    char *text = open_lines(&lines, held_out);
    if (!text || read_held_out(&lines, model, &lists, &unknown, &job.held_out)) goto out;
    train_text = open_lines(&train_lines, train);
    if (!train_text || read_train(&train_lines, model, &lists, &job.train)) goto out;
    if (items_group(&job.held_out, lists.count) || items_group(&job.train, lists.count)) goto out;
    if (choose_lists(&job, &lists, &score->lists)) goto out;
    if (!score->lists) {
        fail("no list of '%s' has items there and a line in '%s'", held_out, train);
        goto out;
    }
    job.gains = mem_alloc(k, sizeof *job.gains, "gains");
    if (!job.gains || search_open(&job.search, model, view, METRIC_COSINE, 0, config)) goto out;
    if (block_init(&job.block, model->dim, k, score->lists)) goto out;
    for (uint32_t i = 0; i < k; i++) job.gains[i] = 1 / log2((double)i + 2);
    if (score_lists(&job, score, model->rows)) goto out;
    score->recall /= (double)score->lists;
    score->ndcg /= (double)score->lists;
    score->hit /= (double)score->lists;
    result = 0;
out:
    free(text);
    free(train_text);
    free(job.scored);
    free(job.gains);
    names_release(&lists);
    names_release(&unknown);
    items_release(&job.train);
    items_release(&job.held_out);
    block_release(&job.block);
    search_close(&job.search);
    return result;
}

/* ---- groups ---- */

struct groups_job {
    const struct groups_request *request;
    const struct model *model;
    const char *path;
    struct search search;
    struct block block;
    uint64_t rows; /* searched: up to the last one that is met often enough */
    int columns;
    struct names labels[GROUPS_MOST];
    uint32_t *group[GROUPS_MOST]; /* [rows] label + 1, or 0 where the file has none */
    uint64_t *size[GROUPS_MOST];  /* [labels] rows searched of each */
    uint32_t *asked;              /* rows */
};

static int takes_part(const struct groups_job *job, uint64_t row) {
    return job->model->vocab.counts[row] >= job->request->met && job->group[0][row];
}

/* Groups behind the word that begins the line; -1 where the line is blank. */
static int count_columns(struct lines lines) {
    struct token token;
    int columns = -1;
    while (next_token(&lines, &token)) columns++;
    return columns;
}

/* The first line says how many columns there are. */
static int open_columns(struct groups_job *job, int columns) {
    if (columns < 1 || columns > GROUPS_MOST)
        return fail("'%s': the first line has %d groups behind its word; wanted 1 to %d", job->path, columns,
                    GROUPS_MOST);
    for (; job->columns < columns; job->columns++)
        if (!(job->group[job->columns] = mem_zalloc(job->rows, sizeof **job->group, "the groups of rows"))) return -1;
    return 0;
}

static int read_groups(struct lines *lines, struct groups_job *job) {
    struct token word, label;
    while (next_line(lines)) {
        int columns = count_columns(*lines);
        if (columns < 0) continue;
        if (!job->columns && open_columns(job, columns)) return -1;
        if (columns != job->columns)
            return fail("'%s' line %" PRIu64 " has %d groups behind its word, the first line %d", job->path,
                        lines->number, columns, job->columns);
        next_token(lines, &word);
        int64_t row = vocab_find(&job->model->vocab, word.text, word.length);
        for (int column = 0; column < columns && row >= 0 && (uint64_t)row < job->rows; column++) {
            next_token(lines, &label);
            int64_t number = names_add(&job->labels[column], label);
            if (number < 0) return -1;
            job->group[column][row] = (uint32_t)number + 1;
        }
    }
    return job->columns ? 0 : fail("'%s' has no line: wanted a word and its groups on each", job->path);
}

static int count_members(struct groups_job *job) {
    for (int column = 0; column < job->columns; column++) {
        uint64_t *size = mem_zalloc(job->labels[column].count + 1, sizeof *size, "the sizes of groups");
        if (!(job->size[column] = size)) return -1;
        for (uint64_t row = 0; row < job->rows; row++)
            if (job->group[column][row]) size[job->group[column][row] - 1]++;
    }
    return 0;
}

/* The rows asked: the first in a fixed order that take part. */
static int choose_rows(struct groups_job *job, uint64_t *asked, uint64_t *all) {
    uint64_t most = job->request->sample < job->rows ? job->request->sample : job->rows;
    struct shuffle order = shuffle_make(job->rows, draw_at(1, DRAW_SHUFFLE, 0, 0, 0));
    job->asked = mem_alloc(most, sizeof *job->asked, "the rows asked");
    if (!job->asked) return -1;
    for (uint64_t i = *asked = *all = 0; i < job->rows; i++) {
        uint64_t row = shuffle_at(&order, i);
        if (!takes_part(job, row)) continue;
        if (*asked < most) job->asked[(*asked)++] = (uint32_t)row;
        ++*all;
    }
    if (!*asked)
        return fail("no word that the corpus names %" PRIu64 " times or more stands in '%s'", job->request->met,
                    job->path);
    return 0;
}

/* Adds what the row found to each column's sums; rows that are alone in their group are not counted there. */
static void score_groups(const struct groups_job *job, struct groups_score *scores, uint64_t row,
                         const uint32_t *found) {
    for (int column = 0; column < job->columns; column++) {
        const uint32_t *group = job->group[column];
        uint64_t others = group[row] ? job->size[column][group[row] - 1] - 1 : 0, hits = 0;
        double k = job->request->k, possible = fmin(k, (double)others);
        if (!others) continue;
        for (uint32_t i = 0; i < job->request->k; i++) hits += found[i] != DRAW_NONE && group[found[i]] == group[row];
        scores[column].share += (double)hits / possible;
        scores[column].chance += fmin(k, (double)(job->rows - 1)) * (double)others / (double)(job->rows - 1) / possible;
        scores[column].asked++;
    }
}

static int ask_rows(struct groups_job *job, struct groups_score *scores, uint64_t asked) {
    struct block *block = &job->block;
    uint32_t dim = job->search.dim, k = job->request->k;
    for (uint64_t first = 0; first < asked; first += block->rows) {
        uint64_t n = asked - first < block->rows ? asked - first : block->rows;
        const uint32_t *rows = job->asked + first;
        for (uint64_t i = 0; i < n; i++)
            memcpy(block->queries + i * dim, job->search.base + (uint64_t)rows[i] * dim, dim * sizeof(float));
        for (uint64_t i = 0; i <= n; i++) block->banned_starts[i] = i; /* a row does not find itself */
        if (search_top(&job->search, block->queries, n, k, block->banned_starts, rows, block->ids, block->scores))
            return -1;
        for (uint64_t i = 0; i < n; i++) score_groups(job, scores, rows[i], block->ids + i * k);
    }
    return 0;
}

static void groups_release(struct groups_job *job) {
    for (int column = 0; column < GROUPS_MOST; column++) {
        names_release(&job->labels[column]);
        free(job->group[column]);
        free(job->size[column]);
    }
    free(job->asked);
    block_release(&job->block);
    search_close(&job->search);
}

int evaluate_groups(struct groups_score *scores, const struct model *model, enum model_view view, const char *path,
                    const struct groups_request *request, const struct config *config) {
    struct groups_job job = {.request = request, .model = model, .path = path, .rows = model->rows};
    struct lines lines;
    uint64_t asked, all;
    int result = -1;
    for (int i = 0; i < GROUPS_MOST; i++) scores[i] = (struct groups_score){.share = 0};
    while (job.rows && model->vocab.counts[job.rows - 1] < request->met) job.rows--;
    char *text = open_lines(&lines, path);
    if (!text) goto out;
    if (!job.rows) {
        fail("no word of '%s' is named %" PRIu64 " times or more by its corpus", model->directory, request->met);
        goto out;
    }
    if (read_groups(&lines, &job) || count_members(&job) || choose_rows(&job, &asked, &all) ||
        search_open(&job.search, model, view, METRIC_COSINE, job.rows, config) ||
        block_init(&job.block, model->dim, request->k, asked) || ask_rows(&job, scores, asked))
        goto out;
    for (int column = 0; column < job.columns; column++) {
        struct groups_score *score = &scores[column];
        score->rows = all;
        score->share = score->asked ? score->share / (double)score->asked : NAN;
        score->chance = score->asked ? score->chance / (double)score->asked : NAN;
    }
    result = job.columns;
out:
    free(text);
    groups_release(&job);
    return result;
}
