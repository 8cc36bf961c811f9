"""The fewest captures, on average, that a test takes whose errors are alpha and beta: any test, and any by ranks.

Lagrange: whatever a test does, its mean captures under growth are at least

    V(p, q) - p·alpha - q·beta,   V = the least of   E1[captures] + p·P0(alarm) + q·P1(no alarm),

for any prices p and q. V is what optimal stopping costs, and P0(alarm) = E1[exp(-log ratio); alarm]. With sigma unknown
all that counts is the cosine between the residuals and a line, a Markov chain: V comes from a table, backwards. Ranks
are no such chain: V is bounded series by series, by what one would pay who knew the rest of it, less a martingale
(Rogers 2002; Haugh and Kogan 2004).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.special
from bench.statistics.gaussian import BETA, bound, bound_unknown, log_moment
from bench.statistics.rank_likelihood import Paths, draw
from bench.statistics.vectorised import Floats

CELLS, WIDEST = 301, 6.0
"""Cells of the cosine c: even in asinh(c / sqrt(1 - c²)), up to there. 601 move limits by 0.02 (at 0.2 and 0.5)."""
BINS = 50
"""Series that share an estimate of what it costs to go on."""


class Least(NamedTuple):
    """A lower limit of the mean captures, and the standard error of its simulation."""

    captures: float
    error: float


def any_test(slope: float, alpha: float) -> Least:
    """Return the limit for tests to which level and scale mean nothing."""
    chain = _Chain(slope, 2 * bound_unknown(slope, alpha) + 6)

    def limit(alarm: float, miss: float) -> float:
        return chain.value(alarm, miss) - alarm * alpha - miss * BETA

    return Least(limit(*_best_prices(limit, slope, alpha)), 0.0)


def any_rank_test(slope: float, alpha: float, runs: int, seed: int = 1) -> Least:
    """Return the limit for tests that look at ranks only; its prices and martingale come from other series."""
    rng = np.random.default_rng(seed)
    count = math.ceil(1.5 * bound_unknown(slope, alpha)) + 6
    learned, fresh = (draw(slope, count, runs, rng) for _ in range(2))

    def limit(alarm: float, miss: float) -> float:
        paid = _Future(learned, alarm, miss).least(learned).captures
        return paid - alarm * alpha - miss * BETA

    alarm, miss = _best_prices(limit, slope, alpha)
    found = _Future(learned, alarm, miss).least(fresh)
    return found._replace(captures=found.captures - alarm * alpha - miss * BETA)


def _best_prices(
    limit: Callable[[float, float], float], slope: float, alpha: float
) -> tuple[float, float]:
    """Return the prices for which the limit is greatest."""

    def loss(logs: Floats) -> float:
        return -limit(math.exp(logs[0]), math.exp(logs[1]))

    found = scipy.optimize.minimize(
        loss,
        np.array([math.log(0.7 / alpha), math.log(2.5 * bound(slope, alpha))]),
        method="Nelder-Mead",
        options={"xatol": 0.02, "fatol": 1e-3, "maxiter": 80},
    )
    return math.exp(found.x[0]), math.exp(found.x[1])


def _stopping(ratios: Floats, alarm: float, miss: float) -> Floats:
    """Return what stopping costs, the captures aside."""
    return np.minimum(alarm * np.exp(-np.clip(ratios, -300, None)), miss)


class _Chain:
    """The cosine between m = 1, 2, … residuals and a line: its log ratios, and the chances of the next one."""

    def __init__(self, slope: float, most: int) -> None:
        k = np.arange(2, most + 2)
        line = np.sqrt(k * (k - 1)) / 2  # what a slope of 1 adds to each residual
        length = np.sqrt(np.cumsum(line**2))
        tangent = np.sinh(np.linspace(-WIDEST, WIDEST, CELLS))
        cosine = tangent / np.sqrt(1 + tangent**2)
        self.rises = float(scipy.special.ndtr(slope * line[0]))
        """Chance that the first residual does."""
        self.ratios = [
            log_moment(slope * cosine * length[m - 1], m)
            - log_moment(np.zeros(1), m)
            - (slope * length[m - 1]) ** 2 / 2
            for m in range(1, most + 1)
        ]
        self.steps = [
            _step(slope, cosine * length[m - 1], m, line[m], length[m]) for m in range(1, most)
        ]

    def value(self, alarm: float, miss: float) -> float:
        """Return V. After the last residual one more capture is taken to tell all, for free."""
        cost = np.minimum(_stopping(self.ratios[-1], alarm, miss), 1.0)
        for ratios, step in zip(self.ratios[-2::-1], self.steps[::-1], strict=True):
            cost = np.minimum(_stopping(ratios, alarm, miss), 1 + step @ cost)
        return float(2 + self.rises * cost[-1] + (1 - self.rises) * cost[0])


def _step(slope: float, along: Floats, m: int, line: float, length: float) -> Floats:
    """Return the chances to come from each cell to each: `along` is |line|·cosine of m residuals.

    Their length r, which the cosine hides, has the density r^(m-1) exp(-r²/2 + slope·along·r); the next residual is
    normal about slope·line, and all is scaled by r.
    """
    pull = slope * along[:, None]
    mode = (pull + np.sqrt(pull**2 + 4 * (m - 1))) / 2
    width = 1 / np.sqrt(1 + (m - 1) / np.maximum(mode, 1e-9) ** 2)
    low, high = np.maximum(mode - 7 * width, 1e-6), np.maximum(mode, 0) + 7 * width
    r = low + (high - low) * (np.arange(61) + 0.5) / 61
    weight = (m - 1) * np.log(r) - r * r / 2 + pull * r
    weight = np.exp(weight - weight.max(1, keepdims=True))
    node, chance = np.polynomial.hermite_e.hermegauss(41)
    residual = node + slope * line
    cosine = (along[:, None, None] * r[:, :, None] + line * residual) / (
        length * np.hypot(r[:, :, None], residual)
    )
    cosine = np.clip(cosine, -1 + 1e-15, 1 - 1e-15)
    at = np.arcsinh(cosine / np.sqrt(1 - cosine**2)) / WIDEST
    at = np.clip((at + 1) / 2 * (CELLS - 1), 0, CELLS - 1 - 1e-9).reshape(CELLS, -1)
    share = weight / weight.sum(1, keepdims=True)
    share = (share[:, :, None] * (chance / chance.sum())).reshape(CELLS, -1)
    cell, rest = at.astype(int), at % 1
    rows = np.arange(CELLS)[:, None] * CELLS
    flat = np.bincount((rows + cell).ravel(), (share * (1 - rest)).ravel(), CELLS * CELLS)
    flat += np.bincount((rows + cell + 1).ravel(), (share * rest).ravel(), CELLS * CELLS)
    return np.asarray(flat.reshape(CELLS, CELLS), float)


class _Future:
    """About what the rest of a series will cost by its log ratio: learned from series, right for none exactly."""

    def __init__(self, paths: Paths, alarm: float, miss: float) -> None:
        self._prices = alarm, miss
        runs, count = paths.ratios.shape
        self._curves: list[tuple[Floats, Floats]] = [(np.zeros(1), np.ones(1))] * count
        for n in range(count - 1, 0, -1):
            ratios, cost = paths.ratios[:, n - 1], 1 + self._expected(paths, n)
            order = np.argsort(ratios, kind="stable")
            groups = np.array_split(order, max(1, runs // BINS))
            x = np.array([ratios[group].mean() for group in groups])
            x, distinct = np.unique(x, return_index=True)
            self._curves[n - 1] = x, np.array([cost[group].mean() for group in groups])[distinct]

    def least(self, paths: Paths) -> Least:
        """Return the mean of what one would pay who knew each series, less the martingale: at most V, up to chance."""
        martingale = np.zeros(len(paths.ratios))
        best = np.full(len(martingale), np.inf)
        for n, ratios in enumerate(paths.ratios.T):
            if n:
                martingale += self._cost(n, ratios) - self._expected(paths, n)
            best = np.minimum(best, n + 1 + _stopping(ratios, *self._prices) - martingale)
        # After the last value one more is taken to tell all, for free.
        best = np.minimum(best, len(paths.ratios.T) + 1 - martingale)
        return Least(float(best.mean()), float(best.std() / math.sqrt(len(best))))

    def _cost(self, n: int, ratios: Floats) -> Floats:
        """Return the cost from n + 1 values on."""
        return np.minimum(_stopping(ratios, *self._prices), np.interp(ratios, *self._curves[n]))

    def _expected(self, paths: Paths, n: int) -> Floats:
        """Return the mean of `_cost` over the places of the next value: exact, whatever the curves are."""
        chances = paths.places[:, n, : n + 1]
        ratios = paths.ratios[:, n - 1, None] + math.log(n + 1) + chances
        return np.asarray((np.exp(chances) * self._cost(n, ratios)).sum(1))
