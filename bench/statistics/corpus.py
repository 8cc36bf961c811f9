"""Real noise: captures of the emulated CANN on this machine, idle and busy, judged by time alone at a floor of zero."""

import math
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from capture_canary.model import Report, Series
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.probe.messages import Kind
from capture_canary.trend.growth import copies_trend
from capture_canary.trend.timed import ALPHA, SeriesTest, rounds_per_unit

ROUNDS = 40
SERIES = 8
"""Series that a verdict judges: two kinds of collectives with graphs kept and destroyed, on two ranks."""
DESTROYED = (
    Kind(collective="AllReduce", graphs="destroyed"),
    Kind(collective="AllGather", graphs="destroyed"),
)


class Quiet(NamedTuple):
    """What a stack without growth came to."""

    captures: int
    series: int
    alarms: int
    loose: int
    """Series that would alarm at an alpha of 1 in 1000."""
    highest: float
    """Greatest statistic, and what it takes at 1e-6 a verdict."""
    bound: float
    load: float
    seconds: float

    @property
    def proves(self) -> float:
        """Return the upper limit (95 %) of false alarms a series."""
        return 1 - 0.05 ** (1 / self.series) if not self.alarms else math.nan


class Loud(NamedTuple):
    """After how many captures growth is found, by rank."""

    by_copies: list[int | None]
    by_time: list[int | None]
    slope: float
    """Of time, s a capture."""
    noise: float


@contextmanager
def busy() -> Iterator[None]:
    """Keep every core at work meanwhile."""
    workers = [
        multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
        for _ in range(os.cpu_count() or 1)
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _spin() -> None:
    while True:
        sum(range(10_000))


def quiet(emulate: str, mode: str | None, captures: int) -> Quiet:
    """Capture until there are as many, and judge each series by itself."""
    begin, made, highest, alarms, loose, series = time.monotonic(), 0, -math.inf, 0, 0, 0
    loads = []
    bound = math.log(SERIES / ALPHA)
    while made < captures:
        for one in _probe(emulate, mode, collectives=4, rounds=ROUNDS).series:
            made += len(one.captures)
            series += 1
            top = max(_statistics(_test(one, ROUNDS), one), default=0.0)
            highest, alarms, loose = (
                max(highest, top),
                alarms + (top >= bound),
                loose + (top >= math.log(1000)),
            )
        loads.append(os.getloadavg()[0])
    return Quiet(
        made,
        series,
        alarms,
        loose,
        highest,
        bound,
        sum(loads) / len(loads),
        time.monotonic() - begin,
    )


def loud(emulate: str, rounds: int) -> Loud:
    """Capture a stack that grows as little as it can, and tell after how many captures that is seen."""
    found = Loud([], [], 0.0, 0.0)
    slope = noise = 0.0
    for one in _probe(emulate, None, collectives=1, rounds=rounds, kinds=DESTROYED[:1]).series:
        test = _test(one, rounds)
        passed = [
            count
            for count, statistic in enumerate(_statistics(test, one), 1)
            if statistic >= math.log(SERIES / ALPHA)
        ]
        found.by_time.append(passed[0] if passed else None)
        found.by_copies.append(_by_copies(one))
        result = test.result(0)
        if result.growth and result.noise:
            slope, noise = result.growth.estimate, result.noise
    return found._replace(slope=slope, noise=noise)


def _by_copies(series: Series) -> int | None:
    for count in range(1, len(series.captures) + 1):
        part = msgspec.structs.replace(series, captures=series.captures[:count])
        if copies_trend(part) == "growing":
            return count
    return None


def _probe(
    emulate: str,
    mode: str | None,
    *,
    collectives: int,
    rounds: int,
    kinds: tuple[Kind, ...] = DESTROYED,
) -> Report:
    settings = ProbeSettings(
        collectives=collectives,
        rounds=rounds,
        kinds=kinds,
        arms=("as_configured",),
        mode=mode,
        full=True,
        budget_seconds=600.0,
    )
    base = base_environment(os.environ, emulate)
    return Probe(settings, base, emulated=True, observe=lambda _event: None).run()


def _statistics(test: SeriesTest, series: Series) -> list[float]:
    """Return the evidence after each capture."""
    found = [0.0]
    for capture in series.captures:
        test.add(capture)
        found.append(test.statistic)
    return found[1:]


def _test(series: Series, rounds: int) -> SeriesTest:
    return SeriesTest(
        {capture.shape for capture in series.captures},
        floor_seconds=0.0,
        floor_ratio=0.0,
        alpha=ALPHA / SERIES,
        rounds_per_unit=rounds_per_unit(rounds),
    )
