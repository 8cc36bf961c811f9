"""What the decision costs: pure Python, both ways, a capture at a time."""

import random
import time
from operator import mul
from typing import NamedTuple

from capture_canary.model import Capture, TimeDecision
from capture_canary.trend.ranks import SLOPES, Payoffs
from capture_canary.trend.sequential import MAX_VALUES
from capture_canary.trend.timed import SeriesTest

SHAPES = (256, 1024, 4096)
RUNS = 40
SIGMA, SLOW = 1e-4, 0.01


class Cost(NamedTuple):
    """Microseconds a capture."""

    sixty: float
    """Mean over 60 rounds of a series that is never decided."""
    whole: float
    """Mean over the whole of it, truncated."""
    last: float
    """Mean over its last ten rounds."""
    dearest: float
    """The capture of it that costs most."""
    grows: float
    """The capture that costs most in a series that grows slowly, and passes its bound by and by."""
    products: float
    """What Python takes for a thousand products meanwhile, to compare with."""
    tables: float
    """Once a process: the tables of payoffs, shared out over the captures that first need them."""


def cost() -> Cost:
    """Feed two series; of each capture the least of several runs, so that others count little."""
    rng = random.Random(1)  # noqa: S311 - a seeded simulation
    numbers = [rng.random() for _ in range(1000)]
    open_, grows = _best(0.0, "open"), _best(SLOW, "grows")
    sixty, last = 60 * len(SHAPES), 10 * len(SHAPES)
    return Cost(
        sum(open_[:sixty]) / sixty,
        sum(open_) / len(open_),
        sum(open_[-last:]) / last,
        max(open_),
        max(grows),
        min(_multiplying(numbers) for _ in range(200)),
        min(_tables() for _ in range(3)) / len(open_),
    )


def _best(slope: float, decision: TimeDecision) -> list[float]:
    """Return the least that each capture of a series took; its growth is in sigma a capture."""
    rng = random.Random(1)  # noqa: S311 - a seeded simulation
    captures = [
        Capture(
            order=n + 1,
            round=n // len(SHAPES),
            shape=SHAPES[n % len(SHAPES)],
            begin_ns=n * 1_000_000,
            seconds=0.01 + rng.gauss(0, SIGMA) + slope * SIGMA * n,
            h2d_copies=None,
            h2d_bytes=None,
            copy_seconds=None,
            control_seconds=0.002,
        )
        for n in range((MAX_VALUES + 1) * len(SHAPES))
    ]
    _feed(captures, decision)  # makes the tables of payoffs, which all series share
    runs = [_feed(captures, decision) for _ in range(RUNS)]
    return [1e6 * min(times) for times in zip(*runs, strict=True)]


def _multiplying(numbers: list[float]) -> float:
    begin = time.perf_counter()
    list(map(mul, numbers, numbers))
    return 1e6 * (time.perf_counter() - begin)


def _tables() -> float:
    begin = time.perf_counter()
    for slope in SLOPES:
        table = Payoffs(slope)
        table.reach(MAX_VALUES)
    return 1e6 * (time.perf_counter() - begin)


def _feed(captures: list[Capture], decision: TimeDecision) -> list[float]:
    test = SeriesTest(SHAPES, floor_seconds=0.0, floor_ratio=0.0)
    times = []
    for capture in captures:
        begin = time.perf_counter()
        test.add(capture)
        times.append(time.perf_counter() - begin)
    assert test.decision == decision, test.decision
    return times
