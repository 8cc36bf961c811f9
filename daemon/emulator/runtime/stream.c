/* Streams: each a queue whose work its own thread, started at the first launch, runs in order. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

enum { STACK = 256 * 1024 };

static atomic_int lastId;

bool emuDeadline(int milliseconds, struct timespec *deadline) {
    if (milliseconds < 0) return false;
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += milliseconds / 1000;
    deadline->tv_nsec += milliseconds % 1000 * 1000000L;
    if (deadline->tv_nsec >= 1000000000L) deadline->tv_sec++, deadline->tv_nsec -= 1000000000L;
    return true;
}

emuTask *emuTaskNew(int (*run)(void *), void *arg, void (*release)(void *)) {
    emuTask *task = malloc(sizeof *task);
    if (task) {
        task->next = NULL;
        task->run = run;
        task->arg = arg;
        task->release = release;
        atomic_init(&task->references, 1);
    }
    return task;
}

void emuTaskDrop(emuTask *task) {
    if (atomic_fetch_sub_explicit(&task->references, 1, memory_order_acq_rel) != 1) return;
    if (task->release) task->release(task->arg);
    free(task);
}

void emuStreamDrop(emuStream *stream) {
    if (atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) != 1) return;
    while (stream->head) {
        emuTask *task = stream->head;
        stream->head = task->next;
        emuTaskDrop(task);
    }
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static _Thread_local emuStream *working;

emuStream *emuStreamWorking(void) { return working; }

static void *work(void *handle) {
    emuStream *stream = working = handle;
    pthread_mutex_lock(&stream->lock);
    while (!atomic_load(&stream->closing)) {
        emuTask *task = stream->head;
        if (!task) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        stream->head = task->next;
        if (!stream->head) stream->tail = &stream->head;
        stream->busy = true;
        pthread_mutex_unlock(&stream->lock);
        int code = task->run(task->arg);
        emuTaskDrop(task);
        pthread_mutex_lock(&stream->lock);
        stream->busy = false;
        if (code && !stream->error) stream->error = code;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    emuStreamDrop(stream);
    return NULL;
}

static bool start(emuStream *stream) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the application's signals are its own threads' affair */
    atomic_fetch_add(&stream->references, 1);
    stream->started = pthread_create(&thread, &attributes, work, stream) == 0;
    if (!stream->started) atomic_fetch_sub(&stream->references, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return stream->started;
}

static rtError_t enqueue(emuStream *stream, emuTask *task) {
    rtError_t code = 0;
    pthread_mutex_lock(&stream->lock);
    if (stream->started || start(stream)) {
        *stream->tail = task;
        stream->tail = &task->next;
        pthread_cond_broadcast(&stream->changed);
    } else {
        code = emuError(RT_INTERNAL_ERROR, "no thread for a stream");
    }
    pthread_mutex_unlock(&stream->lock);
    if (code) emuTaskDrop(task);
    return code;
}

rtError_t emuTaskLaunch(emuStream *stream, emuTask *task) {
    if (atomic_load_explicit(&stream->graph, memory_order_acquire) || atomic_load(&stream->update)) {
        pthread_mutex_lock(&emuCaptureLock);
        if (atomic_load_explicit(&stream->graph, memory_order_relaxed) || atomic_load(&stream->update)) {
            rtError_t code = emuGraphAppend(stream, &task);
            pthread_mutex_unlock(&emuCaptureLock);
            if (task) emuTaskDrop(task);
            return code;
        }
        pthread_mutex_unlock(&emuCaptureLock);
    }
    return enqueue(stream, task);
}

EMU_EXPORT int emuStreamLaunch(void *handle, int (*run)(void *), void *arg, void (*release)(void *)) {
    emuStream *stream;
    rtError_t code = emuStreamResolve(handle, &stream);
    emuTask *task = code ? NULL : emuTaskNew(run, arg, release);
    if (task) return emuTaskLaunch(stream, task);
    if (release) release(arg);
    return code ? code : emuError(RT_INTERNAL_ERROR, "no host memory for a task");
}

EMU_EXPORT int emuStreamDevice(void *handle) {
    emuStream *stream;
    return emuStreamResolve(handle, &stream) ? -1 : stream->context->device;
}

rtError_t emuStreamNew(emuContext *context, uint32_t priority, uint32_t flags, bool isDefault, emuStream **created) {
    pthread_condattr_t monotonic;
    emuStream *stream;
    rtError_t code = emuNodeTakeStream(context->chip);
    if (code) return emuRefused(code, "all %d streams of device %d are taken", EMU_MAX_STREAMS, context->device);
    stream = calloc(1, sizeof *stream);
    if (!stream) {
        emuNodeGiveStreams(context->chip, 1);
        return emuError(RT_INTERNAL_ERROR, "no host memory for a stream");
    }
    stream->context = context;
    stream->id = atomic_fetch_add(&lastId, 1);
    stream->priority = priority;
    stream->flags = flags;
    stream->isDefault = isDefault;
    stream->tail = &stream->head;
    atomic_init(&stream->references, 1);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&stream->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&context->lock);
    stream->next = context->streams;
    if (stream->next) stream->next->previous = stream;
    context->streams = stream;
    pthread_mutex_unlock(&context->lock);
    *created = stream;
    return 0;
}

/* Wait until nothing is queued or running, and return what the work returned since the last time. */
rtError_t emuStreamWait(emuStream *stream, int timeout) {
    struct timespec deadline;
    bool limited = emuDeadline(timeout, &deadline);
    int waited = 0;
    pthread_mutex_lock(&stream->lock);
    while ((stream->head || stream->busy) && waited != ETIMEDOUT && !atomic_load(&stream->closing))
        waited = limited ? pthread_cond_timedwait(&stream->changed, &stream->lock, &deadline)
                         : pthread_cond_wait(&stream->changed, &stream->lock);
    int code = stream->error;
    if (!stream->head && !stream->busy) stream->error = 0;
    else code = atomic_load(&stream->closing) ? RT_STREAM_ABORT : RT_STREAM_SYNC_TIMEOUT;
    pthread_mutex_unlock(&stream->lock);
    return code ? emuError(code, "synchronising stream %d", stream->id) : 0;
}

/* With force what is queued is dropped, and work that never ends is left to its thread; else it is waited for. */
void emuStreamClose(emuStream *stream, bool force) {
    emuContext *context = stream->context;
    pthread_mutex_lock(&context->lock);
    if (stream->previous) stream->previous->next = stream->next;
    else if (context->streams == stream) context->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    pthread_mutex_unlock(&context->lock);
    if (atomic_load_explicit(&stream->graph, memory_order_acquire)) emuGraphLeave(stream);
    if (!force) emuStreamWait(stream, -1);
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->closing, true);
    if (stream->waitsFor) emuEventAbandon(stream->waitsFor);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    emuNodeGiveStreams(context->chip, 1);
    emuStreamDrop(stream);
}

EMU_EXPORT rtError_t rtStreamCreateWithFlags(rtStream_t *created, int32_t priority, uint32_t flags) {
    emuContext *context = emuCurrent();
    emuStream *stream = NULL;
    rtError_t code = context ? emuStreamNew(context, (uint32_t)priority, flags, false, &stream) : RT_CONTEXT_NULL;
    *created = stream;
    return code;
}

EMU_EXPORT rtError_t rtStreamCreate(rtStream_t *created, int32_t priority) {
    return rtStreamCreateWithFlags(created, priority, 0);
}

static rtError_t destroy(emuStream *stream, bool force) {
    if (!stream) return emuError(RT_PARAM_INVALID, "no stream");
    if (atomic_load_explicit(&stream->graph, memory_order_acquire))
        return emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    if (stream->isDefault) return emuError(RT_PARAM_INVALID, "the default stream stays");
    emuStreamClose(stream, force);
    return 0;
}

EMU_EXPORT rtError_t rtStreamDestroy(rtStream_t stream) { return destroy(stream, false); }

EMU_EXPORT rtError_t rtStreamDestroyForce(rtStream_t stream) { return destroy(stream, true); }

EMU_EXPORT rtError_t rtStreamSynchronizeWithTimeout(rtStream_t handle, int32_t timeout) {
    emuStream *stream;
    rtError_t code = emuStreamResolve(handle, &stream);
    if (code) return code;
    if (timeout < -1 || timeout == 0) return emuError(RT_PARAM_INVALID, "timeout %d", timeout);
    if (atomic_load_explicit(&stream->graph, memory_order_acquire))
        return emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    return emuStreamWait(stream, timeout);
}

EMU_EXPORT rtError_t rtStreamSynchronize(rtStream_t stream) { return rtStreamSynchronizeWithTimeout(stream, -1); }

EMU_EXPORT rtError_t rtStreamQuery(rtStream_t handle) {
    emuStream *stream;
    rtError_t code = emuStreamResolve(handle, &stream);
    if (code) return code;
    if (atomic_load_explicit(&stream->graph, memory_order_acquire))
        return emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    pthread_mutex_lock(&stream->lock);
    bool idle = !stream->head && !stream->busy;
    pthread_mutex_unlock(&stream->lock);
    return idle ? 0 : RT_STREAM_NOT_COMPLETE;
}

EMU_EXPORT rtError_t rtGetStreamId(rtStream_t handle, int32_t *id) {
    emuStream *stream;
    rtError_t code = emuStreamResolve(handle, &stream);
    if (!code) *id = stream->id;
    return code;
}

EMU_EXPORT rtError_t rtStreamGetPriority(rtStream_t stream, uint32_t *priority) {
    if (!stream) return emuError(RT_PARAM_INVALID, "no stream");
    *priority = ((emuStream *)stream)->priority;
    return 0;
}

EMU_EXPORT rtError_t rtStreamGetFlags(rtStream_t stream, uint32_t *flags) {
    if (!stream) return emuError(RT_PARAM_INVALID, "no stream");
    *flags = ((emuStream *)stream)->flags;
    return 0;
}

typedef struct {
    aclrtCallback function;
    void *argument;
} hostCall;

static int callHost(void *arg) {
    hostCall *call = arg;
    call->function(call->argument);
    return 0;
}

EMU_EXPORT rtError_t rtsLaunchHostFunc(rtStream_t stream, aclrtCallback function, void *argument) {
    emuStream *own;
    rtError_t code = emuStreamOwn(stream, &own);
    hostCall *call = code ? NULL : malloc(sizeof *call);
    if (code) return code;
    if (!call) return emuError(RT_INTERNAL_ERROR, "no host memory for a host call");
    *call = (hostCall){function, argument};
    return emuStreamLaunch(stream, callHost, call, free);
}
