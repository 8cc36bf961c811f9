/* The emulated node's file, written by anybody of this user: it is a node and its slots are read, or it is refused. */
#include <setjmp.h>

#include "../../../daemon/emulator/runtime/node.c"
#include "text.h"

static jmp_buf refused;
static const char path[] = "node"; /* in the folder of the run */

void emuDie(const char *format, ...) { longjmp(refused, 1); }
const emuSettings *emuSettingsGet(void) {
    static const emuSettings settings = {.npus = 16, .hbm = 64ULL << 30};
    return &settings;
}

static void reset(void) {
    if (theNode) munmap(theNode, mappedSize());
    if (nodeFile >= 0) close(nodeFile);
    for (int i = 3; i < 16; i++) close(i); /* what a refusal left: the process would have ended */
    theNode = NULL;
    mySlot = NULL;
    nodeFile = -1;
    pthread_mutex_init(&lock, NULL);
}

/* The first byte says where in a file of the right size the rest lies; or the rest is the file. */
static void write_(const uint8_t *data, size_t size) {
    static const node good = {.magic = "ccnode\n", .version = NODE_VERSION, .slots = 3};
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    if (size > 0 && data[0] < 128) {
        CHECK(ftruncate(file, (off_t)mappedSize()) == 0);
        CHECK(pwrite(file, &good, 16, 0) == 16);
        CHECK(pwrite(file, data + 1, size - 1, data[0] * 8) == (ssize_t)size - 1);
    } else if (size > 0) {
        CHECK(write(file, data + 1, size - 1) == (ssize_t)size - 1);
    }
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static emuSlot slots[EMU_MAX_SLOTS];
    emuUse used;
    setenv("CAPTURE_CANARY_EMULATE_NODE", path, 1);
    write_(data, size);
    if (setjmp(refused) == 0) {
        int count = emuNodeSlots(slots);
        CHECK(count >= 0 && count <= EMU_MAX_SLOTS);
        int code = emuNodeTakeHbm(0, 1 << 20);
        CHECK(code == 0 || code == RT_MEMORY_ALLOCATION || code == RT_DEV_SETUP_ERROR);
        CHECK(emuNodeUsed(0, &used) == 0);
        if (code == 0) emuNodeGiveHbm(0, 1 << 20);
    }
    reset();
    unlink(path);
    return 0;
}
