/* The platform adapter (libhccl_plf): the only part of HCCL that calls the runtime's memory functions. */
#ifndef PLF_H
#define PLF_H

#include "hccl.h"

/* Synchronous copy to the device, framed so that it is legal in a capture. */
HCCL_API HcclResult hrtCopyToDevice(void *device, const void *host, size_t bytes);
HCCL_API HcclResult hrtCopyToHost(void *host, const void *device, size_t bytes);
/* Device memory; `zeroed` memory is set by a synchronous memset, framed like the copies. */
HCCL_API HcclResult hrtMalloc(void **device, size_t bytes, _Bool zeroed);
HCCL_API void hrtFree(void *device);
HCCL_API HcclResult hrtGetDevice(int32_t *device);
HCCL_API HcclResult hrtSetDevice(int32_t device);
/* The node's number of the process's device. */
HCCL_API int32_t hrtChipOf(int32_t device);
/* Calls aclmdlRIDestroyRegisterCallback where the runtime has it (CANN 9.0 and later). */
HCCL_API HcclResult hrtOnGraphDestroy(void *model, void (*callback)(void *), void *data);

#endif
