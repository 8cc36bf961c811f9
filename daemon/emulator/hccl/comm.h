/* A communicator: one rank's end of it, and what its operations share. */
#ifndef COMM_H
#define COMM_H

#include <pthread.h>
#include <stdatomic.h>

#include "env.h"
#include "lists.h"
#include "transport.h"

typedef struct comm {
    struct comm *next; /* of all that live */
    atomic_int references;
    uint32_t rank;
    uint32_t ranks;
    int32_t device;
    int32_t chip;
    char name[COMM_NAME_MAX_LENGTH];
    expansion mode;
    bool deterministic;
    bool zeroCopyReduce; /* HcclCommConfig.aclGraphZeroCopyEnable */
    uint64_t bufferBytes;
    int64_t execMs;
    transport *link;
    _Atomic HcclResult asyncError;
    atomic_bool destroyed;

    pthread_mutex_t lock; /* guards all below */
    void *buffers[2];     /* CCL in and out, from the first operation on */
    resources *lists;     /* of the AI CPU path; NULL until it is taken */
    uint64_t captures;    /* `_Capture<N>` */
    uint64_t prefixes;    /* the unique prefix of zero-copy tags */
    tagSet captured;
} comm;

/* Meet the other ranks and become one of the communicator's. `name` is its name where the config gives none. */
HcclResult commInitMeeting(const char *meeting, const char *name, uint32_t rank, uint32_t ranks,
                           const HcclCommConfig *config, HcclComm *handle);

/* Take a reference by a handle from outside; NULL where that is none, or a destroyed one's. */
comm *commTake(HcclComm handle);
void commKeep(comm *c);
void commDrop(comm *c); /* frees it with the last reference */

#endif
