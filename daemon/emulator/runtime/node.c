/* The emulated node: one small file that every emulated process maps, with a slot a process. flock() guards it, since
 * the kernel frees that when a process is killed; a slot left by a dead process is reclaimed as the driver would. */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

static uint64_t startTime(int pid) {
    char path[32], text[1024], *field;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = '\0';
    field = strrchr(text, ')'); /* the name before it may hold anything */
    if (field && (field[2] == 'Z' || field[2] == 'X')) return 0; /* dead, though nobody has reaped it */
    for (int i = 2; field && i < 22; i++) field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

static size_t mappedSize(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(node) + page - 1) / page * page;
}

static void fileLock(int operation) {
    while (flock(nodeFile, operation) != 0)
        if (errno != EINTR) emuDie("the emulated node cannot be locked: %s", strerror(errno));
}

/* Not fstat: a new glibc knows it by a name that old ones lack (glibc_floor.h). */
static int aboutNode(struct statx *about) {
    return statx(nodeFile, "", AT_EMPTY_PATH, STATX_BASIC_STATS, about);
}

static void openNode(void) {
    char fallback[64];
    const char *path = getenv("CAPTURE_CANARY_EMULATE_NODE");
    struct statx about;
    if (!path || !*path) {
        snprintf(fallback, sizeof fallback, "/dev/shm/capture-canary-emulated-%u", (unsigned)geteuid());
        path = fallback;
    }
    nodeFile = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (nodeFile < 0 || aboutNode(&about) != 0)
        emuDie("the emulated node %s cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(about.stx_mode) || about.stx_uid != geteuid())
        emuDie("the emulated node %s is not a file of this user", path);
    fileLock(LOCK_EX);
    if (aboutNode(&about) == 0 && about.stx_size != 0 && about.stx_size != mappedSize())
        emuDie("%s is not an emulated node of this version: remove it", path);
    if (about.stx_size == 0 && ftruncate(nodeFile, (off_t)mappedSize()) != 0)
        emuDie("the emulated node %s cannot be made: %s", path, strerror(errno));
    theNode = mmap(NULL, mappedSize(), PROT_READ | PROT_WRITE, MAP_SHARED, nodeFile, 0);
    if (theNode == MAP_FAILED) emuDie("the emulated node %s cannot be mapped: %s", path, strerror(errno));
    if (about.stx_size == 0) {
        theNode->version = NODE_VERSION;
        memcpy(theNode->magic, nodeMagic, sizeof nodeMagic);
    }
    if (memcmp(theNode->magic, nodeMagic, sizeof nodeMagic) != 0 || theNode->version != NODE_VERSION ||
        theNode->slots > EMU_MAX_SLOTS)
        emuDie("%s is not an emulated node of this version: remove it", path);
    fileLock(LOCK_UN);
}

static void enter(void) {
    pthread_mutex_lock(&lock);
    if (!theNode) openNode();
    fileLock(LOCK_EX);
}

static void leave(void) {
    fileLock(LOCK_UN);
    pthread_mutex_unlock(&lock);
}

static void reclaimDead(void) {
    for (uint32_t i = 0; i < theNode->slots; i++) {
        emuSlot *slot = &theNode->slot[i];
        if (slot->pid && slot != mySlot && startTime(slot->pid) != slot->started) memset(slot, 0, sizeof *slot);
    }
}

static emuSlot *takeSlot(void) {
    uint32_t i = 0;
    if (mySlot) return mySlot;
    reclaimDead();
    while (i < theNode->slots && theNode->slot[i].pid) i++;
    if (i == EMU_MAX_SLOTS) emuDie("more than %d processes use the emulated node", EMU_MAX_SLOTS);
    if (i == theNode->slots) theNode->slots++;
    mySlot = &theNode->slot[i];
    memset(mySlot, 0, sizeof *mySlot);
    mySlot->started = startTime(getpid());
    mySlot->pid = getpid();
    return mySlot;
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

static bool change(int chip, int64_t bytes, int streams, int users) {
    enter();
    emuSlot *slot = takeSlot();
    bool fit = fits(chip, bytes, streams);
    if (!fit) {
        reclaimDead();
        fit = fits(chip, bytes, streams);
    }
    if (fit) {
        slot->chip[chip].hbm += (uint64_t)bytes;
        slot->chip[chip].streams += (uint32_t)streams;
        slot->chip[chip].users += (uint32_t)users;
    }
    leave();
    return fit;
}

int emuNodeHbm(int chip, int64_t bytes) { return change(chip, bytes, 0, 0) ? 0 : RT_MEMORY_ALLOCATION; }

int emuNodeStreams(int chip, int streams) { return change(chip, 0, streams, 0) ? 0 : RT_NO_STREAM_RESOURCE; }

void emuNodeUser(int chip, int users) { change(chip, 0, 0, users); }

emuUse emuNodeUsed(int chip) {
    enter();
    reclaimDead();
    emuUse used = sum(chip);
    leave();
    return used;
}

int emuNodeSlots(emuSlot *slots) {
    int count = 0;
    enter();
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
