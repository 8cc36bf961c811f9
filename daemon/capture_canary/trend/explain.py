"""How a report came to its verdict: the rows of the table asked again, and what each series says. No I/O."""

from collections.abc import Mapping

import msgspec

from capture_canary.model import ArmName, Estimate, Evidence, GraphsFate, Report, Series
from capture_canary.stack.exposure import mitigates
from capture_canary.trend import growth, law
from capture_canary.trend.case import Case, kinds_of
from capture_canary.trend.rows import REPEAT_SECONDS, ROWS, Finding
from capture_canary.trend.verdict import FLOOR_RATIO, FLOOR_SECONDS

DEFAULT = "default of the SoC"
"""What a report says of the source of a mode that nobody set."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    row: str
    question: str
    answer: bool | None
    """None: not asked, as a row before it decided."""
    detail: str = ""


class SeriesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one series says."""

    arm: ArmName
    mode: str | None
    collective: str
    graphs: GraphsFate
    rank: int
    captures: int
    trend: str
    """`growing`, `flat`, `irregular`, or `unknown` where it is too early to say."""
    copies: Estimate | None
    seconds: Estimate | None
    law_slope: int | None
    """Copies per capture that the law of hcomm 8.5 and 9.0 foretells; null in a mode that it does not hold for."""
    matches_law: bool | None


def series_facts(series: Series) -> SeriesFacts:
    """Return what a series says."""
    return SeriesFacts(
        arm=series.arm,
        mode=series.mode,
        collective=series.collective,
        graphs=series.graphs,
        rank=series.rank,
        captures=len(series.captures),
        trend=growth.copies_trend(series) or "unknown",
        copies=growth.copies_growth(series),
        seconds=growth.seconds_growth(series),
        law_slope=_law_slope(series),
        matches_law=growth.matches_law(series),
    )


def _law_slope(series: Series) -> int | None:
    if series.collectives is None or series.peers is None:
        return None
    if series.arm == "aiv" or mitigates(series.mode):
        return None
    return law.slope(series.collectives, series.peers)


def steps(report: Report, evidence: Evidence) -> list[Step]:
    """Return the rows as they answered, up to the one that decided.

    A report does not keep all that was judged (an arm's failure in words, the control of each rank). Where the rows,
    asked again with what it keeps, decide otherwise than they did, nothing is returned.
    """
    case = _case(report, evidence)
    answers: list[tuple[str, str, Finding | None]] = []
    for row in ROWS:
        question = (row.__doc__ or "").partition("\n")[0]
        answers.append((row.__name__, question, row(case)))
        if answers[-1][2] is not None:
            break
    found = answers[-1][2]
    if found is None or (found.verdict, found.cause) != (report.verdict, report.cause):
        return []
    asked = [
        Step(
            row=name,
            question=question,
            answer=finding is not None,
            detail=report.reason if finding else "",
        )
        for name, question, finding in answers
    ]
    rest = [
        Step(row=row.__name__, question=(row.__doc__ or "").partition("\n")[0], answer=None)
        for row in ROWS[len(asked) :]
    ]
    return asked + rest


def _case(report: Report, evidence: Evidence) -> Case:
    ranks = len({one.rank for one in report.series})
    values = {name: fact.value for name, fact in report.stack.items()}
    failures: Mapping[ArmName, str] = {}
    return Case(
        series=tuple(report.series),
        ranks=ranks,
        hcomm=values.get("hcomm"),
        soc=values.get("soc"),
        configured_mode=None if report.mode_source == DEFAULT else report.mode,
        mode_source=report.mode_source,
        control=None if report.control is None else [report.control] * ranks,
        arm_failures=failures,
        copies_expected=report.cause == "tracer_blind"
        or any(one.h2d_copies is not None for own in report.series for one in own.captures),
        evidence=evidence,
        kinds=kinds_of(report.series, evidence),
        floor_seconds=FLOOR_SECONDS,
        floor_ratio=FLOOR_RATIO,
        # How long ago is not kept, but the row answers from this on only.
        repeated_after=REPEAT_SECONDS if report.cause == "time_only" else None,
        rounds=1,  # not kept; asked for only where time was not judged then
        told=report.time,
    )
