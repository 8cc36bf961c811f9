/* Lives through failing calls in the arguments of operators: libnnopbase and libacl_op_compiler. */
#include "promise.h"

void *aclCreateTensor(const int64_t *, uint64_t, int, const int64_t *, int64_t, int, const int64_t *, uint64_t, void *);
void *aclCreateScalar(const void *, int), *aclCreateIntArray(const int64_t *, uint64_t);
void *aclCreateTensorList(void *const *, uint64_t), *aclCreateTensorDesc(int, int, const int64_t *, int);
void *aclCreateDataBuffer(void *, size_t), *aclopCreateAttr(void);
int aclDestroyTensor(void *), aclDestroyScalar(void *), aclDestroyIntArray(void *), aclDestroyTensorList(void *);
int aclGetViewShape(const void *, int64_t **, uint64_t *), aclGetTensorListSize(const void *, uint64_t *);
int aclSetCompileopt(int, const char *), aclGetCompileopt(int, char *, size_t);
int aclDestroyDataBuffer(void *), aclGetTensorDescDimV2(const void *, size_t, int64_t *);
void aclDestroyTensorDesc(void *), aclopDestroyAttr(void *);

enum { NO_MEMORY = 1 };
#define MADE(PLACE, CALL) TRY(((PLACE) = (CALL)) ? 0 : NO_MEMORY)

static outcome work(void) {
    outcome ended = {0, NULL};
    const int64_t sizes[] = {3, 4};
    void *tensor = NULL, *scalar = NULL, *array = NULL, *list = NULL, *desc = NULL, *buffer = NULL, *attribute = NULL;
    int64_t *shape = NULL, size;
    uint64_t dims;
    char value[16];
    float one = 1;
    MADE(tensor, aclCreateTensor(sizes, 2, 0, sizes, 0, 2, sizes, 2, value));
    TRY(aclGetViewShape(tensor, &shape, &dims));
    if (dims != 2 || memcmp(shape, sizes, sizeof sizes) != 0) BROKEN("a tensor has another shape");
    MADE(scalar, aclCreateScalar(&one, 0));
    MADE(array, aclCreateIntArray(sizes, 2));
    MADE(list, aclCreateTensorList(&tensor, 1));
    tensor = NULL; /* the list's */
    TRY(aclGetTensorListSize(list, &dims));
    if (dims != 1) BROKEN("a list has another size");
    TRY(aclSetCompileopt(3, "value"));
    TRY(aclGetCompileopt(3, value, sizeof value));
    if (strcmp(value, "value") != 0) BROKEN("an option has another value");
    MADE(desc, aclCreateTensorDesc(0, 2, sizes, 2));
    TRY(aclGetTensorDescDimV2(desc, 1, &size));
    if (size != 4) BROKEN("a descriptor has another size");
    MADE(buffer, aclCreateDataBuffer(value, sizeof value));
    MADE(attribute, aclopCreateAttr());
out:
    free(shape);
    aclDestroyTensor(tensor);
    aclDestroyScalar(scalar);
    aclDestroyIntArray(array);
    aclDestroyTensorList(list);
    aclDestroyTensorDesc(desc);
    aclDestroyDataBuffer(buffer);
    aclopDestroyAttr(attribute);
    return ended;
}

int main(void) {
    return keepsItsPromise(work, 1);
}
