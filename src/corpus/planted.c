#include "planted.h"

#include "base/memory.h"
#include "generate.h"
#include "kernels/examples.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the law ---- */

void planted_init(struct planted *p, const struct powers *powers) {
    p->powers = powers;
    p->types = p->groups / TYPE_GROUPS;
    for (uint64_t more = 0; more < 2; more++) {
        p->members[more] = powers_log(powers, p->rows / p->groups + more + 1);
        p->layers[more] = powers_log(powers, p->relations / p->types + more + 1);
    }
    p->order = shuffle_make(p->rows, draw_at(p->seed, DRAW_GENERATE, 0, 2, 0));
}

static uint64_t draw_member_of(const struct planted *p, uint64_t group, uint64_t bits) {
    return (powers_floor(p->powers, draw_below(bits, p->members[group < p->rows % p->groups])) - 1) * p->groups + group;
}

/* Returns the type to which a relation leads, and stores in *turn by what group numbers are changed. */
static uint64_t leads_to(const struct planted *p, uint64_t relation, uint64_t *turn) {
    struct shuffle types = shuffle_make(p->types, draw_at(0, DRAW_GENERATE, relation / p->types, 5, 1));
    *turn = draw_at(0, DRAW_GENERATE, relation, 5, 0).word[0] % TYPE_GROUPS;
    return shuffle_at(&types, relation % p->types);
}

void planted_draw(const struct planted *p, uint64_t number, struct planted_triple *triple) {
    struct draw4 first = draw_at(p->seed, DRAW_GENERATE, number, 4, 0), second = draw_at(p->seed, DRAW_GENERATE, number, 4, 1);
    uint64_t head = shuffle_at(&p->order, number / 2 % p->rows), turn;
    if (number % 2 == 0) head = draw_member_of(p, (uint64_t)first.word[2] * p->groups >> 32, draw_pair(first, 0));
    uint64_t group = head % p->groups, type = group / TYPE_GROUPS;
    uint64_t layer = powers_floor(p->powers, draw_below(draw_pair(second, 0), p->layers[type < p->relations % p->types])) - 1;
    uint64_t relation = layer * p->types + type, to = leads_to(p, relation, &turn) * TYPE_GROUPS + (group % TYPE_GROUPS ^ turn);
    triple->noise = first.word[3] < p->noise;
    if (triple->noise) to = (uint64_t)draw_at(p->seed, DRAW_GENERATE, number, 4, 2).word[0] * p->groups >> 32;
    triple->head = (uint32_t)head;
    triple->relation = (uint32_t)relation;
    triple->tail = (uint32_t)draw_member_of(p, to, draw_pair(second, 1));
}

/* Returns the group in which a triple's tail is expected, by its relation and its head's group. head: 1: returns that of its head, by its tail's
 * group. */
static uint64_t expected_group(const struct planted *p, const struct planted_triple *triple, int head) {
    uint64_t turn, type = leads_to(p, triple->relation, &turn), other = (head ? triple->tail : triple->head) % p->groups;
    return (head ? triple->relation % p->types : type) * TYPE_GROUPS + (other % TYPE_GROUPS ^ turn);
}

/* ---- held-out triples ---- */

static int by_key(const void *a, const void *b) {
    const struct planted_question *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* Returns the index of the first question whose key is at least this one. */
static uint64_t question_from(const struct planted_held_out *h, uint64_t key) {
    return mem_first_from(h->questions, 2 * h->count, sizeof *h->questions, key);
}

int planted_hold_out(struct planted_held_out *h, const struct planted *planted, uint64_t training, uint64_t count) {
    static const char what[] = "held-out triples";
    *h = (struct planted_held_out){.planted = planted, .training = training, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    h->triples = mem_alloc(count, sizeof *h->triples, what);
    h->repeated = mem_zalloc(count, 1, what);
    h->asked = mem_zalloc(planted->rows / 32 + 1, sizeof *h->asked, what);
    h->questions = mem_alloc(2 * count, sizeof *h->questions, what);
    h->seen = mem_zalloc(2 * count, sizeof *h->seen, what);
    if (!h->triples || !h->repeated || !h->asked || !h->questions || !h->seen) return -1;
    for (uint64_t i = 0; i < count; i++) {
        struct planted_triple *triple = &h->triples[i];
        planted_draw(planted, training + i, triple);
        for (int head = 0; head < 2; head++) {
            uint32_t entity = head ? triple->tail : triple->head;
            h->asked[entity / 32] |= UINT32_C(1) << entity % 32;
            uint64_t at = 2 * i + (uint64_t)head;
            h->questions[at] = (struct planted_question){(uint64_t)entity << 32 | triple->relation, (uint32_t)at};
        }
    }
    qsort(h->questions, 2 * count, sizeof *h->questions, by_key);
    return 0;
}

/* Sorts the known answers, and keeps one of each. */
static void sort_ahead(struct planted_held_out *h) {
    uint64_t kept = 0;
    if (!h->known) return;
    qsort(h->ahead, h->known, sizeof *h->ahead, mem_by_number);
    for (uint64_t i = 0; i < h->known; i++)
        if (!i || h->ahead[i] != h->ahead[i - 1]) h->ahead[kept++] = h->ahead[i];
    h->known = kept;
}

/* Notes what a triple tells of the held-out triples: which of them it repeats, and which answers of their questions are known by it. own: its index
 * if it is held out itself; otherwise the number of held-out triples. */
static int take_triple(struct planted_held_out *h, const struct planted_triple *triple, uint64_t own) {
    uint64_t groups = h->planted->groups;
    for (uint64_t head = 0; head < 2; head++) {
        uint32_t entity = head ? triple->tail : triple->head, answer = head ? triple->head : triple->tail;
        if (!row_has_bit(h->asked, entity)) continue;
        uint64_t first = question_from(h, (uint64_t)entity << 32), key = (uint64_t)entity << 32 | triple->relation;
        if (own == h->count) atomic_fetch_add_explicit(&h->seen[first][triple->noise], 1, memory_order_relaxed);
        for (uint64_t i = question_from(h, key); i < 2 * h->count && h->questions[i].key == key; i++) {
            uint64_t at = h->questions[i].at;
            const struct planted_triple *asked = &h->triples[at / 2];
            uint32_t wanted = head ? asked->head : asked->tail;
            uint64_t expected = expected_group(h->planted, asked, head);
            if (at % 2 != head) continue;
            if (answer == wanted && (own == h->count || own < at / 2)) h->repeated[at / 2] = 1;
            if (answer % groups != expected || (wanted % groups == expected && answer >= wanted)) continue;
            /* When there is no room, repeated answers are removed first, and then there is room for as many again. */
            pthread_mutex_lock(&h->lock);
            if (h->known == h->capacity) sort_ahead(h);
            int result = mem_grow(&h->ahead, &h->capacity, 2 * h->known + 1, sizeof *h->ahead, "known answers");
            if (!result) h->ahead[h->known++] = at << 32 | answer / groups;
            pthread_mutex_unlock(&h->lock);
            if (result) return -1;
        }
    }
    return 0;
}

int planted_take(struct planted_held_out *h, const struct planted_triple *triple) {
    return take_triple(h, triple, h->count);
}

/* ---- the best ranks ---- */

enum { POINTS = 64 }; /* points at which an integral from 0 to 1 is taken */

/* Sums over members 0 .. m - 1 of a group, which a ranking by popularity puts before member m. */
struct before {
    uint64_t members;
    double sampled;         /* how many of them a sample has, in the mean; of all entities, all */
    double logs[POINTS];    /* log E[s^X] of their number X in a sample */
};

/* Returns the probability that a member is in the sample. */
static double in_sample(const struct planted *p, uint64_t member) {
    if (p->rows <= RANK_ALL_MOST) return 1;
    double size = (double)p->rows / (double)p->groups, popular = log2(1 + 1 / ((double)member + 1)) / log2(size + 1) / (double)p->groups;
    double draws = RANK_SAMPLE / 2 * (1 / (double)p->rows + .75 * popular + .25 / (double)p->rows);
    return -expm1(-draws);
}

static void add_member(const struct planted *p, struct before *before, uint64_t member, double sign) {
    double share = in_sample(p, member);
    before->sampled += sign * share;
    for (int i = 0; i < POINTS && share < 1; i++) before->logs[i] += sign * log1p(-share * (1 - (i + .5) / POINTS));
}

/* Returns E[1 / (1 + X)] for about this mean of X; exactly 1 / (1 + X) if all entities are ranked. */
static double about(const struct planted *p, double mean) {
    if (p->rows <= RANK_ALL_MOST) return 1 / (1 + mean);
    return mean > 1e-9 ? -expm1(-mean) / mean : 1;
}

/* Returns the reciprocal rank of question `at`'s answer if the members in `before` rank before it, without the known answers among them. */
static double reciprocal_rank(const struct planted_held_out *h, uint64_t at, const struct before *before) {
    const struct planted *p = h->planted;
    struct before left = *before;
    for (uint64_t i = mem_first_from(h->ahead, h->known, sizeof *h->ahead, at << 32); i < h->known && h->ahead[i] >> 32 == at; i++)
        add_member(p, &left, (uint32_t)h->ahead[i], -1);
    if (p->rows <= RANK_ALL_MOST) return 1 / (1 + left.sampled);
    double sum = 0;
    for (int i = 0; i < POINTS; i++) sum += exp(left.logs[i]);
    return sum / POINTS;
}

/* Returns the probability that an entity tells its group; -1 if no triple of training has it. */
static double tells(const struct planted_held_out *h, uint32_t entity) {
    const _Atomic uint32_t *seen = h->seen[question_from(h, (uint64_t)entity << 32)];
    return seen[0] + seen[1] == 0 ? -1 : seen[0] > 1 ? 1 : seen[0] / (1.0 + seen[1]);
}

static void add_best(const struct planted_held_out *h, uint64_t at, const struct before *before, const struct before *group,
                     struct planted_best *best) {
    const struct planted *p = h->planted;
    const struct planted_triple *triple = &h->triples[at / 2];
    uint64_t head = at % 2, answer = (head ? triple->head : triple->tail) % p->groups, expected = expected_group(p, triple, (int)head);
    double told[2] = {tells(h, triple->head), tells(h, triple->tail)}, others = head ? TYPE_GROUPS : (double)p->groups;
    double own = in_sample(p, before->members) / 2; /* members of the same popularity in other groups: half of them rank before it */
    double popular = about(p, (double)p->groups * before->sampled + ((double)p->groups - 1) * own);
    double of_type = about(p, TYPE_GROUPS * before->sampled + (TYPE_GROUPS - 1) * own), known = 0;
    if (answer == expected) known = reciprocal_rank(h, at, before);
    else known = about(p, group->sampled + (others - 1) * before->sampled + (others - 2) * own), of_type = known;
    double telling = told[0] < 0 || told[1] < 0 ? -1 : told[0] * told[1];
    best->best[head] += known;
    best->inferred[head] += telling < 0 ? 0 : telling * known + (1 - telling) * of_type;
    best->popular[head] += popular;
}

int planted_judge(struct planted_held_out *h, struct planted_best *best) {
    const struct planted *p = h->planted;
    OWNED uint64_t *order = mem_alloc(2 * h->count, sizeof *order, "held-out triples");
    *best = (struct planted_best){.among = p->rows > RANK_ALL_MOST ? RANK_SAMPLE : p->rows};
    uint64_t asked = 0;
    if (!order) return -1;
    for (uint64_t i = 0; i < h->count; i++)
        if (take_triple(h, &h->triples[i], i)) return -1;
    sort_ahead(h);
    for (uint64_t at = h->count / 2 * 2; at < 2 * h->count; at++) /* by member, so that `before` is computed once */
        if (!h->repeated[at / 2])
            order[asked++] = (uint64_t)((at % 2 ? h->triples[at / 2].head : h->triples[at / 2].tail) / p->groups) << 32 | at;
    qsort(order, asked, sizeof *order, mem_by_number);
    struct before before = {.members = 0}, group = {.members = 0};
    for (; group.members < p->rows / p->groups; group.members++) group.sampled += in_sample(p, group.members);
    for (uint64_t i = 0; i < asked; i++) {
        for (; before.members < order[i] >> 32; before.members++) add_member(p, &before, before.members, 1);
        add_best(h, (uint32_t)order[i], &before, &group, best);
    }
    best->triples = asked / 2;
    for (int head = 0; head < 2 && asked; head++)
        for (double *sums[] = {best->best, best->inferred, best->popular}, **sum = sums; sum < sums + 3; sum++) (*sum)[head] /= (double)best->triples;
    for (uint64_t i = 1; i <= best->among; i++) best->random += 1 / (double)i / (double)best->among;
    return 0;
}

void planted_release(struct planted_held_out *h) {
    mem_free(h->triples, h->repeated, h->asked, h->questions, h->seen, h->ahead);
    *h = (struct planted_held_out){.count = 0};
}
