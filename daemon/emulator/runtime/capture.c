/* Graph capture: work launched on a stream under capture is kept instead of run. */
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "graph.h"

pthread_mutex_t emuCaptureLock = PTHREAD_MUTEX_INITIALIZER;

static emuGraph *graphs; /* all that exist */
static uint32_t lastGraph;
static _Thread_local int exchanged = CAPTURE_MODE_GLOBAL;
static _Thread_local int threadCaptures[CAPTURE_MODES];

static int strictest(const int captures[CAPTURE_MODES]) {
    int mode = CAPTURE_MODE_GLOBAL;
    while (mode < CAPTURE_MODES && captures[mode] == 0) mode++;
    return mode; /* CAPTURE_MODES: none */
}

/* May this thread do what waits for the device, such as a synchronous copy? Its exchanged mode, what it captures itself
 * and what is captured in its context decide (runtime: Context::IsCaptureModeSupport). */
bool emuSyncAllowed(const emuContext *context) {
    pthread_mutex_lock(&emuCaptureLock);
    int inContext = strictest(context->captures), inThread = strictest(threadCaptures);
    pthread_mutex_unlock(&emuCaptureLock);
    if (inContext == CAPTURE_MODES || exchanged == CAPTURE_MODE_RELAXED) return true;
    if (exchanged == CAPTURE_MODE_GLOBAL)
        return inContext != CAPTURE_MODE_GLOBAL && inThread != CAPTURE_MODE_THREAD_LOCAL;
    return inThread != CAPTURE_MODE_GLOBAL && inThread != CAPTURE_MODE_THREAD_LOCAL;
}

EMU_EXPORT rtError_t rtThreadExchangeCaptureMode(int *mode) {
    if (!mode || *mode < 0 || *mode >= CAPTURE_MODES) return emuError(RT_PARAM_INVALID, "no capture mode");
    int before = exchanged;
    exchanged = *mode;
    *mode = before;
    return 0;
}

bool emuGraphActive(uint32_t id) {
    for (const emuGraph *graph = graphs; graph; graph = graph->next)
        if (graph->id == id) return graph->state == GRAPH_CAPTURING;
    return false;
}

void emuGraphInvalidate(emuGraph *graph) {
    if (graph && graph->state == GRAPH_CAPTURING) graph->state = GRAPH_INVALID;
}

/* A stream of the graph's own stands for each stream it captures, out of the node's budget, until it is destroyed. */
rtError_t emuGraphJoin(emuStream *stream, emuGraph *graph) {
    emuBranch *branch;
    rtError_t code = emuNodeTakeStream(graph->context->chip);
    if (code) {
        emuGraphInvalidate(graph);
        return emuRefused(code, "all %d streams of device %d are taken", EMU_MAX_STREAMS, graph->context->device);
    }
    graph->streams++;
    branch = calloc(1, sizeof *branch);
    if (!branch) return emuError(RT_INTERNAL_ERROR, "no host memory for a capture");
    branch->stream = stream;
    branch->next = graph->branches;
    graph->branches = branch;
    stream->branch = branch;
    atomic_store_explicit(&stream->graph, graph, memory_order_release);
    return 0;
}

static rtError_t graphAdd(emuGraph *graph, emuTask *task, emuBranch *branch) {
    if (graph->count == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        emuNode *nodes = realloc(graph->nodes, room * sizeof *nodes);
        if (!nodes) return emuError(RT_INTERNAL_ERROR, "no host memory for a graph");
        graph->nodes = nodes;
        graph->room = room;
    }
    graph->nodes[graph->count++] = (emuNode){task, branch->stream->id, branch->group};
    if (branch->group) branch->group->tasks++;
    branch->mark = NULL;
    return 0;
}

rtError_t emuGraphAppend(emuStream *stream, emuTask **task) {
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (!graph) return emuGroupReplace(stream, task);
    if (graph->state != GRAPH_CAPTURING)
        return emuError(RT_STREAM_CAPTURE_INVALIDATED, "the capture of stream %d is invalid", stream->id);
    rtError_t code = graphAdd(graph, *task, stream->branch);
    if (!code) *task = NULL;
    return code;
}

emuMark *emuGraphMark(emuStream *stream, uint32_t *id) {
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    emuMark *mark = calloc(1, sizeof *mark);
    if (!mark) return NULL;
    *mark = (emuMark){.next = graph->marks, .graph = graph, .branch = stream->branch};
    graph->marks = stream->branch->mark = mark;
    *id = graph->id;
    return mark;
}

rtError_t emuGraphWait(emuStream *stream, emuMark *mark) {
    rtError_t code = 0;
    if (!atomic_load_explicit(&stream->graph, memory_order_relaxed)) code = emuGraphJoin(stream, mark->graph);
    if (code) return code;
    mark->waited = true;
    if (stream->branch == mark->graph->origin) mark->waitedByOrigin = true;
    stream->branch->mark = NULL; /* its last work is a wait now */
    return 0;
}

/* Every stream that came in has to end in an event somebody waited for, and one of those has to be the first stream. */
static bool joined(const emuGraph *graph) {
    bool others = false, toOrigin = false;
    for (const emuBranch *branch = graph->branches; branch; branch = branch->next) {
        if (branch == graph->origin) continue;
        others = true;
        if (!branch->mark || !branch->mark->waited) return false;
        toOrigin = toOrigin || branch->mark->waitedByOrigin;
    }
    return !others || toOrigin;
}

EMU_EXPORT rtError_t rtStreamBeginCapture(rtStream_t handle, int mode) {
    emuStream *stream = handle;
    emuContext *context = emuCurrent();
    emuGraph *graph;
    rtError_t code = 0;
    if (!stream || mode < 0 || mode >= CAPTURE_MODES) return emuError(RT_PARAM_INVALID, "no stream or capture mode");
    if (!context) return RT_CONTEXT_NULL;
    if (stream->context != context) return emuError(RT_STREAM_CONTEXT, "stream %d is not of the context", stream->id);
    if (stream->isDefault)
        return emuError(RT_FEATURE_NOT_SUPPORT, "the default stream cannot be captured");
    pthread_mutex_lock(&emuCaptureLock);
    graph = calloc(1, sizeof *graph);
    if (atomic_load_explicit(&stream->graph, memory_order_relaxed))
        code = emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    else if (!graph)
        code = emuError(RT_INTERNAL_ERROR, "no host memory for a graph");
    if (!code) {
        *graph = (emuGraph){.next = graphs, .id = ++lastGraph, .context = context, .mode = mode,
                            .thread = (int)syscall(SYS_gettid)};
        code = emuGraphJoin(stream, graph);
        graph->origin = graph->branches;
    }
    if (!code) {
        graphs = graph;
        context->captures[mode]++;
        threadCaptures[mode]++;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    if (code && graph) emuGraphFree(graph);
    return code;
}

/* The streams are free again; with what was captured, or without. */
static void leaveCapture(emuGraph *graph) {
    for (emuBranch *branch = graph->branches; branch; branch = branch->next) {
        if (!branch->stream) continue;
        branch->stream->branch = NULL;
        atomic_store_explicit(&branch->stream->graph, NULL, memory_order_release);
        branch->stream = NULL;
    }
    graph->context->captures[graph->mode]--;
    if (threadCaptures[graph->mode] > 0) threadCaptures[graph->mode]--;
}

void emuGraphRemove(emuGraph *graph) {
    emuGraph **link = &graphs;
    while (*link && *link != graph) link = &(*link)->next;
    if (*link) *link = graph->next;
}

static rtError_t whyInvalid(const emuGraph *graph) {
    if (graph->thread != (int)syscall(SYS_gettid) && graph->mode != CAPTURE_MODE_RELAXED)
        return emuError(RT_STREAM_CAPTURE_WRONG_THREAD, "the capture was begun on another thread");
    if (graph->state != GRAPH_CAPTURING) return emuError(RT_STREAM_CAPTURE_INVALIDATED, "the capture is invalid");
    for (const emuBranch *branch = graph->branches; branch; branch = branch->next)
        if (branch->group) return emuError(RT_TASK_GROUP_STATUS, "a task group was not ended");
    if (!joined(graph)) return emuError(RT_STREAM_UNJOINED, "a captured stream was not joined to the first one");
    return 0;
}

EMU_EXPORT rtError_t rtStreamEndCapture(rtStream_t handle, rtModel_t *model) {
    emuStream *stream = handle;
    rtError_t code = 0;
    if (!stream || !model) return emuError(RT_PARAM_INVALID, "no stream or place for the graph");
    *model = NULL;
    if (!emuCurrent()) return RT_CONTEXT_NULL;
    if (stream->context != emuCurrent())
        return emuError(RT_STREAM_CONTEXT, "stream %d is not of the context", stream->id);
    pthread_mutex_lock(&emuCaptureLock);
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (!graph) code = emuError(RT_STREAM_NOT_CAPTURED, "stream %d is not being captured", stream->id);
    else if (stream->branch != graph->origin)
        code = emuError(RT_STREAM_CAPTURE_UNMATCHED, "the capture was begun on another stream");
    emuGraph *failed = NULL;
    if (!code) {
        code = whyInvalid(graph);
        leaveCapture(graph);
        graph->state = GRAPH_READY;
        if (code) emuGraphRemove(failed = graph);
        else *model = graph;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    if (failed) emuGraphFree(failed);
    return code;
}

EMU_EXPORT rtError_t rtStreamGetCaptureInfo(rtStream_t handle, int *status, rtModel_t *model) {
    emuStream *stream = handle;
    if (!stream || (!status && !model)) return emuError(RT_PARAM_INVALID, "no stream or nothing asked");
    pthread_mutex_lock(&emuCaptureLock);
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (model) *model = graph;
    if (status) {
        *status = CAPTURE_STATUS_NONE;
        if (graph) *status = graph->state == GRAPH_CAPTURING ? CAPTURE_STATUS_ACTIVE : CAPTURE_STATUS_INVALIDATED;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    return 0;
}

EMU_EXPORT bool emuStreamCapturing(void *handle, void **model) {
    emuStream *stream = handle;
    emuGraph *graph = stream ? atomic_load_explicit(&stream->graph, memory_order_acquire) : NULL;
    if (model) *model = graph;
    return graph != NULL;
}

void emuGraphLeave(emuStream *stream) {
    pthread_mutex_lock(&emuCaptureLock);
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (graph) {
        emuGraphInvalidate(graph);
        stream->branch->stream = NULL;
        stream->branch = NULL;
        atomic_store_explicit(&stream->graph, NULL, memory_order_release);
    }
    pthread_mutex_unlock(&emuCaptureLock);
}

/* What is still being captured has no handle that somebody could destroy it by. */
void emuGraphsEnd(const emuContext *context) {
    emuGraph *open = NULL;
    pthread_mutex_lock(&emuCaptureLock);
    for (emuGraph *next, *graph = graphs; graph; graph = next) {
        next = graph->next;
        if (graph->context != context) continue;
        emuNodeGiveStreams(context->chip, graph->streams);
        graph->streams = 0;
        if (graph->state == GRAPH_READY) continue;
        leaveCapture(graph);
        emuGraphRemove(graph);
        graph->next = open;
        open = graph;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    for (emuGraph *next, *graph = open; graph; graph = next) next = graph->next, emuGraphFree(graph);
}

void emuGraphsForget(void) {
    graphs = NULL;
    exchanged = CAPTURE_MODE_GLOBAL;
    for (int mode = 0; mode < CAPTURE_MODES; mode++) threadCaptures[mode] = 0;
}
