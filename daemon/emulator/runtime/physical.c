/* Address ranges and physical memory apart (torch-npu's expandable segments). Content belongs to the address here. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { GRANULARITY = 2 << 20 };

typedef struct physical {
    uint64_t size;
    int chip;
} physical;

typedef struct range {
    struct range *next;
    char *begin;
    size_t size;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *reserved, *mapped;

static bool keep(range **list, void *begin, size_t size) {
    range *made = malloc(sizeof *made);
    if (!made) return false;
    pthread_mutex_lock(&lock);
    *made = (range){*list, begin, size};
    *list = made;
    pthread_mutex_unlock(&lock);
    return true;
}

/* `end` is what happens to the range; where it fails, the range is kept. */
static rtError_t give(range **list, void *begin, int (*end)(void *, size_t)) {
    rtError_t code = 0;
    pthread_mutex_lock(&lock);
    while (*list && (*list)->begin != begin) list = &(*list)->next;
    range *found = *list;
    if (!found) {
        code = emuError(RT_PARAM_INVALID, "%p is not such a range", begin);
    } else if (end(begin, found->size) != 0) {
        code = emuError(RT_INTERNAL_ERROR, "%p cannot be given back", begin);
    } else {
        *list = found->next;
        free(found);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EMU_EXPORT rtError_t rtReserveMemAddress(void **begin, size_t size, size_t alignment, void *wanted, uint64_t flags) {
    if (!begin || size == 0) return emuError(RT_PARAM_INVALID, "nothing to reserve");
    void *memory = mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return emuError(RT_MEMORY_ALLOCATION, "%zu bytes of addresses", size);
    if (!keep(&reserved, memory, size)) {
        munmap(memory, size);
        return emuError(RT_INTERNAL_ERROR, "no host memory");
    }
    *begin = memory;
    return 0;
}

EMU_EXPORT rtError_t rtReleaseMemAddress(void *begin) {
    return give(&reserved, begin, munmap);
}

EMU_EXPORT rtError_t rtMallocPhysical(void **handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    emuContext *context = emuCurrent();
    physical *made;
    int chip;
    if (!context) return RT_CONTEXT_NULL;
    if (!handle || !prop || size == 0 || size > INT64_MAX) return emuError(RT_PARAM_INVALID, "nothing to allocate");
    chip = prop->location.type == ACL_MEM_LOCATION_DEVICE ? emuChipOf((int)prop->location.id) : -1;
    if (chip < 0) return emuError(RT_INVALID_DEVICEID, "device %u", prop->location.id);
    rtError_t code = emuNodeTakeHbm(chip, size);
    if (code) return emuRefused(code, "%zu bytes of HBM", size);
    made = malloc(sizeof *made);
    if (!made) {
        emuNodeGiveHbm(chip, size);
        return emuError(RT_INTERNAL_ERROR, "no host memory");
    }
    *made = (physical){size, chip};
    *handle = made;
    return 0;
}

EMU_EXPORT rtError_t rtFreePhysical(void *handle) {
    physical *freed = handle;
    if (!freed) return emuError(RT_PARAM_INVALID, "no handle");
    emuNodeGiveHbm(freed->chip, freed->size);
    free(freed);
    return 0;
}

static int hide(void *begin, size_t size) {
    (void)madvise(begin, size, MADV_DONTNEED);
    return mprotect(begin, size, PROT_NONE);
}

EMU_EXPORT rtError_t rtMapMem(void *begin, size_t size, size_t offset, void *handle, uint64_t flags) {
    if (!begin || !handle || size > ((physical *)handle)->size) return emuError(RT_PARAM_INVALID, "nothing to map");
    if (mprotect(begin, size, PROT_READ | PROT_WRITE) != 0) return emuError(RT_PARAM_INVALID, "%p cannot be mapped", begin);
    if (keep(&mapped, begin, size)) return 0;
    (void)hide(begin, size);
    return emuError(RT_INTERNAL_ERROR, "no host memory");
}

EMU_EXPORT rtError_t rtUnmapMem(void *begin) {
    return give(&mapped, begin, hide);
}

EMU_EXPORT rtError_t rtMemGetAllocationGranularity(const aclrtPhysicalMemProp *prop, int option, size_t *granularity) {
    if (!granularity) return emuError(RT_PARAM_INVALID, "no place for the granularity");
    *granularity = GRANULARITY;
    return 0;
}
