/* The work of an operation on a stream: moves the data, at once or at each replay of the graph it was captured in. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "reduce.h"

/* What the stream's next synchronisation returns: the AI CPU gave up, as on hardware. */
enum { RT_AICPU_EXCEPTION = 507018, CHUNK_BYTES = 1 << 18 };

typedef struct {
    comm *comm;
    hcclOp op;
    uint64_t *counts; /* what op's arrays point into */
    HcclSendRecvItem *items;
} work;

/* Both ends of a message must agree on this. */
static uint32_t whatOf(const hcclOp *op) {
    uint32_t kind = op->kind == OP_RECV || op->kind == OP_BATCH_SEND_RECV ? OP_SEND : (uint32_t)op->kind;
    if (kind == OP_SEND) {
        return kind; /* types may differ as long as the bytes are the same */
    }
    return kind | (uint32_t)op->type << 8 | (uint32_t)op->reduce << 16;
}

static HcclResult exchangeAll(const work *w, leg *sends, uint32_t nSends, leg *receives, uint32_t nReceives) {
    return transportExchange(w->comm->link, whatOf(&w->op), sends, nSends, receives, nReceives, w->comm->execMs);
}

static uint8_t *at(const void *base, uint64_t elements, size_t size) {
    return (uint8_t *)(uintptr_t)base + elements * size;
}

/* A piece of every rank's contribution, gathered at whoever reduces it and reduced in the order of the ranks, so that
 * all get the same bits. */
typedef struct {
    const uint8_t *mine;  /* of this rank, for the piece that it reduces itself */
    uint8_t *into;
    uint64_t count;
    uint8_t *gathered;    /* the pieces of all ranks, count elements each */
} piece;

static void reducePiece(const work *w, const piece *p) {
    const comm *c = w->comm;
    uint64_t bytes = p->count * dtypeSize(w->op.type);
    memcpy(p->gathered + c->rank * bytes, p->mine, bytes);
    for (uint32_t rank = 1; rank < c->ranks; rank++) {
        reduceInto(p->gathered, p->gathered + rank * bytes, p->count, w->op.type, w->op.reduce);
    }
    memcpy(p->into, p->gathered, bytes);
}

/* Every rank sends [from, from + count) of sendFor(peer) to each reducing peer; each reducing rank gathers. */
static HcclResult reduceRound(const work *w, const uint64_t *sendAt, const uint64_t *sendCounts, uint64_t recvCount,
                              bool reducesHere, uint64_t from, uint64_t most, uint8_t *gathered, leg *legs) {
    const comm *c = w->comm;
    size_t size = dtypeSize(w->op.type);
    uint32_t nSends = 0;
    uint32_t nReceives = 0;
    leg *receives = legs + c->ranks;
    uint64_t mine = recvCount > from ? recvCount - from : 0;
    mine = reducesHere ? (mine < most ? mine : most) : 0;
    for (uint32_t peer = 0; peer < c->ranks; peer++) {
        uint64_t theirs = sendCounts[peer] > from ? sendCounts[peer] - from : 0;
        theirs = theirs < most ? theirs : most;
        if (peer != c->rank && theirs != 0) {
            legs[nSends++] =
                (leg){.peer = peer, .data = at(w->op.send, sendAt[peer] + from, size), .bytes = theirs * size};
        }
        if (peer != c->rank && mine != 0) {
            receives[nReceives++] = (leg){.peer = peer, .data = gathered + peer * mine * size, .bytes = mine * size};
        }
    }
    HcclResult result = exchangeAll(w, legs, nSends, receives, nReceives);
    if (result == HCCL_SUCCESS && mine != 0) {
        piece p = {.mine = at(w->op.send, sendAt[c->rank] + from, size),
                   .into = at(w->op.recv, from, size),
                   .count = mine,
                   .gathered = gathered};
        reducePiece(w, &p);
    }
    return result;
}

static uint64_t largest(const uint64_t *counts, uint32_t n) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    return most;
}

/* AllReduce, Reduce and ReduceScatter(V) differ in who reduces which part of the send buffer only. */
static HcclResult runReduce(const work *w) {
    const comm *c = w->comm;
    const hcclOp *op = &w->op;
    uint64_t *sendAt = calloc(2 * (size_t)c->ranks, sizeof *sendAt);
    leg *legs = calloc(2 * (size_t)c->ranks, sizeof *legs);
    uint8_t *gathered = malloc((size_t)c->ranks * CHUNK_BYTES);
    HcclResult result = HCCL_E_MEMORY;
    if (sendAt != NULL && legs != NULL && gathered != NULL) {
        uint64_t *counts = sendAt + c->ranks;
        bool scatters = op->kind == OP_REDUCE_SCATTER || op->kind == OP_REDUCE_SCATTER_V;
        for (uint32_t rank = 0; rank < c->ranks; rank++) {
            bool receives = op->kind != OP_REDUCE || rank == op->root;
            counts[rank] = op->sendCounts != NULL ? op->sendCounts[rank] : receives ? op->count : 0;
            sendAt[rank] = op->sendAt != NULL ? op->sendAt[rank] : scatters ? rank * op->count : 0;
        }
        uint64_t chunk = CHUNK_BYTES / dtypeSize(op->type);
        uint64_t total = largest(counts, c->ranks);
        result = HCCL_SUCCESS;
        for (uint64_t from = 0; from < total && result == HCCL_SUCCESS; from += chunk) {
            result = reduceRound(w, sendAt, counts, counts[c->rank], counts[c->rank] != 0, from, chunk, gathered, legs);
        }
    }
    free(sendAt);
    free(legs);
    free(gathered);
    return result;
}

/* What goes to and comes from a peer in the operations that only move data. */
typedef struct {
    uint8_t *send, *recv;
    uint64_t sendBytes, recvBytes;
    bool sends, receives;
} part;

static part partWith(const work *w, uint32_t peer) {
    const hcclOp *op = &w->op;
    const comm *c = w->comm;
    size_t size = dtypeSize(op->type);
    uint64_t bytes = op->count * size;
    bool root = op->root == c->rank;
    switch (op->kind) {
        case OP_ALLGATHER:
            return (part){at(op->send, 0, 1), at(op->recv, peer * bytes, 1), bytes, bytes, true, true};
        case OP_ALLGATHER_V:
            return (part){at(op->send, 0, 1), at(op->recv, op->recvAt[peer], size), op->count * size,
                          op->recvCounts[peer] * size, true, true};
        case OP_BROADCAST:
            return (part){at(op->send, 0, 1), op->recv, bytes, bytes, root, peer == op->root};
        case OP_SCATTER:
            return (part){at(op->send, peer * bytes, 1), op->recv, bytes, bytes, root, peer == op->root};
        case OP_ALLTOALL:
            return (part){at(op->send, peer * bytes, 1), at(op->recv, peer * bytes, 1), bytes, bytes, true, true};
        case OP_ALLTOALL_V:
        case OP_ALLTOALL_VC: {
            size_t recvSize = dtypeSize(op->recvType);
            return (part){at(op->send, op->sendAt[peer], size), at(op->recv, op->recvAt[peer], recvSize),
                          op->sendCounts[peer] * size, op->recvCounts[peer] * recvSize, true, true};
        }
        case OP_SEND:
            return (part){.send = at(op->send, 0, 1), .sendBytes = bytes, .sends = peer == op->root};
        case OP_RECV:
            return (part){.recv = op->recv, .recvBytes = bytes, .receives = peer == op->root};
        default:
            return (part){.sends = true, .receives = true}; /* Barrier: a message without data */
    }
}

static HcclResult runMove(const work *w) {
    const comm *c = w->comm;
    leg *legs = calloc(2 * (size_t)c->ranks, sizeof *legs);
    if (legs == NULL) {
        return HCCL_E_MEMORY;
    }
    leg *receives = legs + c->ranks;
    uint32_t nSends = 0;
    uint32_t nReceives = 0;
    for (uint32_t peer = 0; peer < c->ranks; peer++) {
        part p = partWith(w, peer);
        if (peer == c->rank) {
            if (p.sends && p.receives && p.recvBytes != 0 && p.send != p.recv) {
                memmove(p.recv, p.send, p.recvBytes);
            }
            continue;
        }
        if (p.sends) {
            legs[nSends++] = (leg){.peer = peer, .data = p.send, .bytes = p.sendBytes};
        }
        if (p.receives) {
            receives[nReceives++] = (leg){.peer = peer, .data = p.recv, .bytes = p.recvBytes};
        }
    }
    HcclResult result = exchangeAll(w, legs, nSends, receives, nReceives);
    free(legs);
    return result;
}

/* To itself a rank sends through its mailbox like to any other: sends and receives pair up in order. */
static HcclResult runBatch(const work *w) {
    leg *legs = calloc(2 * (size_t)w->op.nItems, sizeof *legs);
    if (legs == NULL) {
        return HCCL_E_MEMORY;
    }
    leg *receives = legs + w->op.nItems;
    uint32_t nSends = 0;
    uint32_t nReceives = 0;
    for (uint32_t i = 0; i < w->op.nItems; i++) {
        const HcclSendRecvItem *item = &w->items[i];
        leg l = {.peer = item->remoteRank, .data = item->buf, .bytes = item->count * dtypeSize(item->dataType)};
        if (item->sendRecvType == HCCL_SEND) {
            legs[nSends++] = l;
        } else {
            receives[nReceives++] = l;
        }
    }
    HcclResult result = exchangeAll(w, legs, nSends, receives, nReceives);
    free(legs);
    return result;
}

static int run(void *argument) {
    work *w = argument;
    comm *c = w->comm;
    HcclResult result = atomic_load(&c->asyncError);
    if (result == HCCL_SUCCESS && !atomic_load(&c->destroyed)) {
        switch (w->op.kind) {
            case OP_ALLREDUCE:
            case OP_REDUCE:
            case OP_REDUCE_SCATTER:
            case OP_REDUCE_SCATTER_V: result = runReduce(w); break;
            case OP_BATCH_SEND_RECV: result = runBatch(w); break;
            default: result = runMove(w); break;
        }
    } else if (result == HCCL_SUCCESS) {
        result = HCCL_E_UNAVAIL;
    }
    if (result == HCCL_SUCCESS) {
        return 0;
    }
    HcclResult none = HCCL_SUCCESS;
    atomic_compare_exchange_strong(&c->asyncError, &none, result);
    return RT_AICPU_EXCEPTION;
}

static void release(void *argument) {
    work *w = argument;
    commDrop(w->comm);
    free(w->counts);
    free(w->items);
    free(w);
}

/* The arrays of an operation are the caller's: a work that may run later, and again, needs its own. */
static bool own(work *w) {
    const uint64_t **arrays[] = {&w->op.sendCounts, &w->op.sendAt, &w->op.recvCounts, &w->op.recvAt};
    size_t ranks = w->comm->ranks;
    w->counts = calloc(4 * ranks, sizeof *w->counts);
    w->items = calloc(w->op.nItems + 1, sizeof *w->items);
    if (w->counts == NULL || w->items == NULL) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        if (*arrays[i] != NULL) {
            memcpy(w->counts + i * ranks, *arrays[i], ranks * sizeof *w->counts);
            *arrays[i] = w->counts + i * ranks;
        }
    }
    if (w->op.nItems != 0) {
        memcpy(w->items, w->op.items, w->op.nItems * sizeof *w->items);
    }
    return true;
}

HcclResult workLaunch(comm *c, const hcclOp *op, aclrtStream stream) {
    work *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return HCCL_E_MEMORY;
    }
    commKeep(c);
    *w = (work){.comm = c, .op = *op};
    if (!own(w)) {
        release(w);
        return HCCL_E_MEMORY;
    }
    return emuStreamLaunch(stream, run, w, release) == 0 ? HCCL_SUCCESS : HCCL_E_RUNTIME;
}
