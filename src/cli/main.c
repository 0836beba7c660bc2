/* main: finds the command, runs it, prints the error message of a failure, and returns the exit code.
 *
 *   0 success    1 failure    2 wrong arguments    ended by SIGPIPE: the reader of the results has closed its pipe
 */
#include "base/file.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Removes `flag` from the arguments before a lone "--". Returns 1 if it was there, otherwise 0. */
static int take_flag(int *argc, char **argv, const char *flag) {
    int kept = 1, found = 0, open = 1;
    for (int i = 1; i < *argc; i++) {
        if (!strcmp(argv[i], "--")) open = 0;
        if (open && !strcmp(argv[i], flag))
            found = 1;
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    argv[kept] = NULL;
    return found;
}

/* Returns 1 if the program was called by a command's name, through a link, so that scripts that call ./word2vec need no change. */
static int is_named_as_command(const char *program) {
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name)) return 1;
    return 0;
}

static int run_command(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    if (slash) argv[0] = (char *)slash + 1;
    if (take_flag(&argc, argv, "--help") || argc == 1) return cmd_help(2, (char *[]){"help", argv[0], NULL});
    return command_find(argv[0])->run(argc, argv);
}

static int run_line(int argc, char **argv) {
    if (argc && is_named_as_command(argv[0])) return run_command(argc, argv);
    int help = take_flag(&argc, argv, "--help"), quiet = take_flag(&argc, argv, "--quiet");
    if (quiet) report_quiet(1);
    if (argc < 2) {
        if (help) return cmd_help(1, argv);
        if (!quiet) command_list(stderr);
        return fail_usage("which command? 'sptx-w2v help' tells of each");
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
        /* These macros come from the Makefile: the commit (git describe), the GPU architectures as nvcc names them, and the MPIs that the program
         * can load. */
        printf("%s\n"
               "commit  " BUILD_COMMIT "\n"
               "CUDA    " BUILD_CUDA "\n"
               "MPI     " BUILD_MPI "\n",
               command_version);
        return 0;
    }
    if (!strcmp(argv[1], "-h")) return cmd_help(1, argv);
    if (help || (argc == 3 && !strcmp(argv[2], "-h"))) return cmd_help(2, argv);
    const struct command *command = command_find(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : -1;
}

int main(int argc, char **argv) {
    /* A closed stdin, stdout or stderr gets a substitute; otherwise the next opened file would get its number, and printed lines would be written
     * into that file. The substitute cannot be written to, so results for a closed stdout still fail. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != fd) _exit(1);
    signal(SIGXFSZ, SIG_IGN); /* so that writing a file above the size limit fails with an error message, instead of ending the process */
    signal(SIGPIPE, SIG_IGN); /* so that writing to a closed pipe fails, and half-written files are removed */
    file_map_catch();
    numbers_enter();
    int result = run_line(argc, argv);
    errno = 0;
    if (terminal_flush()) result = -1;
    if (!result) return 0;
    if (report_exit_code() == REPORT_UNREAD) { /* a reader such as `head` has enough: ends without a message, like other programs */
        report_live("");
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    report_last();
    return report_exit_code() == 2 ? 2 : 1;
}
