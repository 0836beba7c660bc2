/* report: how every file says that something is wrong, and the one stream of notes to the person at the terminal.
 *
 * The deepest function that knows the facts calls fail() once; its callers pass -1 up untouched. Nothing here exits:
 * main() prints the sentence and picks the exit code. The first sentence wins, so a worker thread's cause is not
 * covered by the consequences that follow it.
 */
#ifndef SPTX_REPORT_H
#define SPTX_REPORT_H

/* Keeps the sentence (no prefix, no newline) and returns -1. Control characters in what it quotes come as '?'
 * (terminal.h), here and in what warn(), note() and the live line say. Safe from any thread. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fail("cannot DOING 'PATH': REASON"), with the system's reason, of errno. */
int fail_system(const char *doing, const char *path);

/* Like fail(), for a mistake in how the program was called: main() then exits with 2 instead of 1. */
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like fail(), where work ends because a caller in the same process has asked it to (interrupt.h): no failure of its own. */
int fail_stopped(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The sentence that is waiting, or "" where nothing failed. It stays there until report_clear(). */
const char *report_sentence(void);

/* 0 where nothing failed, 1 after fail(), 2 after fail_usage(), REPORT_STOPPED after fail_stopped(), which no program meets. */
enum { REPORT_STOPPED = 3 };
int report_exit_code(void);

/* Forgets the sentence: for a caller that can go on without what failed, and for tests. */
void report_clear(void);

/* "sptx-w2v: warning: ..." on stderr, at once. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line of the start-up table or of what was done, on stderr, as given plus a newline. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Warnings and lines wait from now on, until they are told: for a process that may yet become another one, which finds and
 * says the same. Of the program's, by one thread. */
void report_hold(void);
void report_tell(void); /* nothing where nothing is held */

/* The live line: replaces itself on a terminal, is one line a call elsewhere. "" takes it away. */
void report_live(const char *line);

/* The last words of a process that a signal ends: the sentence as main() would print it, of three parts (the one in the middle
 * is quoted from outside). Safe in a signal's handler. */
void report_dying(const char *before, const char *quoted, const char *after);

/* Nothing more of this process comes to stderr, not even its last sentence: another process speaks for both. */
void report_mute(void);

/* The last line of a program that failed: the sentence, quiet or not. */
void report_last(void);

/* ---- sinks ----
 *
 * What a thread says goes to the sink that it uses: the program's (stderr) or, behind the library, one a handle, which
 * writes nothing: sentences wait in it, warnings go to its owner's function. A pool's workers use the sink of the thread
 * that runs the job.
 */
struct report;
typedef void report_hear(void *user, const char *warning);
/* `hear` may be NULL: warnings are dropped. NULL where memory is short (no sentence: there is nowhere to keep it). */
struct report *report_open(report_hear *hear, void *user);
void report_close(struct report *report); /* harmless on NULL */
/* This thread's sink from now on, NULL being the program's; returns the one it used before. */
struct report *report_use(struct report *report);
struct report *report_current(void); /* this thread's; NULL: the program's */

/* stderr keeps silent from now on but for the final sentence of a failure (used by --quiet). */
void report_quiet(int quiet);
int report_is_quiet(void);

#endif
