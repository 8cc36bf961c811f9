/* Bytes between the ranks of one communicator: shared memory with a mailbox for each ordered pair of ranks. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "hccl.h"

typedef struct transport transport;

/* One message to or from a peer. Messages of one pair arrive in the order sent. */
typedef struct {
    uint32_t peer;
    void *data;
    uint64_t bytes;
    uint64_t done; /* the transport's: bytes moved so far, header included */
} leg;

/* The memory of a communicator of this many ranks, as a descriptor to hand to them; -1 with errno. */
int transportCreate(uint32_t ranks);

/* Join as a rank; takes the descriptor over. Waits for the other ranks to join, up to the time-out in ms. */
HcclResult transportJoin(int fd, uint32_t rank, uint32_t ranks, int64_t timeoutMs, transport **joined);

/* Move every message, `sends` and `receives` at once. `what` (the collective's kind and the like) has to be the same
 * at both ends of a message. timeoutMs 0: wait for ever. */
HcclResult transportExchange(transport *t, uint32_t what, leg *sends, uint32_t nSends, leg *receives,
                             uint32_t nReceives, int64_t timeoutMs);

/* The same for all ranks of a communicator, and no other's while it lives. */
uint64_t transportId(const transport *t);

/* Leave: peers that wait for us learn that we are gone, and so do exchanges of our own that are under way. */
void transportLeave(transport *t);

/* Unmap; only when no exchange can run any more. */
void transportFree(transport *t);

#endif
