/* When a communicator's lists go to the device: at its first operation, then, under a lock, at each new tag. */
#include "resources.h"

#include <stdlib.h>
#include <string.h>

#include "plf.h"

resources *resourcesNew(listRules rules) {
    resources *r = calloc(1, sizeof *r);
    context *host = calloc(1, sizeof *host);
    if (r == NULL || host == NULL) {
        free(r);
        free(host);
        return NULL;
    }
    host->localTags = (listNode){.nextHost = &host->localTags, .previousHost = &host->localTags};
    r->rules = rules;
    r->host = host;
    return r;
}

void resourcesFree(resources *r) {
    contextFree(r->host);
    hrtFree(r->device);
    hrtFree(r->lock);
    hrtFree(r->orderNotifies);
    hrtFree(r->clearDevice);
    free(r->clearHost);
    tagsFree(&r->tags);
    free(r);
}

static HcclResult ensure(void **device, size_t bytes) {
    return *device != NULL ? HCCL_SUCCESS : hrtMalloc(device, bytes, true);
}

static HcclResult launch(resources *r, const tagRequest *request) {
    void *notifies = r->orderNotifies;
    void *lock = r->lock;
    HcclResult result = ensure(&r->device, sizeof(context));
    if (result == HCCL_SUCCESS) {
        result = ensure(&lock, LOCK_BYTES);
        r->lock = lock;
    }
    if (result == HCCL_SUCCESS) {
        result = ensure(&notifies, 2 * sizeof(notify));
        r->orderNotifies = notifies;
    }
    return result == HCCL_SUCCESS ? resourcesRefresh(r, request) : result;
}

/* Flags and turn are words in device memory: host and AI CPU exclude each other by Peterson's algorithm. */
static HcclResult lockDevice(const resources *r) {
    enum { HOST, DEVICE, TURN };
    uint32_t one = 1;
    uint32_t flag;
    uint32_t turn;
    HcclResult result = hrtCopyToDevice(&r->lock[HOST], &one, sizeof one);
    if (result == HCCL_SUCCESS) {
        result = hrtCopyToDevice(&r->lock[TURN], &one, sizeof one);
    }
    if (result == HCCL_SUCCESS) {
        result = hrtCopyToHost(&flag, &r->lock[DEVICE], sizeof flag);
    }
    return result == HCCL_SUCCESS ? hrtCopyToHost(&turn, &r->lock[TURN], sizeof turn) : result;
}

static HcclResult unlockDevice(const resources *r) {
    uint32_t zero = 0;
    return hrtCopyToDevice(&r->lock[0], &zero, sizeof zero);
}

static HcclResult refreshLocked(resources *r, const tagRequest *request) {
    HcclResult result = lockDevice(r);
    if (result == HCCL_SUCCESS) {
        result = resourcesRefresh(r, request);
        HcclResult unlocked = unlockDevice(r);
        result = result == HCCL_SUCCESS ? unlocked : result;
    }
    return result;
}

/* The notify that keeps launches in order: one for eager operations, one for captured ones. */
static HcclResult sendOrderNotify(resources *r, bool captured) {
    if (r->orderNotifySent[captured]) {
        return HCCL_SUCCESS;
    }
    r->orderNotifySent[captured] = true;
    notify n = {.resource = captured};
    return hrtCopyToDevice(&r->orderNotifies[captured], &n, sizeof n);
}

HcclResult resourcesPrepare(resources *r, const tagRequest *request) {
    if (!tagsHave(&r->tags, request->tag)) {
        HcclResult result = r->launched ? refreshLocked(r, request) : launch(r, request);
        if (result != HCCL_SUCCESS) {
            return result;
        }
        r->launched = true;
        if (!tagsAdd(&r->tags, request->tag)) {
            return HCCL_E_MEMORY;
        }
    }
    return sendOrderNotify(r, request->captured);
}

static HcclResult tellCleared(resources *r, const char *const *tags, size_t count) {
    HcclResult result = HCCL_SUCCESS;
    if (r->clearHost == NULL) {
        r->clearHost = calloc(1, sizeof *r->clearHost);
        result = r->clearHost == NULL ? HCCL_E_MEMORY : hrtMalloc(&r->clearDevice, sizeof *r->clearHost, false);
    }
    for (size_t done = 0; done < count && result == HCCL_SUCCESS;) {
        clearRequest *request = r->clearHost;
        for (request->count = 0; request->count < CLEAR_TAGS_MAX && done < count; request->count++, done++) {
            strncpy(request->tags[request->count], tags[done], TAG_MAX - 1);
        }
        result = hrtCopyToDevice(r->clearDevice, request, sizeof *request);
    }
    return result;
}

HcclResult resourcesForget(resources *r, const char *const *tags, size_t count) {
    if (r->rules.growth == EMU_GROWS || count == 0 || !r->launched) {
        return HCCL_SUCCESS; /* hcomm 9.0 hears of it and unlinks nothing */
    }
    HcclResult result = tellCleared(r, tags, count);
    if (result == HCCL_SUCCESS) {
        contextUnlink(r->host, tags, count);
    }
    return result;
}
