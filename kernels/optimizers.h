/* optimizers: the rules that turn a row's gradient into its new weights and state. Each rule is one function, compiled
 * by the C compiler and by nvcc; names, defaults and formulas are PyTorch's (torch.optim, single-tensor path);
 * rowwise_adagrad's and rowwise_adam's are FBGEMM's (EXACT_ROWWISE_ADAGRAD, PARTIAL_ROWWISE_ADAM), and ftrl is algorithm 1 of McMahan et
 * al., "Ad click prediction: a view from the trenches" (KDD 2013).
 *
 * options --(lr, updates before)--> rule_step --(each column: gradient, weight, up to three slots)--> new values
 *
 * A rule never touches rows outside the batch: no decay, no momentum drift.
 */
#ifndef SPTX_OPTIMIZERS_H
#define SPTX_OPTIMIZERS_H

#include "portable.h"

/* each rule's name and enumerator, in the order of the values of optimizer.rule */
#define RULES(X)                                                                                                       \
    X(sgd, RULE_SGD)                                                                                                   \
    X(adagrad, RULE_ADAGRAD)                                                                                           \
    X(adadelta, RULE_ADADELTA)                                                                                         \
    X(rmsprop, RULE_RMSPROP)                                                                                           \
    X(adam, RULE_ADAM)                                                                                                 \
    X(adamw, RULE_ADAMW)                                                                                               \
    X(sparse_adam, RULE_SPARSE_ADAM)                                                                                   \
    X(adamax, RULE_ADAMAX)                                                                                             \
    X(asgd, RULE_ASGD)                                                                                                 \
    X(rprop, RULE_RPROP)                                                                                               \
    X(rowwise_adagrad, RULE_ROWWISE_ADAGRAD)                                                                           \
    X(ftrl, RULE_FTRL)                                                                                                 \
    X(rowwise_adam, RULE_ROWWISE_ADAM)

#define RULE_ENUMERATOR(name, enumerator) enumerator,
enum rule { RULES(RULE_ENUMERATOR) RULE_COUNT };
#undef RULE_ENUMERATOR

/* The kinds of Adam, as a set of bits, for optimizers.def. */
enum { RULES_ALL_ADAMS = 1 << RULE_ADAM | 1 << RULE_ADAMW | 1 << RULE_SPARSE_ADAM | 1 << RULE_ADAMAX | 1 << RULE_ROWWISE_ADAM };

/* The type in which a table stores its weights, or its slots. Only weights can be codes (int8, float8). Rules always compute in float32. In a
 * configuration the number 2 means "auto". */
enum precision { PRECISION_FLOAT32, PRECISION_BFLOAT16, PRECISION_INT8 = 3, PRECISION_FLOAT8 };

struct rule_options {
    int rule;
    int precision, state_precision; /* values of enum precision: type of the weights, and of all slots */
    double lr;   /* the configured learning rate; for rprop the first step size */
    double clip; /* greatest length of the summed gradient of a row that occurs several times in a batch (rule_share); 0: no limit */
#define NUMBER(name, fallback, lowest, highest, rules, help)  double name;
#define BY_RULE(name, fallback, lowest, highest, rules, help) double name;
#define FLAG(name, rules, help)
#include "optimizers.def"
#define NUMBER(name, fallback, lowest, highest, rules, help)
#define BY_RULE(name, fallback, lowest, highest, rules, help)
#define FLAG(name, rules, help) int name;
#include "optimizers.def"
    int count_rows; /* bias corrections use, 1: the number of updates of the row, stored at the end of its record; 0: that of the whole table */
};

/* ---- slots: the arrays of a row's state ---- */

enum { RULE_SLOTS = 3 };
struct rule_slot {
    const char *name; /* name of the slot in PyTorch */
    float initial;
    int role; /* which argument of the rule's function the slot is: 0..2 for s0..s2 */
};

/* Is 1 if the rule's last slot is one float32 for the whole row, in any state precision. */
#define RULE_BY_ROW(rule) ((rule) == RULE_ROWWISE_ADAGRAD || (rule) == RULE_ROWWISE_ADAM)

/* Fills slots[] in the order in which a record stores them. Returns their number (0..3). */
FN int rule_slots(const struct rule_options *o, struct rule_slot slots[RULE_SLOTS]) {
    int n = 0;
#define SLOT(text, value, which)                                                                                       \
    slots[n].name = text, slots[n].initial = (float)(value), slots[n].role = which, n++
    switch (o->rule) {
    case RULE_SGD:
        if (o->momentum != 0) SLOT("momentum_buffer", 0, 0);
        break;
    case RULE_ADAGRAD:
    case RULE_ROWWISE_ADAGRAD: SLOT("sum", o->initial_accumulator, 0); break;
    case RULE_ADADELTA:
        SLOT("square_avg", 0, 0);
        SLOT("acc_delta", 0, 1);
        break;
    case RULE_RMSPROP:
        SLOT("square_avg", 0, 0);
        if (o->momentum != 0) SLOT("momentum_buffer", 0, 1);
        if (o->centered) SLOT("grad_avg", 0, 2);
        break;
    case RULE_ADAM:
    case RULE_ADAMW:
        SLOT("exp_avg", 0, 0);
        SLOT("exp_avg_sq", 0, 1);
        if (o->amsgrad) SLOT("max_exp_avg_sq", 0, 2);
        break;
    case RULE_SPARSE_ADAM:
    case RULE_ROWWISE_ADAM:
        SLOT("exp_avg", 0, 0);
        SLOT("exp_avg_sq", 0, 1);
        break;
    case RULE_ADAMAX:
        SLOT("exp_avg", 0, 0);
        SLOT("exp_inf", 0, 1);
        break;
    case RULE_ASGD: SLOT("ax", 0, 0); break;
    case RULE_RPROP:
        SLOT("prev", 0, 0);
        SLOT("step_size", o->lr, 1);
        break;
    case RULE_FTRL:
        SLOT("z", 0, 0);
        SLOT("n", 0, 1);
        break;
    }
#undef SLOT
    return n;
}

/* Is 1 for a rule that has a third slot (role 2) with some of its options. GPU kernels of the other rules contain no code for such a slot. A
 * macro, because it must be a constant at compile time; tests/unit/rows/test_rules.c checks that it agrees with rule_slots(). */
#define RULE_MAY_HAVE_THIRD(rule) ((rule) == RULE_RMSPROP || (rule) == RULE_ADAM || (rule) == RULE_ADAMW)

/* Returns 1 if the rule's constants depend on the number of earlier updates. Only then must the updates of each row be counted. */
FN int rule_counts(const struct rule_options *o) {
    switch (o->rule) {
    case RULE_ADAM:
    case RULE_ADAMW:
    case RULE_SPARSE_ADAM:
    case RULE_ADAMAX:
    case RULE_ROWWISE_ADAM:
    case RULE_ASGD: return 1;
    case RULE_ADAGRAD: return o->lr_decay != 0;
    default: return 0;
    }
}

/* ---- one step's constants ---- */

struct rule_step {
    float lr;    /* factor of the step's direction: the learning rate, with its bias correction if the rule has one */
    float decay; /* weight decay; for adamw 1 - lr x decay */
    float momentum, eps;
    float a, one_minus_a; /* a: beta1, rho or alpha */
    float b, one_minus_b; /* b: beta2 */
    float correction;     /* for adam 1 / sqrt(1 - beta2^t), for asgd mu */
    float eta_minus, eta_plus, step_min, step_max;
    float l1, l2, beta;
    float clip;
    int nesterov, centered, amsgrad;
};

/* Returns the factor that limits the length of a row's gradient to `clip`. The gradient is the sum over the row's `places` in the
 * batch; `squares` is the sum of the squares of its columns.
 *
 * Why: the gradients of all n places are computed from the same old row. So together they make a step that is n times as long in one direction, where
 * n steps one after the other would have turned back. If n is large enough, the step overshoots, the next one overshoots more, and sgd diverges.
 */
FN float rule_share(float clip, uint64_t places, float squares) {
    return clip > 0 && places > 1 && squares > clip * clip ? clip / sqrtf(squares) : 1.0f;
}

/* rule_row_sum() returns the new value of the row's own slot, from the mean of the squares of the gradient's columns; `squares` is their sum.
 * rowwise_adagrad adds the mean (b = one_minus_b = 1), rowwise_adam averages it over updates. rule_row_rate() returns the row's learning rate for
 * the new value. */
FN float rule_row_sum(const struct rule_step *k, float before, float squares, uint32_t dim) {
    return k->b * before + k->one_minus_b * (squares / (float)dim);
}
FN float rule_row_rate(const struct rule_step *k, float sum) {
    return k->lr / (sqrtf(sum) * k->correction + k->eps);
}

/* Returns adagrad's learning rate: lr_decay lowers it with the number of earlier updates. */
FN double rule_decayed(double lr, double lr_decay, uint64_t updates) {
    return lr / (1 + (double)updates * lr_decay);
}

/* Returns the constants of an update, with the learning rate lr that the schedule gives, after `updates` earlier updates. */
FN struct rule_step rule_prepare(const struct rule_options *o, double lr, uint64_t updates) {
    struct rule_step k;
    double t = (double)updates + 1;
    k.lr = (float)lr;
    k.decay = (float)o->weight_decay;
    k.momentum = (float)o->momentum;
    k.eps = (float)o->eps;
    k.a = (float)o->beta1, k.one_minus_a = (float)(1 - o->beta1);
    k.b = (float)o->beta2, k.one_minus_b = (float)(1 - o->beta2);
    k.correction = 1;
    k.eta_minus = (float)o->eta_minus, k.eta_plus = (float)o->eta_plus;
    k.step_min = (float)o->step_min, k.step_max = (float)o->step_max;
    k.l1 = (float)o->l1, k.l2 = (float)o->l2, k.beta = (float)o->beta;
    k.clip = (float)o->clip;
    k.nesterov = o->nesterov, k.centered = o->centered, k.amsgrad = o->amsgrad;
    switch (o->rule) {
    case RULE_ADAGRAD:
        k.lr = (float)rule_decayed(lr, o->lr_decay, updates);
        break;
    case RULE_ADADELTA: k.a = (float)o->rho, k.one_minus_a = (float)(1 - o->rho); break;
    case RULE_RMSPROP: k.a = (float)o->alpha, k.one_minus_a = (float)(1 - o->alpha); break;
    case RULE_ADAMW: k.decay = (float)(1 - lr * o->weight_decay); /* fall through */
    case RULE_ROWWISE_ADAM:
    case RULE_ADAM:
        k.lr = (float)(lr / (1 - pow(o->beta1, t)));
        k.correction = (float)(1 / sqrt(1 - pow(o->beta2, t)));
        break;
    case RULE_SPARSE_ADAM: k.lr = (float)(lr * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t))); break;
    case RULE_ADAMAX: k.lr = (float)(lr / (1 - pow(o->beta1, t))); break;
    case RULE_ASGD: {
        double eta = t == 1 ? lr : lr / pow(1 + o->lambd * lr * (t - 1), o->alpha), past = t - 1 - o->t0;
        k.lr = (float)eta;
        k.a = (float)(1 - o->lambd * eta);
        k.correction = (float)(1 / (past > 1 ? past : 1));
        break;
    }
    case RULE_ROWWISE_ADAGRAD: /* with the row's rate, a GPU applies the rest as sgd */
        k.decay = k.momentum = 0;
        k.b = k.one_minus_b = 1;
        break;
    default: break;
    }
    return k;
}

/* ---- the rules: g the column's gradient, w its weight, s0..s2 its slots by role ---- */

FN void rule_sgd(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s1, (void)s2;
    g += k->decay * *w;
    if (k->momentum != 0) {
        float buffer = k->momentum * *s0 + g;
        *s0 = buffer;
        g = k->nesterov ? g + k->momentum * buffer : buffer;
    }
    *w -= k->lr * g;
}

/* Returns the amount that adagrad subtracts from a weight. `sum`: its squared gradients, including this one. */
FN float rule_adagrad_move(float lr, float eps, float g, float sum) {
    return portable_divide(lr * g, portable_sqrt(sum) + eps);
}

FN void rule_adagrad(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s1, (void)s2;
    g += k->decay * *w;
    float sum = *s0 + g * g;
    *s0 = sum;
    *w -= rule_adagrad_move(k->lr, k->eps, g, sum);
}

FN void rule_adadelta(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s2;
    g += k->decay * *w;
    float square = k->a * *s0 + k->one_minus_a * g * g;
    float delta = portable_divide(portable_sqrt(*s1 + k->eps), portable_sqrt(square + k->eps)) * g;
    *s0 = square;
    *s1 = k->a * *s1 + k->one_minus_a * delta * delta;
    *w -= k->lr * delta;
}

FN void rule_rmsprop(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    g += k->decay * *w;
    float square = k->a * *s0 + k->one_minus_a * g * g, variance = square;
    *s0 = square;
    if (k->centered) {
        float mean = *s2 + k->one_minus_a * (g - *s2);
        *s2 = mean;
        variance = square - mean * mean;
        variance = variance > 0 ? variance : 0;
    }
    float direction = portable_divide(g, portable_sqrt(variance) + k->eps);
    if (k->momentum != 0) {
        direction += k->momentum * *s1;
        *s1 = direction;
    }
    *w -= k->lr * direction;
}

FN void rule_adam(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    g += k->decay * *w;
    float mean = *s0 + k->one_minus_a * (g - *s0), square = k->b * *s1 + k->one_minus_b * g * g, largest = square;
    *s0 = mean;
    *s1 = square;
    if (k->amsgrad) {
        largest = *s2 > square ? *s2 : square;
        *s2 = largest;
    }
    *w -= portable_divide(k->lr * mean, portable_sqrt(largest) * k->correction + k->eps);
}

FN void rule_adamw(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    struct rule_step plain = *k;
    plain.decay = 0;
    *w *= k->decay;
    rule_adam(&plain, g, w, s0, s1, s2);
}

FN void rule_sparse_adam(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s2;
    float mean = *s0 + k->one_minus_a * (g - *s0), square = *s1 + k->one_minus_b * (g * g - *s1);
    *s0 = mean;
    *s1 = square;
    *w -= portable_divide(k->lr * mean, portable_sqrt(square) + k->eps);
}

FN void rule_adamax(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s2;
    g += k->decay * *w;
    float mean = *s0 + k->one_minus_a * (g - *s0), faded = k->b * *s1, size = fabsf(g) + k->eps;
    float largest = faded > size ? faded : size;
    *s0 = mean;
    *s1 = largest;
    *w -= portable_divide(k->lr * mean, largest);
}

FN void rule_asgd(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s1, (void)s2;
    g += k->decay * *w;
    float moved = *w * k->a - k->lr * g;
    *w = moved;
    *s0 = k->correction == 1 ? moved : *s0 + k->correction * (moved - *s0);
}

FN void rule_rprop(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s2;
    g += k->decay * *w;
    float agree = g * *s0;
    float factor = agree > 0 ? k->eta_plus : agree < 0 ? k->eta_minus : 1.0f;
    float size = *s1 * factor;
    size = size < k->step_min ? k->step_min : size > k->step_max ? k->step_max : size;
    g = agree < 0 ? 0 : g; /* the sign has changed: forgets the gradient, so that the next step counts as a first step */
    *s0 = g;
    *s1 = size;
    *w -= g > 0 ? size : g < 0 ? -size : 0.0f;
}

/* Returns ftrl's weight for z and `root`, the square root of n: the w for which this is least (TensorFlow's l2 counts twice in it): z w + (beta +
 * root) / (2 lr) w^2 + l1 |w| + l2 / 2 w^2. */
FN float rule_ftrl_weight(const struct rule_step *k, float z, float root) {
    float over = fabsf(z) - k->l1, size = portable_divide(k->lr * over, k->beta + root + k->lr * k->l2);
    return over <= 0 ? 0.0f : z < 0 ? size : -size;
}

/* s0: z; s1: n, the sum of squared gradients. If a weight had no gradient yet, it is its first value, or was stored: z is then set to the value
 * that gives this weight. A learning rate of 0 changes nothing; neither does a gradient whose square is 0 in float32 if no penalty and no earlier
 * gradient bounds the weight, which would become infinite. */
FN void rule_ftrl(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s2;
    float z = *s0, n = *s1, root = portable_sqrt(n);
    if (!(k->lr > 0)) return;
    if (z == 0 && n == 0 && *w != 0)
        z = -*w * (portable_divide(k->beta, k->lr) + k->l2) - (*w > 0 ? k->l1 : -k->l1);
    n += g * g;
    float next = portable_sqrt(n);
    if (next + k->beta + k->l2 == 0) return;
    z += g - portable_divide(next - root, k->lr) * *w;
    *s0 = z;
    *s1 = n;
    *w = rule_ftrl_weight(k, z, next);
}

/* k->lr: the row's own rate (rule_row_rate). */
FN void rule_rowwise_adagrad(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s0, (void)s1, (void)s2;
    *w -= k->lr * g;
}

/* k->lr: the row's own learning rate (rule_row_rate), including both bias corrections. */
FN void rule_rowwise_adam(const struct rule_step *k, float g, float *w, float *s0, float *s1, float *s2) {
    (void)s1, (void)s2;
    float mean = *s0 + k->one_minus_a * (g - *s0);
    *s0 = mean;
    *w -= k->lr * mean;
}

#endif
