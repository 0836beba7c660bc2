/* tune_inner: the declarations that the files of tune share. No other file includes it. */
#ifndef SPTX_TUNE_INNER_H
#define SPTX_TUNE_INNER_H

#include "base/directory.h"
#include "config/config.h"
#include "corpus/graph.h"
#include "corpus/idstream.h"
#include "tune.h"

#include <stdint.h>

/* space: the keys that tune tries, the values of each, and how a trial draws values.
 *
 * Keys that the user has set are left out, and so are values that do not work with the user's keys. The values of a key are sorted,
 * so that a trial near a good one changes a key to a neighbouring value.
 */

enum { SPACE_KEYS = 12, SPACE_VALUES = 10, SPACE_OWN = -1 };

/* A key to try, and its values. */
struct space_key {
    const char *section, *key;
    const char *value[SPACE_VALUES];
    int count;
    int own; /* index of the value that is nearest to the user's */
};
/* All keys to try. */
struct space {
    struct space_key key[SPACE_KEYS];
    int count;
};

/* The keys of a trial: for each key the index of its value; SPACE_OWN: the user's value. */
struct space_point {
    int place[SPACE_KEYS];
};

/* Finds the keys to try: the keys that `config`, which is not resolved, leaves unset. `resolved`: the same config with all
 * values that a run would use. `wide`: 1 if the score can compare runs with different examples (a loss cannot). `weighable`: 1
 * if pairs have ratings that can be weights (ratings_may_weigh). Returns 0, or -1 after fail(), also if no key is left to try. */
int space_find(struct space *space, const struct config *config, const struct config *resolved, int wide, int weighable);

/* Returns the trial with the user's own keys. */
struct space_point space_own(const struct space *space);

/* Draws trial number `number` from (seed, number, attempt): anywhere in the space, or near `parent` if that is not NULL.
 * `attempt`: 0, 1 .. if earlier draws for this number were rejected. */
struct space_point space_draw(const struct space *space, const struct space_point *parent, uint32_t seed,
                              uint64_t number, uint32_t attempt);
/* Returns about how many times as long a trial takes as the user's own keys, going by columns and negatives. */
double space_cost(const struct space *space, const struct space_point *point);
int space_equal(const struct space *space, const struct space_point *a, const struct space_point *b);

/* Sets the trial's keys. Returns 0, or -1 after fail(). */
int space_set(const struct space *space, const struct space_point *point, struct config *config);

/* Writes a trial's keys, without its epochs: "model.dim=256 optimizer.lr=0.001"; or "the keys as they are" for the trial that
 * changes no key. */
enum { SPACE_TEXT = 512 };
void space_text(const struct space *space, const struct space_point *point, char out[SPACE_TEXT]);

/* halving: chooses which trial is trained next, and for how long, by successive halving, one trial at a time (ASHA; Li et al.
 * 2020).
 *
 *   rung   trials that are trained on it, for three times the epochs of the rung below
 *   0      every trial
 *   1      the best third of the trials that were trained on rung 0
 *   2      the best third of the trials that were trained on rung 1
 *
 * A trial that may rise is trained next, on the highest rung first; if no trial may rise, a new one begins. So a best trial is
 * known at any time, and it depends only on the scores so far. Trial 0 has the user's own keys. It also rises if that takes at most
 * a fifth of the time left, since the other trials are compared with it.
 */

enum { HALVING_RUNGS = 3, HALVING_SHARE = 3 };

/* A trial's results on the rungs that it was trained on. */
struct halving_trial {
    int rungs; /* number of rungs that it was trained on; the last of them is its current rung */
    double score[HALVING_RUNGS];
    double seconds[HALVING_RUNGS];
};

/* All trials so far. */
struct halving {
    struct halving_trial *trial; /* [count], owned */
    uint64_t count, capacity;
};

/* When new trials may begin. With NONE and LAST the search is coming to its end: the best trial of a rung may then rise even if
 * fewer than three trials were on it. */
enum halving_begin {
    HALVING_NONE, /* no more trials begin */
    HALVING_ANY,  /* a new trial begins whenever no trial may rise */
    HALVING_LAST  /* a new trial begins if no trial may rise, and if there is time for it and for its next rung */
};

/* The limits of the next job. */
struct halving_bounds {
    enum halving_begin begin;
    double left; /* seconds left; a job that is expected to take longer is not chosen. INFINITY: no limit */
};

/* One training: a trial and the rung to train it on. */
struct halving_job {
    uint64_t trial; /* halving->count: a new one */
    int rung;
};

void halving_release(struct halving *halving);

/* Chooses the next job. Returns 1; 0 if no job is left; -1 after fail(). */
int halving_next(const struct halving *halving, const struct halving_bounds *bounds, struct halving_job *job);

/* Records the score and the seconds of a finished job. */
int halving_took(struct halving *halving, const struct halving_job *job, double score, double seconds);

/* Sorts the trials that were trained on this rung by falling score on it; equal scores by number. Returns their numbers, for the
 * caller to free, or NULL after fail(). Sets *count. */
uint64_t *halving_order(const struct halving *halving, int rung, uint64_t *count);

/* Returns the highest rung that any trial was trained on, or -1. */
int halving_top(const struct halving *halving);

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
    char *path;                             /* RUN.tune, resolved (base/file.h); owned, like the paths below */
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

void tried_close(struct tried *tried); /* may be called on a struct of zeros */

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
int trial_set_epochs(struct config *config, uint64_t epochs);
/* Returns the epochs of a trial on this rung: a third, all and three times the epochs of the user's keys; if train.epochs is
 * set, a ninth, a third and all of it. */
uint64_t trial_epochs(const struct tuning *t, int rung);
/* Sets the defaults in t->resolved that depend on the size of the trials' data. Ignores data that cannot be read: the first trial
 * fails with the reason. */
void trial_defaults(struct tuning *t);
/* Trains and scores a trial. Always returns 0; if the trial failed, end->why says why. */
int trial_run(const struct tuning *t, const struct halving_job *job, uint64_t epochs, struct trial_end *end);

/* ---- tune.c ---- */

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

/* Returns the score for people: a loss has its usual sign. */
static inline double tune_shown(const struct tuning *t, double score) {
    return t->measure == TUNE_LOSS ? -score : score;
}

#endif
