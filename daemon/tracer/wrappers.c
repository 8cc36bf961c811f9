/* The functions of CANN that we stand in front of: each calls the real one, and notes what it was.
 * Everything is forwarded untouched, and errno is what the real function left. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

#define ACL_FEATURE_UNSUPPORTED 100009 /* what to say where a weak reference to us led and this CANN has nothing */
#define HCCL_NOT_SUPPORTED 5
#define COPY_HOST_TO_DEVICE 1

#define UNPACK(...) __VA_ARGS__

/* One entry a way (tracerSymbol says why), with the same body. The first call of the global one finds its target, in a
 * function of its own so that later calls save no registers for it. */
#define ENTRY_global(NAME, UNSUPPORTED, PARAMETERS, ARGUMENTS)                                                    \
    static __attribute__((noinline)) int first_##NAME PARAMETERS {                                                \
        NAME##Function *real = (NAME##Function *)tracerFindGlobal(FN_##NAME, __builtin_return_address(0));        \
        return real != NULL ? through_##NAME(real, UNPACK ARGUMENTS) : UNSUPPORTED;                               \
    }                                                                                                             \
    static int global_##NAME PARAMETERS {                                                                         \
        void *target = atomic_load_explicit(&tracerSymbols[FN_##NAME].global_target, memory_order_acquire);       \
        return TRACER_LIKELY(target != NULL) ? through_##NAME((NAME##Function *)target, UNPACK ARGUMENTS)         \
                                             : first_##NAME ARGUMENTS;                                            \
    }
#define ENTRY_handle(NAME, PARAMETERS, ARGUMENTS)                                                            \
    static int handle_##NAME PARAMETERS {                                                                    \
        void *target = atomic_load_explicit(&tracerSymbols[FN_##NAME].handle_target, memory_order_acquire);  \
        return through_##NAME((NAME##Function *)target, UNPACK ARGUMENTS);                                   \
    }

/* Exports NAME by an alias: the table needs our own entry's address, not what NAME means to the process. */
#define ENTRIES(NAME, UNSUPPORTED, PARAMETERS, ARGUMENTS)   \
    ENTRY_global(NAME, UNSUPPORTED, PARAMETERS, ARGUMENTS)  \
    ENTRY_handle(NAME, PARAMETERS, ARGUMENTS)               \
    TRACER_EXPORT int NAME PARAMETERS __attribute__((alias("global_" #NAME)));

#define WRAPPED(NAME, UNSUPPORTED, PARAMETERS, ARGUMENTS)                                        \
    typedef int NAME##Function PARAMETERS;                                                       \
    static inline __attribute__((always_inline)) int through_##NAME(NAME##Function *real, UNPACK PARAMETERS); \
    ENTRIES(NAME, UNSUPPORTED, PARAMETERS, ARGUMENTS)                                            \
    static inline int through_##NAME(NAME##Function *real, UNPACK PARAMETERS)

/* --- copies --- */

typedef int copyFunction(void *to, size_t room, const void *from, size_t bytes, int kind);

/* Set while this thread is inside a copy: another preloaded library's may lead through us again. */
static __thread __attribute__((tls_model("initial-exec"))) bool copying;

static inline __attribute__((always_inline)) uint64_t ticksOf(enum tracerTimer timer) {
    return timer == TIMER_COUNTER ? tracerCounter() : timer == TIMER_CLOCK ? tracerNow() : 0;
}

static inline __attribute__((always_inline)) int countedCopy(enum tracerTimer timer, void *to, size_t room,
                                                             const void *from, size_t bytes, copyFunction *real) {
    if (TRACER_UNLIKELY(copying)) {
        return real(to, room, from, bytes, COPY_HOST_TO_DEVICE);
    }
    copying = true;
    uint64_t begin = ticksOf(timer);
    int code = real(to, room, from, bytes, COPY_HOST_TO_DEVICE);
    uint64_t ticks = ticksOf(timer) - begin;
    copying = false;
    if (TRACER_LIKELY(code == 0)) {
        tracerCountH2d(bytes, ticks, timer != TIMER_OFF);
    }
    return code;
}

/* A function for each timer, jumped to: none saves a register, or asks a question, that only another one needs. */
#define COUNTED(NAME, TIMER)                                                                            \
    static __attribute__((noinline)) int NAME(void *to, size_t room, const void *from, size_t bytes,    \
                                              copyFunction *real) {                                     \
        return countedCopy(TIMER, to, room, from, bytes, real);                                         \
    }
COUNTED(copyUntimed, TIMER_OFF)
COUNTED(copyByCounter, TIMER_COUNTER)
COUNTED(copyByClock, TIMER_CLOCK)

static __attribute__((noinline)) int otherCopy(void *to, size_t room, const void *from, size_t bytes, int kind,
                                               copyFunction *real) {
    if (copying || bytes == 0) {
        return real(to, room, from, bytes, kind);
    }
    copying = true;
    int code = real(to, room, from, bytes, kind);
    copying = false;
    if (code == 0) {
        tracerCountOther(kind);
    }
    return code;
}

/* Only synchronous copies: an aclrtMemcpyAsync in a capture becomes a node of the graph, and costs at replay.
 * Only copies that say host to device, as HCCL's do; what ACL_MEMCPY_DEFAULT turned out to be is not asked (that would
 * be a call into the driver), it is counted apart. */
WRAPPED(aclrtMemcpy, ACL_FEATURE_UNSUPPORTED, (void *to, size_t room, const void *from, size_t bytes, int kind),
        (to, room, from, bytes, kind)) {
    if (TRACER_UNLIKELY(kind != COPY_HOST_TO_DEVICE || bytes == 0)) {
        return otherCopy(to, room, from, bytes, kind, real);
    }
    switch (tracerTimer) {
    case TIMER_COUNTER: return copyByCounter(to, room, from, bytes, real);
    case TIMER_CLOCK: return copyByClock(to, room, from, bytes, real);
    default: return copyUntimed(to, room, from, bytes, real);
    }
}

/* --- captures --- */

WRAPPED(aclmdlRICaptureBegin, ACL_FEATURE_UNSUPPORTED, (void *stream, int mode), (stream, mode)) {
    int before = errno;
    tracerCapture *capture = NULL;
    if (tracerActivate()) {
        capture = tracerCaptureBegins(stream);
    }
    errno = before;
    int code = real(stream, mode);
    before = errno;
    if (capture != NULL) {
        tracerCaptureBegan(capture, code);
    }
    errno = before;
    return code;
}

WRAPPED(aclmdlRICaptureEnd, ACL_FEATURE_UNSUPPORTED, (void *stream, void **graph), (stream, graph)) {
    int code = real(stream, graph);
    int before = errno;
    uint64_t end_ns = tracerNow();
    tracerCapture *capture = tracerCaptureFind(stream);
    if (capture != NULL) {
        tracerCaptureEnded(capture, code, end_ns);
    }
    errno = before;
    return code;
}

WRAPPED(aclmdlRIDestroy, ACL_FEATURE_UNSUPPORTED, (void *graph), (graph)) {
    int code = real(graph);
    if (code == 0) {
        tracerGraphDestroyed();
    }
    return code;
}

/* --- communicators --- */

/* Set while this thread is inside HCCL: its functions may be made of one another, and the outermost counts. */
static __thread __attribute__((tls_model("initial-exec"))) bool inHccl;

static void hcclStarts(void) {
    int before = errno;
    tracerActivate();
    tracerHcclStarts();
    errno = before;
}

static void communicatorMade(int code, void **handle, uint32_t ranks, uint32_t rank, const void *config) {
    int before = errno;
    if (code == 0 && handle != NULL && *handle != NULL) {
        tracerCommunicatorMade(*handle, ranks, rank, config);
    }
    errno = before;
}

/* What makes a communicator: NOTE says how many ranks it has, which this one is, and its configuration. */
#define MAKER(NAME, PARAMETERS, ARGUMENTS, NOTE)               \
    WRAPPED(NAME, HCCL_NOT_SUPPORTED, PARAMETERS, ARGUMENTS) { \
        if (inHccl) {                                          \
            return real ARGUMENTS;                             \
        }                                                      \
        inHccl = true;                                         \
        hcclStarts();                                          \
        int code = real ARGUMENTS;                             \
        NOTE;                                                  \
        inHccl = false;                                        \
        return code;                                           \
    }

MAKER(HcclGetRootInfo, (void *root), (root), (void)0)
MAKER(HcclCommInitRootInfo, (uint32_t ranks, const void *root, uint32_t rank, void **made), (ranks, root, rank, made),
      communicatorMade(code, made, ranks, rank, NULL))
MAKER(HcclCommInitRootInfoConfig,
      (uint32_t ranks, const void *root, uint32_t rank, const void *config, void **made),
      (ranks, root, rank, config, made), communicatorMade(code, made, ranks, rank, config))
MAKER(HcclCommInitClusterInfo, (const char *cluster, uint32_t rank, void **made), (cluster, rank, made),
      communicatorMade(code, made, 0, rank, NULL))
MAKER(HcclCommInitClusterInfoConfig, (const char *cluster, uint32_t rank, void *config, void **made),
      (cluster, rank, config, made), communicatorMade(code, made, 0, rank, config))
MAKER(HcclCreateSubCommConfig,
      (void **of, uint32_t ranks, uint32_t *ids, uint64_t id, uint32_t rank, void *config, void **made),
      (of, ranks, ids, id, rank, config, made), communicatorMade(code, made, ranks, rank, config))
MAKER(HcclCommInitAll, (uint32_t devices, int32_t *ids, void **made), (devices, ids, made),
      for (uint32_t i = 0; made != NULL && i < devices; i++) communicatorMade(code, &made[i], devices, i, NULL))

WRAPPED(HcclCommDestroy, HCCL_NOT_SUPPORTED, (void *communicator), (communicator)) {
    int code = real(communicator);
    if (code == 0) {
        tracerCommunicatorDestroyed(communicator);
    }
    return code;
}

/* --- collectives --- */

static void collectiveDone(int code, enum traceCollective kind, void *communicator) {
    int before = errno;
    inHccl = false;
    if (code == 0) {
        tracerCountCollective(kind, communicator);
    }
    errno = before;
}

#define COLLECTIVE(NAME, KIND, PARAMETERS, ARGUMENTS)                 \
    WRAPPED(NAME, HCCL_NOT_SUPPORTED, PARAMETERS, ARGUMENTS) {        \
        if (inHccl) {                                          \
            return real ARGUMENTS;                                    \
        }                                                             \
        inHccl = true;                                         \
        int code = real ARGUMENTS;                                    \
        collectiveDone(code, KIND, comm);                             \
        return code;                                                  \
    }

COLLECTIVE(HcclAllReduce, TRACE_ALL_REDUCE,
           (void *from, void *to, uint64_t count, int type, int op, void *comm, void *stream),
           (from, to, count, type, op, comm, stream))
COLLECTIVE(HcclAllGather, TRACE_ALL_GATHER,
           (void *from, void *to, uint64_t count, int type, void *comm, void *stream),
           (from, to, count, type, comm, stream))
COLLECTIVE(HcclAllGatherV, TRACE_ALL_GATHER_V,
           (void *from, uint64_t count, void *to, const void *counts, const void *shifts, int type, void *comm,
            void *stream),
           (from, count, to, counts, shifts, type, comm, stream))
COLLECTIVE(HcclReduceScatter, TRACE_REDUCE_SCATTER,
           (void *from, void *to, uint64_t count, int type, int op, void *comm, void *stream),
           (from, to, count, type, op, comm, stream))
COLLECTIVE(HcclReduceScatterV, TRACE_REDUCE_SCATTER_V,
           (void *from, const void *counts, const void *shifts, void *to, uint64_t count, int type, int op, void *comm,
            void *stream),
           (from, counts, shifts, to, count, type, op, comm, stream))
COLLECTIVE(HcclBroadcast, TRACE_BROADCAST,
           (void *buffer, uint64_t count, int type, uint32_t root, void *comm, void *stream),
           (buffer, count, type, root, comm, stream))
COLLECTIVE(HcclScatter, TRACE_SCATTER,
           (void *from, void *to, uint64_t count, int type, uint32_t root, void *comm, void *stream),
           (from, to, count, type, root, comm, stream))
COLLECTIVE(HcclReduce, TRACE_REDUCE,
           (void *from, void *to, uint64_t count, int type, int op, uint32_t root, void *comm, void *stream),
           (from, to, count, type, op, root, comm, stream))
COLLECTIVE(HcclAlltoAll, TRACE_ALL_TO_ALL,
           (const void *from, uint64_t sent, int sent_type, const void *to, uint64_t got, int got_type, void *comm,
            void *stream),
           (from, sent, sent_type, to, got, got_type, comm, stream))
COLLECTIVE(HcclAlltoAllV, TRACE_ALL_TO_ALL_V,
           (const void *from, const void *sent, const void *sent_at, int sent_type, const void *to, const void *got,
            const void *got_at, int got_type, void *comm, void *stream),
           (from, sent, sent_at, sent_type, to, got, got_at, got_type, comm, stream))
COLLECTIVE(HcclAlltoAllVC, TRACE_ALL_TO_ALL_VC,
           (const void *from, const void *matrix, int sent_type, const void *to, int got_type, void *comm,
            void *stream),
           (from, matrix, sent_type, to, got_type, comm, stream))
COLLECTIVE(HcclSend, TRACE_SEND, (void *from, uint64_t count, int type, uint32_t peer, void *comm, void *stream),
           (from, count, type, peer, comm, stream))
COLLECTIVE(HcclRecv, TRACE_RECV, (void *to, uint64_t count, int type, uint32_t peer, void *comm, void *stream),
           (to, count, type, peer, comm, stream))
COLLECTIVE(HcclBatchSendRecv, TRACE_BATCH_SEND_RECV, (void *items, uint32_t count, void *comm, void *stream),
           (items, count, comm, stream))

tracerSymbol tracerSymbols[TRACER_FUNCTION_COUNT] = {
#define X(NAME) [FN_##NAME] = {.name = #NAME, .global_entry = (void *)global_##NAME, .handle_entry = (void *)handle_##NAME},
    TRACER_FUNCTIONS(X)
#undef X
};

/* Tells a process that asks whether it is being traced, and in which format. */
TRACER_EXPORT const uint32_t captureTraceVersion = TRACE_VERSION;
