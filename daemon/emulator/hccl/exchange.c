/* Messages between ranks: all of an exchange at once through the mailboxes, with a time-out and an eye on the dead. */
#include <stdlib.h>
#include <string.h>

#include "transport_memory.h"

static uint32_t boxWrite(box *b, const uint8_t *from, uint64_t bytes) {
    uint32_t tail = atomic_load_explicit(&b->tail, memory_order_relaxed);
    uint32_t space = BOX_BYTES - (tail - atomic_load_explicit(&b->head, memory_order_acquire));
    space = space <= BOX_BYTES ? space : 0; /* believe no counter of a peer */
    uint32_t n = bytes < space ? (uint32_t)bytes : space;
    uint32_t at = tail % BOX_BYTES;
    uint32_t first = n < BOX_BYTES - at ? n : BOX_BYTES - at;
    memcpy(b->bytes + at, from, first);
    memcpy(b->bytes, from + first, n - first);
    atomic_store_explicit(&b->tail, tail + n, memory_order_release);
    return n;
}

static uint32_t boxRead(box *b, uint8_t *into, uint64_t bytes) {
    uint32_t head = atomic_load_explicit(&b->head, memory_order_relaxed);
    uint32_t filled = atomic_load_explicit(&b->tail, memory_order_acquire) - head;
    filled = filled <= BOX_BYTES ? filled : 0; /* believe no counter of a peer */
    uint32_t n = bytes < filled ? (uint32_t)bytes : filled;
    uint32_t at = head % BOX_BYTES;
    uint32_t first = n < BOX_BYTES - at ? n : BOX_BYTES - at;
    memcpy(into, b->bytes + at, first);
    memcpy(into + first, b->bytes, n - first);
    atomic_store_explicit(&b->head, head + n, memory_order_release);
    return n;
}

static bool legDone(const leg *l) {
    return l->done == sizeof(header) + l->bytes;
}

/* Both return the bytes moved. */
static uint64_t push(transport *t, uint32_t what, leg *l) {
    box *b = &t->boxes[(size_t)t->rank * t->ranks + l->peer];
    uint64_t before = l->done;
    if (l->done < sizeof(header)) {
        header h = {.magic = HEADER_MAGIC, .what = what, .bytes = l->bytes};
        l->done += boxWrite(b, (const uint8_t *)&h + l->done, sizeof h - l->done);
    }
    if (l->done >= sizeof(header) && !legDone(l)) {
        uint64_t at = l->done - sizeof(header);
        l->done += boxWrite(b, (const uint8_t *)l->data + at, l->bytes - at);
    }
    return l->done - before;
}

static uint64_t pull(transport *t, uint32_t what, leg *l, bool *mismatch) {
    box *b = &t->boxes[(size_t)l->peer * t->ranks + t->rank];
    uint64_t before = l->done;
    header *h = &t->arriving[l->peer];
    if (l->done < sizeof(header)) {
        l->done += boxRead(b, (uint8_t *)h + l->done, sizeof *h - l->done);
        if (l->done == sizeof(header) && (h->magic != HEADER_MAGIC || h->what != what || h->bytes != l->bytes)) {
            *mismatch = true;
            return 0;
        }
    }
    if (l->done >= sizeof(header) && !legDone(l)) {
        uint64_t at = l->done - sizeof(header);
        l->done += boxRead(b, (uint8_t *)l->data + at, l->bytes - at);
    }
    return l->done - before;
}

typedef struct {
    uint32_t what;
    leg *sends;
    uint32_t nSends;
    leg *receives;
    uint32_t nReceives;
    uint8_t *busy; /* a peer whose earlier message is not through yet */
    bool mismatch;
} exchange;

/* One round over all messages. Returns how many are unfinished; *moved says whether a byte moved. */
static uint32_t scan(transport *t, exchange *x, bool *moved) {
    uint32_t unfinished = 0;
    memset(x->busy, 0, t->ranks);
    for (uint32_t i = 0; i < x->nSends; i++) {
        leg *l = &x->sends[i];
        if (!legDone(l) && !x->busy[l->peer] && push(t, x->what, l) != 0) {
            *moved = true;
            transportRing(&t->bells[l->peer]);
        }
        x->busy[l->peer] |= !legDone(l);
        unfinished += !legDone(l);
    }
    memset(x->busy, 0, t->ranks);
    for (uint32_t i = 0; i < x->nReceives; i++) {
        leg *l = &x->receives[i];
        if (!legDone(l) && !x->busy[l->peer] && pull(t, x->what, l, &x->mismatch) != 0) {
            *moved = true;
            transportRing(&t->bells[l->peer]);
        }
        x->busy[l->peer] |= !legDone(l);
        unfinished += !legDone(l);
    }
    return unfinished;
}

static bool awaitsGone(const transport *t, const exchange *x) {
    for (uint32_t i = 0; i < x->nSends; i++) {
        if (!legDone(&x->sends[i]) && transportGone(t, x->sends[i].peer)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < x->nReceives; i++) {
        if (!legDone(&x->receives[i]) && transportGone(t, x->receives[i].peer)) {
            return true;
        }
    }
    return false;
}

static HcclResult run(transport *t, exchange *x, int64_t timeoutMs) {
    int64_t deadline = timeoutMs == 0 ? INT64_MAX : transportNowMs() + timeoutMs;
    bool gone = false; /* judged only after one more scan: the peer may have written before it went */
    for (;;) {
        bool moved = false;
        uint32_t seen = atomic_load_explicit(&t->bells[t->rank].rings, memory_order_seq_cst);
        uint32_t unfinished = scan(t, x, &moved);
        if (x->mismatch) {
            return HCCL_E_INTERNAL;
        }
        if (unfinished == 0) {
            return HCCL_SUCCESS;
        }
        if (moved) {
            continue;
        }
        if (gone || atomic_load_explicit(&t->left, memory_order_acquire)) {
            return HCCL_E_REMOTE;
        }
        if (transportNowMs() >= deadline) {
            return HCCL_E_TIMEOUT;
        }
        gone = awaitsGone(t, x);
        if (!gone) {
            transportRest(&t->bells[t->rank], seen);
        }
    }
}

/* Every exchange takes its peers' locks in one order, so that two of them cannot wait for each other. */
static void lockPeers(transport *t, const exchange *x, bool lock) {
    int (*apply)(pthread_mutex_t *) = lock ? pthread_mutex_lock : pthread_mutex_unlock;
    memset(x->busy, 0, t->ranks);
    for (uint32_t i = 0; i < x->nSends; i++) {
        x->busy[x->sends[i].peer] |= 1;
    }
    for (uint32_t i = 0; i < x->nReceives; i++) {
        x->busy[x->receives[i].peer] |= 2;
    }
    for (uint32_t peer = 0; peer < t->ranks; peer++) {
        if (x->busy[peer] & 1) {
            apply(&t->sending[peer]);
        }
    }
    for (uint32_t peer = 0; peer < t->ranks; peer++) {
        if (x->busy[peer] & 2) {
            apply(&t->receiving[peer]);
        }
    }
}

HcclResult transportExchange(transport *t, uint32_t what, leg *sends, uint32_t nSends, leg *receives,
                             uint32_t nReceives, int64_t timeoutMs) {
    exchange x = {.what = what, .sends = sends, .nSends = nSends, .receives = receives, .nReceives = nReceives};
    x.busy = malloc(t->ranks);
    if (x.busy == NULL) {
        return HCCL_E_MEMORY;
    }
    lockPeers(t, &x, true);
    HcclResult result = run(t, &x, timeoutMs);
    lockPeers(t, &x, false);
    free(x.busy);
    return result;
}
