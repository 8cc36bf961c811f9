"""A probe's result in the 4096 bytes that a kubelet keeps of what a container said when it ended."""

from typing import Final

import msgspec

from capture_canary.kubernetes.exchange import Result
from capture_canary.model import Fact, Growth, Report

MAX_MESSAGE: Final = 4096
_MAX_REASON = 600
_MAX_FACT = 60
_MAX_FACTS = 16


def packed(report: Report, *, took: float, devices: int) -> bytes:
    """Return the result as JSON: without series, and shorter step by step until it fits."""
    whole = _without_series(report)
    for one in (whole, _short(whole)):
        made = msgspec.json.encode(Result(took=round(took, 3), devices=devices, report=one))
        if len(made) <= MAX_MESSAGE:
            return made
    raise AssertionError("the shortest form has no part of any length")


def _without_series(report: Report) -> Report:
    """An index of a series means nothing without them."""
    growth: Growth = msgspec.structs.replace(report.growth, series=None)
    return msgspec.structs.replace(report, series=[], growth=growth)


def _short(report: Report) -> Report:
    """In plain characters, a byte each, and without what only explains."""
    stack = {
        _plain(name, 20): Fact(value=_plain(fact.value, _MAX_FACT), source=_plain(fact.source, 20))
        for name, fact in list(report.stack.items())[:_MAX_FACTS]
        if fact.value
    }
    return msgspec.structs.replace(
        report,
        stack=stack,
        reason=_plain(report.reason, _MAX_REASON),
        mode=report.mode and _plain(report.mode, _MAX_FACT),
        mode_source=_plain(report.mode_source, _MAX_FACT),
        time=None,
    )


def _plain(text: str, most: int) -> str:
    return "".join(one if " " <= one <= "~" and one not in '"\\' else "?" for one in text[:most])
