#include "progress.h"

#include "report.h"
#include "text.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Lowest number of seconds between two lines if stderr is no terminal, where a line cannot replace the one before. */
static const double without_terminal = 10;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void progress_start(struct progress *progress, const char *what, double every) {
    double now = progress_now();
    if (!isatty(STDERR_FILENO) && every < without_terminal) every = without_terminal;
    *progress = (struct progress){.what = what, .started = now, .shown = now, .every = every};
}

/* Writes a rate such as "12.3 MB/s", "2.63 M words/s" or "17.0 words/s". */
static void format_rate(char *out, size_t capacity, double rate, const char *unit) {
    char number[TEXT_BYTES];
    text_of_rate(number, rate);
    int joined = strlen(unit) == 1 && isalpha((unsigned char)number[strlen(number) - 1]);
    snprintf(out, capacity, "%s%s%s/s", number, joined ? "" : " ", unit);
}

static int is_due(struct progress *progress, double now) {
    pthread_mutex_lock(&lock);
    int due = now - progress->shown >= progress->every;
    if (due) progress->shown = now;
    pthread_mutex_unlock(&lock);
    return due;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit) {
    double now = progress_now(), spent = now - progress->started;
    char line[256], rate[64], left[TEXT_BYTES];
    if (!is_due(progress, now)) return;
    format_rate(rate, sizeof rate, spent > 0 ? (double)done / spent : 0, unit);
    if (total == 0 || done == 0) { /* the total or the speed is not known yet */
        snprintf(line, sizeof line, "%s  %s", progress->what, rate);
    } else {
        if (done > total) done = total;
        text_of_time(left, spent * (double)(total - done) / (double)done);
        snprintf(line, sizeof line, "%s %.0f%%  %s  ETA %s", progress->what, 100.0 * (double)done / (double)total, rate, left);
    }
    report_live(line);
}

void progress_end(struct progress *progress) {
    report_live("");
}
