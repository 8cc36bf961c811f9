"""Bets on ranks: what it pays to see a value at its place among those before it, were there a slope.

Among exchangeable values each is as likely at any place (1 to k) among the first k, and independently so for every k
(Rényi 1962), whatever the noise. A bet on the place that pays 1 on average is therefore fair for any noise, and a
product of such bets reaches 1/alpha with a chance of alpha at most (Ville 1939). docs/statistics.md derives it.
"""

import math
from functools import cache
from itertools import accumulate

SLOPES = (0.055, 0.18, 0.5, 1.5)
"""Slopes (in deviations a value) that are betted on, with equal shares: no slope worth finding is far from all."""

_STEP = 0.4
_NOISE = [_STEP * n for n in range(-11, 12)]
"""Deviations of the newest value that its place is averaged over, by the trapezoid rule: good to 5 % among 100."""
_LEAST = 1e-300
"""Chance of a place that floating point takes for impossible."""
_WEIGHTS = [math.exp(-x * x / 2) for x in _NOISE]


class Payoffs(list[list[float]]):
    """For 1, 2, … values: what a bet on one slope pays at each place, from the lowest.

    A place pays its chance with this slope and normal noise, over that without. The newest of k values lies slope·l
    above the one that came l before it, noise aside, so that given its own noise x it passes that one with the chance
    that a normal variable is below x + slope·l, and independently so for each l.
    """

    def __init__(self, slope: float) -> None:
        """Begin with a single value, whose place is certain."""
        super().__init__([[1.0]])
        self.slope = slope
        self._sums = [[1.0]]
        """The same, summed from the lowest place up."""
        self.longest = math.ceil(8 + 14 * slope ** (-2 / 3))
        """Values among which to bet: half as many again as find this slope at 1e-8: beyond them it is not there."""
        self._chances = [[weight] for weight in _WEIGHTS]
        """By the newest value's noise: the chance of each place, so far."""

    def reach(self, k: int) -> None:
        """Make the tables of up to k values, or of as many as are betted on."""
        while len(self) < min(k, self.longest):
            lag = self.slope * len(self)
            for index, (x, places) in enumerate(zip(_NOISE, self._chances, strict=True)):
                above = math.erfc(-(x + lag) / math.sqrt(2)) / 2
                self._chances[index] = [
                    stays + above * (passes - stays)
                    for stays, passes in zip([*places, 0.0], [0.0, *places], strict=True)
                ]
            # Higher places are likelier, but for rounding: so a smaller slope can only lower a product of bets.
            chances = map(sum, zip(*self._chances, strict=True))
            rising = list(accumulate(chances, max, initial=_LEAST))[1:]
            mean = math.fsum(rising) / len(rising)
            self.append([chance / mean for chance in rising])
            self._sums.append(list(accumulate(self[-1])))

    def lowest(self, k: int, count: int) -> float:
        """Return what this many of the lowest of k places pay together: 1 each where nothing is betted."""
        return self._sums[k - 1][count - 1] if k <= len(self) else count


payoffs = cache(Payoffs)
"""One table a slope, shared by all tests: it is made once as far as any of them came."""
