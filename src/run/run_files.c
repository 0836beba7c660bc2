#include "run_files.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "checkpoints.h"
#include "rows/table.h"
#include "state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Indexed by enum run_file. Files are removed in this order: vocab.tsv before config.ini, which shows that a run has written
 * vocab.tsv. */
const char *const run_file_names[RUN_FILES] = {
    [RUN_LATEST] = "latest", [RUN_METRICS] = "metrics.jsonl", [RUN_VOCAB] = "vocab.tsv", [RUN_CONFIG] = "config.ini"};

static const char config_line[] = "; written by sptx-w2v for the run in this directory; fingerprint of its vocab.tsv: ";
static const char metrics_line[] = "{\"step\": ", latest_line[] = "checkpoint-";
enum { HEAD = 256 };

/* ---- whose they are ---- */

/* Reads the fingerprint of vocab.tsv from config.ini. Returns 1; 0 if there is no config.ini that a run has written; -1 after
 * fail(). */
static int named_fingerprint(const char *run, uint64_t *fingerprint) {
    char head[HEAD] = "", *path = file_join(run, run_file_names[RUN_CONFIG]);
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (kind != 1) return kind < 0 ? -1 : 0;
    if (strncmp(head, config_line, sizeof config_line - 1)) return 0;
    return sscanf(head + sizeof config_line - 1, "%16" SCNx64, fingerprint) == 1;
}

static int owns_config(const char *run, const char *head) {
    return !strncmp(head, config_line, sizeof config_line - 1);
}

static int owns_metrics(const char *run, const char *head) {
    return !*head || !strncmp(head, metrics_line, sizeof metrics_line - 1);
}

static int owns_latest(const char *run, const char *head) {
    size_t digits;
    if (!*head) return 1;
    if (strncmp(head, latest_line, sizeof latest_line - 1)) return 0;
    head += sizeof latest_line - 1;
    digits = strspn(head, "0123456789");
    return digits && (!head[digits] || !strcmp(head + digits, "\n"));
}

/* Returns 1 if a checkpoint was trained with the vocabulary that has this fingerprint. Checkpoints that cannot be read are
 * skipped. */
static int is_trained_with(const char *run, uint64_t fingerprint) {
    struct checkpoints all;
    struct run_state state;
    int result = checkpoints_find(run, &all), failed_before = report_exit_code(), broken;
    for (uint64_t i = 0; i < all.count && !result; i++) {
        if (!all.list[i].own || all.list[i].kind == CHECKPOINT_PARTIAL) continue;
        if (!state_read(all.list[i].path, &state, &broken)) result = state.corpus.vocab == fingerprint;
        else if (!failed_before) report_clear();
    }
    checkpoints_release(&all);
    return result;
}

static int owns_vocab(const char *run, const char *head) {
    char *path = file_join(run, run_file_names[RUN_VOCAB]);
    struct file_map map;
    uint64_t named, seen;
    int result = path ? file_map_open(&map, path) : -1;
    free(path);
    if (result) return -1;
    seen = XXH3_64bits(map.data, map.size);
    file_map_close(&map);
    result = named_fingerprint(run, &named);
    if (result < 0 || (result && named == seen)) return result;
    return is_trained_with(run, seen);
}

static int (*const owns[RUN_FILES])(const char *run, const char *head) = {
    [RUN_LATEST] = owns_latest, [RUN_METRICS] = owns_metrics, [RUN_VOCAB] = owns_vocab, [RUN_CONFIG] = owns_config};

int run_file_owner(const char *run, enum run_file file) {
    char head[HEAD] = "", *path = file_join(run, run_file_names[file]);
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (kind != 1) return kind < 0 ? -1 : kind == 0 ? RUN_FILE_ABSENT : RUN_FILE_FOREIGN;
    int own = owns[file](run, head);
    return own < 0 ? -1 : own ? RUN_FILE_OWN : RUN_FILE_FOREIGN;
}

int run_files_check(const char *run, int resumed) {
    for (int file = 0; file < RUN_FILES; file++) {
        int owner = run_file_owner(run, (enum run_file)file);
        if (owner < 0) return -1;
        if (owner == RUN_FILE_FOREIGN && !(resumed && file == RUN_CONFIG))
            return fail("'%s/%s' is in the way: a run writes a file of this name, and this one is not its own; move it away, "
                        "or choose another run.dir",
                        run, run_file_names[file]);
    }
    return 0;
}

/* ---- removing and writing ---- */

int run_files_remove(const char *run) {
    int result = 0;
    for (int file = 0; file < RUN_FILES && !result; file++) {
        int owner = run_file_owner(run, (enum run_file)file);
        if (owner < 0 || (owner == RUN_FILE_OWN && file_remove_in(run, run_file_names[file]))) result = -1;
    }
    return result;
}

int run_file_is_piece(const char *name) {
    for (int file = 0; file < RUN_FILES; file++)
        if (file_is_partial(name, run_file_names[file])) return 1;
    return table_left(name);
}

int run_files_remove_pieces(const char *run) {
    char **names;
    int64_t count = directory_list(run, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (run_file_is_piece(names[i])) result = file_remove_in(run, names[i]);
    mem_free_texts(names, count);
    return result;
}

static int write_config(const char *path, const struct config *config, uint64_t fingerprint) {
    struct file_writer writer;
    if (file_writer_open(&writer, path)) return -1;
    if (!file_print(&writer, "%s%016" PRIx64 "\n", config_line, fingerprint) && !config_write(config, 0, &writer))
        return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

/* config.ini is written first, since it shows that a run has written vocab.tsv. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab) {
    char *config_path = file_join(run, run_file_names[RUN_CONFIG]), *vocab_path = file_join(run, run_file_names[RUN_VOCAB]);
    uint64_t fingerprint = vocab_fingerprint(vocab);
    int owner = run_file_owner(run, RUN_CONFIG), result = -1;
    if (!config_path || !vocab_path || owner < 0) goto out;
    if (owner != RUN_FILE_FOREIGN && write_config(config_path, config, fingerprint)) goto out;
    owner = run_file_owner(run, RUN_VOCAB);
    result = owner < 0 || (owner == RUN_FILE_ABSENT && vocab_write(vocab, vocab_path)) ? -1 : 0;
out:
    free(config_path);
    free(vocab_path);
    return result;
}
