#include "bench.h"

#include "base/progress.h"
#include "base/report.h"
#include "session.h"

enum { WALKS_FIRST = 4096 };

/* Draws walks, doubling their number until a call takes a good part of the time, then repeats that call until the time is over. */
static int draw(struct bench_walks *out, const struct session *s, double seconds) {
    const struct walks *w = &s->examples.source.walks;
    uint64_t all = walks_count(w), count = WALKS_FIRST < all ? WALKS_FIRST : all, at = 0, calls = 0;
    while (out->seconds < seconds) {
        if (at + count > all) at = 0;
        double began = progress_now();
        if (s->ops->draw_walks(s->backend, 0, at, count, NULL)) return -1;
        double took = progress_now() - began;
        at += count;
        if (took < seconds / 20 && 2 * count <= all && !out->walks) {
            count *= 2;
            continue;
        }
        if (!calls++) continue; /* the first call of this size only warms up */
        out->walks += count;
        out->seconds += took;
    }
    return 0;
}

int bench_walks(struct bench_walks *out, struct config *config, double seconds) {
    struct session s;
    *out = (struct bench_walks){.seconds = 0};
    int result = session_open(&s, config, NULL, NULL, NULL);
    if (!result && config->examples_mode != MODE_WALK)
        result = fail("bench walks draws walks, and examples.mode is %s; set corpus.format = graph",
                      config_choice_name("examples", "mode", config->examples_mode));
    if (!result) {
        s.examples.source.stream_on_host = !s.plan.stream_gpu;
        result = s.ops->source(s.backend, &s.examples.source) || draw(out, &s, seconds) ? -1 : 0;
        out->machine = s.machine;
        out->graph = s.graph;
        out->length = s.examples.source.walks.length;
        out->on_host = s.examples.source.stream_on_host && s.ops->has_gpu;
    }
    session_close(&s);
    return result;
}
