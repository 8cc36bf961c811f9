/* HCCL's messages: logged as CANN logs, errors remembered for aclGetRecentErrMsg too. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

static void print(const char *level, const char *message) {
    const char *wanted = getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    if (wanted != NULL && strcmp(wanted, "1") == 0) {
        printf("[%s] HCCL(%d,emulated): %s\n", level, (int)getpid(), message);
        fflush(stdout);
    }
}

HcclResult hcclFail(HcclResult code, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    emuMessage(message);
    print("ERROR", message);
    return code;
}

void hcclWarn(const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    print("WARNING", message);
}
