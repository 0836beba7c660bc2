/* Checks each reason for which lock-free training is refused, and that its message says what to set. */
#include "kernels/hogwild.h"

#include "tests/testing.h"

#define REFUSES(asked, ...) refuses(&(asked), (const char *const[]){__VA_ARGS__, NULL})

static void refuses(const struct hogwild_asked *asked, const char *const *words) {
    char why[HOGWILD_WHY];
    assert_int_equal(hogwild_refuses(asked, why), 1);
    for (; *words; words++)
        if (!strstr(why, *words)) fail_msg("'%s' does not say '%s'", why, *words);
}

static void does(const struct hogwild_asked *asked) {
    char why[HOGWILD_WHY] = "nothing was written here";
    assert_int_equal(hogwild_refuses(asked, why), 0);
    assert_string_equal(why, "");
}

static void one_process_trains(void **state) {
    struct hogwild_asked asked = {.ranks = 2};
    REFUSES(asked, "2 ranks", "set train.update = batch, or begin it without them");
    for (asked.ranks = 0; asked.ranks < 2; asked.ranks++) does(&asked);
}

static void two_rules_train(void **state) {
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        struct hogwild_asked asked = {.rule = {.rule = rule}, .rule_name = "this one"};
        if (rule == RULE_SGD || rule == RULE_ADAGRAD) does(&asked);
        else REFUSES(asked, "optimizer.rule = sgd or adagrad", "it is this one", "set train.update = batch");
    }
    struct hogwild_asked unnamed = {.rule = {.rule = RULE_ADAM}};
    REFUSES(unnamed, "it is another");
}

static void options_of_these_rules(void **state) {
    struct hogwild_asked momentum = {.rule = {.rule = RULE_SGD, .momentum = 0.9}};
    REFUSES(momentum, "optimizer.momentum is 0.9", "set train.update = batch");
    momentum.rule.rule = RULE_ADAGRAD; /* adagrad has no momentum, so it is not refused */
    does(&momentum);
    struct hogwild_asked others = {
        .rule = {.rule = RULE_ADAGRAD, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator = 0.1}};
    does(&others);
}

static void what_is_said_of_a_batch(void **state) {
    struct hogwild_asked clip = {.rule = {.clip = 20}}, mean = {.mean = 1};
    REFUSES(clip, "optimizer.clip = 20", "set it to 0, or train.update = batch");
    REFUSES(mean, "set train.reduction = sum, or train.update = batch");
}

static void one_loss_is_trained(void **state) {
    struct hogwild_asked softmax = {
        .loss = {.kind = LOSS_SOFTMAX, .temperature = 0.5f}, .loss_name = "softmax", .score_name = "dot"};
    struct hogwild_asked cosine = {.loss = {.score = SCORE_COSINE}, .loss_name = "logistic", .score_name = "cosine"};
    struct hogwild_asked warm = {.loss = {.temperature = 2}, .loss_name = "logistic", .score_name = "dot"};
    struct hogwild_asked plain = {.loss = {.temperature = 1}};
    REFUSES(softmax, "train.loss is softmax of dot at temperature 0.5", "set train.update = batch");
    REFUSES(cosine, "logistic of cosine at temperature 1");
    REFUSES(warm, "logistic of dot at temperature 2");
    does(&plain);
}

static void what_a_gpu_does_not_train(void **state) {
    struct hogwild_asked frozen = {.frozen = 1}, files = {.in_file = 1 << HOGWILD_TARGET | 1 << HOGWILD_CONTEXT_STATE};
    does(&frozen);
    does(&files);
    frozen.gpu = files.gpu = 1;
    REFUSES(frozen, "train.freeze", "set train.update = batch, or device.backend = cpu");
    REFUSES(files, "set memory.target = pinned, memory.context_state = pinned, or train.update = batch");
    struct hogwild_asked all = {.gpu = 1, .in_file = (1 << HOGWILD_PARTS) - 1};
    REFUSES(all, "memory.target = pinned, memory.target_state = pinned, memory.context = pinned, "
                 "memory.context_state = pinned, or");
    struct hogwild_asked glove = {.gpu = 1, .columns = 512, .rule = {.rule = RULE_ADAGRAD}, .loss = {.kind = LOSS_GLOVE, .weighted = 1}}, wide = glove,
                         half = glove, decay = glove, sgd = glove, cpu = glove;
    does(&glove);
    wide.columns = 513, half.halves = 1, decay.rule.lr_decay = 0.1, sgd.rule.rule = RULE_SGD, cpu.columns = 4096, cpu.gpu = 0;
    REFUSES(wide, "at most 510 dimensions", "set train.update = batch, or device.backend = cpu");
    REFUSES(half, "float32");
    REFUSES(decay, "without decay");
    REFUSES(sgd, "adagrad");
    does(&cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_trains),      cmocka_unit_test(two_rules_train),     cmocka_unit_test(options_of_these_rules),
        cmocka_unit_test(what_is_said_of_a_batch), cmocka_unit_test(one_loss_is_trained),
        cmocka_unit_test(what_a_gpu_does_not_train)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
