"""What the decision costs: pure Python, both ways, a capture at a time."""

import random
import time
from typing import NamedTuple

from capture_canary.model import Capture
from capture_canary.trend.sequential import MAX_VALUES
from capture_canary.trend.timed import SeriesTest

SHAPES = (256, 1024, 4096)


class Cost(NamedTuple):
    """Microseconds a capture: over a whole series of 60 rounds, over a truncated one, and at the very last round."""

    sixty: float
    whole: float
    last: float


def cost() -> Cost:
    """Feed a series that never decides; the least of several runs, so that what else runs here counts little."""
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
    _feed(captures)  # makes the tables of payoffs, which all series share
    runs = [_feed(captures) for _ in range(7)]
    best = [min(times) for times in zip(*runs, strict=True)]
    sixty = 60 * len(SHAPES)
    return Cost(
        1e6 * sum(best[:sixty]) / sixty,
        1e6 * sum(best) / len(best),
        1e6 * sum(best[-len(SHAPES) :]) / len(SHAPES),
    )


def _feed(captures: list[Capture]) -> list[float]:
    test = SeriesTest(SHAPES, floor_seconds=0.0, floor_ratio=0.001)
    times = []
    for capture in captures:
        begin = time.perf_counter()
        test.add(capture)
        times.append(time.perf_counter() - begin)
    return times
