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
        return self.copy_seconds / self.seconds if self.copy_seconds is not None else None


class Outcome(NamedTuple):
    """What an arm came to: on the rank that copied most."""

    series: Series
    rounds: list[Round]
    """Those that are shown, as far as they were made."""
    copies: line.Line | None
    """Through the copies of each capture, by its number."""
    seconds: line.Line | None


def outcomes(report: Report) -> list[Outcome]:
    """Return what each arm came to."""
    found = []
    for arm in ARMS:
        series = [one for one in report.series if one.arm == arm]
        if series:
            found.append(_outcome(max(series, key=_copies)))
    return found


def shown(rounds: int) -> tuple[int, ...]:
    """Return the numbers, from 1, of the rounds to show of so many: the first, the last and one between."""
    if rounds >= SHOWN[-1]:
        return SHOWN
    return tuple(sorted({1, (rounds + 1) // 2, rounds}))


def _outcome(series: Series) -> Outcome:
    good = [one for one in series.captures if one.outcome == "ok" and not one.ambiguous]
    numbers = sorted({one.round for one in good})
    wanted = {number - 1 for number in shown(len(numbers))}
    rounds = [_round(number, good) for number in numbers if number in wanted]
    counted = [
        (float(one.order), float(one.h2d_copies)) for one in good if one.h2d_copies is not None
    ]
    times = [(float(one.order), one.seconds) for one in good]
    return Outcome(series, rounds, line.fit(counted), line.fit(times))


def _round(number: int, captures: Iterable[Capture]) -> Round:
    own = [one for one in captures if one.round == number]
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
