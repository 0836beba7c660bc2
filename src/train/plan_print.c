/* plan_print: prints a plan, as lines for people and as one line of JSON for programs. */
#include "planner.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- for people ---- */

static void line(int to_stdout, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line(int to_stdout, const char *name, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (to_stdout)
        printf("%-16s %s\n", name, text);
    else
        note("%-16s %s", name, text);
}

static const char *place_name(const struct plan *plan, enum place place) {
    if (place == PLACE_FILE) return "in a file";
    if (place == PLACE_GPU) return "on the GPU";
    return plan->gpu_available ? "pinned on the host" : "in memory";
}

static void print_part(const struct plan *plan, int to_stdout, const char *name, enum place place, uint64_t bytes, int shared) {
    char text[TEXT_BYTES];
    if (bytes)
        line(to_stdout, name, "%10s  %s", text_of_bytes(text, bytes), place_name(plan, place));
    else if (shared && (plan->layout.slots || plan->layout.counted))
        line(to_stdout, name, "%10s  in the same records", "");
    else
        line(to_stdout, name, "%10s", "none");
}

static void print_bytes(int to_stdout, const char *name, uint64_t bytes, const char *remark) {
    char text[TEXT_BYTES];
    line(to_stdout, name, "%10s%s%s", text_of_bytes(text, bytes), *remark ? "  " : "", remark);
}

/* Prints how small the tables of targets and of contexts would be if `key` was set; nothing if bytes is 0. */
static void print_smaller(const struct plan *plan, int to_stdout, const char *key, uint64_t bytes) {
    char now[TEXT_BYTES], then[TEXT_BYTES];
    if (!bytes) return;
    line(to_stdout, "  smaller", "%10s  instead of %s, both tables with their state: %s", text_of_bytes(then, bytes),
         text_of_bytes(now, plan_table_bytes(plan)), key);
}

/* Returns 1 if training reads some target rows over the link. */
static int cold_targets(const struct plan *plan) {
    int off_gpu = plan->target != PLACE_GPU || (!plan->one_record_target && plan->target_state != PLACE_GPU);
    return plan->gpu_available && plan->hot_rows < plan->rows && off_gpu;
}

static void print_step(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES];
    int both = config->examples_mode == MODE_TRIPLE && config->triples_reciprocal;
    const char *unit = config_is_window(config)                  ? "positions"
                       : both                                    ? "directions of triples"
                       : config->examples_targets != TARGETS_ONE ? "list positions"
                                                                 : config_lines(config);
    if (config->train_update == UPDATE_HOGWILD) {
        line(to_stdout, "a step", "lock-free; %s %s are counted as one", text_of_count(a, plan->batch), unit);
        if (cold_targets(plan))
            line(to_stdout, "  over the link",
                 "%.1f%% of the target rows that it reads, one by one; for text, train.update = batch with train.batch = 65536 and "
                 "optimizer.clip = 30 moves a row once a batch and is no worse",
                 100 * (1 - plan->hot_hits));
        return;
    }
    line(to_stdout, "a step", "%s %s: %s examples, %s pairs", text_of_count(a, plan->batch), unit,
         text_of_count(b, (uint64_t)(plan->batch_blocks + 0.5)), text_of_count(c, (uint64_t)(plan->batch_pairs + 0.5)));
    line(to_stdout, "  distinct rows", "%s targets, %s contexts", text_of_count(a, (uint64_t)(plan->batch_targets + 0.5)),
         text_of_count(b, (uint64_t)(plan->batch_contexts + 0.5)));
    line(to_stdout, "  traffic", "%s of memory%s%s%s", text_of_bytes(a, (uint64_t)plan->memory_bytes),
         plan->gpu_available ? ", " : "", plan->gpu_available ? text_of_bytes(b, (uint64_t)plan->link_bytes) : "",
         plan->gpu_available ? " over the link, both ways" : "");
    if (plan->floor_pairs > 0)
        line(to_stdout, "  at most", "%s pairs/s (a target with one positive is a pair): then %s is busy all the time",
             text_of_rate(d, plan->floor_pairs), plan->floor_link ? "the link" : "the GPU's memory");
    else if (plan->gpu_available)
        line(to_stdout, "  at most", "unknown: this GPU's copies are not measured (plan and bench measure them where it is)");
}

/* Returns the name of a field's type, in at most three words, to be printed after "optimizer state". */
static const char *name_of(const struct record_layout *layout, uint32_t field) {
    int half = layout->field[field].type == VALUE_BFLOAT16;
    if (field == RECORD_WEIGHTS) return half ? "bfloat16" : "float32";
    return half ? " in bfloat16" : " in float32";
}

void planner_print(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    line(to_stdout, "corpus", "%s tokens, %s %s", text_of_count(a, plan->tokens), text_of_count(b, plan->sentences),
         plan->graph ? "walks" : config_lines(config));
    if (*plan->defaults) line(to_stdout, "by size", "%s ('sptx-w2v help keys' has the rule)", plan->defaults);
    const struct record_layout *layout = &plan->layout;
    line(to_stdout, "rows", "%s x %" PRIu32 " %s, %" PRIu32 " %s of optimizer state%s%s", text_of_count(a, plan->rows), plan->dim,
         name_of(layout, RECORD_WEIGHTS), layout->slots, layout->by_row ? "number" : layout->slots == 1 ? "array" : "arrays",
         layout->halves && layout->slots ? name_of(layout, RECORD_STATE) : "", layout->counted ? " and a count" : "");
    if (plan->ranks > 1)
        line(to_stdout, "ranks", "%u share out the columns; what follows is one's of %" PRIu32 " columns, and none has more",
             plan->ranks, plan->columns);
    print_part(plan, to_stdout, "target", plan->target, plan->target_bytes, 0);
    print_part(plan, to_stdout, "target_state", plan->target_state, plan->target_state_bytes, plan->one_record_target);
    print_part(plan, to_stdout, "context", plan->context, plan->context_bytes, 0);
    print_part(plan, to_stdout, "context_state", plan->context_state, plan->context_state_bytes, plan->one_record_context);
    print_smaller(plan, to_stdout, "model.precision = bfloat16", plan->halved_bytes);
    print_smaller(plan, to_stdout, "optimizer.rule = rowwise-adagrad", plan->by_row_bytes);
    print_bytes(to_stdout, "vocabulary", plan->vocab_bytes, "");
    if (plan->draw_bytes) print_bytes(to_stdout, "draw tables", plan->draw_bytes, "negatives, subsampling, a tree of words");
    print_bytes(to_stdout, "work", plan->work_bytes, "batches in flight and threads' scratch");
    if (plan->snapshot_bytes)
        print_bytes(to_stdout, "snapshots", plan->snapshot_bytes, "at most: copies of rows that change while a checkpoint is written");
    print_bytes(to_stdout, plan->graph ? "graph" : "corpus ids", plan->stream_bytes,
                plan->stream_pinned ? "a mapped file, pinned: the GPU reads it over the link"
                                    : "a mapped file, given back where memory is short");
    if (plan->gpu_available) {
        line(to_stdout, "hot rows", "%s of %s, %s on the GPU instead of the host: %.1f%% of the target rows that a step reads",
             text_of_count(a, plan->hot_rows), text_of_count(b, plan->rows), text_of_bytes(c, plan->hot_bytes),
             100 * plan->hot_hits);
        line(to_stdout, "GPU needed", "%10s  of %s", text_of_bytes(a, plan->gpu_needed), text_of_bytes(b, plan->gpu_available));
    }
    line(to_stdout, "memory needed", "%10s  of %s", text_of_bytes(a, plan->host_needed),
         plan->host_available ? text_of_bytes(b, plan->host_available) : "an unknown amount");
    print_bytes(to_stdout, "resident", plan->host_needed - plan->stream_pinned + plan->stream_bytes,
                plan->graph ? "with the graph in memory" : "with the corpus ids in memory");
    if (plan->file_bytes) print_bytes(to_stdout, "files needed", plan->file_bytes, "");
    print_step(plan, config, to_stdout);
    line(to_stdout, "fits", "%s%s", plan->fits ? "yes" : "no: ", plan->advice);
}

/* ---- for machines ---- */

static void json_part(const struct plan *plan, const char *name, enum place place, uint64_t bytes) {
    const char *at = place == PLACE_FILE ? "file" : place == PLACE_GPU ? "gpu" : plan->gpu_available ? "pinned" : "memory";
    printf(", \"%s_place\": \"%s\", \"%s_bytes\": %" PRIu64, name, at, name, bytes);
}

void planner_print_json(const struct plan *plan) {
    static const char *const truth[] = {"false", "true"};
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"tokens", plan->tokens},
                  {"sentences", plan->sentences},
                  {"optimizer_arrays", plan->layout.slots},
                  {"counted", plan->layout.counted},
                  {"table_gpu_bytes", plan->gpu_bytes},
                  {"table_hot_bytes", plan->hot_bytes},
                  {"table_pinned_bytes", plan->pinned_bytes},
                  {"table_memory_bytes", plan->plain_bytes},
                  {"table_file_bytes", plan->file_bytes},
                  {"halved_bytes", plan->halved_bytes},
                  {"by_row_bytes", plan->by_row_bytes},
                  {"work_bytes", plan->work_bytes},
                  {"vocabulary_bytes", plan->vocab_bytes},
                  {"draw_bytes", plan->draw_bytes},
                  {"snapshot_bytes", plan->snapshot_bytes},
                  {"stream_bytes", plan->stream_bytes},
                  {"stream_pinned_bytes", plan->stream_pinned},
                  {"host_needed", plan->host_needed},
                  {"host_available", plan->host_available},
                  {"gpu_needed", plan->gpu_needed},
                  {"gpu_available", plan->gpu_available},
                  {"hot_rows", plan->hot_rows},
                  {"batch", plan->batch},
                  {"ranks", plan->ranks},
                  {"columns", plan->columns}};
    printf("{\"rows\": %" PRIu64 ", \"dim\": %" PRIu32, plan->rows, plan->dim);
    json_part(plan, "target", plan->target, plan->target_bytes);
    json_part(plan, "target_state", plan->target_state, plan->target_state_bytes);
    json_part(plan, "context", plan->context, plan->context_bytes);
    json_part(plan, "context_state", plan->context_state, plan->context_state_bytes);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) printf(", \"%s\": %" PRIu64, counts[i].name, counts[i].value);
    printf(", \"hot_hits\": %.6g, \"batch_examples\": %.6g, \"batch_pairs\": %.6g, \"batch_targets\": %.6g, "
           "\"batch_contexts\": %.6g, \"link_bytes\": %.6g, \"memory_bytes\": %.6g, \"floor_pairs\": %.6g",
           plan->hot_hits, plan->batch_blocks, plan->batch_pairs, plan->batch_targets, plan->batch_contexts,
           plan->link_bytes, plan->memory_bytes, plan->floor_pairs);
    printf(", \"by_size\": \"%s\"", plan->defaults);
    printf(", \"fits_host\": %s, \"fits_gpu\": %s, \"fits\": %s, \"advice\": \"%s\"}\n", truth[plan->fits_host],
           truth[plan->fits_gpu], truth[plan->fits], plan->advice);
}
