/* What went wrong last, as the thread's code and message. */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

static _Thread_local rtError_t lastCode;
static _Thread_local char lastMessage[512];

static rtError_t remember(rtError_t code, const char *format, va_list args) {
    int length = snprintf(lastMessage, sizeof lastMessage, "E39999: ErrCode=%d, ", code);
    vsnprintf(lastMessage + length, sizeof lastMessage - (size_t)length, format, args);
    lastCode = code;
    return code;
}

rtError_t emuError(rtError_t code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    remember(code, format, args);
    va_end(args);
    return code;
}

rtError_t emuRefused(rtError_t code, const char *format, ...) {
    va_list args;
    if (code == RT_DEV_SETUP_ERROR) return emuError(code, "%s", emuNodeProblem());
    va_start(args, format);
    remember(code, format, args);
    va_end(args);
    return code;
}

void emuMessage(const char *message) { snprintf(lastMessage, sizeof lastMessage, "%s", message); }

/* Never NULL: torch-npu makes a std::string of it. Reading the message takes it, as on a node. */
EMU_EXPORT const char *emuRecentMessage(void) {
    static _Thread_local char taken[sizeof lastMessage];
    snprintf(taken, sizeof taken, "%s", lastMessage);
    lastMessage[0] = '\0';
    return taken;
}

EMU_EXPORT rtError_t rtPeekAtLastError(int level) { return lastCode; }

EMU_EXPORT rtError_t rtGetLastError(int level) {
    rtError_t code = lastCode;
    lastCode = 0;
    return code;
}
