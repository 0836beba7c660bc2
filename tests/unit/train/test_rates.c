/* Tests the file in which measured speeds of copies are kept for later processes. If it is damaged, not readable or being written, the speeds are
 * measured again. */
#include "base/directory.h"
#include "base/memory.h"
#include "tests/unit/scratch.h"
#include "train/bench.h"

#include <fcntl.h>
#include "tests/testing.h"
#include <sys/wait.h>

static const struct bench_limits fast = {55e9, 54e9, 101e9, 4250e9};
static struct backend_info gpu = {.name = "NVIDIA H200", .driver = "570.86.15", .link = "PCIe 5.0 x16"};
static int measured;

static int measure_fast(struct backend *backend, struct bench_limits *limits) {
    measured++;
    *limits = fast;
    return 0;
}
static int measure_nothing(struct backend *backend, struct bench_limits *limits) {
    measured++;
    limits->to = 1e9; /* the failed measurement has set only some of the numbers */
    return (fail)("the GPU has no memory left");
}
static int measure_nonsense(struct backend *backend, struct bench_limits *limits) {
    *limits = (struct bench_limits){55e9, INFINITY, 101e9, 0.0 / 0.0};
    return 0;
}

static int fresh(void **state) {
    measured = 0;
    if (scratch_make(state)) return -1;
    setenv("XDG_CACHE_HOME", in_scratch("cache"), 1);
    setenv("HOME", in_scratch("home"), 1);
    return 0;
}

static void assert_rates(const struct bench_limits *rates, const struct bench_limits *wanted) {
    assert_memory_equal(rates, wanted, sizeof *rates);
    assert_string_equal("", report_sentence());
}
static struct bench_limits get(void) {
    struct bench_limits rates;
    rates_get(NULL, &gpu, measure_fast, &rates);
    return rates;
}

/* Returns the name of the only file in the directory. */
static char *kept_file(const char *directory) {
    char **names, name[512] = "";
    int64_t count = directory_list(in_scratch(directory), &names);
    for (int64_t i = 0; i < count; i++)
        if (strstr(names[i], ".txt")) snprintf(name, sizeof name, "%s/%s", directory, names[i]);
    mem_free_texts(names, count);
    assert_true(count == 1 && *name); /* there is no lock and no partial file beside it */
    return in_scratch(name);
}

static void measured_once_and_kept(void **state) {
    struct bench_limits rates = get(), none = {0};
    assert_rates(&rates, &fast);
    rates = get();
    assert_rates(&rates, &fast);
    assert_int_equal(1, measured);
    assert_int_equal(1, rates_find(&gpu, &rates));
    assert_rates(&rates, &fast);
    struct backend_info other = gpu; /* with another driver, link or GPU the speeds are measured again */
    strcpy(other.driver, "570.86.16");
    assert_int_equal(0, rates_find(&other, &rates));
    assert_rates(&rates, &none);
    strcpy(other.driver, gpu.driver);
    strcpy(other.link, "PCIe 4.0 x16");
    assert_int_equal(0, rates_find(&other, &rates));
    strcpy(other.link, gpu.link);
    strcpy(other.name, "NVIDIA H100");
    assert_int_equal(0, rates_find(&other, &rates));
}

static void the_larger_is_kept(void **state) {
    struct bench_limits slow = {30e9, 56e9, 50e9, 2000e9}, both = {55e9, 56e9, 101e9, 4250e9}, rates;
    rates_keep(&gpu, &fast);
    rates_keep(&gpu, &slow);
    assert_int_equal(1, rates_find(&gpu, &rates));
    assert_rates(&rates, &both);
}

static void what_cannot_be_measured_is_not_known(void **state) {
    struct bench_limits rates, none = {0};
    rates_get(NULL, &gpu, measure_nothing, &rates);
    assert_rates(&rates, &none);
    rates_get(NULL, &gpu, measure_nonsense, &rates);
    assert_rates(&rates, &none);
    rates_keep(&gpu, &none);
    assert_int_equal(0, rates_find(&gpu, &rates));
    assert_int_equal(1, measured);
}

/* Changes each byte of the file, cuts it to each length, and tries files that contain no speeds. */
static void damage_is_measured_again(void **state) {
    char whole[1024], *path;
    struct bench_limits rates;
    get();
    path = kept_file("cache/sptx-w2v");
    FILE *file = fopen(path, "r");
    size_t length = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t i = 0; i < length; i++) {
        whole[i] ^= 1;
        scratch_file(path + strlen(scratch) + 1, whole, length);
        assert_int_equal(0, rates_find(&gpu, &rates));
        whole[i] ^= 1;
        scratch_file(path + strlen(scratch) + 1, whole, i);
        assert_int_equal(0, rates_find(&gpu, &rates));
    }
    measured = 0;
    rates = get(); /* measures again and writes a good file */
    assert_rates(&rates, &fast);
    rates = get();
    assert_int_equal(1, measured);
    assert_int_equal(0, unlink(path) || mkfifo(path, 0600));
    rates = get(); /* a pipe in place of the file must not make the process wait */
    assert_rates(&rates, &fast);
    unlink(path);
    assert_int_equal(0, mkdir(path, 0700));
    rates = get();
    assert_rates(&rates, &fast);
}

static int get_without_rights(const char *path) {
    struct bench_limits rates = get();
    return memcmp(&rates, &fast, sizeof rates) || *report_sentence();
}

static void nothing_can_be_kept(void **state) {
    struct bench_limits rates;
    mkdir(in_scratch("cache"), 0500);
    assert_int_equal(0, without_rights(get_without_rights, NULL));
    assert_int_equal(0, without_rights(get_without_rights, NULL));
    assert_int_equal(2, measured);
    setenv("XDG_CACHE_HOME", scratch_text("file", "in the way"), 1);
    rates = get();
    assert_rates(&rates, &fast);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    rates = get();
    assert_rates(&rates, &fast);
    assert_int_equal(4, measured);
}

static void it_is_the_users_cache_directory(void **state) {
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    get();
    kept_file("home/.cache/sptx-w2v");
    assert_int_equal(0, access("not", F_OK) == 0);
}

/* Many processes start at once: one measures, the others wait, and the file is whole at the end. */
static int measure_slowly(struct backend *backend, struct bench_limits *limits) {
    int fd = open(in_scratch("measurings"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(fd, ".", 1) != 1) return -1;
    close(fd);
    usleep(50000);
    *limits = fast;
    return 0;
}

static void many_processes_measure_once(void **state) {
    enum { PROCESSES = 8 };
    pid_t process[PROCESSES];
    struct bench_limits rates;
    struct stat seen;
    in_scratch("measurings");
    for (int i = 0; i < PROCESSES; i++) {
        process[i] = fork();
        if (process[i]) continue;
        rates_get(NULL, &gpu, measure_slowly, &rates);
        _exit(memcmp(&rates, &fast, sizeof rates) != 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(process[i], waitpid(process[i], &status, 0));
        assert_int_equal(0, status);
    }
    assert_int_equal(0, stat(in_scratch("measurings"), &seen));
    assert_int_equal(1, seen.st_size);
    assert_int_equal(1, rates_find(&gpu, &rates));
    kept_file("cache/sptx-w2v");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, scratch_remove)
    const struct CMUnitTest tests[] = {TEST(measured_once_and_kept),
                                       TEST(the_larger_is_kept),
                                       TEST(what_cannot_be_measured_is_not_known),
                                       TEST(damage_is_measured_again),
                                       TEST(nothing_can_be_kept),
                                       TEST(it_is_the_users_cache_directory),
                                       TEST(many_processes_measure_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
