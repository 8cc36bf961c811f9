/* libacl_op_compiler: the options of the operator compiler, and descriptors for operators that it would compile.
 * There is no compiler here: jit compilation is off, as on a node that has binary operators. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cann.h"

enum { ACL_ERROR_OP_NOT_FOUND = 100024, ACL_ERROR_BAD_ALLOC = 200000 };
enum { ACL_OP_JIT_COMPILE = 10, OPTIONS = 64, VALUE_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *values[OPTIONS];

/* torch-npu asks whether it may use operators without compiling them first: "disable" says that it may. */
static const char *value_of(int option) {
    if (option < 0 || option >= OPTIONS) return NULL;
    if (values[option]) return values[option];
    return option == ACL_OP_JIT_COMPILE ? "disable" : NULL;
}

EMU_EXPORT aclError aclSetCompileopt(int option, const char *value) {
    if (option < 0 || option >= OPTIONS || !value || strnlen(value, VALUE_MAX) == VALUE_MAX) return ACL_ERROR_INVALID_PARAM;
    char *copy = strdup(value);
    if (!copy) return ACL_ERROR_BAD_ALLOC;
    pthread_mutex_lock(&lock);
    free(values[option]);
    values[option] = copy;
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

EMU_EXPORT size_t aclGetCompileoptSize(int option) {
    pthread_mutex_lock(&lock);
    const char *value = value_of(option);
    size_t size = value ? strlen(value) + 1 : 0;
    pthread_mutex_unlock(&lock);
    return size;
}

EMU_EXPORT aclError aclGetCompileopt(int option, char *value, size_t length) {
    aclError code = ACL_ERROR_INVALID_PARAM;
    pthread_mutex_lock(&lock);
    const char *found = value_of(option);
    if (found && value && strlen(found) < length) {
        strcpy(value, found);
        code = ACL_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

EMU_EXPORT aclError aclopCompileAndExecute(void) { return ACL_ERROR_OP_NOT_FOUND; }
EMU_EXPORT aclError aclopCompileAndExecuteV2(void) { return ACL_ERROR_OP_NOT_FOUND; }

/* What follows makes arguments of an operator to be compiled: kept truly, since clients read descriptors back. */
typedef struct {
    int type, format;
    size_t dims;
    int64_t *sizes;
} aclTensorDesc;
typedef struct {
    void *data;
    size_t size;
} aclDataBuffer;
typedef struct {
    char unused;
} aclopAttr;

static aclError shape_set(aclTensorDesc *desc, int dims, const int64_t *sizes) {
    if (!desc || dims < 0 || (dims > 0 && !sizes)) return ACL_ERROR_INVALID_PARAM;
    int64_t *copy = malloc((dims ? (size_t)dims : 1) * sizeof *copy);
    if (!copy) return ACL_ERROR_BAD_ALLOC;
    if (dims) memcpy(copy, sizes, (size_t)dims * sizeof *copy);
    free(desc->sizes);
    desc->sizes = copy;
    desc->dims = (size_t)dims;
    return ACL_SUCCESS;
}

EMU_EXPORT aclTensorDesc *aclCreateTensorDesc(int type, int dims, const int64_t *sizes, int format) {
    aclTensorDesc *desc = calloc(1, sizeof *desc);
    if (!desc) return NULL;
    desc->type = type;
    desc->format = format;
    if (shape_set(desc, dims, sizes)) {
        free(desc);
        return NULL;
    }
    return desc;
}

EMU_EXPORT void aclDestroyTensorDesc(const aclTensorDesc *desc) {
    if (!desc) return;
    free(desc->sizes);
    free((void *)desc);
}

EMU_EXPORT int aclGetTensorDescType(const aclTensorDesc *desc) { return desc ? desc->type : -1; }
EMU_EXPORT int aclGetTensorDescFormat(const aclTensorDesc *desc) { return desc ? desc->format : -1; }
EMU_EXPORT size_t aclGetTensorDescNumDims(const aclTensorDesc *desc) { return desc ? desc->dims : 0; }

EMU_EXPORT aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *size) {
    if (!desc || !size || index >= desc->dims) return ACL_ERROR_INVALID_PARAM;
    *size = desc->sizes[index];
    return ACL_SUCCESS;
}

/* The storage's format and shape, which no operator here looks at. */
EMU_EXPORT aclError aclSetTensorFormat(aclTensorDesc *desc, int format) { return desc ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM; }
EMU_EXPORT aclError aclSetTensorShape(aclTensorDesc *desc, int dims, const int64_t *sizes) {
    return desc && dims >= 0 ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}
EMU_EXPORT aclError aclSetTensorPlaceMent(aclTensorDesc *desc, int place) { return desc ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM; }
EMU_EXPORT void aclSetTensorDescName(aclTensorDesc *desc, const char *name) {}

EMU_EXPORT aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
    aclDataBuffer *buffer = malloc(sizeof *buffer);
    if (buffer) *buffer = (aclDataBuffer){data, size};
    return buffer;
}
EMU_EXPORT aclError aclDestroyDataBuffer(const aclDataBuffer *buffer) {
    free((void *)buffer);
    return ACL_SUCCESS;
}

EMU_EXPORT aclopAttr *aclopCreateAttr(void) { return calloc(1, sizeof(aclopAttr)); }
EMU_EXPORT void aclopDestroyAttr(const aclopAttr *attr) { free((void *)attr); }
