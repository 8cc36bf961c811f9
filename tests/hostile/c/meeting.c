/* What a stranger at the rendezvous sends, descriptors included, and what a peer writes into the shared memory. */
#include "../../../daemon/emulator/hccl/rendezvous.c"
#include "../../../daemon/emulator/hccl/exchange.c"
#include "text.h"

#include <fcntl.h>
#include <sys/mman.h>

int transportCreate(uint32_t ranks) { return -1; }
int64_t transportNowMs(void) { return nowMs(); }
void transportRing(bell *b) {}
void transportRest(bell *b, uint32_t seen) {}
bool transportGone(const transport *t, uint32_t rank) { return true; }

static int descriptors(void) {
    int count = 0;
    for (int i = 0; i < 64; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* The first byte: how many descriptors come along. */
static void answerOf(const uint8_t *data, size_t size) {
    int pair[2], fds[3] = {0, 0, 0}, before = descriptors();
    char control[CMSG_SPACE(sizeof fds)] = {0};
    HcclResult result;
    size_t with = size > 0 ? data[0] % 4 : 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct iovec part = {.iov_base = (void *)(uintptr_t)(data + 1), .iov_len = size > 0 ? size - 1 : 0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (with > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(with * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(with * sizeof(int))};
        memcpy(CMSG_DATA(c), fds, with * sizeof(int));
    }
    CHECK(part.iov_len == 0 || sendmsg(pair[0], &message, MSG_NOSIGNAL) >= 0);
    close(pair[0]);
    int memory = receiveMemory(pair[1], &result);
    CHECK(result != HCCL_SUCCESS || memory >= 0);
    if (memory >= 0) close(memory);
    close(pair[1]);
    CHECK(descriptors() == before);
}

/* A peer's counters and bytes: what is read stays within the buffer, and success means that a whole message came. */
static void boxOf(const uint8_t *data, size_t size) {
    enum { RANKS = 2, BYTES = 64 };
    static box boxes[RANKS * RANKS];
    static bell bells[RANKS];
    static header arriving[RANKS];
    static pthread_mutex_t locks[2][RANKS];
    transport t = {.rank = 0, .ranks = RANKS, .bells = bells, .boxes = boxes, .sending = locks[0],
                   .receiving = locks[1], .arriving = arriving};
    uint8_t *got = malloc(BYTES), *sent = calloc(1, BYTES);
    box *in = &boxes[1 * RANKS + 0], *out = &boxes[0 * RANKS + 1];
    uint32_t counters[4] = {0};
    CHECK(got && sent);
    memcpy(counters, data, size < sizeof counters ? size : sizeof counters);
    atomic_store(&in->head, counters[0]);
    atomic_store(&in->tail, counters[1]);
    atomic_store(&out->head, counters[2]);
    atomic_store(&out->tail, counters[3]);
    for (size_t i = sizeof counters; i < size; i++) in->bytes[(counters[0] + i - sizeof counters) % BOX_BYTES] = data[i];
    leg send = {.peer = 1, .data = sent, .bytes = BYTES}, receive = {.peer = 1, .data = got, .bytes = BYTES};
    HcclResult result = transportExchange(&t, 0, &send, 1, &receive, 1, 1);
    CHECK(result == HCCL_SUCCESS || result == HCCL_E_INTERNAL || result == HCCL_E_REMOTE || result == HCCL_E_TIMEOUT);
    CHECK(result != HCCL_SUCCESS || (legDone(&send) && legDone(&receive)));
    free(got);
    free(sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    answerOf(data, size);
    boxOf(data, size);
    return 0;
}
