/* libruntime's own objects: contexts, streams, events and graphs, and the calls between its files. */
#ifndef EMU_INTERNAL_H
#define EMU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cann.h"
#include "emu.h"
#include "node.h"
#include "rt.h"

typedef struct emuContext emuContext;
typedef struct emuStream emuStream;
typedef struct emuEvent emuEvent;
typedef struct emuGraph emuGraph;
typedef struct emuBranch emuBranch;
typedef struct emuGroup emuGroup;

/* Work of a stream. A queue, a graph and a replay hold a reference each. */
typedef struct emuTask {
    struct emuTask *next;
    int (*run)(void *arg);
    void *arg;
    void (*release)(void *arg);
    atomic_int references;
} emuTask;

struct emuContext {
    emuContext *next; /* of all contexts there ever were: a thread may still point at a dead one */
    int device;       /* as this process counts */
    int chip;         /* as the node counts */
    atomic_bool alive;
    bool primary;
    int references;
    pthread_mutex_t lock;
    emuStream *streams;
    emuStream *defaultStream;
    int captures[CAPTURE_MODES]; /* graphs under capture by mode, guarded by emuCaptureLock */
};

struct emuStream {
    emuStream *next, *previous; /* of its context, guarded by the context's lock */
    emuContext *context;
    int id;
    uint32_t flags, priority;
    bool isDefault;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    emuTask *head, **tail;
    emuEvent *waitsFor; /* the event its thread is blocked on */
    bool started, busy;
    atomic_bool closing; /* its queue is dropped, and no wait of its thread goes on */
    atomic_int references; /* the owner, its thread, those who wait for it */
    int error;
    _Atomic(emuGraph *) graph; /* being captured into; changed under emuCaptureLock */
    emuBranch *branch;         /* its part of that graph */
    _Atomic(emuGroup *) update; /* whose tasks are being replaced; changed under emuCaptureLock */
    size_t updated;
};

/* error.c: remember the last error of the thread and return its code. */
__attribute__((format(printf, 2, 3))) rtError_t emuError(rtError_t code, const char *format, ...);
/* The same for what the node did not give: the message is of what there is not enough of. */
__attribute__((format(printf, 2, 3))) rtError_t emuRefused(rtError_t code, const char *format, ...);

/* context.c */
emuContext *emuCurrent(void); /* of this thread, or NULL with RT_CONTEXT_NULL remembered */
rtError_t emuStreamResolve(rtStream_t handle, emuStream **stream); /* NULL: the default stream */
rtError_t emuStreamOwn(rtStream_t handle, emuStream **stream);     /* the same, and it is of the current context */
int emuChipOf(int device);

/* stream.c */
rtError_t emuStreamNew(emuContext *context, uint32_t priority, uint32_t flags, bool isDefault, emuStream **stream);
void emuStreamClose(emuStream *stream, bool force);
void emuStreamDrop(emuStream *stream);
emuStream *emuStreamWorking(void); /* whose thread the caller is, or NULL */
rtError_t emuStreamWait(emuStream *stream, int timeout);
emuTask *emuTaskNew(int (*run)(void *), void *arg, void (*release)(void *));
void emuTaskDrop(emuTask *task);
rtError_t emuTaskLaunch(emuStream *stream, emuTask *task);
bool emuDeadline(int milliseconds, struct timespec *deadline); /* false: no limit */

/* event.c */
void emuEventAbandon(emuEvent *event); /* wake a stream that waits for it */

/* capture.c. The lock guards every graph, branch and captured event. */
extern pthread_mutex_t emuCaptureLock;
bool emuSyncAllowed(const emuContext *context);
/* Lock held; the stream is being captured or updates a group. `task` becomes what the caller has to drop, or NULL. */
rtError_t emuGraphAppend(emuStream *stream, emuTask **task);
rtError_t emuGraphJoin(emuStream *stream, emuGraph *graph); /* lock held */
void emuGraphInvalidate(emuGraph *graph);                   /* lock held */
void emuGraphLeave(emuStream *stream);                      /* it ends while being captured */
void emuGraphsEnd(const emuContext *context);               /* the device is reset: give their streams back */
void emuGraphsForget(void);                                 /* in a forked child */

/* An event recorded during capture: which branch it ends, and who has waited for it. Belongs to its graph; an event
 * keeps the graph's id, and asks whether that is still being captured before it follows the pointer. */
typedef struct emuMark {
    struct emuMark *next;
    emuGraph *graph;
    emuBranch *branch;
    bool waited, waitedByOrigin;
} emuMark;
bool emuGraphActive(uint32_t id);                                        /* lock held */
emuMark *emuGraphMark(emuStream *stream, uint32_t *id);                  /* lock held */
rtError_t emuGraphWait(emuStream *stream, emuMark *mark);                /* lock held */

/* memory.c */
void emuMemoryEnd(int chip); /* the device is reset: its memory is gone */
void emuMemoryForkPrepare(void);
void emuMemoryForkParent(void);
void emuMemoryForkChild(void);

#endif
