/* What the tracer's own parts share. Nothing here is exported. */
#ifndef TRACER_H
#define TRACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace_format.h"

/* Declared hidden, not only defined so: then they are reached without a look into the global offset table. */
#pragma GCC visibility push(hidden)

#define TRACER_EXPORT __attribute__((visibility("default")))
#define TRACER_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TRACER_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* --- symbols.c: the functions we stand in front of, and where the real ones are --- */

#define TRACER_FUNCTIONS(X)         \
    X(aclrtMemcpy)                  \
    X(aclmdlRICaptureBegin)         \
    X(aclmdlRICaptureEnd)           \
    X(aclmdlRIDestroy)              \
    X(HcclGetRootInfo)              \
    X(HcclCommInitRootInfo)         \
    X(HcclCommInitRootInfoConfig)   \
    X(HcclCommInitClusterInfo)      \
    X(HcclCommInitClusterInfoConfig) \
    X(HcclCommInitAll)              \
    X(HcclCreateSubCommConfig)      \
    X(HcclCommDestroy)              \
    X(HcclAllReduce)                \
    X(HcclAllGather)                \
    X(HcclAllGatherV)               \
    X(HcclReduceScatter)            \
    X(HcclReduceScatterV)           \
    X(HcclBroadcast)                \
    X(HcclScatter)                  \
    X(HcclReduce)                   \
    X(HcclAlltoAll)                 \
    X(HcclAlltoAllV)                \
    X(HcclAlltoAllVC)               \
    X(HcclSend)                     \
    X(HcclRecv)                     \
    X(HcclBatchSendRecv)

enum tracerFunction {
#define X(NAME) FN_##NAME,
    TRACER_FUNCTIONS(X)
#undef X
        TRACER_FUNCTION_COUNT
};

/* Two ways lead to a function, each with an entry of ours in front and its own way on:
 * through the global scope (linked clients, RTLD_DEFAULT, RTLD_NEXT) on to the next one there, which may be another
 * preloaded library's; by dlsym on a library's handle, on to what that very call found. Kept apart, a preloaded library
 * behind us that asks by handle for the function it forwards to can never be sent round in a circle. */
typedef struct {
    const char *name;
    void *global_entry;
    void *handle_entry;
    _Atomic(void *) global_target;
    _Atomic(void *) handle_target;
} tracerSymbol;

extern tracerSymbol tracerSymbols[TRACER_FUNCTION_COUNT]; /* wrappers.c */
extern _Atomic bool tracerSecondCann;

/* Finds what the global entry forwards to; `caller` is an address in whoever called. NULL: there is none. */
void *tracerFindGlobal(enum tracerFunction function, const void *caller);

/* A function of the library that serves `function`, one we do not stand in front of; NULL: there is none. */
void *tracerFindBeside(enum tracerFunction function, const char *name);

/* Path of the library that serves `function`, "" while it was never called. */
const char *tracerServedBy(enum tracerFunction function);

/* --- loaded.c: what loaded libraries hold, without a call of the loader's that may want memory --- */

void *tracerFindLoaded(const char *library, const char *name); /* by file name or soname; NULL: no such function */

/* --- system.c: system calls that leave nothing behind --- */

typedef struct {
    uint64_t device;
    uint64_t inode;
    uint64_t bytes;
} tracerFileIdentity;

long tracerCall(long number, long a, long b, long c, long d); /* a result or -errno; errno stays */
int tracerFileOpen(const char *path, int flags);              /* a descriptor or -errno; follows no link, waits for nothing */
void tracerFileClose(int file);
bool tracerFileIdentify(int file, tracerFileIdentity *identity); /* false: not a regular file */
bool tracerFileIs(int file, const tracerFileIdentity *identity);
bool tracerFileWrite(int file, const void *bytes, size_t length, uint64_t offset); /* all of it, or false */
bool tracerFileRead(const char *path, char *text, size_t bytes);
void tracerCopyText(char *to, size_t bytes, const char *from); /* cut to fit, padded with zeros */
bool tracerJoin(char *path, size_t bytes, const char *folder, const char *name);
char *tracerNumber(char *to, uint64_t number); /* decimal digits; returns their end */
uint32_t tracerChecksum(const void *bytes, size_t length); /* CRC-32 as in zlib */

/* --- process.c: which process this is --- */

typedef struct {
    int pid;
    uint64_t start_time;
    uint64_t pid_namespace;
    char boot_id[40];
} tracerProcess;

bool tracerProcessRead(tracerProcess *process); /* false: its file would pass for another process's */
bool tracerProcessAlive(int pid, uint64_t start_time);
const char *tracerDigits(const char *text, uint64_t *number); /* the number `text` starts with; returns what follows */

/* --- timer.c: clocks --- */

uint64_t tracerNow(void); /* CLOCK_MONOTONIC, ns */
enum tracerTimer { TIMER_OFF, TIMER_COUNTER, TIMER_CLOCK };
extern enum tracerTimer tracerTimer;
void tracerTimerChoose(const char *wish); /* CAPTURE_CANARY_TRACE_TIME: "counter", "clock", "0"; NULL: the best there is */
void tracerTimerStart(void);              /* from here on ticks are compared with the clock */
uint64_t tracerTimerNanoseconds(uint64_t ticks);

/* The counter register: 8 ns a reading, where clock_gettime takes 20. */
static inline uint64_t tracerCounter(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/* --- armed.c: the boot-loop breaker --- */

bool tracerArm(const char *folder); /* false: two earlier processes never disarmed, stay inert */
void tracerRearm(void);            /* once more, for what comes next (file.c knows the folder) */
void tracerDisarm(bool proven);    /* removes the mark of this process; proven: every mark */
void tracerDisarmForget(void); /* in a forked child: the mark is the parent's */

/* --- folder.c: room for one more trace file --- */

bool tracerFolderMakeRoom(const char *folder, const char *own_name, const tracerProcess *self);

/* --- file.c: the trace file --- */

/* To be called before anything is recorded. True: recording; false: stay out of the way. */
bool tracerActivate(void);
bool tracerActive(void);
void tracerHeaderChanged(void);
void tracerWrite(traceRecord *record); /* fills sequence, eager totals and checksum */

/* --- facts.c: what the header says of HCCL and CANN --- */

void tracerHcclStarts(void);                     /* first call: notes the expansion mode in force */
uint32_t tracerCommunicatorMade(void *handle, uint32_t ranks, uint32_t rank, const void *config);
void tracerCommunicatorDestroyed(void *handle);
uint32_t tracerCommunicatorId(void *handle);
void tracerFactsFill(traceHeader *header);
void tracerFactsReset(void);

/* --- captures.c: captures in progress and what is counted for them --- */

typedef struct {
    _Alignas(64) _Atomic uint64_t h2d_copies;
    _Atomic uint64_t h2d_bytes;
    _Atomic uint64_t h2d_ticks;
    _Atomic uint32_t flags;
    _Atomic uint32_t other_copies[TRACE_COPY_KINDS];
    _Atomic uint32_t collectives[TRACE_COLLECTIVE_KINDS];
    _Atomic uint32_t communicator_ids[TRACE_RECORD_COMMUNICATORS];
    _Atomic uint32_t communicator_counts[TRACE_RECORD_COMMUNICATORS];
    _Atomic bool taken;
    _Atomic(void *) stream; /* these two are read by whoever looks for its capture */
    _Atomic int32_t device;
    uint64_t order;
    uint64_t begin_ns;
    uint32_t thread;
} tracerCapture;

#define TRACER_CAPTURES 16 /* at once; more are counted as lost */

extern _Atomic(tracerCapture *) tracerOnlyCapture; /* what all copies belong to; NULL: none is active, or several */

tracerCapture *tracerCaptureBegins(void *stream); /* writes TRACE_BEGIN; NULL: too many at once */
void tracerCaptureBegan(tracerCapture *capture, int code);
tracerCapture *tracerCaptureFind(void *stream);
void tracerCaptureEnded(tracerCapture *capture, int code, uint64_t end_ns);
void tracerGraphDestroyed(void);
void tracerCapturesFill(traceRecord *record); /* the eager totals and what was lost */
void tracerCapturesReset(void);
void tracerExit(void);

void tracerCountElsewhere(size_t bytes, uint64_t ticks); /* an H2D copy with no capture active, or several */
void tracerCountOther(int kind);
void tracerCountCollective(enum traceCollective kind, void *communicator);

/* The hot path: one H2D copy succeeded. Atomic additions only. */
static inline __attribute__((always_inline)) void tracerCountH2d(size_t bytes, uint64_t ticks, bool timed) {
    tracerCapture *capture = atomic_load_explicit(&tracerOnlyCapture, memory_order_acquire);
    if (TRACER_UNLIKELY(capture == NULL)) {
        tracerCountElsewhere(bytes, ticks);
        return;
    }
    atomic_fetch_add_explicit(&capture->h2d_copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&capture->h2d_bytes, bytes, memory_order_relaxed);
    if (timed) {
        atomic_fetch_add_explicit(&capture->h2d_ticks, ticks, memory_order_relaxed);
    }
}

#pragma GCC visibility pop

#endif
