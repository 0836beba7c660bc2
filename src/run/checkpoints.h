/* checkpoints: the checkpoint directories of a run: their names, which of them this program has made, how they are removed.
 *
 *   RUN/checkpoint-<step>             a checkpoint
 *   RUN/checkpoint-<step>.replaced    an older checkpoint of the same step, moved aside while a new one replaces it
 *   RUN/checkpoint-<step>.partial     a checkpoint that is being written, or that a killed process left
 *
 * Other names (checkpoint-best, checkpoint-007, checkpoint-notes.txt) are ignored. A directory with one of the names above counts
 * as made by this program if its state.ini begins like one that this program writes, or, if it is partial, if it holds only files
 * of a checkpoint. No other directory is ever removed, and in these directories only the files of a checkpoint are.
 */
#ifndef SPTX_CHECKPOINTS_H
#define SPTX_CHECKPOINTS_H

#include <stdint.h>

enum { CHECKPOINT_NAME = 64 }; /* bytes of the longest name, counting the NUL */
enum checkpoint_kind { CHECKPOINT_IN_PLACE, CHECKPOINT_ASIDE, CHECKPOINT_PARTIAL };

/* One directory of a run that has a checkpoint's name. */
struct checkpoint_entry {
    char *path; /* RUN/name, owned */
    uint64_t step;
    enum checkpoint_kind kind;
    int own;    /* 1: this program has written the directory */
    int linked; /* 1: a symbolic link to a checkpoint: it is read as a checkpoint, and may be renamed, but is never removed */
};
/* All directories of a run that have a checkpoint's name. */
struct checkpoints {
    struct checkpoint_entry *list; /* sorted by step, the highest first; of a step, first the checkpoint, then the one moved
                                    * aside, then the partial one */
    uint64_t count, capacity;
};

/* Lists the directories in RUN, and the links to directories, that have the name of a checkpoint. Returns -1 after fail(). */
int checkpoints_find(const char *run, struct checkpoints *all);
void checkpoints_release(struct checkpoints *all);

/* Returns 1 if this is the name of a file of a checkpoint. */
int checkpoint_holds(const char *name);

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind);

/* Removes a checkpoint of this program; it is no error if it is gone. Files in it that are not files of a checkpoint stay, with
 * a warning. */
int checkpoint_remove(const struct checkpoint_entry *one);
/* Removes all checkpoints of RUN. Renames links to checkpoints to PATH.kept-1, with a warning. */
int checkpoints_remove(const char *run);

/* If something that this program has not made has the path `path`, renames it to PATH.kept-1, with a warning. */
int checkpoint_make_way(const char *path, enum checkpoint_kind kind);

#endif
