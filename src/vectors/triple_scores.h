/* triple_scores: how likely single triples of a finished run are true.
 *
 *   score         the score of the tail as the answer to (head, relation, ?). If relations have reciprocals, the mean of this and of the head's score
 *                 as the answer to (?, relation, tail). The mean has the better probabilities, and tells labelled triples as well (CoDEx-S)
 *   probability   1 / (1 + exp(-(a score + b))): Platt's scaling, fitted to validation triples ("Probability Calibration for Knowledge Graph
 *                 Embedding Models", Tabacof and Costabello 2020). a and b are of all relations; a relation with at least OWN_LEAST true validation
 *                 triples has its own. If no label says which triples are false, each true one has two false ones: with another head, and with
 *                 another tail, drawn evenly, none of them a triple of training or validation. The true ones count as much as these, so that a
 *                 probability is that among as many true triples as false ones; labelled triples count as the file has them
 */
#ifndef SPTX_TRIPLE_SCORES_H
#define SPTX_TRIPLE_SCORES_H

#include "known.h"

struct scored_triple {
    uint32_t rows[3];  /* head, relation, tail; if the run does not know all of them, the numbers of the names in `others` */
    float score;       /* NaN: the run does not know all three */
    uint8_t is_true;   /* 0: a label says that it is false */
    uint8_t is_known;
};

struct scored_triples {
    struct scored_triple *triple; /* [count] in the order of the file */
    uint64_t count, capacity;
    uint64_t unknown, falses; /* numbers of triples that are not known, and of known triples that are false */
    struct words others;      /* the names of triples that are not known */
};

/* Reads triples, with labels if they have some, from a file or from `data` unless it is NULL, and scores them. Warns of unknown names; with
 * some = 1 fails if the run knows none of the triples. Returns 0, or -1 after fail(). The caller releases in any case. */
int scored_triples_read(struct scored_triples *triples, const struct model *model, const char *path, const struct gathered *data,
                        const struct look_keys *look, int some, struct pool *pool);
void scored_triples_release(struct scored_triples *triples); /* may be called on a struct of zeros */

struct calibration {
    uint64_t items, relations; /* of the model */
    float (*line)[2]; /* [relations + 1] b and a of each relation, and of all; NaN: the relation has none of its own */
    float mean, scale; /* a and b are of (score - mean) x scale */
};

/* Fits a calibration to validation triples, and says how. Returns 0, or -1 after fail(). The caller releases in any case. */
int calibration_fit(struct calibration *calibration, const struct model *model, const struct scored_triples *validation, const char *path,
                    struct pool *pool);
double calibration_probability(const struct calibration *calibration, const struct scored_triple *triple); /* NaN if its score is */
void calibration_release(struct calibration *calibration); /* may be called on a struct of zeros */

#endif
