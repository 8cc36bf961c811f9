/* Which process this is: as the trace file's name and header say it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "tracer.h"

const char *tracerDigits(const char *text, uint64_t *number) {
    *number = 0;
    while (*text >= '0' && *text <= '9') {
        *number = *number * 10 + (uint64_t)(*text++ - '0');
    }
    return text;
}

/* Field 22 of /proc/PID/stat; the second, the command's name, may hold anything. 0: no such process. */
static uint64_t startTime(const char *stat_path) {
    char text[1024];
    if (!tracerFileRead(stat_path, text, sizeof text)) {
        return 0;
    }
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    uint64_t ticks = 0;
    if (at != NULL) {
        tracerDigits(at + 1, &ticks);
    }
    return ticks;
}

bool tracerProcessAlive(int pid, uint64_t start_time) {
    char path[64] = "/proc/";
    memcpy(tracerNumber(path + 6, (uint64_t)pid), "/stat", 6);
    uint64_t started = startTime(path);
    return started != 0 && started == start_time;
}

bool tracerProcessRead(tracerProcess *process) {
    char text[64];
    memset(process, 0, sizeof *process);
    process->pid = (int)tracerCall(SYS_getpid, 0, 0, 0, 0);
    process->start_time = startTime("/proc/self/stat");
    long length = tracerCall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)text, sizeof text - 1);
    if (length > 5) {
        text[length] = '\0';
        tracerDigits(text + 5, &process->pid_namespace); /* pid:[4026531836] */
    }
    if (!tracerFileRead("/proc/sys/kernel/random/boot_id", text, sizeof text) || strcspn(text, "\n") != 36) {
        return false;
    }
    text[36] = '\0';
    tracerCopyText(process->boot_id, sizeof process->boot_id, text);
    return process->start_time != 0;
}
