#include "tests/testing.h"

#include "corpus/vocab.h"
#include "base/report.h"

#include "tests/unit/plain_options.h"

#include "tests/unit/sentence.h"

/* Makes a vocabulary from "word@count word@count ..". A word with count 0 and a name that begins with "list:" or
 * "relation:" is a list. */
static struct vocab made_of(const char *text) {
    struct vocab vocab = {0};
    char word[32];
    uint64_t count;
    int length;
    assert_int_equal(vocab_reserve(&vocab, 32, 512), 0);
    for (; sscanf(text, " %31[^ @]@%" SCNu64 "%n", word, &count, &length) == 2; text += length) {
        vocab_append(&vocab, word, strlen(word), count);
        vocab.lists += !count && (!strncmp(word, VOCAB_LIST, strlen(VOCAB_LIST)) || !strncmp(word, VOCAB_RELATION, strlen(VOCAB_RELATION)));
        vocab.tokens += count;
    }
    vocab.distinct = vocab.size;
    vocab.kept = vocab.tokens;
    assert_int_equal(vocab_index(&vocab, "here", NULL), 0);
    return vocab;
}

static void left_as(const char *corpus, const char *run, enum corpus_order order, int list_rows, const char *wanted, uint64_t older,
                    enum corpus_forget forget, uint64_t most, uint32_t *age, uint64_t forgot) {
    struct vocab vocab = made_of(corpus), words = made_of(run);
    struct corpus_options options = plain_options(FORMAT_LISTS);
    char out[512] = "";
    options.order = order;
    options.forget = forget;
    options.max_vocab = most;
    words.age = age;
    options.list_rows = list_rows;
    assert_int_equal(vocab_keep_older(&vocab, &words, &options), 0);
    for (uint64_t id = 0; id < vocab.size; id++) {
        sprintf(out + strlen(out), "%s%s@%" PRIu64, id ? " " : "", vocab_word(&vocab, id, NULL), vocab_count(&vocab, id));
        assert_int_equal(vocab_find(&vocab, vocab_word(&vocab, id, NULL), strlen(vocab_word(&vocab, id, NULL))), id);
    }
    assert_string_equal(out, wanted);
    assert_int_equal(vocab.older, older);
    assert_int_equal(vocab.forgot, forgot);
    words.age = NULL;
    vocab_release(&vocab);
    vocab_release(&words);
}

static void joined_as(const char *corpus, const char *run, enum corpus_order order, int list_rows, const char *wanted, uint64_t older) {
    left_as(corpus, run, order, list_rows, wanted, older, FORGET_NO, 1, NULL, 0); /* max_vocab alone lets no word of an older run leave */
}

static void the_rarest_or_oldest_words_leave(void **state) {
    const char *corpus = "a@5 b@4 c@1 x@1", *run = "c@9 d@4 e@2 f@4";
    left_as(corpus, run, ORDER_FREQUENCY, 0, "c@10 a@5 b@4 d@4", 1, FORGET_COUNT, 4, NULL, 2); /* f is equal to d, and has the higher id */
    left_as(corpus, run, ORDER_FREQUENCY, 0, "c@10 a@5 b@4", 0, FORGET_COUNT, 3, NULL, 3);
    left_as(corpus, run, ORDER_FIRST_SEEN, 0, "a@5 c@10", 0, FORGET_COUNT, 2, NULL, 3);
    left_as(corpus, run, ORDER_FREQUENCY, 0, "c@10 a@5 b@4 d@4 x@1", 1, FORGET_AGE, 5, NULL, 2);
    left_as(corpus, run, ORDER_FIRST_SEEN, 0, "a@5 b@4 c@10 x@1 e@2", 1, FORGET_AGE, 5, (uint32_t[]){7, 3, 2, 3}, 2); /* c occurs now */
    left_as(corpus, run, ORDER_FREQUENCY, 0, "c@10 a@5 b@4", 0, FORGET_AGE, 3, NULL, 3);
    left_as(corpus, run, ORDER_FREQUENCY, 0, "c@10 a@5 b@4 d@4 f@4 e@2 x@1", 3, FORGET_AGE, 7, NULL, 0);
    left_as("a@2 list:x@0", "b@3 c@1 list:z@0", ORDER_FREQUENCY, 1, "b@3 list:x@0 list:z@0", 2, FORGET_COUNT, 1, NULL, 1); /* lists stay */
}

static void ages_rise_and_end(void **state) {
    struct vocab vocab = made_of("a@1"), words = made_of("a@1 b@1 c@1 d@1");
    struct corpus_options options = plain_options(FORMAT_LISTS);
    words.age = memcpy(malloc(16), (uint32_t[]){4, 0, 2, UINT32_MAX}, 16);
    assert_int_equal(vocab_keep_older(&vocab, &words, &options), 0);
    assert_memory_equal(vocab.age, ((uint32_t[]){0, 1, 3, UINT32_MAX}), 16);
    vocab_release(&vocab);
    vocab = made_of("a@1 b@1 c@1 d@1");
    assert_int_equal(vocab_keep_older(&vocab, &words, &options), 0);
    assert_null(vocab.age);
    vocab_release(&vocab);
    vocab_release(&words);
}

static void words_of_both_count_together(void **state) {
    joined_as("a@5 b@4 c@1", "c@9 d@4 e@2", ORDER_FREQUENCY, 0, "c@10 a@5 b@4 d@4 e@2", 2);
    joined_as("a@5 b@4", "b@1 a@1", ORDER_FREQUENCY, 0, "a@6 b@5", 0);
}

static void other_orders_stay_as_they_are(void **state) {
    joined_as("a@1 b@4 c@2", "e@9 b@4 d@7", ORDER_FIRST_SEEN, 0, "a@1 b@8 c@2 e@9 d@7", 2);
    joined_as("0@1 1@0 2@5", "0@1 1@3 2@1 3@0 4@2", ORDER_GIVEN, 0, "0@2 1@3 2@6 3@0 4@2", 2);
}

static void lists_stay_where_lists_have_rows(void **state) {
    joined_as("a@2 list:x@0 list:y@0", "b@3 list:z@0 list:x@0", ORDER_FREQUENCY, 1, "b@3 a@2 list:x@0 list:y@0 list:z@0", 2);
    joined_as("a@2", "b@3 list:z@0", ORDER_FREQUENCY, 0, "b@3 a@2", 1);
}

#define BOTH(name) "relation:" name "@0"
static void reciprocals_follow_all_relations(void **state) {
    joined_as("a@2 " BOTH("r") " " BOTH("r^-1"), "a@3 " BOTH("s") " " BOTH("r") " " BOTH("s^-1") " " BOTH("r^-1"), ORDER_FREQUENCY, 1,
              "a@5 " BOTH("r") " " BOTH("s") " " BOTH("r^-1") " " BOTH("s^-1"), 2);
    struct vocab vocab = made_of("a@2 " BOTH("r") " " BOTH("r^-1")), words = made_of("a@3 " BOTH("r") " " BOTH("s"));
    struct corpus_options options = plain_options(FORMAT_TRIPLES);
    options.list_rows = 1;
    assert_int_equal(vocab_keep_older(&vocab, &words, &options), -1);
    sentence_holds("train.from was trained with triples.reciprocal = no, and this run has yes");
    vocab_release(&vocab);
    vocab_release(&words);
}

static void a_name_is_no_number(void **state) {
    struct vocab vocab = made_of("0@1 1@1"), words = made_of("0@1 w@1");
    struct corpus_options options = plain_options(FORMAT_LISTS);
    options.order = ORDER_GIVEN;
    assert_int_equal(vocab_keep_older(&vocab, &words, &options), -1);
    sentence_holds("has the word 'w', which cannot be row 2");
    assert_int_equal(vocab.size, 2);
    vocab_release(&vocab);
    vocab_release(&words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_both_count_together),
        cmocka_unit_test(other_orders_stay_as_they_are),
        cmocka_unit_test(the_rarest_or_oldest_words_leave),
        cmocka_unit_test(ages_rise_and_end),
        cmocka_unit_test(lists_stay_where_lists_have_rows),
        cmocka_unit_test(reciprocals_follow_all_relations),
        cmocka_unit_test(a_name_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
