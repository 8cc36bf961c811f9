/* Which engine runs an operation, over which links, with what memory and under which tag. */
#ifndef ALGORITHM_H
#define ALGORITHM_H

#include "comm.h"
#include "op.h"

typedef enum { ENGINE_HOST, ENGINE_AICPU, ENGINE_AIV } engine;

typedef struct {
    engine engine;
    const char *name;
    uint32_t *peers; /* to be freed */
    uint32_t nPeers;
    bool scratch;
    bool zeroCopy; /* of a captured operation: a tag of its own, by a prefix */
    char tag[TAG_MAX];
} algorithm;

const char *opName(opKind kind);
uint64_t opBytes(const hcclOp *op, uint32_t ranks); /* what this rank sends */

/* HCCL_E_NOT_SUPPORT where only AIV is allowed and cannot do it. */
HcclResult algorithmChoose(comm *c, const hcclOp *op, bool captured, algorithm *chosen);

#endif
