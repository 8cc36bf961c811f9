/* HCCL's resource lists: what a communicator tells the AI CPU of its operations, and the copies that this takes.
 * Every list node exists on the host and on the device. Up to hcomm 9.1 a new tag copies every node of every list to
 * the device again: that is the growth. How many copies come of it is counted nowhere here; the lists are walked. */
#include "lists.h"

#include <stdlib.h>
#include <string.h>

#include "plf.h"

enum { PEERS_MAX = 128 * 1024, CLEAR_TAGS_MAX = 10240, UPDATE_NODES = 2, NOTIFIES = 3, LOCK_BYTES = 32 };

/* A doubly linked ring through host and device memory at once. */
typedef struct listNode {
    struct listNode *nextHost, *previousHost;
    void *nextDevice, *previousDevice;
} listNode;

typedef struct { /* of a tag, at this rank: its scratch memory */
    listNode link;
    char tag[TAG_MAX];
    uint64_t scratch, scratchBytes;
} localNode;

typedef struct { /* of a tag, at a peer: the link to it */
    listNode link;
    char tag[TAG_MAX];
    void *notifyLists[2]; /* RoCE only */
    uint8_t endpoints[11984 - 32 - TAG_MAX - 16];
} remoteNode;

typedef struct { /* of a peer */
    listNode tags;
    uint64_t windowIn, windowOut;
    uint32_t rank, world;
    uint64_t reserved;
} relation;

typedef struct { /* HcclOpResParam; `tail` shows in hcomm 9.0 and later */
    listNode localTags;
    struct {
        relation *host;
        relation *device;
    } peer[PEERS_MAX];
    uint8_t rest[2122688 - 32 - PEERS_MAX * 16];
    uint8_t tail[32];
} context;

typedef struct {
    uint64_t resource, address;
    uint32_t device, ts, rank, flag;
} notify;
typedef struct {
    uint64_t address;
    uint32_t key, reserved;
} addressKey;

typedef struct { /* what tells the AI CPU to drop tags; the size is that of hcomm's HcclKfcClearOpResTilingData */
    uint32_t magic, count;
    char group[128];
    char tags[CLEAR_TAGS_MAX][TAG_MAX];
    uint8_t rest[2621704 - 8 - 128 - CLEAR_TAGS_MAX * TAG_MAX];
} clearRequest;

_Static_assert(sizeof(localNode) == 304 && sizeof(remoteNode) == 11984 && sizeof(relation) == 64, "hcomm's sizes");
_Static_assert(sizeof(context) == 2122720 && sizeof(notify) == 32 && sizeof(addressKey) == 16, "hcomm's sizes");

struct resources {
    listRules rules;
    bool launched;             /* the device has the context */
    bool orderNotifySent[2];   /* eager, captured */
    context *host;
    void *device;
    uint32_t *lock;            /* Peterson's, between host and AI CPU: host's flag, device's flag, turn */
    notify *orderNotifies;
    clearRequest *clearHost;
    void *clearDevice;
    tagSet tags;
};

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

static void freeRemoteNode(remoteNode *node, void *device) {
    hrtFree(node->notifyLists[0]);
    hrtFree(node->notifyLists[1]);
    hrtFree(device);
    free(node);
}

static void freePeer(relation *host, relation *device) {
    listNode *head = &host->tags;
    void *nodeDevice = head->nextDevice;
    for (listNode *node = head->nextHost; node != head;) {
        listNode *next = node->nextHost;
        void *nextDevice = node->nextDevice;
        freeRemoteNode((remoteNode *)node, nodeDevice);
        node = next;
        nodeDevice = nextDevice;
    }
    hrtFree(device);
    free(host);
}

void resourcesFree(resources *r) {
    listNode *head = &r->host->localTags;
    void *device = head->nextDevice;
    for (listNode *node = head->nextHost; node != head;) {
        localNode *local = (localNode *)node;
        node = node->nextHost;
        hrtFree(device);
        device = local->link.nextDevice;
        free(local);
    }
    for (size_t i = 0; i < PEERS_MAX; i++) {
        if (r->host->peer[i].host != NULL) {
            freePeer(r->host->peer[i].host, r->host->peer[i].device);
        }
    }
    hrtFree(r->device);
    hrtFree(r->lock);
    hrtFree(r->orderNotifies);
    hrtFree(r->clearDevice);
    free(r->clearHost);
    free(r->host);
    tagsFree(&r->tags);
    free(r);
}

static void listAddHead(listNode *node, void *nodeDevice, listNode *head, void *headDevice) {
    *node = (listNode){.nextHost = head->nextHost,
                       .previousHost = head,
                       .nextDevice = head->nextHost == head ? headDevice : head->nextDevice,
                       .previousDevice = headDevice};
    head->nextHost->previousHost = node;
    head->nextHost->previousDevice = nodeDevice;
    head->nextHost = node;
    head->nextDevice = nodeDevice;
}

static void listRemove(listNode *node) {
    node->previousHost->nextHost = node->nextHost;
    node->previousHost->nextDevice = node->nextDevice;
    node->nextHost->previousHost = node->previousHost;
    node->nextHost->previousDevice = node->previousDevice;
}

/* Bring a list to the device: all of it, or since PR 2502 the new head and the node whose links it changed. */
static HcclResult copyList(const resources *r, const listNode *head, size_t bytes) {
    void *device = head->nextDevice;
    uint32_t copied = 0;
    for (const listNode *node = head->nextHost; node != head; node = node->nextHost) {
        if (r->rules.growth == EMU_FIXED && copied++ == UPDATE_NODES) {
            break;
        }
        HcclResult result = hrtCopyToDevice(device, node, bytes);
        if (result != HCCL_SUCCESS) {
            return result;
        }
        device = node->nextDevice;
    }
    return HCCL_SUCCESS;
}

static HcclResult copyContext(const resources *r) {
    size_t bytes = sizeof(context) - (r->rules.before90 ? sizeof r->host->tail : 0);
    HcclResult result = hrtCopyToDevice(r->device, r->host, bytes);
    if (result == HCCL_SUCCESS) {
        result = copyList(r, &r->host->localTags, sizeof(localNode));
    }
    for (size_t i = 0; i < PEERS_MAX && result == HCCL_SUCCESS; i++) {
        const relation *peer = r->host->peer[i].host;
        if (peer != NULL) {
            result = hrtCopyToDevice(r->host->peer[i].device, peer, sizeof *peer);
            if (result == HCCL_SUCCESS) {
                result = copyList(r, &peer->tags, sizeof(remoteNode));
            }
        }
    }
    return result;
}

static HcclResult addLocal(resources *r, const char *tag) {
    localNode *node = calloc(1, sizeof *node);
    void *device;
    if (node == NULL) {
        return HCCL_E_MEMORY;
    }
    HcclResult result = hrtMalloc(&device, sizeof *node, true);
    if (result != HCCL_SUCCESS) {
        free(node);
        return result;
    }
    strncpy(node->tag, tag, TAG_MAX - 1);
    listAddHead(&node->link, device, &r->host->localTags, r->device);
    return HCCL_SUCCESS;
}

static HcclResult addPeer(resources *r, uint32_t rank) {
    relation *peer = calloc(1, sizeof *peer);
    void *device;
    if (peer == NULL) {
        return HCCL_E_MEMORY;
    }
    HcclResult result = hrtMalloc(&device, sizeof *peer, true);
    if (result != HCCL_SUCCESS) {
        free(peer);
        return result;
    }
    peer->tags = (listNode){.nextHost = &peer->tags, .previousHost = &peer->tags};
    peer->rank = rank;
    r->host->peer[rank].host = peer;
    r->host->peer[rank].device = device;
    return HCCL_SUCCESS;
}

/* A RoCE link has notifies at both ends; the AI CPU reads them from two lists of their own. */
static HcclResult addNotifyLists(remoteNode *node) {
    notify local[NOTIFIES] = {0};
    addressKey remote[NOTIFIES] = {0};
    const void *lists[] = {local, remote};
    const size_t bytes[] = {sizeof local, sizeof remote};
    for (int i = 0; i < 2; i++) {
        HcclResult result = hrtMalloc(&node->notifyLists[i], bytes[i], true);
        if (result == HCCL_SUCCESS) {
            result = hrtCopyToDevice(node->notifyLists[i], lists[i], bytes[i]);
        }
        if (result != HCCL_SUCCESS) {
            return result;
        }
    }
    return HCCL_SUCCESS;
}

static HcclResult addRemote(resources *r, uint32_t rank, const tagRequest *request) {
    HcclResult result = HCCL_SUCCESS;
    if (r->host->peer[rank].host == NULL && (result = addPeer(r, rank)) != HCCL_SUCCESS) {
        return result;
    }
    remoteNode *node = calloc(1, sizeof *node);
    void *device = NULL;
    if (node == NULL) {
        return HCCL_E_MEMORY;
    }
    result = hrtMalloc(&device, sizeof *node, true);
    if (result == HCCL_SUCCESS && request->roce) {
        result = addNotifyLists(node);
    }
    if (result != HCCL_SUCCESS) {
        freeRemoteNode(node, device);
        return result;
    }
    strncpy(node->tag, request->tag, TAG_MAX - 1);
    listAddHead(&node->link, device, &r->host->peer[rank].host->tags, r->host->peer[rank].device);
    return HCCL_SUCCESS;
}

/* Add the tag to the lists and copy what the rules have copied. */
static HcclResult refresh(resources *r, const tagRequest *request) {
    HcclResult result = request->scratch ? addLocal(r, request->tag) : HCCL_SUCCESS;
    for (uint32_t i = 0; i < request->nPeers && result == HCCL_SUCCESS; i++) {
        result = addRemote(r, request->peers[i] % PEERS_MAX, request);
    }
    return result == HCCL_SUCCESS ? copyContext(r) : result;
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
    return result == HCCL_SUCCESS ? refresh(r, request) : result;
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
        result = refresh(r, request);
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

static void unlinkTag(relation *peer, const char *tag) {
    void *device = peer->tags.nextDevice;
    for (listNode *node = peer->tags.nextHost; node != &peer->tags; node = node->nextHost) {
        if (strcmp(((remoteNode *)node)->tag, tag) == 0) {
            listRemove(node);
            freeRemoteNode((remoteNode *)node, device);
            return;
        }
        device = node->nextDevice;
    }
}

HcclResult resourcesForget(resources *r, const char *const *tags, size_t count) {
    if (r->rules.growth == EMU_GROWS || count == 0 || !r->launched) {
        return HCCL_SUCCESS; /* hcomm 9.0 hears of it and unlinks nothing */
    }
    HcclResult result = tellCleared(r, tags, count);
    for (size_t i = 0; i < PEERS_MAX && result == HCCL_SUCCESS; i++) {
        for (size_t tag = 0; tag < count && r->host->peer[i].host != NULL; tag++) {
            unlinkTag(r->host->peer[i].host, tags[tag]);
        }
    }
    return result;
}
