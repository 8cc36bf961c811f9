"""What the decision costs: pure Python, both ways, a capture at a time."""

import random
import time
from typing import NamedTuple

from capture_canary.model import Capture
from capture_canary.trend.ranks import SLOPES, Payoffs
from capture_canary.trend.sequential import MAX_VALUES
from capture_canary.trend.timed import SeriesTest

SHAPES = (256, 1024, 4096)
RUNS = 40


class Cost(NamedTuple):
    """Microseconds a capture, of a series that is never decided."""

    sixty: float
    """Mean over 60 rounds."""
    whole: float
    """Mean over a truncated series."""
    last: float
    """Mean over its last ten rounds."""
    dearest: float
    """The capture that costs most, of all."""
    sort: float
    """What Python takes to sort a thousand numbers meanwhile, to compare with."""
    tables: float
    """Once a process: the tables of payoffs, shared out over the captures that first need them."""


def cost() -> Cost:
    """Feed a series that never decides; of each capture the least of several runs, so that others count little."""
    rng = random.Random(1)  # noqa: S311 - a seeded simulation
    captures = [
        Capture(
            order=n + 1,
            round=n // len(SHAPES),
            shape=SHAPES[n % len(SHAPES)],
            begin_ns=n * 1_000_000,
            seconds=0.01 + rng.gauss(0, 1e-4),
            h2d_copies=None,
            h2d_bytes=None,
            copy_seconds=None,
            control_seconds=0.002,
        )
        for n in range((MAX_VALUES + 1) * len(SHAPES))
    ]
    numbers = [rng.random() for _ in range(1000)]
    _feed(captures)  # makes the tables of payoffs, which all series share
    runs = [_feed(captures) for _ in range(RUNS)]
    best = [1e6 * min(times) for times in zip(*runs, strict=True)]
    sixty, last = 60 * len(SHAPES), 10 * len(SHAPES)
    return Cost(
        sum(best[:sixty]) / sixty,
        sum(best) / len(best),
        sum(best[-last:]) / last,
        max(best),
        min(_sorting(numbers) for _ in range(200)),
        min(_tables() for _ in range(3)) / len(captures),
    )


def _sorting(numbers: list[float]) -> float:
    begin = time.perf_counter()
    sorted(numbers)
    return 1e6 * (time.perf_counter() - begin)


def _tables() -> float:
    begin = time.perf_counter()
    for slope in SLOPES:
        table = Payoffs(slope)
        table.reach(MAX_VALUES)
    return 1e6 * (time.perf_counter() - begin)


def _feed(captures: list[Capture]) -> list[float]:
    test = SeriesTest(SHAPES, floor_seconds=0.0, floor_ratio=0.0)
    times = []
    for capture in captures:
        begin = time.perf_counter()
        test.add(capture)
        times.append(time.perf_counter() - begin)
    assert test.decision == "open", test.decision
    return times
