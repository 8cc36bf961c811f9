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

/* Take for this process: 0, or RT_MEMORY_ALLOCATION or RT_NO_STREAM_RESOURCE where the chip has not enough left, or
 * RT_DEV_SETUP_ERROR where the node itself cannot be used, and emuNodeProblem() says why. */
int emuNodeTakeHbm(int chip, uint64_t bytes);
int emuNodeTakeStream(int chip);
int emuNodeTakeChip(int chip);
const char *emuNodeProblem(void);

/* Give back what this process took. */
void emuNodeGiveHbm(int chip, uint64_t bytes);
void emuNodeGiveStreams(int chip, int streams);
void emuNodeGiveChip(int chip);

/* What all live processes use of a chip; RT_DEV_SETUP_ERROR as above. */
int emuNodeUsed(int chip, emuUse *used);

/* Copy the slots of all live processes to `slots` (room for EMU_MAX_SLOTS); returns how many, or -1 as above. */
int emuNodeSlots(emuSlot *slots);

/* Around fork(): the child is another process and starts with nothing. */
void emuNodeForkPrepare(void);
void emuNodeForkParent(void);
void emuNodeForkChild(void);

#endif
