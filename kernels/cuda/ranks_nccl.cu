/* ranks_nccl: sums over ranks by NCCL. The library is loaded when it is first needed, so a program for one GPU runs without it.
 * Each rank gets its share of the values from all ranks, sums them in rank order, and sends the sums to all ranks. This moves as
 * many bytes as NCCL's all-reduce, whose order of summing depends on the network. */
#include "ranks_exchange.cuh"

extern "C" {
#include "kernels/ranks.h"
}

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The part of nccl.h that this file uses (NCCL 2.7 and later). Few machines have the header. */
typedef struct ncclComm *nccl_group;
struct nccl_id {
    char bytes[128];
};
enum { NCCL_SUCCESS = 0, NCCL_FLOAT = 7 };

struct calls {
    int (*unique)(struct nccl_id *id);
    int (*init)(nccl_group *group, int ranks, struct nccl_id id, int number);
    int (*abort)(nccl_group group);
    int (*send)(const void *data, size_t count, int type, int to, nccl_group group, cudaStream_t stream);
    int (*receive)(void *data, size_t count, int type, int from, nccl_group group, cudaStream_t stream);
    int (*begin)(void);
    int (*end)(void);
    int (*gather)(const void *own, void *all, size_t count, int type, nccl_group group, cudaStream_t stream);
    const char *(*text)(int error);
};

struct nccl {
    void *library;
    struct calls calls;
    nccl_group group;
    unsigned ranks, number;
};

/* ---- the library ---- */

template <typename Call> static int find(void *library, const char *name, Call *call) {
    *call = (Call)dlsym(library, name);
    return *call != NULL;
}

static int find_calls(void *library, struct calls *c) {
    return find(library, "ncclGetUniqueId", &c->unique) && find(library, "ncclCommInitRank", &c->init) &&
           find(library, "ncclCommAbort", &c->abort) && find(library, "ncclSend", &c->send) &&
           find(library, "ncclRecv", &c->receive) && find(library, "ncclGroupStart", &c->begin) &&
           find(library, "ncclGroupEnd", &c->end) && find(library, "ncclAllGather", &c->gather) &&
           find(library, "ncclGetErrorString", &c->text);
}

static int load(struct nccl *nccl) {
    nccl->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    return nccl->library && find_calls(nccl->library, &nccl->calls);
}

/* Joins all ranks to one group of NCCL. NCCL prints to stderr only if NCCL_DEBUG is set. */
static int join(struct nccl *nccl, struct ranks *ranks) {
    struct nccl_id id;
    int failed = ranks_first(ranks) && nccl->calls.unique(&id) != NCCL_SUCCESS;
    ranks_share(ranks, &id, sizeof id);
    if (ranks_any(ranks, failed ? 1 : 0)) return 0;
    failed = nccl->calls.init(&nccl->group, (int)ranks->count, id, (int)ranks->number) != NCCL_SUCCESS;
    if (failed) nccl->group = NULL;
    return !ranks_any(ranks, failed ? 1 : 0);
}

void nccl_open(struct nccl **out, struct ranks *ranks, char *why, size_t capacity) {
    struct nccl *nccl = (struct nccl *)calloc(1, sizeof *nccl);
    int missing = !nccl || !load(nccl);
    *out = NULL;
    if (ranks_any(ranks, missing ? 1 : 0)) snprintf(why, capacity, "not every rank finds libnccl.so.2");
    else if (!join(nccl, ranks)) snprintf(why, capacity, "NCCL does not connect these ranks (NCCL_DEBUG=INFO says more)");
    else *out = nccl;
    if (*out) {
        nccl->ranks = ranks->count;
        nccl->number = ranks->number;
        return;
    }
    nccl_close(nccl);
}

void nccl_close(struct nccl *nccl) {
    if (!nccl) return;
    if (nccl->group) nccl->calls.abort(nccl->group);
    if (nccl->library) dlclose(nccl->library);
    free(nccl);
}

/* ---- sums ---- */

static uint64_t share_of(uint64_t count, unsigned ranks) {
    return (count + ranks - 1) / ranks;
}
uint64_t nccl_padded(uint64_t count, unsigned ranks) {
    return count + ranks - 1;
}

/* Sums this rank's share of the values over all ranks. own: this rank's values of the share, replaced by the sums; others:
 * [ranks x share] the values that the other ranks have sent. */
static __global__ void add_shares(float *own, const float *others, uint64_t share, uint32_t ranks, uint32_t number) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= share) return;
    float sum = number ? others[i] : own[i];
    for (uint32_t r = 1; r < ranks; r++) sum += r == number ? own[i] : others[r * share + i];
    own[i] = sum;
}

static int spread(struct nccl *n, const float *parts, float *work, uint64_t share, cudaStream_t stream) {
    int failed = n->calls.begin();
    for (unsigned r = 0; r < n->ranks && failed == NCCL_SUCCESS; r++) {
        if (r == n->number) continue;
        failed = n->calls.send(parts + r * share, share, NCCL_FLOAT, (int)r, n->group, stream);
        if (failed == NCCL_SUCCESS) failed = n->calls.receive(work + r * share, share, NCCL_FLOAT, (int)r, n->group, stream);
    }
    if (failed == NCCL_SUCCESS) failed = n->calls.end();
    return failed == NCCL_SUCCESS ? 0 : fail("NCCL: %s", n->calls.text(failed));
}

int nccl_sum(struct nccl *n, float *parts, float *work, uint64_t count, cudaStream_t stream) {
    uint64_t share = share_of(count, n->ranks);
    float *own = parts + n->number * share;
    if (spread(n, parts, work, share, stream)) return -1;
    add_shares<<<blocks_for(share, 256), 256, 0, stream>>>(own, work, share, n->ranks, n->number);
    CK_LAUNCH("add_shares");
    int failed = n->calls.gather(own, parts, share, NCCL_FLOAT, n->group, stream);
    return failed == NCCL_SUCCESS ? 0 : fail("NCCL: %s", n->calls.text(failed));
}
