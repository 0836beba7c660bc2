/* Compiles the header of the rules in double: `float` is a macro for double in this file. */
#include "kernels/portable.h"
#define float double
#define sqrtf sqrt
#define fabsf fabs
#include "kernels/optimizers.h"
#include "rules64.h"

typedef void update(const struct rule_step *step, double share, uint64_t dim, const double *g, double *w, double *s0,
                    double *s1, double *s2);

/* Defines a function with its own loop for each rule, so that the compiler can inline the rule. */
#define RULE_LOOP(name, enumerator)                                                                                    \
    static void row_##name(const struct rule_step *step, double share, uint64_t dim, const double *g, double *w,       \
                           double *s0, double *s1, double *s2) {                                                       \
        const struct rule_step k = *step;                                                                              \
        for (uint64_t i = 0; i < dim; i++) rule_##name(&k, g[i] * share, w + i, s0 + i, s1 + i, s2 + i);               \
    }
RULES(RULE_LOOP)
#define RULE_ENTRY(name, enumerator) [enumerator] = row_##name,
static update *const updates[RULE_COUNT] = {RULES(RULE_ENTRY)};

void rules64_update(const struct rule_options *options, double lr, uint64_t before, uint64_t places, uint64_t dim,
                    const double *g, double *w, double *slots) {
    struct rule_slot kinds[RULE_SLOTS];
    struct rule_step k = rule_prepare(options, lr, before);
    int count = rule_slots(options, kinds);
    double squares = 0, *role[RULE_SLOTS] = {w, w, w}; /* slots that the rule lacks point to w and are never read */
    for (uint64_t i = 0; i < dim; i++) squares += g[i] * g[i];
    double share = rule_share(k.clip, places, squares);
    for (int s = 0; s < count; s++) role[kinds[s].role] = slots + (uint64_t)s * dim;
    double *of_row = slots + (uint64_t)(count - 1) * dim;
    if (RULE_BY_ROW(options->rule)) k.lr = rule_row_rate(&k, *of_row = rule_row_sum(&k, *of_row, share * share * squares, (uint32_t)dim));
    updates[options->rule](&k, share, dim, g, w, role[0], role[1], role[2]);
}
