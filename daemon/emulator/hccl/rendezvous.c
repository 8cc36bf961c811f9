/* How the ranks of a communicator find each other and get its memory.
 * On a node they meet at the root's TCP port, which is held here too; what they say goes over an abstract Unix socket,
 * since memory is handed over as a descriptor. Abstract names vanish with their process. */
#include "rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "transport.h"

enum { HELLO_MAGIC = 0x48434c4c, RETRY_MS = 20, GRACE_MS = 2000 };

typedef struct {
    uint32_t magic;
    uint32_t rank;
    uint32_t ranks;
} hello;
typedef struct {
    uint32_t magic;
    int32_t result;
} welcome;

typedef struct {
    int listener;
    int port;
    int64_t deadline;
    uint32_t ranks; /* 0 until the first rank said how many there are */
    uint32_t come;
    int guest[RANKS_MAX]; /* by rank; -1 while it has not come */
} meeting;

static int64_t nowMs(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static socklen_t abstractName(const char *name, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "capture-canary-hccl/%u/%s",
                          (unsigned)getuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool sameUser(int s) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
}

static void answer(int guest, HcclResult result, int memory) {
    welcome w = {.magic = HELLO_MAGIC, .result = (int32_t)result};
    struct iovec part = {.iov_base = &w, .iov_len = sizeof w};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &memory, sizeof memory);
    }
    (void)TEMP_FAILURE_RETRY(sendmsg(guest, &message, MSG_NOSIGNAL));
}

/* Seat a rank, or send it away: another size, a rank out of range or one that has come already. */
static void admit(meeting *m) {
    int guest = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    if (guest < 0) {
        poll(NULL, 0, RETRY_MS); /* out of descriptors: it is still at the door */
        return;
    }
    hello h = {0};
    struct timeval patience = {.tv_sec = 1};
    bool understood = sameUser(guest) &&
                      setsockopt(guest, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                      TEMP_FAILURE_RETRY(recv(guest, &h, sizeof h, MSG_WAITALL)) == (ssize_t)sizeof h &&
                      h.magic == HELLO_MAGIC && h.ranks >= 1 && h.ranks <= RANKS_MAX && h.rank < h.ranks;
    if (understood && m->ranks == 0) {
        m->ranks = h.ranks;
    }
    if (!understood || h.ranks != m->ranks || m->guest[h.rank] >= 0) {
        answer(guest, HCCL_E_PARA, -1);
        close(guest);
        return;
    }
    m->guest[h.rank] = guest;
    m->come++;
}

/* A rank that hung up before all had come may come again. */
static void forget(meeting *m, uint32_t rank) {
    close(m->guest[rank]);
    m->guest[rank] = -1;
    m->come--;
}

static void awaitGuests(meeting *m) {
    while (m->ranks == 0 || m->come < m->ranks) {
        int64_t left = m->deadline - nowMs();
        if (left <= 0) {
            return;
        }
        struct pollfd polled[RANKS_MAX + 1] = {{.fd = m->listener, .events = POLLIN}};
        for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
            polled[rank + 1] = (struct pollfd){.fd = m->guest[rank], .events = POLLIN};
        }
        if (poll(polled, RANKS_MAX + 1, (int)left) < 0 && errno != EINTR) {
            return;
        }
        for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
            if (m->guest[rank] >= 0 && polled[rank + 1].revents != 0) {
                forget(m, rank);
            }
        }
        if (polled[0].revents & POLLIN) {
            admit(m);
        }
    }
}

static void *serve(void *argument) {
    meeting *m = argument;
    awaitGuests(m);
    HcclResult result = m->ranks != 0 && m->come == m->ranks ? HCCL_SUCCESS : HCCL_E_TIMEOUT;
    int memory = result == HCCL_SUCCESS ? transportCreate(m->ranks) : -1;
    if (result == HCCL_SUCCESS && memory < 0) {
        result = HCCL_E_MEMORY;
    }
    close(m->listener);
    if (m->port >= 0) {
        close(m->port); /* before the answers: who got one may open a meeting at the port */
    }
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        if (m->guest[rank] >= 0) {
            answer(m->guest[rank], result, memory);
            close(m->guest[rank]);
        }
    }
    if (memory >= 0) {
        close(memory);
    }
    free(m);
    return NULL;
}

static HcclResult startThread(void *(*body)(void *), void *argument) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigset_t all;
    sigset_t before;
    sigfillset(&all); /* signals are for the application's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, &detached, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return failed ? HCCL_E_SYSCALL : HCCL_SUCCESS;
}

HcclResult rendezvousServe(const char *name, int port, int64_t timeoutMs) {
    struct sockaddr_un address;
    socklen_t length = abstractName(name, &address);
    meeting *m = malloc(sizeof *m);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HcclResult result = HCCL_E_SYSCALL;
    if (m != NULL && listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 &&
        listen(listener, RANKS_MAX) == 0) {
        *m = (meeting){.listener = listener, .port = port, .deadline = nowMs() + timeoutMs};
        memset(m->guest, -1, sizeof m->guest);
        result = startThread(serve, m);
    }
    if (result != HCCL_SUCCESS) {
        free(m);
        if (listener >= 0) {
            close(listener);
        }
        if (port >= 0) {
            close(port);
        }
    }
    return result;
}

static int receiveMemory(int s, HcclResult *result) {
    welcome w = {0};
    struct iovec part = {.iov_base = &w, .iov_len = sizeof w};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))}; /* no room for a second one */
    ssize_t got = TEMP_FAILURE_RETRY(recvmsg(s, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC));
    int memory = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (got > 0 && c != NULL && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&memory, CMSG_DATA(c), sizeof memory);
    }
    if (got != (ssize_t)sizeof w || w.magic != HELLO_MAGIC) {
        *result = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? HCCL_E_TIMEOUT : HCCL_E_TCP_TRANSFER;
    } else {
        *result = w.result == 0 && memory < 0 ? HCCL_E_TCP_TRANSFER : (HcclResult)w.result;
    }
    return memory;
}

/* Connect, trying again until the deadline while nobody has opened the meeting. */
static int knock(const char *name, int64_t deadline, HcclResult *result) {
    struct sockaddr_un address;
    socklen_t length = abstractName(name, &address);
    for (;;) {
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s < 0) {
            *result = HCCL_E_SYSCALL;
            return -1;
        }
        if (connect(s, (struct sockaddr *)&address, length) == 0) {
            return s;
        }
        int why = errno;
        close(s);
        bool again = why == ECONNREFUSED || why == EAGAIN || why == EINTR;
        if (!again || nowMs() >= deadline) {
            *result = again ? HCCL_E_TIMEOUT : HCCL_E_TCP_CONNECT;
            return -1;
        }
        poll(NULL, 0, RETRY_MS);
    }
}

HcclResult rendezvousJoin(const char *name, uint32_t rank, uint32_t ranks, int64_t timeoutMs, int *memory) {
    HcclResult result = HCCL_E_TCP_TRANSFER;
    int s = knock(name, nowMs() + timeoutMs, &result);
    if (s < 0) {
        return result;
    }
    hello h = {.magic = HELLO_MAGIC, .rank = rank, .ranks = ranks};
    int64_t patience = timeoutMs + GRACE_MS; /* the root tells of the time-out, if it lives */
    struct timeval limit = {.tv_sec = patience / 1000, .tv_usec = patience % 1000 * 1000};
    *memory = -1;
    if (!sameUser(s)) { /* abstract names are anybody's */
        result = HCCL_E_PARA;
    } else if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
               TEMP_FAILURE_RETRY(send(s, &h, sizeof h, MSG_NOSIGNAL)) == (ssize_t)sizeof h) {
        *memory = receiveMemory(s, &result);
    }
    close(s);
    if (result != HCCL_SUCCESS && *memory >= 0) {
        close(*memory);
        *memory = -1;
    }
    return result;
}
