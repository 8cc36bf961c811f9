/* The platform adapter (libhccl_plf): HCCL's calls of the runtime's memory functions, through libacl_rt's symbols. */
#include "plf.h"

typedef int aclError;
enum { ACL_CAPTURE_RELAXED = 2, ACL_HOST_TO_DEVICE = 1, ACL_DEVICE_TO_HOST = 2, ACL_MALLOC_HUGE_FIRST = 0 };
enum { ACL_BAD_ALLOC = 200000, ACL_OUT_OF_DEVICE_MEMORY = 207001 };

aclError aclmdlRICaptureThreadExchangeMode(int *mode);
aclError aclmdlRIDestroyRegisterCallback(void *model, void (*callback)(void *), void *data) __attribute__((weak));
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, int kind);
aclError aclrtMemset(void *dst, size_t maxCount, int32_t value, size_t count);
aclError aclrtMalloc(void **dev, size_t size, int policy);
aclError aclrtFree(void *dev);
aclError aclrtGetDevice(int32_t *device);
aclError aclrtSetDevice(int32_t device);
int rtGetDevicePhyIdByIndex(uint32_t device, uint32_t *chip);

static HcclResult result(aclError code) {
    return code == 0 ? HCCL_SUCCESS : HCCL_E_RUNTIME;
}

/* A synchronous copy is illegal in a GLOBAL capture: the thread steps out of it for the length of the copy. */
static HcclResult framedCopy(void *dst, const void *src, size_t bytes, int kind) {
    int mode = ACL_CAPTURE_RELAXED;
    if (aclmdlRICaptureThreadExchangeMode(&mode) != 0) {
        return HCCL_E_RUNTIME;
    }
    aclError copied = aclrtMemcpy(dst, bytes, src, bytes, kind);
    aclError back = aclmdlRICaptureThreadExchangeMode(&mode);
    return result(copied != 0 ? copied : back);
}

HcclResult hrtCopyToDevice(void *device, const void *host, size_t bytes) {
    return framedCopy(device, host, bytes, ACL_HOST_TO_DEVICE);
}

HcclResult hrtCopyToHost(void *host, const void *device, size_t bytes) {
    return framedCopy(host, device, bytes, ACL_DEVICE_TO_HOST);
}

static HcclResult framedZero(void *device, size_t bytes) {
    int mode = ACL_CAPTURE_RELAXED;
    if (aclmdlRICaptureThreadExchangeMode(&mode) != 0) {
        return HCCL_E_RUNTIME;
    }
    aclError set = aclrtMemset(device, bytes, 0, bytes);
    aclError back = aclmdlRICaptureThreadExchangeMode(&mode);
    return result(set != 0 ? set : back);
}

HcclResult hrtMalloc(void **device, size_t bytes, _Bool zeroed) {
    aclError code = aclrtMalloc(device, bytes, ACL_MALLOC_HUGE_FIRST);
    if (code == ACL_BAD_ALLOC || code == ACL_OUT_OF_DEVICE_MEMORY) {
        return HCCL_E_OOM;
    }
    if (code != 0) {
        return HCCL_E_RUNTIME;
    }
    if (!zeroed) {
        return HCCL_SUCCESS;
    }
    HcclResult set = framedZero(*device, bytes);
    if (set != HCCL_SUCCESS) {
        hrtFree(*device);
        *device = NULL;
    }
    return set;
}

void hrtFree(void *device) {
    if (device != NULL) {
        (void)aclrtFree(device);
    }
}

HcclResult hrtGetDevice(int32_t *device) {
    return result(aclrtGetDevice(device));
}

HcclResult hrtSetDevice(int32_t device) {
    return result(aclrtSetDevice(device));
}

int32_t hrtChipOf(int32_t device) {
    uint32_t chip;
    return rtGetDevicePhyIdByIndex((uint32_t)device, &chip) == 0 ? (int32_t)chip : device;
}

HcclResult hrtOnGraphDestroy(void *model, void (*callback)(void *), void *data) {
    if (aclmdlRIDestroyRegisterCallback == NULL) {
        return HCCL_E_NOT_SUPPORT;
    }
    return result(aclmdlRIDestroyRegisterCallback(model, callback, data));
}
