/* The header of the rules speaks of float; here that is double, for this file alone. */
#include "../../kernels/portable.h"
#define float double
#define sqrtf sqrt
#define fabsf fabs
#include "../../kernels/optimizers.h"
#include "rules64.h"

typedef void update(const struct rule_step *k, double g, double *w, double *s0, double *s1, double *s2);
#define RULE_UPDATE(name, enumerator) rule_##name,
static update *const updates[RULE_COUNT] = {RULES(RULE_UPDATE)};

void rules64_update(const struct rule_options *options, double lr, uint64_t behind, uint64_t places, uint64_t dim,
                    const double *g, double *w, double *slots) {
    struct rule_slot kinds[RULE_SLOTS];
    struct rule_step k = rule_prepare(options, lr, behind);
    int count = rule_slots(options, kinds);
    double squares = 0;
    for (uint64_t i = 0; i < dim; i++) squares += g[i] * g[i];
    double share = rule_share(k.clip, places, squares);
    for (uint64_t i = 0; i < dim; i++) {
        double unused[RULE_SLOTS] = {0}, *role[RULE_SLOTS] = {&unused[0], &unused[1], &unused[2]};
        for (int s = 0; s < count; s++) role[kinds[s].role] = slots + (uint64_t)s * dim + i;
        updates[options->rule](&k, share * g[i], w + i, role[0], role[1], role[2]);
    }
}
