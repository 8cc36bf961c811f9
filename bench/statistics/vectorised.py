"""The product's test for many series at once: numpy twins of trend/sequential.py and trend/units.py.

tests/trend/test_sequential_twin.py sees that they say the same.
"""

import math

import numpy as np
import numpy.typing as npt

from capture_canary.trend import ranks
from capture_canary.trend.sequential import HIGHEST, LOST, MOST
from capture_canary.trend.timed import MEMORY

Floats = npt.NDArray[np.float64]


class Gathering:
    """Evidence of many series, a value at a time."""

    def __init__(
        self,
        runs: int,
        count: int,
        bound: float,
        slopes: tuple[float, ...] = ranks.SLOPES,
        *,
        steps: bool = True,
    ) -> None:
        """Begin; `count` values may come."""
        self.steps = steps
        self.now = 0
        self.values = np.empty((count, runs))
        self.paid = np.zeros((count, len(slopes), runs))
        """By place of the jump (0: none) and slope."""
        self.paid[0] = 1 / len(slopes)
        self.reached = np.zeros(runs, bool)
        self.tables = [tables(slope, count) for slope in slopes]
        self._bound = bound
        self._sums = np.stack([_lowest(slope, count) for slope in slopes])

    def add(self, value: Floats) -> Floats:
        """Take the next value of each series; return the statistic."""
        now, paid = self.now, self.paid
        place = np.zeros(len(value), np.int32)
        if now:
            paid[now] = paid[0]
        staked = np.zeros(len(value), np.bool_) if self.steps else self._stake()
        for jump in range(now - 1, -1, -1):
            place += self.values[jump] < value
            if self.steps or jump == 0:
                for index, table in enumerate(self.tables):
                    if now - jump < len(table):
                        paid[jump, index] *= table[now - jump][place]
        paid[0, 0, staked & (paid[0].sum(0) >= math.exp(self._bound))] = np.inf
        self.values[now] = value
        self.now += 1
        least = paid[: self.now if self.steps else 1].sum(1).min(0)
        self.reached |= least >= math.exp(self._bound)
        logs = np.log(np.maximum(least, LOST))
        return np.where(self.reached, self._bound, np.minimum(logs, self._bound))

    def take(self, chosen: npt.NDArray[np.int64]) -> None:
        """Go on with these series, some of them many times."""
        self.values, self.paid = self.values[:, chosen], self.paid[:, :, chosen]
        self.reached = self.reached[chosen]

    def _stake(self) -> npt.NDArray[np.bool_]:
        """Stake what need not be won; return which series did."""
        ranks, held = self.now + 1, self.paid[0]
        stake = np.zeros(held.shape[1])
        for index, highest in enumerate(HIGHEST):
            if highest < ranks:
                others = self._sums[:, index, ranks]
                pays = (ranks - others) @ held
                more = (pays - highest * math.exp(self._bound)) / others.mean()
                stake = np.maximum(stake, more)
        held += np.minimum(stake, MOST) / len(held)
        return stake > 0


def evidence(
    values: Floats, bound: float, slopes: tuple[float, ...] = ranks.SLOPES, *, steps: bool = True
) -> Floats:
    """Return the statistic after each value (columns) of each series (rows)."""
    runs, count = values.shape
    gathering = Gathering(runs, count, bound, slopes, steps=steps)
    return np.stack([gathering.add(value) for value in values.T], axis=1)


def tables(slope: float, count: int) -> list[Floats]:
    """Return the payoffs, by number of values and place."""
    table = ranks.payoffs(slope)
    table.reach(count)
    return [np.array(row) for row in table[:count]]


def _lowest(slope: float, count: int) -> Floats:
    """Return what all ranks but the few highest pay together: by how many these are, and by number of ranks."""
    table = ranks.payoffs(slope)
    table.reach(count)
    return np.array(
        [
            [table.lowest(k, k - highest) if highest < k else 1.0 for k in range(count + 1)]
            for highest in HIGHEST
        ]
    )


def judged(
    captures: Floats, controls: Floats, sizes: int, bound: float, *, steps: bool = True
) -> Floats:
    """Return the statistic after each unit but the first; one size's worth of captures is left out as warm-up."""
    runs = len(captures)
    time = captures[:, sizes:].reshape(runs, -1, sizes).mean(2)
    control = np.median(controls[:, sizes:].reshape(runs, -1, sizes), axis=2)
    units = time / control * control[:, :1]
    return evidence(units[:, 1:] - MEMORY * units[:, :-1], bound, steps=steps)


def first(statistic: Floats, bound: float) -> npt.NDArray[np.int64]:
    """Return the index of the first value from `bound` on, -1 where there is none."""
    hit = statistic >= bound
    return np.where(hit.any(1), hit.argmax(1), -1)
