/* The emulated node: one small file that every emulated process maps, with a slot a process. flock() guards it, since
 * the kernel frees that when a process is killed; a slot left by a dead process is reclaimed as the driver would. */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODE_VERSION = 1 };
static const char nodeMagic[8] = "ccnode\n";

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t slots; /* slots in use lie below this */
    emuSlot slot[EMU_MAX_SLOTS];
} node;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* flock() is the process's, not the thread's */
static node *theNode;
static emuSlot *mySlot;
static int nodeFile = -1;

static _Thread_local char problem[256];

const char *emuNodeProblem(void) { return problem; }

/* What the machine is short of at the moment is an error of the call; what can never become a node ends the process. */
static int failed(const char *what, const char *path) {
    snprintf(problem, sizeof problem, "the emulated node %s cannot be %s: %s", path, what, strerror(errno));
    return RT_DEV_SETUP_ERROR;
}

/* When a process started, 0 where it is dead. False: that cannot be told now, for want of a descriptor or the like. */
static bool startTime(int pid, uint64_t *started) {
    char path[32], text[1024], *field;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    *started = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT;
    ssize_t length = read(file, text, sizeof text - 1);
    int why = errno;
    close(file);
    if (length < 0) return why == ESRCH;
    text[length] = '\0';
    field = strrchr(text, ')'); /* the name before it may hold anything */
    if (field && (field[2] == 'Z' || field[2] == 'X')) return true; /* dead, though nobody has reaped it */
    for (int i = 2; field && i < 22; i++) field = strchr(field + 1, ' ');
    *started = field ? strtoull(field + 1, NULL, 10) : 0;
    return *started != 0;
}

static size_t mappedSize(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(node) + page - 1) / page * page;
}

static bool fileLock(int file, int operation) {
    while (flock(file, operation) != 0)
        if (errno != EINTR) return false;
    return true;
}

/* The kernel may want memory even for this; who holds the lock for ever stops everybody. */
static void fileUnlock(void) {
    for (int tries = 0; tries < 100 && !fileLock(nodeFile, LOCK_UN); tries++) sched_yield();
}

/* Not fstat: a new glibc knows it by a name that old ones lack (glibc_floor.h). */
static bool aboutFile(int file, struct statx *about) {
    return statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, about) == 0;
}

static int openFile(const char *path) {
    int file;
    do file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (file < 0 && errno == EINTR);
    if (file < 0 && (errno == ELOOP || errno == EISDIR)) emuDie("the emulated node %s is not a file of this user", path);
    return file;
}

/* The file's lock is held. */
static int mapFile(int file, const char *path) {
    struct statx about;
    if (!aboutFile(file, &about)) return failed("looked at", path);
    if (!S_ISREG(about.stx_mode) || about.stx_uid != geteuid())
        emuDie("the emulated node %s is not a file of this user", path);
    if (about.stx_size != 0 && about.stx_size != mappedSize())
        emuDie("%s is not an emulated node of this version: remove it", path);
    if (about.stx_size == 0 && ftruncate(file, (off_t)mappedSize()) != 0) return failed("made", path);
    node *mapped = mmap(NULL, mappedSize(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return failed("mapped", path);
    if (mapped->version == 0) { /* new, or its maker got no further */
        mapped->version = NODE_VERSION;
        memcpy(mapped->magic, nodeMagic, sizeof nodeMagic);
    }
    if (memcmp(mapped->magic, nodeMagic, sizeof nodeMagic) != 0 || mapped->version != NODE_VERSION ||
        mapped->slots > EMU_MAX_SLOTS)
        emuDie("%s is not an emulated node of this version: remove it", path);
    theNode = mapped;
    return 0;
}

static const char *pathOfNode(char fallback[64]) {
    const char *path = getenv("CAPTURE_CANARY_EMULATE_NODE");
    if (path && *path) return path;
    snprintf(fallback, 64, "/dev/shm/capture-canary-emulated-%u", (unsigned)geteuid());
    return fallback;
}

/* Leaves the file's lock held where it succeeds. */
static int openNode(void) {
    char fallback[64];
    const char *path = pathOfNode(fallback);
    int file = openFile(path);
    if (file < 0) return failed("opened", path);
    int code = fileLock(file, LOCK_EX) ? mapFile(file, path) : failed("locked", path);
    if (code == 0) nodeFile = file;
    else close(file);
    return code;
}

/* 0: the node is ours until leave(). */
static int enter(void) {
    char fallback[64];
    pthread_mutex_lock(&lock);
    int code = !theNode ? openNode() : fileLock(nodeFile, LOCK_EX) ? 0 : failed("locked", pathOfNode(fallback));
    if (code) pthread_mutex_unlock(&lock);
    return code;
}

static void leave(void) {
    fileUnlock();
    pthread_mutex_unlock(&lock);
}

static void reclaimDead(void) {
    for (uint32_t i = 0; i < theNode->slots; i++) {
        emuSlot *slot = &theNode->slot[i];
        uint64_t started;
        if (slot->pid && slot != mySlot && startTime(slot->pid, &started) && started != slot->started)
            memset(slot, 0, sizeof *slot);
    }
}

static int takeSlot(void) {
    uint32_t i = 0;
    uint64_t started;
    if (mySlot) return 0;
    if (!startTime(getpid(), &started) || !started) return failed("used", "by this process");
    reclaimDead();
    while (i < theNode->slots && theNode->slot[i].pid) i++;
    if (i == EMU_MAX_SLOTS) return errno = EUSERS, failed("used", "by this process");
    if (i == theNode->slots) theNode->slots++;
    mySlot = &theNode->slot[i];
    memset(mySlot, 0, sizeof *mySlot);
    mySlot->started = started;
    mySlot->pid = getpid();
    return 0;
}

static emuUse sum(int chip) {
    emuUse total = {0, 0, 0};
    for (uint32_t i = 0; i < theNode->slots; i++) {
        const emuUse *use = &theNode->slot[i].chip[chip];
        if (!theNode->slot[i].pid) continue;
        total.hbm += use->hbm;
        total.streams += use->streams;
        total.users += use->users;
    }
    return total;
}

static bool fits(int chip, int64_t bytes, int streams) {
    emuUse used = sum(chip);
    uint64_t hbm = emuSettingsGet()->hbm;
    if (bytes > 0 && (used.hbm > hbm || (uint64_t)bytes > hbm - used.hbm)) return false;
    return streams <= 0 || used.streams + (uint32_t)streams <= EMU_MAX_STREAMS;
}

static void add(int chip, int64_t bytes, int streams, int users) {
    mySlot->chip[chip].hbm += (uint64_t)bytes;
    mySlot->chip[chip].streams += (uint32_t)streams;
    mySlot->chip[chip].users += (uint32_t)users;
}

/* `lacking` where the chip has not enough left. */
static int take(int chip, int64_t bytes, int streams, int users, int lacking) {
    int code = enter();
    if (code) return code;
    code = takeSlot();
    if (!code && !fits(chip, bytes, streams)) {
        reclaimDead();
        if (!fits(chip, bytes, streams)) code = lacking;
    }
    if (!code) add(chip, bytes, streams, users);
    leave();
    return code;
}

/* Never fails: only this process writes to its slot, and without the file's lock others see a little later what is free. */
static void give(int chip, int64_t bytes, int streams, int users) {
    bool locked = enter() == 0;
    if (!locked) pthread_mutex_lock(&lock);
    if (mySlot) add(chip, -bytes, -streams, -users);
    if (locked) fileUnlock();
    pthread_mutex_unlock(&lock);
}

int emuNodeTakeHbm(int chip, uint64_t bytes) { return take(chip, (int64_t)bytes, 0, 0, RT_MEMORY_ALLOCATION); }

int emuNodeTakeStream(int chip) { return take(chip, 0, 1, 0, RT_NO_STREAM_RESOURCE); }

int emuNodeTakeChip(int chip) { return take(chip, 0, 0, 1, 0); }

void emuNodeGiveHbm(int chip, uint64_t bytes) { give(chip, (int64_t)bytes, 0, 0); }

void emuNodeGiveStreams(int chip, int streams) { give(chip, 0, streams, 0); }

void emuNodeGiveChip(int chip) { give(chip, 0, 0, 1); }

int emuNodeUsed(int chip, emuUse *used) {
    int code = enter();
    if (code) return code;
    reclaimDead();
    *used = sum(chip);
    leave();
    return 0;
}

int emuNodeSlots(emuSlot *slots) {
    int count = 0;
    if (enter()) return -1;
    reclaimDead();
    for (uint32_t i = 0; i < theNode->slots; i++)
        if (theNode->slot[i].pid) slots[count++] = theNode->slot[i];
    leave();
    return count;
}

void emuNodeForkPrepare(void) { pthread_mutex_lock(&lock); }

void emuNodeForkParent(void) { pthread_mutex_unlock(&lock); }

void emuNodeForkChild(void) {
    if (theNode) munmap(theNode, mappedSize());
    if (nodeFile >= 0) close(nodeFile); /* a lock taken through it would be the parent's */
    nodeFile = -1;
    theNode = NULL;
    mySlot = NULL;
    pthread_mutex_init(&lock, NULL);
}
