#include "tally.h"

#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>

static struct tally_slot *new_slots(uint64_t count) {
    struct tally_slot *slots = mem_zalloc(count, sizeof *slots, "counting");
    mem_prefer_huge(slots, count * sizeof *slots);
    return slots;
}

int tally_open(struct tally *tally, uint64_t most) {
    *tally = (struct tally){.slots = new_slots(TALLY_SLOTS), .slot_count = TALLY_SLOTS, .slots_most = TALLY_SLOTS};
    while (tally->slots_most < TALLY_SLOTS_MOST && tally->slots_most * 2 * sizeof *tally->slots <= most) tally->slots_most *= 2;
    return tally->slots ? 0 : -1;
}

void tally_close(struct tally *tally) {
    words_release(&tally->texts);
    free(tally->slots);
}

void tally_clear(struct tally *tally) {
    words_clear(&tally->texts);
    tally->size = 0;
    memset(tally->slots, 0, tally->slot_count * sizeof *tally->slots);
}

int tally_add(struct tally *tally, const struct tally_query *query, uint32_t number) {
    struct tally_slot *slot = tally_find(tally, query);
    if (slot->end || tally_is_full(tally) || query->length > TALLY_LONGEST) return 0;
    if (query->length > 16 && words_put(&tally->texts, query->word, query->length)) return -1;
    *slot = (struct tally_slot){{query->key[0], query->key[1]}, (uint32_t)query->length + 1, (uint32_t)tally->texts.size - 1, 0, number};
    tally->size++;
    return 0;
}

/* The hash of a word in a slot. */
static uint64_t hash_of(const struct tally *tally, const struct tally_slot *slot) {
    uint64_t length = slot->end - 1;
    char bytes[TALLY_LONGEST] = {0};
    memcpy(bytes, length > 16 ? words_get(&tally->texts, slot->text, NULL) : (const char *)slot->key, length);
    return tally_ask(bytes, length).hash;
}

int tally_double(struct tally *tally) {
    uint64_t before = tally->slot_count;
    struct tally_slot *old = tally->slots, *slots = before < tally->slots_most ? new_slots(before * 2) : NULL;
    if (!slots) {
        if (before < tally->slots_most) report_clear(); /* counting goes on with what memory there is */
        return 0;
    }
    tally->slots = slots;
    tally->slot_count = before * 2;
    for (uint64_t i = 0; i < before; i++) {
        if (!old[i].end) continue;
        uint64_t at = hash_of(tally, &old[i]) >> 32 & (tally->slot_count - 1);
        while (slots[at].end) at = (at + 1) & (tally->slot_count - 1);
        slots[at] = old[i];
    }
    free(old);
    return 1;
}
