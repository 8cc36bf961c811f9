"""A robust slope with distribution-free bounds: Theil-Sen over several groups that share a slope, not an intercept."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

EXACT_PAIRS = 600
"""Pairs up to which the order of the slopes is counted exactly; beyond, a normal tail, which is wider, stands in."""


class Slope(NamedTuple):
    """A slope: the true one lies below `lower` with probability alpha at most, and above `upper` likewise."""

    estimate: float
    lower: float
    upper: float
    n: int
    """Points that took part."""


def theil_sen(groups: Sequence[Sequence[tuple[float, float]]], *, alpha: float) -> Slope | None:
    """Return the median of the slopes of all pairs within a group.

    The bounds hold for any noise that is as likely in one order as in another within each group (Sen 1968); each
    group keeps an intercept of its own. Within a group all x must differ.

    Returns:
        None where too few points are given for bounds at this alpha.
    """
    used = [group for group in groups if len(group) > 1]
    slopes = sorted(
        (y2 - y1) / (x2 - x1) for group in used for (x1, y1), (x2, y2) in combinations(group, 2)
    )
    cut = discordant_quantile([len(group) for group in used], alpha)
    if cut is None or not slopes:
        return None
    middle = len(slopes) // 2
    median = slopes[middle] if len(slopes) % 2 else (slopes[middle - 1] + slopes[middle]) / 2
    return Slope(median, slopes[cut], slopes[-1 - cut], sum(map(len, used)))


def discordant_quantile(sizes: Sequence[int], alpha: float) -> int | None:
    """Return the largest d such that d or fewer pairs in falling order are a chance of alpha at most.

    The slopes below the true one are the pairs in falling order once that slope is taken out.
    """
    pairs = sum(n * (n - 1) // 2 for n in sizes)
    if pairs > EXACT_PAIRS:
        return _normal_quantile(sizes, pairs, alpha)
    counts = [1]
    for size in sizes:
        for n in range(2, size + 1):
            counts = _times_uniform(counts, n)
    total, seen, quantile = sum(counts), 0, None
    for falling, count in enumerate(counts):
        seen += count
        if seen > alpha * total:
            break
        quantile = falling
    return quantile


def _times_uniform(counts: Sequence[int], n: int) -> list[int]:
    """Return how often each sum of falling pairs occurs once an n-th point may take any of n places."""
    sums: list[int] = []
    window = 0
    for total in range(len(counts) + n - 1):
        window += counts[total] if total < len(counts) else 0
        window -= counts[total - n] if total >= n else 0
        sums.append(window)
    return sums


def _normal_quantile(sizes: Sequence[int], pairs: int, alpha: float) -> int | None:
    """Kendall's statistic is less heavy in its tails than a normal one of its variance: bounds stay valid."""
    deviation = math.sqrt(sum(n * (n - 1) * (2 * n + 5) / 72 for n in sizes))
    cut = math.floor(pairs / 2 + NormalDist().inv_cdf(alpha) * deviation - 1)
    return cut if cut >= 0 else None
