/* Lives through failing calls on one device: memory, copies, streams, events, captures, graphs. */
#include "promise.h"

int aclInit(const char *), aclrtSetDevice(int), aclrtResetDevice(int);
int aclrtCreateContext(void **, int), aclrtDestroyContext(void *), aclrtSetCurrentContext(void *), aclrtGetCurrentContext(void **);
int aclrtMalloc(void **, size_t, int), aclrtFree(void *), aclrtMallocHost(void **, size_t), aclrtFreeHost(void *);
int aclrtMemcpy(void *, size_t, const void *, size_t, int), aclrtMemset(void *, size_t, int, size_t);
int aclrtMemcpyAsync(void *, size_t, const void *, size_t, int, void *);
int aclrtMemsetAsync(void *, size_t, int, size_t, void *);
int aclrtGetMemInfo(int, size_t *, size_t *);
int aclrtReserveMemAddress(void **, size_t, size_t, void *, uint64_t), aclrtReleaseMemAddress(void *);
int aclrtMallocPhysical(void **, size_t, const void *, uint64_t), aclrtFreePhysical(void *);
int aclrtMapMem(void *, size_t, size_t, void *, uint64_t), aclrtUnmapMem(void *);
int aclrtCreateStream(void **), aclrtDestroyStream(void *), aclrtSynchronizeStream(void *), aclrtSynchronizeDevice(void);
int aclrtCreateEventExWithFlag(void **, uint32_t), aclrtDestroyEvent(void *), aclrtRecordEvent(void *, void *);
int aclrtStreamWaitEvent(void *, void *), aclrtEventElapsedTime(float *, void *, void *), aclrtSynchronizeEvent(void *);
int aclrtLaunchHostFunc(void *, void (*)(void *), void *);
int aclmdlRICaptureBegin(void *, int), aclmdlRICaptureEnd(void *, void **), aclmdlRIDestroy(void *);
int aclmdlRICaptureTaskGrpBegin(void *), aclmdlRICaptureTaskGrpEnd(void *, void **);
int aclmdlRICaptureTaskUpdateBegin(void *, void *), aclmdlRICaptureTaskUpdateEnd(void *);
int aclmdlRIExecuteAsync(void *, void *), aclmdlRIDebugJsonPrint(void *, const char *, uint32_t);
int aclmdlRIDestroyRegisterCallback(void *, void (*)(void *), void *);

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, SMALL = 4096, BIG = 1 << 20, TASKS = 20, GRAIN = 2 << 20 };

static void *small, *other, *big, *host, *context, *stream, *second, *event, *after, *graph, *group, *range, *physical;
static bool mapped;

static void bump(void *number) {
    ++*(int *)number;
}

static void filled(const void *memory, int value, size_t bytes, const char *by) {
    static unsigned char copy[BIG];
    int code = aclrtMemcpy(copy, bytes, memory, bytes, TO_HOST);
    for (size_t i = 0; code == 0 && i < bytes; i++)
        if (copy[i] != value) BROKEN("%s: byte %zu is %d, not %d", by, i, copy[i], value);
}

static outcome copies(outcome ended) {
    TRY(aclrtMalloc(&small, SMALL, 0));
    TRY(aclrtMalloc(&other, SMALL, 0));
    TRY(aclrtMalloc(&big, BIG, 0));
    TRY(aclrtMallocHost(&host, SMALL));
    memset(host, 7, SMALL);
    TRY(aclrtMemcpy(small, SMALL, host, SMALL, TO_DEVICE));
    filled(small, 7, SMALL, "a copy");
    TRY(aclrtMemset(big, BIG, 9, BIG));
    filled(big, 9, BIG, "a fill");
out:
    return ended;
}

static outcome expandable(outcome ended) {
    const struct {
        int handle, allocation, attribute;
        uint32_t id, type;
        uint64_t reserve;
    } of = {.type = 1};
    TRY(aclrtReserveMemAddress(&range, GRAIN, 0, NULL, 0));
    TRY(aclrtMallocPhysical(&physical, GRAIN, &of, 0));
    TRY(aclrtMapMem(range, GRAIN, 0, physical, 0));
    mapped = true;
    TRY(aclrtMemset(range, GRAIN, 5, BIG));
    filled(range, 5, BIG, "mapped memory");
out:
    return ended;
}

static outcome streams(outcome ended) {
    int calls = 0;
    float passed;
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtCreateStream(&second));
    TRY(aclrtCreateEventExWithFlag(&event, 0));
    TRY(aclrtCreateEventExWithFlag(&after, 0));
    TRY(aclrtMemsetAsync(small, SMALL, 3, SMALL, stream));
    TRY(aclrtRecordEvent(event, stream));
    TRY(aclrtStreamWaitEvent(second, event));
    TRY(aclrtMemcpyAsync(other, SMALL, small, SMALL, ON_DEVICE, second));
    TRY(aclrtRecordEvent(after, second));
    TRY(aclrtLaunchHostFunc(second, bump, &calls));
    TRY(aclrtSynchronizeEvent(after));
    TRY(aclrtEventElapsedTime(&passed, event, after));
    filled(other, 3, SMALL, "two streams");
out:
    if (stream) aclrtSynchronizeStream(stream);
    if (second) aclrtSynchronizeStream(second);
    if (ended.code == 0 && calls != 1) BROKEN("a host call ran %d times", calls);
    return ended;
}

/* Two streams, more tasks than a graph has room for at first, and a group of tasks that is replaced later. */
static outcome capture(outcome ended) {
    TRY(aclmdlRICaptureBegin(stream, 0));
    TRY(aclrtMemsetAsync(small, SMALL, 1, SMALL, stream));
    TRY(aclrtRecordEvent(event, stream));
    TRY(aclrtStreamWaitEvent(second, event));
    for (int i = 0; i < TASKS; i++) TRY(aclrtMemcpyAsync(other, SMALL, small, SMALL, ON_DEVICE, second));
    TRY(aclrtRecordEvent(after, second));
    TRY(aclrtStreamWaitEvent(stream, after));
    TRY(aclmdlRICaptureTaskGrpBegin(stream));
    TRY(aclrtMemsetAsync(big, BIG, 2, BIG, stream));
    TRY(aclmdlRICaptureTaskGrpEnd(stream, &group));
out:
    if (ended.code == 0) {
        int code = aclmdlRICaptureEnd(stream, &graph);
        if (code != 0) ended = (outcome){code, "aclmdlRICaptureEnd"};
    } else {
        (void)aclmdlRICaptureEnd(stream, &graph);
    }
    return ended;
}

static outcome replay(outcome ended) {
    char json[512];
    snprintf(json, sizeof json, "%s.json", getenv("CAPTURE_CANARY_EMULATE_NODE"));
    for (int i = 0; i < 2; i++) TRY(aclmdlRIExecuteAsync(graph, second));
    TRY(aclrtSynchronizeStream(second));
    filled(other, 1, SMALL, "a replay");
    filled(big, 2, BIG, "a replay's group");
    TRY(aclmdlRICaptureTaskUpdateBegin(stream, group));
    int launched = aclrtMemsetAsync(big, BIG, 4, BIG, stream);
    int updated = aclmdlRICaptureTaskUpdateEnd(stream);
    TRY(launched);
    TRY(updated);
    TRY(aclmdlRIExecuteAsync(graph, NULL));
    TRY(aclrtSynchronizeDevice());
    filled(big, 4, BIG, "an updated group");
    TRY(aclmdlRIDebugJsonPrint(graph, json, 0));
out:
    return ended;
}

static outcome give(outcome ended) {
    static int destroyed;
    int before = destroyed;
    bool told = graph && aclmdlRIDestroyRegisterCallback(graph, bump, &destroyed) == 0;
    if (graph) GIVE(aclmdlRIDestroy(graph));
    if (told && destroyed != before + 1) BROKEN("a graph's end was told %d times", destroyed - before);
    if (event) GIVE(aclrtDestroyEvent(event));
    if (after) GIVE(aclrtDestroyEvent(after));
    if (stream) GIVE(aclrtDestroyStream(stream));
    if (second) GIVE(aclrtDestroyStream(second));
    if (mapped) GIVE(aclrtUnmapMem(range));
    if (physical) GIVE(aclrtFreePhysical(physical));
    if (range) GIVE(aclrtReleaseMemAddress(range));
    void *const memory[] = {small, other, big};
    for (int i = 0; i < 3; i++)
        if (memory[i]) GIVE(aclrtFree(memory[i]));
    if (host) GIVE(aclrtFreeHost(host));
    return ended;
}

static outcome work(void) {
    outcome ended = {0, NULL};
    size_t available, before, total;
    void *primary = NULL;
    bool set = false;
    small = other = big = host = context = stream = second = event = after = graph = group = range = physical = NULL;
    mapped = false;
    TRY(aclrtSetDevice(0));
    set = true;
    TRY(aclrtGetMemInfo(1, &before, &total));
    TRY(aclrtGetCurrentContext(&primary));
    TRY(aclrtCreateContext(&context, 0));
    TRY(aclrtSetCurrentContext(primary));
    ended = copies(ended);
    if (ended.code == 0) ended = expandable(ended);
    if (ended.code == 0) ended = streams(ended);
    if (ended.code == 0) ended = capture(ended);
    if (ended.code == 0) ended = replay(ended);
    ended = give(ended);
    if (ended.code == 0) TRY(aclrtGetMemInfo(1, &available, &total));
    if (ended.code == 0 && available != before) BROKEN("%zu bytes of HBM are gone", before - available);
out:
    if (context) GIVE(aclrtDestroyContext(context));
    if (set) GIVE(aclrtResetDevice(0));
    return ended;
}

/* A neighbour on the node: holds memory, and says at each line it reads what it still holds. */
static int hold(void) {
    char line[8];
    if (aclrtSetDevice(0) != 0 || aclrtMalloc(&big, BIG, 0) != 0) return 1;
    do printf("%lu\n", (unsigned long)heldOfNode()), fflush(stdout);
    while (fgets(line, sizeof line, stdin));
    return 0;
}

int main(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], "hold") == 0 ? hold() : keepsItsPromise(work, 5);
}
