#include "page_groups.h"

#include "base/memory.h"
#include "base/report.h"
#include "clusters.h"
#include "labels.h"
#include "page_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void page_groups_release(struct page_groups *groups) {
    free(groups->of);
    names_release(&groups->labels);
    *groups = (struct page_groups){.count = 0};
}

/* ---- labels ---- */

/* The labels of all rows of the model, while the file is read. */
struct labelling {
    struct page_groups *groups;
    const struct model *model;
    uint32_t *label; /* [rows of the model] number of the row's label + 1; 0: no label */
};

/* Stores a row's label, unless the row has one already. */
static int take_label(void *user, const struct token *name, const struct token *label) {
    struct labelling *l = user;
    int64_t row = vocab_find(&l->model->vocab, name->text, name->length);
    if (row < 0 || l->label[row]) return 0;
    int64_t number = names_add(&l->groups->labels, label->text, label->length);
    if (number < 0) return -1;
    l->label[row] = (uint32_t)number + 1;
    return 0;
}

struct counted {
    uint64_t rows;
    uint32_t label;
};

static int by_rows(const void *a, const void *b) {
    const struct counted *x = a, *y = b;
    if (x->rows != y->rows) return x->rows < y->rows ? 1 : -1;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* Makes groups of the labels that are most frequent on the map. If there are too many labels, the last group contains all
 * others. */
static int choose_labels(struct page_groups *groups, const uint32_t *labels, uint64_t count, const char *path) {
    uint64_t all = groups->labels.words.size, met = 0;
    struct counted *counted = mem_alloc(all + 1, sizeof *counted, "labels");
    uint8_t *group = mem_alloc(all + 1, sizeof *group, "labels");
    int result = counted && group ? 0 : -1;
    for (uint64_t i = 0; !result && i < all; i++) counted[i] = (struct counted){0, (uint32_t)i};
    for (uint64_t i = 0; !result && i < count; i++)
        if (labels[i]) counted[labels[i] - 1].rows++;
    if (!result && all) qsort(counted, all, sizeof *counted, by_rows);
    while (!result && met < all && counted[met].rows) met++;
    if (!result && !met) result = fail("'%s' has no label of any of the %" PRIu64 " rows of the map", path, count);
    groups->count = met < PAGE_GROUPS ? (uint32_t)met : PAGE_GROUPS;
    groups->others = met > PAGE_GROUPS ? met - PAGE_GROUPS + 1 : 0;
    for (uint64_t i = 0; !result && i < met; i++) {
        group[counted[i].label] = (uint8_t)(i < PAGE_GROUPS ? i : PAGE_GROUPS - 1);
        if (i < PAGE_GROUPS) groups->shown[i] = counted[i].label;
    }
    for (uint64_t i = 0; !result && i < count; i++) groups->of[i] = labels[i] ? group[labels[i] - 1] : PAGE_NO_GROUP;
    free(counted);
    free(group);
    return result;
}

static int group_by_labels(struct page_groups *groups, const struct model *model, const uint32_t *rows, uint64_t count,
                           const char *path) {
    struct labelling l = {groups, model, mem_zalloc(model->rows, sizeof *l.label, "labels")};
    uint32_t *labels = mem_alloc(count, sizeof *labels, "labels");
    int result = l.label && labels ? labels_read(path, take_label, &l) : -1;
    for (uint64_t i = 0; !result && i < count; i++) labels[i] = l.label[rows[i]];
    if (!result) result = choose_labels(groups, labels, count, path);
    free(l.label);
    free(labels);
    return result;
}

/* ---- clusters ---- */

static int group_by_clusters(struct page_groups *groups, const struct model *model, enum model_view view,
                             const uint32_t *rows, uint64_t count) {
    uint64_t most = count / PAGE_CLUSTER_ROWS < PAGE_GROUPS ? count / PAGE_CLUSTER_ROWS : PAGE_GROUPS;
    float *unit = model_matrix_of(model, view, rows, count, 1);
    uint32_t *cluster = mem_alloc(count, sizeof *cluster, "the groups of a map");
    const struct clusters_request request = {
        .rows = unit, .count = count, .dim = model->dim, .most = most ? (uint32_t)most : 1, .tries = 4, .rounds = 30};
    int result = unit && cluster ? clusters_find(cluster, &groups->count, &request) : -1;
    for (uint64_t i = 0; !result && i < count; i++) groups->of[i] = (uint8_t)cluster[i];
    free(cluster);
    free(unit);
    return result;
}

int page_groups_find(struct page_groups *groups, const struct model *model, enum model_view view, const uint32_t *rows,
                     uint64_t count, const char *path) {
    groups->of = mem_alloc(count, sizeof *groups->of, "the groups of a map");
    if (!groups->of) return -1;
    return path ? group_by_labels(groups, model, rows, count, path) : group_by_clusters(groups, model, view, rows, count);
}

/* ---- as JSON ---- */

static void print_name(struct json *json, const struct page_groups *groups, uint32_t group) {
    uint64_t length;
    const char *name = words_get(&groups->labels.words, groups->shown[group], &length);
    char others[48];
    if (group + 1 == groups->count && groups->others) {
        length = (uint64_t)snprintf(others, sizeof others, "%" PRIu64 " other labels", groups->others);
        name = others;
    }
    page_print_name(json, name, length);
}

void page_groups_print(struct json *json, const struct page_groups *groups, uint64_t count) {
    int labels = groups->labels.words.size > 0;
    json_print(json, ",\"groups\":{\"by\":\"%s\",\"count\":%u,\"names\":[", labels ? "labels" : "clusters", groups->count);
    for (uint32_t group = 0; labels && group < groups->count; group++) {
        if (group) json_print(json, ",");
        print_name(json, groups, group);
    }
    json_print(json, "],\"of\":");
    json_base64(json, groups->of, count);
    json_print(json, "}");
}
