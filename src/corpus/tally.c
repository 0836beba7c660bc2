#include "tally.h"

int tally_add(struct tally *tally, struct tally_slot *slot, const struct tally_query *query, uint64_t first) {
    if (words_put(&tally->words, query->word, query->length)) return -1;
    *slot = (struct tally_slot){
        {query->key[0], query->key[1]}, (uint32_t)tally->words.size, (uint32_t)query->length, 0, TALLY_NEW};
    tally->of[tally->words.size - 1] = (struct tally_word){query->hash, first, (uint32_t)(slot - tally->slots)};
    return 0;
}

void tally_clear(struct tally *tally) {
    words_clear(&tally->words);
    tally->known = 0;
    memset(tally->slots, 0, sizeof tally->slots);
}
