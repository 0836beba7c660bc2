/* features: gives vectors to new items, which no training list contains. A vector is computed from what a file says about the item: its author, its
 * genre, its year.
 *
 *   file of features   name, then its features: words after a tab, or a table with a header (features_read)
 *   trained items      each has a row, which training found without any feature. Hence features can make no trained item worse
 *   a feature's row    the rows of all features together are those whose sums come nearest to the trained items' rows (below)
 *   a new item         an item of the file that the run does not know: the mean of all items' rows + the sum of its features' rows
 *
 * A feature's part in an item is ln(items / items with the feature), and the parts of an item are scaled to length 1. The features' rows B minimize
 *
 *   sum over trained items of |row - mean - sum of part x B|^2 + ridge x |B|^2
 *
 * `ridge` is chosen so that items that are left out are found best by what their features guess. Rows are solved by conjugate gradients; the result
 * does not depend on the number of threads.
 *
 * New items compete with trained ones, whose scores are more certain. Hence their vectors are all multiplied by one factor, by which they take a
 * given share of the first places (features_asked); if no factor reaches it, the mean is taken out of them first. Where cosines are compared, trained
 * items have length 1, and of two new items the one whose features tell less is shorter.
 *
 * Content: what an item has in common with a list's items, the sum of the products of their parts, counts in the scores of trained and new items:
 *
 *   score    learnt score + weight x P . X / sqrt |P|; X: the item's parts, P: the sum of the parts of the list's items
 *   weight   by which items that are left out, whose rows features guess, are best found for the lists that contain them, by two standard errors at
 *            least; and by which a fifth of the items of lists that are folded in without them are found as well as by learnt scores, to 2%.
 *            0 if there is none, or if learnt scores find more than half of these (planted shops, whose lists tell more than features do)
 *
 * It is chosen for runs whose lists can be folded in. Left-out items alone would tell what new items gain: in a planted shop of 10,000 items and
 * 2,000 lists trained items lost 12% by that weight. Trained rows know the lists that are folded in, so these alone would choose a weight near 0 on
 * goodbooks, where content finds .24 of held-out books for .22 (configs/notes/items.md).
 *
 * With content, the scores of new items have a factor of their own, for the same purpose; their vectors keep the length that suits learnt scores.
 *
 * New lists (people) have vectors likewise, fitted to the rows of trained lists.
 *
 * Nothing is stored: the rows are computed when a command asks for them (100,000 items with 20 features, 128 columns: three seconds of a core, and as
 * long again if content has a weight).
 */
#ifndef SPTX_FEATURES_H
#define SPTX_FEATURES_H

#include "base/pool.h"
#include "model.h"
#include "names.h"
#include "search.h"

/* The items of a file, and their features. */
struct feature_file {
    struct names items, features; /* items.row: row in the model; -1 before features_locate() or if the model does not know the item */
    uint64_t *starts;             /* [items + 1] features of item i: of[starts[i]] .. of[starts[i + 1] - 1], without repetitions */
    uint32_t *of;
    uint64_t count, capacity; /* count: length of `of` */
    uint64_t met;             /* bit i: the file has a column of name i of `words` (features_read), of 64 */
};

/* Reads a file of features, and prints for each column which of these kinds it is:
 *
 *   no header              the first field is the name; the words of the others are features (fields, if a line has several)
 *   numbers                FEATURE_BINS ranges with equally many items, such as year:1987..1994; ten different numbers or fewer: one feature each;
 *                          likewise if up to ten other values, such as NaN, are among them: each is a feature
 *   several values         separated by | or ; within the field: one feature each
 *   all values differ      a name of the item: left out
 *   running text           refused, unless `words` names the column: then each of its words is a feature
 *   other columns          one feature for each different value: genre:noir
 *
 * An item may have several lines, such as one for each of its tags.
 *
 * words: names of columns, separated by commas; "" or NULL: none. Returns 0, or -1 after fail(). The caller releases the file in both cases. */
enum { FEATURE_BINS = 10 };
int features_read(struct feature_file *file, const char *path, const char *words);
void features_release(struct feature_file *file); /* may be called on a struct of zeros */

/* Reads the file of features that the config names, if it does, so that training begins only if it can be read. Returns 0, or -1 after fail(). */
int features_check(const struct config *config);

/* The options of a command that are about features. */
struct features_asked {
    const char *path, *words; /* the file, and its columns of words; NULL: the run's own (corpus.item_features, feature_words), if it has one */
    const char *lists;        /* the file of features of lists; NULL: the run's own (corpus.list_features), if it has one */
    double share;             /* which share of the first places new items take on average; FEATURES_AUTO: FEATURES_SHARE, or their share among all
                               * items if that is less; a third of FEATURES_SHARE at most if features tell nothing */
    int content; /* 1: lists are asked about, so that the weight of content is chosen; list_scores_features() sets it */
};
#define FEATURES_AUTO          (-1)
#define FEATURES_SHARE         0.03 /* goodbooks, a sixth of its books held out, recall@20 of trained books among all and of new ones among all: share
                                     * 0.014 -0.7% and .016, 0.026 -1.6% and .028, 0.040 -2.7% and .041, 0.088 -6.3% and .073 */
#define FEATURES_SHARE_CONTENT 0.1  /* the default where content has a weight: 9.9% more trained books are found alone; among all 7.8% more at a
                                     * share of 0.03 (new ones .023), 5.6% at 0.06 (.038), 3.5% at 0.1 (.049), 0.4% at 0.15 (.065) */

/* Adds the files' new items and new lists, and the rows of features, to the model: model->added, added_lists and features. They are made for answers
 * of this view; unit: 1: rows are compared by cosines. Says how well features guess rows. Does nothing if the run has no features, or if they were
 * added before; if the run's own file is gone, warns. Returns 0, or -1 after fail(). */
int features_open_of(struct model *model, const struct features_asked *asked, enum model_view view, int unit, unsigned threads);

/* Answers to which content (above) is added. */
struct features_mixed {
    const struct model *model;
    const struct search *search;
    const uint32_t *rows; /* [search->rows] the candidates' rows of the model, rising; NULL: 0, 1, 2 .. */
    const uint64_t *codes, *starts, *ends; /* question i's list has the items codes[starts[i]] .. codes[ends[i] - 1], as in list_question */
    const struct search_block *block; /* the questions, with the k best rows by learnt scores */
    uint32_t k;
    _Atomic uint64_t taken; /* number of questions that workers have begun */
};
/* Replaces the answers of all questions, rows and scores, by the k rows with the highest scores when content is added. If content->weight is 0, no
 * answer changes. Returns 0, or -1 after fail(). */
int features_mix(struct features_mixed *mixed, struct pool *pool);

/* Calls take() with each item of a file of features, and its first value of a column: "noir" of genre:noir. In a file without a header a column is
 * what stands before the colon of its features. path: NULL: the run's own file, with the run's own words. Returns 0, or -1 after fail(), also if no
 * item has a feature of the column, or as soon as take() returns -1. */
int features_labels(const struct model *model, const char *path, const char *words, const char *column, labels_take *take, void *user);

/* Makes a model whose words are the features of `model`, with their rows in both tables, as of a file of vectors. Takes the names away from `model`.
 * Returns 0, or -1 after fail(), also if it has no features. The caller closes *out in both cases. */
int features_model(struct model *out, struct model *model);

#endif
