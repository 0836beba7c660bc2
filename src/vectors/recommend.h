/* recommend: the items that suit lists best: the lists of a file, some of them by name, or items given by hand.
 *
 * What the run does not know of a list is left out with a warning that counts it. A list of which it knows nothing gets
 * an answer of no items; where that holds for all lists asked, there is nothing to do and that is a failure.
 */
#ifndef SPTX_RECOMMEND_H
#define SPTX_RECOMMEND_H

#include "list_scores.h"
#include "titles.h"

struct recommend_request {
    const char *lists;             /* a file, or a directory of files; NULL: items by hand */
    struct corpus_options reading; /* as the run's corpus was read; text has no names of lists and is read as lists */
    int look; /* 1: the file is read as it looks, as lists or as pairs (list_form.h); 0: as `reading` says */
    const char *const *names;      /* [names_count] of the lists that are asked, in this order; none: all of the file */
    uint64_t names_count;
    const char *const *items; /* [items_count] of one list by hand: each an item, or several with commas between */
    uint64_t items_count;
    const struct titles *titles; /* by which an item may be given, too */
    enum list_score score;
    uint64_t among; /* of the first rows only; 0: all */
    uint32_t k;
    int seen;                  /* 1: a list's own items may be recommended */
    struct progress *progress; /* the live line; NULL: none */
};

struct recommended {
    const char *list; /* its name, not ended by a NUL */
    uint64_t length;
    uint64_t known, unknown; /* its items that the run knows, and those that it does not */
    const uint32_t *ids;     /* [count] best first */
    const float *scores;     /* [count] */
    uint32_t count;
};
/* 0, or -1 to end it. */
typedef int recommend_answer(void *user, const struct recommended *answer);

/* Lists in the file's order, or as they are named. config: device.*. 0, or -1 after fail() or where an answer ended it.
 */
int recommend(const struct model *model, const struct recommend_request *request, const struct config *config,
              recommend_answer *answer, void *user);

#endif
