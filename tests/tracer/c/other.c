/* Another preloaded library that stands in front of CANN and of libc, as profilers do; says at exit what it saw.
 * BY_HANDLE: it looks for what it forwards to in CANN's library (as libmspti does), else by RTLD_NEXT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cann.h"

static int copies, begins, collectives, parents;

static void *real(const char *name) {
#ifdef BY_HANDLE
    void *found = dlsym(dlopen("libascendcl.so", RTLD_LAZY), name);
    if (found == NULL) {
        found = dlsym(dlopen("libhccl.so", RTLD_LAZY), name);
    }
    return found;
#else
    return dlsym(RTLD_NEXT, name);
#endif
}

int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
    static int (*next)(void *, size_t, const void *, size_t, int);
    copies++;
    if (next == NULL) {
        next = (int (*)(void *, size_t, const void *, size_t, int))real("aclrtMemcpy");
    }
    return next(to, room, from, bytes, kind);
}

int aclmdlRICaptureBegin(void *stream, int mode) {
    int (*next)(void *, int) = (int (*)(void *, int))real("aclmdlRICaptureBegin");
    begins++;
    return next(stream, mode);
}

int HcclAllReduce(void *from, void *to, uint64_t count, int type, int op, void *comm, void *stream) {
    int (*next)(void *, void *, uint64_t, int, int, void *, void *) =
        (int (*)(void *, void *, uint64_t, int, int, void *, void *))real("HcclAllReduce");
    collectives++;
    return next(from, to, count, type, op, comm, stream);
}

pid_t getppid(void) { /* not one of the tracer's: RTLD_NEXT must lead on, never back to us */
    pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");
    parents++;
    return parents > 100 ? (abort(), 0) : next();
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "other: copies=%d begins=%d collectives=%d parents=%d\n", copies, begins, collectives, parents);
}
