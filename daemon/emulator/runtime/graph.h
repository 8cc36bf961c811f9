/* A captured graph's parts, shared by capture.c (recording) and graph.c (replay, task groups, destruction). */
#ifndef EMU_GRAPH_H
#define EMU_GRAPH_H

#include "internal.h"

/* One stream's part of a graph. */
struct emuBranch {
    emuBranch *next;
    emuStream *stream; /* while it is being captured */
    emuMark *mark;     /* the event it ends in, if it ends in one */
    emuGroup *group;   /* the open task group */
};

/* Tasks that can be replaced after capture. */
struct emuGroup {
    emuGroup *next;
    emuGraph *graph;
    size_t tasks;
    bool updating;
};

typedef struct {
    emuTask *task;
    int stream;
    emuGroup *group;
} emuNode;

typedef struct emuDestroyCall {
    struct emuDestroyCall *next;
    aclrtCallback function;
    void *argument;
} emuDestroyCall;

enum { GRAPH_CAPTURING, GRAPH_INVALID, GRAPH_READY };

struct emuGraph {
    emuGraph *next;
    uint32_t id;
    emuContext *context;
    int mode, thread, state;
    int streams; /* taken from the node's budget */
    int running; /* replays launched and not ended */
    emuNode *nodes; /* in the order of their launch, which respects every dependency */
    size_t count, room;
    emuBranch *branches, *origin;
    emuMark *marks;
    emuGroup *groups;
    emuDestroyCall *calls;
};

void emuGraphFree(emuGraph *graph);   /* no longer among the graphs; no lock, since releasing work is HCCL's business */
void emuGraphRemove(emuGraph *graph); /* emuCaptureLock held */
rtError_t emuGroupReplace(emuStream *stream, emuTask **task);

#endif
