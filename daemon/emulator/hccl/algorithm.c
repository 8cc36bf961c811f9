/* Which engine runs an operation, over which links, with what memory and under which tag. */
#include "algorithm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduce.h"

/* Above these bytes a rank AIV falls back to the AI CPU on A3. CANN's thresholds are not published: this one is ours. */
#define AIV_MAX_BYTES (1ULL << 20)
/* Up to these bytes a rank, times the ranks, an AllReduce runs as a mesh, above as a ring. */
#define MESH_MAX_BYTES (512ULL << 10)

const char *opName(opKind kind) {
    static const char *const names[OP_KINDS] = {
        [OP_ALLREDUCE] = "AllReduce",
        [OP_REDUCE] = "Reduce",
        [OP_REDUCE_SCATTER] = "ReduceScatter",
        [OP_REDUCE_SCATTER_V] = "ReduceScatterV",
        [OP_ALLGATHER] = "AllGather",
        [OP_ALLGATHER_V] = "AllGatherV",
        [OP_BROADCAST] = "Broadcast",
        [OP_SCATTER] = "Scatter",
        [OP_ALLTOALL] = "AlltoAll",
        [OP_ALLTOALL_V] = "AlltoAllV",
        [OP_ALLTOALL_VC] = "AlltoAllVC",
        [OP_SEND] = "Send",
        [OP_RECV] = "Receive",
        [OP_BATCH_SEND_RECV] = "BatchSendRecv",
        [OP_BARRIER] = "Barrier",
    };
    return names[kind];
}

static bool isAlltoAll(opKind kind) {
    return kind == OP_ALLTOALL || kind == OP_ALLTOALL_V || kind == OP_ALLTOALL_VC;
}

static bool reduces(opKind kind) {
    return kind == OP_ALLREDUCE || kind == OP_REDUCE || kind == OP_REDUCE_SCATTER || kind == OP_REDUCE_SCATTER_V;
}

uint64_t opBytes(const hcclOp *op, uint32_t ranks) {
    uint64_t count = op->count;
    if (op->sendCounts != NULL) {
        count = 0;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            count += op->sendCounts[rank];
        }
    } else if (op->kind == OP_REDUCE_SCATTER || op->kind == OP_SCATTER || op->kind == OP_ALLTOALL) {
        count *= ranks;
    }
    return count * dtypeSize(op->type);
}

/* The vector cores do these only; Broadcast not in a graph. */
static bool aivCan(const hcclOp *op, bool captured) {
    switch (op->kind) {
        case OP_ALLREDUCE:
        case OP_REDUCE_SCATTER:
            return op->reduce != HCCL_REDUCE_PROD && op->type != HCCL_DATA_TYPE_INT64;
        case OP_ALLGATHER:
        case OP_ALLTOALL:
        case OP_ALLTOALL_V:
        case OP_ALLTOALL_VC:
            return true;
        case OP_BROADCAST:
            return !captured;
        default:
            return false;
    }
}

static bool aivTooLarge(const comm *c, const hcclOp *op) {
    bool everFallsBack = op->kind != OP_ALLTOALL_V && op->kind != OP_ALLTOALL_VC;
    return everFallsBack && emuSettingsGet()->soc == EMU_SOC_A3 && opBytes(op, c->ranks) > AIV_MAX_BYTES;
}

static bool a2AicpuInGraphs(void) {
    int major = 0;
    int minor = 0;
    (void)sscanf(emuSettingsGet()->hcomm, "%d.%d", &major, &minor);
    return major < 9 || (major == 9 && minor < 2); /* hcomm's PR 3161 */
}

static bool aicpuCan(const hcclOp *op, bool captured) {
    if (emuSettingsGet()->soc != EMU_SOC_A2) {
        return true;
    }
    return (op->kind == OP_ALLGATHER || isAlltoAll(op->kind)) && (!captured || a2AicpuInGraphs());
}

static HcclResult chooseEngine(const comm *c, const hcclOp *op, bool captured, engine *chosen) {
    if (c->mode.aiv && aivCan(op, captured) && (c->mode.aivOnly || (!c->deterministic && !aivTooLarge(c, op)))) {
        *chosen = ENGINE_AIV;
        return HCCL_SUCCESS;
    }
    if (c->mode.aivOnly) {
        return hcclFail(HCCL_E_NOT_SUPPORT, "%s cannot run in AIV mode, and no other is allowed", opName(op->kind));
    }
    *chosen = c->mode.aicpu && aicpuCan(op, captured) ? ENGINE_AICPU : ENGINE_HOST;
    return HCCL_SUCCESS;
}

static bool isMesh(const comm *c, const hcclOp *op) {
    if (op->kind == OP_ALLGATHER || op->kind == OP_ALLGATHER_V) {
        return false;
    }
    return !reduces(op->kind) || op->kind == OP_REDUCE || opBytes(op, c->ranks) <= MESH_MAX_BYTES * c->ranks;
}

/* The first so many ranks after this one, round the ring. */
static void linkFirst(const comm *c, uint32_t count, uint32_t modulus, algorithm *a) {
    for (uint32_t i = 0; i < count; i++) {
        a->peers[a->nPeers++] = (c->rank + 1 + i) % modulus;
    }
}

static void linkRing(const comm *c, algorithm *a) {
    a->peers[a->nPeers++] = (c->rank + 1) % c->ranks;
    if (c->ranks > 2) {
        a->peers[a->nPeers++] = (c->rank + c->ranks - 1) % c->ranks;
    }
}

static void linkItems(const comm *c, const hcclOp *op, algorithm *a) {
    for (uint32_t i = 0; i < op->nItems; i++) {
        bool known = op->items[i].remoteRank == c->rank;
        for (uint32_t j = 0; j < a->nPeers; j++) {
            known |= a->peers[j] == op->items[i].remoteRank;
        }
        if (!known) {
            a->peers[a->nPeers++] = op->items[i].remoteRank;
        }
    }
}

static bool chooseLinks(const comm *c, const hcclOp *op, algorithm *a) {
    int forced = emuSettingsGet()->peers;
    uint32_t most = forced >= 0 && (uint32_t)forced > c->ranks ? (uint32_t)forced : c->ranks;
    a->peers = calloc(most, sizeof *a->peers);
    if (a->peers == NULL) {
        return false;
    }
    a->name = isMesh(c, op) ? "mesh" : "ring";
    if (forced >= 0) {
        uint32_t count = (uint32_t)forced;
        linkFirst(c, count, count + 1 > c->ranks ? count + 1 : c->ranks, a);
    } else if (op->kind == OP_SEND || op->kind == OP_RECV) {
        a->peers[a->nPeers++] = op->root;
    } else if (op->kind == OP_BATCH_SEND_RECV) {
        linkItems(c, op, a);
    } else if (isMesh(c, op)) {
        linkFirst(c, c->ranks - 1, c->ranks, a);
    } else {
        linkRing(c, a);
    }
    return true;
}

/* A3 gives captured operations zero copy, and so a tag each: not those that reduce, unless asked to, and not those that
 * hcomm does not list. */
static bool zeroCopies(const comm *c, const hcclOp *op, bool captured) {
    if (!captured || emuSettingsGet()->soc != EMU_SOC_A3 || (reduces(op->kind) && !c->zeroCopyReduce)) {
        return false;
    }
    switch (op->kind) {
        case OP_ALLREDUCE:
        case OP_REDUCE:
        case OP_REDUCE_SCATTER:
        case OP_ALLGATHER:
        case OP_ALLTOALL:
        case OP_SEND:
        case OP_RECV:
            return true;
        case OP_BROADCAST:
        case OP_ALLTOALL_V:
            return !c->mode.aiv;
        default:
            return false;
    }
}

static void nameTag(comm *c, const hcclOp *op, bool captured, algorithm *a) {
    char peer[32] = "";
    char prefix[24] = "";
    if (op->kind == OP_SEND || op->kind == OP_RECV) {
        snprintf(peer, sizeof peer, "_%u_%u", op->kind == OP_SEND ? c->rank : op->root,
                 op->kind == OP_SEND ? op->root : c->rank);
    }
    if (a->zeroCopy) {
        snprintf(prefix, sizeof prefix, "%llX", (unsigned long long)c->prefixes++);
    }
    snprintf(a->tag, sizeof a->tag, "%s_%s%s%s_%s%s", opName(op->kind), c->name, peer, prefix, a->name,
             captured ? "_Capture" : "");
}

HcclResult algorithmChoose(comm *c, const hcclOp *op, bool captured, algorithm *chosen) {
    *chosen = (algorithm){0};
    HcclResult result = chooseEngine(c, op, captured, &chosen->engine);
    if (result != HCCL_SUCCESS || chosen->engine != ENGINE_AICPU) {
        return result;
    }
    if (!chooseLinks(c, op, chosen)) {
        return HCCL_E_MEMORY;
    }
    int scratch = emuSettingsGet()->scratch;
    chosen->scratch =
        scratch >= 0 ? scratch != 0 : op->kind == OP_REDUCE_SCATTER || op->kind == OP_REDUCE_SCATTER_V;
    chosen->zeroCopy = zeroCopies(c, op, captured);
    nameTag(c, op, captured, chosen);
    return HCCL_SUCCESS;
}
