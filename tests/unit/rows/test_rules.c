#include "tests/testing.h"

#include "base/report.h"
#include "rows/rules.h"

/* Returns the names of the options that a rule reads, in one line. */
static const char *options_of(int rule) {
    static char out[256];
    size_t used = 0;
    const char *name;
    for (unsigned i = 0; (name = rules_option(rule, i)); i++) used += (size_t)sprintf(out + used, "%s ", name);
    out[used] = 0;
    return out;
}

static void each_rule_reads_pytorchs_options(void **state) {
    static const char *const wanted[RULE_COUNT] = {
        [RULE_SGD] = "momentum nesterov weight_decay ",
        [RULE_ADAGRAD] = "weight_decay lr_decay initial_accumulator eps ",
        [RULE_ADADELTA] = "weight_decay eps rho ",
        [RULE_RMSPROP] = "momentum weight_decay eps alpha centered ",
        [RULE_ADAM] = "weight_decay eps beta1 beta2 amsgrad ",
        [RULE_ADAMW] = "weight_decay eps beta1 beta2 amsgrad ",
        [RULE_SPARSE_ADAM] = "eps beta1 beta2 ",
        [RULE_ADAMAX] = "weight_decay eps beta1 beta2 ",
        [RULE_ASGD] = "weight_decay alpha lambd t0 ",
        [RULE_RPROP] = "eta_minus eta_plus step_min step_max ",
        [RULE_ROWWISE_ADAGRAD] = "initial_accumulator eps ",
        [RULE_FTRL] = "l1 l2 beta ",
        [RULE_ROWWISE_ADAM] = "eps beta1 beta2 ",
    };
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        assert_string_equal(options_of(rule), wanted[rule]);
        assert_int_equal(rules_named(rules_name(rule)), rule);
    }
    assert_null(rules_name(RULE_COUNT));
    assert_null(rules_name(-1));
    assert_true(rules_has(RULE_RPROP, "eta_minus"));
    assert_false(rules_has(RULE_SGD, "eta_minus"));
    assert_true(rules_has(RULE_SGD, "lr"));
}

/* If RULE_MAY_HAVE_THIRD lacked a rule that has a third slot, the GPU would lose that slot without an error. */
static void rules_with_a_third_slot_are_listed(void **state) {
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        int third = 0;
        for (int flags = 0; flags < 8; flags++) {
            struct rule_options o = rules_defaults(rule);
            struct rule_slot slots[RULE_SLOTS];
            o.amsgrad = flags & 1;
            o.centered = flags >> 1 & 1;
            o.momentum = flags >> 2 ? 0.9 : 0;
            for (int i = rule_slots(&o, slots) - 1; i >= 0; i--) third |= slots[i].role == 2;
        }
        assert_int_equal(RULE_MAY_HAVE_THIRD(rule), third);
    }
}

/* Every option has the default of torch.optim in PyTorch 2. */
static void defaults_are_pytorchs(void **state) {
    struct rule_options o = rules_defaults(RULE_ADAM);
    assert_true(o.lr == 1e-3 && o.beta1 == 0.9 && o.beta2 == 0.999 && o.eps == 1e-8 && o.weight_decay == 0 &&
                !o.amsgrad);
    o = rules_defaults(RULE_ADAMW);
    assert_true(o.lr == 1e-3 && o.weight_decay == 0.01);
    o = rules_defaults(RULE_ADAMAX);
    assert_true(o.lr == 2e-3 && o.eps == 1e-8);
    o = rules_defaults(RULE_ADAGRAD);
    assert_true(o.lr == 0.01 && o.eps == 1e-10 && o.lr_decay == 0 && o.initial_accumulator == 0);
    o = rules_defaults(RULE_ROWWISE_ADAGRAD); /* FBGEMM's */
    assert_true(o.lr == 0.01 && o.eps == 1e-8 && o.initial_accumulator == 0 && o.weight_decay == 0);
    o = rules_defaults(RULE_ADADELTA);
    assert_true(o.lr == 1 && o.rho == 0.9 && o.eps == 1e-6);
    o = rules_defaults(RULE_RMSPROP);
    assert_true(o.lr == 0.01 && o.alpha == 0.99 && o.momentum == 0 && !o.centered);
    o = rules_defaults(RULE_ASGD);
    assert_true(o.lr == 0.01 && o.lambd == 1e-4 && o.alpha == 0.75 && o.t0 == 1e6);
    o = rules_defaults(RULE_RPROP);
    assert_true(o.lr == 0.01 && o.eta_minus == 0.5 && o.eta_plus == 1.2 && o.step_min == 1e-6 && o.step_max == 50);
    o = rules_defaults(RULE_SGD);
    assert_true(o.lr == 1e-3 && o.momentum == 0 && !o.nesterov && o.clip == 0);
}

static void only_options_that_a_rule_reads_have_a_range(void **state) {
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        struct rule_options o = rules_defaults(rule);
        assert_int_equal(rules_check(&o), 0);
        o.rho = 2;
        assert_int_equal(rules_check(&o), rule == RULE_ADADELTA ? -1 : 0);
        report_clear();
        o.rho = 0.9;
        o.clip = -1;
        assert_int_equal(rules_check(&o), -1);
        assert_non_null(strstr(report_sentence(), "clip = -1 is not between 0 and 1e+09"));
        report_clear();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_reads_pytorchs_options), cmocka_unit_test(rules_with_a_third_slot_are_listed),
        cmocka_unit_test(defaults_are_pytorchs),
        cmocka_unit_test(only_options_that_a_rule_reads_have_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
