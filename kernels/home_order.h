/* home_order: by which way a batch's rows go home from the GPU to a store in host memory, so that the rows of one store
 * always land in the order of their batches. The rule alone; it moves nothing.
 *
 *   direct   the GPU writes each row to its place in pinned memory
 *   staged   the GPU copies all rows, end to end, into pinned staging; when the batch is finished, the host's threads put
 *            them in their places. A file's rows have no other way
 *
 * Both ways begin on one stream of the GPU, in the order of the batches, and batches are finished in their order. What
 * lands when, of an older batch and a newer one that hold the same row:
 *
 *   older    newer    the row's last value
 *   direct   direct   the newer's: one stream
 *   direct   staged   the newer's: its copy to staging follows the older's rows on the stream
 *   staged   staged   the newer's: finished in order
 *   staged   direct   the OLDER's: the GPU has written the newer row while the older one waits in staging
 *
 * So a store whose rows go home by staging goes on with it until none of its staged batches is in flight.
 */
#ifndef SPTX_HOME_ORDER_H
#define SPTX_HOME_ORDER_H

#include "portable.h"

/* The host answers 25 to 48 M random rows a second, whichever way they go. Staging leaves these look-ups to the gathers,
 * but has a fixed cost: worth it for a large batch, where the host has threads to spare. Rows of more than HOME_STAGING_STRIDE
 * bytes take the host's threads longer than the link. */
enum { HOME_STAGING_THREADS = 8, HOME_STAGING_BYTES = 8 << 20, HOME_STAGING_STRIDE = 1024 };

enum home_way {
    HOME_NOTHING, /* the batch is for its loss only, or has no rows of the store */
    HOME_DIRECT,
    HOME_STAGED
};

/* What a batch would bring home to one store. */
struct home_load {
    uint64_t bytes;   /* at most: rows that the batch may hold x the store's stride */
    uint64_t stride;  /* of the store, bytes */
    unsigned threads; /* of the host */
    int in_file;      /* the store is a file */
    int one_target;   /* every block has one target: nearly as many distinct rows as `bytes` says */
};

/* The faster way. For windows `bytes` is about ten times too high, and staging that many would cost more than it saves. */
FN enum home_way home_wanted(const struct home_load *load) {
    if (load->bytes == 0) return HOME_NOTHING;
    if (load->in_file) return HOME_STAGED;
    if (load->threads < HOME_STAGING_THREADS || load->bytes < HOME_STAGING_BYTES) return HOME_DIRECT;
    if (load->stride > HOME_STAGING_STRIDE) return HOME_DIRECT;
    return load->one_target ? HOME_STAGED : HOME_DIRECT;
}

/* The way of the store's next batch, while batches go home by the `count` ways of `in_flight`. */
FN enum home_way home_way(enum home_way wanted, const enum home_way *in_flight, unsigned count) {
    if (wanted == HOME_NOTHING) return HOME_NOTHING;
    for (unsigned i = 0; i < count; i++)
        if (in_flight[i] == HOME_STAGED) return HOME_STAGED;
    return wanted;
}

#endif
