#include "phrase_tokens.h"

#include "base/report.h"
#include "base/text.h"
#include "gathered.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

int phrase_tokens_recorded(struct phrase_tokens *tokens, const struct recorded *recorded) {
    uint64_t bytes = recorded->count * sizeof *tokens->ids;
    *tokens = (struct phrase_tokens){NULL, 0, 0};
    if (!bytes) return 0;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, recorded->fd, 0);
    if (data == MAP_FAILED) return fail("cannot map %" PRIu64 " bytes of the text's words: %s", bytes, strerror(errno));
    *tokens = (struct phrase_tokens){data, recorded->count, bytes};
    for (uint64_t i = 0; i < tokens->size; i++)
        if (tokens->ids[i] != PHRASE_LINE_END) tokens->ids[i] = recorded->items[tokens->ids[i]];
    return 0;
}

int phrase_tokens_gathered(struct phrase_tokens *tokens, const struct gathered *gathered) {
    uint64_t size = gathered->tokens + gathered->sentences, bytes = size * sizeof *tokens->ids, at = 0, length;
    *tokens = (struct phrase_tokens){NULL, 0, 0};
    for (uint64_t n = 0; n < gathered->items.words.size; n++) {
        const char *word = words_get(&gathered->items.words, n, &length);
        if (memchr(word, ' ', length))
            return fail(
                "corpus.phrases = yes: the word '%.*s' has a blank in it; join words before, as sptx.Phrases does in Python",
                text_shown(length), word);
    }
    if (!size) return 0;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return fail("not enough memory for the numbers of %" PRIu64 " words: %s", size, strerror(errno));
    *tokens = (struct phrase_tokens){data, size, bytes};
    uint32_t *out = data;
    for (uint64_t i = 0; i < gathered->sentences; i++) {
        for (; at < gathered->ends[i]; at++) *out++ = gathered->ids[at];
        *out++ = PHRASE_LINE_END;
    }
    return 0;
}

void phrase_tokens_release(struct phrase_tokens *tokens) {
    if (tokens->ids) munmap(tokens->ids, tokens->mapped);
    *tokens = (struct phrase_tokens){NULL, 0, 0};
}
