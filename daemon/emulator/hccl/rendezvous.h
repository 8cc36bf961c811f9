/* How the ranks of a communicator find each other and get its memory. */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H

#include "hccl.h"

enum { RANKS_MAX = 250, MEETING_NAME_MAX = 96 };

/* Open the meeting `name` in this process, in a thread of its own that ends when all ranks came or time is up.
 * `port` is a descriptor to hold open until then, or -1. Takes it over. */
HcclResult rendezvousServe(const char *name, int port, int64_t timeoutMs);

/* Come to the meeting; waits for whoever opens it. Returns the descriptor of the communicator's memory. */
HcclResult rendezvousJoin(const char *name, uint32_t rank, uint32_t ranks, int64_t timeoutMs, int *memory);

#endif
