/* The settings' insides: parsing, versions and how to end a process that was given nonsense. */
#ifndef EMU_SETTINGS_H
#define EMU_SETTINGS_H

#include "cann.h"
#include "emu.h"

#define EMU_MAX_CHIPS 64
#define EMU_MAX_HBM (1ULL << 40) /* of a chip */

typedef struct {
    long part[3];
    bool prerelease;
} emuVersion;

bool emuVersionParse(const char *text, emuVersion *version);
bool emuCannAtLeast(long major, long minor, long patch);
const char *emuSocName(void);

/* 0, or -1 with a message naming key and value in `error`. */
EMU_EXPORT int emuSettingsParse(const char *text, emuSettings *settings, char *error, size_t size);

/* Tell why on stderr and end the process. */
__attribute__((noreturn, format(printf, 1, 2))) void emuDie(const char *format, ...);

#endif
