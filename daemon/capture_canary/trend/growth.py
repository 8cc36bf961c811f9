"""From a series of captures to its growth: of copies, exactly; of time, with bounds.

Capture 1 carries set-up and is never judged; neither are captures that failed or that overlapped others.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple

from capture_canary.model import Capture, Estimate, Growth, Series
from capture_canary.trend import law, slope

Trend = Literal["growing", "flat", "irregular"]

FIRST_JUDGED = 2
"""Order of the first capture that counts."""
SLOW_STEPS = 3
"""Rises in a row that make a growth below the law's rate believable: copies carry no noise, servers do."""
MAX_TIMED = 256
"""Captures of a series whose times are used, the newest: the number of pairs grows with the square."""
REPORT_ALPHA = 0.025
"""Chance for each of the reported bounds of a time growth to be wrong: together a 95 % interval."""


class Counted(NamedTuple):
    """A judged capture with what it copied and how many collectives it and those before it hold (None: not known)."""

    order: int
    copies: int
    k: int | None
    tags_before: int | None


def judged(series: Series) -> list[Capture]:
    """Return the captures that count, in order."""
    return [
        capture
        for order, capture in _in_order(series)
        if order >= FIRST_JUDGED and capture.outcome == "ok" and not capture.ambiguous
    ]


def counted(series: Series) -> list[Counted]:
    """Return the judged captures whose copies were counted.

    A graph without collectives says nothing of the lists, so it is left out.
    """
    good = {capture.order for capture in judged(series)}
    points: list[Counted] = []
    usual = _mean([k for one in series.captures if (k := _collectives(series, one)) is not None])
    tags: int | None = 0
    last = 0
    for order, capture in _in_order(series):
        k = _collectives(series, capture)
        before = None
        if tags is not None and k is not None:
            # Captures that nobody recorded count as those that were: servers capture in rounds of the same graphs.
            before = tags + round(usual * (order - last - 1))
            tags = before + k
        else:
            tags = None
        if order in good and capture.h2d_copies is not None and k != 0:
            points.append(Counted(order, capture.h2d_copies, k, before))
        last = order
    return points


def copies_trend(series: Series) -> Trend | None:
    """Whether each further capture makes more H2D copies; None where it is too early to say.

    By the law a step from one capture to the next is (P + S)·k² copies with P + S of at least 1, so a step of k² is
    growth and three captures decide. A smaller rise, or one with k unknown, must come several times in a row.
    """
    points = counted(series)
    steps = list(pairwise(points))
    if not steps:
        return None
    rises = [_rise(*step) for step in steps]
    if all(_law_sized(*step) for step in steps) or (
        len(steps) >= SLOW_STEPS and all(rise > 0 for rise in rises)
    ):
        return "growing"
    net = _rise(points[0], points[-1])
    if net <= 0:
        return "flat"
    if len(steps) < SLOW_STEPS:
        return None
    return "flat" if net < _one_step(points[0], points[-1]) else "irregular"


def matches_law(series: Series) -> bool | None:
    """Whether the counted copies are exactly those of the growth law; None where that cannot be said."""
    points = [
        law.Point(point.tags_before, point.k, point.copies)
        for point in counted(series)
        if point.k is not None and point.tags_before is not None
    ]
    return law.matches(points)


def copies_growth(series: Series) -> Estimate | None:
    """Return the copies that each further capture adds: the median step, and the least and greatest as bounds.

    A step is from one capture to the next with as many collectives: the pieces of a model differ in these.
    """
    points = counted(series)
    alike: defaultdict[int | None, list[Counted]] = defaultdict(list)
    for point in points:
        alike[point.k].append(point)
    steps = [
        (after.copies - before.copies) / (after.order - before.order)
        for same in alike.values()
        for before, after in pairwise(same)
    ]
    if not steps:
        return None
    return Estimate(
        estimate=median(steps),
        lower=min(steps),
        upper=max(steps),
        n=len(points),
        method="integer-steps",
    )


def seconds_growth(series: Series, *, alpha: float = REPORT_ALPHA) -> Estimate | None:
    """Return the seconds that each further capture adds; alpha is the chance for either bound to be wrong.

    None where too few captures of the same shape were made for such bounds.
    """
    shapes: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for capture in judged(series)[-MAX_TIMED:]:
        shapes[capture.shape].append((capture.order, capture.seconds))
    found = slope.theil_sen(list(shapes.values()), alpha=alpha)
    if found is None:
        return None
    return Estimate(
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        n=found.n,
        method="theil-sen",
    )


def worst(series: Sequence[Series], *, arm: str = "as_configured") -> Growth:
    """Return the growth of the series of one arm that grows most, by copies where these were counted."""
    best: tuple[tuple[float, float], int] | None = None
    for index, one in enumerate(series):
        copies, seconds = copies_growth(one), seconds_growth(one)
        if one.arm != arm or (copies is None and seconds is None):
            continue
        rank = (
            copies.estimate if copies else float("-inf"),
            seconds.estimate if seconds else float("-inf"),
        )
        if best is None or rank > best[0]:
            best = (rank, index)
    if best is None:
        return Growth(copies=None, seconds=None, series=None)
    index = best[1]
    return Growth(
        copies=copies_growth(series[index]), seconds=seconds_growth(series[index]), series=index
    )


def growing(series: Iterable[Series]) -> bool | None:
    """Whether the copies of any of these series grow; None where it is too early, or not possible, to say."""
    trends = [copies_trend(one) for one in series]
    if "growing" in trends:
        return True
    return False if trends and all(trend == "flat" for trend in trends) else None


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _in_order(series: Series) -> list[tuple[int, Capture]]:
    return sorted({capture.order: capture for capture in series.captures}.items())


def _collectives(series: Series, capture: Capture) -> int | None:
    return sum(capture.collectives.values()) if capture.collectives else series.collectives


def _rise(before: Counted, after: Counted) -> int:
    """How much more copies the later capture made, both brought to the same number of collectives."""
    if before.k is None or after.k is None:
        return after.copies - before.copies
    return after.copies * before.k - before.copies * after.k


def _law_sized(before: Counted, after: Counted) -> bool:
    """Whether copies a collective rose by at least one for each tag listed in between, the law's least slope.

    With the same k in both captures that is a step of k² or more a capture.
    """
    if before.k is None or after.k is None:
        return False
    if before.tags_before is None or after.tags_before is None:
        return False
    tags = 2 * (after.tags_before - before.tags_before) + after.k - before.k
    return 2 * _rise(before, after) >= before.k * after.k * tags


def _one_step(before: Counted, after: Counted) -> float:
    """The least rise that one step of the law would have left between these captures."""
    if before.k is None or after.k is None:
        return 0
    return before.k * after.k * (before.k + after.k) / 2
