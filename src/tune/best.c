/* best: writes the configuration file with the best keys: the user's keys, the best trial's, and all trials as comments. */
#include "tune_inner.h"

#include "base/file.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLE_LINES = 15 };
static const char first_words[] = "# Found by sptx-w2v tune";

int best_check(const char *path) {
    struct file_writer writer;
    char head[sizeof first_words] = "";
    int there = file_head(path, head, sizeof head);
    if (there < 0) return -1;
    if (there && strcmp(head, first_words)) return fail("'%s' is there, and tune has not written it: --out=FILE writes elsewhere", path);
    int result = file_writer_open(&writer, path);
    file_abandon(&writer);
    return result;
}

static int print_head(const struct tuning *t, const struct tune_answer *a, struct file_writer *w) {
    char date[32] = "";
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local)) strftime(date, sizeof date, "%Y-%m-%d", &local);
    if (file_print(w, "%s on %s, the best of %" PRIu64 " trials: held-out %s %.4f", first_words, date, a->trials,
                   a->measure, a->shown))
        return -1;
    if (a->own == a->own && file_print(w, ", the keys as they were %.4f", a->own)) return -1;
    return file_print(w, ".\n# It was found on most of the data; train on all of it:  sptx-w2v train %s\n#\n", t->request->out);
}

static int print_table(const struct tuning *t, struct file_writer *w) {
    uint64_t count;
    struct tune_place *place = tune_places(t, &count);
    int result = place ? file_print(w, "#   %-10s  %-7s  %-6s  trial  keys\n",
                                    t->measure == TUNE_LOSS ? "loss" : "score", "behind", "epochs")
                       : -1;
    for (uint64_t i = 0; !result && i < count && i < TABLE_LINES; i++) {
        char keys[SPACE_TEXT];
        space_text(&t->space, &t->points[place[i].trial], keys);
        result = file_print(w, "#   %-10.4f  %-7.4f  %6" PRIu64 "  %5" PRIu64 "  %s\n", tune_shown(t, place[i].score),
                            place[0].score - place[i].score, trial_epochs(t, place[i].rung), place[i].trial, keys);
    }
    free(place);
    return result;
}

static int set_epochs(const struct tuning *t, const struct tune_answer *a, struct config *config) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, a->epochs);
    return tune_finds_epochs(t) || a->diverged ? config_set(config, "train", "epochs", text, "tune") : 0;
}

/* Prints the keys that are set, section by section. */
static int print_keys(const struct config *config, struct file_writer *w) {
    char before[64] = "", section[64];
    const char *name, *choices;
    for (int i = 0; (name = config_key_at(i, &choices)); i++) {
        size_t length = strcspn(name, ".");
        snprintf(section, sizeof section, "%.*s", (int)length, name);
        if (!config_is_given(config, section, name + length + 1)) continue;
        char *value = config_value(config, section, name + length + 1);
        int result = !value || (strcmp(section, before) && file_print(w, "\n[%s]\n", section)) ||
                     file_print(w, "%s = %s\n", name + length + 1, value);
        free(value);
        if (result) return -1;
        strcpy(before, section);
    }
    return 0;
}

int best_write(const struct tuning *t, const struct tune_answer *answer) {
    struct config config;
    struct file_writer writer = {.path = NULL};
    int result = trial_config(t, &t->points[answer->best], &config) || set_epochs(t, answer, &config) ||
                         file_writer_open(&writer, t->request->out) ? -1 : 0;
    if (!result)
        result = print_head(t, answer, &writer) || print_table(t, &writer) || print_keys(&config, &writer) || file_commit(&writer)
                     ? -1 : 0;
    file_abandon(&writer);
    config_release(&config);
    return result;
}
