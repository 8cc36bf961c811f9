/* The ways to a communicator: root info, all devices of a process, a part of another communicator; rank tables not. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "comm.h"
#include "plf.h"
#include "ports.h"
#include "rendezvous.h"

enum { ROOT_MAGIC = 0x746f6f72, ID_BYTES = 16 };

/* What HcclRootInfo holds here. */
typedef struct {
    uint32_t magic;
    char name[MEETING_NAME_MAX]; /* ip_port_device_random, in the way of CANN's identifier */
} rootInfo;

static HcclResult makeRoot(HcclRootInfo *info) {
    const hcclEnv *env;
    HcclResult result = envGet(&env);
    int32_t device = 0;
    if (result != HCCL_SUCCESS) {
        return result;
    }
    if (info == NULL || hrtGetDevice(&device) != HCCL_SUCCESS) {
        return hcclFail(HCCL_E_PTR, "EI0003: root info needs a place, and a device that aclrtSetDevice has chosen");
    }
    int port;
    struct sockaddr_in address;
    if ((result = portsHost(env, hrtChipOf(device), &port, &address)) != HCCL_SUCCESS) {
        return result;
    }
    uint64_t id[2];
    char ip[INET_ADDRSTRLEN];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        close(port);
        return HCCL_E_SYSCALL;
    }
    rootInfo root = {.magic = ROOT_MAGIC};
    inet_ntop(AF_INET, &address.sin_addr, ip, sizeof ip);
    snprintf(root.name, sizeof root.name, "%s_%u_%d_%016llx%016llx", ip, ntohs(address.sin_port), (int)device,
             (unsigned long long)id[0], (unsigned long long)id[1]);
    memset(info, 0, sizeof *info);
    memcpy(info, &root, sizeof root);
    return rendezvousServe(root.name, port, env->connectMs);
}

HcclResult HcclGetRootInfo(HcclRootInfo *info) {
    int fault = emuFault(__func__);
    return fault != 0 ? (HcclResult)fault : makeRoot(info);
}

static HcclResult initRoot(uint32_t ranks, const HcclRootInfo *info, uint32_t rank, const HcclCommConfig *config,
                           HcclComm *handle) {
    rootInfo root;
    if (info == NULL || handle == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: HcclCommInitRootInfo: root info or communicator is NULL");
    }
    memcpy(&root, info, sizeof root);
    if (root.magic != ROOT_MAGIC || memchr(root.name, '\0', sizeof root.name) == NULL) {
        return hcclFail(HCCL_E_PARA, "EI0003: the root info does not come from HcclGetRootInfo");
    }
    return commInitMeeting(root.name, root.name, rank, ranks, config, handle);
}

HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo *info, uint32_t rank, HcclComm *handle) {
    int fault = emuFault(__func__);
    return fault != 0 ? (HcclResult)fault : initRoot(ranks, info, rank, NULL, handle);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo *info, uint32_t rank,
                                      const HcclCommConfig *config, HcclComm *handle) {
    int fault = emuFault(__func__);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    return config == NULL ? HCCL_E_PTR : initRoot(ranks, info, rank, config, handle);
}

typedef struct {
    uint32_t ranks, rank;
    int32_t device;
    const HcclRootInfo *info;
    HcclComm *handle;
    HcclResult result;
    pthread_t thread;
} oneOfAll;

static void *initOne(void *argument) {
    oneOfAll *one = argument;
    one->result = hrtSetDevice(one->device);
    if (one->result == HCCL_SUCCESS) {
        one->result = initRoot(one->ranks, one->info, one->rank, NULL, one->handle);
    }
    return NULL;
}

static HcclResult initThreads(oneOfAll *all, uint32_t count) {
    HcclResult result = HCCL_SUCCESS;
    uint32_t started = 0;
    while (started < count && pthread_create(&all[started].thread, NULL, initOne, &all[started]) == 0) {
        started++;
    }
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(all[i].thread, NULL);
        result = result == HCCL_SUCCESS ? all[i].result : result;
    }
    return started == count ? result : HCCL_E_SYSCALL;
}

HcclResult HcclCommInitAll(uint32_t count, int32_t *devices, HcclComm *comms) {
    int fault = emuFault(__func__);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    if (devices == NULL || comms == NULL || count == 0 || count > RANKS_MAX) {
        return hcclFail(HCCL_E_PARA, "EI0003: HcclCommInitAll: %u devices", count);
    }
    int32_t before = 0;
    bool had = hrtGetDevice(&before) == HCCL_SUCCESS;
    HcclRootInfo info;
    oneOfAll *all = calloc(count, sizeof *all);
    HcclResult result = all == NULL ? HCCL_E_MEMORY : hrtSetDevice(devices[0]);
    if (result == HCCL_SUCCESS && (result = makeRoot(&info)) == HCCL_SUCCESS) {
        for (uint32_t i = 0; i < count; i++) {
            all[i] =
                (oneOfAll){.ranks = count, .rank = i, .device = devices[i], .info = &info, .handle = &comms[i]};
        }
        result = initThreads(all, count);
    }
    if (had) {
        (void)hrtSetDevice(before);
    }
    free(all);
    return result;
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm) {
    return HcclCommInitClusterInfoConfig(clusterInfo, rank, NULL, comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config,
                                         HcclComm *comm) {
    int fault = emuFault(__func__);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    return hcclFail(HCCL_E_NOT_SUPPORT, "the emulated HCCL takes no rank table (%s): use root info instead",
                    clusterInfo != NULL ? clusterInfo : "NULL");
}

/* The members meet under a name that only they can make: the parent's, and the number that the caller gives. */
HcclResult HcclCreateSubCommConfig(HcclComm *parent, uint32_t ranks, uint32_t *rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig *config, HcclComm *handle) {
    int fault = emuFault(__func__);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    comm *c = parent != NULL && handle != NULL ? commTake(*parent) : NULL;
    if (c == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: HcclCreateSubCommConfig: a communicator is NULL or destroyed");
    }
    char meeting[MEETING_NAME_MAX];
    snprintf(meeting, sizeof meeting, "sub_%016llx_%llu", (unsigned long long)transportId(c->link),
             (unsigned long long)subCommId);
    commDrop(c);
    if (rankIds == NULL) { /* this rank is no member */
        *handle = NULL;
        return HCCL_SUCCESS;
    }
    const hcclEnv *env;
    HcclResult result = envGet(&env);
    if (result != HCCL_SUCCESS) {
        return result;
    }
    if (subCommRankId == 0 && (result = rendezvousServe(meeting, -1, env->connectMs)) != HCCL_SUCCESS) {
        return result;
    }
    return commInitMeeting(meeting, meeting, subCommRankId, ranks, config, handle);
}
