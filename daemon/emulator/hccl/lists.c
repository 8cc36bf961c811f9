/* HCCL's resource lists: what a communicator tells the AI CPU of its operations, and the copies that this takes.
 * Every list node exists on the host and on the device. Up to hcomm 9.1 a new tag copies every node of every list to
 * the device again: that is the growth. How many copies come of it is counted nowhere here; the lists are walked. */
#include "lists.h"

#include <stdlib.h>
#include <string.h>

#include "plf.h"
#include "resources.h"

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

void contextFree(context *host) {
    listNode *head = &host->localTags;
    void *device = head->nextDevice;
    for (listNode *node = head->nextHost; node != head;) {
        localNode *local = (localNode *)node;
        node = node->nextHost;
        hrtFree(device);
        device = local->link.nextDevice;
        free(local);
    }
    for (size_t i = 0; i < PEERS_MAX; i++) {
        if (host->peer[i].host != NULL) {
            freePeer(host->peer[i].host, host->peer[i].device);
        }
    }
    free(host);
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

HcclResult resourcesRefresh(resources *r, const tagRequest *request) {
    HcclResult result = request->scratch ? addLocal(r, request->tag) : HCCL_SUCCESS;
    for (uint32_t i = 0; i < request->nPeers && result == HCCL_SUCCESS; i++) {
        result = addRemote(r, request->peers[i] % PEERS_MAX, request);
    }
    return result == HCCL_SUCCESS ? copyContext(r) : result;
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

void contextUnlink(context *host, const char *const *tags, size_t count) {
    for (size_t i = 0; i < PEERS_MAX; i++) {
        for (size_t tag = 0; tag < count && host->peer[i].host != NULL; tag++) {
            unlinkTag(host->peer[i].host, tags[tag]);
        }
    }
}
