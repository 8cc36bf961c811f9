/* libms_tools_ext: the marks (mstx) that torch-npu sets around operators as soon as a libmspti.so is preloaded. Nobody
 * collects them here: ranges have numbers, domains are handles, and that is all. */
#include <stdatomic.h>
#include <stdint.h>

typedef void *aclrtStream;
typedef struct domain domain;

static atomic_uint_fast64_t ranges;
static char domains;

void mstxMarkA(const char *message, aclrtStream stream) {}

uint64_t mstxRangeStartA(const char *message, aclrtStream stream) {
    return atomic_fetch_add(&ranges, 1) + 1; /* 0 is no range */
}

void mstxRangeEnd(uint64_t range) {}

domain *mstxDomainCreateA(const char *name) {
    return (domain *)&domains;
}

void mstxDomainDestroy(domain *handle) {}

void mstxDomainMarkA(domain *handle, const char *message, aclrtStream stream) {}

uint64_t mstxDomainRangeStartA(domain *handle, const char *message, aclrtStream stream) {
    return mstxRangeStartA(message, stream);
}

void mstxDomainRangeEnd(domain *handle, uint64_t range) {}
