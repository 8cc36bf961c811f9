"""What pages and API are made from, and the verdict in force of each kind of evidence, the worst first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from capture_canary.model import Cause, Evidence, Growth, Impact, Report, Stack, VerdictName
from capture_canary.report.advice import who
from capture_canary.service.board import View
from capture_canary.stack.identity import stack_id
from capture_canary.store import Change, Store
from capture_canary.trend import advice

_RANKS: tuple[VerdictName, ...] = ("degraded", "unknown", "mitigated", "healthy")


class Source(NamedTuple):
    """Where everything comes from."""

    view: Callable[[], View]
    store: Store
    node: str
    alive: Callable[[], bool]
    """Whether the daemon's loop is on time."""
    ready: Callable[[], bool]
    """Whether it has begun."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict in force by one kind of evidence."""

    evidence: Evidence
    verdict: VerdictName
    cause: Cause | None
    reason: str
    measured: bool
    """False: nothing was judged yet."""
    since: float | None
    """When the verdict became this one, Unix time."""
    stack: str
    """Hash of the stack that it speaks of."""
    versions: Stack
    mode: str | None
    mode_source: str | None
    impact: Impact | None
    growth: Growth
    matches_law: bool | None
    control: int | None
    """Copies that the positive control was seen to make."""
    remedy: str
    """What to do; empty where there is nothing to do."""
    acts: str
    """Who has to."""


def standings(view: View, present: Sequence[Change]) -> list[Standing]:
    """Return the verdicts in force, the worst first; those still to come last."""
    since: dict[tuple[str, Evidence, VerdictName], float] = {
        (one.stack, one.evidence, one.verdict): one.since for one in present
    }
    state = view.state
    found = [_of(report, evidence, since) for evidence, report in state.judged]
    found += [
        _to_come(view, evidence) for evidence in state.sources if evidence not in state.reports
    ]
    return sorted(found, key=lambda one: (not one.measured, _RANKS.index(one.verdict)))


def _of(
    report: Report, evidence: Evidence, since: dict[tuple[str, Evidence, VerdictName], float]
) -> Standing:
    stack = stack_id(report.stack)
    values = {name: fact.value for name, fact in report.stack.items()}
    return Standing(
        evidence=evidence,
        verdict=report.verdict,
        cause=report.cause,
        reason=report.reason,
        measured=True,
        since=since.get((stack, evidence, report.verdict)),
        stack=stack,
        versions=report.stack,
        mode=report.mode,
        mode_source=report.mode_source,
        impact=report.impact,
        growth=report.growth,
        matches_law=report.matches_law,
        control=report.control,
        remedy=advice.remedy(
            report, soc=values.get("soc"), mode=report.mode, hcomm=values.get("hcomm")
        ),
        acts=who(report),
    )


_TO_COME: dict[Evidence, str] = {
    "probe": "no probe has ended yet",
    "trace": "no trace of a server has been judged yet",
    "log": "no log of a server has been judged yet",
}


def _to_come(view: View, evidence: Evidence) -> Standing:
    return Standing(
        evidence=evidence,
        verdict="unknown",
        cause=None,
        reason=_TO_COME[evidence],
        measured=False,
        since=None,
        stack=stack_id(view.state.stack),
        versions=view.state.stack,
        mode=None,
        mode_source=None,
        impact=None,
        growth=Growth(copies=None, seconds=None, series=None),
        matches_law=None,
        control=None,
        remedy="",
        acts="nobody",
    )
