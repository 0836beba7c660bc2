/* recommend: finds the items that suit lists best. The lists are all lists of a file, named lists of a file, named
 * lists that the run was trained on, or one list of items given by hand.
 *
 * Items that the run does not know are left out, and a warning counts them. A list without a known item gets an empty answer; if
 * no list has a known item, the call fails.
 */
#ifndef SPTX_RECOMMEND_H
#define SPTX_RECOMMEND_H

#include "list_scores.h"
#include "names.h"

struct recommend_request {
    const char *lists;             /* path of a file, or of a directory of files; NULL: `items`, or `names` of lists of the run,
                                    * are the question */
    struct corpus_options reading; /* how the file is read: as the run's corpus was; if the corpus was text, as a file of lists */
    int look; /* 1: whether the file has lists or pairs is guessed from the file (names.h); 0: `reading` says it */
    const char *const *names;      /* [names_count] names of the lists to answer, in this order; names_count = 0: all lists of
                                    * the file. If `lists` is NULL, they are lists on which the run was trained (known.h) */
    uint64_t names_count;
    const char *const *items; /* [items_count] the items of a single list; a string may have several items, separated by commas */
    uint64_t items_count;
    const struct titles *titles; /* an item may be given by its title in these, too */
    enum list_score score;
    uint64_t among; /* only rows below this number are recommended; 0: all rows */
    const char *candidates; /* path of a file of items, one a line: only these are recommended; NULL: `among` says which rows */
    uint32_t k;
    int seen;                  /* 1: items that a list contains may be recommended to it */
    struct progress *progress; /* live line to update; NULL: none */
};

struct recommended {
    const char *list; /* name of the list, not NUL-terminated */
    uint64_t length;
    uint64_t known, unknown; /* known: number of the list's items that the run knows; unknown: number of its other items */
    const uint32_t *ids;     /* [count] recommended rows, best first */
    const float *scores;     /* [count] scores of the rows in `ids` */
    uint32_t count;
    int folded; /* 1: the list was not in training, and its row was computed for this answer (fold_in.h) */
};
/* Called with the answer to one list. Returns 0, or -1 to stop. */
typedef int recommend_answer(void *user, const struct recommended *answer);

/* Answers the lists in the order of the file, or of `names`. config: device.* chooses the device. Returns 0, or -1 after fail()
 * or as soon as answer() returns -1. */
int recommend(const struct model *model, const struct recommend_request *request, const struct config *config,
              recommend_answer *answer, void *user);

#endif
