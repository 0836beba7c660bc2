/* page_groups: the groups by which a page's map is coloured: the labels of a file, or else clusters of the rows shown.
 */
#ifndef SPTX_PAGE_GROUPS_H
#define SPTX_PAGE_GROUPS_H

#include "base/json.h"
#include "names.h"

enum {
    PAGE_GROUPS = 12,          /* groups of a map at most, as many as the style sheet has colours */
    PAGE_NO_GROUP = UINT8_MAX, /* of a row without a label */
    PAGE_CLUSTER_ROWS = 10     /* rows of a map for each cluster, at least */
};

struct page_groups {
    uint8_t *of; /* [rows of the map] PAGE_NO_GROUP, or the number of a group */
    uint32_t count;
    struct names labels;         /* of the file, as they were met; none: the groups are clusters */
    uint32_t shown[PAGE_GROUPS]; /* the label of each group; labels of most rows come first */
    uint64_t others;             /* labels that share the last group, since there are too many; 0: none do */
};

/* Groups rows[count] of a view by their first label in the file, or, where `path` is NULL, by clusters. Returns 0, or
 * -1 after fail(); the caller releases in either case. */
int page_groups_find(struct page_groups *groups, const struct model *model, enum model_view view, const uint32_t *rows,
                     uint64_t count, const char *path);

/* Appends a key of an object: "groups": {"by": "labels" or "clusters", "names": [..], "of": uint8 of each row, as
 * base64}. Clusters have no names: the page calls them by their most frequent rows. */
void page_groups_print(struct json *json, const struct page_groups *groups, uint64_t count);

void page_groups_release(struct page_groups *groups); /* harmless on a zeroed one */

#endif
