/* Preloaded: lets calls of libc fail that the libraries under test make, and nobody else's.
 * FAILING_LIBRARIES  the libraries under test, by file name, with colons between
 * FAILING_REPORT     where to write a line a call (nothing fails) or the one that failed
 * FAILING_SITE       LIBRARY+OFFSET:K: the K-th call from there fails; unset: none does
 * FAILING_MODE       once; from: and each later call of the same function; short: half of the bytes are moved
 * FAILING_ERRNO      instead of the errno that suits the function
 * A call is known by its place in the library, which threads cannot mix up; K counts from 1 at each place.
 * Compiled with -DWRAPS it is linked instead, to libraries whose linker was told --wrap=malloc and so on: a sanitizer
 * wants to be the first that is preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SITES = 2048, REPORT_FROM = 700 };
enum outcome { PASSES, FAILS, HALF };

typedef struct {
    char library[64];
    uintptr_t offset;
    long calls;
} site;

static struct {
    atomic_bool on;
    atomic_flag busy;
    const char *libraries;
    char library[64];
    uintptr_t offset;
    long number;
    bool from, half;
    int error;
    int report;
    const char *spreads; /* the function that fails from now on */
    site sites[SITES];
} failing = {.busy = ATOMIC_FLAG_INIT, .report = -1};

#ifdef WRAPS
#define OURS(NAME) __wrap_##NAME
#define NEXT(NAME) static __typeof__(&NAME) next = NAME
#else
#define OURS(NAME) NAME
#define NEXT(NAME)                 \
    static __typeof__(&NAME) next; \
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, #NAME)
#endif

static long direct(long number, long a, long b, long c, long d) {
    NEXT(syscall);
    return next(number, a, b, c, d);
}

static void tell(const char *function, const site *from) {
    char line[160];
    int length = snprintf(line, sizeof line, "%s %s+%lx %ld\n", function, from->library, (unsigned long)from->offset,
                          from->calls);
    int before = errno;
    direct(SYS_write, failing.report, (long)line, length, 0);
    errno = before;
}

/* Whether this caller's library is under test; fills in where in it. */
static bool watched(const void *caller, site *from) {
    NEXT(dladdr);
    Dl_info info;
    if (next(caller, &info) == 0 || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    const char *found = strstr(failing.libraries, name);
    size_t length = strlen(name);
    if (!found || length >= sizeof from->library || (found[length] != ':' && found[length] != '\0')) return false;
    memcpy(from->library, name, length + 1);
    from->offset = (uintptr_t)caller - (uintptr_t)info.dli_fbase;
    return true;
}

static void count(site *from) {
    size_t i = 0;
    while (i < SITES && failing.sites[i].calls &&
           (failing.sites[i].offset != from->offset || strcmp(failing.sites[i].library, from->library) != 0))
        i++;
    if (i == SITES) abort();
    from->calls = failing.sites[i].calls + 1;
    failing.sites[i] = *from;
}

static enum outcome judge(const char *function, const void *caller, bool moves, int error) {
    site from;
    enum outcome outcome = PASSES;
    if (!atomic_load(&failing.on) || !watched(caller, &from)) return PASSES;
    while (atomic_flag_test_and_set(&failing.busy)) {}
    count(&from);
    bool here = failing.number == from.calls && failing.offset == from.offset &&
                strcmp(failing.library, from.library) == 0;
    if (here || (failing.spreads && strcmp(failing.spreads, function) == 0))
        outcome = failing.half ? (moves ? HALF : PASSES) : FAILS;
    if (here && failing.from) failing.spreads = function;
    if (!failing.number || (here && outcome != PASSES)) tell(function, &from);
    atomic_flag_clear(&failing.busy);
    if (outcome == FAILS) errno = failing.error ? failing.error : error;
    return outcome;
}

#define JUDGED(NAME, MOVES, ERROR) judge(#NAME, __builtin_return_address(0), MOVES, ERROR)

/* NAME fails with ERROR and RETURNS. */
#define FAIL(TYPE, NAME, PARAMETERS, ARGUMENTS, RETURNS, ERROR) \
    TYPE OURS(NAME) PARAMETERS;                                 \
    TYPE OURS(NAME) PARAMETERS {                                \
        NEXT(NAME);                                             \
        return JUDGED(NAME, false, ERROR) == FAILS ? (RETURNS) : next ARGUMENTS; \
    }
/* The same, for what moves `bytes` and may move fewer. */
#define MOVE(NAME, PARAMETERS, ARGUMENTS, ERROR)            \
    ssize_t OURS(NAME) PARAMETERS;                          \
    ssize_t OURS(NAME) PARAMETERS {                         \
        NEXT(NAME);                                         \
        enum outcome outcome = JUDGED(NAME, true, ERROR);   \
        if (outcome == HALF) bytes = (bytes + 1) / 2;       \
        return outcome == FAILS ? -1 : next ARGUMENTS;      \
    }

#ifdef WRAPS
FAIL(void *, malloc, (size_t bytes), (bytes), NULL, ENOMEM)
FAIL(void *, calloc, (size_t count, size_t bytes), (count, bytes), NULL, ENOMEM)
#else
/* dlsym may allocate before it has told where. */
static __thread __attribute__((tls_model("initial-exec"))) bool resolving;
static char early[65536];
static atomic_size_t earlyUsed;
static void *allocateEarly(size_t bytes) {
    return early + atomic_fetch_add(&earlyUsed, (bytes + 15) / 16 * 16);
}
static bool isEarly(const void *memory) {
    return (const char *)memory >= early && (const char *)memory < early + sizeof early;
}
#define ALLOCATE(NAME, PARAMETERS, ARGUMENTS, BYTES)                        \
    void *NAME PARAMETERS {                                                 \
        static __typeof__(&NAME) next;                                      \
        if (!next) {                                                        \
            if (resolving) return allocateEarly(BYTES);                     \
            resolving = true;                                               \
            next = (__typeof__(next))dlsym(RTLD_NEXT, #NAME);               \
            resolving = false;                                              \
        }                                                                   \
        return JUDGED(NAME, false, ENOMEM) == FAILS ? NULL : next ARGUMENTS; \
    }
ALLOCATE(malloc, (size_t bytes), (bytes), bytes)
ALLOCATE(calloc, (size_t count, size_t bytes), (count, bytes), count * bytes)
void free(void *memory) {
    NEXT(free);
    if (!isEarly(memory)) next(memory);
}
#endif
FAIL(void *, realloc, (void *memory, size_t bytes), (memory, bytes), NULL, ENOMEM)
FAIL(char *, strdup, (const char *text), (text), NULL, ENOMEM)
FAIL(int, posix_memalign, (void **memory, size_t alignment, size_t bytes), (memory, alignment, bytes), ENOMEM, 0)
FAIL(void *, tsearch, (const void *key, void **root, __compar_fn_t compare), (key, root, compare), NULL, ENOMEM)
FAIL(void *, mmap, (void *at, size_t bytes, int protection, int flags, int file, off_t offset),
     (at, bytes, protection, flags, file, offset), MAP_FAILED, ENOMEM)
FAIL(int, munmap, (void *at, size_t bytes), (at, bytes), -1, ENOMEM)
FAIL(int, mprotect, (void *at, size_t bytes, int protection), (at, bytes, protection), -1, ENOMEM)
FAIL(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1, ENOMEM)

int OURS(open)(const char *path, int flags, ...);
int OURS(open)(const char *path, int flags, ...) {
    NEXT(open);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return JUDGED(open, false, EMFILE) == FAILS ? -1 : next(path, flags, mode);
}
FAIL(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
FAIL(char *, fgets, (char *text, int bytes, FILE *file), (text, bytes, file), NULL, EIO)
int OURS(fclose)(FILE *file);
int OURS(fclose)(FILE *file) { /* closes all the same, as close does */
    NEXT(fclose);
    bool fails = JUDGED(fclose, false, EIO) == FAILS;
    int result = next(file);
    return fails ? (errno = EIO, EOF) : result;
}
int OURS(close)(int file);
int OURS(close)(int file) {
    NEXT(close);
    bool fails = JUDGED(close, false, EIO) == FAILS;
    int result = next(file);
    return fails ? (errno = EIO, -1) : result;
}
MOVE(read, (int file, void *to, size_t bytes), (file, to, bytes), EIO)
FAIL(int, ftruncate, (int file, off_t bytes), (file, bytes), -1, ENOSPC)
FAIL(int, statx, (int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict about),
     (folder, path, flags, mask, about), -1, EIO)
FAIL(int, flock, (int file, int operation), (file, operation), -1, ENOLCK)
int OURS(fcntl)(int file, int command, ...);
int OURS(fcntl)(int file, int command, ...) {
    NEXT(fcntl);
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return JUDGED(fcntl, false, ENOLCK) == FAILS ? -1 : next(file, command, argument);
}
FAIL(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE)
FAIL(int, socket, (int family, int type, int protocol), (family, type, protocol), -1, EMFILE)
FAIL(int, bind, (int file, const struct sockaddr *address, socklen_t bytes), (file, address, bytes), -1, EADDRINUSE)
FAIL(int, listen, (int file, int backlog), (file, backlog), -1, EADDRINUSE)
FAIL(int, accept4, (int file, struct sockaddr *address, socklen_t *bytes, int flags), (file, address, bytes, flags), -1,
     EMFILE)
FAIL(int, connect, (int file, const struct sockaddr *address, socklen_t bytes), (file, address, bytes), -1, EAGAIN)
FAIL(int, setsockopt, (int file, int level, int name, const void *value, socklen_t bytes),
     (file, level, name, value, bytes), -1, ENOMEM)
FAIL(int, getsockopt, (int file, int level, int name, void *restrict value, socklen_t *restrict bytes),
     (file, level, name, value, bytes), -1, ENOMEM)
FAIL(int, getsockname, (int file, struct sockaddr *restrict address, socklen_t *restrict bytes), (file, address, bytes),
     -1, ENOBUFS)
MOVE(send, (int file, const void *from, size_t bytes, int flags), (file, from, bytes, flags), EPIPE)
MOVE(recv, (int file, void *to, size_t bytes, int flags), (file, to, bytes, flags), ECONNRESET)
FAIL(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags), -1, EPIPE)
FAIL(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags), -1, ECONNRESET)
FAIL(int, poll, (struct pollfd *files, nfds_t count, int timeout), (files, count, timeout), -1, ENOMEM)
MOVE(getrandom, (void *to, size_t bytes, unsigned flags), (to, bytes, flags), ENOSYS)
FAIL(int, pthread_create,
     (pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*body)(void *),
      void *restrict argument),
     (thread, attributes, body, argument), EAGAIN, 0)
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
FAIL(int, __register_atfork, (void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library),
     (prepare, parent, child, library), ENOMEM, 0)
FAIL(void *, dlopen, (const char *path, int flags), (path, flags), NULL, ENOMEM)
FAIL(int, dladdr, (const void *address, Dl_info *info), (address, info), 0, 0)

/* Raw calls, by what they are. Who they are cannot fail to be told. */
static const struct {
    long number;
    const char *name;
    int error;
    bool moves;
} calls[] = {
    {SYS_openat, "openat", EMFILE, false},
    {SYS_read, "read", EIO, true},
    {SYS_pwrite64, "pwrite64", ENOSPC, true},
    {SYS_close, "close", EIO, false},
    {SYS_fstat, "fstat", EIO, false},
    {SYS_newfstatat, "newfstatat", EIO, false},
    {SYS_fchmod, "fchmod", EPERM, false},
    {SYS_unlinkat, "unlinkat", EACCES, false},
    {SYS_flock, "flock", ENOLCK, false},
    {SYS_lseek, "lseek", ESPIPE, false},
    {SYS_getdents64, "getdents64", EIO, false},
    {SYS_readlinkat, "readlinkat", EACCES, false},
    {SYS_rt_sigprocmask, "rt_sigprocmask", EPERM, false},
    {SYS_rt_sigpending, "rt_sigpending", EPERM, false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", EPERM, false},
    {SYS_futex, "futex", EINTR, false},
};

long OURS(syscall)(long number, ...);
long OURS(syscall)(long number, ...) {
    NEXT(syscall);
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number != number) continue;
        if (number == SYS_rt_sigprocmask && a[0] == SIG_SETMASK) break; /* back to what the kernel itself said */
        enum outcome outcome = judge(calls[i].name, __builtin_return_address(0), calls[i].moves, calls[i].error);
        if (outcome == HALF) a[2] = (a[2] + 1) / 2;
        if (outcome == FAILS && number != SYS_close) return -1;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* For clients: from here on nothing fails, and nothing is counted. */
__attribute__((visibility("default"))) void failingStop(void) {
    atomic_store(&failing.on, false);
}

__attribute__((constructor)) static void load(void) {
    const char *report = getenv("FAILING_REPORT"), *at = getenv("FAILING_SITE"), *mode = getenv("FAILING_MODE");
    const char *error = getenv("FAILING_ERRNO");
    failing.libraries = getenv("FAILING_LIBRARIES");
    if (!failing.libraries || !report) return;
    int file = (int)direct(SYS_openat, AT_FDCWD, (long)report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    NEXT(fcntl);
    failing.report = next(file, F_DUPFD_CLOEXEC, REPORT_FROM);
    direct(SYS_close, file, 0, 0, 0);
    if (failing.report < 0) abort();
    if (at && sscanf(at, "%63[^+]+%lx:%ld", failing.library, (unsigned long *)&failing.offset, &failing.number) != 3)
        abort();
    failing.from = mode && strcmp(mode, "from") == 0;
    failing.half = mode && strcmp(mode, "short") == 0;
    failing.error = error ? atoi(error) : 0;
    atomic_store(&failing.on, true);
}
