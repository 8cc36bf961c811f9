/* Bytes between the ranks of one communicator: shared memory with a mailbox for each ordered pair of ranks.
 * The memory is a memfd: nothing has a name, so nothing is left behind whoever is killed. A rank holds a lock on a
 * byte of it for as long as its process lives: that is how its peers notice a death, in whatever pid namespace. */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BOX_BYTES = 1 << 16, LINE = 64, SLICE_MS = 100 };
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

static size_t layoutBytes(uint32_t ranks) {
    return sizeof(bell) * ranks + sizeof(box) * (size_t)ranks * ranks;
}

int transportCreate(uint32_t ranks) {
    int fd = memfd_create("capture-canary-hccl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -1;
    }
    if (ftruncate(fd, (off_t)layoutBytes(ranks)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int64_t nowMs(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ring(bell *b) {
    atomic_fetch_add_explicit(&b->rings, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&b->sleepers, memory_order_seq_cst) != 0) {
        syscall(SYS_futex, &b->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

/* Sleep unless the bell rang since `seen` was read. Woken or not after a slice, so that the dead get noticed. */
static void rest(bell *b, uint32_t seen) {
    struct timespec slice = {.tv_nsec = SLICE_MS * 1000000L};
    atomic_fetch_add_explicit(&b->sleepers, 1, memory_order_seq_cst);
    syscall(SYS_futex, &b->rings, FUTEX_WAIT, seen, &slice, NULL, 0);
    atomic_fetch_sub_explicit(&b->sleepers, 1, memory_order_relaxed);
}

static bool lockRank(int fd, uint32_t rank) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Gone: left, or joined and no longer holding its lock. */
static bool rankGone(const transport *t, uint32_t rank) {
    uint32_t state = atomic_load_explicit(&t->bells[rank].state, memory_order_acquire);
    if (state != RANK_JOINED || rank == t->rank) {
        return state == RANK_LEFT;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(t->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static HcclResult waitForAll(transport *t, int64_t timeoutMs) {
    int64_t deadline = nowMs() + timeoutMs;
    for (;;) {
        uint32_t seen = atomic_load_explicit(&t->bells[t->rank].rings, memory_order_seq_cst);
        uint32_t present = 0;
        for (uint32_t rank = 0; rank < t->ranks; rank++) {
            uint32_t state = atomic_load_explicit(&t->bells[rank].state, memory_order_acquire);
            present += state != RANK_ABSENT;
        }
        if (present == t->ranks) {
            return HCCL_SUCCESS;
        }
        if (nowMs() >= deadline) {
            return HCCL_E_TIMEOUT;
        }
        rest(&t->bells[t->rank], seen);
    }
}

/* Takes the descriptor over, whatever comes of it. */
static transport *mapMemory(int fd, uint32_t rank, uint32_t ranks) {
    transport *t = calloc(1, sizeof *t);
    if (t == NULL) {
        close(fd);
        return NULL;
    }
    *t = (transport){.fd = fd, .rank = rank, .ranks = ranks, .mapped = layoutBytes(ranks)};
    t->sending = malloc(ranks * sizeof *t->sending);
    t->receiving = malloc(ranks * sizeof *t->receiving);
    t->arriving = calloc(ranks, sizeof *t->arriving);
    void *memory = mmap(NULL, t->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    t->bells = memory == MAP_FAILED ? NULL : memory;
    if (t->sending == NULL || t->receiving == NULL || t->arriving == NULL || t->bells == NULL) {
        transportFree(t);
        return NULL;
    }
    t->boxes = (box *)(t->bells + ranks);
    for (uint32_t peer = 0; peer < ranks; peer++) {
        pthread_mutex_init(&t->sending[peer], NULL);
        pthread_mutex_init(&t->receiving[peer], NULL);
    }
    return t;
}

/* A descriptor that came by message shares its open file with the sender; a lock of our own needs our own. */
static int reopen(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDWR | O_CLOEXEC);
    close(fd);
    return own;
}

HcclResult transportJoin(int fd, uint32_t rank, uint32_t ranks, int64_t timeoutMs, transport **joined) {
    int own = reopen(fd);
    if (own < 0) {
        return HCCL_E_SYSCALL;
    }
    transport *t = mapMemory(own, rank, ranks);
    if (t == NULL) {
        return HCCL_E_MEMORY;
    }
    if (!lockRank(own, rank)) {
        transportFree(t);
        return HCCL_E_PARA; /* the rank is taken */
    }
    atomic_store_explicit(&t->bells[rank].state, RANK_JOINED, memory_order_release);
    for (uint32_t peer = 0; peer < ranks; peer++) {
        ring(&t->bells[peer]);
    }
    HcclResult all = waitForAll(t, timeoutMs);
    if (all != HCCL_SUCCESS) {
        transportLeave(t);
        transportFree(t);
        return all;
    }
    *joined = t;
    return HCCL_SUCCESS;
}

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
            ring(&t->bells[l->peer]);
        }
        x->busy[l->peer] |= !legDone(l);
        unfinished += !legDone(l);
    }
    memset(x->busy, 0, t->ranks);
    for (uint32_t i = 0; i < x->nReceives; i++) {
        leg *l = &x->receives[i];
        if (!legDone(l) && !x->busy[l->peer] && pull(t, x->what, l, &x->mismatch) != 0) {
            *moved = true;
            ring(&t->bells[l->peer]);
        }
        x->busy[l->peer] |= !legDone(l);
        unfinished += !legDone(l);
    }
    return unfinished;
}

static bool awaitsGone(const transport *t, const exchange *x) {
    for (uint32_t i = 0; i < x->nSends; i++) {
        if (!legDone(&x->sends[i]) && rankGone(t, x->sends[i].peer)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < x->nReceives; i++) {
        if (!legDone(&x->receives[i]) && rankGone(t, x->receives[i].peer)) {
            return true;
        }
    }
    return false;
}

static HcclResult run(transport *t, exchange *x, int64_t timeoutMs) {
    int64_t deadline = timeoutMs == 0 ? INT64_MAX : nowMs() + timeoutMs;
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
        if (nowMs() >= deadline) {
            return HCCL_E_TIMEOUT;
        }
        gone = awaitsGone(t, x);
        if (!gone) {
            rest(&t->bells[t->rank], seen);
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

uint64_t transportId(const transport *t) {
    struct stat memory;
    return fstat(t->fd, &memory) == 0 ? (uint64_t)memory.st_ino : 0;
}

void transportLeave(transport *t) {
    atomic_store_explicit(&t->left, true, memory_order_release);
    atomic_store_explicit(&t->bells[t->rank].state, RANK_LEFT, memory_order_release);
    for (uint32_t peer = 0; peer < t->ranks; peer++) {
        ring(&t->bells[peer]);
    }
}

void transportFree(transport *t) {
    if (t->bells != NULL) {
        munmap(t->bells, t->mapped);
    }
    close(t->fd);
    free(t->sending);
    free(t->receiving);
    free(t->arriving);
    free(t);
}
