"""Likelihood ratios of ranks, exact: normal noise with a slope against noise without."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from bench.statistics.vectorised import Floats

STEP = 0.1
"""Of the quadrature, in sigma."""
TAIL = 5.5
CHUNK = 200


class Paths(NamedTuple):
    """Series with a slope, as their ranks tell of them."""

    ratios: Floats
    """Log likelihood ratio of the order of the first n values: by series and n - 1."""
    places: Floats
    """Log chance, given the order before, of each place of the n-th value: by series, n - 1 and place."""


def draw(slope: float, count: int, runs: int, rng: np.random.Generator) -> Paths:
    """Return series of this many values."""
    level = slope * np.arange(count)
    grid = np.arange(-TAIL, level[-1] + TAIL + STEP, STEP)
    density = np.exp(-((grid - level[:, None]) ** 2) / 2) / math.sqrt(2 * math.pi)
    ratios = np.zeros((runs, count))
    places = np.full((runs, count, count), -np.inf)
    places[:, 0, 0] = 0.0
    for begin in range(0, runs, CHUNK):
        part = slice(begin, min(begin + CHUNK, runs))
        values = rng.standard_normal((part.stop - begin, count)) + level
        for n in range(1, count):
            before = values[:, :n]
            chances = _insertions(density, np.argsort(before, axis=1), n)
            place = (before < values[:, n : n + 1]).sum(1)
            places[part, n, : n + 1] = chances
            ratios[part, n] = (
                ratios[part, n - 1] + math.log(n + 1) + chances[np.arange(len(place)), place]
            )
    return Paths(ratios, places)


def _insertions(density: Floats, order: npt.NDArray[np.int64], new: int) -> Floats:
    """Return the log chance of each place of a new value, given which of those before it are in which order.

    Below y lie, in their order, the values up to the place, above it the others: both by one integral after another.
    """
    runs, n = order.shape
    below = np.ones((n + 1, runs, density.shape[1]))
    for k in range(n):
        below[k + 1] = _integral(density[order[:, k]] * below[k])
    above = np.ones_like(below[0])
    chances = np.empty((runs, n + 1))
    for k in range(n, -1, -1):
        chances[:, k] = (density[new] * below[k] * above).sum(1)
        if k:
            above = _integral((density[order[:, k - 1]] * above)[:, ::-1])[:, ::-1]
    chances = np.maximum(chances, 1e-300)
    return np.asarray(np.log(chances / chances.sum(1, keepdims=True)))


def _integral(values: Floats) -> Floats:
    """Return the integral up to each point, by cubics through four neighbours."""
    padded = np.pad(values, [(0, 0), (1, 1)])
    inner, outer = padded[:, 1:-2] + padded[:, 2:-1], padded[:, :-3] + padded[:, 3:]
    whole = np.zeros_like(values)
    np.cumsum(STEP / 24 * (13 * inner - outer), axis=1, out=whole[:, 1:])
    return np.maximum(whole, 0.0)
