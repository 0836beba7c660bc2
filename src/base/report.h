/* report: error messages, warnings, notes and the live line of progress.
 *
 * The function that finds an error calls fail() once, which stores the sentence; its callers only return -1. Nothing here ends the
 * program: main() prints the sentence and chooses the exit code. Only the first sentence is stored, so if a worker thread fails,
 * errors that follow from it do not hide the cause.
 */
#ifndef SPTX_REPORT_H
#define SPTX_REPORT_H

#include <assert.h>

/* Stores the sentence (written without prefix and newline), unless one is stored already. Returns -1. Control characters become
 * '?' (progress.h), as in warn(), note() and the live line. Any thread may call it. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Works like fail("cannot DOING 'PATH': REASON"), where REASON is the system's text for errno. If that is EPIPE, the exit code is
 * REPORT_UNREAD: the reader of a pipe has closed it, and wants no more. */
int fail_system(const char *doing, const char *path);

/* Works like fail(), for a mistake in how the program was called: main() then exits with 2 instead of 1. */
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Works like fail(), for work that stops because a signal or another part of the process asked for it (interrupt.h). */
int fail_stopped(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the stored sentence, or "" if nothing failed. It stays stored until report_clear(). */
const char *report_sentence(void);

/* Returns 0 if nothing failed, 1 after fail(), 2 after fail_usage(), REPORT_STOPPED after fail_stopped(), for which a program exits
 * with 1, REPORT_UNREAD if a pipe has no reader any more, for which a program ends as by SIGPIPE. */
enum { REPORT_STOPPED = 3, REPORT_UNREAD = 4 };
int report_exit_code(void);

/* Forgets the stored sentence: for a caller that can continue after a failure, and for tests. */
void report_clear(void);

/* Writes a warning to stderr, as "sptx-w2v: warning: ...", or passes it to the sink's `hear` function. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a line to stderr, such as a line of the start-up table or of a result, and adds a newline. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Holds back warnings and notes until report_release(), which writes them (write = 1) or drops them (0). For a process that another
 * process started: that one has written the same warnings and notes already. Only for the program's sink, in one thread. */
void report_hold(void);
void report_release(int write);

/* Tells the user something about the data, such as how its columns are read. A program writes the line as note() does; a library
 * handle passes it to its owner's callback, as warn() does. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Shows the live line, such as progress: on a terminal it replaces the previous one, elsewhere each call writes a new line. ""
 * clears it. */
void report_live(const char *line);

/* Writes the last message of a process that a signal ends, in the form of main()'s. The message is before, quoted, after;
 * `quoted` may be untrusted text, such as a path. A signal handler may call it. */
void report_dying(const char *before, const char *quoted, const char *after);

/* Makes this process write nothing more to stderr, not even its last message: another process reports for both. */
void report_mute(void);

/* Writes the last line of a program that failed, the stored sentence; also after report_quiet(). */
void report_last(void);

/* ---- sinks ----
 *
 * A sink receives the messages of a thread. The program's sink writes to stderr. The library has one sink for each handle: it
 * writes nothing, stores the sentence of a failure, and passes warnings to a function of the handle's owner. The workers of
 * a pool use the sink of the thread that calls pool_run().
 */
struct report;
typedef void report_hear(void *user, const char *warning);
/* Opens a sink. `hear` receives its warnings; NULL: they are dropped. Returns NULL if memory is short, without a sentence, since
 * no sink could store it. */
struct report *report_open(report_hear *hear, void *user);
void report_close(struct report *report); /* NULL: does nothing */
/* Sets this thread's sink; NULL: the program's sink. Returns the sink that it used before. */
struct report *report_use(struct report *report);
struct report *report_current(void); /* returns this thread's sink; NULL: the program's sink */

/* Sets whether stderr stays silent, except for the final sentence of a failure (--quiet). */
void report_quiet(int quiet);
int report_is_quiet(void);

/* debug: checks that only a debugging build makes, and lines that trace a batch from its start to its end.
 *
 *   make DEBUG=yes     enables the conditions of INVARIANT(); a false one aborts with its file and line
 *   SPTX_TRACE=1       prints the lines of trace() on stderr, in any build
 */

/* A condition that must hold whatever the caller passes. The Makefile sets SPTX_DEBUG to 1 with DEBUG=yes and to 0 otherwise;
 * with 0 the condition is compiled but not computed. */
#define INVARIANT(condition) assert(!SPTX_DEBUG || (condition))

/* If the environment has SPTX_TRACE=1, prints a line of "trace", the clock's seconds, and the text. Any thread may call it. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
