"""Whether a stack has the fault, by what is known of its parts before anything is measured.

The fault sits in hcomm's AICPU path. A3 takes that path by default, A2 only where AI_CPU is set (then for AllGather and
AlltoAll), 310P and the training series never; the 950 runs other code that nobody analysed. hcomm 9.1.0 is free of it,
its pre-releases are not; of hcomm before 8.5 no source is public.
"""

import re
from typing import Literal, NamedTuple

from capture_canary.stack import versions

Family = Literal["a2", "a3", "950", "310p", "910a"]

FIXED = versions.Version(9, 1, 0, (versions.RELEASE,))
"""The first hcomm with both fixes, PR 2405 and PR 2502."""

AICPU_MODES = frozenset({"AI_CPU", "AICPU_CacheDisable", "AICPU_TS"})
"""Expansion modes that unfold collectives on the device's AICPU."""
DEFAULT_MODES: dict[Family, str | None] = {
    "a2": "HOST",
    "a3": "AI_CPU",
    "950": "AICPU_TS",
    "310p": "HOST",
    "910a": None,
}
_UNSUPPORTED_KEEPS_DEFAULT: dict[Family, frozenset[str]] = {
    "a2": frozenset({"HOST", "HOST_TS", "AI_CPU", "AIV"}),
    "a3": frozenset({"HOST", "AI_CPU", "AICPU_CacheDisable", "AIV"}),
    "310p": frozenset({"HOST", "AI_CPU"}),
}
"""Modes that a family knows; HCCL warns of another family's mode and keeps the default."""

_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = (
    (
        re.compile(
            r"(ascend[ _]?)?910_93[0-9a-z]*|(ascend[ _]?)?910c|(atlas .{0,16})?a3", re.ASCII
        ),
        "a3",
    ),
    (re.compile(r"(ascend)?910b[0-9][0-9a-z-]*|a2", re.ASCII), "a2"),
    (re.compile(r"ascend(950|910_95)[0-9a-z_-]*|950(pr|dt)?|a5", re.ASCII), "950"),
    (re.compile(r"(ascend)?310p[0-9a-z]*", re.ASCII), "310p"),
    # Without a digit after it, 910B is a part of the first, training series.
    (re.compile(r"ascend910(a|b|proa|prob|premiuma)", re.ASCII), "910a"),
)


class Exposure(NamedTuple):
    """Whether the stack has the fault (None: not known), and why one thinks so."""

    exposed: bool | None
    reason: str


def family(soc: str | None) -> Family | None:
    """Return the family of a SoC by its name (`aclrtGetSocName`, npu-smi or an image's tag)."""
    if soc is None or len(soc) > versions.MAX_LENGTH:
        return None
    name = soc.strip().lower()
    return next((found for pattern, found in _FAMILIES if pattern.fullmatch(name)), None)


def default_mode(soc: str | None) -> str | None:
    """Return the expansion mode that HCCL takes where none is set; None where that is not known."""
    found = family(soc)
    return None if found is None else DEFAULT_MODES[found]


def effective_mode(mode: str | None, soc: str | None) -> str | None:
    """Return the mode in force where this one is set (None: none is); None where that is not known."""
    found = family(soc)
    if mode and (found is None or mode in _UNSUPPORTED_KEEPS_DEFAULT.get(found, {mode})):
        return mode
    return default_mode(soc)


def mitigates(mode: str | None) -> bool:
    """Whether a mode, in force, keeps collectives off the AICPU."""
    return bool(mode) and mode not in AICPU_MODES


def exposure(*, soc: str | None, hcomm: str | None, mode: str | None) -> Exposure:
    """Return whether captures would get slower in the SoC's default mode, or in the mode set."""
    by_soc = _by_soc(soc, mode)
    if not by_soc.exposed:
        return by_soc
    by_version = _by_version(hcomm)
    if not by_version.exposed:
        return by_version
    return Exposure(True, f"{by_version.reason}, and {by_soc.reason}")


def _by_soc(soc: str | None, mode: str | None) -> Exposure:
    found = family(soc)
    if found is None:
        return Exposure(None, f"the SoC is not known ({soc or 'no name found'})")
    if found == "950":
        return Exposure(None, "the 950 runs other code, which was not analysed")
    if found == "a3":
        return Exposure(True, "A3 unfolds collectives on the AICPU by default")
    if found == "a2" and effective_mode(mode, soc) in AICPU_MODES:
        return Exposure(True, "AI_CPU is set, which on A2 covers AllGather and AlltoAll")
    return Exposure(False, f"{found.upper()} does not unfold collectives on the AICPU by default")


def _by_version(hcomm: str | None) -> Exposure:
    version = versions.parse(hcomm)
    if version is None:
        return Exposure(None, f"hcomm's version is not known ({hcomm or 'none found'})")
    if version >= FIXED:
        return Exposure(False, f"hcomm {hcomm} has the fix")
    if (version.major, version.minor) < (8, 5):
        return Exposure(None, f"hcomm {hcomm} is older than what was analysed")
    return Exposure(True, f"hcomm {hcomm} lacks the fix of 9.1.0")
