/* vocab: takes any bytes as vocab.tsv. Every word that is read must be found, and the file must be the same after it is written
 * and read. */
#include "corpus/vocab.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

static uint64_t lines_in(const uint8_t *bytes, size_t length) {
    uint64_t lines = 0;
    for (size_t i = 0; i < length; i++) lines += bytes[i] == '\n';
    return lines + (length && bytes[length - 1] != '\n');
}

static void check_words(const struct vocab *vocab) {
    uint64_t total = 0;
    for (uint64_t id = 0; id < vocab->size; id++) {
        uint64_t length;
        const char *word = vocab_word(vocab, id, &length);
        HOLDS(length > 0, "word %llu is empty", (unsigned long long)id);
        HOLDS(vocab_find(vocab, word, length) == (int64_t)id, "word %llu is not found", (unsigned long long)id);
        total += vocab_count(vocab, id);
    }
    HOLDS(total == vocab->tokens && total == vocab->kept, "the counts do not add up");
}

static void write_and_read(const struct vocab *vocab, const char *first, const char *second) {
    struct vocab again;
    HOLDS(!vocab_write(vocab, first), "what was read cannot be written");
    HOLDS(!vocab_read(&again, first), "what was written cannot be read");
    HOLDS(again.size == vocab->size && again.tokens == vocab->tokens, "it reads back as something else");
    HOLDS(vocab_fingerprint(&again) == vocab_fingerprint(vocab), "it reads back with another fingerprint");
    HOLDS(!vocab_write(&again, second) && fuzz_same_files(first, second), "it is written as something else");
    vocab_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct vocab vocab;
    char word[64];
    if (!fuzz_accepted(vocab_read(&vocab, scratch_file("given", bytes, length)))) return 0;
    HOLDS(vocab.size == lines_in(bytes, length), "%llu words", (unsigned long long)vocab.size);
    check_words(&vocab);
    snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), (const char *)bytes);
    vocab_near(&vocab, word);
    write_and_read(&vocab, in_scratch("first"), in_scratch("second"));
    vocab_release(&vocab);
    return 0;
}
