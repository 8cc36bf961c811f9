/* Counts the calls of three functions that it is preloaded for, and says how many at exit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(name, library, size)                                                                                \
    static int name##Calls;                                                                                      \
    int name(void *to, size to_size, const void *from, size count, int kind) {                                    \
        int (*real)(void *, size, const void *, size, int) = dlsym(dlopen(library, RTLD_NOW | RTLD_NOLOAD), #name); \
        name##Calls++;                                                                                           \
        return real ? real(to, to_size, from, count, kind) : 999999;                                             \
    }
COUNT(aclrtMemcpy, "libacl_rt.so", size_t)
COUNT(aclrtMemcpyImpl, IMPL_LIBRARY, size_t)
COUNT(rtMemcpy, "libruntime.so", unsigned long)

__attribute__((destructor)) static void report(void) {
    if (getenv("COUNT_COPIES"))
        printf("%d %d %d\n", aclrtMemcpyCalls, aclrtMemcpyImplCalls, rtMemcpyCalls);
}
