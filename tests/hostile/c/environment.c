/* HCCL's variables, a line each: all are read into bounds, or the first bad one is complained of. */
#include "../../../daemon/emulator/hccl/env.c"
#include "text.h"

const emuSettings *emuSettingsGet(void) {
    static const emuSettings settings = {.soc = EMU_SOC_A3};
    return &settings;
}
HcclResult hcclFail(HcclResult code, const char *format, ...) { return code; }
void hcclWarn(const char *format, ...) {}

static void checkPorts(const portRanges *ports) {
    CHECK(ports->count <= PORT_RANGES_MAX);
    for (uint32_t i = 0; i < ports->count; i++) CHECK(ports->range[i].min <= ports->range[i].max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {
        "HCCL_OP_EXPANSION_MODE", "HCCL_DETERMINISTIC", "HCCL_BUFFSIZE", "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT",
        "HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"};
    char *text = textOf(data, size), *rest = text;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *line = rest ? strsep(&rest, "\n") : NULL;
        if (line) setenv(names[i], line, 1);
        else unsetenv(names[i]);
    }
    hcclEnv env = {0};
    complaint[0] = '\0';
    if (readAll(&env) == HCCL_SUCCESS) {
        checkPorts(&env.hostPorts);
        checkPorts(&env.npuPorts);
        CHECK(env.bufferBytes >= MB && env.connectMs >= 1000 && env.execMs >= 0 && env.basePort <= BASE_PORT_MAX);
    } else {
        CHECK(complaint[0] != '\0' && memchr(complaint, '\0', sizeof complaint));
    }
    free(text);
    return 0;
}
