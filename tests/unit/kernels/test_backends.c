/* The table of backends: finds a backend by name, by the devices that are present, and by whether it uses a GPU. */
#include "tests/testing.h"

#include "kernels/backend.h"
#include "config/config.h"

static void every_backend_has_a_name_that_the_config_knows(void **state) {
    struct config config;
    assert_int_equal(config_init(&config), 0);
    assert_null(config_named_backend(&config)); /* auto */
    for (const struct backend_ops *const *at = backends; *at; at++) {
        assert_ptr_equal(backend_named((*at)->name), *at);
        assert_int_equal(config_set(&config, "device", "backend", (*at)->name, "here"), 0);
        assert_ptr_equal(config_named_backend(&config), *at);
    }
    assert_null(backend_named("tpu"));
    assert_null(backend_named(""));
    config_release(&config);
}

static void one_of_them_is_present_everywhere(void **state) {
    const struct backend_ops *const *last = backends, *best = backend_best();
    while (last[1]) last++;
    assert_true((*last)->present(NULL, 0));
    assert_true(best->present(NULL, 0));
    for (const struct backend_ops *const *at = backends; *at != best; at++) {
        char why[512] = "";
        assert_false((*at)->present(why, sizeof why));
        assert_string_not_equal(why, "");
    }
}

/* A backend whose has_gpu is 1 must have the calls that belong to a GPU. */
static void what_a_gpu_brings(void **state) {
    assert_false(backend_without_gpu()->has_gpu);
    assert_true(backend_without_gpu()->present(NULL, 0));
    for (const struct backend_ops *const *at = backends; *at; at++) {
        if (!(*at)->present(NULL, 0)) continue;
        struct backend_info info[2] = {{.threads = 0}};
        assert_true((*at)->devices(info, 2) > 0);
        assert_string_not_equal(info[0].name, "");
        assert_int_equal((*at)->has_gpu, info[0].gpu_total > 0);
        assert_int_equal((*at)->has_gpu, (*at)->bench_limits && (*at)->bench_transfer);
        assert_int_equal((*at)->devices(NULL, 0) > 0, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_backend_has_a_name_that_the_config_knows),
                                       cmocka_unit_test(one_of_them_is_present_everywhere), cmocka_unit_test(what_a_gpu_brings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
