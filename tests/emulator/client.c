/* A client that is linked against libacl_rt and makes five copies. */
#include <stddef.h>
#include <stdio.h>

int aclrtSetDevice(int device);
int aclrtMalloc(void **pointer, size_t size, int policy);
int aclrtMemcpy(void *to, size_t room, const void *from, size_t count, int kind);

int main(void) {
    void *memory = NULL;
    char text[64] = "text";
    int code = aclrtSetDevice(0) || aclrtMalloc(&memory, 64, 0);
    for (int i = 0; i < 5 && !code; i++) code = aclrtMemcpy(memory, 64, text, 64, 1);
    return code;
}
