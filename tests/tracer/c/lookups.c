/* What dlsym answers with the tracer preloaded must be what it answers without, but for who stands in front. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cann.h"

#define CHECK(condition)                                             \
    do {                                                             \
        if (!(condition)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);  \
            exit(91);                                                \
        }                                                            \
    } while (0)

/* Not there: NULL, and dlerror says which name. */
static void absent(void *handle, const char *name) {
    dlerror();
    CHECK(dlsym(handle, name) == NULL);
    const char *said = dlerror();
    CHECK(said != NULL && strstr(said, name) != NULL);
}

static int capture(void *library) {
    void *graph;
    int (*begin)(void *, int) = (int (*)(void *, int))dlsym(library, "aclmdlRICaptureBegin");
    int (*end)(void *, void **) = (int (*)(void *, void **))dlsym(library, "aclmdlRICaptureEnd");
    CHECK(begin != NULL && end != NULL);
    return begin(&graph, 0) == 0 && end(&graph, &graph) == 0;
}

int main(int argc, char **argv) {
    CHECK(dlsym(RTLD_DEFAULT, "getpid") != NULL && dlsym(RTLD_DEFAULT, "dlsym") != NULL);
    /* No CANN yet: nobody may learn that there is one. */
    absent(RTLD_DEFAULT, "aclmdlRICaptureBegin");
    absent(RTLD_NEXT, "aclmdlRICaptureBegin");
    absent(dlopen(NULL, RTLD_LAZY), "HcclAllReduce");
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    absent(library, "HcclCommInitAll"); /* this CANN does not have it, whatever the tracer knows */
    absent(RTLD_DEFAULT, "HcclCommInitAll");
    CHECK(dlsym(library, "aclrtGetDevice") != NULL);
    CHECK(capture(library));
    CHECK(dlsym(library, "aclmdlRICaptureBegin") == dlsym(library, "aclmdlRICaptureBegin"));
    if (argc > 2) { /* a second copy of CANN: calls must not cross over */
        void *second = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        CHECK(second != NULL && second != library);
        CHECK(dlsym(second, "aclmdlRICaptureBegin") != dlsym(library, "aclmdlRICaptureBegin"));
        CHECK(capture(second) && capture(library));
    }
    return 0;
}
