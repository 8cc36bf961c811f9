"""The charts of a reproduction: every capture with the line through them, round by round, image beside image."""

from collections.abc import Callable, Sequence

from capture_canary.model import ArmName, Capture
from capture_canary.report import words
from capture_canary.report.charts import ARMS, Chart, Colour, Line
from capture_canary.reproduction.measure import Reproduction
from capture_canary.reproduction.outcome import Compared, Outcome, Round, outcomes
from capture_canary.trend import line

Value = Callable[[Capture], float | None]
_MOST_NAME = 60


def rows(found: Reproduction, compared: Sequence[Compared] = ()) -> list[list[Chart]]:
    """Return all charts, two a row: captures, rounds, and images where there are others."""
    drawn = [captures(found), rounds(outcomes(found.report))]
    if any(one.report for one in compared):
        drawn.append(images(found, compared))
    return drawn


def captures(found: Reproduction) -> list[Chart]:
    """Return copies and time of every capture: the arms', and in grey what was measured before a restart."""
    arms = outcomes(found.report)

    def lines(
        value: Value, fit: Callable[[Outcome], line.Line | None], unit: str = ""
    ) -> list[Line]:
        before = [
            _dots(one.outcome, value, f"{ARMS[one.attempt.arm]}, before a restart", "muted")
            for one in found.restarts
            if one.outcome
        ]
        drawn = [
            part
            for one in arms
            for part in (
                _dots(one, value, f"{ARMS[one.series.arm]}, rank {one.series.rank}", _colour(one)),
                *_fit(one, fit(one), unit),
            )
        ]
        return [*before, *drawn]

    return [
        Chart(
            title="H2D copies of each capture",
            x="capture",
            lines=lines(_copies, lambda one: one.copies),
        ),
        Chart(
            title="Time of each capture",
            x="capture",
            unit="ms",
            lines=lines(_ms, lambda one: _scaled(one.seconds, 1e3), " ms"),
        ),
    ]


def rounds(arms: Sequence[Outcome]) -> list[Chart]:
    """Return, round by round, the share of time in copies, and the time of a graph."""

    def lines(value: Callable[[Round], float | None]) -> list[Line]:
        return [
            Line(
                label=ARMS[one.series.arm],
                colour=_colour(one),
                drawn="dots",
                points=[(float(round_.number), value(round_)) for round_ in one.rounds],
            )
            for one in arms
        ]

    return [
        Chart(
            title="Share of capture time in H2D copies",
            x="round",
            unit="%",
            lines=lines(lambda one: None if one.share is None else 100 * one.share),
        ),
        Chart(
            title="Mean time of a graph's capture",
            x="round",
            unit="ms",
            lines=lines(lambda one: one.seconds / one.captures * 1e3),
        ),
    ]


def images(found: Reproduction, compared: Sequence[Compared]) -> list[Chart]:
    """Return copies and time of every capture as configured, in this image and in the others."""
    reports = [("here", found.report)]
    reports += [(words.plain(one.image, _MOST_NAME), one.report) for one in compared if one.report]
    shown: list[tuple[str, Outcome, Colour]] = [
        (f"{name}: {words.stack(report.stack)}", one, report.verdict)
        for name, report in reports
        for one in outcomes(report)
        if one.series.arm == "as_configured"
    ]
    return [
        Chart(
            title="H2D copies of each capture, by image",
            x="capture",
            lines=[_dots(one, _copies, label, colour) for label, one, colour in shown],
        ),
        Chart(
            title="Time of each capture, by image",
            x="capture",
            unit="ms",
            lines=[_dots(one, _ms, label, colour) for label, one, colour in shown],
        ),
    ]


def _colour(outcome: Outcome) -> ArmName:
    return outcome.series.arm


def _copies(capture: Capture) -> float | None:
    return None if capture.h2d_copies is None else float(capture.h2d_copies)


def _ms(capture: Capture) -> float:
    return capture.seconds * 1e3


def _dots(outcome: Outcome, value: Value, label: str, colour: Colour) -> Line:
    points = [(float(one.order), value(one)) for one in outcome.series.captures]
    return Line(label=label, colour=colour, drawn="dots", points=points)


def _fit(outcome: Outcome, found: line.Line | None, unit: str) -> list[Line]:
    if found is None:
        return []
    ends = (outcome.series.captures[0].order, outcome.series.captures[-1].order)
    points: list[tuple[float, float | None]] = [
        (float(x), found.intercept + found.slope * x) for x in ends
    ]
    label = f"{ARMS[outcome.series.arm]}: {words.amount(found.slope)}{unit} with each capture"
    return [Line(label=label, colour=_colour(outcome), drawn="fit", points=points)]


def _scaled(found: line.Line | None, scale: float) -> line.Line | None:
    if found is None:
        return None
    return found._replace(
        slope=found.slope * scale,
        intercept=found.intercept * scale,
        lower=found.lower * scale,
        upper=found.upper * scale,
    )
