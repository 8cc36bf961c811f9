"""Does the installed CANN go with the driver? The vendor's own table, and nothing guessed."""

import re

# CANN line -> oldest driver (Ascend HDK) it goes with, from "CANN and Ascend HDK Version
# Compatibility" in the release notes of CANN 8.5.0 and 9.2.0. All newer drivers listed go with it.
_OLDEST_DRIVER = {(8, 5): (25, 0), (9, 0): (25, 0), (9, 1): (25, 2), (9, 2): (25, 3)}
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")


def line(version: str | None) -> tuple[int, int] | None:
    """Major and minor of a version string, as far as it has them."""
    found = _VERSION.match(version or "")
    return (int(found[1]), int(found[2])) if found else None


def compatible(cann: str | None, driver: str | None) -> tuple[bool | None, str]:
    """Whether they match, or None where the table doesn't say; and a sentence."""
    cann_line, driver_line = line(cann), line(driver)
    if cann_line is None or driver_line is None:
        missing = "CANN's" if cann_line is None else "the driver's"
        return None, f"{missing} version is not known: not checked"
    oldest = _OLDEST_DRIVER.get(cann_line)
    if oldest is None:
        return None, f"the table has no CANN {cann_line[0]}.{cann_line[1]}: not checked"
    needs = f"CANN {cann} needs driver {oldest[0]}.{oldest[1]} or newer"
    return driver_line >= oldest, f"{needs}; installed is {driver}"
