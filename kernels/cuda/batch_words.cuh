/* batch_words: finds the kept words around a position, for kernels that make windows.
 *
 * A word is in the windows of many neighbours, and each of them asks whether the word is kept and where its sentence ends. If
 * positions are in order, one thread looks up each position of the batch, and some positions before and after the batch, once;
 * windows read these results. Windows look up positions that are further away themselves, and, if positions are shuffled, all
 * positions.
 */
#ifndef SPTX_CUDA_BATCH_WORDS_CUH
#define SPTX_CUDA_BATCH_WORDS_CUH

#include "warp.cuh"

/* The looked-up words at positions first .. first + count - 1. */
struct found_words {
    const struct kept_word *word;
    uint64_t first, count;
};

static __device__ struct found_words found_words(const struct example_request &b, const struct kept_word *word) {
    uint64_t before = b.first - b.source.first, behind = b.source.tokens - b.first - b.count;
    if (before > KEPT_BESIDE) before = KEPT_BESIDE;
    if (b.source.shuffle) return {word, 0, 0};
    return {word, b.first - before, before + b.count + (behind < KEPT_BESIDE ? behind : KEPT_BESIDE)};
}

static __global__ void look_up_words(const struct example_request *request, struct kept_word *to) {
    const struct example_request &b = *request;
    struct found_words words = found_words(b, to);
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, of_warp = i - lane_number();
    if (of_warp >= words.count) return;
    uint64_t position = words.first + (i < words.count ? i : words.count - 1);
    uint64_t number = sentence_of(b.source, words.first + of_warp);
    while (__ldg(b.source.starts + number + 1) <= position) number++;
    const struct strip strip = strip_of(&b.source, number, b.epoch);
    struct strip_draws draws = strip_draws();
    if (i < words.count) to[i] = {strip_word(&b.source, &strip, position, b.epoch, &draws), (uint32_t)number};
}

/* The values that a thread needs to look up neighbours itself. They are in memory, since their address is taken; the values that
 * every step of a walk reads are variables of their own, in registers. */
struct looked_up {
    int begun;
    struct strip strip;
    struct strip_walk walk;
    struct strip_draws draws;
};

/* Continues the walk and returns the id of the next kept word, or DRAW_NONE if the sentence has no more. `position` is in the
 * strip. If by = 0, returns the word at the walk's position. */
static __device__ __noinline__ uint32_t look_up(const struct example_request *request, struct looked_up *own, uint64_t position) {
    const struct example_source &s = request->source;
    if (!own->begun) {
        own->begun = 1;
        own->strip = strip_of(&s, example_sentence_of(&s, position), request->epoch);
        own->draws = strip_draws();
    }
    if (!own->walk.by) return strip_word(&s, &own->strip, position, request->epoch, &own->draws);
    return strip_next(&s, &own->strip, &own->walk, request->epoch, &own->draws);
}

/* The word in the middle of a window, and the looked-up words before and after it. */
struct middle {
    const struct example_request *request;
    struct looked_up *own;
    uint64_t position;
    const struct kept_word *here; /* the middle's looked-up word; NULL: no words were looked up */
    uint32_t sentence, before, behind;

    __device__ middle(const struct example_request *request, const struct kept_word *words, uint64_t position,
                      struct looked_up *own)
        : request(request), own(own), position(position), here(NULL), sentence(0), before(0), behind(0) {
        struct found_words found = found_words(*request, words);
        own->begun = 0;
        if (!found.count) return;
        before = (uint32_t)(position - found.first);
        behind = (uint32_t)found.count - 1 - before;
        here = found.word + before;
        sentence = here->sentence;
    }
    __device__ __forceinline__ uint32_t word(void) const {
        if (here) return here->id;
        own->walk = {position, 0};
        return look_up(request, own, position);
    }
    /* Calls take(id, n) for each kept word n = 0, 1 .. in direction `by` from the middle, up to `width` words. */
    template <class Take> __device__ __forceinline__ uint32_t walk(int by, uint32_t width, Take take) const {
        uint32_t count = 0, step = 1, found = by < 0 ? before : behind;
        for (const struct kept_word *at = here; step <= found && count < width; step++) {
            struct kept_word there = *(at += by);
            if (there.sentence != sentence) return count;
            if (there.id != DRAW_NONE) take(there.id, count++);
        }
        if (count < width) own->walk = {position + (int64_t)by * (step - 1), by};
        for (uint32_t id; count < width && (id = look_up(request, own, position)) != DRAW_NONE;) take(id, count++);
        return count;
    }
    /* Returns the row of the document that contains the middle. */
    __device__ __forceinline__ uint32_t document(void) const {
        return example_document(&request->source, here ? sentence : example_sentence_of(&request->source, position));
    }
    __device__ __forceinline__ uint32_t kept(int by, uint32_t width) const {
        return walk(by, width, [](uint32_t, uint32_t) {});
    }
};

/* Lists the kept words before the middle and after it, in order; returns their number. */
static __device__ __forceinline__ uint32_t list_around(const struct middle &middle, uint32_t width, uint32_t *ids) {
    uint32_t left = middle.kept(-1, width);
    middle.walk(-1, left, [=](uint32_t id, uint32_t n) { ids[left - 1 - n] = id; });
    return left + middle.walk(1, width, [=](uint32_t id, uint32_t n) { ids[left + n] = id; });
}

/* Returns how many target rows the window's kept words have, before the middle (by = -1) or after it (by = 1). */
static __device__ uint32_t rows_beside(const struct example_source &s, const struct middle &middle, int by, uint32_t width) {
    uint32_t rows = 0;
    middle.walk(by, width, [&](uint32_t id, uint32_t) { rows += (uint32_t)example_rows_of(&s, id); });
    return rows;
}

/* Returns how many contexts predict the window's kept words before the middle (by = -1) or after it (by = 1). */
static __device__ uint32_t contexts_beside(const struct example_source &s, const struct middle &middle, int by, uint32_t width) {
    uint32_t contexts = 0;
    middle.walk(by, width, [&](uint32_t id, uint32_t) { contexts += example_contexts_of(&s, id); });
    return contexts;
}

#endif
