#include "tally.h"

int tally_add(struct tally *tally, struct tally_slot *slot, const uint64_t key[2], uint64_t hash, const char *word, uint64_t length,
              uint64_t first) {
    if (words_put(&tally->words, word, length)) return -1;
    *slot = (struct tally_slot){{key[0], key[1]}, (uint32_t)tally->words.size, (uint32_t)length, 0, TALLY_NEW};
    tally->of[tally->words.size - 1] = (struct tally_word){hash, first, (uint32_t)(slot - tally->slots)};
    return 0;
}

void tally_clear(struct tally *tally) {
    words_clear(&tally->words);
    tally->known = 0;
    memset(tally->slots, 0, sizeof tally->slots);
}
