"""A straight line through points, by least squares: its slope with a 95 % interval, and how straight the points lie."""

import math
from collections.abc import Sequence
from typing import NamedTuple

INSIDE = 0.95
"""Share of fits whose interval holds the true slope."""
FEWEST = 3


class Line(NamedTuple):
    """A fitted line; the interval is that of Student's t, for noise that is independent and alike in all points."""

    slope: float
    intercept: float
    lower: float
    upper: float
    r2: float | None
    """Share of the variance that the line explains; None where there is none."""
    n: int


def fit(points: Sequence[tuple[float, float]]) -> Line | None:
    """Return the line through the points; None where they are fewer than three or above one another."""
    n = len(points)
    if n < FEWEST:
        return None
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    sxx = sum((x - mean_x) ** 2 for x, _ in points)
    syy = sum((y - mean_y) ** 2 for _, y in points)
    if sxx == 0:
        return None
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sxx
    intercept = mean_y - slope * mean_x
    residual = sum((y - intercept - slope * x) ** 2 for x, y in points)
    half = _t(n - 2) * (residual / (n - 2) / sxx) ** 0.5
    r2 = 1 - residual / syy if syy else None
    return Line(slope, intercept, slope - half, slope + half, r2, n)


def _t(df: int) -> float:
    """Student's t, 2.5 % above it."""
    low, high = 0.0, 16.0  # it is 12.7 with one degree of freedom
    while high - low > 1e-9:  # noqa: PLR2004 - more digits than any interval is shown with
        middle = (low + high) / 2
        if _within(middle, df) < INSIDE:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, df: int) -> float:
    """Return the chance that Student's t lies within -t and t: Abramowitz and Stegun 26.7.3 and 26.7.4, exact."""
    angle = math.atan(t / math.sqrt(df))
    cosine, odd = math.cos(angle), df % 2
    term = total = math.sin(angle) * cosine**odd if df > 1 else 0.0
    for k in range(1 + odd, df - 2, 2):
        term *= cosine**2 * k / (k + 1)
        total += term
    return (angle + total) * 2 / math.pi if odd else total
