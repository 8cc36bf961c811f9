/* CANN's handles, constants and structures as far as the emulated libraries use them; names and values are CANN's ABI. */
#ifndef CANN_H
#define CANN_H

#include <stddef.h>
#include <stdint.h>

#define EMU_EXPORT __attribute__((visibility("default")))

typedef int32_t rtError_t;
typedef int32_t aclError;
typedef void *rtStream_t, *rtEvent_t, *rtContext_t, *rtModel_t, *rtTaskGrp_t;
typedef void *aclrtStream, *aclrtEvent, *aclrtContext, *aclmdlRI, *aclrtTaskGrp, *aclrtDrvMemHandle;
typedef void (*aclrtCallback)(void *userData);

enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_REPEAT_FINALIZE = 100037,
    ACL_ERROR_INTERNAL_ERROR = 500000,
    RT_PARAM_INVALID = 107000,
    RT_INVALID_DEVICEID = 107001,
    RT_CONTEXT_NULL = 107002,
    RT_STREAM_CONTEXT = 107003,
    RT_EVENT_TIMESTAMP_INVALID = 107006,
    RT_FILE_OPEN = 107009,
    RT_FILE_WRITE = 107010,
    RT_STREAM_ABORT = 107023,
    RT_CAPTURE_DEPENDENCY = 107024,
    RT_STREAM_UNJOINED = 107025,
    RT_MODEL_CAPTURED = 107026,
    RT_STREAM_CAPTURED = 107027,
    RT_EVENT_CAPTURED = 107028,
    RT_STREAM_NOT_CAPTURED = 107029,
    RT_CAPTURE_MODE_NOT_SUPPORT = 107030,
    RT_STREAM_CAPTURE_IMPLICIT = 107031,
    RT_STREAM_CAPTURE_CONFLICT = 107032,
    RT_TASK_GROUP_STATUS = 107033,
    RT_STREAM_CAPTURE_UNMATCHED = 107036,
    RT_MODEL_RUNNING = 107037,
    RT_STREAM_CAPTURE_WRONG_THREAD = 107038,
    RT_FEATURE_NOT_SUPPORT = 207000,
    RT_MEMORY_ALLOCATION = 207001,
    RT_NO_DEVICE = 207004,
    RT_NO_STREAM_RESOURCE = 207008,
    RT_INTERNAL_ERROR = 507000,
    RT_STREAM_NOT_COMPLETE = 507004,
    RT_EVENT_NOT_COMPLETE = 507006,
    RT_REPORT_TIMEOUT = 507012,
    RT_DEV_SETUP_ERROR = 507033,
    RT_STREAM_SYNC_TIMEOUT = 507046,
    RT_EVENT_SYNC_TIMEOUT = 507047,
    RT_STREAM_CAPTURE_INVALIDATED = 507903
};

/* aclrtMemcpyKind; rtMemcpyKind_t has the same first four. */
enum {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
    ACL_MEMCPY_DEFAULT,
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE,
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE
};
enum {
    RT_MEMCPY_HOST_TO_HOST,
    RT_MEMCPY_HOST_TO_DEVICE,
    RT_MEMCPY_DEVICE_TO_HOST,
    RT_MEMCPY_DEVICE_TO_DEVICE,
    RT_MEMCPY_MANAGED,
    RT_MEMCPY_ADDR_DEVICE_TO_DEVICE,
    RT_MEMCPY_HOST_TO_DEVICE_EX,
    RT_MEMCPY_DEVICE_TO_HOST_EX,
    RT_MEMCPY_DEFAULT,
    RT_MEMCPY_RESERVED
};

enum { CAPTURE_MODE_GLOBAL, CAPTURE_MODE_THREAD_LOCAL, CAPTURE_MODE_RELAXED, CAPTURE_MODES };
enum { CAPTURE_STATUS_NONE, CAPTURE_STATUS_ACTIVE, CAPTURE_STATUS_INVALIDATED };

#define ACL_EVENT_EXTERNAL 0x20U
#define ACL_EVENT_IPC 0x40U

enum { ACL_MEM_LOCATION_HOST = 0, ACL_MEM_LOCATION_DEVICE = 1, ACL_MEM_LOCATION_UNREGISTERED = 2 };
typedef struct {
    uint32_t id;
    uint32_t type;
} aclrtMemLocation;
typedef struct {
    aclrtMemLocation location;
    uint32_t pageSize;
    uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct {
    int32_t handleType;
    int32_t allocationType;
    int32_t memAttr;
    aclrtMemLocation location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

/* What tells of a fault of the chip: the head of the structure, the detail is never filled here. */
typedef struct {
    uint8_t tryRepair;
    uint8_t hasDetail;
    uint8_t reserved[2];
    int32_t errorType;
} aclrtErrorInfo;

typedef struct {
    char bytes[16];
} aclrtUuid;

typedef struct {
    char reserved[64];
} aclrtIpcEventHandle;

typedef struct {
    char version[128];
    char majorVersion[64];
    char minorVersion[64];
    char releaseVersion[64];
    char patchVersion[64];
    char reserved[128];
} aclCANNPackageVersion;

typedef struct {
    int32_t cubeUtilization;
    int32_t vectorUtilization;
    int32_t aicpuUtilization;
    int32_t memoryUtilization;
    void *utilizationExtend;
} aclrtUtilizationInfo;

#endif
