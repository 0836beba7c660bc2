/* link_sets: the links by which vectors are judged: links that were held out of a graph, and links on which the run was trained.
 * They are read from files, from memory, or from the run's graph. Nodes are numbered, and each has a sorted list of neighbours. */
#ifndef SPTX_LINK_SETS_H
#define SPTX_LINK_SETS_H

#include "evaluate.h"
#include "names.h"

struct link {
    uint32_t from, to;
};
struct links {
    struct link *link;
    uint64_t count, capacity;
    uint64_t unknown; /* number of links that are left out because the run does not know one of their nodes */
};

struct link_sets {
    const struct model *model;
    const struct links_request *request;
    int directed;
    struct names names;   /* the known nodes of both files, with their rows; empty if there is no file of training links: a
                           * node's number is then its row */
    struct names unknown; /* the nodes in the files that the run does not know */
    struct links known, held_out;
    uint64_t nodes;
    uint64_t trained; /* number of held-out links that are left out because they are training links */
    uint32_t *rows;   /* [nodes] row of each node; NULL: a node's number is its row */
    uint64_t *starts; /* [nodes + 1] neighbours of node i: others[starts[i]] .. others[starts[i + 1] - 1] */
    uint32_t *others; /* the neighbours of each node by all links, rising; a link that occurs twice repeats a neighbour */
};

/* Reads the links of a request, and removes training links from the held-out ones. Returns 0; -1 after fail(), also if a file
 * looks like a file of labels, or if most held-out links are training links. The caller releases the sets in both cases. */
int link_sets_read(struct link_sets *sets, const struct model *model, const struct links_request *request, struct pool *pool);
void link_sets_release(struct link_sets *sets);

int links_add(struct links *links, uint32_t from, uint32_t to);

/* Returns 1 if a link leads from `from` to `to`. An undirected link leads both ways. */
int link_sets_linked(const struct link_sets *sets, uint32_t from, uint32_t to);

#endif
