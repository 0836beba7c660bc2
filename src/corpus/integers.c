#include "integers.h"

#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES_A_WORD = 16 }; /* largest allowed number of table entries for each word of the vocabulary: a larger table would be
                              * nearly empty */

/* Returns the highest integer among the words, plus one; 0 if a table of that size would be nearly empty. */
static uint64_t table_size(const struct vocab *vocab) {
    uint64_t size = 0, length;
    for (uint64_t row = 0; row < vocab->size; row++) {
        const char *word = vocab_word(vocab, row, &length);
        uint32_t integer = integer_of(word, length);
        if (integer != NO_INTEGER && integer >= size) size = (uint64_t)integer + 1;
    }
    return size / PLACES_A_WORD < vocab->size ? size : 0;
}

int integer_rows_make(struct integer_rows *rows, const struct vocab *vocab) {
    uint64_t length;
    *rows = (struct integer_rows){.size = table_size(vocab)};
    if (!rows->size) return 0;
    rows->rows = mem_alloc(rows->size, sizeof *rows->rows, "the rows of integers");
    if (!rows->rows) return -1;
    mem_prefer_huge(rows->rows, rows->size * sizeof *rows->rows);
    memset(rows->rows, 0xff, rows->size * sizeof *rows->rows);
    for (uint64_t row = 0; row < vocab->size; row++) {
        const char *word = vocab_word(vocab, row, &length);
        uint32_t integer = integer_of(word, length);
        if (integer != NO_INTEGER) rows->rows[integer] = (uint32_t)row;
    }
    return 0;
}

void integer_rows_release(struct integer_rows *rows) {
    free(rows->rows);
    *rows = (struct integer_rows){0};
}

void integer_counts_make(struct integer_counts *counts, uint64_t most) {
    uint64_t size = most / sizeof *counts->counts;
    *counts = (struct integer_counts){.size = size < INTEGERS ? size : INTEGERS};
    if (counts->size) counts->counts = mem_zalloc(counts->size, sizeof *counts->counts, "the counts of integers");
    mem_prefer_huge(counts->counts, counts->size * sizeof *counts->counts);
    if (counts->counts || !counts->size) return;
    report_clear(); /* integers are then counted like other words */
    counts->size = 0;
}

/* Returns the prefix of a word that consists of a prefix and an integer, in the form of integer_counts.prefix. Returns 0 for any
 * other word. */
static uint64_t prefix_of_word(const char *word, uint64_t length) {
    uint64_t digits = length, packed = 0;
    while (digits && word[digits - 1] >= '0' && word[digits - 1] <= '9') digits--;
    if (digits == length || digits > PREFIX_MOST || integer_of(word + digits, length - digits) == NO_INTEGER) return 0;
    memcpy(&packed, word, digits);
    return packed | (digits + 1) << 56;
}

struct integer_prefix integer_counts_prefix(struct integer_counts *counts, const char *word, uint64_t length) {
    uint64_t packed = atomic_load(&counts->prefix), own = packed ? 0 : prefix_of_word(word, length);
    if (own && atomic_compare_exchange_strong(&counts->prefix, &packed, own)) packed = own;
    uint64_t bytes = packed ? (packed >> 56) - 1 : 0, mask = ((uint64_t)1 << 8 * bytes) - 1;
    return (struct integer_prefix){packed & mask, mask, bytes, packed != 0};
}

void integer_counts_release(struct integer_counts *counts) {
    free(counts->counts);
    *counts = (struct integer_counts){0};
}
