/* The *Impl functions: checks and translations between aclrt* and rt*. libacl_rt_impl up to CANN 9.1, part of libruntime
 * from 9.2 on. Faults are met here, behind aclrt*, so that what is preloaded sees the calls that fail. */
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "acl_table.h"
#include "cann.h"
#include "emu.h"
#include "rt.h"

#define GIVEN(condition) !(condition) ? ACL_ERROR_INVALID_PARAM :
#define SET(place, value) (!(place) ? ACL_ERROR_INVALID_PARAM : (*(place) = (value), 0))
/* A copy of nothing succeeds before anything is looked at further. */
#define COPY(call) (!to || !from || rtKind(kind) < 0 ? ACL_ERROR_INVALID_PARAM : count == 0 ? 0 : (call))

static int rtKind(int32_t kind) {
    static const int kinds[] = {RT_MEMCPY_HOST_TO_HOST,   RT_MEMCPY_HOST_TO_DEVICE,   RT_MEMCPY_DEVICE_TO_HOST,
                                RT_MEMCPY_DEVICE_TO_DEVICE, RT_MEMCPY_DEFAULT,        RT_MEMCPY_HOST_TO_DEVICE_EX,
                                RT_MEMCPY_DEVICE_TO_DEVICE, RT_MEMCPY_DEVICE_TO_DEVICE};
    return kind >= 0 && kind < (int)(sizeof kinds / sizeof *kinds) ? kinds[kind] : -1;
}

static aclError queried(rtError_t code, rtError_t notReady, int32_t *status) {
    if (code != 0 && code != notReady) return code;
    *status = code == notReady;
    return 0;
}

static aclError idle(aclrtUtilizationInfo *info) {
    if (!info) return ACL_ERROR_INVALID_PARAM;
    memset(info, 0, sizeof *info);
    return 0;
}

static aclError noError(aclrtErrorInfo *info) {
    if (!info) return ACL_ERROR_INVALID_PARAM;
    memset(info, 0, sizeof *info);
    return 0;
}

static aclError uuidOf(int32_t device, aclrtUuid *uuid) {
    uint32_t chip;
    if (!uuid) return ACL_ERROR_INVALID_PARAM;
    rtError_t code = rtGetDevicePhyIdByIndex((uint32_t)device, &chip);
    if (code) return code;
    memcpy(uuid->bytes, "emulated chip", sizeof "emulated chip");
    uuid->bytes[15] = (char)chip;
    return 0;
}

enum { CUBE_CORES = 24, VECTOR_CORES = 48, L2_BYTES = 192 << 20 };

static uint32_t coreCount(int32_t vector) { return vector ? VECTOR_CORES : CUBE_CORES; }

static aclError deviceInfo(uint32_t device, int32_t attribute, int64_t *value) {
    if (!value) return ACL_ERROR_INVALID_PARAM;
    switch (attribute) {
        case 1: return *value = 6, 0;
        case 101:
        case 102: return *value = CUBE_CORES, 0;
        case 201: return *value = VECTOR_CORES, 0;
        case 301: return *value = (int64_t)emuSettingsGet()->hbm, 0;
        case 302: return *value = L2_BYTES, 0;
        case 402: return *value = device, 0;
        case 501: return *value = 0, 0;
        default: return RT_FEATURE_NOT_SUPPORT;
    }
}

static aclError deviceCapability(int32_t what, int64_t *value) {
    static const int64_t values[] = {CUBE_CORES, VECTOR_CORES, L2_BYTES};
    if (!value || what < 0 || what >= (int)(sizeof values / sizeof *values)) return ACL_ERROR_INVALID_PARAM;
    *value = values[what];
    return 0;
}

static aclError attributeList(const int32_t **attributes, size_t *count) {
    static const int32_t all[] = {0, 1};
    if (!attributes || !count) return ACL_ERROR_INVALID_PARAM;
    *attributes = all;
    *count = sizeof all / sizeof *all;
    return 0;
}

static aclError runtimeVersion(int32_t *major, int32_t *minor, int32_t *patch) {
    if (!major || !minor || !patch) return ACL_ERROR_INVALID_PARAM;
    *major = 1;
    *minor = 15;
    *patch = 0;
    return 0;
}

/* Callbacks run on their stream's thread here; a report thread has nothing to do but wait. */
static aclError nothingToReport(int32_t timeout) {
    poll(NULL, 0, timeout);
    return RT_REPORT_TIMEOUT;
}

static const char *socName(void) {
    static _Thread_local char name[32];
    return rtGetSocVersion(name, sizeof name) == 0 ? name : NULL;
}

static atomic_int initialised;

static aclError initialise(void) {
    emuSettingsGet(); /* nonsense in the settings ends the process here, not later */
    return atomic_exchange(&initialised, 1) ? ACL_ERROR_REPEAT_INITIALIZE : 0;
}

static aclError finalise(void) { return atomic_exchange(&initialised, 0) ? 0 : ACL_ERROR_REPEAT_FINALIZE; }

#define DEFINE(name, signature, arguments, does)     \
    EMU_EXPORT aclError name##Impl signature;        \
    EMU_EXPORT aclError name##Impl signature {       \
        int fault = emuFault(#name);                 \
        return fault ? fault : (does);               \
    }
#define DEFINE_TYPED(type, name, signature, arguments, does) \
    EMU_EXPORT type name##Impl signature;                    \
    EMU_EXPORT type name##Impl signature { return (does); }
ACL_TABLE(DEFINE)
ACL_TYPED_TABLE(DEFINE_TYPED)
