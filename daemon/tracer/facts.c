/* What the header says of HCCL and CANN: expansion mode, communicators, libraries and their versions. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

/* The start of HcclCommConfig up to the field we read; HCCL fills and checks the first two itself. */
typedef struct {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t reserved;
    uint32_t buffer_size;
    uint32_t deterministic;
    char name[128];
    char udi[128];
    uint32_t expansion_mode;
} communicatorConfig;

#define CONFIG_MAGIC 0xf0f0f0f0u

typedef struct {
    _Atomic(void *) handle;
    _Atomic uint32_t id, ranks, rank, mode;
    _Atomic uint64_t created_ns;
} communicator;

static communicator communicators[TRACE_COMMUNICATORS];
static _Atomic uint32_t communicatorsMade;
static _Atomic uint64_t hcclStartedNs;
static _Atomic uint32_t modeState;
static char mode[40];

static const struct {
    const char *package;
    enum tracerFunction served; /* whatever library serves one of these is of that package */
    enum tracerFunction or_served;
} packages[TRACE_LIBRARIES] = {
    {"runtime", FN_aclrtMemcpy, FN_aclmdlRICaptureBegin},
    {"hccl", FN_HcclAllReduce, FN_HcclAllGather},
    {"hcomm", FN_HcclCommInitRootInfo, FN_HcclCommInitRootInfoConfig},
};
static traceLibrary libraries[TRACE_LIBRARIES];
static _Atomic int libraryState[TRACE_LIBRARIES];
enum { LIBRARY_UNKNOWN, LIBRARY_READING, LIBRARY_KNOWN };

/* Read when HCCL first starts, as HCCL does: changed later, it changes nothing. */
void tracerHcclStarts(void) {
    uint64_t never = 0;
    if (!atomic_compare_exchange_strong(&hcclStartedNs, &never, tracerNow())) {
        return;
    }
    const char *set = getenv("HCCL_OP_EXPANSION_MODE");
    if (set != NULL) {
        tracerCopyText(mode, sizeof mode, set);
    }
    uint32_t is = set == NULL ? TRACE_MODE_UNSET : strlen(set) < sizeof mode ? TRACE_MODE_SET : TRACE_MODE_TOO_LONG;
    atomic_store_explicit(&modeState, is, memory_order_release);
    tracerHeaderChanged();
}

static uint32_t configuredMode(const communicatorConfig *config) {
    return config != NULL && config->magic == CONFIG_MAGIC && config->size >= sizeof *config ? config->expansion_mode
                                                                                            : 0;
}

uint32_t tracerCommunicatorMade(void *handle, uint32_t ranks, uint32_t rank, const void *config) {
    uint32_t id = atomic_fetch_add_explicit(&communicatorsMade, 1, memory_order_relaxed) + 1;
    communicator *made = &communicators[(id - 1) % TRACE_COMMUNICATORS];
    atomic_store_explicit(&made->handle, NULL, memory_order_release);
    atomic_store_explicit(&made->id, id, memory_order_relaxed);
    atomic_store_explicit(&made->ranks, ranks, memory_order_relaxed);
    atomic_store_explicit(&made->rank, rank, memory_order_relaxed);
    atomic_store_explicit(&made->mode, configuredMode(config), memory_order_relaxed);
    atomic_store_explicit(&made->created_ns, tracerNow(), memory_order_relaxed);
    atomic_store_explicit(&made->handle, handle, memory_order_release);
    tracerHeaderChanged();
    return id;
}

static communicator *communicatorOf(const void *handle) {
    for (int i = 0; i < TRACE_COMMUNICATORS; i++) {
        if (atomic_load_explicit(&communicators[i].handle, memory_order_acquire) == handle) {
            return &communicators[i];
        }
    }
    return NULL;
}

void tracerCommunicatorDestroyed(void *handle) { /* HCCL may give the address to another one */
    communicator *gone = handle != NULL ? communicatorOf(handle) : NULL;
    if (gone != NULL) {
        atomic_store_explicit(&gone->handle, NULL, memory_order_release);
    }
}

uint32_t tracerCommunicatorId(void *handle) {
    communicator *known = handle != NULL ? communicatorOf(handle) : NULL;
    if (known == NULL && handle != NULL) {
        return tracerCommunicatorMade(handle, 0, 0, NULL); /* made where we did not see it, or long ago */
    }
    return known != NULL ? atomic_load_explicit(&known->id, memory_order_relaxed) : 0;
}

static bool versionRead(const char *folder, const char *between, const char *package, traceLibrary *library) {
    char path[sizeof library->path + 64], text[512];
    char *end = path;
    const char *const parts[] = {folder, between, package, "/version.info"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i]);
        if (length >= (size_t)(path + sizeof path - end)) {
            return false;
        }
        memcpy(end, parts[i], length + 1);
        end += length;
    }
    if (!tracerFileRead(path, text, sizeof text)) {
        return false;
    }
    const char *version = strstr(text, "Version=");
    if (version == NULL) {
        return false;
    }
    version += strlen("Version=");
    text[(size_t)(version - text) + strcspn(version, "\r\n")] = '\0';
    tracerCopyText(library->version, sizeof library->version, version);
    return true;
}

/* CANN keeps the version in <cann>/share/info/PACKAGE/version.info, older ones in <cann>/PACKAGE/version.info;
 * the libraries lie one to three folders below <cann>. */
static void libraryFill(traceLibrary *library, const char *package, const char *path) {
    char folder[sizeof library->path];
    tracerCopyText(library->package, sizeof library->package, package);
    tracerCopyText(library->path, sizeof library->path, path);
    tracerCopyText(folder, sizeof folder, path);
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
        if (versionRead(folder, "/share/info/", package, library) || versionRead(folder, "/", package, library)) {
            return;
        }
    }
}

/* Looked up once, by the first thread that needs it; others leave it out until it is known. */
static bool libraryKnown(int i) {
    const char *path = tracerServedBy(packages[i].served);
    path = path[0] != '\0' ? path : tracerServedBy(packages[i].or_served);
    int unknown = LIBRARY_UNKNOWN;
    if (path[0] != '\0' && atomic_compare_exchange_strong(&libraryState[i], &unknown, LIBRARY_READING)) {
        libraryFill(&libraries[i], packages[i].package, path);
        atomic_store_explicit(&libraryState[i], LIBRARY_KNOWN, memory_order_release);
    }
    return atomic_load_explicit(&libraryState[i], memory_order_acquire) == LIBRARY_KNOWN;
}

void tracerFactsFill(traceHeader *header) {
    header->mode_state = atomic_load_explicit(&modeState, memory_order_acquire);
    tracerCopyText(header->mode, sizeof header->mode, header->mode_state >= TRACE_MODE_SET ? mode : "");
    header->hccl_started_ns = atomic_load_explicit(&hcclStartedNs, memory_order_relaxed);
    header->communicators_made = atomic_load_explicit(&communicatorsMade, memory_order_relaxed);
    for (int i = 0; i < TRACE_COMMUNICATORS; i++) {
        header->communicators[i] = (traceCommunicator){
            .id = atomic_load_explicit(&communicators[i].id, memory_order_relaxed),
            .ranks = atomic_load_explicit(&communicators[i].ranks, memory_order_relaxed),
            .rank = atomic_load_explicit(&communicators[i].rank, memory_order_relaxed),
            .mode = atomic_load_explicit(&communicators[i].mode, memory_order_relaxed),
            .created_ns = atomic_load_explicit(&communicators[i].created_ns, memory_order_relaxed),
        };
    }
    for (int i = 0; i < TRACE_LIBRARIES; i++) {
        if (libraryKnown(i)) {
            header->libraries[i] = libraries[i];
        }
    }
}

void tracerFactsReset(void) {
    memset(mode, 0, sizeof mode);
    atomic_store(&hcclStartedNs, 0);
    atomic_store(&modeState, TRACE_HCCL_NOT_STARTED);
    atomic_store(&communicatorsMade, 0);
    for (int i = 0; i < TRACE_COMMUNICATORS; i++) {
        atomic_store(&communicators[i].handle, NULL);
        atomic_store(&communicators[i].id, 0);
    }
}
