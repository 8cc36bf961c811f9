/* Captures in progress: what is counted for each, and which of them a copy or a collective belongs to. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>

#include "tracer.h"

#define EAGER_RECORDS 16         /* so many collectives outside captures are recorded one by one, then at powers of two */
#define EAGER_COLLECTIVES_SAFE 64 /* after so many the process is past the start that a boot loop repeats */

_Atomic(tracerCapture *) tracerOnlyCapture;

static tracerCapture captures[TRACER_CAPTURES];
static _Atomic uint32_t activeCaptures; /* bit i: captures[i] */

static struct {
    _Alignas(64) _Atomic uint64_t h2d_bytes;
    _Atomic uint64_t h2d_ticks;
    _Atomic uint64_t copies[TRACE_COPY_KINDS];
    _Atomic uint64_t collectives;
} eager;

static _Atomic uint64_t captureOrder;
static _Atomic uint64_t capturesEnded;
static _Atomic uint64_t lost;
static _Atomic int64_t graphsAlive;

static uint32_t bitOf(const tracerCapture *capture) {
    return 1u << (capture - captures);
}

static int32_t deviceOfThread(void) {
    typedef int getDevice(int32_t *device);
    static _Atomic(getDevice *) found;
    getDevice *get = atomic_load_explicit(&found, memory_order_acquire);
    int32_t device = -1;
    if (get == NULL) {
        get = (getDevice *)tracerFindBeside(FN_aclmdlRICaptureBegin, "aclrtGetDevice");
        atomic_store_explicit(&found, get, memory_order_release);
    }
    return get != NULL && get(&device) == 0 ? device : -1;
}

static void countersClear(tracerCapture *capture) {
    atomic_store_explicit(&capture->h2d_copies, 0, memory_order_relaxed);
    atomic_store_explicit(&capture->h2d_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&capture->h2d_ticks, 0, memory_order_relaxed);
    atomic_store_explicit(&capture->flags, 0, memory_order_relaxed);
    for (int i = 0; i < TRACE_COPY_KINDS; i++) {
        atomic_store_explicit(&capture->other_copies[i], 0, memory_order_relaxed);
    }
    for (int i = 0; i < TRACE_COLLECTIVE_KINDS; i++) {
        atomic_store_explicit(&capture->collectives[i], 0, memory_order_relaxed);
    }
    for (int i = 0; i < TRACE_RECORD_COMMUNICATORS; i++) {
        atomic_store_explicit(&capture->communicator_ids[i], 0, memory_order_relaxed);
        atomic_store_explicit(&capture->communicator_counts[i], 0, memory_order_relaxed);
    }
}

/* Racing threads each publish until what they published fits what is active. */
static void publishOnly(void) {
    uint32_t active = atomic_load(&activeCaptures), seen;
    do {
        seen = active;
        bool one = active != 0 && (active & (active - 1)) == 0;
        atomic_store(&tracerOnlyCapture, one ? &captures[__builtin_ctz(active)] : NULL);
        active = atomic_load(&activeCaptures);
    } while (active != seen);
}

static void release(tracerCapture *capture) {
    atomic_fetch_and(&activeCaptures, ~bitOf(capture));
    publishOnly();
    atomic_store_explicit(&capture->taken, false, memory_order_release);
}

tracerCapture *tracerCaptureFind(void *stream) {
    uint32_t active = atomic_load_explicit(&activeCaptures, memory_order_acquire);
    for (; active != 0; active &= active - 1) {
        tracerCapture *capture = &captures[__builtin_ctz(active)];
        if (capture->stream == stream) {
            return capture;
        }
    }
    return NULL;
}

/* Round robin, so that a copy that outlasts its capture adds to one that is over, not to the next. */
static tracerCapture *claim(void *stream) {
    uint64_t order = atomic_fetch_add_explicit(&captureOrder, 1, memory_order_relaxed) + 1;
    for (uint64_t i = 0; i < TRACER_CAPTURES; i++) {
        tracerCapture *capture = &captures[(order + i) % TRACER_CAPTURES];
        bool free = false;
        if (atomic_compare_exchange_strong_explicit(&capture->taken, &free, true, memory_order_acquire,
                                                    memory_order_relaxed)) {
            countersClear(capture);
            capture->stream = stream;
            capture->order = order;
            capture->device = deviceOfThread();
            capture->thread = (uint32_t)tracerCall(SYS_gettid, 0, 0, 0, 0);
            return capture;
        }
    }
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    return NULL;
}

static void recordFill(traceRecord *record, const tracerCapture *capture, enum traceRecordKind kind) {
    memset(record, 0, sizeof *record);
    record->kind = (uint16_t)kind;
    record->order = capture->order;
    record->begin_ns = capture->begin_ns;
    record->device = capture->device;
    record->thread = capture->thread;
    record->flags = (uint16_t)atomic_load_explicit(&capture->flags, memory_order_relaxed);
    record->h2d_copies = atomic_load_explicit(&capture->h2d_copies, memory_order_relaxed);
    record->h2d_bytes = atomic_load_explicit(&capture->h2d_bytes, memory_order_relaxed);
    record->copy_ns =
        tracerTimerNanoseconds(atomic_load_explicit(&capture->h2d_ticks, memory_order_relaxed));
    for (int i = 0; i < TRACE_COPY_KINDS; i++) {
        record->other_copies[i] = atomic_load_explicit(&capture->other_copies[i], memory_order_relaxed);
    }
    for (int i = 0; i < TRACE_COLLECTIVE_KINDS; i++) {
        record->collectives[i] = atomic_load_explicit(&capture->collectives[i], memory_order_relaxed);
    }
    for (int i = 0; i < TRACE_RECORD_COMMUNICATORS; i++) {
        record->communicators[i].id = atomic_load_explicit(&capture->communicator_ids[i], memory_order_relaxed);
        record->communicators[i].collectives =
            atomic_load_explicit(&capture->communicator_counts[i], memory_order_relaxed);
    }
}

/* Before the real begin, so that the record is there if that never returns, and its write is no part of the time. */
tracerCapture *tracerCaptureBegins(void *stream) {
    traceRecord record;
    if (atomic_load_explicit(&capturesEnded, memory_order_relaxed) == 0) {
        tracerRearm();
    }
    tracerCapture *capture = claim(stream);
    if (capture == NULL) {
        return NULL;
    }
    capture->begin_ns = tracerNow();
    recordFill(&record, capture, TRACE_BEGIN);
    tracerWrite(&record);
    capture->begin_ns = tracerNow();
    return capture;
}

void tracerCaptureBegan(tracerCapture *capture, int code) {
    if (code != 0) {
        atomic_fetch_or_explicit(&capture->flags, TRACE_BEGIN_FAILED, memory_order_relaxed);
        tracerCaptureEnded(capture, code, tracerNow());
        return;
    }
    tracerCapture *abandoned = tracerCaptureFind(capture->stream); /* its end was never called */
    if (abandoned != NULL) {
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        release(abandoned);
    }
    uint32_t others = atomic_fetch_or(&activeCaptures, bitOf(capture));
    publishOnly();
    if (others != 0) {
        atomic_fetch_or_explicit(&capture->flags, TRACE_OVERLAPPED, memory_order_relaxed);
    }
    for (; others != 0; others &= others - 1) {
        atomic_fetch_or_explicit(&captures[__builtin_ctz(others)].flags, TRACE_OVERLAPPED, memory_order_relaxed);
    }
}

void tracerCaptureEnded(tracerCapture *capture, int code, uint64_t end_ns) {
    traceRecord record;
    bool began = (atomic_load_explicit(&capture->flags, memory_order_relaxed) & TRACE_BEGIN_FAILED) == 0;
    atomic_fetch_and(&activeCaptures, ~bitOf(capture));
    publishOnly();
    if (began && code == 0) {
        atomic_fetch_add_explicit(&graphsAlive, 1, memory_order_relaxed);
    }
    recordFill(&record, capture, TRACE_END);
    record.end_ns = end_ns;
    record.code = code;
    release(capture);
    tracerWrite(&record);
    if (began && atomic_fetch_add_explicit(&capturesEnded, 1, memory_order_relaxed) == 0) {
        tracerDisarm(true);
    }
}

void tracerGraphDestroyed(void) {
    atomic_fetch_sub_explicit(&graphsAlive, 1, memory_order_relaxed);
}

void tracerCapturesFill(traceRecord *record) {
    int64_t graphs = atomic_load_explicit(&graphsAlive, memory_order_relaxed);
    record->graphs_alive = graphs > 0 ? (uint32_t)graphs : 0;
    for (int i = 0; i < TRACE_COPY_KINDS; i++) {
        record->eager_copies[i] = atomic_load_explicit(&eager.copies[i], memory_order_relaxed);
    }
    record->eager_h2d_bytes = atomic_load_explicit(&eager.h2d_bytes, memory_order_relaxed);
    record->eager_copy_ns =
        tracerTimerNanoseconds(atomic_load_explicit(&eager.h2d_ticks, memory_order_relaxed));
    record->eager_collectives = atomic_load_explicit(&eager.collectives, memory_order_relaxed);
    record->lost = atomic_load_explicit(&lost, memory_order_relaxed);
}

void tracerCapturesReset(void) {
    atomic_store(&activeCaptures, 0);
    atomic_store(&tracerOnlyCapture, NULL);
    for (int i = 0; i < TRACER_CAPTURES; i++) {
        atomic_store(&captures[i].taken, false);
    }
    atomic_store(&captureOrder, 0);
    atomic_store(&capturesEnded, 0);
    atomic_store(&lost, 0);
    atomic_store(&graphsAlive, 0);
    atomic_store(&eager.h2d_bytes, 0);
    atomic_store(&eager.h2d_ticks, 0);
    atomic_store(&eager.collectives, 0);
    for (int i = 0; i < TRACE_COPY_KINDS; i++) {
        atomic_store(&eager.copies[i], 0);
    }
}

/* The captures something may belong to, as bits. Several active: those of the calling thread's device, and where that
 * does not leave exactly one, all of them are marked ambiguous. */
static uint32_t candidates(void) {
    uint32_t active = atomic_load_explicit(&activeCaptures, memory_order_acquire);
    if ((active & (active - 1)) == 0) {
        return active;
    }
    int32_t device = deviceOfThread();
    uint32_t same = 0;
    for (uint32_t rest = active; rest != 0; rest &= rest - 1) {
        const tracerCapture *capture = &captures[__builtin_ctz(rest)];
        same |= device >= 0 && capture->device == device ? bitOf(capture) : 0;
    }
    uint32_t chosen = same != 0 ? same : active;
    if ((chosen & (chosen - 1)) != 0) {
        for (uint32_t rest = chosen; rest != 0; rest &= rest - 1) {
            atomic_fetch_or_explicit(&captures[__builtin_ctz(rest)].flags, TRACE_AMBIGUOUS, memory_order_relaxed);
        }
    }
    return chosen;
}

void tracerCountElsewhere(size_t bytes, uint64_t ticks) {
    uint32_t rest = candidates();
    if (rest == 0) {
        atomic_fetch_add_explicit(&eager.copies[1], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&eager.h2d_bytes, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&eager.h2d_ticks, ticks, memory_order_relaxed);
    }
    for (; rest != 0; rest &= rest - 1) {
        tracerCapture *capture = &captures[__builtin_ctz(rest)];
        atomic_fetch_add_explicit(&capture->h2d_copies, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&capture->h2d_bytes, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&capture->h2d_ticks, ticks, memory_order_relaxed);
    }
}

void tracerCountOther(int kind) {
    kind = kind >= 0 && kind < TRACE_COPY_KINDS ? kind : TRACE_COPY_KINDS - 1;
    uint32_t rest = candidates();
    if (rest == 0) {
        atomic_fetch_add_explicit(&eager.copies[kind], 1, memory_order_relaxed);
    }
    for (; rest != 0; rest &= rest - 1) {
        atomic_fetch_add_explicit(&captures[__builtin_ctz(rest)].other_copies[kind], 1, memory_order_relaxed);
    }
}

static void countOnCommunicator(tracerCapture *capture, uint32_t id) {
    for (int i = 0; id != 0 && i < TRACE_RECORD_COMMUNICATORS; i++) {
        uint32_t there = 0;
        if (atomic_compare_exchange_strong(&capture->communicator_ids[i], &there, id) || there == id) {
            atomic_fetch_add_explicit(&capture->communicator_counts[i], 1, memory_order_relaxed);
            return;
        }
    }
    atomic_fetch_or_explicit(&capture->flags, TRACE_MORE_COMMUNICATORS, memory_order_relaxed);
}

static void eagerCollective(void) {
    traceRecord record;
    uint64_t n = atomic_fetch_add_explicit(&eager.collectives, 1, memory_order_relaxed) + 1;
    if (n == EAGER_COLLECTIVES_SAFE) {
        tracerDisarm(false);
    }
    if (n <= EAGER_RECORDS || (n & (n - 1)) == 0) {
        memset(&record, 0, sizeof record);
        record.kind = TRACE_EAGER;
        record.device = -1;
        record.thread = (uint32_t)tracerCall(SYS_gettid, 0, 0, 0, 0);
        record.begin_ns = record.end_ns = tracerNow();
        tracerWrite(&record);
    }
}

void tracerCountCollective(enum traceCollective kind, void *communicator) {
    if (!tracerActive()) {
        return;
    }
    uint32_t rest = candidates();
    if (rest == 0) {
        eagerCollective();
        return;
    }
    uint32_t id = tracerCommunicatorId(communicator);
    for (; rest != 0; rest &= rest - 1) {
        tracerCapture *capture = &captures[__builtin_ctz(rest)];
        atomic_fetch_add_explicit(&capture->collectives[kind], 1, memory_order_relaxed);
        countOnCommunicator(capture, id);
    }
}

void tracerExit(void) {
    traceRecord record;
    if (!tracerActive()) {
        return;
    }
    if (atomic_load_explicit(&captureOrder, memory_order_relaxed) == 0) {
        tracerDisarm(false); /* nothing was captured, and it did not crash either */
    }
    memset(&record, 0, sizeof record);
    record.kind = TRACE_EXIT;
    record.device = -1;
    record.begin_ns = record.end_ns = tracerNow();
    tracerWrite(&record);
}
