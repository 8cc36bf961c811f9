"""Chances of false alarms too small to count, by importance sampling of units: rounds relative to their controls.

Assumed: units are normal, with the covariance that AR(1) noise in captures leaves in means of rounds, beside
independent controls; a jump is so large that no rank reaches across. Series are drawn with growth, and each that
alarms counts p(without growth) / p(with it, averaged over all growths tried): no bias, whatever the growths are.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.special
from bench.statistics.noise import RHO, SIZES
from bench.statistics.vectorised import Floats, evidence, first

from capture_canary.trend.timed import MEMORY

UNITS = 60
SLOPES = (0.06, 0.1, 0.17, 0.3, 0.5, 0.9, 1.6, 3.0)
FAR = (0.6, 0.8, 1.0, 1.25, 1.6)
CHUNK = 10_000


class Case(NamedTuple):
    """Units of one kind."""

    name: str
    rho: float
    """Of the captures' noise."""
    control: float
    """Variance of a unit's controls, in squared sigma of a capture; the median of three has 0.449."""
    steps: bool
    """Whether the guard against jumps is on, as in the product."""
    jump: bool = False


CASES = (
    Case("independent, no guard against jumps", 0.0, 0.449, steps=False),
    Case("AR(1) 0.6, no guard", RHO, 0.449, steps=False),
    Case("AR(1) 0.6, controls without noise, no guard", RHO, 0.0, steps=False),
    Case("independent", 0.0, 0.449, steps=True),
    Case("AR(1) 0.6", RHO, 0.449, steps=True),
    Case("AR(1) 0.6, controls without noise", RHO, 0.0, steps=True),
    Case("independent, a jump anywhere", 0.0, 0.449, steps=True, jump=True),
    Case("AR(1) 0.6, a jump anywhere", RHO, 0.449, steps=True, jump=True),
    Case("AR(1) 0.6, a jump anywhere, controls without noise", RHO, 0.0, steps=True, jump=True),
)


class Rare(NamedTuple):
    """A chance, its 95 % upper limit, and how many series its weights are worth."""

    estimate: float
    upper: float
    effective: float


def rare_alarms(case: Case, alpha: float, runs: int, seed: int = 1) -> Rare:
    """Return the chance that a series of `UNITS` units without growth passes the bound."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    root = np.linalg.cholesky(_covariance(case) / _covariance(case)[0, 0])
    weights = []
    for _ in range(0, runs, CHUNK):
        jump = int(rng.integers(2, UNITS - 2)) if case.jump else 0
        lines = np.stack([_line(slope, far, alpha, jump, case) for slope in SLOPES for far in FAR])
        chosen = rng.integers(0, len(lines), CHUNK)
        fresh = rng.standard_normal((CHUNK, UNITS))
        units: Floats = fresh @ root.T + lines[chosen]
        jumped = units + 1e6 * (np.arange(UNITS) >= jump) if case.jump else units
        found = first(
            evidence(jumped[:, 1:] - MEMORY * jumped[:, :-1], steps=case.steps),
            math.log(1 / alpha),
        )
        pushed = np.linalg.solve(root, lines.T).T
        seen = fresh + pushed[chosen]  # what a series without growth would have drawn
        ratios = np.cumsum(seen[None] * pushed[:, None] - pushed[:, None] ** 2 / 2, axis=2)
        ends = ratios[:, np.arange(CHUNK), found + 1]
        ratio = np.asarray(scipy.special.logsumexp(ends, axis=0))
        weights.append(np.where(found >= 0, np.exp(math.log(len(lines)) - ratio), 0.0))
    weighed = np.concatenate(weights)
    mean, error = float(weighed.mean()), float(weighed.std() / math.sqrt(len(weighed)))
    square = float((weighed**2).sum())
    effective = float(weighed.sum()) ** 2 / square if square else 0.0
    return Rare(mean, mean + 1.645 * error, effective)


def _covariance(case: Case) -> Floats:
    """Return the covariance of units: means of `SIZES` captures each, less a control."""
    lag = np.abs(np.subtract.outer(np.arange(UNITS * SIZES), np.arange(UNITS * SIZES)))
    captures = case.rho**lag if case.rho else np.eye(UNITS * SIZES)
    means = captures.reshape(UNITS, SIZES, UNITS, SIZES).mean(axis=(1, 3))
    return np.asarray(means + case.control * np.eye(UNITS), float)


def _line(slope: float, far: float, alpha: float, jump: int, case: Case) -> Floats:
    """Return a rise through the middle of the units that it takes to be found; with a jump, one on either side."""
    order = np.arange(UNITS, dtype=float)
    needed = (24 * math.log(4 / alpha) / slope**2) ** (1 / 3) * far
    if not jump:
        return np.asarray(slope * (order - needed * (1.6 if case.steps else 1.0) / 2))
    end = max(needed, jump + needed / 2)
    before, after = slope * (order - jump / 2), slope * (order - (jump + end) / 2)
    return np.asarray(np.where(order < jump, before, after))
