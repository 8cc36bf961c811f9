/* CAPTURE_CANARY_EMULATE_FAULT: any item is a fault within its bounds, or refused. */
#include "../../../daemon/emulator/runtime/fault.c"
#include "text.h"

void emuDie(const char *format, ...) { abort(); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = textOf(data, size);
    fault parsed;
    memset(&parsed, 0, sizeof parsed);
    if (parseFault(text, &parsed)) {
        CHECK(isFunction(parsed.function) && parsed.number >= 1 && parsed.rank >= -1);
        CHECK((parsed.kind == FAULT_FAIL) == (parsed.code != 0));
    }
    free(text);
    return 0;
}
