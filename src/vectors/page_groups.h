/* page_groups: the groups by which a page's map is coloured: the labels of a file, or else clusters of the rows shown.
 */
#ifndef SPTX_PAGE_GROUPS_H
#define SPTX_PAGE_GROUPS_H

#include "base/json.h"
#include "names.h"

enum {
    PAGE_GROUPS = 12,          /* most groups on a map: the style sheet has this number of colours */
    PAGE_NO_GROUP = UINT8_MAX, /* group of a row that has no label */
    PAGE_CLUSTER_ROWS = 10     /* least mean number of rows of a cluster */
};

struct page_groups {
    uint8_t *of; /* [rows of the map] group number, or PAGE_NO_GROUP */
    uint32_t count;
    struct names labels;         /* labels of the file, by first occurrence; empty: the groups are clusters */
    uint32_t shown[PAGE_GROUPS]; /* number of each group's label; the most frequent label is first */
    uint64_t others;             /* number of labels in the last group, if there are more labels than groups; else 0 */
};

/* Groups rows[count] of a view by their first label in the file `path`, or by clusters if `path` is NULL. Returns 0, or -1 after
 * fail(); the caller releases in either case. */
int page_groups_find(struct page_groups *groups, const struct model *model, enum model_view view, const uint32_t *rows,
                     uint64_t count, const char *path);

/* Appends the key "groups": {"by": "labels" or "clusters", "names": [..], "of": uint8 group of each row, as base64}. Clusters
 * have no names: the page names them by their most frequent rows. */
void page_groups_print(struct json *json, const struct page_groups *groups, uint64_t count);

void page_groups_release(struct page_groups *groups); /* harmless on a zeroed one */

#endif
