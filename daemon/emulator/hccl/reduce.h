/* Elements: their size, and two buffers of them reduced into one. */
#ifndef REDUCE_H
#define REDUCE_H

#include <stdbool.h>

#include "hccl.h"

/* Bytes an element; 0 for a type that HCCL does not know. */
size_t dtypeSize(HcclDataType type);

/* Whether HCCL reduces this type by this operation. */
bool reduceSupported(HcclDataType type, HcclReduceOp op);

/* into[i] = into[i] op from[i] */
void reduceInto(void *into, const void *from, uint64_t count, HcclDataType type, HcclReduceOp op);

#endif
