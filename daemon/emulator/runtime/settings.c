/* CAPTURE_CANARY_EMULATE: what machine and what CANN are emulated. */
#include "settings.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void emuDie(const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "capture-canary: emulated CANN: %s\n", text);
    fflush(stderr);
    _exit(2);
}

/* At most five digits. */
static bool skipNumber(const char **text, long *value) {
    const char *begin = *text;
    *value = 0;
    for (; isdigit((unsigned char)**text); (*text)++) {
        if (*text - begin == 5) return false;
        *value = *value * 10 + (**text - '0');
    }
    return *text > begin;
}

/* X.Y[.Z] and up to three [.-]alpha|beta|rc[.]N; 8.3.RC2 and 9.1.0-beta.1 are both of this shape. */
bool emuVersionParse(const char *text, emuVersion *version) {
    memset(version, 0, sizeof *version);
    if (!skipNumber(&text, &version->part[0]) || *text++ != '.' || !skipNumber(&text, &version->part[1])) return false;
    if (*text == '.' && isdigit((unsigned char)text[1])) {
        text++;
        if (!skipNumber(&text, &version->part[2])) return false;
    }
    for (int stages = 0; *text; stages++) {
        static const char *const words[] = {"alpha", "beta", "rc"};
        size_t length = 0;
        long number;
        if (*text == '.' || *text == '-') text++;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncasecmp(text, words[i], strlen(words[i])) == 0) length = strlen(words[i]);
        if (length == 0 || stages == 3) return false;
        text += length;
        if (*text == '.' && isdigit((unsigned char)text[1])) text++;
        if (isdigit((unsigned char)*text) && !skipNumber(&text, &number)) return false;
        version->prerelease = true;
    }
    return true;
}

static int versionCompare(const emuVersion *version, long major, long minor, long patch) {
    const long wanted[] = {major, minor, patch};
    for (int i = 0; i < 3; i++)
        if (version->part[i] != wanted[i]) return version->part[i] < wanted[i] ? -1 : 1;
    return version->prerelease ? -1 : 0;
}

bool emuCannAtLeast(long major, long minor, long patch) {
    emuVersion version;
    return emuVersionParse(emuSettingsGet()->cann, &version) && versionCompare(&version, major, minor, patch) >= 0;
}

static bool parseCount(const char *text, long low, long high, int *value) {
    long number;
    if (!skipNumber(&text, &number) || *text || number < low || number > high) return false;
    *value = (int)number;
    return true;
}

static bool parseBytes(const char *text, uint64_t *value) {
    static const struct { const char *name; int shift; } units[] = {
        {"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    if (strspn(text, "0123456789") > 18) return false;
    unsigned long long number = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        if (number > (EMU_MAX_HBM >> units[i].shift)) return false;
        *value = number << units[i].shift;
        return *value >= 1 << 20;
    }
    return false;
}

static bool parseVersion(const char *text, char *to, size_t size) {
    emuVersion version;
    if (strlen(text) >= size || !emuVersionParse(text, &version) || version.part[0] < 8) return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

static bool parseHcomm(const char *text, emuSettings *settings) {
    emuVersion version;
    if (strcmp(text, "9.1.0-pr2405") == 0) {
        memcpy(settings->hcomm, text, strlen(text) + 1);
        settings->growth = EMU_PR2405;
        return true;
    }
    if (!parseVersion(text, settings->hcomm, sizeof settings->hcomm) || !emuVersionParse(text, &version)) return false;
    settings->growth = versionCompare(&version, 9, 1, 0) < 0 ? EMU_GROWS : EMU_FIXED;
    return true;
}

static bool parseSoc(const char *text, emuSoc *soc) {
    static const char *const names[] = {[EMU_SOC_A2] = "a2", [EMU_SOC_A3] = "a3", [EMU_SOC_950] = "950"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) return *soc = (emuSoc)i, true;
    return false;
}

enum { KEY_CANN, KEY_HCOMM, KEY_SOC, KEY_NPUS, KEY_HBM, KEY_PEERS, KEY_SCRATCH, KEY_ROCE, KEYS };

static bool parseValue(int key, const char *value, emuSettings *settings) {
    switch (key) {
        case KEY_CANN: return parseVersion(value, settings->cann, sizeof settings->cann);
        case KEY_HCOMM: return parseHcomm(value, settings);
        case KEY_SOC: return parseSoc(value, &settings->soc);
        case KEY_NPUS: return parseCount(value, 0, EMU_MAX_CHIPS, &settings->npus);
        case KEY_HBM: return parseBytes(value, &settings->hbm);
        case KEY_PEERS: return parseCount(value, 0, 1023, &settings->peers);
        case KEY_SCRATCH: return parseCount(value, 0, 1, &settings->scratch);
        default: return parseCount(value, 0, 1, &settings->roce);
    }
}

int emuSettingsParse(const char *text, emuSettings *settings, char *error, size_t size) {
    static const struct { const char *name, *wanted; } keys[KEYS] = {
        [KEY_CANN] = {"cann", "a version from 8.0 on, e.g. 8.5.0 or 9.1.0-beta.1"},
        [KEY_HCOMM] = {"hcomm", "a version from 8.0 on, or 9.1.0-pr2405"},
        [KEY_SOC] = {"soc", "a2, a3 or 950"},
        [KEY_NPUS] = {"npus", "0 to 64"},
        [KEY_HBM] = {"hbm", "a size from 1MiB to 1TiB, e.g. 64GiB"},
        [KEY_PEERS] = {"peers", "0 to 1023"},
        [KEY_SCRATCH] = {"scratch", "0 or 1"},
        [KEY_ROCE] = {"roce", "0 or 1"}};
    char copy[1024], *rest = copy, *item;
    bool seen[KEYS] = {false};
    *settings = (emuSettings){.cann = "8.5.0", .soc = EMU_SOC_A3, .hbm = 64ULL << 30, .peers = -1, .scratch = -1};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return snprintf(error, size, "longer than %zu characters", sizeof copy - 1), -1;
    while (*copy && (item = strsep(&rest, ",")) != NULL) {
        char *value = strchr(item, '=');
        int key = 0;
        if (value) *value++ = '\0';
        while (key < KEYS && strcmp(item, keys[key].name) != 0) key++;
        if (key == KEYS || !value) {
            snprintf(error, size, "\"%s\" is not one of cann, hcomm, soc, npus, hbm, peers, scratch, roce followed by =",
                     item);
            return -1;
        }
        if (seen[key]) return snprintf(error, size, "%s is given twice", item), -1;
        seen[key] = true;
        if (!parseValue(key, value, settings))
            return snprintf(error, size, "%s=%s is not %s", item, value, keys[key].wanted), -1;
    }
    if (!seen[KEY_HCOMM]) parseHcomm(settings->cann, settings);
    if (!seen[KEY_NPUS]) settings->npus = settings->soc == EMU_SOC_A3 ? 16 : 8;
    return 0;
}

static emuSettings theSettings;

static void readEnvironment(void) {
    const char *text = getenv("CAPTURE_CANARY_EMULATE");
    char error[512];
    if (emuSettingsParse(text ? text : "", &theSettings, error, sizeof error) != 0)
        emuDie("CAPTURE_CANARY_EMULATE: %s", error);
}

const emuSettings *emuSettingsGet(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, readEnvironment);
    return &theSettings;
}

const char *emuSocName(void) {
    static const char *const names[] = {
        [EMU_SOC_A2] = "Ascend910B1", [EMU_SOC_A3] = "Ascend910_9391", [EMU_SOC_950] = "Ascend950PR_9599"};
    return names[emuSettingsGet()->soc];
}
