"""The explanation: every question of gate and verdict, with its answer; and what each series says."""

from capture_canary.export.api.answers import Explanation, GateAnswer
from capture_canary.export.api.answers import explain as explain_of
from capture_canary.export.api.answers import status as status_of
from capture_canary.export.pages import curves, frame
from capture_canary.export.pages.status import SIGNS
from capture_canary.export.source import Source
from capture_canary.model import Estimate
from capture_canary.report import charts, html, words
from capture_canary.report.charts import ARMS, Chart
from capture_canary.report.html import Cell

_ANSWERS = {True: "yes", False: "no", None: "not asked"}


def page(source: Source, *, now: float) -> str:
    """Return the page."""
    status, found = status_of(source), explain_of(source)
    plots: list[Chart] = []
    body = [part for one in found.explanations for part in _verdict(one)]
    body.append(_gate(found.gate, now))
    for evidence, report in source.view().state.judged:
        for kind in charts.kinds(report):
            body.append(
                f"<h2>{words.EVIDENCE[evidence]}: {html.text(kind[0])}, graphs {html.text(kind[1])}</h2>"
            )
            body.append(curves.pair(charts.captures(report, kind), plots, height=180))
    return frame.page(status, "explanation", body, plots, now=now)


def _verdict(one: Explanation) -> list[str]:
    headings = [Cell("question", "words"), Cell("answer"), Cell("detail", "words")]
    rows = [
        [
            Cell(step.question, "words"),
            Cell(_ANSWERS[step.answer], "when"),
            Cell(step.detail, "words"),
        ]
        for step in one.rows
    ]
    kept = "The report does not keep all that these rows were asked with; the reason above says what decided."
    cause = f" ({one.cause})" if one.cause else ""
    reason = (
        f'<section class="card verdict {one.verdict}"><p><span class="badge {one.verdict}">'
        f"{SIGNS[one.verdict]} {one.verdict}</span> {html.text(one.reason)}.</p></section>"
    )
    return [
        f"<h2>By {words.EVIDENCE[one.evidence]}: {html.text(one.verdict + cause)}</h2>",
        reason,
        f'<div class="card">{html.table(headings, rows, kept)}</div>',
        _series(one),
    ]


def _series(one: Explanation) -> str:
    headings = [
        *(Cell("mode"), Cell("captured", "words"), Cell("rank", "number"), Cell("n", "number")),
        *(Cell("copies"), Cell("a capture", "number"), Cell("by the law", "number")),
        Cell("ms a capture (95 %)", "number"),
    ]
    rows = [
        [
            Cell(f"{ARMS[found.arm]}{f' ({found.mode})' if found.mode else ''}", "when"),
            Cell(f"{found.collective}, {found.graphs}", "words"),
            Cell(str(found.rank), "number"),
            Cell(str(found.captures), "number"),
            Cell(found.trend),
            Cell(words.amount(found.copies.estimate if found.copies else None), "number"),
            Cell("-" if found.law_slope is None else f"{found.law_slope:+,}", "number"),
            Cell(_time(found.seconds), "number"),
        ]
        for found in one.series
    ]
    return f'<div class="card">{html.table(headings, rows, "No series was recorded.")}</div>'


def _time(found: Estimate | None) -> str:
    if found is None:
        return "-"
    estimate, lower, upper = (value * 1e3 for value in (found.estimate, found.lower, found.upper))
    return f"{estimate:+.3g} ({lower:+.3g} to {upper:+.3g})"


def _gate(one: GateAnswer, now: float) -> str:
    if one.decision is None or one.decided_at is None:
        return '<h2>The gate</h2><div class="card"><p class="quiet">It was not asked yet.</p></div>'
    headings = [Cell("check"), Cell("answer"), Cell("detail", "words")]
    rows = [
        [Cell(check.name), Cell(_ANSWERS[check.ok]), Cell(check.detail, "words")]
        for check in one.decision.checks
    ]
    return (
        f"<h2>The gate, asked {words.span(now - one.decided_at)} ago</h2>"
        f'<div class="card"><p>{html.text(one.decision.sentence)}</p>{html.table(headings, rows, "")}</div>'
    )
