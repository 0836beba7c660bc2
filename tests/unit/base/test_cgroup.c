/* Finds the memory limit of this process's control group. The tests make trees of files as cgroup 1 and 2 have them, with limits
 * at each level, and files without a limit. */
#include "base/machine.h"
#include "base/memory.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

/* Writes a file of the tree, and makes its parent directories. */
static void put(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s", name);
    for (char *at = path; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        if (mkdir(in_scratch(path), 0777) && !directory_exists(in_scratch(path))) abort();
    }
    scratch_text(name, text);
}
static void put_number(const char *name, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
    put(name, text);
}

#define BASE "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
#define V2   "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1   "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define MIB  ((uint64_t)1 << 20)

static struct cgroup_memory read_tree(void) {
    return cgroup_memory(scratch);
}
static void assert_memory(uint64_t limit, uint64_t left) {
    struct cgroup_memory memory = read_tree();
    if (memory.limit != limit || memory.left != left)
        print_error("limit %llu, left %llu\n", (unsigned long long)memory.limit, (unsigned long long)memory.left);
    assert_true(memory.limit == limit && memory.left == left);
}

static void no_groups_are_no_limit(void **state) {
    assert_memory(UINT64_MAX, UINT64_MAX); /* there is no /proc */
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", BASE V2);
    assert_memory(UINT64_MAX, UINT64_MAX); /* the groups have no files about memory */
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.high", "max\n");
    put_number("sys/fs/cgroup/a/b/memory.current", 5 * MIB);
    assert_memory(UINT64_MAX, UINT64_MAX);
    put("proc/self/mountinfo", "garbage\n - \n1 2 3 / /x rw - cgroup2\n\n");
    assert_memory(UINT64_MAX, UINT64_MAX);
}

static void version_2_takes_the_tightest_of_all_above(void **state) {
    put("proc/self/cgroup", "3:memory:/elsewhere\n0::/a/b\n");
    put("proc/self/mountinfo", BASE V2);
    put_number("sys/fs/cgroup/a/b/memory.max", 100 * MIB);
    put_number("sys/fs/cgroup/a/b/memory.current", 30 * MIB);
    assert_memory(100 * MIB, 100 * MIB); /* without a file memory.stat it is unknown how much of the used memory is cache */
    put("sys/fs/cgroup/a/b/memory.stat", "anon 31457280\n");
    assert_memory(100 * MIB, 70 * MIB);
    put("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 2097152\nactive_file 1048576\nslab_reclaimable 4\nsock 9\n");
    assert_memory(100 * MIB, 73 * MIB + 4); /* the cache counts as free memory, since the system drops it first */
    put_number("sys/fs/cgroup/a/b/memory.high", 60 * MIB);
    assert_memory(60 * MIB, 33 * MIB + 4);
    put_number("sys/fs/cgroup/a/memory.max", 200 * MIB); /* this group may use more, but its parent's other children have already used most of the
                                                          * parent's memory */
    put_number("sys/fs/cgroup/a/memory.current", 190 * MIB);
    put("sys/fs/cgroup/a/memory.stat", "\n");
    assert_memory(60 * MIB, 10 * MIB);
    put_number("sys/fs/cgroup/memory.max", 50 * MIB);
    put_number("sys/fs/cgroup/memory.current", 50 * MIB - 1);
    put("sys/fs/cgroup/memory.stat", "");
    assert_memory(50 * MIB, 1);
    put_number("sys/fs/cgroup/memory.current", 50 * MIB + 1); /* the limit was lowered until it was below the memory in use */
    assert_memory(50 * MIB, 0);
    put("sys/fs/cgroup/memory.stat", "inactive_file 99999999999\n"); /* more cache than memory in use: this happens because the
                                                                      * counters are not read at the same moment */
    assert_memory(50 * MIB, 10 * MIB);
}

static void version_1_knows_limits_above_what_is_seen(void **state) {
    put("proc/self/cgroup", "5:cpu,cpuacct:/\n4:pids,memory:/docker/x\n1:name=memory:/no\n0::/\n");
    put("proc/self/mountinfo", BASE V1);
    put("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
    put_number("sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", 20 * MIB);
    assert_memory(UINT64_MAX, UINT64_MAX);
    put("sys/fs/cgroup/memory/docker/x/memory.stat", "cache 7\nhierarchical_memory_limit 67108864\ninactive_file 1\n"
                                                     "total_inactive_file 1048576\ntotal_active_file 2097152\n");
    assert_memory(64 * MIB, 47 * MIB);
    put_number("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", 32 * MIB);
    assert_memory(32 * MIB, 15 * MIB);
    put_number("sys/fs/cgroup/memory/memory.limit_in_bytes", 16 * MIB);
    put_number("sys/fs/cgroup/memory/memory.usage_in_bytes", 0);
    assert_memory(16 * MIB, 15 * MIB);
}

static void a_container_sees_a_part_of_the_tree(void **state) {
    put_number("sys/fs/cgroup/memory.max", 70 * MIB);
    put_number("sys/fs/cgroup/in/memory.max", 60 * MIB);
    /* The container sees only its own part of the cgroup tree, but the path of its group begins at the host's root. */
    put("proc/self/mountinfo", "41 31 0:38 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "0::/docker/x/in\n");
    assert_memory(60 * MIB, 60 * MIB);
    put("proc/self/cgroup", "0::/docker/x\n");
    assert_memory(70 * MIB, 70 * MIB);
    put("proc/self/cgroup", "0::/docker/xy/in\n"); /* a group outside of the part that the container sees */
    assert_memory(70 * MIB, 70 * MIB);
    put("proc/self/cgroup", "0::/../in\n");
    assert_memory(70 * MIB, 70 * MIB);
    put("proc/self/cgroup", "0::/docker/x/gone/too (deleted)\n"); /* this group was deleted, so the limits of its parents count */
    assert_memory(70 * MIB, 70 * MIB);
    put("proc/self/mountinfo", "41 31 0:38 / /a\\040b rw - cgroup2 cgroup2 rw\n");
    put("proc/self/cgroup", "0::/\n");
    put_number("a b/memory.max", 3 * MIB);
    assert_memory(3 * MIB, 3 * MIB);
}

static void what_can_be_had_is_the_smaller_of_machine_and_groups(void **state) {
    assert_true(mem_total_under(scratch) == 0 && mem_available_under(scratch) == 0); /* the system says nothing about memory */
    put("proc/meminfo", "MemTotal:      100 kB\nMemFree:       7 kB\nMemAvailable:   50 kB\n");
    assert_true(mem_total_under(scratch) == 100 << 10 && mem_available_under(scratch) == 50 << 10);
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo", BASE V2);
    put_number("sys/fs/cgroup/memory.max", 100 << 10);
    put_number("sys/fs/cgroup/memory.current", (50 << 10) - 1);
    put("sys/fs/cgroup/memory.stat", "anon 1\n");
    assert_true(mem_total_under(scratch) == 100 << 10 && mem_available_under(scratch) == 50 << 10);
    put_number("sys/fs/cgroup/memory.current", (50 << 10) + 1);
    assert_true(mem_available_under(scratch) == (50 << 10) - 1);
    put_number("sys/fs/cgroup/memory.max", 60 << 10);
    assert_true(mem_total_under(scratch) == 60 << 10);
    put_number("sys/fs/cgroup/memory.current", 60 << 10);
    assert_true(mem_available_under(scratch) == 1); /* 1 and not 0, since 0 means that the memory is unknown */
}

static void this_system_is_read(void **state) {
    struct cgroup_memory memory = cgroup_memory("");
    assert_true(memory.left <= memory.limit && mem_available() <= mem_total() && mem_available() > 0);
    assert_true(mem_total() <= memory.limit);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {TEST(no_groups_are_no_limit),
                                       TEST(version_2_takes_the_tightest_of_all_above),
                                       TEST(version_1_knows_limits_above_what_is_seen),
                                       TEST(a_container_sees_a_part_of_the_tree),
                                       TEST(what_can_be_had_is_the_smaller_of_machine_and_groups),
                                       TEST(this_system_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
