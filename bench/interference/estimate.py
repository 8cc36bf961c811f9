"""From blocks to ratios with their intervals, and the tables of what was found."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.interference.taken import Held, OfAProbe
from bench.interference.victim import Block, Cost
from scipy import stats

from capture_canary.config import Config

DAY = 86_400.0
PHASES = Block._fields
MEASURES: dict[str, Callable[[Cost], float]] = {
    "time": lambda cost: cost.seconds,
    "median": lambda cost: cost.typical,
    "CPU": lambda cost: cost.cpu,
}
LIMIT = 0.01


class Ratio(NamedTuple):
    """With the bounds of its 95 % interval."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it as a table has it."""
        return f"{self.middle:.3f} ({self.low:.3f} to {self.high:.3f})"

    def over(self, duty: float) -> "Ratio":
        """Return the ratio of a day of which this holds for a share."""
        return Ratio(*(1 + duty * (one - 1) for one in self))


class Quads:
    """The logs of ratios, a list a turn for each condition, phase and measure."""

    def __init__(self) -> None:
        """Have none."""
        self._turns: list[dict[tuple[str, str, str], list[float]]] = []

    def next_turn(self) -> None:
        """Begin another turn."""
        self._turns.append({})

    def add(self, condition: str, without: Sequence[Block], beside: Sequence[Block]) -> None:
        """Add blocks that belong together."""
        for phase in PHASES:
            for name, of in MEASURES.items():
                logs = [
                    statistics.fmean(math.log(of(getattr(block, phase))) for block in blocks)
                    for blocks in (beside, without)
                ]
                self._turns[-1].setdefault((condition, phase, name), []).append(logs[0] - logs[1])

    def conditions(self) -> list[str]:
        """Return their names."""
        return [*dict.fromkeys(key[0] for turn in self._turns for key in turn)]

    def ratio(self, condition: str, phase: str, measure: str) -> Ratio:
        """Return the geometric mean over turns, of each the median: what else a machine does has heavy tails.

        A turn is one observation, as blocks of one process go together.
        """
        means = [statistics.median(turn[condition, phase, measure]) for turn in self._turns]
        middle = statistics.fmean(means)
        error = statistics.stdev(means) / math.sqrt(len(means))
        half = float(stats.t.ppf(0.975, len(means) - 1)) * error
        return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


class Found(NamedTuple):
    """All that was found."""

    quads: Quads
    held: Held
    probe: OfAProbe
    cpu_a_day: float
    """Of a daemon that observes."""
    busy: float
    """Share of a core that it took in the blocks beside it."""


def report(found: Found) -> None:
    """Print the tables."""
    columns = [(phase, measure) for phase in PHASES for measure in MEASURES]
    heads = " | ".join(f"{phase}: {measure}" for phase, measure in columns)
    print(f"| beside the victim | {heads} |\n|{' --- |' * (1 + len(columns))}")
    for name in sorted(found.quads.conditions()):
        cells = [str(found.quads.ratio(name, *column)) for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")
    over_a_day(found)
    taken(found)


def over_a_day(found: Found) -> None:
    """Print what a day costs the victim: slowdowns times the share of time; of the daemon, that of its CPU time."""
    gate, probe = Config().gate, Config().probe
    duties = {
        "default schedule, the probes' measured time": found.probe.device_seconds
        / probe.ranks
        / float(probe.interval),
        "default schedule, each probe up to its deadline": float(probe.deadline)
        / float(probe.interval),
        "the whole default budget": float(gate.budget) / probe.ranks / DAY,
    }
    rows = [("a probe, on another core", *duty) for duty in duties.items()] + [
        ("a probe, cores shared", *duty) for duty in duties.items()
    ]
    usual = found.cpu_a_day / DAY
    what = f"{usual:.3%} of a core, as in a day, not {found.busy:.0%} as in these blocks"
    rows.append(("the daemon, observing", what, usual / found.busy))
    print("\n| slowdown over a day | share of time | capture | replay | under 1 % |")
    print("| --- | --- | --- | --- | --- |")
    for name, what, duty in rows:
        ratios = [found.quads.ratio(name, phase, "time").over(duty) for phase in PHASES]
        slow = [f"{one.middle - 1:+.4%} (to {one.high - 1:+.4%})" for one in ratios]
        under = all(one.high - 1 < LIMIT for one in ratios)
        print(f"| {name}; {what} | {duty:.4%} | {' | '.join(slow)} | {'yes' if under else 'NO'} |")


def taken(found: Found) -> None:
    """Print what we take."""
    probes = DAY / float(Config().probe.interval)
    held, probe = found.held, found.probe
    rows = {
        "NPUs of a probe": " ".join(map(str, sorted(held.npus))),
        "its HBM on one of them, MB": f"{held.hbm_mb:.1f}",
        "its streams on one of them, of 1984": f"{held.streams}",
        "its ports; those of them that a server's HCCL takes by default": f"{held.ports}; "
        f"{len(held.fixed_ports)}",
        "device-seconds of a probe": f"{probe.device_seconds:.2f}",
        "device-seconds a day, default schedule": f"{probes * probe.device_seconds:.1f}",
        "CPU seconds of a probe, gate included": f"{probe.cpu:.2f}",
        "CPU seconds a day: observing; probing": f"{found.cpu_a_day:.0f}; {probes * probe.cpu:.0f}",
    }
    print(f"\n| what we take (most of {held.looks} looks; mean of {probe.probes} probes) | |")
    print("| --- | --- |")
    for what, value in rows.items():
        print(f"| {what} | {value} |")
