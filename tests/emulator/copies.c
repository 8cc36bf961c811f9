/* Preloaded by tests: counts the calling thread's H2D copies and frames, seen at the borders between libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static _Thread_local uint64_t copies, bytes, toHost, frames, mallocs;

uint64_t countedCopies(void) { return copies; }
uint64_t countedBytes(void) { return bytes; }
uint64_t countedToHost(void) { return toHost; }
uint64_t countedFrames(void) { return frames; }
uint64_t countedMallocs(void) { return mallocs; }
void countFromZero(void) { copies = bytes = toHost = frames = mallocs = 0; }

/* By the library's handle: a client may have loaded it RTLD_LOCAL, where RTLD_NEXT does not look. */
static void *real(const char *name) { return dlsym(dlopen("libacl_rt.so", RTLD_NOLOAD | RTLD_NOW), name); }

int aclrtMemcpy(void *to, size_t most, const void *from, size_t count, int kind) {
    int (*copy)(void *, size_t, const void *, size_t, int) = real("aclrtMemcpy");
    copies += kind == 1;
    bytes += kind == 1 ? count : 0;
    toHost += kind == 2;
    return copy(to, most, from, count, kind);
}

int aclmdlRICaptureThreadExchangeMode(int *mode) {
    int (*exchange)(int *) = real("aclmdlRICaptureThreadExchangeMode");
    frames++;
    return exchange(mode);
}

int aclrtMalloc(void **device, size_t size, int policy) {
    int (*allocate)(void **, size_t, int) = real("aclrtMalloc");
    mallocs++;
    return allocate(device, size, policy);
}
