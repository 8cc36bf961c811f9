/* libhccl: the collectives that applications call. Each fills an operation in and hands it to libhcomm. */
#include "op.h"

#include <stdlib.h>

#define POINTERS(...)                                                             \
    do {                                                                          \
        const void *const needed[] = {__VA_ARGS__};                               \
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {             \
            if (needed[i] == NULL) {                                              \
                return HCCL_E_PTR;                                                \
            }                                                                     \
        }                                                                         \
    } while (0)

HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_ALLREDUCE, .send = sendBuf, .recv = recvBuf, .count = count, .type = dataType, .reduce = op};
    POINTERS(sendBuf, recvBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_REDUCE, .send = sendBuf, .recv = recvBuf, .count = count, .type = dataType, .reduce = op,
                .root = root};
    POINTERS(sendBuf, recvBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_REDUCE_SCATTER, .send = sendBuf, .recv = recvBuf, .count = recvCount, .type = dataType,
                .reduce = op};
    POINTERS(sendBuf, recvBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls, void *recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
    hcclOp o = {.kind = OP_REDUCE_SCATTER_V, .send = sendBuf, .recv = recvBuf, .count = recvCount, .type = dataType,
                .reduce = op, .sendCounts = sendCounts, .sendAt = sendDispls};
    POINTERS(sendCounts, sendDispls);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
    hcclOp o = {.kind = OP_ALLGATHER, .send = sendBuf, .recv = recvBuf, .count = sendCount, .type = dataType};
    POINTERS(sendBuf, recvBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
                          const void *recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_ALLGATHER_V, .send = sendBuf, .recv = recvBuf, .count = sendCount, .type = dataType,
                .recvCounts = recvCounts, .recvAt = recvDispls};
    POINTERS(recvCounts, recvDispls);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
    hcclOp o = {.kind = OP_BROADCAST, .send = buf, .recv = buf, .count = count, .type = dataType, .root = root};
    POINTERS(buf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_SCATTER, .send = sendBuf, .recv = recvBuf, .count = recvCount, .type = dataType,
                .root = root};
    POINTERS(recvBuf); /* the send buffer is the root's only */
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType, const void *recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_ALLTOALL, .send = sendBuf, .recv = (void *)(uintptr_t)recvBuf, .count = sendCount,
                .type = sendType, .recvType = recvType};
    POINTERS(sendBuf, recvBuf);
    if (sendCount != recvCount || sendType != recvType) {
        return HCCL_E_PARA;
    }
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType,
                         const void *recvBuf, const void *recvCounts, const void *rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_ALLTOALL_V, .send = sendBuf, .recv = (void *)(uintptr_t)recvBuf, .type = sendType,
                .recvType = recvType, .sendCounts = sendCounts, .sendAt = sdispls, .recvCounts = recvCounts,
                .recvAt = rdispls};
    POINTERS(sendCounts, sdispls, recvCounts, rdispls); /* the buffers may be empty */
    return HcclExecInner(__func__, &o, comm, stream);
}

/* Row by sender: matrix[from * ranks + to]. The parts lie one after the other in both buffers. */
HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType, const void *recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    POINTERS(sendCountMatrix);
    uint32_t ranks;
    uint32_t rank;
    HcclResult result = HcclGetRankSize(comm, &ranks);
    if (result != HCCL_SUCCESS || (result = HcclGetRankId(comm, &rank)) != HCCL_SUCCESS) {
        return result;
    }
    const uint64_t *matrix = sendCountMatrix;
    uint64_t *counts = calloc(3 * (size_t)ranks, sizeof *counts);
    if (counts == NULL) {
        return HCCL_E_MEMORY;
    }
    uint64_t *sendAt = counts + ranks;
    uint64_t *recvAt = sendAt + ranks;
    for (uint32_t peer = 0; peer < ranks; peer++) {
        counts[peer] = matrix[(size_t)peer * ranks + rank];
        sendAt[peer] = peer == 0 ? 0 : sendAt[peer - 1] + matrix[(size_t)rank * ranks + peer - 1];
        recvAt[peer] = peer == 0 ? 0 : recvAt[peer - 1] + counts[peer - 1];
    }
    hcclOp o = {.kind = OP_ALLTOALL_VC, .send = sendBuf, .recv = (void *)(uintptr_t)recvBuf, .type = sendType,
                .recvType = recvType, .sendCounts = matrix + (size_t)rank * ranks, .sendAt = sendAt,
                .recvCounts = counts, .recvAt = recvAt};
    result = HcclExecInner(__func__, &o, comm, stream);
    free(counts);
    return result;
}

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
    hcclOp o = {.kind = OP_SEND, .send = sendBuf, .count = count, .type = dataType, .root = destRank};
    POINTERS(sendBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
    hcclOp o = {.kind = OP_RECV, .recv = recvBuf, .count = count, .type = dataType, .root = srcRank};
    POINTERS(recvBuf);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem *items, uint32_t count, HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_BATCH_SEND_RECV, .items = items, .nItems = count};
    POINTERS(items);
    return HcclExecInner(__func__, &o, comm, stream);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
    hcclOp o = {.kind = OP_BARRIER};
    return HcclExecInner(__func__, &o, comm, stream);
}
