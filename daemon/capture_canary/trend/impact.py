"""What the growth adds to one load of a server: seconds, from the time that copies were measured to take."""

from collections.abc import Sequence

from capture_canary.model import Impact, Series
from capture_canary.trend.growth import copies_growth, copies_trend, counted, judged

GRAPHS_PER_LOAD = 35
"""Graphs that a load is assumed to capture where the server's own number is not known."""
NEGLIGIBLE_SECONDS = 1.0
"""Below this a load is not worth an alert."""


def impact(
    series: Sequence[Series],
    *,
    graphs_per_load: int = GRAPHS_PER_LOAD,
    collectives_per_graph: int | None = None,
) -> Impact:
    """Return what the series that grows most would add to a load.

    Args:
        series: those of one arm; the ones that do not grow are left aside.
        graphs_per_load: graphs that the server captures while it loads.
        collectives_per_graph: collectives in one of them (2 a layer and one more, as a rule); the growth goes with
            their square. None takes graphs like the measured ones.
    """
    rising = [one for one in series if copies_trend(one) == "growing"]
    price = seconds_per_copy(rising)
    steps = [
        growth.estimate * _scale(one, collectives_per_graph)
        for one in rising
        if (growth := copies_growth(one)) is not None
    ]
    if price is None or not steps:
        return Impact(
            seconds_per_load=None, graphs=graphs_per_load, collectives=collectives_per_graph
        )
    added_copies = max(steps) * graphs_per_load * (graphs_per_load - 1) / 2
    return Impact(
        seconds_per_load=added_copies * price,
        graphs=graphs_per_load,
        collectives=collectives_per_graph,
    )


def negligible(found: Impact | None, *, floor_seconds: float = NEGLIGIBLE_SECONDS) -> bool:
    """Whether a load would hardly notice. An impact that is not known is not negligible."""
    return (
        found is not None
        and found.seconds_per_load is not None
        and found.seconds_per_load < floor_seconds
    )


def seconds_per_copy(series: Sequence[Series]) -> float | None:
    """Return what one copy more costs: the added time over the added copies, so that set-up copies cancel out.

    Where noise hides that, the mean over all copies.
    """
    added_copies = added_seconds = copies = seconds = 0.0
    for one in series:
        if timed := _timed(one):
            (first, began), (last, ended) = timed[0], timed[-1]
            added_copies += last - first
            added_seconds += ended - began
            copies += sum(count for count, _ in timed)
            seconds += sum(took for _, took in timed)
    if added_copies > 0 and added_seconds > 0:
        return added_seconds / added_copies
    return seconds / copies if copies > 0 else None


def _timed(series: Series) -> list[tuple[int, float]]:
    """The copies of each capture that counts, and the seconds that they took."""
    orders = {point.order for point in counted(series)}
    return [
        (one.h2d_copies, one.copy_seconds)
        for one in judged(series)
        if one.order in orders and one.h2d_copies is not None and one.copy_seconds is not None
    ]


def _scale(series: Series, collectives: int | None) -> float:
    """How much steeper the growth is with the server's number of collectives than with the measured one."""
    last = counted(series)[-1].k
    return 1.0 if collectives is None or last is None else (collectives / last) ** 2
