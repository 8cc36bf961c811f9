/* HCCL's environment variables, read once a process at the first initialisation of HCCL. */
#include "env.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MB = 1 << 20, BUFFER_DEFAULT_MB = 200, CONNECT_DEFAULT_S = 120, CONNECT_MAX_S = 7200, EXEC_DEFAULT_S = 1836 };
enum { BASE_PORT_MIN = 1024, BASE_PORT_MAX = 65520, PORT_MIN = 1024, PORT_MAX = 65535 };

typedef struct {
    const char *name;
    uint8_t socs; /* where it is supported: bits 1 << emuSoc */
    bool aicpu, aiv;
} modeRow;
#define A2 (1 << EMU_SOC_A2)
#define A3 (1 << EMU_SOC_A3)
#define A5 (1 << EMU_SOC_950)

/* AIV leaves the SoC's default engine on as what to fall back to: see parseMode. */
static const modeRow modeRows[] = {
    {"AI_CPU", A2 | A3 | A5, true, false},   {"AICPU_CacheDisable", A3 | A5, true, false},
    {"AIV", A2 | A3 | A5, false, true},      {"HOST", A2 | A3, false, false},
    {"HOST_TS", A2, false, false},           {"AICPU_TS", A5, true, false},
    {"CCU_MS", A5, false, false},            {"CCU_SCHED", A5, false, false},
};

static hcclEnv environment;
static HcclResult outcome;
static char complaint[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Keep the first complaint: every later call repeats it. */
static HcclResult complain(const char *name, const char *value, const char *expected) {
    if (complaint[0] == '\0') {
        snprintf(complaint, sizeof complaint, "EI0001: Environment variable %s is invalid: [%.200s], expected %s", name,
                 value, expected);
    }
    return HCCL_E_PARA;
}

static bool socDefaultsToAicpu(emuSoc soc) {
    return soc != EMU_SOC_A2;
}

/* Exact and case-sensitive, as CANN compares; a known value of another SoC is a warning only. */
static HcclResult parseMode(const char *text, emuSoc soc, expansion *mode) {
    *mode = (expansion){.aicpu = socDefaultsToAicpu(soc)};
    if (text == NULL || text[0] == '\0') {
        return HCCL_SUCCESS;
    }
    for (size_t i = 0; i < sizeof modeRows / sizeof *modeRows; i++) {
        const modeRow *row = &modeRows[i];
        if (strcmp(text, row->name) != 0) {
            continue;
        }
        if (!(row->socs & 1 << soc)) {
            hcclWarn("HCCL_OP_EXPANSION_MODE is [%s], which this SoC does not support: its default stays", text);
        } else {
            mode->aiv = row->aiv;
            mode->aicpu = row->aicpu || (row->aiv && socDefaultsToAicpu(soc));
        }
        return HCCL_SUCCESS;
    }
    return complain("HCCL_OP_EXPANSION_MODE", text, "a mode of this CANN, in its exact spelling");
}

static bool parseNumber(const char *text, long min, long max, long *value) {
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value >= min && *value <= max;
}

/* Where it is unset or invalid the caller's default stands. */
static HcclResult readNumber(const char *name, long min, long max, long *value) {
    const char *text = getenv(name);
    long number;
    if (text == NULL || text[0] == '\0') {
        return HCCL_SUCCESS;
    }
    if (parseNumber(text, min, max, &number)) {
        *value = number;
        return HCCL_SUCCESS;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "%ld to %ld", min, max);
    return complain(name, text, expected);
}

static bool parseRange(const char *text, portRanges *ports) {
    char copy[16];
    if (strlen(text) >= sizeof copy || ports->count == PORT_RANGES_MAX) {
        return false;
    }
    strcpy(copy, text);
    char *dash = strchr(copy, '-');
    if (dash != NULL) {
        *dash = '\0';
    }
    long min;
    long max;
    if (!parseNumber(copy, PORT_MIN, PORT_MAX, &min) ||
        !parseNumber(dash != NULL ? dash + 1 : copy, PORT_MIN, PORT_MAX, &max) || min > max) {
        return false;
    }
    ports->range[ports->count].min = (uint16_t)min;
    ports->range[ports->count].max = (uint16_t)max;
    ports->count++;
    return true;
}

/* `auto`, or ports and ranges of ports with commas between: 60000,60050-60100 */
static bool parsePorts(const char *text, portRanges *ports) {
    *ports = (portRanges){0};
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    ports->set = true;
    if (strcmp(text, "auto") == 0) {
        ports->count = 1;
        return true;
    }
    char copy[512];
    if (strlen(text) >= sizeof copy) {
        return false;
    }
    strcpy(copy, text);
    char *rest = copy;
    for (char *part = strsep(&rest, ","); part != NULL; part = strsep(&rest, ",")) {
        if (!parseRange(part, ports)) {
            return false;
        }
    }
    return true;
}

static HcclResult readPorts(const char *name, portRanges *ports) {
    const char *text = getenv(name);
    if (parsePorts(text, ports)) {
        return HCCL_SUCCESS;
    }
    return complain(name, text, "auto, or ports and ranges of ports of 1024 and more with commas between");
}

static HcclResult readDeterministic(bool *deterministic) {
    const char *text = getenv("HCCL_DETERMINISTIC");
    *deterministic = text != NULL && (strcasecmp(text, "true") == 0 || strcasecmp(text, "strict") == 0);
    if (text == NULL || text[0] == '\0' || *deterministic || strcasecmp(text, "false") == 0) {
        return HCCL_SUCCESS;
    }
    return complain("HCCL_DETERMINISTIC", text, "true, false or strict");
}

static HcclResult readAll(hcclEnv *env) {
    long buffer = BUFFER_DEFAULT_MB;
    long connect = CONNECT_DEFAULT_S;
    long exec = EXEC_DEFAULT_S;
    long base = -1;
    HcclResult all[] = {
        parseMode(getenv("HCCL_OP_EXPANSION_MODE"), emuSettingsGet()->soc, &env->mode),
        readDeterministic(&env->deterministic),
        readNumber("HCCL_BUFFSIZE", 1, INT32_MAX, &buffer),
        readNumber("HCCL_CONNECT_TIMEOUT", 1, CONNECT_MAX_S, &connect), /* CANN's least is 120 */
        readNumber("HCCL_EXEC_TIMEOUT", 0, INT32_MAX, &exec),
        readNumber("HCCL_IF_BASE_PORT", BASE_PORT_MIN, BASE_PORT_MAX, &base),
        readPorts("HCCL_HOST_SOCKET_PORT_RANGE", &env->hostPorts),
        readPorts("HCCL_NPU_SOCKET_PORT_RANGE", &env->npuPorts),
    };
    env->bufferBytes = (uint64_t)buffer * MB;
    env->connectMs = (int64_t)connect * 1000;
    env->execMs = (int64_t)exec * 1000;
    env->basePort = (int)base;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i] != HCCL_SUCCESS) {
            return all[i];
        }
    }
    return HCCL_SUCCESS;
}

static void readOnce(void) {
    outcome = readAll(&environment);
}

HcclResult envGet(const hcclEnv **env) {
    pthread_once(&once, readOnce);
    *env = &environment;
    return outcome == HCCL_SUCCESS ? outcome : hcclFail(outcome, "%s", complaint);
}
