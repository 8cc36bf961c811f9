"""The lines that vLLM and vllm-ascend print about captures: bars, finish lines, exhausted streams.

A bar and the next record often share a line, several `(Process pid=n)` may stand before a record,
and copied logs hold escapes and mojibake: so a line is searched, never matched as a whole.
"""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_BAR_HEAD = re.compile(r"Capturing (?:[a-z]{1,16} )?(?:CUDA|ACL) (?:graphs|graph shapes)\b")
_BAR = re.compile(
    r"Capturing (?:[a-z]{1,16} )?(?:CUDA|ACL) (?:graphs|graph shapes)\s{0,4}"
    r"(?:\((?P<what>[^(),]{1,40}?)(?:,\s{0,4}(?P<mode>[A-Z_]{1,40}))?\))?:\s{0,4}"
    r"\d{1,3}%\s{0,4}\|[^|]{0,600}\|\s{0,4}(?P<done>\d{1,6})/(?P<total>\d{1,6})\s{0,4}"
    r"\[(?P<elapsed>[\d:]{1,12})<[\d:?]{1,12},\s{0,4}[\d.?]{1,12}\s{0,4}(?:s/it|it/s)\]"
)
_FINISH = re.compile(
    r"Graph capturing finished in (?P<secs>\d{1,6}) secs(?:, took (?P<gib>-?\d{1,6}(?:\.\d{1,6})?) GiB)?"
)
_PROCESS = re.compile(r"\(([\w.-]{1,40}) pid=(\d{1,10})\)")
_STREAMS = re.compile(
    r"\b207008\b|Insufficient_Stream_Resources|Stream resources are insufficient"
    r"|stream-resource exhaustion signature|insufficient available streams"
)
_OLD_STREAMS = re.compile(r"Alloc sq cq fail|retCode=0x7020023", re.IGNORECASE)
HINTS = ("apturing", "tream", "207008", "sq cq", "0x7020023")
"""One of them is in every line of interest; most lines have none, and a follower may drop those unread."""

Mode = Literal["FULL", "PIECEWISE"]


class Bar(Struct, frozen=True):
    """One state of a progress bar."""

    what: str
    """"decode", "mixed prefill-decode" or nothing."""
    mode: str
    done: int
    total: int
    elapsed: int
    """Seconds since the bar began, whole ones."""


class BrokenBar(Struct, frozen=True):
    """A bar that another record cut in two."""


class Finish(Struct, frozen=True):
    """`Graph capturing finished`."""

    seconds: int
    gib: float | None
    process: str | None
    pid: int | None


class Exhaustion(Struct, frozen=True):
    """A capture failed because the NPU has no stream left."""

    code: int
    """207008 as CANN says it; 207005 is how old drivers do."""


Event = Bar | BrokenBar | Finish | Exhaustion


def events(text: str) -> Iterator[Event]:
    """What a piece of a log says, in its order for each kind."""
    if not any(hint in text for hint in HINTS):
        return
    text = _ANSI.sub("", text)
    heads = sum(1 for _ in _BAR_HEAD.finditer(text))
    for match in _BAR.finditer(text):
        bar = _bar(match)
        if bar is not None:
            heads -= 1
            yield bar
    for _ in range(heads):
        yield BrokenBar()
    for match in _FINISH.finditer(text):
        yield _finish(text, match)
    if _STREAMS.search(text):
        yield Exhaustion(207008)
    elif _OLD_STREAMS.search(text):
        yield Exhaustion(207005)


def _bar(match: re.Match[str]) -> Bar | None:
    elapsed = _seconds(match["elapsed"])
    done, total = int(match["done"]), int(match["total"])
    if elapsed is None or done > total:
        return None
    what, mode = match["what"] or "", match["mode"] or ""
    if not mode and what.isupper():  # model runner V2: the mode alone
        what, mode = "", what
    return Bar(what, mode, done, total, elapsed)


def _seconds(clock: str) -> int | None:
    """MM:SS or H:MM:SS, in seconds."""
    parts = clock.split(":")
    if not 2 <= len(parts) <= 3 or not all(parts):  # noqa: PLR2004 - the two forms
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return total


def _finish(text: str, match: re.Match[str]) -> Finish:
    """The last `(Process pid=n)` before the record is the one that wrote it."""
    before = list(_PROCESS.finditer(text, max(0, match.start() - 400), match.start()))
    process = before[-1] if before else None
    return Finish(
        seconds=int(match["secs"]),
        gib=float(match["gib"]) if match["gib"] is not None else None,
        process=process[1] if process else None,
        pid=int(process[2]) if process else None,
    )
