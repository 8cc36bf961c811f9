/* A communicator's life: initialised over a rendezvous, configured, asked, destroyed. */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "plf.h"
#include "ports.h"
#include "rendezvous.h"

enum { MB = 1 << 20 };

static comm *living;
static pthread_mutex_t livingLock = PTHREAD_MUTEX_INITIALIZER;

/* Where the handle is in the list, or the list's end. The lock is held. */
static comm **find(HcclComm handle) {
    comm **at = &living;
    while (*at != NULL && *at != handle) {
        at = &(*at)->next;
    }
    return at;
}

comm *commTake(HcclComm handle) {
    pthread_mutex_lock(&livingLock);
    comm *c = *find(handle);
    if (c != NULL) {
        commKeep(c);
    }
    pthread_mutex_unlock(&livingLock);
    return c;
}

/* The list's reference goes to the caller; NULL where somebody was faster. */
static comm *unlist(HcclComm handle) {
    pthread_mutex_lock(&livingLock);
    comm **at = find(handle);
    comm *c = *at;
    if (c != NULL) {
        *at = c->next;
    }
    pthread_mutex_unlock(&livingLock);
    return c;
}

static void list(comm *c) {
    pthread_mutex_lock(&livingLock);
    c->next = living;
    living = c;
    pthread_mutex_unlock(&livingLock);
}

void commKeep(comm *c) {
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
}

void commDrop(comm *c) {
    if (atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    transportFree(c->link);
    pthread_mutex_destroy(&c->lock);
    tagsFree(&c->captured);
    free(c);
}

/* What the caller's version of the structure has, over the defaults. */
static HcclResult readConfig(const HcclCommConfig *given, HcclCommConfig *config) {
    *config = (HcclCommConfig){.hcclBufferSize = HCCL_CONFIG_NOT_SET, .hcclDeterministic = HCCL_CONFIG_NOT_SET,
                               .hcclExecTimeOut = -1};
    if (given == NULL) {
        return HCCL_SUCCESS;
    }
    if (given->magic != HCCL_COMM_CONFIG_MAGIC_WORD || given->size < offsetof(HcclCommConfig, hcclBufferSize)) {
        return hcclFail(HCCL_E_PARA, "EI0003: the communicator's config was not initialised by HcclCommConfigInit");
    }
    /* By version, fields of that version are there; by size, their bytes are. */
    static const size_t known[] = {
        offsetof(HcclCommConfig, hcclBufferSize),       offsetof(HcclCommConfig, hcclCommName),
        offsetof(HcclCommConfig, hcclUdi),              offsetof(HcclCommConfig, hcclOpExpansionMode),
        offsetof(HcclCommConfig, hcclRdmaTrafficClass), offsetof(HcclCommConfig, hcclWorldRankID),
        offsetof(HcclCommConfig, aclGraphZeroCopyEnable), offsetof(HcclCommConfig, hcclExecTimeOut),
        offsetof(HcclCommConfig, hcclBufferName),       offsetof(HcclCommConfig, hcclQos),
        sizeof(HcclCommConfig)};
    size_t versions = sizeof known / sizeof *known;
    size_t bytes = known[given->version < versions ? given->version : versions - 1];
    memcpy(config, given, given->size < bytes ? given->size : bytes);
    config->hcclCommName[COMM_NAME_MAX_LENGTH - 1] = '\0';
    return HCCL_SUCCESS;
}

/* hcclOpExpansionMode: 0 as the environment says, 1 host, 2 AI CPU, 3 AIV, 4 AIV only, 5 and 6 CCU. */
static void overrideMode(comm *c, uint32_t mode) {
    switch (mode) {
        case 0: break;
        case 1: c->mode = (expansion){0}; break;
        case 2: c->mode = (expansion){.aicpu = true}; break;
        case 3: c->mode = (expansion){.aiv = true, .aicpu = emuSettingsGet()->soc != EMU_SOC_A2}; break;
        case 4: c->mode = (expansion){.aiv = true, .aivOnly = true}; break;
        default:
            if (emuSettingsGet()->soc == EMU_SOC_950 && mode <= 6) {
                c->mode = (expansion){0};
            } else {
                hcclWarn("hcclOpExpansionMode %u is not supported: the environment's mode stays", mode);
            }
    }
}

static HcclResult configure(comm *c, const hcclEnv *env, const HcclCommConfig *given, const char *name) {
    HcclCommConfig config;
    HcclResult result = readConfig(given, &config);
    if (result != HCCL_SUCCESS) {
        return result;
    }
    if (config.hcclBufferSize == 0) {
        return hcclFail(HCCL_E_PARA, "EI0003: hcclBufferSize is 0, the least is 1 (MB)");
    }
    if (config.aclGraphZeroCopyEnable > 1) {
        return hcclFail(HCCL_E_PARA, "EI0003: aclGraphZeroCopyEnable is %u, expected 0 or 1",
                        config.aclGraphZeroCopyEnable);
    }
    c->mode = env->mode;
    overrideMode(c, config.hcclOpExpansionMode);
    c->deterministic = config.hcclDeterministic == HCCL_CONFIG_NOT_SET ? env->deterministic
                                                                      : config.hcclDeterministic != 0;
    c->bufferBytes =
        config.hcclBufferSize == HCCL_CONFIG_NOT_SET ? env->bufferBytes : (uint64_t)config.hcclBufferSize * MB;
    c->execMs = config.hcclExecTimeOut < 0 ? env->execMs : (int64_t)config.hcclExecTimeOut * 1000;
    c->zeroCopyReduce = config.aclGraphZeroCopyEnable == 1;
    snprintf(c->name, sizeof c->name, "%s", config.hcclCommName[0] != '\0' ? config.hcclCommName : name);
    return HCCL_SUCCESS;
}

static comm *newComm(uint32_t rank, uint32_t ranks) {
    comm *c = calloc(1, sizeof *c);
    if (c != NULL) {
        atomic_init(&c->references, 1);
        c->rank = rank;
        c->ranks = ranks;
        pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

static HcclResult meet(comm *c, const hcclEnv *env, const char *meeting) {
    int memory;
    HcclResult result = rendezvousJoin(meeting, c->rank, c->ranks, env->connectMs, &memory);
    if (result == HCCL_SUCCESS) {
        result = transportJoin(memory, c->rank, c->ranks, env->connectMs, &c->link);
    }
    if (result == HCCL_E_TIMEOUT) {
        return hcclFail(result, "EI0006: rank %u waited %lld s for %u ranks: getting socket times out", c->rank,
                        (long long)(env->connectMs / 1000), c->ranks);
    }
    return result == HCCL_SUCCESS ? result
                                  : hcclFail(result, "rank %u of %u could not join the communicator: %s", c->rank,
                                             c->ranks, HcclGetErrorString(result));
}

static HcclResult join(comm *c, const hcclEnv *env, const char *meeting) {
    HcclResult result = hrtGetDevice(&c->device);
    if (result != HCCL_SUCCESS) {
        return hcclFail(result, "rank %u has no device: aclrtSetDevice comes first", c->rank);
    }
    c->chip = hrtChipOf(c->device);
    result = portsNpuTake(env, c->chip);
    if (result != HCCL_SUCCESS) {
        return result;
    }
    result = meet(c, env, meeting);
    if (result != HCCL_SUCCESS) {
        portsNpuGive(c->chip);
    }
    return result;
}

HcclResult commInitMeeting(const char *meeting, const char *name, uint32_t rank, uint32_t ranks,
                           const HcclCommConfig *config, HcclComm *handle) {
    const hcclEnv *env;
    HcclResult result = envGet(&env);
    if (result != HCCL_SUCCESS) {
        return result;
    }
    if (ranks == 0 || ranks > RANKS_MAX || rank >= ranks) {
        return hcclFail(HCCL_E_PARA, "EI0003: rank %u of %u ranks is invalid", rank, ranks);
    }
    comm *c = newComm(rank, ranks);
    if (c == NULL) {
        return HCCL_E_MEMORY;
    }
    result = configure(c, env, config, name);
    if (result == HCCL_SUCCESS) {
        emuRankSet((int)rank);
        result = join(c, env, meeting);
    }
    if (result != HCCL_SUCCESS) {
        pthread_mutex_destroy(&c->lock);
        free(c);
        return result;
    }
    list(c);
    *handle = c;
    return HCCL_SUCCESS;
}

HcclResult HcclCommDestroy(HcclComm handle) {
    int fault = emuFault(__func__);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    comm *c = unlist(handle);
    if (c == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: HcclCommDestroy: the communicator is NULL or destroyed");
    }
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->destroyed, true);
    transportLeave(c->link);
    for (int i = 0; i < 2; i++) {
        hrtFree(c->buffers[i]);
    }
    if (c->lists != NULL) {
        resourcesFree(c->lists);
        c->lists = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    portsNpuGive(c->chip);
    graphsForgetComm(c);
    commDrop(c);
    return HCCL_SUCCESS;
}
