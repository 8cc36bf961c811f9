"""Evidence that values rise: one number that may be looked at after each value, and believed once it passes a bound."""

import math
from collections.abc import Iterable
from itertools import accumulate
from operator import add, getitem

from capture_canary.trend.ranks import SLOPES, made, payoffs

MAX_VALUES = 192
"""Values after which the evidence stands still: the test is truncated there."""


class Evidence:
    """Gathers evidence against "these values do not rise".

    `statistic` is the logarithm of a payoff that is 1 on average, at most, while they do not: it passes log(1/alpha)
    ever with a chance of alpha at most, however often it is looked at. With `steps`, values that jumped once, anywhere,
    do not count as rising either: the least payoff over all places of a jump is taken, with ranks only among values on
    the same side of it.
    """

    def __init__(self, *, slopes: tuple[float, ...] = SLOPES, steps: bool = True) -> None:
        """Begin without any evidence."""
        self.statistic = 0.0
        self._steps = steps
        self._latest_first: list[float] = []
        self._bets = [(payoffs(slope), [-math.log(len(slopes))]) for slope in slopes]
        """By slope: the payoffs by number of values, and by place of the jump, the latest first, what all bets paid."""

    def add(self, value: float) -> None:
        """Take the next value (finite); beyond `MAX_VALUES` it is ignored."""
        values, statistics = self._latest_first, []
        if len(values) >= MAX_VALUES:
            return
        # Of equal values, as a coarse clock makes, the later counts as lower.
        places = list(accumulate(map(value.__gt__, values), initial=0))
        first = 0 if self._steps else len(values)
        for table, logs in self._bets:
            if (
                self._steps and values
            ):  # a jump right before this value: what was betted so far is what it pays
                logs.insert(0, logs[-1])
            if len(table) <= len(values):
                table.append(made(len(values) + 1, table.slope))
            logs[:] = map(add, logs, map(getitem, table[first:], places[first:]))
            statistics.append(logs)
        values.insert(0, value)
        self.statistic = min(map(max, *statistics, statistics[0]))

    def extend(self, values: Iterable[float]) -> None:
        """Take several values."""
        for value in values:
            self.add(value)
