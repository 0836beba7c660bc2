#include "warm_start.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "rows/values.h"
#include "run/run_directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- opening ---- */

/* Refuses a train.from in run.dir, since the run would overwrite the files that it reads. */
static int refuse_itself(const struct config *config, const char *path) {
    char *from = realpath(path, NULL), *run = realpath(config->run_dir, NULL);
    size_t length = run ? strlen(run) : 0;
    int inside = from && run && !strncmp(from, run, length) && (!from[length] || from[length] == '/');
    mem_free(from, run);
    if (!inside) return 0;
    return fail("train.from = %s lies in run.dir, where the new run is to be written: choose another run.dir", path);
}

/* Takes over the number of columns of the older rows, unless the user has set model.dim to another one. */
static int take_dim(struct config *config, uint32_t dim) {
    char text[16];
    if (dim == config->model_dim) return 0;
    if (!config_is_given(config, "model", "dim") && dim <= COLUMNS_MOST) {
        remark("from       %s has rows of %" PRIu32 " columns: model.dim = %" PRIu32, config->train_from, dim, dim);
        snprintf(text, sizeof text, "%" PRIu32, dim);
        return config_set(config, "model", "dim", text, "train.from");
    }
    return fail("train.from = %s has rows of %" PRIu32 " columns, and model.dim is %" PRIu64 ": set model.dim = %" PRIu32,
                config->train_from, dim, config->model_dim, dim);
}

/* Refuses keys of n-grams that differ from the older run's, since its n-grams' rows would not fit. */
static int check_subwords(const struct config *config, const struct model *run) {
    const struct subword_form own = config_subwords(config), *older = &run->vocab.subwords.form;
    int shared = run->vocab.subwords.starts != NULL;
    if (shared && !own.max)
        return fail("train.from = %s has words that share rows of n-grams: go on with examples.subwords = %" PRIu32 "-%" PRIu32
                    " and model.buckets = %" PRIu32,
                    config->train_from, older->min, older->max, older->buckets);
    if (shared && own.buckets != older->buckets)
        return fail("train.from = %s has n-grams in %" PRIu32 " buckets, and model.buckets is %" PRIu32 ": set model.buckets = %" PRIu32,
                    config->train_from, older->buckets, own.buckets, older->buckets);
    return 0;
}

/* Refuses an older run of triples whose rows were multiplied differently in training, or whose entities have rows in other tables. */
static int check_triples(const struct config *config, const struct model *run) {
    int product = (int)run->product - 1, other = run->product != config_product(config);
    if (config->examples_mode != MODE_TRIPLE || run->mode != MODE_TRIPLE) return 0;
    if (!other && run->item_targets == !config->model_tied) return 0;
    const char *key = other ? "train.product" : "model.tied";
    const char *older = other ? config_choice_name("train", "product", product) : run->item_targets ? "no" : "yes";
    return fail("train.from = %s was trained with %s = %s, and this run has another: set %s = %s", config->train_from, key, older, key,
                older);
}

static int open_run(struct warm_start *grow) {
    grow->kind = WARM_RUN;
    int directory = directory_exists(grow->paths[0]); /* otherwise a model of fastText */
    if (model_open(&grow->run, grow->paths[0]) || take_dim(grow->config, grow->run.dim) || directory < 0 ||
        (directory && run_ages_read(grow->run.directory, &grow->run.vocab)))
        return -1;
    return check_subwords(grow->config, &grow->run) || check_triples(grow->config, &grow->run) ? -1 : 0;
}

/* Opens the source according to its kind: a directory is a run; fastText's .bin is read like a run; any other file contains vectors, and an npy
 * needs a second file with its words. */
static int open_source(struct warm_start *grow) {
    int directory = grow->path_count == 1 ? directory_exists(grow->paths[0]) : 0;
    int fasttext = grow->path_count == 1 && !directory ? fasttext_file_is(grow->paths[0]) : 0;
    if (directory < 0 || fasttext < 0) return -1;
    if (directory || fasttext) return open_run(grow);
    if (grow->path_count > 2)
        return fail("train.from = %s names %" PRId64 " files; wanted a run, a file of vectors, or an npy and its vocabulary",
                    grow->config->train_from, grow->path_count);
    if (grow->config->corpus_forget != FORGET_NO)
        return fail("corpus.forget chooses among words with counts, and train.from = %s is vectors: begin from a run, or leave the key out",
                    grow->config->train_from);
    grow->kind = WARM_VECTORS;
    if (vectors_file_open(&grow->vectors, grow->paths[0], grow->path_count == 2 ? grow->paths[1] : NULL)) return -1;
    return take_dim(grow->config, grow->vectors.dim);
}

int warm_start_open(struct warm_start *grow, struct config *config) {
    *grow = (struct warm_start){.config = config};
    grow->path_count = config_paths("train.from", config->train_from, &grow->paths);
    for (int64_t i = 0; i < grow->path_count; i++)
        if (refuse_itself(config, grow->paths[i])) return -1;
    if (grow->path_count <= 0) return grow->path_count ? -1 : 0;
    return open_source(grow);
}

void warm_start_release(struct warm_start *grow) {
    mem_free_texts(grow->paths, grow->path_count);
    vectors_file_close(&grow->vectors);
    model_close(&grow->run);
    free(grow->row);
    *grow = (struct warm_start){0};
}

int warm_start_read_words(struct warm_start *grow, struct config *config) {
    *grow = (struct warm_start){.config = config};
    grow->path_count = config_paths("train.from", config->train_from, &grow->paths);
    if (grow->path_count != 1) return grow->path_count < 0 ? -1 : 0;
    int directory = directory_exists(grow->paths[0]), fasttext = directory ? 0 : fasttext_file_is(grow->paths[0]);
    if (directory < 0 || fasttext < 0) return -1;
    if (!directory && !fasttext) return 0;
    if (config_is_given(config, "model", "dim")) return model_read_vocab(&grow->run.vocab, grow->paths[0]);
    return model_open(&grow->run, grow->paths[0]) || take_dim(config, grow->run.dim) ? -1 : 0;
}

int warm_start_may_keep(const struct config *config) {
    char **paths;
    if (config->train_from_words != FROM_WORDS_KEEP || *config->corpus_vocab) return 0;
    int64_t count = config_paths("train.from", config->train_from, &paths);
    if (count <= 0) return (int)count;
    int there = file_exists(paths[0]), vectors = count > 1;
    if (there == 1 && !vectors) vectors = !directory_exists(paths[0]) && fasttext_file_is(paths[0]) != 1;
    mem_free_texts(paths, count);
    return there < 0 ? -1 : !vectors;
}

const struct vocab *warm_start_older(const struct warm_start *grow, const struct config *config) {
    return config->train_from_words == FROM_WORDS_KEEP && grow->run.vocab.size ? &grow->run.vocab : NULL;
}

static void find_older_rows(struct warm_start *grow) {
    struct word_query queries[WORDS_BATCH];
    const struct words *words = grow->kind == WARM_RUN ? &grow->run.vocab.words : &grow->vectors.words;
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

/* Returns the table in which a word's vector from a file is used: the target table, except for items whose lists have rows of their own (for
 * documents only if words have no target rows), which are contexts. `export` writes from the same table, so its files are read back into it. */
static enum table_side vector_side(const struct warm_start *grow, uint64_t row) {
    int item = row < grow->rows - grow->vocab->lists, contexts = !config_has_documents(grow->config) || !config_trains_words(grow->config);
    return grow->vocab->lists && item && contexts ? TABLE_CONTEXT : TABLE_TARGET;
}

/* Returns 1 if a row begins with the source's values. A row that the older run never trained gets new first values instead, so that it is still
 * recognized as untrained (list_scores.h); so does the context row of an item that was a list in the older run. */
static int begins_there(const struct warm_start *grow, enum table_side side, uint64_t row) {
    if (grow->row[row] == WORDS_ABSENT) return 0;
    if (side == TABLE_CONTEXT && (row >= grow->rows || grow->targets_alone)) return 0; /* rows of n-grams have no contexts */
    return grow->kind == WARM_RUN ? model_is_trained(&grow->run, side, grow->row[row]) : vector_side(grow, row) == side;
}

/* Decides whether context rows that belong to nodes of a Huffman tree begin with the source's values. Nodes have no names, so both runs must have
 * the same tree, which depends on the vocabulary. */
static int compare_trees(struct warm_start *grow) {
    int own = config_has_tree(grow->config), older = grow->kind == WARM_RUN && grow->run.tree;
    grow->targets_alone = own != older || (own && vocab_fingerprint(grow->vocab) != grow->run.state.corpus.vocab);
    if (!grow->targets_alone || grow->config->train_freeze != FREEZE_CONTEXT) return 0;
    return fail("train.freeze = context keeps the contexts of train.from = %s, and they are %s", grow->config->train_from,
                !older ? "not the nodes of a tree (train.loss = hierarchical)"
                : !own ? "nodes of a tree (train.loss = hierarchical), which no word of this run has"
                       : "nodes of the tree of another vocabulary");
}

/* Freezes all rows that begin with values of the source. */
static void freeze_known(const struct warm_start *grow, struct frozen *frozen) {
    for (uint64_t row = 0; row < vocab_targets(grow->vocab); row++)
        for (enum table_side side = TABLE_TARGET; side <= TABLE_CONTEXT; side++)
            if (begins_there(grow, side, row)) frozen_add(frozen, side, row);
}

struct matching {
    struct warm_start *grow;
    struct frozen *frozen;
};

static int match(void *user) {
    const struct matching *matching = user;
    struct warm_start *grow = matching->grow;
    struct frozen *frozen = matching->frozen;
    grow->row = mem_alloc(vocab_targets(grow->vocab), sizeof *grow->row, "the rows that words begin from");
    if (!grow->row) return -1;
    find_older_rows(grow);
    /* The row of an n-gram bucket begins with the row of the same bucket. */
    const struct subwords *own = &grow->vocab->subwords, *older = &grow->run.vocab.subwords;
    for (uint64_t row = grow->rows; row < vocab_targets(grow->vocab); row++) grow->row[row] = WORDS_ABSENT;
    for (uint64_t bucket = 0; own->starts && older->starts && bucket < own->form.buckets; bucket++) {
        uint32_t from = older->row_of[bucket], to = own->row_of[bucket];
        if (to != WORDS_ABSENT && from != WORDS_ABSENT && from < older->words + older->named) grow->row[to] = from;
    }
    if (compare_trees(grow)) return -1;
    grow->scaled = grow->vocab->subwords.starts && !(grow->kind == WARM_RUN && grow->run.vocab.subwords.starts);
    if (frozen->known) freeze_known(grow, frozen);
    int vectors = grow->kind == WARM_VECTORS && grow->config->examples_targets != TARGETS_NEW &&
                  vector_side(grow, 0) == TABLE_TARGET;
    int contexts_learn = vectors || grow->targets_alone;
    if (frozen->known && grow->known == grow->rows && !contexts_learn)
        return fail("train.freeze = known: train.from = %s has all %" PRIu64 " words of this corpus, so there is nothing to train",
                    grow->config->train_from, grow->rows);
    grow->dropped = grow->kind == WARM_RUN ? grow->run.vocab.size - grow->known : 0;
    if (grow->known > grow->vocab->older) return 0;
    return fail("train.from = %s has none of the %" PRIu64 " words of this corpus%s, so there is nothing to begin from", grow->config->train_from,
                grow->rows - grow->vocab->older, grow->vocab->forgot ? " that corpus.forget and corpus.max_vocab leave" : "");
}

/* Returns a hash of the source's contents and of the rows found for this run's words. */
static uint64_t fingerprint(const struct warm_start *grow) {
    const struct run_state *state = &grow->run.state;
    const struct file_map *map = grow->vectors.format == VECTORS_NPY ? &grow->vectors.npy.map : &grow->vectors.map;
    uint64_t rows = XXH3_64bits(grow->row, vocab_targets(grow->vocab) * sizeof *grow->row);
    if (grow->kind == WARM_VECTORS) return rows ^ XXH3_64bits(map->data, map->size);
    return rows ^ state->target.xxh64 ^ 3 * state->context.xxh64;
}

/* Fails unless all ranks have the same source. */
static int check_alike(const struct warm_start *grow, struct ranks *ranks) {
    if (ranks_count(ranks) == 1) return 0;
    uint64_t own = fingerprint(grow), first = own;
    ranks_share(ranks, &first, sizeof first);
    return ranks_agree(ranks, own == first ? 0 : fail("its train.from has other contents than that of rank 0"));
}

int warm_start_match(struct warm_start *grow, const struct vocab *vocab, struct frozen *frozen, struct ranks *ranks) {
    if (!grow->kind) return 0;
    grow->vocab = vocab;
    grow->rows = vocab->size;
    if (ranks_do(ranks, match, &(struct matching){grow, frozen})) return -1;
    if (check_alike(grow, ranks)) return -1;
    vocab_release(&grow->run.vocab); /* freed before tables are allocated, since then memory is shortest */
    vectors_file_drop_words(&grow->vectors);
    return 0;
}

/* ---- first values ---- */

struct filling {
    const struct warm_start *grow;
    const struct npy_field *field; /* the field of the source's records from which copying starts */
    int state;                     /* 1: copies whole records with their state; 0: only weights */
};

/* If a word has n-grams now but had none in the source, multiplies its row by its number of rows: the n-grams' rows begin near zero, so the mean
 * of all its rows is then the old vector. */
static void make_mean(const struct warm_start *grow, const struct table *table, uint64_t row, float *weights) {
    const struct subwords *subwords = &grow->vocab->subwords;
    if (!grow->scaled || table->side != TABLE_TARGET || row >= grow->rows) return;
    float rows = (float)(subwords->starts[row + 1] - subwords->starts[row]);
    for (uint32_t i = 0; i < table->own.count; i++) weights[i] *= rows;
}

static int check_finite(const struct filling *filling, const struct table *table, uint64_t row, const char *record) {
    const struct record_layout *layout = &table->spec.layout;
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        if (values_finite(field, record + field->packed)) continue;
        return fail("train.from = %s: the %s row of '%s' holds NaN or infinity", filling->grow->config->train_from,
                    table->spec.name, row < filling->grow->rows ? vocab_word(filling->grow->vocab, row, NULL) : "an n-gram");
    }
    return 0;
}

/* The older run has the first `columns` columns of each row, which may be all. If the columns of biases (train.loss = glove) are missing there, they
 * begin as in a new run. This rank's columns are read run by run: returns the run of consecutive ones that begins with its own column number `at`,
 * without those that the older run lacks. Its count is 0 if no column is left to read. */
static struct columns next_run(const struct table *table, uint32_t at, uint32_t columns) {
    struct columns run = record_run(table->own, at);
    uint32_t here = columns <= run.first ? 0 : columns - run.first;
    if (run.count > here) run.count = here;
    return run;
}

/* `take` of a table_origin whose source is a file of vectors. */
static int take_vector(void *user, const struct table *table, uint64_t row, char *record) {
    const struct filling *filling = user;
    uint32_t from = filling->grow->row[row];
    if (!begins_there(filling->grow, table->side, row)) return 0;
    float weights[COLUMNS_MOST];
    uint32_t count = 0;
    for (struct columns run; (run = next_run(table, count, filling->grow->vectors.dim)).count; count += run.count)
        if (vectors_file_row(&filling->grow->vectors, from, run.first, run.count, weights + count)) return -1;
    make_mean(filling->grow, table, row, weights);
    values_write(&table->spec.layout, &table->spec.layout.field[RECORD_WEIGHTS], record, weights, count);
    return check_finite(filling, table, row, record) ? -1 : 1;
}

/* Copies a row's weights, converting between float32 and bfloat16 if necessary (to bfloat16 by rounding to nearest). */
static void take_weights(const struct filling *filling, const struct table *table, uint64_t row, const void *older, char *record) {
    float weights[COLUMNS_MOST];
    uint32_t count = 0;
    for (struct columns run; (run = next_run(table, count, filling->field->columns)).count; count += run.count)
        values_of_file(filling->field, older, run.first, run.count, weights + count);
    make_mean(filling->grow, table, row, weights);
    values_write(&table->spec.layout, &table->spec.layout.field[RECORD_WEIGHTS], record, weights, count);
}

/* `take` of a table_origin whose source is a run. */
static int take_row(void *user, const struct table *table, uint64_t row, char *record) {
    const struct filling *filling = user;
    uint32_t from = filling->grow->row[row];
    if (!begins_there(filling->grow, table->side, row)) return 0;
    const void *older = model_table_row(&filling->grow->run, table->side, filling->field, from);
    if (filling->state) record_split(&table->whole, &table->spec.layout, table->own, 1, older, record);
    if (!filling->state || filling->grow->scaled) take_weights(filling, table, row, older, record);
    return check_finite(filling, table, row, record) ? -1 : 1;
}

/* Returns 1 if the optimizer's state can be copied, too: records must have the same fields, and the rule must not depend on the number of the
 * run's steps. That number begins at 0 again, so the rule would treat averages over many steps as averages over a few. */
static int takes_state(const struct table *table, const struct npy *npy) {
    return table->whole.fields > RECORD_STATE && table_has_fields(table, npy) &&
           (table->rule.count_rows || !rule_counts(&table->rule));
}

static int fill_from_vectors(struct warm_start *grow, struct table *table, struct pool *pool) {
    struct filling filling = {.grow = grow};
    struct table_origin origin = {&filling, take_vector};
    return table_fill_from(table, &origin, pool);
}

static int fill_from_run(struct warm_start *grow, struct table *table, struct pool *pool) {
    if (table->side == TABLE_CONTEXT && grow->targets_alone) return table_fill(table, pool);
    const struct npy *npy = table->side == TABLE_TARGET ? &grow->run.target : &grow->run.context;
    struct filling filling = {.grow = grow, .field = npy_find(npy, "weights"), .state = takes_state(table, npy)};
    if (filling.state) filling.field = &npy->field[0];
    struct table_origin origin = {&filling, take_row};
    if (!filling.state && table->side == TABLE_TARGET && table->whole.fields > RECORD_STATE)
        note("state      begins anew: that of '%s' is of another rule or precision, or counts the steps of its run",
             grow->config->train_from);
    return table_fill_from(table, &origin, pool);
}

int warm_start_fill(struct warm_start *grow, struct table *table, struct pool *pool) {
    if (grow->kind == WARM_RUN) return fill_from_run(grow, table, pool);
    return grow->kind == WARM_VECTORS ? fill_from_vectors(grow, table, pool) : table_fill(table, pool);
}

void warm_start_print(const struct warm_start *grow) {
    char known[TEXT_BYTES], rows[TEXT_BYTES], new_words[TEXT_BYTES], others[TEXT_BYTES], rest[128] = "";
    if (!grow->kind) return;
    if (grow->dropped > grow->vocab->forgot)
        snprintf(rest, sizeof rest, "; %s of its words are not in this corpus and are left out",
                 text_of_count(others, grow->dropped - grow->vocab->forgot));
    if (grow->vocab->older)
        snprintf(rest, sizeof rest, ", %s are kept though this corpus lacks them (train.from_words = drop leaves them out)",
                 text_of_count(others, grow->vocab->older));
    note("from       '%s': %s of %s words begin there, %s are new%s", grow->config->train_from, text_of_count(known, grow->known),
         text_of_count(rows, grow->rows), text_of_count(new_words, grow->rows - grow->known), rest);
    if (grow->targets_alone && grow->kind == WARM_RUN)
        note("contexts   begin anew: with train.loss = hierarchical they are rows of a tree, and that of '%s' is another, or there is none",
             grow->config->train_from);
}

uint64_t warm_start_bytes(const struct config *config, uint64_t rows) {
    return config->train_from && *config->train_from ? rows * sizeof(uint32_t) + rows / 4 : 0; /* and two bits a row */
}
