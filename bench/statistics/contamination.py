"""False alarms and power of the product's test under each kind of noise."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats
from bench.statistics.noise import KINDS, SIZES, Kind, draw
from bench.statistics.vectorised import first, judged

SLOPES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
CHUNK = 10_000
ROUNDS_NULL = 24
ROUNDS_FULL = 193
ROUNDS = {0.05: 193, 0.1: 130, 0.2: 90, 0.5: 60, 1.0: 50, 2.0: 50}
"""Rounds within which a slope is found: what comes later would only cost time here."""


class Rate(NamedTuple):
    """A rate with what is known of it."""

    estimate: float
    upper: float


class Power(NamedTuple):
    """Share of series found, and the mean captures (controls not counted) until then."""

    share: float
    captures: float


def false_alarms(
    kind: Kind, runs: int, rounds: int, alpha: float, *, steps: bool = True, seed: int = 1
) -> Rate:
    """Return the rate at which series without growth pass the bound, and its 95 % upper limit."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    alarms = done = 0
    while done < runs:
        drawn = draw(kind, min(CHUNK, runs - done), rounds, rng)
        bound = math.log(1 / alpha)
        statistic = judged(drawn.captures, drawn.controls, SIZES, bound, steps=steps)
        alarms += int((first(statistic, bound) >= 0).sum())
        done += len(drawn.noise)
    upper = float(scipy.stats.beta.ppf(0.95, alarms + 1, runs - alarms)) if alarms < runs else 1.0
    return Rate(alarms / runs, upper)


def power(
    kind: Kind, slope: float, runs: int, alphas: Sequence[float], seed: int = 1
) -> list[Power]:
    """Return how often, and after how many captures, a slope (in sigma a capture) is found, for each alpha."""
    rng = np.random.default_rng([seed, 2 + KINDS.index(kind)])
    rounds = ROUNDS_FULL if "spikes" in kind and slope < SLOPES[2] else ROUNDS[slope]
    drawn = draw(kind, runs, rounds, rng)
    growth = slope * np.arange(1, drawn.noise.shape[1] + 1)
    powers = []
    for bound in (math.log(1 / alpha) for alpha in alphas):
        found = first(judged(drawn.growing(growth), drawn.controls, SIZES, bound), bound)
        hit = found >= 0
        captures = float((found[hit] + 3).mean() * SIZES) if hit.any() else math.nan
        powers.append(Power(float(hit.mean()), captures))
    return powers
