/* Captured graphs: replay, task groups that can be replaced, JSON for the curious, destruction. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "graph.h"

enum { DESTROY_SECONDS = 10 }; /* as long as the runtime waits for a running graph */

static pthread_cond_t ended = PTHREAD_COND_INITIALIZER; /* a replay; with emuCaptureLock */

void emuGraphFree(emuGraph *graph) {
    for (size_t i = 0; i < graph->count; i++) emuTaskDrop(graph->nodes[i].task);
    free(graph->nodes);
    for (emuBranch *next, *branch = graph->branches; branch; branch = next) next = branch->next, free(branch);
    for (emuMark *next, *mark = graph->marks; mark; mark = next) next = mark->next, free(mark);
    for (emuGroup *next, *group = graph->groups; group; group = next) next = group->next, free(group);
    for (emuDestroyCall *next, *call = graph->calls; call; call = next) next = call->next, free(call);
    if (graph->streams) emuNodeGiveStreams(graph->context->chip, graph->streams);
    free(graph);
}

static int replay(void *arg) {
    emuGraph *graph = arg;
    int code = 0;
    for (size_t i = 0; i < graph->count && !code; i++) {
        pthread_mutex_lock(&emuCaptureLock); /* a group's task may be replaced meanwhile */
        emuTask *task = graph->nodes[i].task;
        atomic_fetch_add(&task->references, 1);
        pthread_mutex_unlock(&emuCaptureLock);
        code = task->run(task->arg);
        emuTaskDrop(task);
    }
    return code;
}

static void replayEnded(void *arg) {
    emuGraph *graph = arg;
    pthread_mutex_lock(&emuCaptureLock);
    graph->running--;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&emuCaptureLock);
}

EMU_EXPORT rtError_t rtModelExecute(rtModel_t model, rtStream_t handle, uint32_t flag) {
    emuGraph *graph = model;
    emuStream *stream;
    rtError_t code = emuStreamOwn(handle, &stream);
    if (code) return code;
    if (!graph) return emuError(RT_PARAM_INVALID, "no graph");
    pthread_mutex_lock(&emuCaptureLock);
    if (graph->state != GRAPH_READY) code = emuError(RT_MODEL_CAPTURED, "the graph is being captured");
    else if (atomic_load_explicit(&stream->graph, memory_order_relaxed))
        code = emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    else graph->running++;
    pthread_mutex_unlock(&emuCaptureLock);
    return code ? code : emuStreamLaunch(stream, replay, graph, replayEnded);
}

EMU_EXPORT rtError_t rtsModelExecute(rtModel_t model, int32_t timeout) {
    emuStream *stream;
    rtError_t code = emuStreamResolve(NULL, &stream);
    if (!code) code = rtModelExecute(model, stream, 0);
    return code ? code : emuStreamWait(stream, timeout);
}

static bool waitForReplays(const emuGraph *graph) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DESTROY_SECONDS;
    while (graph->running > 0)
        if (pthread_cond_timedwait(&ended, &emuCaptureLock, &deadline) == ETIMEDOUT) return graph->running == 0;
    return true;
}

EMU_EXPORT rtError_t rtModelDestroy(rtModel_t model) {
    emuGraph *graph = model;
    if (!graph) return emuError(RT_PARAM_INVALID, "no graph");
    pthread_mutex_lock(&emuCaptureLock);
    bool capturing = graph->state != GRAPH_READY;
    bool idle = !capturing && waitForReplays(graph);
    if (idle) emuGraphRemove(graph);
    pthread_mutex_unlock(&emuCaptureLock);
    if (capturing) return emuError(RT_MODEL_CAPTURED, "the graph is being captured");
    if (!idle) return emuError(RT_MODEL_RUNNING, "the graph is still running after %d s", DESTROY_SECONDS);
    for (const emuDestroyCall *call = graph->calls; call; call = call->next) call->function(call->argument);
    emuGraphFree(graph);
    return 0;
}

EMU_EXPORT rtError_t rtModelDestroyRegisterCallback(rtModel_t model, aclrtCallback function, void *argument) {
    emuGraph *graph = model;
    emuDestroyCall **link, *call;
    if (!graph || !function) return emuError(RT_PARAM_INVALID, "no graph or callback");
    call = malloc(sizeof *call);
    if (!call) return emuError(RT_INTERNAL_ERROR, "no host memory for a callback");
    *call = (emuDestroyCall){NULL, function, argument};
    pthread_mutex_lock(&emuCaptureLock);
    for (link = &graph->calls; *link; link = &(*link)->next) {}
    *link = call;
    pthread_mutex_unlock(&emuCaptureLock);
    return 0;
}

EMU_EXPORT rtError_t rtModelDestroyUnregisterCallback(rtModel_t model, aclrtCallback function) {
    emuGraph *graph = model;
    emuDestroyCall **link, *found;
    if (!graph || !function) return emuError(RT_PARAM_INVALID, "no graph or callback");
    pthread_mutex_lock(&emuCaptureLock);
    for (link = &graph->calls; *link && (*link)->function != function; link = &(*link)->next) {}
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&emuCaptureLock);
    free(found);
    return found ? 0 : emuError(RT_PARAM_INVALID, "the callback was not registered");
}

EMU_EXPORT rtError_t rtModelGetId(rtModel_t model, uint32_t *id) {
    if (!model) return emuError(RT_PARAM_INVALID, "no graph");
    *id = ((emuGraph *)model)->id;
    return 0;
}

EMU_EXPORT rtError_t rtModelDebugJsonPrint(rtModel_t model, const char *path, uint32_t flags) {
    const emuGraph *graph = model;
    FILE *file;
    if (!graph || !path) return emuError(RT_PARAM_INVALID, "no graph or path");
    file = fopen(path, "w");
    if (!file) return emuError(RT_FILE_OPEN, "%s", path);
    fprintf(file, "[");
    for (size_t i = 0; i < graph->count; i++)
        fprintf(file, "%s\n{\"name\": \"task_%zu\", \"ph\": \"X\", \"pid\": %u, \"tid\": %d, \"ts\": %zu, \"dur\": 1}",
                i ? "," : "", i, graph->id, graph->nodes[i].stream, i);
    fprintf(file, "\n]\n");
    bool whole = !ferror(file);
    return fclose(file) == 0 && whole ? 0 : emuError(RT_FILE_WRITE, "%s", path);
}

EMU_EXPORT rtError_t rtsStreamBeginTaskGrp(rtStream_t handle) {
    emuStream *stream = handle;
    rtError_t code = 0;
    if (!stream) return emuError(RT_PARAM_INVALID, "no stream");
    pthread_mutex_lock(&emuCaptureLock);
    emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    emuGroup *group = graph && !stream->branch->group ? calloc(1, sizeof *group) : NULL;
    if (!graph) code = emuError(RT_STREAM_NOT_CAPTURED, "stream %d is not being captured", stream->id);
    else if (stream->branch->group) code = emuError(RT_TASK_GROUP_STATUS, "a task group is open already");
    else if (!group) code = emuError(RT_INTERNAL_ERROR, "no host memory for a task group");
    if (!code) {
        *group = (emuGroup){.next = graph->groups, .graph = graph};
        graph->groups = stream->branch->group = group;
    }
    pthread_mutex_unlock(&emuCaptureLock);
    return code;
}

EMU_EXPORT rtError_t rtsStreamEndTaskGrp(rtStream_t handle, rtTaskGrp_t *group) {
    emuStream *stream = handle;
    rtError_t code = 0;
    if (!stream || !group) return emuError(RT_PARAM_INVALID, "no stream or place for the group");
    *group = NULL;
    pthread_mutex_lock(&emuCaptureLock);
    const emuGraph *graph = atomic_load_explicit(&stream->graph, memory_order_relaxed);
    if (!graph) code = emuError(RT_STREAM_NOT_CAPTURED, "stream %d is not being captured", stream->id);
    else if (!stream->branch->group) code = emuError(RT_TASK_GROUP_STATUS, "no task group is open");
    else if (graph->state != GRAPH_CAPTURING) code = emuError(RT_STREAM_CAPTURE_INVALIDATED, "the capture is invalid");
    else *group = stream->branch->group;
    if (graph && stream->branch) stream->branch->group = NULL;
    pthread_mutex_unlock(&emuCaptureLock);
    return code;
}

EMU_EXPORT rtError_t rtsStreamBeginTaskUpdate(rtStream_t handle, rtTaskGrp_t groupHandle) {
    emuStream *stream = handle;
    emuGroup *group = groupHandle;
    rtError_t code = 0;
    if (!stream || !group) return emuError(RT_PARAM_INVALID, "no stream or group");
    pthread_mutex_lock(&emuCaptureLock);
    if (atomic_load_explicit(&stream->graph, memory_order_relaxed))
        code = emuError(RT_STREAM_CAPTURED, "stream %d is being captured", stream->id);
    else if (atomic_load(&stream->update) || group->updating)
        code = emuError(RT_TASK_GROUP_STATUS, "the stream or the task group is being updated");
    if (!code) {
        group->updating = true;
        stream->updated = 0;
        atomic_store(&stream->update, group);
    }
    pthread_mutex_unlock(&emuCaptureLock);
    return code;
}

/* The next task of the group that the stream updates becomes this one; `task` becomes the one it was. */
rtError_t emuGroupReplace(emuStream *stream, emuTask **task) {
    emuGroup *group = atomic_load(&stream->update);
    size_t seen = 0;
    for (size_t i = 0; i < group->graph->count; i++) {
        emuNode *node = &group->graph->nodes[i];
        if (node->group != group || seen++ < stream->updated) continue;
        emuTask *before = node->task;
        node->task = *task;
        *task = before;
        stream->updated++;
        return 0;
    }
    return emuError(RT_INTERNAL_ERROR, "the task group has only %zu tasks", group->tasks);
}

EMU_EXPORT rtError_t rtsStreamEndTaskUpdate(rtStream_t handle) {
    emuStream *stream = handle;
    rtError_t code = 0;
    if (!stream) return emuError(RT_PARAM_INVALID, "no stream");
    pthread_mutex_lock(&emuCaptureLock);
    emuGroup *group = atomic_load(&stream->update);
    if (!group) code = emuError(RT_TASK_GROUP_STATUS, "stream %d updates no task group", stream->id);
    else if (stream->updated != group->tasks)
        code = emuError(RT_INTERNAL_ERROR, "%zu of the group's %zu tasks were updated", stream->updated, group->tasks);
    if (group) {
        group->updating = false;
        atomic_store(&stream->update, NULL);
    }
    pthread_mutex_unlock(&emuCaptureLock);
    return code;
}
