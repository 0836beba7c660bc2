/* tune_inner: the declarations that the files of tune share. No other file includes it. */
#ifndef SPTX_TUNE_INNER_H
#define SPTX_TUNE_INNER_H

#include "base/directory.h"
#include "corpus/graph.h"
#include "corpus/idstream.h"
#include "halving.h"
#include "space.h"
#include "tune.h"

#include <stdint.h>

/* tune_directory: RUN.tune, the directory of a search, beside the run directory RUN.
 *
 *   RUN.tune/tried.tsv           the trials of earlier calls (struct tried); not removed at the end
 *   RUN.tune/tune.lock           lets one process at a time search here (base/directory.h)
 *   RUN.tune/trials/             the files of trials; removed at the end
 *     searches                   the mark that tune has made this directory (base/directory.h)
 *     run/                       the run directory of the current trial
 *     corpus/                    the encoded corpus that trials share
 *     edges.tsv held_out.tsv     if the data is a graph: its training edges and its held-out edges
 *     corpus.graph corpus.vocab.tsv   the encoded whole graph
 *
 * A RUN.tune that holds any other file is refused. Only files that tune has written are removed, and never through a symbolic link.
 */

/* An open RUN.tune, whose lock this process holds. */
struct tune_directory {
    char *path;                             /* RUN.tune, resolved (base/path.h); owned, like the paths below */
    char *trials;                           /* RUN.tune/trials */
    char *run, *corpus, *edges, *held_out;  /* paths in RUN.tune/trials */
    struct lock lock;
    unsigned made; /* number of directories at the end of path that this process has created */
    int begun;     /* 1: this process has created trials/, and removes it */
};

/* Creates RUN.tune for the run directory `run` and takes its lock; removes trials that a killed process left. Returns 0, or -1
 * after fail(), also if another process has the lock (the message names it) or if a file there is not tune's. */
int tune_directory_open(struct tune_directory *directory, const char *run);

/* Removes the trials and releases the lock. Never fails, and keeps the message of an earlier failure. Harmless on a zeroed one. */
void tune_directory_close(struct tune_directory *directory);

/* tried: the file of finished trainings, one line each, found again by epochs and keys. The first line has a fingerprint of the
 * data and of the user's keys; if it differs, the file is emptied.
 *
 *   # sptx-w2v tune 1f0c..
 *   epochs TAB score TAB seconds TAB keys
 */

/* An open file of finished trainings. */
struct tried {
    char *path;  /* path of the file, owned */
    char *lines; /* contents of the file when it was opened; owned */
};

extern const char tried_name[]; /* name of the file, without its directory */

/* Opens the file in `directory`, or begins it. `fingerprint`: of the data and the user's keys. `anew`: 1: earlier lines are
 * removed. Returns 0, or -1 after fail(). */
int tried_open(struct tried *tried, const char *directory, uint64_t fingerprint, int anew);
void tried_close(struct tried *tried); /* may be called on a struct of zeros */

/* Finds, in earlier calls, the training with these epochs and keys. Returns 1 and sets its score and seconds; 0 if there was
 * none. */
int tried_find(const struct tried *tried, uint64_t epochs, const char *keys, double *score, double *seconds);
int tried_add(const struct tried *tried, uint64_t epochs, const char *keys, double score, double seconds);

/* split: splits the edges of a graph, or triples, into a part for training and a held-out part, to measure how well training
 * predicts the held-out part (tune.h). Both parts are written as files of edges or triples whose names are numbers. */

/* Writes the share `share` of the edges to `out`, and the others, with their weights, to `kept`. The edges are drawn from the
 * seed. Edges of a spanning forest, drawn too, are never held out, so nodes that were connected remain connected. Returns 0, or
 * -1 after fail(), also if no edge can be held out. */
int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out);
/* Writes the share `share` of the triples, at least one of them, to `out`, and the others to `kept`. The triples are drawn from the
 * seed. Returns 0, or -1 after fail(), also if there are fewer than two triples. */
int split_triples(const struct idstream *stream, double share, uint32_t seed, const char *kept, const char *out);

enum { TRIAL_WHY = 512 };
enum tune_measure { TUNE_RECALL, TUNE_LINKS, TUNE_LOSS, TUNE_SETS, TUNE_TRIPLES };

/* A search that is under way. */
struct tuning {
    const struct tune_request *request;
    struct config resolved; /* the user's keys, resolved */
    enum tune_measure measure;
    int weighable; /* 1: trials may weigh the pairs by their ratings */
    struct space space;
    struct halving halving;
    struct space_point *points; /* [halving.count], owned: the keys of each trial */
    uint64_t point_capacity;
    struct tune_directory directory;
    struct tried tried;
    struct report *quiet, *said; /* quiet: the sink for trials' sentences; said: the caller's sink */
    double began;
    char why[TRIAL_WHY]; /* error message of the last trial that failed */
    int stopped, exhausted; /* exhausted: 1: drawing no longer finds a new trial */
};

extern const char *const tune_measures[];

/* ---- trial.c ---- */

/* The result of a trial. */
struct trial_end {
    double score, seconds;
    int stopped;
    char why[TRIAL_WHY]; /* error message of the trial; "" if it did not fail */
};

/* Makes a trial's config: the user's keys with the trial's keys set. The caller releases `config` in any case. */
int trial_config(const struct tuning *t, const struct space_point *point, struct config *config);
/* Returns the epochs of a trial on this rung: a third, all and three times the epochs of the user's keys; if train.epochs is
 * set, a ninth, a third and all of it. */
uint64_t trial_epochs(const struct tuning *t, int rung);
/* Sets the defaults in t->resolved that depend on the size of the trials' data. Ignores data that cannot be read: the first trial
 * fails with the reason. */
void trial_defaults(struct tuning *t);
/* Trains and scores a trial. Always returns 0; if the trial failed, end->why says why. */
int trial_run(const struct tuning *t, const struct halving_job *job, uint64_t epochs, struct trial_end *end);

/* ---- tune.c ---- */

/* Returns 0 if best_write() can write `path`; -1 after fail(), also if a file that tune has not written is there. */
int best_check(const char *path);
/* Writes the best trial's configuration, with all trials in its comments. */
int best_write(const struct tuning *t, const struct tune_answer *answer);

/* Returns 1 if the search also chooses train.epochs, which the user has not set. */
static inline int tune_finds_epochs(const struct tuning *t) {
    return !config_is_given(t->request->config, "train", "epochs");
}

/* One training: its score, its trial and its rung. */
struct tune_place {
    double score;
    uint64_t trial;
    int rung;
};
/* Lists the trials that may be the answer: all if epochs are searched, otherwise the trials of the highest rung. Returns a list
 * for the caller to free, or NULL after fail(). */
struct tune_place *tune_places(const struct tuning *t, uint64_t *count);

/* Returns the score for people: a loss has its usual sign. */
static inline double tune_shown(const struct tuning *t, double score) {
    return t->measure == TUNE_LOSS ? -score : score;
}

#endif
