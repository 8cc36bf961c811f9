/* CANN's public runtime functions, once: _(name, signature, arguments, what its *Impl does). From this table come the
 * prototypes (acl.h), the *Impl functions (acl/impl.c) and the forwarders of libacl_rt (acl/rt.c). */
#ifndef ACL_TABLE_H
#define ACL_TABLE_H

#define ACL_DEVICE_TABLE(_)                                                                                           \
    _(aclrtSetDevice, (int32_t device), (device), rtSetDevice(device))                                                \
    _(aclrtResetDevice, (int32_t device), (device), rtDeviceReset(device))                                            \
    _(aclrtResetDeviceForce, (int32_t device), (device), rtDeviceResetForce(device))                                  \
    _(aclrtGetDevice, (int32_t *device), (device), GIVEN(device) rtGetDevice(device))                                 \
    _(aclrtGetDeviceCount, (uint32_t *count), (count), GIVEN(count) rtGetDeviceCount((int32_t *)count))               \
    _(aclrtGetRunMode, (int32_t *mode), (mode), SET(mode, 1))                                                         \
    _(aclrtSynchronizeDevice, (void), (), rtDeviceSynchronize())                                                      \
    _(aclrtSynchronizeDeviceWithTimeout, (int32_t timeout), (timeout), rtDeviceSynchronizeWithTimeout(timeout))       \
    _(aclrtSetTsDevice, (int32_t ts), (ts), 0)                                                                        \
    _(aclrtQueryDeviceStatus, (int32_t device, int32_t *status), (device, status), SET(status, 0))                    \
    _(aclrtGetDeviceUtilizationRate, (int32_t device, aclrtUtilizationInfo *info), (device, info), idle(info))        \
    _(aclrtDeviceCanAccessPeer, (int32_t *can, int32_t device, int32_t peer), (can, device, peer),                    \
      SET(can, device != peer))                                                                                       \
    _(aclrtDeviceEnablePeerAccess, (int32_t peer, uint32_t flags), (peer, flags), 0)                                  \
    _(aclrtDeviceDisablePeerAccess, (int32_t peer), (peer), 0)                                                        \
    _(aclrtDevicePeerAccessStatus, (int32_t device, int32_t peer, int32_t *status), (device, peer, status),           \
      SET(status, 1))                                                                                                 \
    _(aclrtGetDeviceInfo, (uint32_t device, int32_t attribute, int64_t *value), (device, attribute, value),           \
      deviceInfo(device, attribute, value))                                                                           \
    _(aclrtGetLogicDevIdByUserDevId, (int32_t user, int32_t *logic), (user, logic),                                   \
      GIVEN(logic) rtGetDevicePhyIdByIndex((uint32_t)user, (uint32_t *)logic))                                        \
    _(aclrtGetUserDevIdByLogicDevId, (int32_t logic, int32_t *user), (logic, user),                                   \
      GIVEN(user) rtGetDeviceIndexByPhyId((uint32_t)logic, (uint32_t *)user))                                         \
    _(aclrtGetLogicDevIdByPhyDevId, (int32_t phy, int32_t *logic), (phy, logic), SET(logic, phy))                     \
    _(aclrtGetPhyDevIdByLogicDevId, (int32_t logic, int32_t *phy), (logic, phy), SET(phy, logic))                     \
    _(aclrtDeviceGetBareTgid, (int32_t *pid), (pid), SET(pid, (int32_t)getpid()))                                     \
    _(aclrtDeviceTaskAbort, (int32_t device, uint32_t timeout), (device, timeout), 0)                                 \
    _(aclrtGetPrimaryCtxState, (int32_t device, uint32_t *flags, int32_t *active), (device, flags, active),           \
      rtGetPrimaryCtxState(device, flags, active))                                                                    \
    _(aclrtGetDeviceResLimit, (int32_t device, int32_t type, uint32_t *value), (device, type, value),                 \
      SET(value, coreCount(type)))                                                                                    \
    _(aclrtSetDeviceResLimit, (int32_t device, int32_t type, uint32_t value), (device, type, value), 0)               \
    _(aclrtResetDeviceResLimit, (int32_t device), (device), 0)                                                        \
    _(aclrtGetStreamResLimit, (aclrtStream stream, int32_t type, uint32_t *value), (stream, type, value),             \
      SET(value, coreCount(type)))                                                                                    \
    _(aclrtSetStreamResLimit, (aclrtStream stream, int32_t type, uint32_t value), (stream, type, value), 0)           \
    _(aclrtResetStreamResLimit, (aclrtStream stream), (stream), 0)                                                    \
    _(aclrtUseStreamResInCurrentThread, (aclrtStream stream), (stream), 0)                                            \
    _(aclrtUnuseStreamResInCurrentThread, (aclrtStream stream), (stream), 0)                                          \
    _(aclrtGetResInCurrentThread, (int32_t type, uint32_t *value), (type, value), SET(value, coreCount(type)))        \
    _(aclrtSetDeviceSatMode, (int32_t mode), (mode), 0)                                                               \
    _(aclrtGetDeviceSatMode, (int32_t *mode), (mode), SET(mode, 1))                                                   \
    _(aclrtGetMemUceInfo, (int32_t device, void *info, size_t size, size_t *count), (device, info, size, count),      \
      SET(count, 0))                                                                                                  \
    _(aclrtMemUceRepair, (int32_t device, void *info, size_t size), (device, info, size), 0)                          \
    _(aclrtRepairError, (int32_t device, const void *error), (device, error), 0)                                      \
    _(aclrtGetErrorVerbose, (int32_t device, aclrtErrorInfo * info), (device, info), noError(info))                   \
    _(aclrtDeviceGetUuid, (int32_t device, aclrtUuid * uuid), (device, uuid), uuidOf(device, uuid))                   \
    _(aclrtGetMemUsageInfo, (int32_t device, void *info, size_t room, size_t *count), (device, info, room, count),    \
      SET(count, 0))                                                                                                  \
    _(aclrtSetOpWaitTimeout, (uint32_t timeout), (timeout), 0)                                                        \
    _(aclrtSetOpExecuteTimeOut, (uint32_t timeout), (timeout), 0)                                                     \
    _(aclrtSetOpExecuteTimeOutWithMs, (uint32_t timeout), (timeout), 0)                                               \
    _(aclrtSetOpExecuteTimeOutV2, (uint64_t timeout, uint64_t *actual), (timeout, actual), SET(actual, timeout))      \
    _(aclrtPeekAtLastError, (int32_t level), (level), rtPeekAtLastError(level))                                       \
    _(aclrtGetLastError, (int32_t level), (level), rtGetLastError(level))                                             \
    _(aclrtSetExceptionInfoCallback, (void *callback), (callback), 0)

#define ACL_CONTEXT_TABLE(_)                                                                                          \
    _(aclrtCreateContext, (aclrtContext * context, int32_t device), (context, device),                                \
      GIVEN(context) rtCtxCreateEx(context, 0, device))                                                               \
    _(aclrtDestroyContext, (aclrtContext context), (context), GIVEN(context) rtCtxDestroyEx(context))                 \
    _(aclrtSetCurrentContext, (aclrtContext context), (context), GIVEN(context) rtCtxSetCurrent(context))             \
    _(aclrtGetCurrentContext, (aclrtContext * context), (context), GIVEN(context) rtCtxGetCurrent(context))           \
    _(aclrtCtxGetCurrentDefaultStream, (aclrtStream * stream), (stream),                                              \
      GIVEN(stream) rtCtxGetCurrentDefaultStream(stream))                                                             \
    _(aclrtCtxSetSysParamOpt, (int32_t option, int64_t value), (option, value), 0)                                    \
    _(aclrtCtxGetSysParamOpt, (int32_t option, int64_t *value), (option, value), SET(value, 0))                       \
    _(aclrtSetSysParamOpt, (int32_t option, int64_t value), (option, value), 0)                                       \
    _(aclrtGetSysParamOpt, (int32_t option, int64_t *value), (option, value), SET(value, 0))

#define ACL_STREAM_TABLE(_)                                                                                           \
    _(aclrtCreateStream, (aclrtStream * stream), (stream), GIVEN(stream) rtStreamCreateWithFlags(stream, 0, 0))       \
    _(aclrtCreateStreamWithConfig, (aclrtStream * stream, uint32_t priority, uint32_t flags),                         \
      (stream, priority, flags), GIVEN(stream) rtStreamCreateWithFlags(stream, (int32_t)priority, flags))             \
    _(aclrtDestroyStream, (aclrtStream stream), (stream), GIVEN(stream) rtStreamDestroy(stream))                      \
    _(aclrtDestroyStreamForce, (aclrtStream stream), (stream), GIVEN(stream) rtStreamDestroyForce(stream))            \
    _(aclrtSynchronizeStream, (aclrtStream stream), (stream), rtStreamSynchronize(stream))                            \
    _(aclrtSynchronizeStreamWithTimeout, (aclrtStream stream, int32_t timeout), (stream, timeout),                    \
      rtStreamSynchronizeWithTimeout(stream, timeout))                                                                \
    _(aclrtStreamQuery, (aclrtStream stream, int32_t *status), (stream, status),                                      \
      GIVEN(status) queried(rtStreamQuery(stream), RT_STREAM_NOT_COMPLETE, status))                                   \
    _(aclrtStreamGetPriority, (aclrtStream stream, uint32_t *priority), (stream, priority),                           \
      GIVEN(priority) rtStreamGetPriority(stream, priority))                                                          \
    _(aclrtStreamGetFlags, (aclrtStream stream, uint32_t *flags), (stream, flags),                                    \
      GIVEN(flags) rtStreamGetFlags(stream, flags))                                                                   \
    _(aclrtStreamGetId, (aclrtStream stream, int32_t *id), (stream, id), GIVEN(id) rtGetStreamId(stream, id))         \
    _(aclrtStreamWaitEvent, (aclrtStream stream, aclrtEvent event), (stream, event),                                  \
      GIVEN(event) rtStreamWaitEvent(stream, event))                                                                  \
    _(aclrtStreamWaitEventWithTimeout, (aclrtStream stream, aclrtEvent event, int32_t timeout),                       \
      (stream, event, timeout), GIVEN(event) rtStreamWaitEventWithTimeout(stream, event, (uint32_t)timeout))          \
    _(aclrtSetStreamFailureMode, (aclrtStream stream, uint64_t mode), (stream, mode), 0)                              \
    _(aclrtSetStreamAttribute, (aclrtStream stream, int32_t attribute, void *value), (stream, attribute, value), 0)   \
    _(aclrtSetStreamOverflowSwitch, (aclrtStream stream, uint32_t flag), (stream, flag), 0)                           \
    _(aclrtGetStreamOverflowSwitch, (aclrtStream stream, uint32_t *flag), (stream, flag), SET(flag, 0))               \
    _(aclrtLaunchHostFunc, (aclrtStream stream, aclrtCallback function, void *argument),                              \
      (stream, function, argument), GIVEN(function) rtsLaunchHostFunc(stream, function, argument))                    \
    _(aclrtLaunchCallback, (aclrtCallback function, void *argument, int32_t block, aclrtStream stream),               \
      (function, argument, block, stream), GIVEN(function) rtsLaunchHostFunc(stream, function, argument))             \
    _(aclrtSubscribeReport, (uint64_t thread, aclrtStream stream), (thread, stream), 0)                               \
    _(aclrtUnSubscribeReport, (uint64_t thread, aclrtStream stream), (thread, stream), 0)                             \
    _(aclrtProcessReport, (int32_t timeout), (timeout), nothingToReport(timeout))                                     \
    _(aclrtGetOverflowStatus, (void *output, size_t size, aclrtStream stream), (output, size, stream), 0)             \
    _(aclrtResetOverflowStatus, (aclrtStream stream), (stream), 0)                                                    \
    _(aclrtCmoAsync, (void *from, size_t size, int32_t type, aclrtStream stream), (from, size, type, stream), 0)

#define ACL_EVENT_TABLE(_)                                                                                            \
    _(aclrtCreateEvent, (aclrtEvent * event), (event), GIVEN(event) rtEventCreate(event))                             \
    _(aclrtCreateEventWithFlag, (aclrtEvent * event, uint32_t flags), (event, flags),                                 \
      GIVEN(event) rtEventCreateWithFlag(event, flags))                                                               \
    _(aclrtCreateEventExWithFlag, (aclrtEvent * event, uint32_t flags), (event, flags),                               \
      GIVEN(event) rtEventCreateExWithFlag(event, flags))                                                             \
    _(aclrtDestroyEvent, (aclrtEvent event), (event), GIVEN(event) rtEventDestroy(event))                             \
    _(aclrtRecordEvent, (aclrtEvent event, aclrtStream stream), (event, stream),                                      \
      GIVEN(event) rtEventRecord(event, stream))                                                                      \
    _(aclrtResetEvent, (aclrtEvent event, aclrtStream stream), (event, stream),                                       \
      GIVEN(event) rtEventReset(event, stream))                                                                       \
    _(aclrtQueryEvent, (aclrtEvent event, int32_t *status), (event, status),                                          \
      GIVEN(event &&status) queried(rtEventQuery(event), RT_EVENT_NOT_COMPLETE, status))                              \
    _(aclrtQueryEventStatus, (aclrtEvent event, int32_t *status), (event, status),                                    \
      GIVEN(event &&status) rtEventQueryStatus(event, status))                                                        \
    _(aclrtQueryEventWaitStatus, (aclrtEvent event, int32_t *status), (event, status),                                \
      GIVEN(event &&status) rtEventQueryWaitStatus(event, status))                                                    \
    _(aclrtSynchronizeEvent, (aclrtEvent event), (event), GIVEN(event) rtEventSynchronize(event))                     \
    _(aclrtSynchronizeEventWithTimeout, (aclrtEvent event, int32_t timeout), (event, timeout),                        \
      GIVEN(event) rtEventSynchronizeWithTimeout(event, timeout))                                                     \
    _(aclrtEventElapsedTime, (float *ms, aclrtEvent from, aclrtEvent to), (ms, from, to),                             \
      GIVEN(ms &&from &&to) rtEventElapsedTime(ms, from, to))                                                         \
    _(aclrtEventGetTimestamp, (aclrtEvent event, uint64_t *us), (event, us),                                          \
      GIVEN(event &&us) rtEventGetTimeStamp(us, event))                                                               \
    _(aclrtGetEventId, (aclrtEvent event, uint32_t *id), (event, id), GIVEN(event &&id) rtGetEventID(event, id))     \
    _(aclrtIpcGetEventHandle, (aclrtEvent event, aclrtIpcEventHandle * handle), (event, handle),                      \
      RT_FEATURE_NOT_SUPPORT)                                                                                         \
    _(aclrtIpcOpenEventHandle, (aclrtIpcEventHandle handle, aclrtEvent * event), (handle, event),                     \
      RT_FEATURE_NOT_SUPPORT)

#define ACL_MEMORY_TABLE(_)                                                                                           \
    _(aclrtMalloc, (void **pointer, size_t size, int32_t policy), (pointer, size, policy),                            \
      GIVEN(pointer &&size) rtMalloc(pointer, size, 0, 0))                                                            \
    _(aclrtMallocAlign32, (void **pointer, size_t size, int32_t policy), (pointer, size, policy),                     \
      GIVEN(pointer &&size) rtMalloc(pointer, size, 0, 0))                                                            \
    _(aclrtMallocCached, (void **pointer, size_t size, int32_t policy), (pointer, size, policy),                      \
      GIVEN(pointer &&size) rtMalloc(pointer, size, 0, 0))                                                            \
    _(aclrtMallocWithCfg, (void **pointer, size_t size, int32_t policy, void *cfg), (pointer, size, policy, cfg),     \
      GIVEN(pointer &&size) rtMalloc(pointer, size, 0, 0))                                                            \
    _(aclrtMallocHost, (void **pointer, size_t size), (pointer, size),                                                \
      GIVEN(pointer &&size) rtMallocHost(pointer, size, 0))                                                           \
    _(aclrtMallocHostWithCfg, (void **pointer, uint64_t size, void *cfg), (pointer, size, cfg),                       \
      GIVEN(pointer &&size) rtMallocHost(pointer, size, 0))                                                           \
    _(aclrtFree, (void *pointer), (pointer), GIVEN(pointer) rtFree(pointer))                                          \
    _(aclrtFreeHost, (void *pointer), (pointer), GIVEN(pointer) rtFreeHost(pointer))                                  \
    _(aclrtGetMemInfo, (int32_t attribute, size_t *available, size_t *total), (attribute, available, total),          \
      GIVEN(available &&total) rtMemGetInfoEx((uint32_t)attribute, available, total))                                 \
    _(aclrtMemcpy, (void *to, size_t room, const void *from, size_t count, int32_t kind),                             \
      (to, room, from, count, kind), COPY(rtMemcpy(to, room, from, count, rtKind(kind))))                             \
    _(aclrtMemcpyAsync, (void *to, size_t room, const void *from, size_t count, int32_t kind, aclrtStream stream),    \
      (to, room, from, count, kind, stream), COPY(rtMemcpyAsync(to, room, from, count, rtKind(kind), stream)))        \
    _(aclrtMemcpyAsyncWithCondition,                                                                                  \
      (void *to, size_t room, const void *from, size_t count, int32_t kind, aclrtStream stream),                      \
      (to, room, from, count, kind, stream), COPY(rtMemcpyAsync(to, room, from, count, rtKind(kind), stream)))        \
    _(aclrtMemcpy2d,                                                                                                  \
      (void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width, size_t height, int32_t kind),      \
      (to, toPitch, from, fromPitch, width, height, kind),                                                            \
      GIVEN(to &&from) rtMemcpy2d(to, toPitch, from, fromPitch, width, height, rtKind(kind)))                         \
    _(aclrtMemcpy2dAsync,                                                                                             \
      (void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width, size_t height, int32_t kind,       \
       aclrtStream stream),                                                                                           \
      (to, toPitch, from, fromPitch, width, height, kind, stream),                                                    \
      GIVEN(to &&from) rtMemcpy2dAsync(to, toPitch, from, fromPitch, width, height, rtKind(kind), stream))            \
    _(aclrtMemset, (void *to, size_t room, int32_t value, size_t count), (to, room, value, count),                    \
      GIVEN(to) rtMemset(to, room, (uint32_t)value, count))                                                           \
    _(aclrtMemsetAsync, (void *to, size_t room, int32_t value, size_t count, aclrtStream stream),                     \
      (to, room, value, count, stream), GIVEN(to) rtMemsetAsync(to, room, (uint32_t)value, count, stream))            \
    _(aclrtPointerGetAttributes, (const void *pointer, aclrtPtrAttributes *attributes), (pointer, attributes),        \
      GIVEN(pointer &&attributes) rtPointerGetAttributes(pointer, attributes))                                        \
    _(aclrtHostRegister, (void *pointer, uint64_t size, int32_t type, void **device), (pointer, size, type, device),  \
      GIVEN(pointer &&device) SET(device, pointer))                                                                   \
    _(aclrtHostRegisterV2, (void *pointer, uint64_t size, uint32_t flags), (pointer, size, flags), 0)                 \
    _(aclrtHostUnregister, (void *pointer), (pointer), 0)                                                             \
    _(aclrtMemFlush, (void *pointer, size_t size), (pointer, size), 0)                                                \
    _(aclrtMemInvalidate, (void *pointer, size_t size), (pointer, size), 0)                                           \
    _(aclrtReserveMemAddress, (void **begin, size_t size, size_t alignment, void *wanted, uint64_t flags),            \
      (begin, size, alignment, wanted, flags), rtReserveMemAddress(begin, size, alignment, wanted, flags))            \
    _(aclrtReleaseMemAddress, (void *begin), (begin), rtReleaseMemAddress(begin))                                     \
    _(aclrtMallocPhysical,                                                                                            \
      (aclrtDrvMemHandle * handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags),                    \
      (handle, size, prop, flags), rtMallocPhysical(handle, size, prop, flags))                                       \
    _(aclrtFreePhysical, (aclrtDrvMemHandle handle), (handle), rtFreePhysical(handle))                                \
    _(aclrtMapMem, (void *begin, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags),               \
      (begin, size, offset, handle, flags), rtMapMem(begin, size, offset, handle, flags))                             \
    _(aclrtUnmapMem, (void *begin), (begin), rtUnmapMem(begin))                                                       \
    _(aclrtMemGetAllocationGranularity, (const aclrtPhysicalMemProp *prop, int32_t option, size_t *granularity),      \
      (prop, option, granularity), rtMemGetAllocationGranularity(prop, option, granularity))                          \
    _(aclrtMemExportToShareableHandle,                                                                                \
      (aclrtDrvMemHandle handle, int32_t type, uint64_t flags, uint64_t *shared), (handle, type, flags, shared),      \
      RT_FEATURE_NOT_SUPPORT)                                                                                         \
    _(aclrtMemImportFromShareableHandle, (uint64_t shared, int32_t device, aclrtDrvMemHandle * handle),               \
      (shared, device, handle), RT_FEATURE_NOT_SUPPORT)                                                               \
    _(aclrtMemSetPidToShareableHandle, (uint64_t shared, int32_t *pid, size_t count), (shared, pid, count),           \
      RT_FEATURE_NOT_SUPPORT)                                                                                         \
    _(aclrtIpcMemGetExportKey, (void *pointer, size_t size, char *key, size_t length, uint64_t flags),                \
      (pointer, size, key, length, flags), RT_FEATURE_NOT_SUPPORT)                                                    \
    _(aclrtIpcMemImportByKey, (void **pointer, const char *key, uint64_t flags), (pointer, key, flags),               \
      RT_FEATURE_NOT_SUPPORT)                                                                                         \
    _(aclrtIpcMemClose, (const char *key), (key), RT_FEATURE_NOT_SUPPORT)                                             \
    _(aclrtIpcMemSetImportPid, (const char *key, int32_t *pid, size_t count), (key, pid, count),                      \
      RT_FEATURE_NOT_SUPPORT)

#define ACL_GRAPH_TABLE(_)                                                                                            \
    _(aclmdlRICaptureBegin, (aclrtStream stream, int32_t mode), (stream, mode),                                       \
      GIVEN(stream) rtStreamBeginCapture(stream, mode))                                                               \
    _(aclmdlRICaptureEnd, (aclrtStream stream, aclmdlRI *graph), (stream, graph),                                     \
      GIVEN(stream &&graph) rtStreamEndCapture(stream, graph))                                                        \
    _(aclmdlRICaptureGetInfo, (aclrtStream stream, int32_t *status, aclmdlRI *graph), (stream, status, graph),        \
      GIVEN(stream && (status || graph)) rtStreamGetCaptureInfo(stream, status, graph))                               \
    _(aclmdlRICaptureThreadExchangeMode, (int32_t * mode), (mode), GIVEN(mode) rtThreadExchangeCaptureMode(mode))     \
    _(aclmdlRICaptureTaskGrpBegin, (aclrtStream stream), (stream), GIVEN(stream) rtsStreamBeginTaskGrp(stream))       \
    _(aclmdlRICaptureTaskGrpEnd, (aclrtStream stream, aclrtTaskGrp *group), (stream, group),                          \
      GIVEN(stream &&group) rtsStreamEndTaskGrp(stream, group))                                                       \
    _(aclmdlRICaptureTaskUpdateBegin, (aclrtStream stream, aclrtTaskGrp group), (stream, group),                      \
      GIVEN(stream &&group) rtsStreamBeginTaskUpdate(stream, group))                                                  \
    _(aclmdlRICaptureTaskUpdateEnd, (aclrtStream stream), (stream), GIVEN(stream) rtsStreamEndTaskUpdate(stream))     \
    _(aclmdlRIExecuteAsync, (aclmdlRI graph, aclrtStream stream), (graph, stream),                                    \
      GIVEN(graph) rtModelExecute(graph, stream, 0))                                                                  \
    _(aclmdlRIExecute, (aclmdlRI graph, int32_t timeout), (graph, timeout),                                           \
      GIVEN(graph) rtsModelExecute(graph, timeout))                                                                   \
    _(aclmdlRIDestroy, (aclmdlRI graph), (graph), GIVEN(graph) rtModelDestroy(graph))                                 \
    _(aclmdlRIDebugPrint, (aclmdlRI graph), (graph), GIVEN(graph) 0)                                                  \
    _(aclmdlRIDebugJsonPrint, (aclmdlRI graph, const char *path, uint32_t flags), (graph, path, flags),               \
      GIVEN(graph &&path) rtModelDebugJsonPrint(graph, path, flags))

/* In CANN from 9.0 on: not in the libacl_rt of an older one, so that dlsym() does not find them there. */
#define ACL_GRAPH_9_0_TABLE(_)                                                                                        \
    _(aclmdlRIDestroyRegisterCallback, (aclmdlRI graph, aclrtCallback function, void *argument),                      \
      (graph, function, argument), rtModelDestroyRegisterCallback(graph, function, argument))                         \
    _(aclmdlRIDestroyUnregisterCallback, (aclmdlRI graph, aclrtCallback function), (graph, function),                 \
      rtModelDestroyUnregisterCallback(graph, function))

#define ACL_SYSTEM_TABLE(_)                                                                                           \
    _(aclInit, (const char *config), (config), initialise())                                                          \
    _(aclFinalize, (void), (), finalise())                                                                            \
    _(aclsysGetCANNVersion, (int32_t package, aclCANNPackageVersion * version), (package, version),                   \
      emuCannVersion(package, version))                                                                               \
    _(aclsysGetVersionStr, (char *package, char *text), (package, text), emuVersionString(package, text))             \
    _(aclsysGetVersionNum, (char *package, int32_t *number), (package, number), emuVersionNumber(package, number))    \
    _(aclrtGetVersion, (int32_t * major, int32_t *minor, int32_t *patch), (major, minor, patch),                      \
      runtimeVersion(major, minor, patch))                                                                            \
    _(aclGetCannAttributeList, (const int32_t **attributes, size_t *count), (attributes, count),                      \
      attributeList(attributes, count))                                                                               \
    _(aclGetCannAttribute, (int32_t attribute, int32_t *value), (attribute, value), SET(value, attribute != 2))       \
    _(aclGetDeviceCapability, (uint32_t device, int32_t what, int64_t *value), (device, what, value),                 \
      deviceCapability(what, value))                                                                                  \
    _(aclmdlInitDump, (void), (), 0)                                                                                  \
    _(aclmdlSetDump, (const char *path), (path), 0)                                                                   \
    _(aclmdlFinalizeDump, (void), (), 0)

#define ACL_BASE_TABLE(_)                                                                                             \
    ACL_SYSTEM_TABLE(_)                                                                                               \
    ACL_DEVICE_TABLE(_)                                                                                               \
    ACL_CONTEXT_TABLE(_)                                                                                              \
    ACL_STREAM_TABLE(_)                                                                                               \
    ACL_EVENT_TABLE(_)                                                                                                \
    ACL_MEMORY_TABLE(_)                                                                                               \
    ACL_GRAPH_TABLE(_)

#define ACL_TABLE(_) ACL_BASE_TABLE(_) ACL_GRAPH_9_0_TABLE(_)

/* The same for functions that return no aclError: _(type, name, signature, arguments, what its *Impl does). */
#define ACL_TYPED_TABLE(_)                                                                                            \
    _(const char *, aclGetRecentErrMsg, (void), (), emuRecentMessage())                                               \
    _(const char *, aclrtGetSocName, (void), (), socName())                                                           \
    _(uint32_t, aclrtGetTaskIdFromExceptionInfo, (const void *info), (info), UINT32_MAX)                              \
    _(uint32_t, aclrtGetStreamIdFromExceptionInfo, (const void *info), (info), UINT32_MAX)                            \
    _(uint32_t, aclrtGetThreadIdFromExceptionInfo, (const void *info), (info), UINT32_MAX)                            \
    _(uint32_t, aclrtGetDeviceIdFromExceptionInfo, (const void *info), (info), UINT32_MAX)                            \
    _(uint32_t, aclrtGetErrorCodeFromExceptionInfo, (const void *info), (info), UINT32_MAX)

#endif
