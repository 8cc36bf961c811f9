/* A client of CANN in scenarios, finding CANN's functions in the way it is compiled for:
 * BY_HANDLE: dlsym on the library (torch-npu up to 2.9); BY_DEFAULT: dlsym on RTLD_DEFAULT (newer, with LD_PRELOAD);
 * else linked. Ends with 0 where everything returned what CANN returns, errno included. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cann.h"

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
            _exit(91);                                                         \
        }                                                                      \
    } while (0)

#define FUNCTIONS(X)                                                                              \
    X(aclrtMemcpy) X(aclrtSetDevice) X(aclmdlRICaptureBegin) X(aclmdlRICaptureEnd) X(aclmdlRIDestroy) \
    X(HcclGetRootInfo) X(HcclCommInitRootInfo) X(HcclCommInitRootInfoConfig) X(HcclCommDestroy) \
    X(HcclAllReduce) X(HcclAllGather)

static struct {
#define X(NAME) __typeof__(&NAME) NAME;
    FUNCTIONS(X)
#undef X
} cann;

static void *find(const char *name) {
#if defined(BY_HANDLE)
    void *found = dlsym(dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL), name);
    if (found == NULL) {
        found = dlsym(dlopen("libhccl.so", RTLD_NOW | RTLD_LOCAL), name);
    }
#else
    void *found = dlsym(RTLD_DEFAULT, name);
#endif
    CHECK(found != NULL);
    return found;
}

static void load(void) {
#if defined(BY_HANDLE) || defined(BY_DEFAULT)
#define X(NAME) cann.NAME = (__typeof__(&NAME))find(#NAME);
#else
#define X(NAME) cann.NAME = NAME;
#endif
    FUNCTIONS(X)
#undef X
    (void)find;
}

static __thread char device_memory[16384], host_memory[16384];

static int copy(size_t bytes, int kind) {
    errno = 0;
    int code = cann.aclrtMemcpy(device_memory, sizeof device_memory, host_memory, bytes, kind);
    CHECK(errno == ERRNO_OF_CANN);
    return code;
}

static void copies(int count) {
    for (int i = 0; i < count; i++) {
        CHECK(copy(BYTES_A_COPY, HOST_TO_DEVICE) == 0);
    }
}

static int begin(void *stream) {
    errno = 0;
    int code = cann.aclmdlRICaptureBegin(stream, 0);
    CHECK(errno == ERRNO_OF_CANN);
    return code;
}

static int end(void *stream) {
    void *graph;
    errno = 0;
    int code = cann.aclmdlRICaptureEnd(stream, &graph);
    CHECK(errno == ERRNO_OF_CANN);
    return code;
}

static void capture(int copied) {
    CHECK(begin(host_memory) == 0);
    copies(copied);
    CHECK(end(host_memory) == 0);
}

static void *communicator(void) {
    void *comm;
    errno = 0;
    CHECK(cann.HcclCommInitRootInfo(2, host_memory, 1, &comm) == 0);
    CHECK(errno == ERRNO_OF_CANN);
    return comm;
}

static void reduce(void *comm) {
    CHECK(cann.HcclAllReduce(host_memory, device_memory, 1, 0, 0, comm, host_memory) == 0);
}

/* One eager collective, then three captures of 1, 2, 3 AllReduce and one AllGather, and odd copies in each. */
static void plain(void) {
    CHECK(cann.HcclGetRootInfo(host_memory) == 0);
    void *comm = communicator(), *second = communicator();
    reduce(comm);
    CHECK(getppid() > 0);
    for (int n = 1; n <= 3; n++) {
        CHECK(begin(host_memory) == 0);
        for (int i = 0; i < n; i++) {
            reduce(comm);
        }
        CHECK(cann.HcclAllGather(host_memory, device_memory, 1, 0, second, host_memory) == 0);
        CHECK(copy(64, DEFAULT_KIND) == 0);
        CHECK(copy(0, HOST_TO_DEVICE) == 0);
        CHECK(copy(BYTES_THAT_FAIL, HOST_TO_DEVICE) == 107030);
        CHECK(end(host_memory) == 0);
    }
    CHECK(cann.aclmdlRIDestroy(host_memory) == 0);
    capture(1);
    CHECK(cann.HcclCommDestroy(comm) == 0);
}

static void failing(void) {
    CHECK(begin(STREAM_THAT_FAILS) == 207008);
    CHECK(begin((void *)0xbadeed) == 0);
    copies(2);
    CHECK(end((void *)0xbadeed) == 107025);
    CHECK(end(host_memory) == 0); /* never begun: not ours to judge */
    capture(1);
}

static void *copyOften(void *arg) {
    copies(1000);
    return arg;
}

static void threads(void) {
    pthread_t helpers[4];
    for (int round = 0; round < 3; round++) {
        CHECK(begin(host_memory) == 0);
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_create(&helpers[i], NULL, copyOften, NULL) == 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(helpers[i], NULL);
        }
        CHECK(end(host_memory) == 0);
    }
}

static pthread_barrier_t together;
static int same_device;

static void *captureBeside(void *arg) {
    long number = (long)arg;
    cann.aclrtSetDevice(same_device ? 0 : (int32_t)number);
    void *stream = &host_memory[number];
    CHECK(begin(stream) == 0);
    pthread_barrier_wait(&together);
    copies(10 * ((int)number + 1));
    pthread_barrier_wait(&together);
    CHECK(end(stream) == 0);
    return NULL;
}

static void overlapping(void) {
    pthread_t helpers[2];
    pthread_barrier_init(&together, NULL, 2);
    for (long i = 0; i < 2; i++) {
        CHECK(pthread_create(&helpers[i], NULL, captureBeside, (void *)i) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(helpers[i], NULL);
    }
    capture(5);
}

static void *captureOften(void *arg) {
    for (int i = 0; i < 50; i++) {
        CHECK(begin(arg) == 0);
        copies(2);
        CHECK(end(arg) == 0);
    }
    return NULL;
}

static void crowd(void) { /* more at once than the tracer follows, on all paths */
    pthread_t helpers[24];
    void *comm = communicator();
    for (int i = 0; i < 24; i++) {
        CHECK(pthread_create(&helpers[i], NULL, captureOften, &host_memory[i]) == 0);
    }
    for (int i = 0; i < 200; i++) {
        reduce(comm);
    }
    for (int i = 0; i < 24; i++) {
        pthread_join(helpers[i], NULL);
    }
}

static void reap(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void forking(void) {
    capture(1);
    CHECK(begin(host_memory) == 0);
    copies(2);
    pid_t child = fork();
    if (child == 0) { /* the capture under way is the parent's */
        copies(7);
        capture(3);
        capture(4);
        exit(0);
    }
    reap(child);
    copies(1);
    CHECK(end(host_memory) == 0);
    capture(5);
}

static void executing(char **argv) {
    if (getenv("SECOND_IMAGE") == NULL) {
        capture(1);
        setenv("SECOND_IMAGE", "1", 1);
        execv("/proc/self/exe", argv);
        CHECK(0);
    }
    capture(2);
}

static void closing(void) { /* a server that closes all descriptors it does not know, and gets the numbers again */
    char name[] = "/tmp/other-file-XXXXXX";
    void *comm = communicator();
    CHECK(begin(host_memory) == 0);
    for (int i = 3; i < 64; i++) {
        close(i);
    }
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0 && write(file, "mine", 4) == 4);
    for (int i = 0; i < 8; i++) {
        CHECK(dup(file) >= 0);
    }
    copies(1);
    CHECK(end(host_memory) == 0);
    reduce(comm);
    capture(1);
    for (int i = file; i < file + 9; i++) {
        CHECK(fcntl(i, F_GETFD) >= 0 && lseek(i, 0, SEEK_END) == 4);
    }
}

static int descriptors(void) {
    int count = 0;
    for (int i = 0; i < 1024; i++) {
        count += fcntl(i, F_GETFD) >= 0;
    }
    return count;
}

/* Says what of the process is not as it was. */
static void unchanged(void) {
    sigset_t before = {0}, after = {0};
    int open = descriptors();
    sigprocmask(SIG_SETMASK, NULL, &before);
    plain();
    sigprocmask(SIG_SETMASK, NULL, &after);
    printf("descriptors: %d, signals: %d\n", descriptors() - open, memcmp(&before, &after, sizeof before));
}

static void many(int count) {
    for (int i = 0; i < count; i++) {
        capture(1);
    }
}

static void dying(void) {
    CHECK(begin(host_memory) == 0);
    copies(1);
    raise(SIGKILL);
}

static void dyingTogether(int count) { /* each once all have begun: a byte each in a file says so */
    CHECK(begin(host_memory) == 0);
    int file = open(getenv("TOGETHER"), O_RDWR | O_CREAT | O_APPEND, 0600);
    CHECK(write(file, "x", 1) == 1);
    while (lseek(file, 0, SEEK_END) < count) {
        usleep(1000);
    }
    raise(SIGKILL);
}

static void eager(int count) {
    void *comm = communicator();
    for (int i = 0; i < count; i++) {
        reduce(comm);
    }
}

static void command(void) { /* something else happens between two captures: argv says what */
    const char *line = getenv("BETWEEN");
    capture(1);
    CHECK(line != NULL && system(line) == 0);
    capture(2);
}

static void configured(void) {
    char config[2048] = {0};
    void *comm;
    *(size_t *)config = sizeof config;
    *(uint32_t *)(config + 8) = 0xf0f0f0f0u;
    *(uint32_t *)(config + 288) = 3; /* hcclOpExpansionMode: AIV */
    setenv("HCCL_OP_EXPANSION_MODE", "AI_CPU", 1);
    CHECK(cann.HcclCommInitRootInfoConfig(8, host_memory, 5, config, &comm) == 0);
    setenv("HCCL_OP_EXPANSION_MODE", "HOST", 1); /* too late */
    void *second = communicator();
    CHECK(begin(host_memory) == 0);
    reduce(second);
    reduce(second);
    reduce(comm);
    CHECK(end(host_memory) == 0);
    CHECK(cann.HcclCommDestroy(second) == 0);
    communicator();
}

static void reopening(void) {
    capture(1);
    void *library = dlopen("libascendcl.so", RTLD_NOW);
    for (int i = 0; i < 40; i++) { /* more often than anybody opened it */
        if (dlclose(library) != 0) {
            break;
        }
    }
    load();
    capture(2);
}

__attribute__((visibility("default"))) int scenario(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    load();
    if (strcmp(name, "plain") == 0) plain();
    else if (strcmp(name, "failing") == 0) failing();
    else if (strcmp(name, "threads") == 0) threads();
    else if (strcmp(name, "overlapping") == 0) overlapping();
    else if (strcmp(name, "overlapping-device") == 0) same_device = 1, overlapping();
    else if (strcmp(name, "crowd") == 0) crowd();
    else if (strcmp(name, "forking") == 0) forking();
    else if (strcmp(name, "executing") == 0) executing(argv);
    else if (strcmp(name, "closing") == 0) closing();
    else if (strcmp(name, "unchanged") == 0) unchanged();
    else if (strcmp(name, "many") == 0) many(number);
    else if (strcmp(name, "dying") == 0) dying();
    else if (strcmp(name, "dying-together") == 0) dyingTogether(number);
    else if (strcmp(name, "eager") == 0) eager(number);
    else if (strcmp(name, "command") == 0) command();
    else if (strcmp(name, "configured") == 0) configured();
    else if (strcmp(name, "reopening") == 0) reopening();
    else return 92;
    return 0;
}
