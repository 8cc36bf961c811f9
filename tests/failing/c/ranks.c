/* Lives through failing calls in two ranks of HCCL, as threads: communicators, collectives, captures, their ends. */
#include <pthread.h>

#include "promise.h"

int aclrtSetDevice(int), aclrtResetDevice(int), aclrtMalloc(void **, size_t, int), aclrtFree(void *);
int aclrtGetMemInfo(int, size_t *, size_t *), aclrtMemcpy(void *, size_t, const void *, size_t, int);
int aclrtCreateStream(void **), aclrtDestroyStreamForce(void *), aclrtSynchronizeStream(void *);
int aclmdlRICaptureBegin(void *, int), aclmdlRICaptureEnd(void *, void **), aclmdlRIDestroy(void *);
int aclmdlRIExecuteAsync(void *, void *);
int HcclGetRootInfo(void *), HcclCommInitRootInfo(uint32_t, const void *, uint32_t, void **), HcclCommDestroy(void *);
int HcclCommInitAll(uint32_t, int32_t *, void **);
int HcclCreateSubCommConfig(void **, uint32_t, uint32_t *, uint64_t, uint32_t, void *, void **);
int HcclAllReduce(void *, void *, uint64_t, int, int, void *, void *);
int HcclAllGather(void *, void *, uint64_t, int, void *, void *);
int HcclReduceScatter(void *, void *, uint64_t, int, int, void *, void *);
int HcclAlltoAllVC(const void *, const void *, int, const void *, int, void *, void *);
int HcclBroadcast(void *, uint64_t, int, uint32_t, void *, void *);
int HcclBatchSendRecv(void *, uint32_t, void *, void *);

enum { RANKS = 2, COUNT = 1024, INT32 = 2, SUM = 0, TO_DEVICE = 1, TO_HOST = 2, CAPTURES = 3, ROOT_BYTES = 4108 };
enum { WAITING, MADE, NONE };
enum { BYTES = COUNT * RANKS * 4 };

typedef struct {
    uint32_t rank;
    outcome ended;
    void *stream, *from, *to, *communicator, *part;
    bool set;
} rankState;

typedef struct {
    int kind;
    void *memory;
    uint64_t count;
    int type;
    uint32_t peer;
} item;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int state;
    char info[ROOT_BYTES];
} root = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int values(uint32_t rank, int i) {
    return (int)rank * 1000 + i;
}

static void tellRoot(int state) {
    pthread_mutex_lock(&root.lock);
    root.state = state;
    pthread_cond_broadcast(&root.changed);
    pthread_mutex_unlock(&root.lock);
}

static int meetAtRoot(uint32_t rank) {
    if (rank == 0) {
        int code = HcclGetRootInfo(root.info);
        tellRoot(code == 0 ? MADE : NONE);
        return code;
    }
    pthread_mutex_lock(&root.lock);
    while (root.state == WAITING) pthread_cond_wait(&root.changed, &root.lock);
    int state = root.state;
    pthread_mutex_unlock(&root.lock);
    return state == MADE ? 0 : 1;
}

static void holds(const rankState *r, int count, int (*wanted)(uint32_t, int), const char *after) {
    static __thread int got[COUNT * RANKS];
    int code = aclrtMemcpy(got, sizeof got, r->to, (size_t)count * 4, TO_HOST);
    for (int i = 0; code == 0 && i < count; i++)
        if (got[i] != wanted(r->rank, i)) BROKEN("%s: rank %u has %d at %d", after, r->rank, got[i], i);
}

static int summed(uint32_t rank, int i) {
    (void)rank;
    return values(0, i) + values(1, i);
}

static int gathered(uint32_t rank, int i) {
    (void)rank;
    return values((uint32_t)(i / COUNT), i % COUNT);
}

static int ofRankOne(uint32_t rank, int i) {
    (void)rank;
    return values(1, i);
}

static int scattered(uint32_t rank, int i) {
    return summed(rank, (int)rank * COUNT + i);
}

static int exchanged(uint32_t rank, int i) {
    return values((uint32_t)(i / COUNT), (int)rank * COUNT + i % COUNT);
}

static int ofPeer(uint32_t rank, int i) {
    return values(1 - rank, i);
}

static int fill(const rankState *r) {
    static __thread int data[COUNT * RANKS];
    for (int i = 0; i < COUNT * RANKS; i++) data[i] = values(r->rank, i);
    int code = aclrtMemcpy(r->from, BYTES, data, BYTES, TO_DEVICE);
    return code ? code : aclrtMemcpy(r->to, BYTES, data, BYTES, TO_DEVICE);
}

static outcome collectives(rankState *r) {
    outcome ended = r->ended;
    const uint64_t matrix[RANKS * RANKS] = {COUNT, COUNT, COUNT, COUNT};
    item items[] = {{0, r->from, COUNT, INT32, 1 - r->rank}, {1, r->to, COUNT, INT32, 1 - r->rank}};
    void *c = r->communicator, *s = r->stream;
    TRY(HcclAllReduce(r->from, r->to, COUNT, INT32, SUM, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT, summed, "AllReduce");
    TRY(HcclAllGather(r->from, r->to, COUNT, INT32, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT * RANKS, gathered, "AllGather");
    TRY(HcclReduceScatter(r->from, r->to, COUNT, INT32, SUM, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT, scattered, "ReduceScatter");
    TRY(HcclAlltoAllVC(r->from, matrix, INT32, r->to, INT32, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT * RANKS, exchanged, "AlltoAllVC");
    TRY(HcclBatchSendRecv(items, 2, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT, ofPeer, "BatchSendRecv");
    TRY(fill(r));
    TRY(HcclBroadcast(r->to, COUNT, INT32, 1, c, s));
    TRY(aclrtSynchronizeStream(s));
    holds(r, COUNT, ofRankOne, "Broadcast");
out:
    return ended;
}

static outcome captured(rankState *r, void **graph) {
    outcome ended = r->ended;
    TRY(aclmdlRICaptureBegin(r->stream, 0));
    TRY(HcclAllReduce(r->from, r->to, COUNT, INT32, SUM, r->communicator, r->stream));
    TRY(HcclAllGather(r->from, r->to, COUNT, INT32, r->communicator, r->stream));
out:;
    int code = aclmdlRICaptureEnd(r->stream, graph);
    if (code != 0 && ended.code == 0) ended = (outcome){code, "aclmdlRICaptureEnd"};
    return ended;
}

/* From PR 2405 on a destroyed graph takes its tags out of the lists, and with them their memory. */
static outcome forgets(rankState *r, size_t *left) {
    outcome ended = r->ended;
    size_t total, before = *left;
    TRY(aclrtGetMemInfo(1, left, &total));
    if (before && strstr(getenv("CAPTURE_CANARY_EMULATE"), "pr2405") && *left != before)
        BROKEN("rank %u: destroyed graphs keep %zu bytes", r->rank, before - *left);
out:
    return ended;
}

static outcome graphs(rankState *r) {
    void *graph[CAPTURES] = {NULL};
    outcome ended = r->ended;
    for (int i = 0; i < CAPTURES && ended.code == 0; i++) ended = captured(r, &graph[i]);
    for (int i = 0; i < CAPTURES && ended.code == 0; i++) {
        TRY(aclmdlRIExecuteAsync(graph[i], r->stream));
        TRY(aclrtSynchronizeStream(r->stream));
        holds(r, COUNT * RANKS, gathered, "a replay");
    }
out:
    for (int i = 0; i < CAPTURES; i++)
        if (graph[i]) GIVE(aclmdlRIDestroy(graph[i]));
    return ended;
}

static outcome part(rankState *r) {
    static _Thread_local uint64_t number;
    outcome ended = r->ended;
    uint32_t ids[] = {0, 1};
    TRY(HcclCreateSubCommConfig(&r->communicator, RANKS, ids, ++number, r->rank, NULL, &r->part));
    TRY(HcclAllReduce(r->from, r->to, COUNT, INT32, SUM, r->part, r->stream));
    TRY(aclrtSynchronizeStream(r->stream));
    holds(r, COUNT, summed, "a part's AllReduce");
out:
    return ended;
}

static void give(rankState *r) {
    outcome ended = r->ended;
    if (r->rank == 0 && root.state == WAITING) tellRoot(NONE);
    if (r->part) GIVE(HcclCommDestroy(r->part));
    if (r->communicator) GIVE(HcclCommDestroy(r->communicator));
    if (r->stream) GIVE(aclrtDestroyStreamForce(r->stream));
    if (r->from) GIVE(aclrtFree(r->from));
    if (r->to) GIVE(aclrtFree(r->to));
    if (r->set) GIVE(aclrtResetDevice((int)r->rank));
    r->ended = ended;
}

static void *body(void *argument) {
    rankState *r = argument;
    outcome ended = r->ended;
    TRY(aclrtSetDevice((int)r->rank));
    r->set = true;
    TRY(aclrtCreateStream(&r->stream));
    TRY(aclrtMalloc(&r->from, BYTES, 0));
    TRY(aclrtMalloc(&r->to, BYTES, 0));
    TRY(fill(r));
    TRY(meetAtRoot(r->rank));
    TRY(HcclCommInitRootInfo(RANKS, root.info, r->rank, &r->communicator));
    ended = collectives(r);
    size_t left = 0;
    for (int i = 0; i < 2; i++) {
        if (ended.code == 0) ended = graphs(r);
        if (ended.code == 0) ended = forgets(r, &left);
    }
    if (ended.code == 0) ended = part(r);
out:
    r->ended = ended;
    give(r);
    return NULL;
}

/* The third way to a communicator: the threads are HCCL's. */
static outcome all(outcome ended) {
    int32_t devices[RANKS] = {0, 1};
    void *communicators[RANKS] = {NULL};
    TRY(HcclCommInitAll(RANKS, devices, communicators));
out:
    for (int i = 0; i < RANKS; i++)
        if (communicators[i]) GIVE(HcclCommDestroy(communicators[i]));
    for (int i = 0; i < RANKS; i++) (void)aclrtResetDevice(i);
    for (int i = 0; i < RANKS; i++) (void)aclrtResetDevice(i);
    return ended;
}

static outcome work(void) {
    rankState ranks[RANKS] = {{.rank = 0}, {.rank = 1}};
    pthread_t threads[RANKS];
    root.state = WAITING;
    for (int i = 0; i < RANKS; i++)
        if (pthread_create(&threads[i], NULL, body, &ranks[i]) != 0) BROKEN("no thread for a rank");
    for (int i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    outcome ended = ranks[0].ended.code ? ranks[0].ended : ranks[1].ended;
    return ended.code ? ended : all(ended);
}

int main(void) {
    return keepsItsPromise(work, 10);
}
