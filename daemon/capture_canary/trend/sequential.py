"""Evidence that values rise: one number that may be looked at after each value, and believed once it has a bound."""

import math
from collections.abc import Iterable
from itertools import accumulate
from operator import getitem, mul

from capture_canary.trend.ranks import SLOPES, payoffs

MAX_VALUES = 192
"""Values after which the evidence stands still: the test is truncated there."""
HIGHEST = (1, 2, 4, 8, 16)
"""How many of the highest places may be taken to pay too much: any number is fair, the best of all hardly better."""
LOST, MOST = 5e-324, 1e100
"""What is left where floating point has nothing left; and the most to stake, less than it takes for infinite."""


class Evidence:
    """Gathers evidence against "these values do not rise".

    `statistic` is the logarithm of what bets paid, which is 1 on average, at most, while values do not rise: it reaches
    the bound ever with a chance of exp(-bound) at most, however often it is looked at. With `steps`, values that jumped
    once, anywhere, do not count as rising either: the least over all places of a jump is taken, with ranks only among
    values on the same side of it. Without, what a bet would pay beyond the bound is staked before.
    """

    def __init__(
        self, bound: float, *, slopes: tuple[float, ...] = SLOPES, steps: bool = True
    ) -> None:
        """Begin without any evidence; once it has reached `bound` it stands still."""
        self._bound, self._enough = bound, math.exp(bound)
        self._steps = steps
        self._count = 0
        self._share = 1 / len(slopes)
        self._bets = [(payoffs(slope), [self._share]) for slope in slopes]
        """By slope: the payoffs by number of values, and by place of the jump, the latest first, what was paid."""
        self._longest = max(table.longest for table, _paid in self._bets)
        self._latest: list[float] = []
        """The values that a bet may still look at, the latest first."""
        self._weakest = 0
        """A place of a jump that had paid little when that was last looked for."""

    def add(self, value: float) -> None:
        """Take the next value (finite); beyond `MAX_VALUES` it is ignored."""
        if self._count >= MAX_VALUES or self.sufficient:
            return
        if self._steps and self._count:
            # A jump right before this value: what was paid so far is what it pays.
            for _table, paid in self._bets:
                paid.insert(0, paid[-1])
            self._weakest += 1
        self._count += 1
        for table, _paid in self._bets:
            table.reach(self._count)
        if not self._steps:
            self._stake()
        # Of equal values, as a coarse clock makes, the later counts as lower.
        places = list(accumulate([value > one for one in self._latest], initial=0))
        begin = 0 if self._steps else self._count - 1
        for table, paid in self._bets:
            now = list(map(mul, paid, map(getitem, table[begin:], places[begin:])))
            paid[: len(now)] = now
        self._latest.insert(0, value)
        del self._latest[self._longest - 1 :]

    def extend(self, values: Iterable[float]) -> None:
        """Take several values."""
        for value in values:
            self.add(value)

    @property
    def statistic(self) -> float:
        """The logarithm of what was paid; the bound at most."""
        return min(self._bound, math.log(max(self._least(), LOST)))

    @property
    def sufficient(self) -> bool:
        """Whether the statistic is at the bound: mostly one place that paid less tells that it is not."""
        if self._paid(self._weakest) >= self._enough:
            _table, most = max(self._bets, key=lambda bet: bet[1][self._weakest])
            self._weakest = most.index(min(most))
        return self._paid(self._weakest) >= self._enough and self._least() >= self._enough

    def _stake(self) -> None:
        """Stake what the next bet would pay beyond what is enough.

        If the highest places pay no more than that, all pay less than 1 on average. As much is staked on the others as
        makes it 1 again. With the guard that saves a capture in 100, and would take long for every place of a jump.
        """
        count, stake = self._count, 0.0
        for highest in (few for few in HIGHEST if few < count):
            others = [table.lowest(count, count - highest) for table, _paid in self._bets]
            pays = sum(
                paid[0] * (count - rest) for (_, paid), rest in zip(self._bets, others, strict=True)
            )
            more = (pays - highest * self._enough) / (self._share * sum(others))
            stake = max(stake, more)
        for _table, paid in self._bets:
            paid[0] += self._share * min(stake, MOST)

    def _least(self) -> float:
        """Return what was paid at the place of a jump where it is least, and remember the place."""
        totals = list(map(sum, zip(*(paid for _table, paid in self._bets), strict=True)))
        least = min(totals)
        self._weakest = totals.index(least)
        return least

    def _paid(self, place: int) -> float:
        """Return what all bets together paid, were the jump there."""
        return sum([paid[place] for _table, paid in self._bets])
