/* System calls that leave nothing behind: errno stays, no signal comes, no cancellation point is passed.
 * Raw calls, so that no other preloaded library stands in between and no libc newer than the floor is needed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer.h"

long tracerCall(long number, long a, long b, long c, long d) {
    int before = errno;
    long result = syscall(number, a, b, c, d);
    if (result == -1) {
        result = -errno;
    }
    errno = before;
    return result;
}

void tracerCopyText(char *to, size_t bytes, const char *from) {
    size_t i = 0;
    for (; i + 1 < bytes && from[i] != '\0'; i++) {
        to[i] = from[i];
    }
    memset(to + i, 0, bytes - i);
}

bool tracerJoin(char *path, size_t bytes, const char *folder, const char *name) {
    size_t head = strlen(folder), tail = strlen(name);
    if (head + 1 + tail + 1 > bytes) {
        return false;
    }
    memcpy(path, folder, head);
    path[head] = '/';
    memcpy(path + head + 1, name, tail + 1);
    return true;
}

char *tracerNumber(char *to, uint64_t number) {
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (n > 0) {
        *to++ = digits[--n];
    }
    *to = '\0';
    return to;
}

bool tracerFileRead(const char *path, char *text, size_t bytes) {
    long file = tracerCall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0) {
        return false;
    }
    long got = tracerCall(SYS_read, file, (long)text, (long)bytes - 1, 0);
    tracerCall(SYS_close, file, 0, 0, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Past RLIMIT_FSIZE a write raises SIGXFSZ, which kills: it is kept from us, and taken back if it came for us. */
bool tracerFileWrite(int file, const void *bytes, size_t length, uint64_t offset) {
    uint64_t xfsz = 1ull << (SIGXFSZ - 1), before = 0, pending = 0;
    if (tracerCall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&xfsz, (long)&before, sizeof xfsz) != 0) {
        return false;
    }
    long written = tracerCall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0);
    if (written == 0) { /* else whose signal comes could not be told */
        written = tracerCall(SYS_pwrite64, file, (long)bytes, (long)length, (long)offset);
    }
    if (written == -EFBIG && (pending & xfsz) == 0) {
        struct timespec at_once = {0, 0};
        tracerCall(SYS_rt_sigtimedwait, (long)&xfsz, 0, (long)&at_once, sizeof xfsz);
    }
    tracerCall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
    return written == (long)length;
}

int tracerFileOpen(const char *path, int flags) {
    return (int)tracerCall(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                           0644);
}

void tracerFileClose(int file) {
    tracerCall(SYS_close, file, 0, 0, 0);
}

bool tracerFileIdentify(int file, tracerFileIdentity *identity) {
    struct stat found;
    if (tracerCall(SYS_fstat, file, (long)&found, 0, 0) != 0 || !S_ISREG(found.st_mode)) {
        return false;
    }
    *identity = (tracerFileIdentity){.device = found.st_dev, .inode = found.st_ino, .bytes = (uint64_t)found.st_size};
    return true;
}

bool tracerFileIs(int file, const tracerFileIdentity *identity) {
    tracerFileIdentity found;
    return tracerFileIdentify(file, &found) && found.device == identity->device && found.inode == identity->inode;
}

uint32_t tracerChecksum(const void *bytes, size_t length) {
    static const uint32_t nibbles[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                         0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                         0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        crc = (crc >> 4) ^ nibbles[crc & 15];
        crc = (crc >> 4) ^ nibbles[crc & 15];
    }
    return ~crc;
}
