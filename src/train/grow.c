#include "grow.h"

#include "base/floats.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

/* A run that begins from itself would replace what it reads. */
static int refuse_itself(const struct config *config) {
    char *from = realpath(config->train_from, NULL), *run = realpath(config->run_dir, NULL);
    size_t length = run ? strlen(run) : 0;
    int inside = from && run && !strncmp(from, run, length) && (!from[length] || from[length] == '/');
    free(from);
    free(run);
    if (!inside) return 0;
    return fail("train.from = %s lies in run.dir, where the new run is to be written: choose another run.dir",
                config->train_from);
}

static int check_dim(const struct config *config, uint32_t dim) {
    if (dim == config->model_dim) return 0;
    return fail("train.from = %s has rows of %" PRIu32 " columns, and model.dim is %" PRIu64 ": set model.dim = %" PRIu32,
                config->train_from, dim, config->model_dim, dim);
}

int grow_open(struct grow *grow, const struct config *config) {
    *grow = (struct grow){.config = config};
    if (!*config->train_from) return 0;
    if (refuse_itself(config) || model_open(&grow->run, config->train_from)) return -1;
    grow->open = 1;
    return check_dim(config, grow->run.dim);
}

void grow_release(struct grow *grow) {
    model_close(&grow->run);
    free(grow->row);
    *grow = (struct grow){0};
}

/* ---- words to rows ---- */

static const struct words *words_of(const struct grow *grow) {
    return &grow->run.vocab.words;
}

static void find_rows(struct grow *grow) {
    struct word_query queries[WORDS_BATCH];
    const struct words *words = words_of(grow);
    for (uint64_t first = 0; first < grow->rows; first += WORDS_BATCH) {
        unsigned count = grow->rows - first < WORDS_BATCH ? (unsigned)(grow->rows - first) : WORDS_BATCH;
        for (unsigned i = 0; i < count; i++) {
            uint64_t length;
            const char *word = vocab_word(grow->vocab, first + i, &length);
            words_ask(words, &queries[i], words_hash(word, length), word, length);
        }
        words_find_batch(words, queries, count, grow->row + first);
        for (unsigned i = 0; i < count; i++) grow->known += grow->row[first + i] != WORDS_ABSENT;
    }
}

/* A row that comes from the source is known. */
static void freeze_known(const struct grow *grow, struct frozen *frozen) {
    for (uint64_t row = 0; row < grow->rows; row++)
        for (int side = 0; side < 2; side++)
            if (grow->row[row] != WORDS_ABSENT) frozen_add(frozen, (enum table_side)side, row);
}

static int match(struct grow *grow, struct frozen *frozen) {
    grow->row = mem_alloc(grow->rows, sizeof *grow->row, "the rows that words begin from");
    if (!grow->row) return -1;
    find_rows(grow);
    if (frozen->known) freeze_known(grow, frozen);
    if (frozen->known && grow->known == grow->rows)
        return fail("train.freeze = known: train.from = %s has all %" PRIu64 " words of this corpus, so there is nothing to "
                    "train",
                    grow->config->train_from, grow->rows);
    if (grow->known) return 0;
    return fail("train.from = %s has none of the %" PRIu64 " words of this corpus, so there is nothing to begin from",
                grow->config->train_from, grow->rows);
}

/* Rows and contents of the source, as a number. */
static uint64_t fingerprint(const struct grow *grow) {
    const struct run_state *state = &grow->run.state;
    return state->target.xxh64 ^ 3 * state->context.xxh64 ^ 5 * state->corpus.vocab;
}

int grow_match(struct grow *grow, const struct vocab *vocab, struct frozen *frozen, struct ranks *ranks) {
    if (!grow->open) return 0;
    grow->vocab = vocab;
    grow->rows = vocab->size;
    if (ranks_agree(ranks, match(grow, frozen))) return -1;
    uint64_t own = fingerprint(grow), first = own;
    ranks_share(ranks, &first, sizeof first);
    if (ranks_agree(ranks, own == first ? 0 : fail("its train.from has other contents than that of rank 0"))) return -1;
    vocab_release(&grow->run.vocab); /* before the tables: their memory is better used there */
    return 0;
}

/* ---- first values ---- */

struct filling {
    const struct grow *grow;
    const struct npy *npy;           /* the source's table */
    const struct npy_field *weights; /* of it */
    int state;                       /* 1: its records are this table's, state and all */
};

static int check_finite(const struct filling *filling, const struct table *table, uint64_t row, const char *record) {
    const struct record_layout *layout = &table->spec.layout;
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        if (field->type != VALUE_FLOAT32 ||
            floats_finite((const float *)(const void *)(record + field->packed), field->columns))
            continue;
        return fail("train.from = %s: the %s row of '%s' holds NaN or infinity", filling->grow->config->train_from,
                    table->spec.name, vocab_word(filling->grow->vocab, row, NULL));
    }
    return 0;
}

/* A table_origin's take(). */
static int take_row(void *user, const struct table *table, uint64_t row, char *record) {
    const struct filling *filling = user;
    uint32_t from = filling->grow->row[row];
    if (from == WORDS_ABSENT) return 0;
    if (filling->state)
        record_split(&table->whole, &table->spec.layout, table->own.first, 1,
                     npy_row(filling->npy, &filling->npy->field[0], from), record);
    else
        memcpy(record, (const float *)npy_row(filling->npy, filling->weights, from) + table->own.first,
               table->own.count * sizeof(float));
    return check_finite(filling, table, row, record) ? -1 : 1;
}

/* State goes with the rows where the arrays are the same ones. Where a rule counts the steps of the run, the count begins anew,
 * and averages of an older run would be taken for far too young ones. */
static int takes_state(const struct table *table, const struct npy *npy) {
    return table->whole.fields > RECORD_STATE && table_has_fields(table, npy) &&
           (table->rule.count_rows || !rule_counts(&table->rule));
}

int grow_fill(struct grow *grow, struct table *table, struct pool *pool) {
    if (!grow->open) return table_fill(table, pool);
    const struct npy *npy = table->side == TABLE_TARGET ? &grow->run.target : &grow->run.context;
    struct filling filling = {.grow = grow, .npy = npy, .weights = npy_find(npy, "weights"), .state = takes_state(table, npy)};
    struct table_origin origin = {&filling, take_row};
    if (!filling.state && table->side == TABLE_TARGET && table->whole.fields > RECORD_STATE)
        note("state      begins anew: that of '%s' is of another rule, or counts the steps of its run", grow->config->train_from);
    return table_fill_from(table, &origin, pool);
}

void grow_print(const struct grow *grow) {
    char known[TEXT_BYTES], rows[TEXT_BYTES], new_words[TEXT_BYTES];
    if (!grow->open) return;
    note("from       '%s': %s of %s words begin there, %s are new", grow->config->train_from,
         text_of_count(known, grow->known), text_of_count(rows, grow->rows),
         text_of_count(new_words, grow->rows - grow->known));
}

uint64_t grow_bytes(const struct config *config, uint64_t rows) {
    return config->train_from && *config->train_from ? rows * sizeof(uint32_t) + rows / 4 : 0; /* and two bits a row */
}
