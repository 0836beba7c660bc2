#include "walks.h"

/* Returns the threshold that a random 32-bit number does not exceed with this chance. */
static uint32_t threshold(double chance) {
    double drawn = chance * 4294967296.0 - 1;
    return drawn >= 4294967295.0 ? UINT32_MAX : drawn <= 0 ? 0 : (uint32_t)drawn;
}

void walks_set_biases(struct walks *walks, double p, double q, int directed) {
    double back = 1 / p, away = 1 / q, others = away > 1 ? away : 1;
    int apart = !directed && !walks->alias && back > others;
    double most = apart || back < others ? others : back;
    walks->biased = p != 1 || q != 1;
    walks->mutual = !directed;
    walks->aside = apart ? (float)((back - others) / others) : 0;
    walks->back = threshold(apart ? 1 : back / most);
    walks->near_ = threshold(1 / most);
    walks->away = threshold(away / most);
}
