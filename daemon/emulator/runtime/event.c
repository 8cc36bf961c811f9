/* Events: what a stream has reached. An event recorded on a stream under capture marks a place in the graph instead. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

struct emuEvent {
    atomic_int references; /* the owner and the work that records it or waits for it */
    bool fresh;            /* of aclrtCreateEventExWithFlag: may be captured */
    uint32_t flags;
    uint32_t id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t recorded, reached; /* how many records were launched, which is the last that ran */
    int64_t nanoseconds;        /* when that was */
    emuMark *mark;              /* guarded by emuCaptureLock; holds while graph `markGraph` is being captured */
    uint32_t markGraph;
};

typedef struct {
    emuEvent *event;
    uint64_t number;
} eventTask;

static void eventDrop(emuEvent *event) {
    if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1) return;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

void emuEventAbandon(emuEvent *event) {
    pthread_mutex_lock(&event->lock);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

static rtError_t eventNew(rtEvent_t *created, uint32_t flags, bool fresh) {
    static atomic_uint lastId;
    pthread_condattr_t monotonic;
    emuEvent *event;
    if (!emuCurrent()) return RT_CONTEXT_NULL;
    if (flags & ACL_EVENT_IPC) return emuError(RT_FEATURE_NOT_SUPPORT, "IPC events are not emulated");
    event = calloc(1, sizeof *event);
    if (!event) return emuError(RT_INTERNAL_ERROR, "no host memory for an event");
    atomic_init(&event->references, 1);
    event->flags = flags;
    event->fresh = fresh;
    event->id = atomic_fetch_add(&lastId, 1);
    pthread_mutex_init(&event->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&event->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *created = event;
    return 0;
}

EMU_EXPORT rtError_t rtEventCreate(rtEvent_t *event) { return eventNew(event, 0, false); }

EMU_EXPORT rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flags) { return eventNew(event, flags, false); }

EMU_EXPORT rtError_t rtEventCreateExWithFlag(rtEvent_t *event, uint32_t flags) { return eventNew(event, flags, true); }

EMU_EXPORT rtError_t rtEventDestroy(rtEvent_t event) {
    if (!event) return emuError(RT_PARAM_INVALID, "no event");
    eventDrop(event);
    return 0;
}

static bool external(const emuEvent *event) { return event->flags & ACL_EVENT_EXTERNAL; }

static bool captured(emuEvent *event) {
    pthread_mutex_lock(&emuCaptureLock);
    bool active = event->mark && emuGraphActive(event->markGraph);
    pthread_mutex_unlock(&emuCaptureLock);
    return active && !external(event);
}

static void taskRelease(void *arg) {
    eventTask *task = arg;
    eventDrop(task->event);
    free(task);
}

/* A record of a graph has no number: each replay is a record of its own. */
static int taskRecord(void *arg) {
    const eventTask *task = arg;
    emuEvent *event = task->event;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&event->lock);
    uint64_t number = task->number ? task->number : ++event->recorded;
    if (event->reached < number) event->reached = number;
    event->nanoseconds = now.tv_sec * 1000000000LL + now.tv_nsec;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
    return 0;
}

static void setWaitsFor(emuStream *stream, emuEvent *event) {
    if (!stream) return;
    pthread_mutex_lock(&stream->lock);
    stream->waitsFor = event;
    pthread_mutex_unlock(&stream->lock);
}

static int taskWait(void *arg) {
    const eventTask *task = arg;
    emuEvent *event = task->event;
    emuStream *stream = emuStreamWorking();
    setWaitsFor(stream, event);
    pthread_mutex_lock(&event->lock);
    uint64_t number = task->number ? task->number : event->recorded;
    while (event->reached < number && !(stream && atomic_load(&stream->closing)))
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
    setWaitsFor(stream, NULL);
    return 0;
}

static rtError_t launch(emuStream *stream, emuEvent *event, int (*run)(void *), uint64_t number) {
    eventTask *task = malloc(sizeof *task);
    if (!task) return emuError(RT_INTERNAL_ERROR, "no host memory for a task");
    atomic_fetch_add(&event->references, 1);
    *task = (eventTask){event, number};
    return emuStreamLaunch(stream, run, task, taskRelease);
}

/* Under emuCaptureLock. A record on a stream under capture makes a mark; nothing runs at replay for it. */
static rtError_t captureRecord(emuEvent *event, emuStream *stream) {
    if (!event->fresh)
        return emuError(RT_FEATURE_NOT_SUPPORT, "an event of aclrtCreateEvent[WithFlag] cannot be captured");
    if (event->mark && emuGraphActive(event->markGraph) &&
        event->mark->graph != atomic_load_explicit(&stream->graph, memory_order_relaxed)) {
        emuGraphInvalidate(event->mark->graph);
        emuGraphInvalidate(atomic_load_explicit(&stream->graph, memory_order_relaxed));
        return emuError(RT_STREAM_CAPTURE_CONFLICT, "the event is of another capture");
    }
    event->mark = emuGraphMark(stream, &event->markGraph);
    return event->mark ? 0 : emuError(RT_INTERNAL_ERROR, "no host memory for an event");
}

EMU_EXPORT rtError_t rtEventRecord(rtEvent_t handle, rtStream_t streamHandle) {
    emuEvent *event = handle;
    emuStream *stream;
    rtError_t code = emuStreamOwn(streamHandle, &stream);
    uint64_t number = 0;
    if (code) return code;
    if (!event) return emuError(RT_PARAM_INVALID, "no event");
    pthread_mutex_lock(&emuCaptureLock);
    bool capturing = atomic_load_explicit(&stream->graph, memory_order_relaxed) != NULL;
    if (capturing && !external(event)) {
        code = captureRecord(event, stream);
        pthread_mutex_unlock(&emuCaptureLock);
        return code;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    if (!capturing) {
        pthread_mutex_lock(&event->lock);
        number = ++event->recorded;
        pthread_mutex_unlock(&event->lock);
    }
    return launch(stream, event, taskRecord, number);
}

/* Under emuCaptureLock. Waiting for a captured event brings the stream into the capture. */
static rtError_t captureWait(emuEvent *event, emuStream *stream) {
    emuGraph *own = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (stream->isDefault)
        return emuError(RT_STREAM_CAPTURE_IMPLICIT, "the default stream cannot be captured");
    if (own && own != event->mark->graph) {
        emuGraphInvalidate(event->mark->graph);
        emuGraphInvalidate(own);
        return emuError(RT_STREAM_CAPTURE_CONFLICT, "the event is of another capture");
    }
    return emuGraphWait(stream, event->mark);
}

EMU_EXPORT rtError_t rtStreamWaitEventWithTimeout(rtStream_t streamHandle, rtEvent_t handle, uint32_t timeout) {
    emuEvent *event = handle;
    emuStream *stream;
    rtError_t code = emuStreamOwn(streamHandle, &stream);
    if (code) return code;
    if (!event) return emuError(RT_PARAM_INVALID, "no event");
    pthread_mutex_lock(&emuCaptureLock);
    bool capturing = atomic_load_explicit(&stream->graph, memory_order_relaxed) != NULL;
    bool marked = event->mark && emuGraphActive(event->markGraph) && !external(event);
    if (marked) code = captureWait(event, stream);
    pthread_mutex_unlock(&emuCaptureLock);
    if (marked) return code;
    pthread_mutex_lock(&event->lock);
    uint64_t number = event->recorded;
    pthread_mutex_unlock(&event->lock);
    if (capturing && !external(event)) {
        if (!event->fresh) return emuError(RT_FEATURE_NOT_SUPPORT, "only events of aclrtCreateEventExWithFlag");
        if (number) return emuError(RT_CAPTURE_DEPENDENCY, "the event was recorded outside of the capture");
        return 0; /* never recorded: nothing to wait for */
    }
    if (!capturing && number == 0) return 0;
    return launch(stream, event, taskWait, capturing ? 0 : number);
}

EMU_EXPORT rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event) {
    return rtStreamWaitEventWithTimeout(stream, event, 0);
}

EMU_EXPORT rtError_t rtEventReset(rtEvent_t handle, rtStream_t streamHandle) {
    emuStream *stream;
    rtError_t code = emuStreamOwn(streamHandle, &stream);
    if (code) return code;
    return handle ? 0 : emuError(RT_PARAM_INVALID, "no event"); /* a record makes an event new anyway */
}

static rtError_t readable(emuEvent *event) {
    if (!event) return emuError(RT_PARAM_INVALID, "no event");
    if (external(event)) return emuError(RT_FEATURE_NOT_SUPPORT, "an external event cannot be asked");
    if (captured(event)) return emuError(RT_EVENT_CAPTURED, "the event is being captured");
    return 0;
}

EMU_EXPORT rtError_t rtEventSynchronizeWithTimeout(rtEvent_t handle, int32_t timeout) {
    emuEvent *event = handle;
    struct timespec deadline;
    bool limited = emuDeadline(timeout, &deadline);
    rtError_t code = readable(event);
    int waited = 0;
    if (code) return code;
    if (timeout < -1 || timeout == 0) return emuError(RT_PARAM_INVALID, "timeout %d", timeout);
    pthread_mutex_lock(&event->lock);
    while (event->reached < event->recorded && waited != ETIMEDOUT)
        waited = limited ? pthread_cond_timedwait(&event->changed, &event->lock, &deadline)
                         : pthread_cond_wait(&event->changed, &event->lock);
    bool done = event->reached >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return done ? 0 : emuError(RT_EVENT_SYNC_TIMEOUT, "synchronising an event");
}

EMU_EXPORT rtError_t rtEventSynchronize(rtEvent_t event) { return rtEventSynchronizeWithTimeout(event, -1); }

static bool reached(emuEvent *event) {
    pthread_mutex_lock(&event->lock);
    bool done = event->reached >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return done;
}

EMU_EXPORT rtError_t rtEventQuery(rtEvent_t event) {
    rtError_t code = readable(event);
    if (code) return code;
    return reached(event) ? 0 : RT_EVENT_NOT_COMPLETE;
}

EMU_EXPORT rtError_t rtEventQueryStatus(rtEvent_t event, int32_t *status) {
    rtError_t code = readable(event);
    if (!code) *status = ((emuEvent *)event)->recorded && reached(event) ? 1 : 0;
    return code;
}

EMU_EXPORT rtError_t rtEventQueryWaitStatus(rtEvent_t event, int32_t *status) {
    rtError_t code = readable(event);
    if (!code) *status = reached(event) ? 0 : 1;
    return code;
}

static rtError_t when(emuEvent *event, int64_t *nanoseconds) {
    rtError_t code = readable(event);
    if (code) return code;
    pthread_mutex_lock(&event->lock);
    bool done = event->recorded && event->reached >= event->recorded;
    *nanoseconds = event->nanoseconds;
    pthread_mutex_unlock(&event->lock);
    return done ? 0 : emuError(RT_EVENT_TIMESTAMP_INVALID, "the event was not reached");
}

EMU_EXPORT rtError_t rtEventElapsedTime(float *milliseconds, rtEvent_t from, rtEvent_t to) {
    int64_t first, last;
    rtError_t code = when(from, &first);
    if (!code) code = when(to, &last);
    if (!code) *milliseconds = (float)(last - first) / 1e6F;
    return code;
}

EMU_EXPORT rtError_t rtEventGetTimeStamp(uint64_t *microseconds, rtEvent_t event) {
    int64_t nanoseconds;
    rtError_t code = when(event, &nanoseconds);
    if (!code) *microseconds = (uint64_t)nanoseconds / 1000;
    return code;
}

EMU_EXPORT rtError_t rtGetEventID(rtEvent_t event, uint32_t *id) {
    if (!event) return emuError(RT_PARAM_INVALID, "no event");
    *id = ((emuEvent *)event)->id;
    return 0;
}
