"""CANN's versions in the vendor's order: alpha < beta < rc < release, in the spellings seen in the wild.

`8.3.RC2`, `8.3.rc2`, `8.2.RC1.alpha003`, `8.5.0.alpha002`, `9.1.0-beta.1`, `9.1.0.beta.1`, `9.1.0beta1`. What has
another form (inner versions such as `V100R001C23SPC002B210`, builds with a date) has no place in the order: an
unknown version is not an old one.
"""

import re
from typing import NamedTuple

MAX_LENGTH = 64
_NUMBER = r"[0-9]{1,6}"
_STAGE = rf"[-.]?(alpha|beta|rc|pr)[-.]?({_NUMBER})?"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})(?:\.({_NUMBER}))?((?:{_STAGE}){{0,3}})", re.IGNORECASE | re.ASCII
)
_STAGES = re.compile(_STAGE, re.IGNORECASE | re.ASCII)
_RANKS = {"alpha": 0, "beta": 1, "pr": 2, "rc": 3}
"""`pr` marks a build of hcomm's main line between the betas and the release: an emulated 9.1.0-pr2405 is one."""
RELEASE = (4, 0)


class Version(NamedTuple):
    """A version that has a place in the vendor's order."""

    major: int
    minor: int
    patch: int
    stages: tuple[tuple[int, int], ...]
    """What precedes the release, outermost first, closed by the release itself, which comes after all of it."""


def parse(text: str | None) -> Version | None:
    """Return the version that a text spells; None where it spells none that is known to have an order."""
    if text is None or len(text) > MAX_LENGTH:
        return None
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    stages = [
        (_RANKS[stage.lower()], int(number or 0))
        for stage, number in _STAGES.findall(match.group(4))
    ]
    major, minor, patch = (int(number or 0) for number in match.group(1, 2, 3))
    return Version(major, minor, patch, (*stages, RELEASE))


def at_least(text: str | None, wanted: Version) -> bool | None:
    """Whether a version is the wanted one or a later; None where its text has no place in the order."""
    version = parse(text)
    return None if version is None else version >= wanted
