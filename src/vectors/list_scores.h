/* list_scores: the items that suit a list best, scored from the items that the list has.
 *
 *                     a list is                 an item is           their score
 *   target            mean of unit target rows  target row           cosine       what stands in the same lists
 *   context           mean of target rows       context row          dot product  what training itself compared
 *   context-cosine    mean of unit target rows  context row          cosine       the same where it compared cosines
 *   normsum           mean of unit rows of u/|u| + v/|v|, each an item's target and context row          cosine
 *   sum               the same of u + v                                                                  cosine
 *   context-context   mean of unit context rows context row          cosine       what is named beside the same
 *   user              the list's own row        context row          dot product  what training itself compared
 *   user-cosine       the list's own row        context row          cosine       the same, of cosines
 *
 * A list that has no row of its own is the mean of its items' context rows to the last two; a line of citations has the target
 * row of the paper that it begins with. In a run with examples.own below
 * 1, a list is to them what it was in training: examples.own x its own row + the rest x the mean of its items' target rows,
 * or whichever of the two it has.
 *
 * Lists are asked in blocks, so that memory does not grow with their number.
 */
#ifndef SPTX_LIST_SCORES_H
#define SPTX_LIST_SCORES_H

#include "search.h"
#include "base/progress.h"

enum list_score {
    LIST_SCORE_TARGET,
    LIST_SCORE_CONTEXT,
    LIST_SCORE_CONTEXT_COSINE,
    LIST_SCORE_NORMSUM,
    LIST_SCORE_SUM,
    LIST_SCORE_CONTEXT_CONTEXT,
    LIST_SCORE_USER,
    LIST_SCORE_USER_COSINE,
    LIST_SCORES
};

const char *list_score_name(enum list_score score);
int list_score_named(const char *name); /* -1 after fail_usage() where it is none */
/* The score by cosine among the rows of one table. */
enum list_score list_score_of_view(enum model_view view);

struct list_scores {
    const struct model *model;
    enum list_score score;
    struct search search;
};

/* Whether a score goes by the rows that lists have themselves (list_question.rows). */
int list_score_of_users(enum list_score score);

/* Among the first `among` rows (0: all that are items). Opens a backend by device.* of `config` (NULL: defaults). */
int list_scores_open(struct list_scores *scores, const struct model *model, enum list_score score, uint64_t among,
                     const struct config *config);
void list_scores_close(struct list_scores *scores); /* harmless on a zeroed one */

/* Lists and what is asked of them. */
struct list_question {
    const uint64_t *starts; /* items of list i: codes[starts[i]] .. codes[starts[i + 1]] */
    const uint64_t *codes; /* a row; the model's number of rows and above: an item that it does not know, passed over */
    const uint64_t *lists; /* [count] the lists that are asked; NULL: 0 .. count - 1 */
    const int64_t *rows; /* the row of list i itself, or -1; NULL: none has one */
    uint64_t count;
    uint32_t k;
    int seen;                  /* 1: a list's own items may be among its answers */
    struct progress *progress; /* the live line, shown after each block; NULL: none */
};

/* The answer to one list: its k best items, best first, DRAW_NONE where fewer are left. 0, or -1 to end the asking. */
typedef int list_answer(void *user, uint64_t list, const uint32_t *ids, const float *scores);

/* Asks all the lists, in their order. A list of which no item is known is as near to every item: its answer is the
 * first rows. 0, or -1 after fail(), or as soon as answer() returns -1. */
int list_scores_ask(struct list_scores *scores, const struct list_question *question, list_answer *answer, void *user);

#endif
