/* Keeps the trace folder at its cap of files: the oldest of dead processes goes first, never one that is known alive. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tracer.h"

#define ENTRIES_LOOKED_AT 4096 /* a hostile folder may hold any number */

typedef struct {
    int files;
    bool found;
    bool known_dead;
    int64_t modified_s;
    int64_t modified_ns;
    char name[128];
} victimSearch;

typedef struct { /* as getdents64 gives it */
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
} directoryEntry;

/* The parts of <boot-id>-<pid-namespace>-<pid>-<start-time>.trace; false: some other file. */
static bool nameParse(const char *name, tracerProcess *process) {
    uint64_t pid;
    size_t length = strlen(name);
    if (length < 36 + 6 || length >= sizeof((victimSearch *)0)->name || name[36] != '-') {
        return false;
    }
    tracerCopyText(process->boot_id, 37, name);
    const char *at = tracerDigits(name + 37, &process->pid_namespace);
    if (*at != '-') {
        return false;
    }
    at = tracerDigits(at + 1, &pid);
    if (*at != '-') {
        return false;
    }
    at = tracerDigits(at + 1, &process->start_time);
    process->pid = (int)pid;
    return strcmp(at, ".trace") == 0;
}

static void consider(victimSearch *search, int folder, const char *name, const tracerProcess *self) {
    tracerProcess writer;
    struct stat found;
    if (!nameParse(name, &writer)) {
        return;
    }
    search->files++;
    bool booted_since = strcmp(writer.boot_id, self->boot_id) != 0;
    bool other_namespace = writer.pid_namespace != self->pid_namespace;
    bool dead = booted_since || (!other_namespace && !tracerProcessAlive(writer.pid, writer.start_time));
    if (!dead && !other_namespace) {
        return;
    }
    if (tracerCall(SYS_newfstatat, folder, (long)name, (long)&found, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    bool older = found.st_mtim.tv_sec != search->modified_s ? found.st_mtim.tv_sec < search->modified_s
                                                            : found.st_mtim.tv_nsec < search->modified_ns;
    if (!search->found || (dead && !search->known_dead) || (dead == search->known_dead && older)) {
        search->found = true;
        search->known_dead = dead;
        search->modified_s = found.st_mtim.tv_sec;
        search->modified_ns = found.st_mtim.tv_nsec;
        tracerCopyText(search->name, sizeof search->name, name);
    }
}

static void searchFolder(victimSearch *search, int folder, const char *own_name, const tracerProcess *self) {
    _Alignas(directoryEntry) char buffer[4096];
    int looked_at = 0;
    memset(search, 0, sizeof *search);
    tracerCall(SYS_lseek, folder, 0, 0, 0);
    while (looked_at < ENTRIES_LOOKED_AT) {
        long got = tracerCall(SYS_getdents64, folder, (long)buffer, sizeof buffer, 0);
        if (got <= 0) {
            return;
        }
        for (long at = 0; at < got; looked_at++) {
            const directoryEntry *entry = (const directoryEntry *)(buffer + at);
            if (strcmp(entry->name, own_name) == 0) {
                search->files++;
            } else {
                consider(search, folder, entry->name, self);
            }
            at += entry->length;
        }
    }
}

bool tracerFolderMakeRoom(const char *path, const char *own_name, const tracerProcess *self) {
    victimSearch search;
    int folder = tracerFileOpen(path, O_RDONLY | O_DIRECTORY);
    if (folder < 0) {
        return false;
    }
    bool room = false;
    for (int tries = 0; tries < 16 && !room; tries++) {
        searchFolder(&search, folder, own_name, self);
        room = search.files <= TRACE_FOLDER_FILES;
        if (!room && (!search.found || tracerCall(SYS_unlinkat, folder, (long)search.name, 0, 0) != 0)) {
            break;
        }
    }
    tracerFileClose(folder);
    return room;
}
