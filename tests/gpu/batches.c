/* Batches of both backends, id by id. */
#include "common.h"

static int same_view(const struct batch_view *a, const struct batch_view *b, char *why, size_t room) {
    if (a->blocks != b->blocks)
        return snprintf(why, room, "%llu blocks, wanted %llu", (unsigned long long)b->blocks,
                        (unsigned long long)a->blocks),
               0;
    for (uint64_t i = 0; i < a->blocks; i++) {
        if (a->target_starts[i + 1] != b->target_starts[i + 1] ||
            a->context_starts[i + 1] != b->context_starts[i + 1] || a->positives[i] != b->positives[i])
            return snprintf(why, room, "block %llu has another shape: contexts to %llu, wanted %llu",
                            (unsigned long long)i, (unsigned long long)b->context_starts[i + 1],
                            (unsigned long long)a->context_starts[i + 1]),
                   0;
        for (uint64_t j = a->target_starts[i]; j < a->target_starts[i + 1]; j++)
            if (a->target_ids[j] != b->target_ids[j])
                return snprintf(why, room, "block %llu: target %u, wanted %u", (unsigned long long)i, b->target_ids[j],
                                a->target_ids[j]),
                       0;
        for (uint64_t j = a->context_starts[i]; j < a->context_starts[i + 1]; j++)
            if (a->context_ids[j] != b->context_ids[j])
                return snprintf(why, room, "block %llu: context %llu is %u, wanted %u", (unsigned long long)i,
                                (unsigned long long)(j - a->context_starts[i]), b->context_ids[j], a->context_ids[j]),
                       0;
    }
    return 1;
}

static void compare_batches(struct backend *cpu, struct backend *gpu, const struct example_source *s,
                            const char *name) {
    uint64_t examples = example_count(s), size = 700;
    unsigned stage = 0; /* in turn: each is made with scratch of its own */
    char why[256] = "";
    if (backend_cpu.source(cpu, s) || backend_cuda.source(gpu, s)) {
        CHECK(0, "%s: source", name);
        return;
    }
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t first = 0; first < examples; first += size * 3, stage = !stage) {
            struct batch_request request = {epoch, first, examples - first < size ? examples - first : size,
                                            s->held_out && first % 2};
            struct batch_view a, b;
            int ok = !backend_cpu.make_batch(cpu, 0, &request) && !backend_cpu.batch_view(cpu, 0, &a) &&
                     !backend_cuda.make_batch(gpu, stage, &request) && !backend_cuda.batch_view(gpu, stage, &b) &&
                     same_view(&a, &b, why, sizeof why);
            CHECK(ok, "%s, epoch %u, from %llu: %s", name, epoch, (unsigned long long)first, why);
            if (!ok) return;
        }
}

/* As parts of batches too large to be bounded, in stages that have no room for them, too little of it or more than enough. */
static void measure_batches(struct example_source *s, int room) {
    s->batch = EXAMPLE_MOST_PADDED;
    if (room == 1) s->room = (struct example_sizes){50, 100, 300, 600};
    if (room == 2) s->room = (struct example_sizes){100000, 100000, 1000000, 1000000};
}

void test_batches(void) {
    struct backend *cpu = open_or_stop(&backend_cpu, 1), *gpu = open_or_stop(&backend_cuda, 2);
    uint64_t vocabularies[] = {2, 3, 40, 1000, 65536};
    for (int v = 0; v < 5; v++) {
        struct corpus c;
        corpus_make(&c, vocabularies[v], 300, 40);
        for (int mode = 0; mode < 3; mode++)
            for (int law = 0; law < 3; law++)
                for (int bits = v; bits < 64;
                     bits += vocabularies[v] < 40 ? 13 : 3) { /* tiny vocabularies draw long: fewer */
                    struct example_source s = source_of(&c, (enum example_mode)mode);
                    char name[160];
                    s.law = (enum negative_law)law;
                    s.per_pair = bits & 1;
                    s.exclude = bits >> 1 & 1;
                    s.distinct = bits >> 2 & 1;
                    s.shuffle = bits >> 3 & 1;
                    if (bits >> 4 & 1) s.shuffle_items = 1, s.targets_all = 1, s.keep = c.keep;
                    if (bits >> 5 & 1) s.shrink = 0, s.replacement = 1, s.short_repeat = 1, s.held_out = 1u << 30;
                    s.negatives = bits % 3 == 0 ? 5 : bits % 3 == 1 ? 64 : 1;
                    s.positives = bits % 7 == 0 ? 0 : bits % 7 == 1 ? 1 : 4;
                    snprintf(name, sizeof name, "rows %llu mode %d law %d options %d", (unsigned long long)c.rows, mode,
                             law, bits);
                    compare_batches(cpu, gpu, &s, name);
                    if (mode != EXAMPLE_WINDOW) continue;
                    measure_batches(&s, bits / 3 % 3);
                    strcat(name, ", measured");
                    compare_batches(cpu, gpu, &s, name);
                }
        corpus_free(&c);
    }
    backend_cpu.close(cpu);
    backend_cuda.close(gpu);
}
