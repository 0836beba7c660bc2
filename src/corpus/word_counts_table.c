/* The counted words by their numbers. word_counts.c counts them. */
#include "word_counts.h"

#include "gathered.h"

#include <stdlib.h>
#include <string.h>

void word_counts_release(struct word_counts *counts) {
    if (counts->lent) counts->lent->words = counts->shards[0].words, counts->shards[0].words = (struct words){0};
    for (int s = 0; s < WORD_SHARDS; s++) {
        words_release(&counts->shards[s].words);
        free(counts->shards[s].counts);
        pthread_mutex_destroy(&counts->shards[s].lock);
    }
    integer_counts_release(&counts->integers);
    *counts = (struct word_counts){0};
}

uint64_t word_counts_numbers(const struct word_counts *counts) {
    uint64_t most = 0;
    for (int s = 0; s < WORD_SHARDS; s++) most = counts->shards[s].words.size > most ? counts->shards[s].words.size : most;
    return word_counts_number(counts, 0, most);
}

const char *word_counts_word(const struct word_counts *counts, uint64_t number, char digits[WORD_DIGITS], uint64_t *length) {
    if (number < counts->integers.size) {
        char *end = digits + WORD_DIGITS, *at = end; /* snprintf() takes five times as long */
        do *--at = (char)('0' + number % 10);
        while (number /= 10);
        uint64_t prefix = counts->integers.prefix, letters = prefix ? (prefix >> 56) - 1 : 0;
        at = memcpy(at - letters, &prefix, letters);
        *length = (uint64_t)(end - at);
        return at;
    }
    return words_get(&word_counts_shard(counts, number)->words, word_counts_in_shard(counts, number), length);
}
