"""From captures as they come to the values that time is judged by: one a round, relative to its control captures.

Each round holds every size once, so the sizes' unknown set-up times are the same in each. Dividing by controls, which
are captures without collectives made beside, takes out what the machine does to both.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from statistics import median
from typing import NamedTuple

from capture_canary.model import Capture

LEAST = 3
"""Captures of a unit: with fewer sizes it takes several rounds. As many, the first unit, are left out as warm-up."""
MAX_SECONDS = 1e6
"""A capture that took longer than that, eleven days, is a broken clock."""
MAX_DROPPED = 0.1
"""Share of captures that may be unusable before the rest says nothing."""


class Unit(NamedTuple):
    """A round (or a few) whose captures all counted."""

    at: float
    """Mean order of its captures."""
    seconds: float
    """Mean time of a capture, at the speed that the machine had in the first unit as its controls tell."""


class Units:
    """Puts captures of one series, added in order, into units."""

    def __init__(self, shapes: Collection[int], *, rounds: int = 1) -> None:
        """Expect each of these shapes once in every round; a unit takes this many rounds, or more."""
        self.units: list[Unit] = []
        self.used = 0
        """Captures in units."""
        self.shapes: defaultdict[int, list[Unit]] = defaultdict(list)
        """What the captures of each shape alone add to the units."""
        self.dropped = 0
        """Captures after warm-up that could not be used, or whose round could not."""
        self.paired: bool | None = None
        """Whether controls were made beside the captures; None before the first unit."""
        self.problem: str | None = None
        self._shapes = frozenset(shapes)
        self._rounds = max(rounds, math.ceil(LEAST / max(1, len(self._shapes))))
        self._open: dict[tuple[int, int], Capture] = {}
        self._number = 0
        self._begin = -math.inf
        self._order = 0
        self._speed = 1.0

    def add(self, capture: Capture) -> Unit | None:
        """Take the next capture; return the unit that it completes."""
        if capture.begin_ns < self._begin:
            self.problem = f"the clock went back at capture {capture.order}"
        if capture.order <= self._order:
            self.problem = f"capture {capture.order} came after capture {self._order}"
        self._begin, self._order = capture.begin_ns, capture.order
        number = capture.round // self._rounds
        if number != self._number:
            self._give_up(number)
        if number == 0 or self.problem:
            return None
        place = (capture.round, capture.shape)
        if not _usable(capture) or place in self._open or capture.shape not in self._shapes:
            self.dropped += 1
            return None
        self._open[place] = capture
        return self._complete() if len(self._open) == self._rounds * len(self._shapes) else None

    @property
    def flaw(self) -> str | None:
        """What keeps these units from being judged by; None where nothing does."""
        if self.problem:
            return self.problem
        if self.dropped > MAX_DROPPED * (self.used + self.dropped):
            return f"{self.dropped} of {self.used + self.dropped} captures could not be used"
        return None

    def _give_up(self, number: int) -> None:
        """Begin another unit; one that is not complete is lost."""
        if number < self._number:
            self.problem = f"round {number} came after round {self._number}"
        self.dropped += len(self._open)
        self._open.clear()
        self._number = number

    def _complete(self) -> Unit | None:
        captures = [*self._open.values()]
        self._open.clear()
        controls = [c.control_seconds for c in captures if c.control_seconds is not None]
        if self.paired is None:
            self.paired = len(controls) == len(captures)
        if self.paired and (len(controls) < len(captures) or not all(map(_sane, controls))):
            self.dropped += len(captures)
            return None
        control = median(controls) if self.paired else 1.0
        if not self.units:
            self._speed = control
        relative = self._speed / control
        unit = _mean(captures, relative)
        self.units.append(unit)
        self.used += len(captures)
        by_shape: defaultdict[int, list[Capture]] = defaultdict(list)
        for one in captures:
            by_shape[one.shape].append(one)
        for shape, own in by_shape.items():
            self.shapes[shape].append(_mean(own, relative))
        return unit


def _mean(captures: Sequence[Capture], relative: float) -> Unit:
    count = len(captures)
    return Unit(
        math.fsum([c.order for c in captures]) / count,
        math.fsum([c.seconds for c in captures]) / count * relative,
    )


def _usable(capture: Capture) -> bool:
    return capture.outcome == "ok" and not capture.ambiguous and _sane(capture.seconds)


def _sane(seconds: float) -> bool:
    return 1e-9 <= seconds <= MAX_SECONDS  # noqa: PLR2004 - no clock resolves less than a nanosecond
