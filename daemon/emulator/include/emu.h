/* What the emulated CANN's libraries share beyond CANN's own API: settings, faults, the node, work on a stream.
 * All of it is exported by libruntime; no client of CANN sees or needs it. */
#ifndef EMU_H
#define EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef enum { EMU_SOC_A2, EMU_SOC_A3, EMU_SOC_950 } emuSoc;

/* How HCCL's resource lists behave: by the version of hcomm (docs/emulation.md). */
typedef enum {
    EMU_GROWS,  /* up to and with the betas of 9.1.0 */
    EMU_PR2405, /* hcomm=9.1.0-pr2405: nodes of destroyed graphs are unlinked, whole lists still copied */
    EMU_FIXED   /* 9.1.0 and later: at most two nodes of a list are copied */
} emuGrowth;

typedef struct {
    char cann[32];
    char hcomm[32];
    emuGrowth growth;
    emuSoc soc;
    int npus;       /* chips of the node */
    uint64_t hbm;   /* bytes a chip */
    int peers;      /* -1: as the algorithm links them */
    int scratch;    /* -1: as the algorithm has it; 0, 1 */
    int roce;       /* 0, 1: links are RoCE */
} emuSettings;

/* CAPTURE_CANARY_EMULATE, parsed once a process; ends the process with a message on a bad value. */
const emuSettings *emuSettingsGet(void);

/* To be called first in every public function. Counts the call; hangs, slows or dies where CAPTURE_CANARY_EMULATE_FAULT
 * says so; returns the code to fail with, or 0. */
int emuFault(const char *function);

/* The rank that "@RANK" of a fault means: RANK of the environment until HCCL knows better. Of the calling thread where
 * that thread set one, else of the process. */
void emuRankSet(int rank);

/* Run work on a stream in order (as a kernel would), or record it where the stream is being captured: then it runs at
 * each replay. NULL is the default stream of the current context. What `run` returns, where not 0, the next
 * synchronisation of the stream returns. `release` (may be NULL) is called once when the work can never run again, also
 * where the launch itself fails. Returns an rtError_t. */
int emuStreamLaunch(void *stream, int (*run)(void *arg), void *arg, void (*release)(void *arg));

/* True while this stream is being captured. `model`, where not NULL, receives the graph under capture. */
bool emuStreamCapturing(void *stream, void **model);

/* The device the stream belongs to, as this process counts them; -1 where there is none. */
int emuStreamDevice(void *stream);

/* Make this the thread's message of aclGetRecentErrMsg. */
void emuMessage(const char *message);

#pragma GCC visibility pop

#endif
