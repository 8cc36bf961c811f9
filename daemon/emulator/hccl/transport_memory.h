/* A transport's memory, shared by the ranks: bells and mailboxes. Of transport.c and exchange.c. */
#ifndef TRANSPORT_MEMORY_H
#define TRANSPORT_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport.h"

enum { BOX_BYTES = 1 << 16, LINE = 64 };
enum { RANK_ABSENT, RANK_JOINED, RANK_LEFT };

/* What a rank sleeps on; rung by its peers whenever they made progress that concerns it. */
typedef struct {
    _Alignas(LINE) _Atomic uint32_t rings;
    _Atomic uint32_t sleepers;
    _Atomic uint32_t state;
} bell;

/* One writer, one reader. head and tail count bytes and wrap; each in a cache line of its own. */
typedef struct {
    _Alignas(LINE) _Atomic uint32_t head; /* read so far */
    _Alignas(LINE) _Atomic uint32_t tail; /* written so far */
    _Alignas(LINE) uint8_t bytes[BOX_BYTES];
} box;

/* Precedes each message: a collective that does not match the peer's ends in an error, not in wrong data. */
typedef struct {
    uint32_t magic;
    uint32_t what;
    uint64_t bytes;
} header;
enum { HEADER_MAGIC = 0x4c434348 };

struct transport {
    int fd;
    uint32_t rank;
    uint32_t ranks;
    size_t mapped;
    bell *bells;
    box *boxes; /* boxes[from * ranks + to] */
    atomic_bool left;
    pthread_mutex_t *sending; /* one exchange at a time writes to a peer … */
    pthread_mutex_t *receiving; /* … and one reads from it */
    header *arriving; /* one a peer: the header being received, whole only once all its bytes came */
};

int64_t transportNowMs(void);

/* Wake whoever sleeps on the bell. */
void transportRing(bell *b);

/* Sleep unless the bell rang since `seen` was read. Woken or not after a while, so that the dead get noticed. */
void transportRest(bell *b, uint32_t seen);

/* Left, or joined and no longer holding its lock. */
bool transportGone(const transport *t, uint32_t rank);

#endif
