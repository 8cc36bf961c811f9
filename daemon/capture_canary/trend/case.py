"""What a verdict is judged from: the records and what is known of the stack, with the questions the rows ask."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from capture_canary.model import ArmName, Evidence, GraphsFate, Series, TimeTest
from capture_canary.stack import exposure, versions
from capture_canary.trend import growth, timed

Kind = tuple[str, GraphsFate]
"""Collective and fate of its graphs."""

PROBE_KINDS: tuple[Kind, ...] = (
    ("AllReduce", "kept"),
    ("AllReduce", "destroyed"),
    ("AllGather", "kept"),
    ("AllGather", "destroyed"),
)
"""Every kind that a stack can grow in: PR 2405 alone leaves kept AllGather growing and nothing else."""

MIN_CAPTURES = 3
"""The first is set-up; the step between the next two decides."""


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One measurement, ready to be judged; the arguments of `verdict.judge` say what the fields are."""

    series: tuple[Series, ...]
    ranks: int
    hcomm: str | None
    soc: str | None
    configured_mode: str | None
    mode_source: str
    control: Sequence[int | None] | None
    arm_failures: Mapping[ArmName, str]
    copies_expected: bool
    evidence: Evidence
    kinds: tuple[Kind, ...]
    floor_seconds: float
    floor_ratio: float
    repeated_after: float | None
    rounds: int
    told: TimeTest | None = None
    """What time alone said when the measurement was judged first; None: to be found now."""

    @cached_property
    def own(self) -> list[Series]:
        """The series under the mode that the node's servers have."""
        return self.arm("as_configured")

    def arm(self, name: ArmName) -> list[Series]:
        """Return the series of one arm."""
        return [one for one in self.series if one.arm == name]

    @cached_property
    def copies_grow(self) -> bool:
        """Whether any series under the servers' mode grows by copies."""
        return growth.growing(self.own) is True

    @cached_property
    def growing_kinds(self) -> list[Kind]:
        """The kinds that grow under the servers' mode."""
        return [kind for kind in self.kinds if growth.growing(_of_kind(self.own, kind)) is True]

    @cached_property
    def mode(self) -> str | None:
        """The mode set: as configured, else as HCCL saw it first, else none."""
        seen = {one.mode for one in self.own if one.mode}
        return self.configured_mode or (seen.pop() if len(seen) == 1 else None)

    @cached_property
    def mode_in_force(self) -> str | None:
        """The mode that HCCL should run in, the SoC's default included."""
        return exposure.effective_mode(self.mode, self.soc)

    @cached_property
    def exposure(self) -> exposure.Exposure:
        """Whether the stack has the fault, by the table of what is known of its parts."""
        return exposure.exposure(soc=self.soc, hcomm=self.hcomm, mode=self.mode)

    @cached_property
    def fixed(self) -> bool:
        """Whether hcomm is a version that should not grow."""
        return versions.at_least(self.hcomm, exposure.FIXED) is True

    @cached_property
    def matches_law(self) -> bool | None:
        """Whether all series that grow meet the growth law; None where none grows or none can be told."""
        fits = [
            growth.matches_law(one) for one in self.own if growth.copies_trend(one) == "growing"
        ]
        return None if not fits or None in fits else all(fits)

    @cached_property
    def time(self) -> TimeTest | None:
        """What time alone says of the servers' mode, by the series that says most."""
        if self.told is not None:
            return self.told
        alpha = timed.alpha_each(len(self.own), kinds=len(self.kinds), ranks=self.ranks)
        tests = [
            timed.examine(
                one,
                index=index,
                alpha=alpha,
                floor_seconds=self.floor_seconds,
                floor_ratio=self.floor_ratio,
                rounds=self.rounds,
            )
            for index, one in enumerate(self.series)
            if one.arm == "as_configured"
        ]
        return max(
            tests,
            key=lambda test: (
                test.decision == "grows",
                test.paired,
                test.statistic,
                test.growth.lower if test.growth else 0.0,  # at their bounds all are alike
            ),
            default=None,
        )

    @property
    def time_growth(self) -> TimeTest | None:
        """The same where time grows, for all that can be told without counted copies."""
        return self.time if self.time and self.time.decision == "grows" else None

    def missing_ranks(self) -> list[int]:
        """Return the ranks of which no capture under the servers' mode has arrived."""
        seen = {one.rank for one in self.own if one.captures}
        return [rank for rank in range(self.ranks) if rank not in seen]

    def flat(self, name: ArmName, kinds: Sequence[Kind]) -> bool:
        """Whether an arm was measured flat, for every rank, in all these kinds."""
        return bool(kinds) and self.ranks > 0 and not self.shortfalls(name, kinds)

    def shortfalls(self, name: ArmName, kinds: Sequence[Kind]) -> list[str]:
        """Return, in words, what keeps an arm from being flat in these kinds; nothing where it is."""
        found: list[str] = []
        for kind in kinds:
            of_kind = _of_kind(self.arm(name), kind)
            for rank in range(self.ranks):
                where = f"{_words(kind)} of rank {rank}"
                of_rank = [one for one in of_kind if one.rank == rank]
                found += [f"{where} is missing"] if not of_rank else []
                found += [f"{where} {flaw}" for one in of_rank for flaw in _flaws(one)]
        return found


_TREND_FLAWS: dict[growth.Trend | None, list[str]] = {
    "flat": [],
    "growing": ["grows"],
    "irregular": ["rises, but not with every capture"],
    None: ["has too few captures to tell"],
}


def kinds_of(series: Sequence[Series], evidence: Evidence) -> tuple[Kind, ...]:
    """Return the kinds that must be flat: for a probe all there are, for a server those that it has."""
    if evidence == "probe":
        return PROBE_KINDS
    return tuple(dict.fromkeys((one.collective, one.graphs) for one in series))


def _of_kind(series: Sequence[Series], kind: Kind) -> list[Series]:
    return [one for one in series if (one.collective, one.graphs) == kind]


def _words(kind: Kind) -> str:
    return f"{kind[0]} with graphs {kind[1]}"


def _flaws(series: Series) -> list[str]:
    """What keeps one series from being flat."""
    failed = [c.order for c in series.captures if c.outcome == "failed"]
    ambiguous = [c.order for c in series.captures if c.ambiguous]
    uncounted = [c.order for c in series.captures if c.h2d_copies is None]
    if failed:
        return [f"failed at capture {failed[0]}"]
    if ambiguous:
        return [f"overlapped other captures from capture {ambiguous[0]} on"]
    if len(series.captures) < MIN_CAPTURES:
        return [f"has {len(series.captures)} of {MIN_CAPTURES} captures"]
    if uncounted:
        return ["has captures without counted copies"]
    return _TREND_FLAWS[growth.copies_trend(series)]
