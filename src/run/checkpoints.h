/* checkpoints: the checkpoint directories of a run: their names, which of them are this program's own, and how they go.
 *
 *   RUN/checkpoint-<step>             a checkpoint
 *   RUN/checkpoint-<step>.replaced    what had that name before, moved aside while one of the same step takes its place
 *   RUN/checkpoint-<step>.partial     one that is being written, or that a killed process left
 *
 * Other names (checkpoint-best, checkpoint-007, checkpoint-notes.txt) are not looked at. A directory of such a name is our
 * own where its state.ini begins as ours do, or, partial, where it holds nothing but a checkpoint's files. Nothing else is ever
 * removed, and in our own ones only a checkpoint's files are.
 */
#ifndef SPTX_CHECKPOINTS_H
#define SPTX_CHECKPOINTS_H

#include <stdint.h>

enum { CHECKPOINT_NAME = 64 }; /* most bytes of a name, the NUL counted */
enum checkpoint_kind { CHECKPOINT_IN_PLACE, CHECKPOINT_ASIDE, CHECKPOINT_PARTIAL };

struct checkpoint_entry {
    char *path; /* RUN/name, owned */
    uint64_t step;
    enum checkpoint_kind kind;
    int own;    /* 1: this program's own */
    int linked; /* 1: a link to such: read like one of our own, but never removed, only moved out of the way */
};
struct checkpoints {
    struct checkpoint_entry *list; /* by falling step; of one step the one in place, the one aside, the partial one */
    uint64_t count, capacity;
};

/* Directories of RUN, or links to such, that are named as checkpoints are. -1 after fail(). */
int checkpoints_find(const char *run, struct checkpoints *all);
void checkpoints_release(struct checkpoints *all);

/* Whether a checkpoint holds a file of this name. */
int checkpoint_holds(const char *name);

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind);

/* Removes one of our own; not an error where it is absent. What is not a checkpoint's stays in it, after a warning. */
int checkpoint_remove(const struct checkpoint_entry *one);
/* All of RUN's own; links to such get other names (PATH.kept-1), after a warning. */
int checkpoints_remove(const char *run);

/* Where something that is not our own has this path, gives it another name (PATH.kept-1), after a warning. */
int checkpoint_make_way(const char *path, enum checkpoint_kind kind);

#endif
