/* The boot-loop breaker: a server that dies again and again before its first capture ends runs untraced.
 *
 * A process that arms makes the file armed-1 in the trace folder, locks it for as long as it lives and removes it when
 * its first capture has ended. A mark that nobody locks was left by a process that died: then armed-2 is tried, and
 * where both were left the tracer stays inert until somebody removes them. Ranks that start side by side share one
 * mark, so that a crash of eight counts once. flock: it ends with its process and holds across containers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "tracer.h"

#define MARKS 2
static const char *const markNames[MARKS] = {"armed-1", "armed-2"};

static _Atomic int heldFile = -1;
static int heldMark;
static tracerFileIdentity heldIdentity;
static char markFolder[512];

enum markState { MARK_TAKEN, MARK_LEFT, MARK_SHARED, MARK_IMPOSSIBLE };

static enum markState take(const char *path) {
    tracerFileIdentity found;
    int file = tracerFileOpen(path, O_RDWR | O_CREAT);
    if (file < 0) {
        return MARK_IMPOSSIBLE;
    }
    enum markState state = MARK_TAKEN;
    if (tracerCall(SYS_flock, file, LOCK_EX | LOCK_NB, 0, 0) != 0) {
        state = MARK_SHARED;
    } else if (!tracerFileIdentify(file, &found)) {
        state = MARK_IMPOSSIBLE;
    } else if (found.bytes != 0) { /* written to by one who armed and is gone */
        state = MARK_LEFT;
    } else if (!tracerFileWrite(file, "armed\n", 6, 0)) {
        state = MARK_IMPOSSIBLE;
        tracerCall(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0); /* half written it would warn of a death */
    }
    if (state != MARK_TAKEN) {
        tracerFileClose(file);
        return state;
    }
    heldIdentity = found;
    atomic_store_explicit(&heldFile, file, memory_order_release);
    return MARK_TAKEN;
}

bool tracerArm(const char *folder) {
    char path[sizeof markFolder + 16];
    if (atomic_load_explicit(&heldFile, memory_order_acquire) >= 0) {
        return true;
    }
    tracerCopyText(markFolder, sizeof markFolder, folder);
    for (int i = 0; i < MARKS; i++) {
        heldMark = i;
        if (!tracerJoin(path, sizeof path, folder, markNames[i]) || take(path) != MARK_LEFT) {
            return true;
        }
    }
    return false;
}

/* The descriptor may have become somebody else's: servers close what they do not know. */
static void letGo(void) {
    int file = atomic_exchange(&heldFile, -1);
    if (file >= 0 && tracerFileIs(file, &heldIdentity)) {
        tracerFileClose(file);
    }
}

void tracerDisarm(bool proven) {
    char path[sizeof markFolder + 16];
    if (atomic_load_explicit(&heldFile, memory_order_acquire) < 0) {
        return;
    }
    for (int i = 0; i < MARKS; i++) {
        /* Proven, the mark that an earlier process left goes too: what it warned of did not happen again. */
        if ((proven || i == heldMark) && tracerJoin(path, sizeof path, markFolder, markNames[i])) {
            tracerCall(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0);
        }
    }
    letGo();
}

void tracerDisarmForget(void) {
    letGo();
}
