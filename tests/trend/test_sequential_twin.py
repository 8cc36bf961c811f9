"""The numpy twin that bench/statistics simulates with says what the product says."""

import math

import numpy as np
import pytest
from bench.statistics import noise, vectorised
from tests.making import capture

from capture_canary.trend.sequential import Evidence
from capture_canary.trend.timed import SeriesTest


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("bound", [1.0, 4.0, 14.0])
def test_evidence(steps, bound):
    rng = np.random.default_rng(4)
    values = rng.integers(0, 20, (5, 40)) + 0.3 * np.arange(40)
    twin = vectorised.evidence(values, bound, steps=steps)
    for row, expected in zip(values, twin, strict=True):
        evidence, found = Evidence(bound, steps=steps), []
        for value in row:
            evidence.add(float(value))
            found.append(evidence.statistic)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", noise.KINDS)
def test_whole_series(kind):
    drawn = noise.draw(kind, 3, 30, np.random.default_rng(5))
    times = drawn.growing(0.3 * np.arange(1, drawn.noise.shape[1] + 1))
    twin = vectorised.judged(times, drawn.controls, noise.SIZES, math.log(1e6))
    for row, controls, expected in zip(times, drawn.controls, twin, strict=True):
        test = SeriesTest(range(noise.SIZES), floor_seconds=0.0, floor_ratio=0.0)
        for n, (seconds, control) in enumerate(zip(row, controls, strict=True)):
            test.add(
                capture(
                    n + 1,
                    round=n // noise.SIZES,
                    shape=n % noise.SIZES,
                    seconds=float(seconds),
                    control_seconds=float(control),
                )
            )
        assert test.statistic == pytest.approx(expected[-1], abs=1e-6)
