/* Devices and contexts: which chip of the node a thread works on. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static emuContext *contexts; /* never freed: a thread may still point at a dead one */
static emuContext *primaries[EMU_MAX_CHIPS];
static _Thread_local emuContext *current;

/* ASCEND_RT_VISIBLE_DEVICES: ascending ids with commas, read up to the first thing that is not one. */
static int visibleChips(int chips[EMU_MAX_CHIPS]) {
    const char *text = getenv("ASCEND_RT_VISIBLE_DEVICES");
    int count = 0, npus = emuSettingsGet()->npus;
    if (!text) {
        while (count < npus) chips[count] = count, count++;
        return count;
    }
    for (;;) {
        char *end;
        if (!isdigit((unsigned char)*text)) return count;
        long id = strtol(text, &end, 10);
        if (id >= npus || count == EMU_MAX_CHIPS || (count && id <= chips[count - 1])) return count;
        chips[count++] = (int)id;
        if (*end != ',') return count;
        text = end + 1;
    }
}

static int chipTable[EMU_MAX_CHIPS], chipCount;

static void readVisible(void) { chipCount = visibleChips(chipTable); }

static int deviceCount(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, readVisible);
    return chipCount;
}

int emuChipOf(int device) { return device >= 0 && device < deviceCount() ? chipTable[device] : -1; }

emuContext *emuCurrent(void) {
    if (current && current->alive) return current;
    emuError(RT_CONTEXT_NULL, "no context: aclrtSetDevice was not called on this thread, or the device was reset");
    return NULL;
}

static rtError_t contextNew(int device, bool primary, emuContext **made) {
    emuContext *context = calloc(1, sizeof *context);
    rtError_t code = context ? emuNodeTakeChip(chipTable[device]) : 0;
    if (!context) return emuError(RT_DEV_SETUP_ERROR, "no host memory for a context");
    if (code) return free(context), emuRefused(code, "chip %d", chipTable[device]);
    context->next = contexts;
    context->device = device;
    context->chip = chipTable[device];
    context->primary = primary;
    context->references = 1;
    atomic_init(&context->alive, true);
    pthread_mutex_init(&context->lock, NULL);
    contexts = context;
    *made = context;
    return 0;
}

static void contextEnd(emuContext *context) {
    context->alive = false;
    if (primaries[context->device] == context) primaries[context->device] = NULL;
    while (context->streams) emuStreamClose(context->streams, true);
    context->defaultStream = NULL;
    emuGraphsEnd(context);
    if (context->primary) emuMemoryEnd(context->chip);
    emuNodeGiveChip(context->chip);
}

static void forkPrepare(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&emuCaptureLock);
    emuMemoryForkPrepare();
    emuNodeForkPrepare();
}

static void forkParent(void) {
    emuNodeForkParent();
    emuMemoryForkParent();
    pthread_mutex_unlock(&emuCaptureLock);
    pthread_mutex_unlock(&lock);
}

/* The child has no stream's thread and owns nothing on the node: it has to set its device anew. */
static void forkChild(void) {
    emuNodeForkChild();
    emuMemoryForkChild();
    emuGraphsForget();
    pthread_mutex_init(&emuCaptureLock, NULL);
    for (emuContext *context = contexts; context; context = context->next) {
        context->alive = false;
        context->streams = context->defaultStream = NULL;
    }
    memset(primaries, 0, sizeof primaries);
    current = NULL;
    pthread_mutex_init(&lock, NULL);
}

/* The lock is held. */
static rtError_t handleForks(void) {
    static bool handled;
    if (!handled) handled = pthread_atfork(forkPrepare, forkParent, forkChild) == 0;
    return handled ? 0 : emuError(RT_DEV_SETUP_ERROR, "no host memory to be told of forks");
}

EMU_EXPORT rtError_t rtSetDevice(int32_t device) {
    if (device < 0 || device >= deviceCount())
        return emuError(RT_INVALID_DEVICEID, "device %d of %d", device, deviceCount());
    pthread_mutex_lock(&lock);
    rtError_t code = handleForks();
    if (!code && !primaries[device]) code = contextNew(device, true, &primaries[device]);
    else if (!code && primaries[device] != current) primaries[device]->references++;
    if (!code) current = primaries[device];
    pthread_mutex_unlock(&lock);
    return code;
}

static rtError_t reset(int32_t device, bool force) {
    if (device < 0 || device >= deviceCount())
        return emuError(RT_INVALID_DEVICEID, "device %d of %d", device, deviceCount());
    pthread_mutex_lock(&lock);
    emuContext *context = primaries[device];
    if (context && (force || --context->references == 0)) contextEnd(context);
    pthread_mutex_unlock(&lock);
    return context ? 0 : emuError(RT_CONTEXT_NULL, "device %d was not set", device);
}

EMU_EXPORT rtError_t rtDeviceReset(int32_t device) { return reset(device, false); }

EMU_EXPORT rtError_t rtDeviceResetForce(int32_t device) { return reset(device, true); }

EMU_EXPORT rtError_t rtGetDevice(int32_t *device) {
    const emuContext *context = emuCurrent();
    if (!context) return RT_CONTEXT_NULL;
    *device = context->device;
    return 0;
}

EMU_EXPORT rtError_t rtGetDeviceCount(int32_t *count) {
    *count = deviceCount();
    return *count ? 0 : emuError(RT_NO_DEVICE, "ASCEND_RT_VISIBLE_DEVICES leaves no device");
}

EMU_EXPORT rtError_t rtGetDevicePhyIdByIndex(uint32_t device, uint32_t *chip) {
    if (emuChipOf((int)device) < 0) return emuError(RT_INVALID_DEVICEID, "device %u", device);
    *chip = (uint32_t)emuChipOf((int)device);
    return 0;
}

EMU_EXPORT rtError_t rtGetDeviceIndexByPhyId(uint32_t chip, uint32_t *device) {
    for (int i = 0; i < deviceCount(); i++)
        if (chipTable[i] == (int)chip) return *device = (uint32_t)i, 0;
    return emuError(RT_INVALID_DEVICEID, "chip %u", chip);
}

EMU_EXPORT rtError_t rtGetSocVersion(char *name, const uint32_t size) {
    return snprintf(name, size, "%s", emuSocName()) < (int)size ? 0 : emuError(RT_PARAM_INVALID, "name of %u bytes", size);
}

EMU_EXPORT rtError_t rtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active) {
    if (emuChipOf(device) < 0) return emuError(RT_INVALID_DEVICEID, "device %d", device);
    pthread_mutex_lock(&lock);
    if (flags) *flags = 0;
    if (active) *active = primaries[device] != NULL;
    pthread_mutex_unlock(&lock);
    return 0;
}

EMU_EXPORT rtError_t rtCtxCreateEx(rtContext_t *created, uint32_t flags, int32_t device) {
    if (device < 0 || device >= deviceCount())
        return emuError(RT_INVALID_DEVICEID, "device %d of %d", device, deviceCount());
    emuContext *context = NULL;
    pthread_mutex_lock(&lock);
    rtError_t code = handleForks();
    if (!code) code = contextNew(device, false, &context);
    if (!code) current = context;
    pthread_mutex_unlock(&lock);
    *created = context;
    return code;
}

EMU_EXPORT rtError_t rtCtxDestroyEx(rtContext_t handle) {
    emuContext *context = handle;
    if (!context || !context->alive || context->primary)
        return emuError(RT_CONTEXT_NULL, "not a context that aclrtCreateContext made");
    pthread_mutex_lock(&lock);
    contextEnd(context);
    pthread_mutex_unlock(&lock);
    return 0;
}

EMU_EXPORT rtError_t rtCtxSetCurrent(rtContext_t handle) {
    emuContext *context = handle;
    if (!context || !context->alive) return emuError(RT_CONTEXT_NULL, "the context was destroyed");
    current = context;
    return 0;
}

EMU_EXPORT rtError_t rtCtxGetCurrent(rtContext_t *handle) {
    *handle = emuCurrent();
    return *handle ? 0 : RT_CONTEXT_NULL;
}

rtError_t emuStreamResolve(rtStream_t handle, emuStream **stream) {
    emuContext *context;
    rtError_t code = 0;
    *stream = handle;
    if (handle) return 0;
    context = emuCurrent();
    if (!context) return RT_CONTEXT_NULL;
    pthread_mutex_lock(&lock);
    if (!context->defaultStream) code = emuStreamNew(context, 0, 0, true, &context->defaultStream);
    *stream = context->defaultStream;
    pthread_mutex_unlock(&lock);
    return code;
}

rtError_t emuStreamOwn(rtStream_t handle, emuStream **stream) {
    const emuContext *context = emuCurrent();
    rtError_t code = context ? emuStreamResolve(handle, stream) : RT_CONTEXT_NULL;
    if (!code && (*stream)->context != context)
        code = emuError(RT_STREAM_CONTEXT, "stream %d is not of the current context", (*stream)->id);
    return code;
}

EMU_EXPORT rtError_t rtCtxGetCurrentDefaultStream(rtStream_t *stream) {
    emuStream *found = NULL;
    rtError_t code = emuStreamResolve(NULL, &found);
    *stream = found;
    return code;
}

/* The streams of the context, each with a reference, so that waiting for them holds no lock. */
static emuStream **streamsOf(emuContext *context, size_t *count, bool *captured) {
    emuStream **streams;
    *count = 0;
    *captured = false;
    pthread_mutex_lock(&context->lock);
    for (emuStream *stream = context->streams; stream; stream = stream->next) ++*count;
    streams = calloc(*count + 1, sizeof *streams);
    *count = 0;
    for (emuStream *stream = context->streams; stream && streams; stream = stream->next) {
        if (atomic_load_explicit(&stream->graph, memory_order_acquire)) *captured = true;
        atomic_fetch_add(&stream->references, 1);
        streams[(*count)++] = stream;
    }
    pthread_mutex_unlock(&context->lock);
    return streams;
}

EMU_EXPORT rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout) {
    emuContext *context = emuCurrent();
    emuStream **streams;
    rtError_t first = 0;
    size_t count;
    bool captured;
    if (!context) return RT_CONTEXT_NULL;
    streams = streamsOf(context, &count, &captured);
    if (!streams) return emuError(RT_INTERNAL_ERROR, "no host memory");
    if (captured) first = emuError(RT_STREAM_CAPTURED, "a stream of the device is being captured");
    for (size_t i = 0; i < count; i++) {
        if (!first) first = emuStreamWait(streams[i], timeout);
        emuStreamDrop(streams[i]);
    }
    free(streams);
    return first;
}

EMU_EXPORT rtError_t rtDeviceSynchronize(void) { return rtDeviceSynchronizeWithTimeout(-1); }
