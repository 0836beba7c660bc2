/* report: error messages, warnings, notes and the progress line.
 *
 * The function that finds an error calls fail() once, which stores the error message (a sentence); its callers only return -1. Nothing here ends the
 * program: main() prints the sentence and chooses the exit code. Only the first sentence is stored, so if a worker thread fails, errors that follow
 * from it do not hide the cause.
 */
#ifndef SPTX_REPORT_H
#define SPTX_REPORT_H

#include <assert.h>

/* Stores an error message, a sentence without prefix and newline, unless one is stored already. Returns -1. Here, in warn(), note() and the
 * progress line, a tab becomes \t, and other control characters '?' (progress.h). Any thread may call it. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Does the same as fail("cannot DOING 'PATH': REASON"), where REASON is the system's text for errno. For EPIPE the exit code is REPORT_UNREAD: the
 * reader of a pipe has closed it. */
int fail_system(const char *doing, const char *path);

/* Does the same as fail(), for mistakes in how the program was called: main() exits with 2 instead of 1. */
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Does the same as fail(), for work that stops because of a signal or another part of the process (interrupt.h). */
int fail_stopped(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the stored error message, "" if nothing failed. It stays stored until report_clear(). */
const char *report_sentence(void);

/* Returns 0 if nothing failed; 1 after fail(); 2 after fail_usage(); REPORT_STOPPED after fail_stopped(), when a program exits with 1;
 * REPORT_UNREAD if a pipe's reader has closed it, when a program ends as if by SIGPIPE. */
enum { REPORT_STOPPED = 3, REPORT_UNREAD = 4 };
int report_exit_code(void);

/* Forgets the stored error message: for callers that can continue after a failure, and for tests. */
void report_clear(void);

/* Writes a warning to stderr, as "sptx-w2v: warning: ...", or passes it to the sink's `hear` function. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a line to stderr, followed by a newline, such as a line of the table at the start or of a result. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Holds back warnings and notes until report_release(), which writes them (write = 1) or forgets them (0). For a process started by another one
 * that has written the same lines already. Only for the program's sink, in one thread. */
void report_hold(void);
void report_release(int write);

/* Tells the user something about the data, such as how columns are read. A program writes the line like note(); a library handle passes it to its
 * owner's callback like warn(). */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Shows the progress line: on a terminal it replaces the previous one, otherwise each call writes a new line. "": removes it. */
void report_live(const char *line);

/* Writes the last message of a process that a signal ends, as main() would: before, quoted, after; `quoted` may be untrusted, such as a path. A
 * signal handler may call it. */
void report_dying(const char *before, const char *quoted, const char *after);

/* Makes this process write nothing more to stderr, not even its last message: another process reports for both. */
void report_mute(void);

/* Writes the last line of a program that failed, the stored error message; even after report_quiet(). */
void report_last(void);

/* ---- sinks ----
 *
 * A sink receives a thread's messages. The program's sink writes to stderr. The library has a sink for each handle: it writes nothing, stores the
 * error message of a failure, and passes warnings to a function of the handle's owner. A pool's workers use the sink of the thread that calls
 * pool_run().
 */
struct report;
typedef void report_hear(void *user, const char *warning);
/* Opens a sink. `hear` is called with its warnings; NULL: they are dropped. Returns NULL, without an error message, if memory is short. */
struct report *report_open(report_hear *hear, void *user);
void report_close(struct report *report); /* NULL: does nothing */
/* Sets this thread's sink; NULL: the program's. Returns the sink that it used before. */
struct report *report_use(struct report *report);
struct report *report_current(void); /* returns this thread's sink; NULL: the program's sink */

/* Sets whether stderr stays silent, except for the error message of a failure (--quiet). */
void report_quiet(int quiet);
int report_is_quiet(void);

/* debug: conditions that only a debugging build checks, and lines that follow a batch from its start to its end.
 *
 *   make DEBUG=yes     enables the conditions of INVARIANT(); a false one aborts with its file and line
 *   SPTX_TRACE=1       prints the lines of trace() on stderr, in any build
 */

/* A condition that must hold whatever callers pass. The Makefile sets SPTX_DEBUG to 1 with DEBUG=yes, otherwise to 0; the condition is then
 * compiled but not computed. */
#define INVARIANT(condition) assert(!SPTX_DEBUG || (condition))

/* If the environment contains SPTX_TRACE=1, prints a line: "trace", the clock's seconds, the text. Any thread may call it. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
