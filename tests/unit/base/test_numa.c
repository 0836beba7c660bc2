#define _GNU_SOURCE
#include "base/directory.h"
#include "base/machine.h"
#include "tests/unit/scratch.h"

#include <linux/mempolicy.h>
#include "tests/testing.h"
#include <sys/mman.h>
#include <sys/syscall.h>

static const char nodes_file[] = "devices/system/node/has_memory", node_file[] = "bus/pci/devices/0000:1b:00.0/numa_node";

/* Writes a file as in /sys; text = NULL: removes it. */
static void say(const char *name, const char *text) {
    char *path = file_join(scratch, name);
    for (char *slash = path + strlen(scratch) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0777);
    }
    if (text) assert_int_equal(file_replace(path, text, strlen(text)), 0);
    else assert_int_equal(file_remove(path), 0);
    free(path);
}

static int near(const char *nodes, const char *node) {
    say(nodes_file, nodes);
    say(node_file, node);
    return numa_near(scratch, "0000:1B:00.0");
}

static void a_device_is_near_the_node_that_the_system_names(void **state) {
    assert_int_equal(near("0-1\n", "1\n"), 1);
    assert_int_equal(near("0-1\n", "0\n"), 0);
    assert_int_equal(near("0,2-3\n", "3\n"), 3);
    assert_int_equal(near("0,8\n", "8\n"), 8);
    assert_int_equal(near("0-1\n", "1023\n"), 1023);
}

static void where_there_is_nothing_to_choose_nothing_is(void **state) {
    assert_int_equal(near("0\n", "0\n"), NUMA_NONE);
    assert_int_equal(near("1\n", "1\n"), NUMA_NONE);
    assert_int_equal(near("\n", "0\n"), NUMA_NONE);
    assert_int_equal(near("1-0\n", "0\n"), NUMA_NONE);
    assert_int_equal(near(NULL, "0\n"), NUMA_NONE);
    assert_int_equal(near("0-1\n", "-1\n"), NUMA_NONE);
    assert_int_equal(near("0-1\n", "1024\n"), NUMA_NONE);
    assert_int_equal(near("0-1\n", "\n"), NUMA_NONE);
    assert_int_equal(near("0-1\n", "none\n"), NUMA_NONE);
    assert_int_equal(near("0-1\n", NULL), NUMA_NONE);
    assert_int_equal(numa_near(scratch, "0000:1c:00.0"), NUMA_NONE);
}

/* Returns the NUMA policy of a page (NULL: of this thread); -1 if the system does not give it. */
static int policy(void *page) {
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, page, page ? (unsigned long)MPOL_F_ADDR : 0ul)) return -1;
    return mode;
}

static void memory_is_asked_for_at_a_node(void **state) {
    char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (policy(NULL) != MPOL_DEFAULT || syscall(SYS_mbind, pages, 4096ul, MPOL_DEFAULT, NULL, 0ul, 0ul)) skip();
    numa_place(pages, 1 << 20, NUMA_NONE);
    assert_int_equal(policy(pages), MPOL_DEFAULT);
    numa_place(pages, 1 << 19, 0);
    assert_int_equal(policy(pages), MPOL_PREFERRED);
    assert_int_equal(policy(pages + (1 << 19)), MPOL_DEFAULT);
    memset(pages, 1, 1 << 20);
    assert_int_equal(policy(NULL), MPOL_DEFAULT);
    numa_begin(0);
    assert_int_equal(policy(NULL), MPOL_PREFERRED);
    assert_int_equal(near("0-1\n", "1\n"), NUMA_NONE); /* the user has already restricted the process to a node */
    numa_end(0);
    assert_int_equal(policy(NULL), MPOL_DEFAULT);
    munmap(pages, 1 << 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_device_is_near_the_node_that_the_system_names),
                                       TEST(where_there_is_nothing_to_choose_nothing_is), TEST(memory_is_asked_for_at_a_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
