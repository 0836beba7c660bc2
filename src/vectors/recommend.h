/* recommend: finds the items that suit lists best. The lists are all lists of a file, some lists of a file by name, lists that the
 * run was trained on by name, or one list of items given by hand.
 *
 * Items that the run does not know are left out, and a warning counts them. A list without a known item gets an answer
 * of no items; where that holds for all lists, it is a failure.
 */
#ifndef SPTX_RECOMMEND_H
#define SPTX_RECOMMEND_H

#include "list_scores.h"
#include "titles.h"

struct recommend_request {
    const char *lists;             /* path of a file or of a directory of files; NULL: `items`, or `names` of lists of the run */
    struct corpus_options reading; /* as the run's corpus; where that is text, the file is read as lists */
    int look; /* 1: the file is read as lists or as pairs, whichever it looks like (list_form.h); 0: by `reading` */
    const char *const *names;      /* [names_count] names of the lists to answer, in this order; names_count 0: all lists of the
                                      file. If `lists` is NULL they name lists that the run was trained on (run_lists.h) */
    uint64_t names_count;
    const char *const *items; /* [items_count] the one list by hand: each an item, or several with commas between */
    uint64_t items_count;
    const struct titles *titles; /* an item may also be given by its title */
    enum list_score score;
    uint64_t among; /* only this number of first rows is recommended; 0: all */
    const char *candidates; /* path of a file of items, one a line: only these are recommended; NULL: see `among` */
    uint32_t k;
    int seen;                  /* 1: a list's own items may be recommended */
    struct progress *progress; /* the live line; NULL: none */
};

struct recommended {
    const char *list; /* the list's name, not ended by a NUL */
    uint64_t length;
    uint64_t known, unknown; /* items of the list that the run knows, and that it does not know */
    const uint32_t *ids;     /* [count] best first */
    const float *scores;     /* [count] */
    uint32_t count;
    int folded; /* 1: the list was not trained, and its row was computed for this answer (fold_in.h) */
};
/* Takes the answer to one list. Returns 0, or -1 to stop. */
typedef int recommend_answer(void *user, const struct recommended *answer);

/* Answers the lists in the file's order, or in that of the names. config: device.*. Returns 0, or -1 after fail() or as
 * soon as answer() returns -1. */
int recommend(const struct model *model, const struct recommend_request *request, const struct config *config,
              recommend_answer *answer, void *user);

#endif
