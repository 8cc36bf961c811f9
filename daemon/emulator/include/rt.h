/* The rt* functions of libruntime: what *Impl calls, through the dynamic symbol table as on a node. */
#ifndef RT_H
#define RT_H

#include "cann.h"

#pragma GCC visibility push(default)

rtError_t rtSetDevice(int32_t device);
rtError_t rtDeviceReset(int32_t device);
rtError_t rtDeviceResetForce(int32_t device);
rtError_t rtGetDevice(int32_t *device);
rtError_t rtGetDeviceCount(int32_t *count);
rtError_t rtGetDevicePhyIdByIndex(uint32_t device, uint32_t *chip);
rtError_t rtGetDeviceIndexByPhyId(uint32_t chip, uint32_t *device);
rtError_t rtGetSocVersion(char *name, const uint32_t size);
rtError_t rtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active);
rtError_t rtDeviceSynchronize(void);
rtError_t rtDeviceSynchronizeWithTimeout(int32_t timeout);
rtError_t rtCtxCreateEx(rtContext_t *created, uint32_t flags, int32_t device);
rtError_t rtCtxDestroyEx(rtContext_t context);
rtError_t rtCtxSetCurrent(rtContext_t context);
rtError_t rtCtxGetCurrent(rtContext_t *context);
rtError_t rtCtxGetCurrentDefaultStream(rtStream_t *stream);
rtError_t rtPeekAtLastError(int level);
rtError_t rtGetLastError(int level);

rtError_t rtStreamCreate(rtStream_t *created, int32_t priority);
rtError_t rtStreamCreateWithFlags(rtStream_t *created, int32_t priority, uint32_t flags);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamDestroyForce(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);
rtError_t rtStreamSynchronizeWithTimeout(rtStream_t stream, int32_t timeout);
rtError_t rtStreamQuery(rtStream_t stream);
rtError_t rtGetStreamId(rtStream_t stream, int32_t *id);
rtError_t rtStreamGetPriority(rtStream_t stream, uint32_t *priority);
rtError_t rtStreamGetFlags(rtStream_t stream, uint32_t *flags);
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event);
rtError_t rtStreamWaitEventWithTimeout(rtStream_t stream, rtEvent_t event, uint32_t timeout);
rtError_t rtsLaunchHostFunc(rtStream_t stream, aclrtCallback function, void *argument);

rtError_t rtEventCreate(rtEvent_t *event);
rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flags);
rtError_t rtEventCreateExWithFlag(rtEvent_t *event, uint32_t flags);
rtError_t rtEventDestroy(rtEvent_t event);
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream);
rtError_t rtEventReset(rtEvent_t event, rtStream_t stream);
rtError_t rtEventSynchronize(rtEvent_t event);
rtError_t rtEventSynchronizeWithTimeout(rtEvent_t event, int32_t timeout);
rtError_t rtEventQuery(rtEvent_t event);
rtError_t rtEventQueryStatus(rtEvent_t event, int32_t *status);
rtError_t rtEventQueryWaitStatus(rtEvent_t event, int32_t *status);
rtError_t rtEventElapsedTime(float *milliseconds, rtEvent_t from, rtEvent_t to);
rtError_t rtEventGetTimeStamp(uint64_t *microseconds, rtEvent_t event);
rtError_t rtGetEventID(rtEvent_t event, uint32_t *id);

rtError_t rtMalloc(void **pointer, uint64_t size, uint32_t type, uint16_t module);
rtError_t rtFree(void *pointer);
rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t module);
rtError_t rtFreeHost(void *pointer);
rtError_t rtMemGetInfoEx(uint32_t type, size_t *available, size_t *total);
rtError_t rtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes);
rtError_t rtMemGetAddressRange(void *pointer, void **base, size_t *size);
rtError_t rtMemcpy(void *to, uint64_t room, const void *from, uint64_t count, int kind);
rtError_t rtMemcpyEx(void *to, uint64_t room, const void *from, uint64_t count, int kind);
rtError_t rtMemcpyAsync(void *to, uint64_t room, const void *from, uint64_t count, int kind, rtStream_t stream);
rtError_t rtMemset(void *to, uint64_t room, uint32_t value, uint64_t count);
rtError_t rtMemsetAsync(void *to, uint64_t room, uint32_t value, uint64_t count, rtStream_t stream);
rtError_t rtMemcpy2d(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width, uint64_t height,
                     int kind);
rtError_t rtMemcpy2dAsync(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                          uint64_t height, int kind, rtStream_t stream);
rtError_t rtReserveMemAddress(void **begin, size_t size, size_t alignment, void *wanted, uint64_t flags);
rtError_t rtReleaseMemAddress(void *begin);
rtError_t rtMallocPhysical(void **handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags);
rtError_t rtFreePhysical(void *handle);
rtError_t rtMapMem(void *begin, size_t size, size_t offset, void *handle, uint64_t flags);
rtError_t rtUnmapMem(void *begin);
rtError_t rtMemGetAllocationGranularity(const aclrtPhysicalMemProp *prop, int option, size_t *granularity);

rtError_t rtStreamBeginCapture(rtStream_t stream, int mode);
rtError_t rtStreamEndCapture(rtStream_t stream, rtModel_t *model);
rtError_t rtStreamGetCaptureInfo(rtStream_t stream, int *status, rtModel_t *model);
rtError_t rtThreadExchangeCaptureMode(int *mode);
rtError_t rtsStreamBeginTaskGrp(rtStream_t stream);
rtError_t rtsStreamEndTaskGrp(rtStream_t stream, rtTaskGrp_t *group);
rtError_t rtsStreamBeginTaskUpdate(rtStream_t stream, rtTaskGrp_t group);
rtError_t rtsStreamEndTaskUpdate(rtStream_t stream);
rtError_t rtModelExecute(rtModel_t model, rtStream_t stream, uint32_t flag);
rtError_t rtsModelExecute(rtModel_t model, int32_t timeout);
rtError_t rtModelDestroy(rtModel_t model);
rtError_t rtModelDestroyRegisterCallback(rtModel_t model, aclrtCallback function, void *argument);
rtError_t rtModelDestroyUnregisterCallback(rtModel_t model, aclrtCallback function);
rtError_t rtModelGetId(rtModel_t model, uint32_t *id);
rtError_t rtModelDebugJsonPrint(rtModel_t model, const char *path, uint32_t flags);

/* What has no rt* name on a node that we know of. */
const char *emuRecentMessage(void);
int emuVersionString(const char *package, char *text);
int emuVersionNumber(const char *package, int32_t *number);
int emuCannVersion(int package, aclCANNPackageVersion *version);

#pragma GCC visibility pop

#endif
