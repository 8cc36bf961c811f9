/* CAPTURE_CANARY_EMULATE: any text is parsed into settings within their bounds, or refused with a message. */
#include "../../../daemon/emulator/runtime/settings.c"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = textOf(data, size), error[512] = "";
    emuSettings s;
    emuVersion version;
    if (emuSettingsParse(text, &s, error, sizeof error) == 0) {
        CHECK(s.npus >= 0 && s.npus <= EMU_MAX_CHIPS && s.hbm >= 1 << 20 && s.hbm <= EMU_MAX_HBM);
        CHECK(s.peers >= -1 && s.peers <= 1023 && s.scratch >= -1 && s.scratch <= 1 && s.roce >= 0 && s.roce <= 1);
        CHECK(emuVersionParse(s.cann, &version) && memchr(s.hcomm, '\0', sizeof s.hcomm));
    } else {
        CHECK(error[0] != '\0' && memchr(error, '\0', sizeof error));
    }
    free(text);
    return 0;
}
