#include "base/file.h"
#include "tests/unit/file_holds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int files_in_scratch(void) {
    char **names;
    int64_t count = directory_list(scratch, &names);
    for (int64_t i = 0; i < count; i++) free(names[i]);
    free(names);
    return (int)count;
}

/* ---- reading ---- */

static void maps_and_reads(void **state) {
    struct file_map map;
    char *path = scratch_file("a", "one\0two", 7), *empty = scratch_text("empty", "");
    assert_int_equal(file_map_open(&map, path), 0);
    assert_int_equal(map.size, 7);
    assert_memory_equal(map.data, "one\0two", 7);
    file_map_close(&map);
    file_map_close(&map); /* closing twice does no harm */
    assert_int_equal(file_map_open(&map, empty), 0);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    file_map_close(&map);
    assert_holds(path, "one\0two", 7);
    assert_holds(empty, "", 0);
    assert_int_equal(file_size(path), 7);
}

static void says_what_cannot_be_read(void **state) {
    struct file_map map;
    char *absent = in_scratch("absent"), **names;
    assert_int_equal(file_map_open(&map, absent), -1);
    assert_said("No such file", absent);
    assert_null(file_read(scratch, NULL));
    assert_said("not a plain file", scratch);
    assert_int_equal(file_size(absent), -1);
    assert_said("No such file", absent);
    assert_int_equal(directory_list(absent, &names), -1);
    assert_said("cannot read directory", absent);
    char *looped = in_scratch("loop");
    assert_int_equal(symlink("loop", looped), 0);
    assert_null(file_read(looped, NULL));
    assert_said("cannot open", looped);
}

/* Opening anything but a plain file fails at once, even where open() would wait, as for a pipe. */
static void opens_plain_files_only(void **state) {
    static const char *const others[][2] = {{"/dev/null", "not a plain file but a device"},
                                            {"/dev/zero", "not a plain file but a device"},
                                            {"pipe", "not a plain file but a pipe"},
                                            {"", "not a plain file but a directory"}};
    struct file_map map;
    assert_int_equal(mkfifo(in_scratch("pipe"), 0600), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *path = *others[i][0] == '/' ? others[i][0] : in_scratch(others[i][0]), *said = others[i][1];
        assert_int_equal(file_open(path, O_RDONLY), -1);
        assert_said(said, path);
        assert_int_equal(file_map_open(&map, path), -1);
        assert_said(said, path);
        assert_null(file_read(path, NULL));
        assert_said(said, path);
        if (!strstr(said, "pipe")) {
            assert_null(file_read_given(path, 0, NULL));
            assert_said(said, path);
        }
    }
    assert_int_equal(file_append(in_scratch("pipe"), "x", 1), -1);
    assert_said("cannot write", in_scratch("pipe"));
    assert_int_equal(file_append(scratch, "x", 1), -1);
    assert_said("cannot write", scratch);
    int fd = file_open(in_scratch("new"), O_WRONLY | O_CREAT);
    assert_true(fd >= 0);
    close(fd);
}

/* Starts a process that writes the texts `pieces` to the pipe, with pauses between them. */
static pid_t start_writer(const char *path, const char *const *pieces) {
    pid_t writer = fork();
    if (writer) return writer;
    usleep(100000);
    int fd = open(path, O_WRONLY);
    for (; *pieces; pieces++) {
        usleep(100000);
        if (write(fd, *pieces, strlen(*pieces)) < 0) _exit(1);
    }
    _exit(0);
}

static void reads_what_is_written_to_a_pipe(void **state) {
    static const char *const pieces[] = {"one ", "two ", "three", NULL}, *const nothing[] = {NULL};
    char *path = in_scratch("pipe");
    uint64_t length;
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t writer = start_writer(path, pieces);
    char *text = file_read_given(path, 0, &length);
    assert_non_null(text);
    assert_string_equal(text, "one two three");
    assert_int_equal(length, 13);
    free(text);
    waitpid(writer, NULL, 0);
    writer = start_writer(path, nothing);
    text = file_read_given(path, 0, &length);
    assert_non_null(text);
    assert_int_equal(length, 0);
    free(text);
    waitpid(writer, NULL, 0);
    assert_null(file_read_given(path, 0, &length));
    assert_said("is a pipe that nothing has written to", path);
}

static void reads_no_more_than_it_is_allowed(void **state) {
    static const char *const pieces[] = {"12345", "6", NULL};
    char *path = scratch_text("file", "12345"), *pipe = in_scratch("pipe"), *text;
    for (uint64_t most = 5; most < 8; most++) {
        assert_non_null(text = file_read_given(path, most, NULL));
        free(text);
    }
    for (uint64_t most = 1; most < 5; most++) {
        assert_null(file_read_given(path, most, NULL));
        assert_said("more than", path);
    }
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (uint64_t most = 5; most < 7; most++) {
        pid_t writer = start_writer(pipe, pieces);
        text = file_read_given(pipe, most, NULL);
        if (most == 5) assert_said("more than 5 bytes", pipe);
        assert_true(!text == (most == 5));
        free(text);
        waitpid(writer, NULL, 0);
    }
    /* the system says that the size of this file is 0 */
    assert_non_null(text = file_read_given("/proc/self/cmdline", 0, NULL));
    assert_non_null(strstr(text, "test_file"));
    free(text);
}

/* ---- writing ---- */

static void writes_all_or_nothing(void **state) {
    struct file_writer writer;
    char *path = scratch_text("out", "old");
    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_int_equal(file_write(&writer, "new", 3), 0);
    assert_int_equal(file_print(&writer, " %d", 42), 0);
    assert_int_equal(writer.written, 6);
    assert_holds(path, "old", 3); /* the old content stays until the new content is committed */
    assert_int_equal(file_commit(&writer), 0);
    assert_holds(path, "new 42", 6);
    file_abandon(&writer); /* abandoning a closed writer does no harm */

    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_int_equal(file_write(&writer, "worse", 5), 0);
    file_abandon(&writer);
    assert_holds(path, "new 42", 6);
    assert_int_equal(files_in_scratch(), 1);
}

/* Writes texts that are smaller than the buffer, as large, and larger, in every order. */
static void pieces_of_any_size_arrive_in_order(void **state) {
    static const uint64_t sizes[] = {1, FILE_BUFFER - 2, 1, 5, FILE_BUFFER, 3, FILE_BUFFER + 1, 2 * FILE_BUFFER,
                                     0, FILE_BUFFER - 1, 1, 1};
    enum { PIECES = sizeof sizes / sizeof *sizes };
    uint64_t total = 0, at = 0;
    struct file_writer writer;
    for (int i = 0; i < PIECES; i++) total += sizes[i];
    char *bytes = malloc(total), *path = in_scratch("big");
    for (uint64_t i = 0; i < total; i++) bytes[i] = (char)scratch_random(256);
    assert_int_equal(file_writer_open(&writer, path), 0);
    for (int i = 0; i < PIECES; at += sizes[i++]) assert_int_equal(file_write(&writer, bytes + at, sizes[i]), 0);
    assert_true(writer.written == total);
    assert_int_equal(file_commit(&writer), 0);
    assert_holds(path, bytes, total);
    free(bytes);
}

static void bytes_apart_may_be_written_in_any_order(void **state) {
    struct file_writer writer;
    uint64_t length;
    assert_int_equal(file_writer_open(&writer, in_scratch("apart")), 0);
    assert_int_equal(file_write(&writer, "head", 4), 0);
    assert_int_equal(file_write_apart(&writer, 7, "and", 3), 0);
    assert_int_equal(file_write_apart(&writer, 4, "one", 3), 0);
    assert_int_equal(file_skip(&writer, 6), 0);
    assert_int_equal(writer.written, 10);
    assert_int_equal(file_write(&writer, "tail", 4), 0);
    assert_int_equal(file_commit(&writer), 0);
    char *bytes = file_read(in_scratch("apart"), &length);
    assert_string_equal(bytes, "headoneandtail");
    free(bytes);
}

static void prints_lines_of_any_length(void **state) {
    struct file_writer writer;
    char *path = in_scratch("lines"), *word = calloc(5000, 1);
    for (size_t length = 1020; length < 1030; length++) {
        memset(word, 'x', length);
        word[length] = 0;
        assert_int_equal(file_writer_open(&writer, path), 0);
        assert_int_equal(file_print(&writer, "%s", word), 0);
        assert_int_equal(file_commit(&writer), 0);
        assert_holds(path, word, length);
    }
    free(word);
}

static void says_where_it_cannot_write(void **state) {
    struct file_writer writer;
    char *path = in_scratch("no/such/directory");
    assert_int_equal(file_writer_open(&writer, path), -1);
    assert_said("cannot write", path);
    assert_int_equal(file_replace(path, "x", 1), -1);
    assert_said("No such file", path);
    assert_int_equal(file_append(path, "x", 1), -1);
    assert_said("cannot write", path);
    char *directory = in_scratch("directory"), *slashed = in_scratch("new/");
    assert_int_equal(directory_make(directory), 0);
    assert_int_equal(file_replace(directory, "x", 1), -1);
    assert_said("no plain file but a directory", directory);
    assert_int_equal(file_replace(slashed, "x", 1), -1);
    assert_said("Is a directory", slashed);
    assert_int_equal(file_replace("", "x", 1), -1);
    assert_said("empty", "");
    assert_int_equal(files_in_scratch(), 1); /* no partial file is left */
}

/* Two writers write one file at the same time, and the directory has a user's file whose name resembles a partial file's. Each
 * writer may touch only the partial file that it made. */
static void pieces_are_ones_own(void **state) {
    struct file_writer first, second;
    char *path = in_scratch("out"), *users = scratch_text("out.partial", "the user's");
    assert_int_equal(file_writer_open(&first, path), 0);
    assert_int_equal(file_writer_open(&second, path), 0);
    assert_string_not_equal(first.partial, second.partial);
    assert_true(file_is_partial(strrchr(first.partial, '/') + 1, "out"));
    assert_int_equal(file_write(&first, "first", 5), 0);
    assert_int_equal(file_write(&second, "second", 6), 0);
    file_abandon(&first);
    assert_int_equal(file_commit(&second), 0);
    assert_holds(path, "second", 6);
    assert_holds(users, "the user's", 10);
    assert_int_equal(files_in_scratch(), 2);
}

static void knows_its_pieces(void **state) {
    static const char *const none[] = {"out", "out.partial", "out.1.partial", "out.1-0123456789abcde.partial",
                                       "out.-0123456789abcdef.partial", "out.1-0123456789abcdef.partial2",
                                       "out2.1-0123456789abcdef.partial", "out.1-0123456789abcdeg.partial", "out.", ""};
    assert_true(file_is_partial("out.1-0123456789abcdef.partial", "out"));
    assert_true(file_is_partial("a.b.77777-0000000000000000.partial", "a.b"));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(file_is_partial(none[i], "out"));
}

/* A save succeeds although another process calls file_remove_left() for its path all the time. */
static void removing_what_is_left_breaks_no_save(void **state) {
    char *path = in_scratch("out"), *pipe = in_scratch("out.2-0123456789abcdef.partial"), text[16];
    int end;
    pid_t other = fork();
    if (!other)
        for (;;) file_remove_left(path);
    for (int i = 0; i < 200; i++) {
        sprintf(text, "save %d", i);
        if (!(i % 50)) scratch_text("out.1-0123456789abcdef.partial", "of a killed writer");
        int result = file_replace(path, text, strlen(text));
        if (result) kill(other, SIGKILL);
        assert_int_equal(result, 0);
    }
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, &end, 0), other);
    assert_holds(path, text, strlen(text));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    file_remove_left(path); /* does not wait for a writer of the pipe */
    assert_int_equal(files_in_scratch(), 2);
    assert_int_equal(unlink(pipe), 0);
    char name[256] = "";
    memset(name, 'n', 255);
    struct file_writer left;
    assert_int_equal(file_writer_open(&left, in_scratch(name)), 0);
    file_remove_left(in_scratch(name));
    assert_int_equal(files_in_scratch(), 2);
    close(left.fd); /* as a kill does */
    left.fd = -1;
    file_remove_left(in_scratch(name));
    assert_int_equal(files_in_scratch(), 1);
    file_abandon(&left);
}

/* A name of the greatest allowed length leaves no space for the partial file's ending. */
static void names_of_any_length(void **state) {
    char name[256] = "";
    for (size_t length = 150; length < 256; length += length < 180 || length > 200 ? 15 : 1) {
        memset(name, 'n', length);
        name[length] = 0;
        assert_int_equal(file_replace(in_scratch(name), "x", 1), 0);
        assert_holds(in_scratch(name), "x", 1);
        assert_int_equal(file_remove(in_scratch(name)), 0);
    }
    assert_int_equal(files_in_scratch(), 0);
}

/* A link stays a link: the file that it leads to is written, whether that file existed or not. */
static void writes_through_links(void **state) {
    char *target = scratch_text("target", "old"), *link = in_scratch("link"), *broken = in_scratch("broken"), seen[32];
    assert_int_equal(mkdir(in_scratch("elsewhere"), 0777), 0);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(symlink("elsewhere/new", broken), 0);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(file_replace(link, "new", 3), 0);
        assert_int_equal(file_replace(broken, "made", 4), 0);
        assert_int_equal(readlink(link, seen, sizeof seen), 6);
        assert_int_equal(readlink(broken, seen, sizeof seen), 13);
        assert_holds(target, "new", 3);
        assert_holds(in_scratch("elsewhere/new"), "made", 4);
    }
    assert_int_equal(files_in_scratch(), 4);
}

static mode_t mode_of(const char *path) {
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 07777;
}

static int replace_it(const char *path) {
    return file_replace(path, "x", 1);
}

static void rights_stay(void **state) {
    static const mode_t modes[] = {0600, 0640, 0644, 0666, 0755};
    char *path = in_scratch("file");
    struct stat about;
    mode_t mask = umask(027);
    assert_int_equal(file_replace(path, "x", 1), 0);
    assert_int_equal(mode_of(path), 0640); /* a new file has the rights that the process's mask allows */
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(file_replace(path, "y", 1), 0);
        assert_int_equal(mode_of(path), modes[i]);
    }
    umask(mask);
    if (geteuid()) return;
    assert_int_equal(chown(path, 12345, 54321), 0);
    assert_int_equal(file_replace(path, "z", 1), 0);
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_uid == 12345 && about.st_gid == 54321 && (about.st_mode & 07777) == 0755);
    /* This process cannot give the new file the old file's group. Then the group's members get no more rights on it than everybody has. */
    assert_int_equal(chmod(scratch, 0777), 0);
    assert_int_equal(chown(path, 65534, 54321), 0);
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(without_rights(replace_it, path), 0);
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_uid == 65534 && about.st_gid != 54321 && (about.st_mode & 07777) == 0644);
    assert_int_equal(chmod(path, 0444), 0); /* a file that is protected from writing is still protected when it is replaced */
    assert_int_equal(without_rights(replace_it, path), -1);
    assert_said("ermission", path);
}

static void streams_take_bytes_as_they_come(void **state) {
    struct file_writer writer;
    char *path = in_scratch("pipe"), got[8] = "";
    assert_int_equal(file_writer_open(&writer, "/dev/null"), -1); /* file_writer_open() writes plain files only, so it refuses a device */
    assert_said("no plain file but a device", "/dev/null");
    assert_int_equal(file_writer_open_given(&writer, "/dev/null"), 0);
    assert_int_equal(file_write(&writer, "x", 1), 0);
    assert_int_equal(file_commit(&writer), 0);
    assert_int_equal(file_writer_open_given(&writer, "/dev/full"), 0);
    assert_int_equal(file_write(&writer, "x", 1), 0);
    assert_int_equal(file_commit(&writer), -1);
    assert_said("No space left", "/dev/full");
    assert_int_equal(file_exists("/dev/full"), 1);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_writer_open_given(&writer, path), -1);
    assert_said("is a pipe that nothing reads", path);
    pid_t reader = fork();
    if (!reader) {
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, got, sizeof got);
        _exit(n == 5 && !memcmp(got, "bytes", 5) && read(fd, got, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(file_writer_open_given(&writer, path), 0);
    assert_int_equal(file_write(&writer, "bytes", 5), 0);
    assert_int_equal(file_commit(&writer), 0);
    int status;
    waitpid(reader, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(file_writer_open_given(&writer, scratch), -1);
    assert_said("no plain file but a directory", scratch);
    assert_int_equal(files_in_scratch(), 1);
}

/* An unnamed file is in no directory. Two unnamed files made at one path are different files. */
static void unnamed_files_are_ones_own(void **state) {
    char *path = scratch_text("rows", "the user's"), got[2];
    int first = file_open_unnamed(path), second = file_open_unnamed(path);
    assert_true(first >= 0 && second >= 0);
    assert_int_equal(files_in_scratch(), 1);
    assert_int_equal(pwrite(first, "1", 1, 0), 1);
    assert_int_equal(pwrite(second, "2", 1, 0), 1);
    assert_int_equal(pread(first, got, 2, 0), 1);
    assert_int_equal(*got, '1');
    close(first);
    close(second);
    assert_holds(path, "the user's", 10);
    assert_int_equal(file_open_unnamed(in_scratch("absent/rows")), -1);
    assert_said("cannot make a file beside", in_scratch("absent/rows"));
}

/* A file that is already open is written from its current position, after what others have written to it. */
static void an_open_file_is_appended_to(void **state) {
    char *path = scratch_text("log", "before\n"), name[64];
    int fd = open(path, O_WRONLY | O_APPEND);
    struct file_writer writer;
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(file_writer_open_given(&writer, name), 0);
    assert_int_equal(file_write(&writer, "after\n", 6), 0);
    assert_int_equal(file_commit(&writer), 0);
    close(fd);
    assert_holds(path, "before\nafter\n", 13);
    assert_int_equal(files_in_scratch(), 1);
}

/* A full disk is imitated by a limit on the size of a file: the old file must stay. */
static void a_full_disk_leaves_the_old_file(void **state) {
    struct rlimit limit, before;
    struct file_writer writer;
    char *path = scratch_text("full", "old"), *bytes = calloc(3, FILE_BUFFER);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = FILE_BUFFER + 17;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int result = file_replace(path, bytes, 3 * FILE_BUFFER), opened = file_writer_open(&writer, path);
    int first = file_write(&writer, bytes, 3 * FILE_BUFFER), later = file_write(&writer, "x", 1),
        end = file_commit(&writer);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(result, -1);
    assert_said("File too large", path);
    assert_int_equal(opened, 0);
    assert_int_equal(first, -1);
    assert_int_equal(later, -1);
    assert_int_equal(end, -1);
    assert_holds(path, "old", 3);
    assert_int_equal(files_in_scratch(), 1);
    free(bytes);
}

static void replaces_and_appends(void **state) {
    char *path = in_scratch("log");
    assert_int_equal(file_append(path, "a\n", 2), 0);
    assert_int_equal(file_append(path, "b\n", 2), 0);
    assert_holds(path, "a\nb\n", 4);
    assert_int_equal(file_replace(path, "c", 1), 0);
    assert_holds(path, "c", 1);
}

/* When a full disk cuts a write short, the system gives no reason for it. The next write gives the reason. */
static void an_append_that_fails_leaves_the_file_as_it_was(void **state) {
    struct rlimit limit, before;
    char *path = scratch_text("log", "a\n");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 5;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    errno = 0;
    int result = file_append(path, "bcdefg\n", 7), fits = file_append(path, "bc\n", 3);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(result, -1);
    assert_said("File too large", path);
    assert_int_equal(fits, 0);
    assert_holds(path, "a\nbc\n", 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(maps_and_reads),
                                       TEST(says_what_cannot_be_read),
                                       TEST(opens_plain_files_only),
                                       TEST(reads_what_is_written_to_a_pipe),
                                       TEST(reads_no_more_than_it_is_allowed),
                                       TEST(writes_all_or_nothing),
                                       TEST(pieces_of_any_size_arrive_in_order),
                                       TEST(bytes_apart_may_be_written_in_any_order),
                                       TEST(prints_lines_of_any_length),
                                       TEST(says_where_it_cannot_write),
                                       TEST(pieces_are_ones_own),
                                       TEST(knows_its_pieces),
                                       TEST(removing_what_is_left_breaks_no_save),
                                       TEST(names_of_any_length),
                                       TEST(writes_through_links),
                                       TEST(rights_stay),
                                       TEST(streams_take_bytes_as_they_come),
                                       TEST(unnamed_files_are_ones_own),
                                       TEST(an_open_file_is_appended_to),
                                       TEST(a_full_disk_leaves_the_old_file),
                                       TEST(replaces_and_appends),
                                       TEST(an_append_that_fails_leaves_the_file_as_it_was)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
