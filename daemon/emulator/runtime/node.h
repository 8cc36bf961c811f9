/* The emulated node: what all emulated processes share. Used by libruntime and npu-smi. */
#ifndef EMU_NODE_H
#define EMU_NODE_H

#include "settings.h"

#define EMU_MAX_SLOTS 512
#define EMU_MAX_STREAMS 1984 /* of a chip of A2, A3 and 950, over all processes */

typedef struct {
    uint64_t hbm;
    uint32_t streams;
    uint32_t users; /* contexts: more than 0 while the process holds the chip */
} emuUse;

typedef struct {
    int32_t pid; /* 0: free */
    int32_t reserved;
    uint64_t started; /* field 22 of /proc/PID/stat: a pid that was given again is another process */
    emuUse chip[EMU_MAX_CHIPS];
} emuSlot;

/* Add to (or take from) this process's use of a chip; RT_MEMORY_ALLOCATION or RT_NO_STREAM_RESOURCE where the chip has
 * not enough left. */
int emuNodeHbm(int chip, int64_t bytes);
int emuNodeStreams(int chip, int streams);
void emuNodeUser(int chip, int users);

/* What all live processes use of a chip. */
emuUse emuNodeUsed(int chip);

/* Copy the slots of all live processes to `slots` (room for EMU_MAX_SLOTS); returns how many. */
int emuNodeSlots(emuSlot *slots);

/* Around fork(): the child is another process and starts with nothing. */
void emuNodeForkPrepare(void);
void emuNodeForkParent(void);
void emuNodeForkChild(void);

#endif
