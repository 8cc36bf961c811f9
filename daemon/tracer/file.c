/* The trace file: made when there is first something to say, then one pwrite a record.
 * No descriptor is kept: servers close descriptors they do not know, and the number then means somebody else's file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tracer.h"

#define DEFAULT_FOLDER "/run/capture-canary/traces"

enum fileState { FILE_UNDECIDED, FILE_STARTING, FILE_RECORDING, FILE_INERT };

static _Atomic int state = FILE_UNDECIDED;
static _Atomic uint64_t sequence;
static _Atomic uint32_t headerFlags;
static char folder[512]; /* empty: nowhere to write */
static char path[sizeof folder + 128];
static char name[128];
static tracerProcess self;
static _Atomic uint64_t ownDevice, ownInode; /* of the file we made: whatever else has its name is not ours */
static _Atomic bool making;

/* At load, before the process has threads that change the environment: only reads it. */
__attribute__((constructor)) static void load(void) {
    const char *wanted = secure_getenv("CAPTURE_CANARY_TRACE_DIR");
    if (wanted == NULL) {
        wanted = DEFAULT_FOLDER;
    }
    if (wanted[0] == '/' && strlen(wanted) < sizeof folder) {
        tracerCopyText(folder, sizeof folder, wanted);
    }
    tracerTimerChoose(secure_getenv("CAPTURE_CANARY_TRACE_TIME"));
}

static void nameFill(void) {
    char *at = name;
    memcpy(at, self.boot_id, 36);
    at[36] = '-';
    at = tracerNumber(at + 37, self.pid_namespace);
    *at = '-';
    at = tracerNumber(at + 1, (uint64_t)self.pid);
    *at = '-';
    at = tracerNumber(at + 1, self.start_time);
    memcpy(at, ".trace", 7);
}

static bool headerWrite(int file) {
    traceHeader header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, TRACE_MAGIC, sizeof header.magic);
    header.byte_order = TRACE_BYTE_ORDER;
    header.version = TRACE_VERSION;
    header.header_bytes = sizeof header;
    header.record_bytes = sizeof(traceRecord);
    header.record_capacity = TRACE_RECORD_CAPACITY;
    header.pid = (uint32_t)self.pid;
    header.start_time = self.start_time;
    header.pid_namespace = self.pid_namespace;
    tracerCopyText(header.boot_id, sizeof header.boot_id, self.boot_id);
    header.flags = atomic_load_explicit(&headerFlags, memory_order_relaxed);
    header.flags |= tracerTimer != TIMER_OFF ? TRACE_TIMED : 0;
    header.flags |= atomic_load_explicit(&tracerSecondCann, memory_order_relaxed) ? TRACE_SECOND_CANN : 0;
    tracerFactsFill(&header);
    header.checksum = tracerChecksum(&header, sizeof header);
    return tracerFileWrite(file, &header, sizeof header, 0);
}

/* O_EXCL: never somebody else's file, whatever waits under that name. */
static int fileMake(void) {
    tracerFileIdentity made;
    int file = tracerFileOpen(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file < 0) {
        return file;
    }
    tracerCall(SYS_fchmod, file, 0644, 0, 0); /* whatever the umask */
    if (!tracerFileIdentify(file, &made) || !tracerFolderMakeRoom(folder, name, &self) || !headerWrite(file)) {
        tracerCall(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0);
        tracerFileClose(file);
        return -EIO;
    }
    atomic_store(&ownDevice, made.device);
    atomic_store(&ownInode, made.inode);
    return file;
}

/* The file of this process, open: made anew if somebody cleaned the folder. */
static int fileOpen(void) {
    int file = tracerFileOpen(path, O_WRONLY);
    if (file == -ENOENT && !atomic_exchange(&making, true)) {
        file = fileMake();
        atomic_store(&making, false);
        return file;
    }
    tracerFileIdentity own = {.device = atomic_load(&ownDevice), .inode = atomic_load(&ownInode)};
    if (file >= 0 && !tracerFileIs(file, &own)) {
        tracerFileClose(file);
        return -ESTALE;
    }
    return file;
}

static bool folderAllows(void) {
    char disable[sizeof folder + 16];
    struct stat found;
    if (folder[0] == '\0' || !tracerJoin(disable, sizeof disable, folder, "DISABLE")) {
        return false;
    }
    int opened = tracerFileOpen(folder, O_RDONLY | O_DIRECTORY); /* a link to a folder is not one */
    if (opened < 0) {
        return false;
    }
    tracerFileClose(opened);
    return tracerCall(SYS_newfstatat, AT_FDCWD, (long)disable, (long)&found, AT_SYMLINK_NOFOLLOW) == -ENOENT;
}

static enum fileState start(void) {
    bool known = tracerProcessRead(&self);
    nameFill();
    if (!known || !folderAllows() || !tracerJoin(path, sizeof path, folder, name)) {
        return FILE_INERT;
    }
    tracerTimerStart();
    bool armed = tracerArm(folder);
    if (!armed) {
        atomic_fetch_or_explicit(&headerFlags, TRACE_INERT_BOOT_LOOP, memory_order_relaxed);
    }
    tracerCall(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0); /* ours before an exec, or forged */
    int file = fileMake();
    if (file < 0) {
        tracerDisarm(false);
        return FILE_INERT;
    }
    tracerFileClose(file);
    return armed ? FILE_RECORDING : FILE_INERT;
}

static void startAfresh(void) {
    atomic_store(&headerFlags, 0);
    atomic_store(&sequence, 0);
    tracerDisarmForget();
    tracerCapturesReset();
    tracerFactsReset();
}

static bool forked(void) {
    return self.pid != 0 && tracerCall(SYS_getpid, 0, 0, 0, 0) != self.pid;
}

bool tracerActive(void) {
    return atomic_load_explicit(&state, memory_order_acquire) == FILE_RECORDING;
}

bool tracerActivate(void) {
    int expected = atomic_load_explicit(&state, memory_order_acquire);
    if ((expected == FILE_RECORDING || expected == FILE_INERT) && forked()) {
        /* A child counts for itself, in a file of its own. */
        if (atomic_compare_exchange_strong(&state, &expected, FILE_STARTING)) {
            startAfresh();
            atomic_store_explicit(&state, start(), memory_order_release);
        }
    }
    expected = FILE_UNDECIDED;
    if (atomic_compare_exchange_strong(&state, &expected, FILE_STARTING)) {
        atomic_store_explicit(&state, start(), memory_order_release);
    }
    /* Another thread is at it: give it a moment, and go on unrecorded rather than wait. */
    for (int i = 0; i < 1000 && atomic_load_explicit(&state, memory_order_acquire) == FILE_STARTING; i++) {
        sched_yield();
    }
    return tracerActive();
}

void tracerRearm(void) {
    tracerArm(folder);
}

void tracerHeaderChanged(void) {
    if (!tracerActive() || forked()) {
        return;
    }
    int file = fileOpen();
    if (file >= 0) {
        headerWrite(file);
        tracerFileClose(file);
    }
}

void tracerWrite(traceRecord *record) {
    if (!tracerActive() || forked()) {
        return;
    }
    record->sequence = atomic_fetch_add_explicit(&sequence, 1, memory_order_relaxed) + 1;
    tracerCapturesFill(record);
    record->checksum =
        tracerChecksum((const char *)record + sizeof record->checksum, sizeof *record - sizeof record->checksum);
    uint64_t slot = (record->sequence - 1) % TRACE_RECORD_CAPACITY;
    int file = fileOpen();
    if (file >= 0) {
        tracerFileWrite(file, record, sizeof *record, sizeof(traceHeader) + slot * sizeof *record);
        tracerFileClose(file);
    }
}

__attribute__((destructor)) static void unload(void) {
    tracerExit();
}
