/* state: takes any bytes as a checkpoint's state.ini. A file that is accepted must be the same after it is written and read.
 *
 *   byte 0     1: the file is used unchanged; otherwise the right checksum is appended as its last line
 *   the rest   the file
 */
#include "tests/fuzz/fuzz.h"
#include "run/state.h"

#include <inttypes.h>
#include <xxhash.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin() || directory_make(in_scratch("again"));
}

static char *with_checksum(const uint8_t *bytes, uint64_t length, uint64_t *made) {
    char *text = malloc(length + 64);
    memcpy(text, bytes, length);
    text[length] = 0;
    char *last = strstr(text, "\nstate_xxh64");
    uint64_t before = last ? (uint64_t)(last + 1 - text) : length;
    *made = before + (uint64_t)sprintf(text + before, "state_xxh64 = %016" PRIx64 "\n", XXH64(text, before, 0));
    return text;
}

static int same_table(struct table_file a, struct table_file b) {
    return a.bytes == b.bytes && a.xxh64 == b.xxh64;
}

static void write_and_read(const struct run_state *state) {
    const struct progress_state *a = &state->progress;
    struct run_state again;
    int broken;
    HOLDS(!state_write(in_scratch("again"), state), "it cannot be written");
    HOLDS(!state_read(in_scratch("again"), &again, &broken), "what was written is refused");
    const struct progress_state *b = &again.progress;
    HOLDS(a->step == b->step && a->epoch == b->epoch && a->position == b->position && a->words == b->words &&
              a->pairs == b->pairs && a->finished == b->finished &&
              !memcmp(&a->seconds, &b->seconds, sizeof a->seconds),
          "where it stands reads back as something else");
    HOLDS(state->corpus.vocab == again.corpus.vocab && state->corpus.stream == again.corpus.stream &&
              same_table(state->target, again.target) && same_table(state->context, again.context) &&
              same_table(state->known, again.known) && state->target_first == again.target_first,
          "what it must be reads back as something else");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct run_state state;
    int broken;
    if (!length) return 0;
    uint64_t made = length - 1;
    char *text = *bytes == 1 ? NULL : with_checksum(bytes + 1, length - 1, &made);
    scratch_file("state.ini", text ? text : (const char *)bytes + 1, made);
    free(text);
    int result = state_read(scratch, &state, &broken);
    HOLDS(!result || broken, "the file is there, and is not said to be broken");
    if (fuzz_accepted(result)) write_and_read(&state);
    return 0;
}
