/* libnnopbase: the arguments of aclnn operators (tensors, scalars, arrays, lists of them) as handles that tell back
 * what they were made of. Operators do not read them here: they compute nothing. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cann.h"

typedef int32_t aclnnStatus;
enum { OK = 0, NULL_POINTER = 161001, BAD_PARAMETER = 161002 };

typedef struct {
    int type, format;
    int64_t offset;
    uint64_t dims;
    int64_t *sizes, *strides;
    void *data;
} aclTensor;

typedef struct {
    uint64_t count;
    void (*destroy)(const void *item); /* NULL where the items are plain values */
    void *items;
} array;

static void *copy_of(const void *from, uint64_t count, size_t size) {
    if (count > SIZE_MAX / size - 1) return NULL;
    void *copy = malloc(count * size + 1); /* malloc(0) may be NULL */
    if (copy && from && count) memcpy(copy, from, count * size);
    return copy;
}

EMU_EXPORT aclnnStatus aclDestroyTensor(const aclTensor *tensor) {
    if (!tensor) return OK;
    free(tensor->sizes);
    free(tensor->strides);
    free((void *)tensor);
    return OK;
}

EMU_EXPORT aclTensor *aclCreateTensor(const int64_t *sizes, uint64_t dims, int type, const int64_t *strides, int64_t offset,
                                  int format, const int64_t *storage_sizes, uint64_t storage_dims, void *data) {
    if (dims && !sizes) return NULL;
    aclTensor *tensor = malloc(sizeof *tensor);
    if (!tensor) return NULL;
    *tensor = (aclTensor){.type = type, .format = format, .offset = offset, .dims = dims, .data = data};
    tensor->sizes = copy_of(sizes, dims, sizeof *sizes);
    tensor->strides = copy_of(strides, strides ? dims : 0, sizeof *strides);
    if (tensor->sizes && tensor->strides) return tensor;
    aclDestroyTensor(tensor);
    return NULL;
}

/* The caller frees what it gets. */
EMU_EXPORT aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **sizes, uint64_t *dims) {
    if (!tensor || !sizes || !dims) return NULL_POINTER;
    *sizes = copy_of(tensor->sizes, tensor->dims, sizeof **sizes);
    *dims = tensor->dims;
    return *sizes ? OK : BAD_PARAMETER;
}
EMU_EXPORT aclnnStatus aclGetFormat(const aclTensor *tensor, int *format) {
    if (!tensor || !format) return NULL_POINTER;
    *format = tensor->format;
    return OK;
}
EMU_EXPORT aclnnStatus aclGetDataType(const aclTensor *tensor, int *type) {
    if (!tensor || !type) return NULL_POINTER;
    *type = tensor->type;
    return OK;
}
EMU_EXPORT aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **data) {
    if (!tensor || !data) return NULL_POINTER;
    *data = tensor->data;
    return OK;
}
EMU_EXPORT aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *data) {
    if (!tensor) return NULL_POINTER;
    tensor->data = data;
    return OK;
}

static array *array_create(const void *items, uint64_t count, size_t size, void (*destroy)(const void *)) {
    if (count && !items) return NULL;
    array *made = malloc(sizeof *made);
    if (!made) return NULL;
    *made = (array){count, destroy, copy_of(items, count, size)};
    if (made->items) return made;
    free(made);
    return NULL;
}

static aclnnStatus array_destroy(const array *gone) {
    if (!gone) return OK;
    for (uint64_t i = 0; gone->destroy && i < gone->count; i++) gone->destroy(((void **)gone->items)[i]);
    free(gone->items);
    free((void *)gone);
    return OK;
}

static aclnnStatus array_size(const array *of, uint64_t *size) {
    if (!of || !size) return NULL_POINTER;
    *size = of->count;
    return OK;
}

static void tensor_destroy(const void *tensor) { aclDestroyTensor(tensor); }
static void scalar_destroy(const void *scalar) { array_destroy(scalar); }

/* A scalar is an array of one, as wide as its type. */
static size_t width_of(int type) {
    enum { INT8 = 2, UINT8 = 4, BOOL = 12, FLOAT16 = 1, INT16 = 6, UINT16 = 7, BF16 = 27, COMPLEX64 = 16, COMPLEX128 = 17 };
    enum { FLOAT = 0, INT32 = 3, UINT32 = 8, COMPLEX32 = 33 };
    switch (type) {
        case INT8: case UINT8: case BOOL: return 1;
        case FLOAT16: case INT16: case UINT16: case BF16: return 2;
        case FLOAT: case INT32: case UINT32: case COMPLEX32: return 4;
        case COMPLEX128: return 16;
        case COMPLEX64: return 8;
        default: return type > COMPLEX32 ? 1 : 8; /* the 8-bit floats and their kin; 64-bit numbers */
    }
}

EMU_EXPORT array *aclCreateScalar(const void *value, int type) { return array_create(value, 1, width_of(type), NULL); }
EMU_EXPORT array *aclCreateIntArray(const int64_t *items, uint64_t count) { return array_create(items, count, sizeof *items, NULL); }
EMU_EXPORT array *aclCreateFloatArray(const float *items, uint64_t count) { return array_create(items, count, sizeof *items, NULL); }
EMU_EXPORT array *aclCreateBoolArray(const bool *items, uint64_t count) { return array_create(items, count, sizeof *items, NULL); }
/* A list owns its members. */
EMU_EXPORT array *aclCreateTensorList(const aclTensor *const *items, uint64_t count) {
    return array_create(items, count, sizeof *items, tensor_destroy);
}
EMU_EXPORT array *aclCreateScalarList(const array *const *items, uint64_t count) {
    return array_create(items, count, sizeof *items, scalar_destroy);
}

#define ARRAY(name)                                                                                              \
    EMU_EXPORT aclnnStatus aclDestroy##name(const array *gone) { return array_destroy(gone); }                       \
    EMU_EXPORT aclnnStatus aclGet##name##Size(const array *of, uint64_t *size) { return array_size(of, size); }
ARRAY(IntArray)
ARRAY(FloatArray)
ARRAY(BoolArray)
ARRAY(TensorList)
ARRAY(ScalarList)
EMU_EXPORT aclnnStatus aclDestroyScalar(const array *gone) { return array_destroy(gone); }

/* Operators make no executor here: what clients hold is their own NULL. */
EMU_EXPORT aclnnStatus aclSetAclOpExecutorRepeatable(void *executor) { return OK; }
EMU_EXPORT aclnnStatus aclDestroyAclOpExecutor(void *executor) { return OK; }
