/* page_groups: the groups by which a page's map is coloured: the labels of a file, or else clusters of the rows shown.
 */
#ifndef SPTX_PAGE_GROUPS_H
#define SPTX_PAGE_GROUPS_H

#include "base/json.h"
#include "names.h"

enum {
    PAGE_GROUPS = 12,          /* most groups on a map: the style sheet has this many colours */
    PAGE_NO_GROUP = UINT8_MAX, /* number in `of` of a row without a label */
    PAGE_CLUSTER_ROWS = 10     /* least average number of rows of a cluster */
};

struct page_groups {
    uint8_t *of; /* [rows of the map] number of the row's group, or PAGE_NO_GROUP */
    uint32_t count;
    struct names labels;         /* labels in the file, in the order of their first occurrence; empty: the groups are clusters */
    uint32_t shown[PAGE_GROUPS]; /* by group: the number of its label; the first group has the most frequent label */
    uint64_t others;             /* if there are more labels than groups: the number of labels that share the last group;
                                  * otherwise 0 */
};

/* Groups rows[count] of a view by their first label in the file `path`, or by clusters if `path` is NULL. Returns 0, or -1 after
 * fail(); the caller releases in either case. */
int page_groups_find(struct page_groups *groups, const struct model *model, enum model_view view, const uint32_t *rows,
                     uint64_t count, const char *path);

/* Appends the key "groups": {"by": "labels" or "clusters", "names": [..], "of": uint8 group of each row, as base64}. Clusters
 * have no names: the page names them by their most frequent rows. */
void page_groups_print(struct json *json, const struct page_groups *groups, uint64_t count);

void page_groups_release(struct page_groups *groups); /* may be called on a struct of zeros */

#endif
