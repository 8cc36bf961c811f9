/* The little of CANN that the tracer's clients call; the prototypes are CANN's. */
#include <stddef.h>
#include <stdint.h>

int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind);
int aclrtSetDevice(int32_t device);
int aclrtGetDevice(int32_t *device);
int aclmdlRICaptureBegin(void *stream, int mode);
int aclmdlRICaptureEnd(void *stream, void **graph);
int aclmdlRIDestroy(void *graph);
int HcclGetRootInfo(void *root);
int HcclCommInitRootInfo(uint32_t ranks, const void *root, uint32_t rank, void **comm);
int HcclCommInitRootInfoConfig(uint32_t ranks, const void *root, uint32_t rank, const void *config, void **comm);
int HcclCommDestroy(void *comm);
int HcclAllReduce(void *from, void *to, uint64_t count, int type, int op, void *comm, void *stream);
int HcclAllGather(void *from, void *to, uint64_t count, int type, void *comm, void *stream);

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEFAULT_KIND = 4 };
#define ERRNO_OF_CANN 77     /* what every function of the stand-in leaves in errno */
#define BYTES_THAT_FAIL 9999 /* a copy of so many bytes fails, as one in a GLOBAL capture does */
#define STREAM_THAT_FAILS ((void *)0xbad)
#define COPIES_A_COLLECTIVE 3
#define BYTES_A_COPY 100
