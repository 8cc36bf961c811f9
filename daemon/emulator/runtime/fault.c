/* CAPTURE_CANARY_EMULATE_FAULT: calls that fail, hang, are slow or kill their process. */
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"

typedef enum { FAULT_FAIL, FAULT_HANG, FAULT_SLOW, FAULT_DIE } faultKind;

typedef struct {
    faultKind kind;
    char function[64];
    long number; /* the call that is hit, from 1; slow: milliseconds of every call */
    long code;
    long rank; /* -1: every rank */
    atomic_long calls;
} fault;

enum { MAX_FAULTS = 32 };
static fault faults[MAX_FAULTS];
static int faultCount;
static atomic_int processRank = -1;
static _Thread_local int threadRank = -1;

static bool number(const char *text, long low, long *value) {
    char *end;
    if (!isdigit((unsigned char)*text) || strlen(text) > 9) return false;
    *value = strtol(text, &end, 10);
    return *end == '\0' && *value >= low;
}

static bool isFunction(const char *text) {
    if (strlen(text) >= sizeof faults[0].function) return false;
    if (strncmp(text, "acl", 3) != 0 && strncmp(text, "Hccl", 4) != 0 && strncmp(text, "rt", 2) != 0) return false;
    while (isalnum((unsigned char)*text) || *text == '_') text++;
    return *text == '\0';
}

static bool parseFault(char *text, fault *to) {
    static const char *const kinds[] = {"fail", "hang", "slow", "die"};
    char *rank = strchr(text, '@'), *kind, *function, *count, *code;
    to->rank = -1;
    if (rank) *rank++ = '\0';
    if (rank && !number(rank, 0, &to->rank)) return false;
    kind = strsep(&text, ":");
    function = strsep(&text, ":");
    count = strsep(&text, ":");
    code = strsep(&text, ":");
    if (text || !function || !count || !isFunction(function)) return false;
    strcpy(to->function, function);
    for (int i = 0; i < 4; i++) {
        if (strcmp(kind, kinds[i]) != 0) continue;
        to->kind = (faultKind)i;
        if ((code != NULL) != (to->kind == FAULT_FAIL)) return false;
        if (code && !number(code, 1, &to->code)) return false;
        return number(count, 1, &to->number);
    }
    return false;
}

static void readEnvironment(void) {
    const char *text = getenv("CAPTURE_CANARY_EMULATE_FAULT"), *rank = getenv("RANK");
    char copy[2048], item[2048], *rest = copy, *next;
    long value;
    if (rank && number(rank, 0, &value) && atomic_load(&processRank) < 0) atomic_store(&processRank, (int)value);
    if (!text || !*text) return;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        emuDie("CAPTURE_CANARY_EMULATE_FAULT is longer than %zu characters", sizeof copy - 1);
    while ((next = strsep(&rest, ";")) != NULL) {
        if (!*next) continue;
        if (faultCount == MAX_FAULTS) emuDie("CAPTURE_CANARY_EMULATE_FAULT has more than %d faults", MAX_FAULTS);
        strcpy(item, next);
        if (!parseFault(next, &faults[faultCount++]))
            emuDie("CAPTURE_CANARY_EMULATE_FAULT: \"%s\" is not fail:FUNC:N:CODE, hang:FUNC:N, slow:FUNC:MS or die:FUNC:N "
                   "(FUNC a name of acl*, Hccl* or rt*), each with @RANK or without", item);
    }
}

EMU_EXPORT void emuRankSet(int rank) {
    threadRank = rank;
    atomic_store(&processRank, rank);
}

static void slow(long milliseconds) {
    struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0) {}
}

static int hit(fault *what) {
    long call = atomic_fetch_add(&what->calls, 1) + 1;
    if (what->kind == FAULT_SLOW) return slow(what->number), 0;
    if (call != what->number) return 0;
    if (what->kind == FAULT_FAIL) return (int)what->code;
    if (what->kind == FAULT_DIE) kill(getpid(), SIGKILL);
    for (;;) pause();
}

EMU_EXPORT int emuFault(const char *function) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int code = 0;
    pthread_once(&once, readEnvironment);
    for (int i = 0; i < faultCount; i++) {
        int rank = threadRank >= 0 ? threadRank : atomic_load(&processRank);
        if (strcmp(faults[i].function, function) != 0) continue;
        if (faults[i].rank >= 0 && faults[i].rank != rank) continue;
        int found = hit(&faults[i]); /* each counts every call, also one that another fails */
        if (code == 0) code = found;
    }
    return code;
}
