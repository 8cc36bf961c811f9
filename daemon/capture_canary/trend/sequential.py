"""Evidence that values rise: one number that may be looked at after each value, and believed once it passes a bound."""

import math
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import accumulate
from operator import add, getitem

from capture_canary.trend.ranks import SLOPES, payoffs

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
        self._steps = steps
        self._count = 0
        self._bets = [(payoffs(slope), [-math.log(len(slopes))]) for slope in slopes]
        """By slope: the payoffs by number of values, and by place of the jump, the latest first, what all bets paid."""
        self._longest = max(table.longest for table, _logs in self._bets)
        self._latest: list[float] = []
        """The values that a bet may still look at, the latest first."""
        self._weakest = 0
        """The place of a jump that had paid least when that was last looked for."""

    def add(self, value: float) -> None:
        """Take the next value (finite); beyond `MAX_VALUES` it is ignored."""
        if self._count >= MAX_VALUES:
            return
        # Of equal values, as a coarse clock makes, the later counts as lower.
        places = list(accumulate(map(value.__gt__, self._latest), initial=0))
        for table, logs in self._bets:
            table.reach(len(places))
            if self._steps:
                if self._count:
                    # A jump right before this value: what was betted so far is what it pays.
                    logs.insert(0, logs[-1])
                paid = list(map(add, logs, map(getitem, table, places)))
                logs[: len(paid)] = paid
            elif self._count < len(table):
                logs[0] += table[self._count][places[-1]]
        self._weakest += self._steps and self._count > 0
        self._count += 1
        self._latest.insert(0, value)
        del self._latest[self._longest - 1 :]

    def extend(self, values: Iterable[float]) -> None:
        """Take several values."""
        for value in values:
            self.add(value)

    @property
    def statistic(self) -> float:
        """The logarithm of the payoff."""
        best = reduce(_greater, (logs for _table, logs in self._bets))
        # All bets together are worth the best one at least, and that many times as much at most.
        least = min(best) + math.log(len(self._bets))
        paid = {place: self._paid(place) for place, one in enumerate(best) if one <= least}
        self._weakest = min(paid, key=paid.__getitem__)
        return paid[self._weakest]

    def passes(self, bound: float) -> bool:
        """Whether the statistic is at the bound or above: one place that paid less tells that it is not."""
        for place in self._doubtful():
            if self._paid(place) < bound:
                self._weakest = place
                return False
        return self.statistic >= bound

    def _doubtful(self) -> Iterator[int]:
        yield self._weakest
        for _table, logs in self._bets:
            yield logs.index(min(logs))

    def _paid(self, place: int) -> float:
        """Return the logarithm of what all bets together paid, were the jump there."""
        each = [logs[place] for _table, logs in self._bets]
        best = max(each)
        return best + math.log(math.fsum(math.exp(one - best) for one in each))


def _greater(one: list[float], other: list[float]) -> list[float]:
    """Return the greater of each pair; a third of the time that `map(max, …)` takes."""
    return [a if a > b else b for a, b in zip(one, other, strict=True)]  # noqa: FURB136 - see above
