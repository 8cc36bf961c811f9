/* HCCL's environment variables, read once a process at the first initialisation of HCCL. */
#ifndef ENV_H
#define ENV_H

#include <stdbool.h>

#include "emu.h"
#include "hccl.h"

/* Where collectives are orchestrated: HcclCommConfig.hcclOpExpansionMode has the same order, from 1. */
typedef struct {
    bool aicpu;   /* on the device's AI CPU: the path with the resource lists */
    bool aiv;     /* on its vector cores, where the collective allows it */
    bool aivOnly; /* never fall back from there */
} expansion;

enum { PORT_RANGES_MAX = 16 };
typedef struct {
    bool set;
    uint32_t count;
    struct {
        uint16_t min, max;
    } range[PORT_RANGES_MAX]; /* one of {0, 0} stands for `auto` */
} portRanges;

typedef struct {
    expansion mode;
    bool deterministic;
    uint64_t bufferBytes;
    int64_t connectMs;
    int64_t execMs; /* 0: no limit */
    portRanges hostPorts;
    portRanges npuPorts;
    int basePort; /* HCCL_IF_BASE_PORT, or -1 */
} hcclEnv;

/* HCCL_E_PARA where a variable is malformed; said again at each further call. */
HcclResult envGet(const hcclEnv **env);

/* Log as CANN does: to stdout where ASCEND_SLOG_PRINT_TO_STDOUT is 1. An error is remembered for aclGetRecentErrMsg. */
__attribute__((format(printf, 2, 3))) HcclResult hcclFail(HcclResult code, const char *format, ...);
__attribute__((format(printf, 1, 2))) void hcclWarn(const char *format, ...);

#endif
