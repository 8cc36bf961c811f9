/* HCCL's resource lists: what a communicator tells the AI CPU of its operations, and the copies that this takes. */
#ifndef LISTS_H
#define LISTS_H

#include "emu.h"
#include "hccl.h"
#include "tags.h"

typedef struct resources resources;

/* The ways in which versions of hcomm differ here. */
typedef struct {
    emuGrowth growth;
    bool before90; /* its context is 32 bytes smaller, and it has no destroy callback */
} listRules;

/* What an operation's algorithm needs. */
typedef struct {
    const char *tag;
    const uint32_t *peers; /* ranks it has links to */
    uint32_t nPeers;
    bool scratch;
    bool roce;
    bool captured;
} tagRequest;

resources *resourcesNew(listRules rules);
void resourcesFree(resources *r);

/* Before an operation runs on the AI CPU: add its tag, if it is a new one, and bring the device up to date. */
HcclResult resourcesPrepare(resources *r, const tagRequest *request);

/* A graph was destroyed: unlink what its tags had at the peers (PR 2405 and later). */
HcclResult resourcesForget(resources *r, const char *const *tags, size_t count);

#endif
