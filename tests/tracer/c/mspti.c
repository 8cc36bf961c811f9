/* A stand-in for CANN's libmspti.so: preloaded, in front of CANN's memory functions, which it finds by libascendcl's
 * handle (mspti, csrc/common/inject/acl_mem_inject.cpp). Says at exit what it saw. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int copies, others;

static void *real(const char *name) {
    return dlsym(dlopen("libascendcl.so", RTLD_LAZY), name);
}

int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
    int (*next)(void *, size_t, const void *, size_t, int) =
        (int (*)(void *, size_t, const void *, size_t, int))real("aclrtMemcpy");
    __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
    return next(to, room, from, bytes, kind);
}

int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) {
    int (*next)(void *, size_t, const void *, size_t, int, void *) =
        (int (*)(void *, size_t, const void *, size_t, int, void *))real("aclrtMemcpyAsync");
    __atomic_add_fetch(&others, 1, __ATOMIC_RELAXED);
    return next(to, room, from, bytes, kind, stream);
}

int aclrtMalloc(void **made, size_t bytes, int policy) {
    int (*next)(void **, size_t, int) = (int (*)(void **, size_t, int))real("aclrtMalloc");
    __atomic_add_fetch(&others, 1, __ATOMIC_RELAXED);
    return next(made, bytes, policy);
}

int aclrtFree(void *memory) {
    int (*next)(void *) = (int (*)(void *))real("aclrtFree");
    __atomic_add_fetch(&others, 1, __ATOMIC_RELAXED);
    return next(memory);
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "mspti: copies=%d others=%d\n", copies, others);
}
