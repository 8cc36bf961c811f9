/* A communicator's resources on the AI CPU path, in hcomm's sizes. Of lists.c and resources.c. */
#ifndef RESOURCES_H
#define RESOURCES_H

#include "lists.h"

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

/* Add the tag to the lists and copy what the rules have copied. */
HcclResult resourcesRefresh(resources *r, const tagRequest *request);

/* Take the tags out of the peers' lists; the local list keeps them, as hcomm's does. */
void contextUnlink(context *host, const char *const *tags, size_t count);
void contextFree(context *host);

#endif
