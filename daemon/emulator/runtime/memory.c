/* Device memory: host memory that is counted as HBM; what nobody touches costs nothing. And the copies. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { GRAIN = 512, SMALL = 64 * 1024 };

typedef struct block {
    struct block *next; /* while its device is reset */
    uintptr_t begin, end;
    int chip; /* -1: host memory */
    uint64_t hbm;
    bool mapped;
} block;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *blocks; /* tree of blocks that do not overlap: equal means overlapping */

static int compare(const void *left, const void *right) {
    const block *a = left, *b = right;
    return a->end <= b->begin ? -1 : a->begin >= b->end ? 1 : 0;
}

static block *find(const void *pointer) {
    const block wanted = {.begin = (uintptr_t)pointer, .end = (uintptr_t)pointer + 1};
    block **found = tfind(&wanted, &blocks, compare);
    return found ? *found : NULL;
}

static void *allocate(size_t size, bool *mapped) {
    void *memory = NULL;
    *mapped = size >= SMALL;
    if (!*mapped) return posix_memalign(&memory, GRAIN, size) ? NULL : memory;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void release(block *freed) {
    void *memory = (void *)freed->begin; /* NOLINT: the address is the key */
    if (freed->mapped) munmap(memory, freed->end - freed->begin);
    else free(memory);
    if (freed->chip >= 0) emuNodeGiveHbm(freed->chip, freed->hbm);
    free(freed);
}

static bool keep(block *made) {
    pthread_rwlock_wrlock(&lock);
    bool kept = tsearch(made, &blocks, compare) != NULL;
    pthread_rwlock_unlock(&lock);
    return kept;
}

static rtError_t make(void **pointer, uint64_t size, int chip) {
    block *made;
    void *memory;
    if (!pointer || size == 0 || size > INT64_MAX - GRAIN) return emuError(RT_PARAM_INVALID, "size %lu", (unsigned long)size);
    size = (size + GRAIN - 1) / GRAIN * GRAIN;
    rtError_t code = chip >= 0 ? emuNodeTakeHbm(chip, size) : 0;
    if (code) return emuRefused(code, "%lu bytes of HBM of chip %d", (unsigned long)size, chip);
    made = malloc(sizeof *made);
    memory = made ? allocate(size, &made->mapped) : NULL;
    if (memory) {
        made->begin = (uintptr_t)memory;
        made->end = made->begin + size;
        made->chip = chip;
        made->hbm = chip >= 0 ? size : 0;
        if (keep(made)) return *pointer = memory, 0;
        release(made);
    } else {
        free(made);
        if (chip >= 0) emuNodeGiveHbm(chip, size);
    }
    return emuError(RT_MEMORY_ALLOCATION, "no host memory to stand for HBM");
}

static rtError_t give(const void *pointer, bool device) {
    pthread_rwlock_wrlock(&lock);
    block *found = pointer ? find(pointer) : NULL;
    if (found && (found->begin != (uintptr_t)pointer || (found->chip >= 0) != device)) found = NULL;
    if (found) tdelete(found, &blocks, compare);
    pthread_rwlock_unlock(&lock);
    if (!found) return emuError(RT_PARAM_INVALID, "%p was not allocated", pointer);
    release(found);
    return 0;
}

EMU_EXPORT rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module) {
    emuContext *context = emuCurrent();
    return context ? make(pointer, size, context->chip) : RT_CONTEXT_NULL;
}

EMU_EXPORT rtError_t rtFree(void *pointer) { return give(pointer, true); }

EMU_EXPORT rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t module) {
    return emuCurrent() ? make(pointer, size, -1) : RT_CONTEXT_NULL;
}

EMU_EXPORT rtError_t rtFreeHost(void *pointer) { return give(pointer, false); }

/* twalk() takes no argument for its function: the walk's own, under the lock. */
static int endingChip;
static block *ending;

static void chainOfChip(const void *node, VISIT visit, int depth) {
    block *one = *(block *const *)node;
    if ((visit != postorder && visit != leaf) || one->chip != endingChip) return;
    one->next = ending;
    ending = one;
}

void emuMemoryEnd(int chip) {
    pthread_rwlock_wrlock(&lock);
    endingChip = chip;
    ending = NULL;
    twalk(blocks, chainOfChip);
    for (block *next, *gone = ending; gone; gone = next) {
        next = gone->next;
        tdelete(gone, &blocks, compare);
        release(gone);
    }
    pthread_rwlock_unlock(&lock);
}

EMU_EXPORT rtError_t rtMemGetInfoEx(uint32_t type, size_t *available, size_t *total) {
    emuContext *context = emuCurrent();
    if (!context) return RT_CONTEXT_NULL;
    if (!available || !total) return emuError(RT_PARAM_INVALID, "no place for the sizes");
    emuUse used;
    rtError_t code = emuNodeUsed(context->chip, &used);
    if (code) return emuRefused(code, "HBM of chip %d", context->chip);
    *total = emuSettingsGet()->hbm;
    *available = used.hbm < *total ? *total - used.hbm : 0;
    return 0;
}

EMU_EXPORT rtError_t rtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes) {
    if (!pointer || !attributes) return emuError(RT_PARAM_INVALID, "no pointer");
    memset(attributes, 0, sizeof *attributes);
    attributes->location.type = ACL_MEM_LOCATION_UNREGISTERED;
    attributes->pageSize = (uint32_t)sysconf(_SC_PAGESIZE);
    pthread_rwlock_rdlock(&lock);
    const block *found = find(pointer);
    if (found) attributes->location.type = found->chip < 0 ? ACL_MEM_LOCATION_HOST : ACL_MEM_LOCATION_DEVICE;
    int chip = found ? found->chip : -1;
    pthread_rwlock_unlock(&lock);
    for (uint32_t device = 0; chip >= 0 && emuChipOf((int)device) >= 0; device++)
        if (emuChipOf((int)device) == chip) attributes->location.id = device;
    return 0;
}

EMU_EXPORT rtError_t rtMemGetAddressRange(void *pointer, void **base, size_t *size) {
    rtError_t code = 0;
    pthread_rwlock_rdlock(&lock);
    const block *found = find(pointer);
    if (found && base) *base = (void *)found->begin; /* NOLINT */
    if (found && size) *size = found->end - found->begin;
    if (!found) code = emuError(RT_PARAM_INVALID, "%p was not allocated", pointer);
    pthread_rwlock_unlock(&lock);
    return code;
}

/* What lies in a block has to end in it; what lies in none is the host's, or HCCL's, and not for us to judge. */
static bool inBlock(const void *pointer, uint64_t size) {
    pthread_rwlock_rdlock(&lock);
    const block *found = find(pointer);
    bool fits = !found || size <= found->end - (uintptr_t)pointer;
    pthread_rwlock_unlock(&lock);
    return fits;
}

static rtError_t checkCopy(const void *to, uint64_t room, const void *from, uint64_t count, int kind) {
    if (!to || !from) return emuError(RT_PARAM_INVALID, "no address");
    if (count == 0 || count > room)
        return emuError(RT_PARAM_INVALID, "%lu bytes to a place of %lu", (unsigned long)count, (unsigned long)room);
    if (kind < 0 || kind >= RT_MEMCPY_RESERVED) return emuError(RT_PARAM_INVALID, "memcpy kind %d", kind);
    if (!inBlock(to, count) || !inBlock(from, count))
        return emuError(RT_PARAM_INVALID, "%lu bytes reach beyond their memory", (unsigned long)count);
    return 0;
}

static rtError_t checkSync(void) {
    const emuContext *context = emuCurrent();
    if (!context) return RT_CONTEXT_NULL;
    if (emuSyncAllowed(context)) return 0;
    return emuError(RT_CAPTURE_MODE_NOT_SUPPORT, "the current capture mode does not support this operation");
}

EMU_EXPORT rtError_t rtMemcpy(void *to, uint64_t room, const void *from, uint64_t count, int kind) {
    rtError_t code = checkCopy(to, room, from, count, kind);
    if (!code) code = checkSync();
    if (!code) memmove(to, from, count);
    return code;
}

EMU_EXPORT rtError_t rtMemcpyEx(void *to, uint64_t room, const void *from, uint64_t count, int kind) {
    return rtMemcpy(to, room, from, count, kind);
}

typedef struct {
    void *to;
    const void *from; /* NULL: fill with `value` */
    uint64_t count;
    int value;
} transfer;

static int runTransfer(void *arg) {
    const transfer *work = arg;
    if (work->from) memmove(work->to, work->from, work->count);
    else memset(work->to, work->value, work->count);
    return 0;
}

static rtError_t launchTransfer(transfer work, rtStream_t stream) {
    emuStream *own;
    rtError_t code = emuStreamOwn(stream, &own);
    transfer *kept = code ? NULL : malloc(sizeof *kept);
    if (code) return code;
    if (!kept) return emuError(RT_INTERNAL_ERROR, "no host memory for a copy");
    *kept = work;
    return emuStreamLaunch(stream, runTransfer, kept, free);
}

EMU_EXPORT rtError_t rtMemcpyAsync(void *to, uint64_t room, const void *from, uint64_t count, int kind, rtStream_t stream) {
    rtError_t code = checkCopy(to, room, from, count, kind);
    return code ? code : launchTransfer((transfer){to, from, count, 0}, stream);
}

static rtError_t checkSet(const void *to, uint64_t room, uint64_t count) {
    if (!to || count == 0 || count > room || !inBlock(to, count))
        return emuError(RT_PARAM_INVALID, "%lu bytes to a place of %lu", (unsigned long)count, (unsigned long)room);
    return 0;
}

EMU_EXPORT rtError_t rtMemset(void *to, uint64_t room, uint32_t value, uint64_t count) {
    rtError_t code = checkSet(to, room, count);
    if (!code) code = checkSync();
    if (!code) memset(to, (int)value, count);
    return code;
}

EMU_EXPORT rtError_t rtMemsetAsync(void *to, uint64_t room, uint32_t value, uint64_t count, rtStream_t stream) {
    rtError_t code = checkSet(to, room, count);
    return code ? code : launchTransfer((transfer){to, NULL, count, (int)value}, stream);
}

EMU_EXPORT rtError_t rtMemcpy2d(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                                uint64_t height, int kind) {
    rtError_t code = width && height && width <= toPitch && width <= fromPitch ? 0 : RT_PARAM_INVALID;
    if (code) return emuError(code, "%lu x %lu bytes", (unsigned long)width, (unsigned long)height);
    code = checkCopy(to, toPitch * height, from, fromPitch * (height - 1) + width, kind);
    if (!code) code = checkSync();
    for (uint64_t row = 0; row < height && !code; row++)
        memmove((char *)to + row * toPitch, (const char *)from + row * fromPitch, width);
    return code;
}

EMU_EXPORT rtError_t rtMemcpy2dAsync(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                                     uint64_t height, int kind, rtStream_t stream) {
    rtError_t code = width && height && width <= toPitch && width <= fromPitch ? 0 : RT_PARAM_INVALID;
    if (code) return emuError(code, "%lu x %lu bytes", (unsigned long)width, (unsigned long)height);
    code = checkCopy(to, toPitch * height, from, fromPitch * (height - 1) + width, kind);
    for (uint64_t row = 0; row < height && !code; row++)
        code = launchTransfer((transfer){(char *)to + row * toPitch, (const char *)from + row * fromPitch, width, 0},
                              stream);
    return code;
}

void emuMemoryForkPrepare(void) { pthread_rwlock_wrlock(&lock); }

void emuMemoryForkParent(void) { pthread_rwlock_unlock(&lock); }

/* The child's copies of the memory are nobody's: it has not allocated them. */
void emuMemoryForkChild(void) {
    blocks = NULL;
    pthread_rwlock_init(&lock, NULL);
}
