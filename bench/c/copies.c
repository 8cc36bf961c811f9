/* Copies, captured or not, through a stand-in for CANN that does next to nothing: what is left is the cost of watching.
 * Compiled twice: -DCANN is the library, else the client: copies CAPTURED COUNT. Prints ns a copy. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef CANN
static volatile unsigned long copied;

int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
    copied += bytes;
    return 0;
}
int aclmdlRICaptureBegin(void *stream, int mode) {
    return 0;
}
int aclmdlRICaptureEnd(void *stream, void **graph) {
    return 0;
}
#else
int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind);
int aclmdlRICaptureBegin(void *stream, int mode);
int aclmdlRICaptureEnd(void *stream, void **graph);

static char device[64], host[64];

__attribute__((noinline)) void copies(long count) { /* what callgrind counts */
    for (long i = 0; i < count; i++) {
        aclrtMemcpy(device, sizeof device, host, sizeof host, 1);
    }
}

int main(int argc, char **argv) {
    struct timespec begin, end;
    int captured = atoi(argv[1]);
    long count = atol(argv[2]);
    void *graph;
    aclrtMemcpy(device, sizeof device, host, sizeof host, 1); /* finds its target */
    if (captured) {
        aclmdlRICaptureBegin(host, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    copies(count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (captured) {
        aclmdlRICaptureEnd(host, &graph);
    }
    printf("%.2f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / count);
    return 0;
}
#endif
