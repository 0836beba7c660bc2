#include "tally.h"

#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>

/* Replaces the slots by `count` empty ones. Returns 0, or -1 after fail() with the tally unchanged. */
static int open_slots(struct tally *tally, uint64_t count) {
    struct tally_slot *slots = mem_zalloc(count, sizeof *slots, "counting");
    if (!slots || mem_reserve(&tally->of, &tally->of_capacity, count / 4 * 3, sizeof *tally->of, "counting")) {
        free(slots);
        return -1;
    }
    mem_prefer_huge(slots, count * sizeof *slots);
    free(tally->slots);
    tally->slots = slots;
    tally->slot_count = count;
    return 0;
}

int tally_open(struct tally *tally, uint64_t most) {
    *tally = (struct tally){.slots_most = TALLY_SLOTS};
    while (tally->slots_most < TALLY_SLOTS_MOST && tally->slots_most * 2 * (sizeof *tally->slots + sizeof *tally->of) <= most)
        tally->slots_most *= 2;
    return open_slots(tally, TALLY_SLOTS);
}

void tally_close(struct tally *tally) {
    words_release(&tally->words);
    free(tally->of);
    free(tally->slots);
}

int tally_add(struct tally *tally, struct tally_slot *slot, const struct tally_query *query, uint64_t first) {
    if (words_put(&tally->words, query->word, query->length)) return -1;
    *slot = (struct tally_slot){{query->key[0], query->key[1]}, (uint32_t)tally->words.size, (uint32_t)query->length, 0, TALLY_NEW};
    tally->of[tally->words.size - 1] = (struct tally_word){query->hash, first, (uint32_t)(slot - tally->slots)};
    return 0;
}

static void clear(struct tally *tally) {
    words_clear(&tally->words);
    tally->known = 0;
    memset(tally->slots, 0, tally->slot_count * sizeof *tally->slots);
}

void tally_make_room(struct tally *tally) {
    uint64_t before = tally->slot_count;
    struct tally_slot *old = tally->slots;
    tally->slots = NULL;
    if (before >= tally->slots_most || open_slots(tally, before * 2)) {
        if (before < tally->slots_most) report_clear(); /* counting goes on with what memory there is */
        tally->slots = old;
        clear(tally);
        return;
    }
    for (uint64_t n = 0; n < tally->words.size; n++) {
        uint64_t at = tally->of[n].hash >> 32 & (tally->slot_count - 1);
        while (tally->slots[at].word) at = (at + 1) & (tally->slot_count - 1);
        tally->slots[at] = old[tally->of[n].slot];
        tally->of[n].slot = (uint32_t)at;
    }
    free(old);
}
