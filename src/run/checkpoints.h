/* checkpoints: the checkpoint directories of a run: their names, which of them are this program's own, how they are removed.
 *
 *   RUN/checkpoint-<step>             a checkpoint
 *   RUN/checkpoint-<step>.replaced    the older one of the same step, moved aside while the new one takes its place
 *   RUN/checkpoint-<step>.partial     one that is being written, or that a killed process left
 *
 * Other names (checkpoint-best, checkpoint-007, checkpoint-notes.txt) are not looked at. A directory of such a name is this
 * program's own where its state.ini begins as ours do, or, for a partial one, where it holds only files of a checkpoint. Nothing
 * else is ever removed, and in our own directories only the files of a checkpoint are.
 */
#ifndef SPTX_CHECKPOINTS_H
#define SPTX_CHECKPOINTS_H

#include <stdint.h>

enum { CHECKPOINT_NAME = 64 }; /* bytes of the longest name, counting the NUL */
enum checkpoint_kind { CHECKPOINT_IN_PLACE, CHECKPOINT_ASIDE, CHECKPOINT_PARTIAL };

struct checkpoint_entry {
    char *path; /* RUN/name, owned */
    uint64_t step;
    enum checkpoint_kind kind;
    int own;    /* 1: this program's own */
    int linked; /* 1: a link to such a directory; it is read like a directory of ours but never removed, only renamed */
};
struct checkpoints {
    struct checkpoint_entry *list; /* by falling step; within a step: the one in place, the one aside, the partial one */
    uint64_t count, capacity;
};

/* Finds RUN's directories with a checkpoint's name, and links that lead to one. Returns -1 after fail(). */
int checkpoints_find(const char *run, struct checkpoints *all);
void checkpoints_release(struct checkpoints *all);

/* Returns 1 where `name` is that of a checkpoint's file. */
int checkpoint_holds(const char *name);

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind);

/* Removes one of our own; one that is absent is no error. Foreign files in it stay, after a warning. */
int checkpoint_remove(const struct checkpoint_entry *one);
/* Removes all checkpoints of RUN; links to checkpoints get other names (PATH.kept-1), after a warning. */
int checkpoints_remove(const char *run);

/* Renames something foreign that has this path to PATH.kept-1, after a warning. */
int checkpoint_make_way(const char *path, enum checkpoint_kind kind);

#endif
