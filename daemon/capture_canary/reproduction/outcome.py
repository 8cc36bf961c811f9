"""The full reproduction, as those who found the fault described it: what it captures, and what its captures come to."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from capture_canary.model import ArmName, Capture, Report, Series
from capture_canary.trend import line

T = TypeVar("T", int, float)

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 96)
ROUNDS = 100
SHOWN = (1, 45, 100)
"""Rounds that are put side by side."""
ARMS: tuple[ArmName, ...] = ("as_configured", "aiv")


class Round(NamedTuple):
    """What the captures of one round cost together, on one rank."""

    number: int
    captures: int
    seconds: float
    copies: int | None
    copy_seconds: float | None

    @property
    def share(self) -> float | None:
        """Share of capture time that was spent in H2D copies."""
        if self.copy_seconds is None or self.seconds <= 0:
            return None
        return self.copy_seconds / self.seconds


class Outcome(NamedTuple):
    """What an arm came to: on the rank that copied most."""

    series: Series
    rounds: list[Round]
    """All that were made."""
    shown: list[Round]
    """Those that are put side by side."""
    copies: line.Line | None
    """Through the copies of each capture, by its number."""
    seconds: line.Line | None


class Compared(NamedTuple):
    """The same in another image."""

    image: str
    report: Report | None
    failure: str | None
    """Why there is no report."""


def outcomes(report: Report) -> list[Outcome]:
    """Return what each arm came to."""
    of_arms = ([one for one in report.series if one.arm == arm] for arm in ARMS)
    return [found for series in of_arms if (found := of_series(series))]


def of_series(series: Sequence[Series]) -> Outcome | None:
    """Return what the ranks of one arm came to; None where nothing was captured."""
    return _outcome(max(series, key=_copies)) if series else None


def shown(rounds: int) -> tuple[int, ...]:
    """Return the numbers, from 1, of the rounds to show of so many: the first, the last and one between."""
    if rounds >= SHOWN[-1]:
        return SHOWN
    return tuple(sorted({1, (rounds + 1) // 2, rounds}))


def _outcome(series: Series) -> Outcome:
    good = [one for one in series.captures if one.outcome == "ok" and not one.ambiguous]
    rounds = _rounds(good)
    wanted = set(shown(len(rounds)))
    counted = [
        (float(one.order), float(one.h2d_copies)) for one in good if one.h2d_copies is not None
    ]
    times = [(float(one.order), one.seconds) for one in good]
    beside = [one for one in rounds if one.number in wanted]
    return Outcome(series, rounds, beside, line.fit(counted), line.fit(times))


def _rounds(captures: Iterable[Capture]) -> list[Round]:
    found: dict[int, list[Capture]] = {}
    for one in captures:
        found.setdefault(one.round, []).append(one)
    return [_round(number, own) for number, own in sorted(found.items())]


def _round(number: int, own: Sequence[Capture]) -> Round:
    return Round(
        number=number + 1,
        captures=len(own),
        seconds=sum(one.seconds for one in own),
        copies=_sum([one.h2d_copies for one in own]),
        copy_seconds=_sum([one.copy_seconds for one in own]),
    )


def _sum(values: Sequence[T | None]) -> T | None:
    """Return the sum; None where a value is not known."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None


def _copies(series: Series) -> int:
    return sum(capture.h2d_copies or 0 for capture in series.captures)
