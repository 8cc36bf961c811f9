/* Bytes between the ranks of one communicator: shared memory with a mailbox for each ordered pair of ranks.
 * The memory is a memfd: nothing has a name, so nothing is left behind whoever is killed. A rank holds a lock on a
 * byte of it for as long as its process lives: that is how its peers notice a death, in whatever pid namespace. */
#include "transport_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

enum { SLICE_MS = 100 };

int64_t transportNowMs(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void transportRing(bell *b) {
    atomic_fetch_add_explicit(&b->rings, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&b->sleepers, memory_order_seq_cst) != 0) {
        syscall(SYS_futex, &b->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

void transportRest(bell *b, uint32_t seen) {
    struct timespec slice = {.tv_nsec = SLICE_MS * 1000000L};
    atomic_fetch_add_explicit(&b->sleepers, 1, memory_order_seq_cst);
    syscall(SYS_futex, &b->rings, FUTEX_WAIT, seen, &slice, NULL, 0);
    atomic_fetch_sub_explicit(&b->sleepers, 1, memory_order_relaxed);
}

static HcclResult lockRank(int fd, uint32_t rank) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        return HCCL_SUCCESS;
    }
    return errno == EAGAIN || errno == EACCES ? HCCL_E_PARA : HCCL_E_SYSCALL; /* the rank is taken */
}

bool transportGone(const transport *t, uint32_t rank) {
    uint32_t state = atomic_load_explicit(&t->bells[rank].state, memory_order_acquire);
    if (state != RANK_JOINED || rank == t->rank) {
        return state == RANK_LEFT;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(t->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static HcclResult waitForAll(transport *t, int64_t timeoutMs) {
    int64_t deadline = transportNowMs() + timeoutMs;
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
        if (transportNowMs() >= deadline) {
            return HCCL_E_TIMEOUT;
        }
        transportRest(&t->bells[t->rank], seen);
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

/* Memory that somebody may cut off ends in SIGBUS. */
static bool isWhole(int fd, uint32_t ranks) {
    struct statx about;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &about) == 0 &&
           about.stx_size == layoutBytes(ranks);
}

HcclResult transportJoin(int fd, uint32_t rank, uint32_t ranks, int64_t timeoutMs, transport **joined) {
    int own = reopen(fd);
    if (own < 0) {
        return HCCL_E_SYSCALL;
    }
    if (!isWhole(own, ranks)) {
        close(own);
        return HCCL_E_PARA;
    }
    transport *t = mapMemory(own, rank, ranks);
    if (t == NULL) {
        return HCCL_E_MEMORY;
    }
    HcclResult locked = lockRank(own, rank);
    if (locked != HCCL_SUCCESS) {
        transportFree(t);
        return locked;
    }
    atomic_store_explicit(&t->bells[rank].state, RANK_JOINED, memory_order_release);
    for (uint32_t peer = 0; peer < ranks; peer++) {
        transportRing(&t->bells[peer]);
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

uint64_t transportId(const transport *t) {
    struct statx memory; /* not fstat: a new glibc knows it by a name that old ones lack (glibc_floor.h) */
    return statx(t->fd, "", AT_EMPTY_PATH, STATX_INO, &memory) == 0 ? memory.stx_ino : 0;
}

void transportLeave(transport *t) {
    atomic_store_explicit(&t->left, true, memory_order_release);
    atomic_store_explicit(&t->bells[t->rank].state, RANK_LEFT, memory_order_release);
    for (uint32_t peer = 0; peer < t->ranks; peer++) {
        transportRing(&t->bells[peer]);
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
