/* What clients of the emulated CANN share that live through failing calls: a round of work, then the state of things.
 * A round returns a code of CANN's and leaves nothing behind; what it says went well did go well. */
#ifndef PROMISE_H
#define PROMISE_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int code;
    const char *call;
} outcome;

#define BROKEN(...)                                      \
    do {                                                 \
        fprintf(stderr, "broken promise: " __VA_ARGS__); \
        fprintf(stderr, "\n");                           \
        _exit(3);                                        \
    } while (0)

/* The first call that fails ends the round. */
#define TRY(CALL)                                                     \
    do {                                                              \
        int code_ = (CALL);                                           \
        if (code_ != 0) {                                             \
            if (code_ < 0) BROKEN("%s returned %d", #CALL, code_);    \
            if (ended.code == 0) ended = (outcome){code_, #CALL};     \
            goto out;                                                 \
        }                                                             \
    } while (0)
/* What gives something back may fail once, and works when it is called again, or has worked. */
#define GIVE(CALL)                                                             \
    do {                                                                       \
        int code_ = (CALL);                                                    \
        if (code_ != 0 && ended.code == 0) ended = (outcome){code_, #CALL};    \
        if (code_ != 0) (void)(CALL);                                          \
    } while (0)

static inline int entries(const char *folder) {
    int count = 0;
    DIR *open = opendir(folder);
    while (open && readdir(open)) count++;
    if (open) closedir(open);
    return count;
}

/* What this process still holds of the emulated node: of node.h, the numbers of its slot. */
static inline uint64_t heldOfNode(void) {
    struct {
        int32_t pid, reserved;
        uint64_t started;
        struct {
            uint64_t hbm;
            uint32_t streams, users;
        } chip[64];
    } slot;
    uint64_t held = 0;
    int file = open(getenv("CAPTURE_CANARY_EMULATE_NODE"), O_RDONLY);
    for (int i = 0; file >= 0 && pread(file, &slot, sizeof slot, 16 + i * (long)sizeof slot) == sizeof slot; i++)
        for (int chip = 0; slot.pid == getpid() && chip < 64; chip++)
            held += slot.chip[chip].hbm + slot.chip[chip].streams + slot.chip[chip].users;
    if (file >= 0) close(file);
    return held;
}

/* Threads and what they hold end a little after they are told to. */
static inline void nothingIsLeft(const char *when, int before, int descriptors, int patience) {
    int threads = 0, now = 0;
    uint64_t held = 0;
    for (int i = 0; i < patience * 100; i++) {
        threads = entries("/proc/self/task");
        now = entries("/proc/self/fd");
        held = heldOfNode();
        if (threads <= before && now <= descriptors && held == 0) return;
        usleep(10000);
    }
    BROKEN("%s: %d threads (%d before), %d descriptors (%d before), %lu of the node", when, threads - 2, before - 2, now,
           descriptors, (unsigned long)held);
}

static inline void stopFailing(void) {
    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "failingStop");
    if (stop) stop();
}

/* A round that may fail, one that must not, and nothing is left after either. The node's file and HCCL's environment
 * stay open or read for the life of a process: a round without failures before would hide how they are made. */
static inline int keepsItsPromise(outcome (*round)(void), int patience) {
#ifdef __SANITIZE_THREAD__
    enum { KEPT_OPEN = 1, SANITIZERS_THREADS = 1 };
#else
    enum { KEPT_OPEN = 1, SANITIZERS_THREADS = 0 };
#endif
    int threads = entries("/proc/self/task") + SANITIZERS_THREADS;
    int descriptors = entries("/proc/self/fd") + KEPT_OPEN;
    outcome first = round();
    stopFailing();
    nothingIsLeft("after what failed", threads, descriptors, patience);
    outcome second = round();
    if (second.code != 0) BROKEN("later: %s returned %d", second.call, second.code);
    nothingIsLeft("later", threads, descriptors, patience);
    printf("%d %s\n", first.code, first.call ? first.call : "");
    return 0;
}

#endif
