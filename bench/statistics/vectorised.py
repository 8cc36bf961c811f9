"""The product's test for many series at once: numpy twins of trend/sequential.py and trend/units.py.

tests/trend/test_sequential_twin.py sees that they say the same.
"""

import numpy as np
import numpy.typing as npt

from capture_canary.trend import ranks
from capture_canary.trend.timed import MEMORY

Floats = npt.NDArray[np.float64]


class Gathering:
    """Evidence of many series, a value at a time."""

    def __init__(
        self,
        runs: int,
        count: int,
        slopes: tuple[float, ...] = ranks.SLOPES,
        *,
        steps: bool = True,
    ) -> None:
        """Begin; `count` values may come."""
        self.steps = steps
        self.now = 0
        self.values = np.empty((count, runs))
        self.logs = np.zeros((count, len(slopes), runs), np.float32)
        """By place of the jump (0: none) and slope, what was paid so far."""
        self.tables = [tables(slope, count) for slope in slopes]

    def add(self, value: Floats) -> npt.NDArray[np.float32]:
        """Take the next value of each series; return the statistic."""
        now, logs = self.now, self.logs
        place = np.zeros(len(value), np.int32)
        logs[now] = logs[0] if now else -np.log(len(self.tables))
        best = together(logs[now])
        for jump in range(now - 1, -1, -1):
            place += self.values[jump] < value
            if self.steps or jump == 0:
                for index, table in enumerate(self.tables):
                    if now - jump < len(table):
                        logs[jump, index] += table[now - jump][place]
                paid = together(logs[jump])
                best = np.minimum(best, paid) if self.steps else paid
        self.values[now] = value
        self.now += 1
        return best

    def take(self, chosen: npt.NDArray[np.int64]) -> None:
        """Go on with these series, some of them many times."""
        self.values, self.logs = self.values[:, chosen], self.logs[:, :, chosen]


def evidence(
    values: Floats, slopes: tuple[float, ...] = ranks.SLOPES, *, steps: bool = True
) -> npt.NDArray[np.float32]:
    """Return the statistic after each value (columns) of each series (rows)."""
    runs, count = values.shape
    gathering = Gathering(runs, count, slopes, steps=steps)
    return np.stack([gathering.add(value) for value in values.T], axis=1)


def together(logs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the logarithm of what all slopes (rows) paid together."""
    best = logs.max(0)
    return np.asarray(best + np.log(np.exp(logs - best).sum(0)), np.float32)


def tables(slope: float, count: int) -> list[npt.NDArray[np.float32]]:
    """Return the logarithms of payoffs, by number of values and place."""
    table = ranks.payoffs(slope)
    table.reach(count)
    return [np.array(row, np.float32) for row in table[:count]]


def judged(
    captures: Floats, controls: Floats, sizes: int, *, steps: bool = True
) -> npt.NDArray[np.float32]:
    """Return the statistic after each unit but the first; one size's worth of captures is left out as warm-up."""
    runs = len(captures)
    time = captures[:, sizes:].reshape(runs, -1, sizes).mean(2)
    control = np.median(controls[:, sizes:].reshape(runs, -1, sizes), axis=2)
    units = time / control * control[:, :1]
    return evidence(units[:, 1:] - MEMORY * units[:, :-1], steps=steps)


def first(statistic: npt.NDArray[np.float32], bound: float) -> npt.NDArray[np.int64]:
    """Return the index of the first value from `bound` on, -1 where there is none."""
    hit = statistic >= bound
    return np.where(hit.any(1), hit.argmax(1), -1)
