"""Chances of false alarms too small to count, by sequential Monte Carlo on units: rounds relative to their controls.

Assumed: units are normal, with the covariance that AR(1) noise in captures leaves in means of rounds, beside
independent controls; a jump is so large that no rank reaches across. Each value is drawn given those before it, its
place as much likelier as all bets together pay for it; after each value the series of a swarm are drawn again by what
they have gathered (Del Moral's Feynman-Kac flow: unbiased). Swarms are independent, so their spread gives the interval.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.special
import scipy.stats
from bench.statistics.noise import RHO, SIZES
from bench.statistics.vectorised import Floats, Gathering

from capture_canary.trend.timed import MEMORY

UNITS = 60
TILT = 0.9
"""Weight of the bets without a guard in what series are drawn by; the statistic that alarms has the rest."""
FAR = 1e6
"""Height of a jump, in sigma."""


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
    """A chance, its 95 % upper limit, and how many alarms of equal weight those seen are worth."""

    estimate: float
    upper: float
    effective: float


def rare_alarms(case: Case, alpha: float, *, swarms: int, size: int, seed: int = 1) -> Rare:
    """Return the chance that a series of `UNITS` units without growth passes the bound."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    root = np.asarray(np.linalg.cholesky(_covariance(case)), float)
    found = [_swarm(case, root, math.log(1 / alpha), size, rng) for _ in range(swarms)]
    chances = np.array([alarms.sum() for alarms in found])
    mean, error = chances.mean(), chances.std(ddof=1) / math.sqrt(len(chances))
    weights = np.concatenate(found)
    effective = weights.sum() ** 2 / (weights**2).sum() if len(weights) else 0.0
    upper = mean + scipy.stats.t.ppf(0.95, len(chances) - 1) * error
    return Rare(float(mean), float(upper), float(effective))


def _swarm(case: Case, root: Floats, bound: float, size: int, rng: np.random.Generator) -> Floats:
    """Return what each alarm of a swarm of series adds to the chance of one."""
    count = len(root)
    jump = int(rng.integers(2, count - 1)) if case.jump else 0
    height = np.zeros(count)
    if jump:  # the filter lets the first value jump by the whole height
        height[jump], height[jump + 1 :] = FAR, (1 - MEMORY) * FAR
    gathering = Gathering(size, count, bound, steps=case.steps)
    normal, score = np.empty((size, count)), np.zeros(size)
    share, alarms = 1.0, []
    tilt = TILT if case.steps else 1.0
    for n in range(count):
        begin = jump if n >= jump else 0
        mean = normal[:, :n] @ root[n, :n] + height[n]
        normal[:, n], weight = _next(gathering, begin, mean, root[n, n], tilt=tilt, rng=rng)
        statistic = gathering.add(mean + root[n, n] * normal[:, n])
        reached = tilt * np.log(_held(gathering, begin).sum(0)) + (1 - tilt) * statistic
        weight *= np.exp(reached - score)
        alarm = statistic >= bound
        alarms.append(share / size * (weight * np.exp(-reached))[alarm])
        weight[alarm] = 0
        share *= weight.mean()
        if not share:
            break
        chosen = rng.choice(size, size, p=weight / weight.sum())
        gathering.take(chosen)
        normal, score = normal[chosen], reached[chosen]
    return np.concatenate(alarms)


def _next(
    gathering: Gathering,
    begin: int,
    mean: Floats,
    scale: float,
    *,
    tilt: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return each series' next value in deviations from its mean, and its chance over the one it was drawn with."""
    runs, n = len(mean), gathering.now
    before = np.sort(gathering.values[begin:n].T, axis=1)
    edges = np.ones((runs, n - begin + 2))
    # The chance to lie above each: exact where bets push the values to.
    edges[:, 1:-1], edges[:, -1] = scipy.special.ndtr((mean[:, None] - before) / scale), 0
    payoffs = _payoffs(gathering, begin) ** tilt
    wanted = ((edges[:, :-1] - edges[:, 1:]) * payoffs).cumsum(1)
    place = (wanted < (rng.random(runs) * wanted[:, -1])[:, None]).sum(1)
    place = np.minimum(place, n - begin)
    own = np.arange(runs)
    high, low = edges[own, place], edges[own, place + 1]
    drawn = -scipy.special.ndtri(low + (high - low) * (1 - rng.random(runs)))
    return drawn, wanted[:, -1] / payoffs[own, place]


def _payoffs(gathering: Gathering, begin: int) -> Floats:
    """Return what all bets together pay at each place of the next value, by series."""
    n = gathering.now
    stakes = _held(gathering, begin if n > begin else 0)
    stakes = stakes / stakes.sum(0)
    payoffs = np.ones((len(stakes), n - begin + 1))
    for index, table in enumerate(gathering.tables):
        if n - begin < len(table):
            payoffs[index] = table[n - begin]
    return np.asarray(np.maximum(stakes.T @ payoffs, 1e-3))


def _held(gathering: Gathering, begin: int) -> Floats:
    """Return what each slope has paid, were the jump there; what has won for good or lost all is still finite."""
    return np.asarray(np.clip(gathering.paid[begin], 1e-200, 1e200))


def _covariance(case: Case) -> Floats:
    """Return the covariance of filtered units: means of `SIZES` captures each, less a control and the unit before."""
    lag = np.abs(np.subtract.outer(np.arange(UNITS * SIZES), np.arange(UNITS * SIZES)))
    captures = case.rho**lag if case.rho else np.eye(UNITS * SIZES)
    means = captures.reshape(UNITS, SIZES, UNITS, SIZES).mean(axis=(1, 3))
    units = means + case.control * np.eye(UNITS)
    filtered = np.eye(UNITS)[1:] - MEMORY * np.eye(UNITS)[:-1]
    covariance = filtered @ units @ filtered.T
    return np.asarray(covariance / covariance[0, 0], float)
