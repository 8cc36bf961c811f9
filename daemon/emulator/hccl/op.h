/* An operation on a communicator: what libhccl hands to libhcomm. */
#ifndef OP_H
#define OP_H

#include <stdbool.h>

#include "hccl.h"

typedef enum {
    OP_ALLREDUCE,
    OP_REDUCE,
    OP_REDUCE_SCATTER,
    OP_REDUCE_SCATTER_V,
    OP_ALLGATHER,
    OP_ALLGATHER_V,
    OP_BROADCAST,
    OP_SCATTER,
    OP_ALLTOALL,
    OP_ALLTOALL_V,
    OP_ALLTOALL_VC,
    OP_SEND,
    OP_RECV,
    OP_BATCH_SEND_RECV,
    OP_BARRIER,
    OP_KINDS
} opKind;

typedef struct {
    opKind kind;
    const void *send;
    void *recv;
    uint64_t count; /* elements a rank, where all ranks have the same */
    HcclDataType type;
    HcclReduceOp reduce;
    uint32_t root; /* or the peer of Send and Recv */
    /* Elements by rank, where they differ; borrowed for the length of the call. */
    const uint64_t *sendCounts, *sendAt, *recvCounts, *recvAt;
    HcclDataType recvType; /* AlltoAll* */
    const HcclSendRecvItem *items;
    uint32_t nItems;
} hcclOp;

/* `function` is the public name: what faults and messages call it. */
HCCL_API HcclResult HcclExecInner(const char *function, const hcclOp *op, HcclComm comm, aclrtStream stream);

#endif
