#include "base/directory.h"
#include "base/file.h"
#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/testing.h"
#include "tests/unit/sentence.h"

static char holder[LOCK_HOLDER];

/* Starts a process that takes the lock and holds it until the process is killed. */
static pid_t start_holder(const char *path) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        struct lock lock;
        byte = lock_try(&lock, path, holder) ? 'n' : 'y';
        if (write(ready[1], &byte, 1) == 1) pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void one_at_a_time(void **state) {
    struct lock first, second;
    char *path = in_scratch("lock"), wanted[64];
    assert_int_equal(lock_try(&first, path, holder), 0);
    assert_int_equal(lock_try(&second, path, holder), 1);
    snprintf(wanted, sizeof wanted, "process %ld of ", (long)getpid());
    assert_ptr_equal(strstr(holder, wanted), holder);
    assert_non_null(strstr(holder, ", since 2"));
    lock_give(&second); /* giving back a lock that was never taken does no harm */
    assert_int_equal(lock_try(&second, path, holder), 1);
    lock_give(&first);
    lock_give(&first);
    assert_false(file_exists(path));
    assert_int_equal(lock_try(&second, path, holder), 0);
    lock_give(&second);
}

/* When a process ends, even if it is killed, its lock becomes free. The lock file stays, and the next process writes its own name to it. */
static void a_killed_process_has_nothing(void **state) {
    struct lock lock;
    char *path = in_scratch("lock"), wanted[64];
    pid_t child = start_holder(path);
    assert_int_equal(lock_try(&lock, path, holder), 1);
    snprintf(wanted, sizeof wanted, "process %ld of ", (long)child);
    assert_ptr_equal(strstr(holder, wanted), holder);
    end(child);
    assert_true(file_exists(path));
    assert_int_equal(lock_try(&lock, path, holder), 0);
    char *text = file_read(path, NULL);
    snprintf(wanted, sizeof wanted, "sptx-w2v lock\nprocess %ld of ", (long)getpid());
    assert_ptr_equal(strstr(text, wanted), text);
    free(text);
    lock_give(&lock);
}

static void waits_for_the_other(void **state) {
    struct lock lock;
    char *path = in_scratch("lock");
    pid_t child = start_holder(path);
    assert_int_equal(lock_try(&lock, path, holder), 1);
    pid_t killer = fork();
    if (!killer) {
        usleep(100000);
        kill(child, SIGKILL);
        _exit(0);
    }
    assert_int_equal(lock_wait(&lock, path), 0);
    waitpid(killer, NULL, 0);
    waitpid(child, NULL, 0);
    lock_give(&lock);
}

/* Two processes never hold the lock at once, even while the lock's file is removed and made again. */
static void many_take_turns(void **state) {
    enum { PROCESSES = 6, ROUNDS = 300 };
    char *path = in_scratch("lock"), *inside = in_scratch("inside");
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        for (int round = 0; !children[i] && round < ROUNDS; round++) {
            struct lock lock;
            int taken = round % 2 ? lock_wait(&lock, path) : lock_try(&lock, path, holder);
            if (taken < 0 || (!taken && (mkdir(inside, 0777) || rmdir(inside)))) _exit(1);
            lock_give(&lock);
        }
        if (!children[i]) _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_false(file_exists(path));
}

/* If a file with the lock file's name is not a lock file, it is left unchanged. */
static void what_is_no_lock_file_stays(void **state) {
    struct lock lock;
    char *path = scratch_text("notes", "of mine\n"), *link = in_scratch("link"), *pipe_path = in_scratch("pipe");
    assert_int_equal(lock_try(&lock, path, holder), -1);
    sentence_holds("notes' is in the way");
    char *text = file_read(path, NULL);
    assert_string_equal(text, "of mine\n");
    free(text);
    assert_int_equal(symlink("absent", link), 0);
    assert_int_equal(lock_try(&lock, link, holder), -1);
    sentence_holds("link'");
    assert_false(file_exists(in_scratch("absent")));
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(lock_try(&lock, pipe_path, holder), -1);
    sentence_holds("pipe' is in the way");
    assert_int_equal(lock_try(&lock, scratch, holder), -1);
    sentence_holds(scratch);
    assert_int_equal(lock_try(&lock, in_scratch("no/lock"), holder), -1);
    sentence_holds("No such file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(one_at_a_time), TEST(a_killed_process_has_nothing), TEST(waits_for_the_other),
                                       TEST(many_take_turns), TEST(what_is_no_lock_file_stays)};
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
