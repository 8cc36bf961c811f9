/* What can be asked of a communicator and of HCCL. */
#include <stdio.h>

#include "comm.h"

/* Every question: take the communicator, answer from it, let it go. */
static HcclResult ask(const char *function, HcclComm handle, void *answer, void (*reply)(const comm *, void *)) {
    int fault = emuFault(function);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    comm *c = answer != NULL ? commTake(handle) : NULL;
    if (c == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: %s: the communicator or the place for the answer is NULL", function);
    }
    reply(c, answer);
    commDrop(c);
    return HCCL_SUCCESS;
}

static void replyRanks(const comm *c, void *answer) {
    *(uint32_t *)answer = c->ranks;
}

static void replyRank(const comm *c, void *answer) {
    *(uint32_t *)answer = c->rank;
}

static void replyName(const comm *c, void *answer) {
    snprintf(answer, COMM_NAME_MAX_LENGTH, "%s", c->name);
}

static void replyError(const comm *c, void *answer) {
    *(HcclResult *)answer = atomic_load(&c->asyncError);
}

static void replyNothing(const comm *c, void *answer) {
    (void)c;
    (void)answer;
}

HcclResult HcclGetRankSize(HcclComm handle, uint32_t *ranks) {
    return ask(__func__, handle, ranks, replyRanks);
}

HcclResult HcclGetRankId(HcclComm handle, uint32_t *rank) {
    return ask(__func__, handle, rank, replyRank);
}

HcclResult HcclGetCommName(HcclComm handle, char *name) {
    return ask(__func__, handle, name, replyName);
}

HcclResult HcclGetCommAsyncError(HcclComm handle, HcclResult *asyncError) {
    return ask(__func__, handle, asyncError, replyError);
}

HcclResult HcclCommResume(HcclComm handle) {
    return ask(__func__, handle, &handle, replyNothing);
}

HcclResult HcclCommWorkingDevNicSet(HcclComm handle, uint32_t *ranks, _Bool *useBackup, uint32_t nRanks) {
    HcclResult result = ask(__func__, handle, ranks, replyNothing);
    return result != HCCL_SUCCESS ? result : hcclFail(HCCL_E_NOT_SUPPORT, "%s: there are no spare NICs", __func__);
}

/* How many of HcclCommConfig's capabilities there are: CANN 8.5 has all up to the retry settings. */
uint32_t HcclGetCommConfigCapability(void) {
    return 11;
}

/* The only setting is HCCL_DETERMINISTIC; data moves in one order here anyway. */
static _Atomic int32_t deterministic;

HcclResult HcclSetConfig(int config, HcclConfigValue value) {
    if (config != 0 || value.value < 0 || value.value > 2) {
        return hcclFail(HCCL_E_PARA, "EI0003: HcclSetConfig: setting %d cannot be %d", config, (int)value.value);
    }
    atomic_store(&deterministic, value.value);
    return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(int config, HcclConfigValue *value) {
    if (config != 0 || value == NULL) {
        return hcclFail(HCCL_E_PARA, "EI0003: HcclGetConfig: setting %d", config);
    }
    value->value = atomic_load(&deterministic);
    return HCCL_SUCCESS;
}

const char *HcclGetErrorString(HcclResult code) {
    static const char *const names[] = {
        "no error", "parameter error", "empty pointer", "memory error", "internal error", "not support feature",
        "not found specific resource", "resource unavailable", "call system interface error", "timeout",
        "open file fail", "tcp connect fail", "roce connect fail", "tcp transfer fail", "roce transfer fail",
        "call runtime api fail", "call driver api fail", "call profiling api fail", "call cce api fail",
        "call network api fail", "try again", "error cqe", "error communicator suspending", "retry constraint",
        "out of memory"};
    return code >= 0 && (size_t)code < sizeof names / sizeof *names ? names[code] : "unknown error";
}
