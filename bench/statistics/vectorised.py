"""The product's test for many series at once: numpy twins of trend/sequential.py and trend/units.py.

tests/trend/test_sequential_twin.py sees that they say the same.
"""

import numpy as np
import numpy.typing as npt

from capture_canary.trend import ranks
from capture_canary.trend.timed import MEMORY

Floats = npt.NDArray[np.float64]


def evidence(
    values: Floats, slopes: tuple[float, ...] = ranks.SLOPES, *, steps: bool = True
) -> npt.NDArray[np.float32]:
    """Return the statistic after each value (columns) of each series (rows)."""
    runs, count = values.shape
    logs = np.zeros((count, len(slopes), runs), np.float32)
    statistic = np.zeros((runs, count), np.float32)
    tables = [_tables(slope, count) for slope in slopes]
    for now in range(count):
        place = np.zeros(runs, np.int32)
        logs[now] = logs[0] if now else -np.log(len(slopes))
        best = _together(logs[now])
        for jump in range(now - 1, -1, -1):
            place += values[:, jump] < values[:, now]
            if steps or jump == 0:
                for index, table in enumerate(tables):
                    if now - jump < len(table):
                        logs[jump, index] += table[now - jump][place]
                paid = _together(logs[jump])
                best = np.minimum(best, paid) if steps else paid
        statistic[:, now] = best
    return statistic


def _together(logs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    best = logs.max(0)
    return np.asarray(best + np.log(np.exp(logs - best).sum(0)), np.float32)


def _tables(slope: float, count: int) -> list[npt.NDArray[np.float32]]:
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
