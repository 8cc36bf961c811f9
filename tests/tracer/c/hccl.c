/* A stand-in for libhccl.so: a collective makes H2D copies through the symbol table, as HCCL's resource lists do. */
#include <errno.h>
#include <stdlib.h>

#include "cann.h"

static __thread char device_memory[4096], host_memory[4096];

static int collective(void) {
    for (int i = 0; i < COPIES_A_COLLECTIVE; i++) {
        aclrtMemcpy(device_memory, sizeof device_memory, host_memory, BYTES_A_COPY, HOST_TO_DEVICE);
    }
    aclrtMemcpy(host_memory, sizeof host_memory, device_memory, 4, DEVICE_TO_HOST);
    return 0;
}

int HcclGetRootInfo(void *root) {
    errno = ERRNO_OF_CANN;
    return 0;
}

int HcclCommInitRootInfo(uint32_t ranks, const void *root, uint32_t rank, void **comm) {
    *comm = malloc(16);
    errno = ERRNO_OF_CANN;
    return 0;
}

int HcclCommInitRootInfoConfig(uint32_t ranks, const void *root, uint32_t rank, const void *config, void **comm) {
    return HcclCommInitRootInfo(ranks, root, rank, comm);
}

int HcclCommDestroy(void *comm) {
    free(comm);
    return 0;
}

int HcclAllGather(void *from, void *to, uint64_t count, int type, void *comm, void *stream) {
    return collective();
}

/* Made of another one, as HCCL's wrappers are. */
int HcclAllReduce(void *from, void *to, uint64_t count, int type, int op, void *comm, void *stream) {
    return HcclAllGather(from, to, count, type, comm, stream);
}
