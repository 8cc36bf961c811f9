"""From what was measured to the verdict: the first row of the table that answers, with impact, growth and time."""

from collections.abc import Mapping, Sequence

from capture_canary.model import ArmName, Evidence, Judgement, Series
from capture_canary.trend import growth
from capture_canary.trend.case import Case, kinds_of
from capture_canary.trend.impact import GRAPHS_PER_LOAD, impact
from capture_canary.trend.rows import ROWS

FLOOR_SECONDS = 1e-3
"""Growth of time, a capture, below which nobody would care."""
FLOOR_RATIO = 0.01
"""The same as a share of what a capture takes."""


def judge(
    series: Sequence[Series],
    *,
    ranks: int,
    hcomm: str | None,
    soc: str | None,
    configured_mode: str | None,
    control: Sequence[int | None] | None,
    arm_failures: Mapping[ArmName, str],
    mode_source: str = "configuration",
    copies_expected: bool = True,
    evidence: Evidence = "probe",
    graphs_per_load: int = GRAPHS_PER_LOAD,
    collectives_per_graph: int | None = None,
    floor_seconds: float = FLOOR_SECONDS,
    floor_ratio: float = FLOOR_RATIO,
    repeated_after: float | None = None,
    rounds: int = 1,
) -> Judgement:
    """Judge what was measured. Never raises for what the records hold, and never calls the unknown healthy.

    Args:
        series: every series of every arm, complete or not; those of `as_configured` are judged, the others attribute.
        ranks: how many ranks each kind of series should have, numbered from 0.
        hcomm: its version as its package spells it; None where not known.
        soc: name or family of the SoC; None where not known.
        configured_mode: HCCL_OP_EXPANSION_MODE of the node's servers; None where it is not set.
        control: copies that the eager positive control was seen to make, one number a rank and arm run; None for a
            rank where it did not run, None as a whole where none did.
        arm_failures: arms that ended otherwise than by having measured enough, each with the reason in words.
        mode_source: who said `configured_mode`, for the reason.
        copies_expected: whether copies were to be counted; False for log lines, or where no preload is allowed.
        evidence: where the records come from.
        graphs_per_load: graphs that the server captures at a load, for the impact.
        collectives_per_graph: collectives in one of the server's graphs; None takes the measured ones.
        floor_seconds: growth of time in s a capture that is worth a verdict.
        floor_ratio: the same as a share of a capture's time; the greater of the two holds.
        repeated_after: seconds since an earlier probe of this stack found its time growing too; None without one.
        rounds: how often each shape was to be captured, at most.
    """
    case = Case(
        series=tuple(series),
        ranks=ranks,
        hcomm=hcomm,
        soc=soc,
        configured_mode=configured_mode or None,
        mode_source=mode_source,
        control=control,
        arm_failures=arm_failures,
        copies_expected=copies_expected,
        evidence=evidence,
        kinds=kinds_of(series, evidence),
        floor_seconds=floor_seconds,
        floor_ratio=floor_ratio,
        repeated_after=repeated_after,
        rounds=rounds,
    )
    found = next(finding for row in ROWS if (finding := row(case)) is not None)
    return Judgement(
        verdict=found.verdict,
        cause=found.cause,
        reason=found.reason,
        impact=impact(
            case.own, graphs_per_load=graphs_per_load, collectives_per_graph=collectives_per_graph
        )
        if found.verdict == "degraded"
        else None,
        matches_law=case.matches_law,
        growth=growth.worst(series),
        time=case.time,
    )
