/* A client of the emulated CANN: three captures of 1, 2, 3 synchronous H2D copies, made as HCCL makes them. */
#include <stdint.h>
#include <stdio.h>

#include "cann.h"

int aclInit(const char *config);
int aclrtCreateStream(void **stream);
int aclrtMalloc(void **memory, size_t bytes, int policy);
int aclmdlRICaptureThreadExchangeMode(int *mode);

enum { GLOBAL_MODE = 0, RELAXED_MODE = 2 };

#define CHECK(call)                                               \
    do {                                                          \
        int code_ = (call);                                       \
        if (code_ != 0) {                                         \
            fprintf(stderr, "%s: %d\n", #call, code_);            \
            return 91;                                            \
        }                                                         \
    } while (0)

int main(void) {
    void *stream, *memory, *graph;
    char host[BYTES_A_COPY] = {0};
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtMalloc(&memory, sizeof host, 0));
    CHECK(aclrtMemcpy(memory, sizeof host, host, sizeof host, HOST_TO_DEVICE));
    for (int n = 1; n <= 3; n++) {
        int mode = RELAXED_MODE;
        CHECK(aclmdlRICaptureBegin(stream, GLOBAL_MODE));
        CHECK(aclmdlRICaptureThreadExchangeMode(&mode));
        for (int i = 0; i < n; i++) {
            CHECK(aclrtMemcpy(memory, sizeof host, host, sizeof host, HOST_TO_DEVICE));
        }
        CHECK(aclmdlRICaptureThreadExchangeMode(&mode));
        if (aclrtMemcpy(memory, sizeof host, host, sizeof host, HOST_TO_DEVICE) == 0) {
            fprintf(stderr, "a synchronous copy in a GLOBAL capture went through\n");
            return 92;
        }
        CHECK(aclmdlRICaptureEnd(stream, &graph));
    }
    return 0;
}
