"""Captures to find a slope in normal noise: the bounds, the tests of this project, and those of others."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.special
import scipy.stats
from bench.statistics.vectorised import Floats, evidence, first

from capture_canary.trend.slope import discordant_quantile

SLOPES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
BETA = 1e-2
Grid = tuple[float, ...]
GRID: Grid = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)
LEAST, MOST = 3, 400


class Found(NamedTuple):
    """Mean captures until found, and the share found."""

    captures: float
    share: float


def needed(alpha: float) -> float:
    """Return the information (nats) that any test must expect to see before it decides (Wald 1945)."""
    return (1 - BETA) * math.log((1 - BETA) / alpha) + BETA * math.log(BETA / (1 - alpha))


def bound(slope: float, alpha: float) -> int:
    """Return the least captures that hold it, with known sigma."""
    return next(n for n in range(2, MOST) if slope**2 * n * (n * n - 1) / 24 >= needed(alpha))


def bound_unknown(slope: float, alpha: float, seed: int = 1) -> int:
    """Return the same with unknown sigma: of what is left when level and scale mean nothing."""
    rng = np.random.default_rng(seed)
    count = 3 * bound(slope, alpha) + 20
    ratio = _student(_noise(rng, 4000, slope, count), (slope,))
    return int(np.argmax(ratio.mean(0) >= needed(alpha))) + 2


def neyman_pearson(slope: float, alpha: float) -> int:
    """Return the fixed number of captures of the best test, sigma known."""
    z = scipy.stats.norm.isf(alpha) + scipy.stats.norm.isf(BETA)
    return next(n for n in range(2, MOST) if slope**2 * n * (n * n - 1) / 12 >= z * z)


def ols(slope: float, alpha: float) -> int:
    """Return the fixed number of captures of the t test of a least-squares slope."""
    for n in range(LEAST, MOST):
        shift = slope * math.sqrt(n * (n * n - 1) / 12)
        cut = scipy.stats.t.isf(alpha, n - 2)
        if scipy.stats.nct.sf(cut, n - 2, shift) >= 1 - BETA:
            return n
    raise ValueError(f"more than {MOST} captures")


def mann_kendall(slope: float, alpha: float, runs: int, seed: int = 1) -> int:
    """Return the fixed number of captures of the exact Mann-Kendall test; its power is simulated."""
    rng = np.random.default_rng(seed)
    y = _noise(rng, runs, slope, 3 * bound(slope, alpha) + 30)
    falls = np.zeros(runs)
    for n in range(1, y.shape[1]):
        falls += (y[:, :n] > y[:, n : n + 1]).sum(1)
        cut = discordant_quantile([n + 1], alpha)
        if cut is not None and (falls <= cut).mean() >= 1 - BETA:
            return n + 1
    raise ValueError("more captures than simulated")


def e_divisive(slope: float, alpha: float, runs: int, seed: int = 1) -> int:
    """Return the fixed number of captures of the best split by energy distance (its first change point)."""
    rng = np.random.default_rng(seed)
    n = bound(slope, alpha)
    while n < MOST:
        null = _energy(_noise(rng, max(runs, round(20 / alpha)), 0.0, n))
        cut = np.quantile(null, 1 - alpha)
        if (_energy(_noise(rng, runs, slope, n)) > cut).mean() >= 1 - BETA:
            return n
        n += max(1, n // 12)
    raise ValueError(f"more than {MOST} captures")


def five_percent(slope: float, relative: float, runs: int, seed: int = 1) -> tuple[Found, float]:
    """Return when superbench's rule (5 % above a baseline) fires, and its false alarms within as many captures.

    The baseline is the first capture; `relative` is sigma as a share of a capture.
    """
    rng = np.random.default_rng(seed)

    def fired(growth: float, count: int) -> Floats:
        y = 1 + relative * _noise(rng, runs, growth, count)
        return np.asarray(first(y / y[:, :1], 1.05), float)

    count = int(0.2 / (relative * slope)) + 20
    found = fired(slope, count)
    hit = found >= 0
    mean = float(found[hit].mean()) + 1
    return Found(mean, float(hit.mean())), float((fired(0.0, math.ceil(mean)) >= 0).mean())


def sequential(slope: float, alpha: float, runs: int, seed: int = 1) -> dict[str, Found]:
    """Return what the sequential tests take."""
    rng = np.random.default_rng(seed)
    y = _noise(rng, runs, slope, min(MOST, 4 * bound(slope, alpha) + 20))
    sure, wald = math.log(1 / alpha), math.log((1 - BETA) / alpha)
    known = _known(y, (slope,))
    given_up = np.cumsum(known <= math.log(BETA / (1 - alpha)), axis=1) > 0
    tests: dict[str, tuple[Callable[[], Floats], float, int]] = {
        "sprt": (lambda: np.where(given_up, np.float64(-1), known), wald, 2),
        "mixture": (lambda: _known(y, GRID), sure, 2),
        "t sprt": (lambda: _student(y, (slope,)), wald, 2),
        "t mixture": (lambda: _student(y, GRID), sure, 2),
        "ranks tuned": (lambda: evidence(y, sure, (slope,), steps=False), sure, 1),
        "ranks": (lambda: evidence(y, sure, steps=False), sure, 1),
    }
    found = {}
    for name, (statistic, cut, offset) in tests.items():
        at = first(statistic(), cut)
        found[name] = Found(float((at[at >= 0] + offset).mean()), float((at >= 0).mean()))
    return found


def _noise(rng: np.random.Generator, runs: int, slope: float, count: int) -> Floats:
    return np.asarray(rng.standard_normal((runs, count)) + slope * np.arange(1, count + 1))


def _recursive(y: Floats) -> tuple[Floats, Floats]:
    """Return recursive residuals (free of the level) and what a slope of 1 adds to them."""
    k = np.arange(2, y.shape[1] + 1)
    before = np.cumsum(y, axis=1)[:, :-1] / (k - 1)
    return (y[:, 1:] - before) / np.sqrt(k / (k - 1)), np.sqrt(k * (k - 1)) / 2


def _known(y: Floats, slopes: Grid) -> Floats:
    """Return log likelihood ratios with sigma known, averaged over slopes."""
    w, x = _recursive(y)
    score, size = np.cumsum(w * x, axis=1), np.cumsum(x * x)
    each = np.stack([b * score - b * b * size / 2 for b in slopes])
    return np.asarray(scipy.special.logsumexp(each, axis=0) - math.log(len(slopes)))


def _student(y: Floats, slopes: Grid) -> Floats:
    """Return log likelihood ratios of what is left when the scale means nothing either, averaged over slopes."""
    w, x = _recursive(y)
    cosine = np.cumsum(w * x, axis=1) / np.sqrt(np.cumsum(w * w, axis=1))
    size = np.cumsum(x * x)
    each = np.empty((len(slopes), *w.shape))
    for index, b in enumerate(slopes):
        for m in range(1, w.shape[1] + 1):
            flat = log_moment(np.zeros(1), m)
            each[index, :, m - 1] = (
                log_moment(b * cosine[:, m - 1], m) - flat - b * b * size[m - 1] / 2
            )
    return np.asarray(scipy.special.logsumexp(each, axis=0) - math.log(len(slopes)))


def log_moment(c: Floats, m: int) -> Floats:
    """Return log of the integral of v^(m-1) exp(-v²/2 + cv) over v > 0: I(m+1) = c I(m) + (m-1) I(m-1)."""
    total = c * c / 2 + math.log(2 * math.pi) / 2 + scipy.special.log_ndtr(c)
    ratio = np.maximum(c + np.exp(-total), 1e-12)
    for k in range(1, m):
        total = total + np.log(ratio)
        ratio = np.maximum(c + k / ratio, 1e-12)
    return np.asarray(total)


def _energy(y: Floats) -> Floats:
    """Return the greatest scaled energy distance of two parts over all splits that leave two values on either side."""
    runs, n = y.shape
    best = np.zeros(runs)
    whole = _mean_distance(np.sort(y, axis=1)) * n * n
    for split in range(2, n - 1):
        a, b = np.sort(y[:, :split], axis=1), np.sort(y[:, split:], axis=1)
        within_a, within_b = _mean_distance(a), _mean_distance(b)
        m, k = split, n - split
        between = (whole - within_a * m * m - within_b * k * k) / (2 * m * k)
        energy = 2 * between - within_a * m / (m - 1) - within_b * k / (k - 1)
        best = np.maximum(best, energy * m * k / n)
    return best


def _mean_distance(ordered: Floats) -> Floats:
    """Return the mean distance of all pairs (a value with itself too) of sorted rows."""
    n = ordered.shape[1]
    weight = 2 * np.arange(n) - n + 1
    return np.asarray(2 * (ordered * weight).sum(1) / n**2)
