/* What can be asked of a communicator and of HCCL. */
#include <stdio.h>

#include "comm.h"

static HcclResult resolve(const char *function, HcclComm handle, const void *answer, comm **c) {
    int fault = emuFault(function);
    if (fault != 0) {
        return (HcclResult)fault;
    }
    *c = commOf(handle);
    if (*c == NULL || answer == NULL) {
        return hcclFail(HCCL_E_PTR, "EI0003: %s: the communicator or the place for the answer is NULL", function);
    }
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(HcclComm handle, uint32_t *ranks) {
    comm *c;
    HcclResult result = resolve(__func__, handle, ranks, &c);
    if (result == HCCL_SUCCESS) {
        *ranks = c->ranks;
    }
    return result;
}

HcclResult HcclGetRankId(HcclComm handle, uint32_t *rank) {
    comm *c;
    HcclResult result = resolve(__func__, handle, rank, &c);
    if (result == HCCL_SUCCESS) {
        *rank = c->rank;
    }
    return result;
}

HcclResult HcclGetCommName(HcclComm handle, char *name) {
    comm *c;
    HcclResult result = resolve(__func__, handle, name, &c);
    if (result == HCCL_SUCCESS) {
        snprintf(name, COMM_NAME_MAX_LENGTH, "%s", c->name);
    }
    return result;
}

HcclResult HcclGetCommAsyncError(HcclComm handle, HcclResult *asyncError) {
    comm *c;
    HcclResult result = resolve(__func__, handle, asyncError, &c);
    if (result == HCCL_SUCCESS) {
        *asyncError = atomic_load(&c->asyncError);
    }
    return result;
}

HcclResult HcclCommResume(HcclComm handle) {
    comm *c;
    return resolve(__func__, handle, &c, &c);
}

HcclResult HcclCommWorkingDevNicSet(HcclComm handle, uint32_t *ranks, _Bool *useBackup, uint32_t nRanks) {
    comm *c;
    HcclResult result = resolve(__func__, handle, ranks, &c);
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
