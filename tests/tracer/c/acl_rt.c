/* A stand-in for libacl_rt.so: copies, devices and captures that only keep count. */
#include <errno.h>
#include <string.h>

#include "cann.h"

static __thread int32_t device;

static int leave(int code) {
    errno = ERRNO_OF_CANN;
    return code;
}

int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
    if (bytes == BYTES_THAT_FAIL) {
        return leave(107030);
    }
    memcpy(to, from, bytes < room ? bytes : room);
    return leave(0);
}

int aclrtSetDevice(int32_t chosen) {
    device = chosen;
    return leave(0);
}

int aclrtGetDevice(int32_t *current) {
    *current = device;
    return leave(0);
}

int aclmdlRICaptureBegin(void *stream, int mode) {
    return leave(stream == STREAM_THAT_FAILS ? 207008 : 0);
}

int aclmdlRICaptureEnd(void *stream, void **graph) {
    *graph = stream;
    return leave(stream == (void *)0xbadeed ? 107025 : 0);
}

int aclmdlRIDestroy(void *graph) {
    return leave(0);
}
