"""What the charts show, as data: drawn by static/charts.js in a page, by matplotlib in a picture."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from capture_canary.model import ArmName, Capture, Report, Series, VerdictName
from capture_canary.report import words
from capture_canary.store import Event, Probe, Stacks

Colour = Literal[
    "as_configured", "aiv", "ai_cpu", "healthy", "mitigated", "degraded", "unknown", "muted"
]
"""A name that the style sheet knows, in dark and in light."""
MAX_MARKS = 24
"""Of each kind: a daemon that restarts all the time must not cover the curve."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One curve, or the points of one kind."""

    label: str
    colour: Colour
    drawn: Literal["line", "points", "dots", "fit", "course", "band"] = "line"
    """`dots`: many small points; `fit`: a line through them, in a colour of its own; `course`: thin, and not named;
    `band`: this line and the next one enclose an area."""
    points: list[tuple[float, float | None]]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A moment worth a vertical line."""

    x: float
    kind: Literal["restart", "stack"]
    label: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart: curves over captures or over time."""

    title: str
    x: Literal["capture", "round", "time"]
    unit: str = ""
    lines: list[Line]
    marks: list[Mark] = []


_BEFORE = 1800.0
"""Seconds before the first probe that a chart shows: the daemon's start belongs to it."""
_VERDICTS: tuple[VerdictName, ...] = ("healthy", "mitigated", "degraded", "unknown")
ARMS: dict[ArmName, str] = {"as_configured": "as configured", "aiv": "AIV", "ai_cpu": "AI_CPU"}


def kinds(report: Report) -> list[tuple[str, str]]:
    """Return the kinds of series in a report, that of the worst series first."""
    found = dict.fromkeys((one.collective, one.graphs) for one in report.series)
    worst = report.growth.series
    if worst is not None and 0 <= worst < len(report.series):
        one = report.series[worst]
        found = {(one.collective, one.graphs): None, **found}
    return list(found)


def captures(report: Report, kind: tuple[str, str]) -> list[Chart]:
    """Return time and copies per capture of one kind, arms side by side, of each arm's worst rank.

    Capture 1 carries set-up and would set the scale: it is left out.
    """
    shown = list(_worst_ranks(one for one in report.series if (one.collective, one.graphs) == kind))
    copies = [_curve(one, [capture.h2d_copies for capture in one.captures]) for one in shown]
    times = [_curve(one, [capture.seconds * 1e3 for capture in one.captures]) for one in shown]
    return [
        Chart(title="H2D copies per capture", x="capture", lines=copies),
        Chart(title="Time per capture", x="capture", unit="ms", lines=times),
    ]


def growth(
    probes: Sequence[Probe], events: Sequence[Event], stacks: Sequence[Stacks]
) -> list[Chart]:
    """Return the growth over days (all newest first), with restarts and changes of the stack."""
    old_first = [probe for probe in reversed(probes) if probe.evidence != "log"]
    start = min((probe.at for probe in old_first), default=0.0)
    marks = [mark for mark in _marks(events, stacks) if mark.x >= start - _BEFORE]
    return [
        Chart(
            title="Growth in H2D copies, per capture",
            x="time",
            lines=_growth_lines(old_first, "copies", 1.0),
            marks=marks,
        ),
        Chart(
            title="Growth in time, per capture",
            x="time",
            unit="ms",
            lines=_growth_lines(old_first, "seconds", 1e3),
            marks=marks,
        ),
    ]


def _worst_ranks(series: Iterable[Series]) -> Iterable[Series]:
    worst: dict[ArmName, Series] = {}
    for one in series:
        if one.arm not in worst or _cost(one.captures) > _cost(worst[one.arm].captures):
            worst[one.arm] = one
    return worst.values()


def _cost(captures: Sequence[Capture]) -> tuple[int, float]:
    judged = captures[1:]
    return sum(one.h2d_copies or 0 for one in judged), sum(one.seconds for one in judged)


def _curve(series: Series, values: Sequence[float | None]) -> Line:
    pairs = zip(series.captures, values, strict=True)
    mode = f" ({series.mode})" if series.mode and series.arm == "as_configured" else ""
    return Line(
        label=f"{ARMS[series.arm]}{mode}, rank {series.rank}",
        colour=series.arm,
        points=[(float(one.order), value) for one, value in pairs if one.order > 1],
    )


def _growth_lines(
    probes: Sequence[Probe], what: Literal["copies", "seconds"], scale: float
) -> list[Line]:
    """Return a thin line between bounds for each subject, and over them the probes by verdict."""

    def points(some: Sequence[Probe], name: str) -> list[tuple[float, float | None]]:
        values = [(one.at, getattr(one, name)) for one in some]
        return [(at, None if value is None else value * scale) for at, value in values]

    lines = []
    for subject in dict.fromkeys((one.stack, one.evidence) for one in probes):
        some = [one for one in probes if (one.stack, one.evidence) == subject]
        for label, name in (("upper bound", f"{what}_upper"), ("lower bound", f"{what}_lower")):
            lines.append(Line(label=label, colour="muted", drawn="band", points=points(some, name)))
        lines.append(
            Line(label="growth", colour="muted", drawn="course", points=points(some, what))
        )
    for verdict in _VERDICTS:
        some = [one for one in probes if one.verdict == verdict]
        if some:
            # A probe that measured no growth stands on the ground.
            found = points(some, what)
            ground: list[tuple[float, float | None]] = [(at, value or 0.0) for at, value in found]
            lines.append(Line(label=verdict, colour=verdict, drawn="points", points=ground))
    return lines


def _marks(events: Sequence[Event], stacks: Sequence[Stacks]) -> list[Mark]:
    starts = [event for event in events if event.kind == "start"][:MAX_MARKS]
    changed = list(pairwise(stacks))[:MAX_MARKS]
    return [
        *(Mark(x=event.at, kind="restart", label="restart") for event in starts),
        *(
            Mark(x=new.at, kind="stack", label=words.difference(old.stacks, new.stacks))
            for new, old in changed
        ),
    ]
