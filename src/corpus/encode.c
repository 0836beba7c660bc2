/* Workers encode blocks in any order; the blocks are committed to the file in file order. A finished block waits in a ring. The
 * worker that finishes the next block in file order commits it and every finished block that follows it. So the file does not
 * depend on the number of threads. Only the commit knows what spans several blocks: the length of the open sentence, whether the
 * open line has its target, and the number of each list. */
#include "encode.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "encode_block.h"
#include "phrases.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { ENCODING = 2 }; /* version of the encoding: raise it when the same corpus would give other ids or sentences */
enum { LOOK = 2 << 8 }; /* version of look.h: raise it when the same file would give other words */

uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options) {
    if (corpus_stream(corpus)) return vocab_fingerprint(vocab);
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    int grown = options->older || options->grown, has_vocab = grown || (options->vocab && *options->vocab);
    const struct look_keys *look = &options->look;
    const char *columns = format->columns && look->columns ? look->columns : "";
    uint64_t keys = XXH3_64bits_withSeed(columns, strlen(columns), (uint64_t)look->separator * 16 + (uint64_t)look->names);
    uint64_t facts[] = {format->rows == LOOK_TEXT ? ENCODING : (ENCODING + LOOK) ^ keys,
                        corpus_fingerprint(corpus),
                        vocab_fingerprint(vocab),
                        (uint64_t)options->format,
                        format->sentences ? options->max_sentence : 0,
                        (uint64_t)(options->order == ORDER_GIVEN && !has_vocab),
                        grown ? UINT64_MAX : has_vocab ? 0 : options->min_count, /* UINT64_MAX cannot be a min_count */
                        has_vocab ? 0 : options->max_vocab,
                        has_vocab ? 0 : (uint64_t)options->order,
                        format->rows == LOOK_TEXT ? 0 : (uint64_t)look->header,
                        0,
                        (uint64_t)options->list_rows};
    uint64_t known = sizeof facts - (options->list_rows ? 0 : sizeof *facts); /* leaves list_rows out if it is 0, so that the
                                                                               * fingerprints of older streams stay valid */
    if (format->ratings) memcpy(&facts[10], &options->min_rating, sizeof options->min_rating);
    uint64_t sum = XXH3_64bits_withSeed(facts, known, (uint64_t)options->pair_weights);
    return options->phrases.joins ? sum ^ phrases_fingerprint(&options->phrases) : sum;
}

/* ---- committing blocks in order ---- */

/* A list of pairs. encoding.lists is indexed by the number of the list's name. */
struct list {
    uint64_t items;
    uint64_t next; /* while items are grouped: index in the output of the list's next item */
};

/* State of encoding one corpus; the workers share it. */
struct encoding {
    struct corpus *corpus;
    const struct vocab *vocab;
    const struct corpus_options *options;
    struct progress progress;
    struct idstream_writer writer;
    uint64_t open_start; /* index of the open sentence's first token in the stream */
    int line_lost;       /* adjacency, 1: the open line's target is not in the vocabulary, so its contexts are dropped */
    int held;            /* adjacency, 1: of the open line, only the target is known so far; it is written when a context follows */
    uint32_t held_id;
    struct words names;        /* pairs: names of the lists, in the order of their first mention */
    struct list *lists;        /* [names.size] */
    uint64_t lists_capacity;
    struct file_writer places; /* pairs: working file of all pairs as struct place, in the order met; later grouped by list */

    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct encoded *ring; /* [ring_size]: block n waits at index n % ring_size to be committed */
    uint64_t ring_size, committed;
    int committing, failed;
};

/* A pair in the working file. The file has `weight` only if pairs have weights (place_bytes). */
struct place {
    uint32_t list, id;
    float weight;
};
static uint64_t place_bytes(const struct corpus_options *options) {
    return options->pair_weights ? sizeof(struct place) : offsetof(struct place, weight);
}

/* Ends sentences that reach max_sentence tokens, up to token `end`. line_ends = 1: also ends the sentence at `end`. */
static int cut_sentences(struct encoding *encoding, uint64_t end, int line_ends) {
    int cuts = corpus_formats[encoding->options->format].sentences && !encoding->options->list_rows;
    uint64_t most = cuts ? encoding->options->max_sentence : UINT64_MAX;
    while (end - encoding->open_start >= most) {
        encoding->open_start += most;
        if (idstream_end_sentence(&encoding->writer, encoding->open_start)) return -1;
    }
    if (!line_ends || end == encoding->open_start) return 0;
    encoding->open_start = end;
    return idstream_end_sentence(&encoding->writer, end);
}

static int commit_lines(struct encoding *encoding, const struct encoded *block) {
    uint64_t before = encoding->writer.tokens;
    for (uint64_t i = 0; i < block->lines; i++)
        if (cut_sentences(encoding, before + block->ends[i], 1)) return -1;
    if (cut_sentences(encoding, before + block->count, 0)) return -1;
    return idstream_put(&encoding->writer, block->ids, block->count);
}

/* Commits ids of a line that began in an earlier block. They are dropped if the line's target is not in the vocabulary. */
static int commit_rest_of_line(struct encoding *encoding, const uint32_t *ids, uint64_t count) {
    if (encoding->line_lost || !count) return 0;
    if (encoding->held && idstream_put(&encoding->writer, &encoding->held_id, 1)) return -1;
    encoding->held = 0;
    return idstream_put(&encoding->writer, ids, count);
}

static int commit_adjacency(struct encoding *encoding, const struct encoded *block) {
    uint64_t from = 0, line = 0;
    if (block->block.continues) {
        from = block->lines ? block->ends[0] : block->count;
        if (commit_rest_of_line(encoding, block->ids, from)) return -1;
        if (!block->lines && block->block.line_open) return 0;
        if (cut_sentences(encoding, encoding->writer.tokens, 1)) return -1;
        line = 1;
    }
    encoding->held = 0;
    uint64_t base = encoding->writer.tokens - from;
    for (; line < block->lines; line++)
        if (cut_sentences(encoding, base + block->ends[line], 1)) return -1;
    encoding->line_lost = block->target_lost;
    uint64_t closed = block->lines ? block->ends[block->lines - 1] : from, end = block->count;
    if (end - closed == 1) {
        encoding->held = 1;
        encoding->held_id = block->ids[--end];
    }
    return idstream_put(&encoding->writer, block->ids + from, end - from);
}

/* Returns the number of a list by its name, a new number if the name is new; -1 after fail(). */
static int64_t list_named(struct encoding *encoding, const char *name, uint64_t length) {
    uint64_t before = encoding->names.size;
    if (mem_grow(&encoding->lists, &encoding->lists_capacity, before + 1, sizeof *encoding->lists, "the lists"))
        return -1;
    encoding->lists[before] = (struct list){0};
    return words_add(&encoding->names, words_hash(name, length), name, length);
}

static int commit_scattered(struct encoding *encoding, const struct encoded *block) {
    for (uint64_t i = 0; i < block->count; i++) {
        const char *name = block->block.bytes + block->names[i].at;
        uint64_t length = block->names[i].length;
        int64_t list = list_named(encoding, name, length);
        struct place place = {(uint32_t)list, block->ids[i], encoding->options->pair_weights ? block->weights[i] : 1};
        if (list < 0 || file_write(&encoding->places, &place, place_bytes(encoding->options))) return -1;
        encoding->lists[list].items++;
    }
    return 0;
}

static int commit_block(struct encoding *encoding, const struct encoded *block) {
    if (corpus_formats[encoding->options->format].scattered) return commit_scattered(encoding, block);
    return encode_has_targets(encoding->options) ? commit_adjacency(encoding, block) : commit_lines(encoding, block);
}

static void give_up(struct encoding *encoding) {
    encoding->failed = 1;
    pthread_cond_broadcast(&encoding->moved);
}

/* Puts a finished block into the ring, and gets the empty block that was there. Then, unless another worker is committing,
 * commits all finished blocks that are next in file order. */
static int hand_over(struct encoding *encoding, struct encoded *mine) {
    uint64_t number = mine->block.number;
    pthread_mutex_lock(&encoding->lock);
    while (!encoding->failed && number >= encoding->committed + encoding->ring_size)
        pthread_cond_wait(&encoding->moved, &encoding->lock);
    struct encoded *place = &encoding->ring[number % encoding->ring_size], empty = *place;
    if (!encoding->failed) {
        *place = *mine;
        place->ready = 1;
        *mine = empty;
    }
    while (!encoding->failed && !encoding->committing) {
        struct encoded *next = &encoding->ring[encoding->committed % encoding->ring_size];
        if (!next->ready) break;
        encoding->committing = 1;
        pthread_mutex_unlock(&encoding->lock);
        int result = commit_block(encoding, next);
        pthread_mutex_lock(&encoding->lock);
        encoding->committing = 0;
        next->ready = 0;
        encoding->committed++;
        if (result) encoding->failed = 1;
        pthread_cond_broadcast(&encoding->moved);
    }
    int result = encoding->failed ? -1 : 0;
    pthread_mutex_unlock(&encoding->lock);
    return result;
}

static int encode_blocks(void *context, unsigned worker) {
    struct encoding *encoding = context;
    struct encoded mine = {0};
    int more;
    while ((more = corpus_next(encoding->corpus, &mine.block)) > 0) {
        more = encode_block(&mine, encoding->vocab, encoding->options);
        if (!more) more = hand_over(encoding, &mine);
        if (more) break;
        progress_show(&encoding->progress, corpus_done(encoding->corpus), corpus_size(encoding->corpus), "B");
    }
    if (more) {
        pthread_mutex_lock(&encoding->lock);
        give_up(encoding);
        pthread_mutex_unlock(&encoding->lock);
    }
    encoded_release(&mine);
    return more;
}

/* ---- pairs: grouping items by list ---- */

enum { GROUP_IDS = 32 << 20 }; /* highest number of ids that are grouped in memory at a time: 128 MiB */

/* Returns the number of ids of a list's sentence: its items and, if lists have rows, the list's id. */
static uint64_t ids_of(const struct encoding *encoding, const struct list *list) {
    return list->items + (uint64_t)encoding->options->list_rows;
}

/* Chooses lists first .. *end - 1: as many as memory allows, at least one. Sets where each begins in the output. Returns the
 * number of their ids. */
static uint64_t choose_lists(struct encoding *encoding, uint64_t first, uint64_t *end) {
    uint64_t ids = 0;
    for (*end = first; *end < encoding->names.size; ++*end) {
        struct list *list = &encoding->lists[*end];
        if (*end > first && ids + ids_of(encoding, list) > GROUP_IDS) break;
        list->next = ids;
        ids += ids_of(encoding, list);
    }
    return ids;
}

/* An element of the grouped array: an id, or in a second pass its weight. */
union value {
    uint32_t id;
    float weight;
};

/* If lists have rows, writes each list's id before its items; or, with weights = 1, the weight 0, since a list is no item. */
static void put_own(struct encoding *encoding, uint64_t first, uint64_t end, int weights, union value *values) {
    for (uint64_t list = first; list < end && encoding->options->list_rows; list++) {
        uint64_t length;
        const char *name = words_get(&encoding->names, list, &length);
        union value *own = &values[encoding->lists[list].next++];
        if (weights) own->weight = 0;
        else own->id = (uint32_t)vocab_find_list(encoding->vocab, name, length);
    }
}

/* All pairs in the order met, read from the working file or from gathered data. */
struct pairs_met {
    uint64_t count;
    const char *places;                           /* the working file's bytes; NULL: the pairs are gathered data, in the fields
                                                   * below */
    uint64_t place_bytes;
    const uint32_t *ids, *names, *rows, *numbers; /* word and list name of each pair; row of each word; list number of each name */
    const float *weights;                         /* [count] of gathered pairs; NULL: pairs have no weights */
};

/* Returns pair i. If a gathered item has no row, the pair's list is UINT32_MAX, which is no list, so the pair is left out. */
static inline struct place place_met(const struct pairs_met *met, uint64_t i) {
    struct place place = {.weight = 1};
    if (met->places) {
        memcpy(&place, met->places + i * met->place_bytes, met->place_bytes == sizeof place ? sizeof place : 2 * sizeof(uint32_t));
        return place;
    }
    uint32_t row = met->rows[met->ids[i]];
    return (struct place){row == WORDS_ABSENT ? UINT32_MAX : met->numbers[met->names[i]], row, met->weights ? met->weights[i] : 1};
}

/* Writes the ids of lists first .. end - 1 and ends a sentence after each; or, with weights = 1, writes the weights of these
 * ids. */
static int put_lists(struct encoding *encoding, uint64_t first, uint64_t end, int weights, const union value *values,
                     uint64_t count) {
    if (weights) return idstream_put_weights(&encoding->writer, &values->weight, count);
    uint64_t at = encoding->writer.tokens;
    if (idstream_put(&encoding->writer, &values->id, count)) return -1;
    for (uint64_t list = first; list < end; list++)
        if (idstream_end_sentence(&encoding->writer, at += ids_of(encoding, &encoding->lists[list]))) return -1;
    return 0;
}

/* Groups the ids of all pairs, or their weights, by list: a counting sort that reads all pairs once for each group of lists that
 * fits into memory. */
static int group_values(struct encoding *encoding, const struct pairs_met *met, int weights) {
    struct list *lists = encoding->lists;
    union value *values = NULL;
    uint64_t capacity = 0, end;
    int result = -1;
    for (uint64_t first = 0; first < encoding->names.size; first = end) {
        uint64_t count = choose_lists(encoding, first, &end);
        if (interrupt_check() || mem_grow(&values, &capacity, count, sizeof *values, "the items of lists")) goto out;
        put_own(encoding, first, end, weights, values);
        for (uint64_t i = 0; i < met->count; i++) {
            struct place place = place_met(met, i);
            if (place.list - first >= end - first) continue;
            union value *value = &values[lists[place.list].next++];
            if (weights) value->weight = place.weight;
            else value->id = place.id;
        }
        if (put_lists(encoding, first, end, weights, values, count)) goto out;
    }
    result = 0;
out:
    free(values);
    return result;
}

static int group_pairs(struct encoding *encoding, const struct pairs_met *met) {
    if (group_values(encoding, met, 0)) return -1;
    return encoding->options->pair_weights ? group_values(encoding, met, 1) : 0;
}

static int group_places(struct encoding *encoding, const char *path) {
    struct file_map map;
    if (file_map_open(&map, path)) return -1;
    uint64_t bytes = place_bytes(encoding->options);
    struct pairs_met met = {.count = map.size / bytes, .places = map.data, .place_bytes = bytes};
    int result = met.count ? group_pairs(encoding, &met) : 0;
    file_map_close(&map);
    return result;
}

/* ---- gathered data ---- */

enum { GATHERED_BLOCK = 1 << 20 }; /* tokens of a block of gathered data; a block has whole sentences, at least one */

static int commit_sentences(struct encoding *encoding, const struct gathered *gathered,
                            const struct gathered_rows *rows) {
    struct encoded block = {0};
    int result = 0;
    for (uint64_t first = 0, end = 0; first < gathered->sentences && !result; first = end) {
        uint64_t most = (first ? gathered->ends[first - 1] : 0) + GATHERED_BLOCK;
        for (end = first + 1; end < gathered->sentences && gathered->ends[end] <= most; end++) continue;
        result =
            interrupt_check() || encode_sentences(&block, gathered, rows, first, end) || commit_block(encoding, &block)
                ? -1
                : 0;
    }
    encoded_release(&block);
    return result;
}

/* Numbers the lists in the order of their first item that has a row, as for lists read from files, and counts their items.
 * numbers: [names] the number of each name's list; all are UINT32_MAX before the call. */
static int number_lists(struct encoding *encoding, const struct pairs_met *met, const struct words *names,
                        uint32_t *numbers) {
    uint64_t length;
    for (uint64_t i = 0; i < met->count; i++) {
        uint32_t name = met->names[i];
        if (i % GATHERED_BLOCK == 0 && interrupt_check()) return -1;
        if (met->rows[met->ids[i]] == WORDS_ABSENT) continue;
        if (numbers[name] == UINT32_MAX) {
            const char *text = words_get(names, name, &length);
            int64_t number = list_named(encoding, text, length);
            if (number < 0) return -1;
            numbers[name] = (uint32_t)number;
        }
        encoding->lists[numbers[name]].items++;
    }
    return 0;
}

static int group_gathered(struct encoding *encoding, const struct gathered *gathered,
                          const struct gathered_rows *rows) {
    const struct words *names = &gathered->lists.words;
    uint32_t *numbers = mem_alloc(names->size, sizeof *numbers, "the lists");
    struct pairs_met met = {.count = gathered->tokens,
                            .ids = gathered->ids,
                            .names = gathered->names,
                            .rows = rows->items,
                            .weights = gathered->weights,
                            .numbers = numbers};
    if (!numbers) return -1;
    memset(numbers, 0xff, names->size * sizeof *numbers);
    int result = number_lists(encoding, &met, names, numbers) || group_pairs(encoding, &met) ? -1 : 0;
    free(numbers);
    return result;
}

static int encode_gathered(struct encoding *encoding, const struct gathered *gathered) {
    struct gathered_rows rows = {0};
    int scattered = corpus_formats[encoding->options->format].scattered;
    int result = gathered_rows_find(&rows, gathered, encoding->vocab);
    if (!result)
        result = scattered ? group_gathered(encoding, gathered, &rows) : commit_sentences(encoding, gathered, &rows);
    gathered_rows_release(&rows);
    return result;
}

/* ---- the whole corpus ---- */

static int encode_files(struct encoding *encoding, struct pool *pool, const char *places_path) {
    int scattered = corpus_formats[encoding->options->format].scattered;
    corpus_read_as(encoding->corpus, encoding->options);
    corpus_rewind(encoding->corpus);
    if (scattered && file_writer_open(&encoding->places, places_path)) return -1;
    progress_start(&encoding->progress, "encoding", encoding->options->report_seconds);
    int result = pool_run(pool, encode_blocks, encoding);
    progress_end(&encoding->progress);
    if (result || !scattered) return result;
    return file_commit(&encoding->places) || group_places(encoding, places_path) ? -1 : 0;
}

static int nothing_left(const struct encoding *encoding) {
    if (corpus_formats[encoding->options->format].targets)
        return fail(
            "no line of the corpus '%s' is left: none has its target and a context in the vocabulary of %" PRIu64
            " words",
            encoding->options->path, encoding->vocab->size);
    return fail("no token of the corpus '%s' is in the vocabulary of %" PRIu64 " words", encoding->options->path,
                encoding->vocab->size);
}

/* End of the name of the working file of pairs, PATH.<process>.pairs. The process id keeps processes from sharing a file. */
static const char places_end[] = ".pairs";

static char *name_places(const char *path) {
    uint64_t capacity = strlen(path) + 32 + sizeof places_end;
    char *name = mem_alloc(capacity, 1, "a path");
    if (name) snprintf(name, capacity, "%s.%ld%s", path, (long)getpid(), places_end);
    return name;
}

int encode_is_leftover(const char *name, const char *of) {
    size_t length = strlen(of), digits;
    char places[NAME_MAX + 1];
    if (strlen(name) > NAME_MAX || strncmp(name, of, length) || name[length] != '.') return 0;
    digits = strspn(name + length + 1, "0123456789");
    if (!digits) return 0;
    snprintf(places, sizeof places, "%.*s%s", (int)(length + 1 + digits), name, places_end);
    return !strcmp(name, places) || file_is_partial(name, places);
}

static int encode(const char *path, struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options,
                  struct pool *pool, uint64_t fingerprint) {
    struct encoding encoding = {.corpus = corpus, .vocab = vocab, .options = options, .places.fd = -1};
    char *places = name_places(path);
    int result = -1;
    pthread_mutex_init(&encoding.lock, NULL);
    pthread_cond_init(&encoding.moved, NULL);
    encoding.ring_size = 2 * (uint64_t)pool_threads(pool) + 2;
    encoding.ring = mem_zalloc(encoding.ring_size, sizeof *encoding.ring, "encoding");
    if (!places || !encoding.ring || idstream_writer_open(&encoding.writer, path)) goto out;
    result = corpus_gathered(corpus) ? encode_gathered(&encoding, corpus_gathered(corpus))
                                     : encode_files(&encoding, pool, places);
    file_abandon(&encoding.places);
    if (corpus_formats[options->format].scattered && file_remove(places)) result = -1;
    if (!result) result = corpus_check_unchanged(corpus);
    if (!result && !encoding.writer.tokens) result = nothing_left(&encoding);
    encoding.writer.weighed = options->pair_weights;
    if (!result)
        result = idstream_writer_commit(&encoding.writer, fingerprint);
    else
        idstream_writer_abandon(&encoding.writer);
out:
    for (uint64_t i = 0; encoding.ring && i < encoding.ring_size; i++) encoded_release(&encoding.ring[i]);
    free(encoding.ring);
    words_release(&encoding.names);
    free(encoding.lists);
    pthread_cond_destroy(&encoding.moved);
    pthread_mutex_destroy(&encoding.lock);
    free(places);
    return result;
}

int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                  const struct corpus_options *options, struct pool *pool, int *reused) {
    *stream = (struct idstream){0};
    *reused = 1;
    if (corpus_stream(corpus)) return idstream_open(stream, corpus_stream(corpus), vocab_fingerprint(vocab), vocab->size, pool);
    uint64_t fingerprint = encode_fingerprint(corpus, vocab, options);
    if (idstream_reuse(stream, path, fingerprint, vocab->size, pool)) return 0;
    *reused = 0;
    if (encode(path, corpus, vocab, options, pool, fingerprint)) return -1;
    return idstream_open(stream, path, fingerprint, vocab->size, pool);
}
