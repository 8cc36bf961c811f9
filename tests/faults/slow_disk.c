/* Preloaded: writes and syncs of files below $SLOW_DISK take $SLOW_DISK_MS longer, and wait while $SLOW_DISK.stalled
 * exists, as on a disk whose queue does not move; $SLOW_DISK.waiting tells that one does. The daemon's probes do not inherit a preload. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void be_slow(int fd)
{
    const char *folder = getenv("SLOW_DISK"), *ms = getenv("SLOW_DISK_MS");
    char link[64], path[4096], stalled[4096], waiting[4096];
    if (!folder || !ms)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0 || strncmp(path, folder, strlen(folder)) != 0)
        return;
    usleep((useconds_t)atoi(ms) * 1000);
    snprintf(stalled, sizeof stalled, "%s.stalled", folder);
    snprintf(waiting, sizeof waiting, "%s.waiting", folder);
    while (access(stalled, F_OK) == 0) {
        close(creat(waiting, 0600));
        usleep(10000);
    }
}

#define SLOW(type, name, parameters, arguments)                    \
    type name parameters                                           \
    {                                                              \
        static type(*real) parameters;                             \
        if (!real)                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);             \
        be_slow(fd);                                               \
        return real arguments;                                     \
    }

SLOW(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
SLOW(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
SLOW(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))
SLOW(int, ftruncate64, (int fd, off64_t size), (fd, size))
SLOW(int, ftruncate, (int fd, off_t size), (fd, size))
