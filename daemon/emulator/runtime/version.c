/* What the emulated CANN says of its version. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

static const char *versionOf(const char *package) {
    static const char *const ours[] = {"hcomm", "hccl"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcasecmp(package, ours[i]) == 0) return emuSettingsGet()->hcomm;
    return emuSettingsGet()->cann;
}

/* major * 10^7 + minor * 10^5 + patch * 10^3, less 300 for alpha, 200 for beta, 100 for rc, plus that one's number. */
static int32_t versionNumber(const char *text) {
    static const struct { const char *word; int weight; } kinds[] = {{"alpha", 300}, {"beta", 200}, {"rc", 100}};
    emuVersion version;
    if (!emuVersionParse(text, &version)) return -1;
    int32_t number = (int32_t)(version.part[0] * 10000000 + version.part[1] * 100000 + version.part[2] * 1000);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *found = strcasestr(text, kinds[i].word);
        if (!found) continue;
        found += strlen(kinds[i].word);
        return number - kinds[i].weight + atoi(*found == '.' ? found + 1 : found);
    }
    return number;
}

EMU_EXPORT int emuVersionString(const char *package, char *text) {
    if (!package || !text) return ACL_ERROR_INVALID_PARAM;
    snprintf(text, 128, "%s", versionOf(package));
    return 0;
}

EMU_EXPORT int emuVersionNumber(const char *package, int32_t *number) {
    if (!package || !number) return ACL_ERROR_INVALID_PARAM;
    *number = versionNumber(versionOf(package));
    return *number < 0 ? ACL_ERROR_INTERNAL_ERROR : 0;
}

EMU_EXPORT int emuCannVersion(int package, aclCANNPackageVersion *version) {
    static const char *const names[] = {"cann", "runtime", "compiler", "hccl", "toolkit", "opp", "opp_kernel", "driver"};
    emuVersion parsed;
    if (!version || package < 0 || package >= (int)(sizeof names / sizeof *names)) return ACL_ERROR_INVALID_PARAM;
    memset(version, 0, sizeof *version);
    snprintf(version->version, sizeof version->version, "%s", versionOf(names[package]));
    if (!emuVersionParse(version->version, &parsed)) return ACL_ERROR_INTERNAL_ERROR;
    snprintf(version->majorVersion, sizeof version->majorVersion, "%ld", parsed.part[0]);
    snprintf(version->minorVersion, sizeof version->minorVersion, "%ld", parsed.part[1]);
    snprintf(version->releaseVersion, sizeof version->releaseVersion, "%ld", parsed.part[2]);
    return 0;
}
