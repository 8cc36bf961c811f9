"""The status page: the verdict, for whom, why, what to do; then what it rests on."""

from collections.abc import Sequence
from typing import NamedTuple

from capture_canary.export.api.answers import Status
from capture_canary.export.api.answers import status as status_of
from capture_canary.export.pages import curves, frame
from capture_canary.export.source import Source, Standing
from capture_canary.model import Cause, VerdictName
from capture_canary.report import charts, html, words
from capture_canary.report.charts import Chart
from capture_canary.report.html import Cell
from capture_canary.stack.identity import stack_id
from capture_canary.store import Probe, Skip

_ROWS = 8
SIGNS: dict[VerdictName, str] = {"healthy": "✓", "mitigated": "◐", "degraded": "✕", "unknown": "?"}
"""Beside colour and word, for eyes that tell neither red from green nor words from afar."""
_PLAIN: dict[VerdictName, str] = {
    "healthy": "Capturing a graph gets no slower with every graph captured.",
    "mitigated": "This stack would get slower with every graph captured; the mode in force prevents it.",
    "degraded": "Capturing a graph gets slower with every graph captured.",
    "unknown": "Nothing can be said of this node.",
}
_CAUSES: dict[Cause, str] = {
    "aicpu_resource_list": "HCCL copies its AICPU resource list again at every capture, and the list grows",
    "mode_not_effective": "the expansion mode that should prevent it is not in effect",
    "regression": "this hcomm should have the fix, and grows all the same",
    "copies_unattributed": "copies grow, and what makes them is not clear",
    "other": "not the H2D copies",
    "time_only": "time grows, copies were not counted",
    "suspect": "time rises; a suspicion, no verdict",
    "tracer_blind": "copies cannot be counted here",
}


class Seen(NamedTuple):
    """What a page is made from, at one moment."""

    status: Status
    probes: list[Probe]
    skips: list[Skip]
    plots: list[Chart]
    now: float


def page(source: Source, *, now: float) -> str:
    """Return the page."""
    seen = Seen(
        status_of(source),
        source.store.probes(limit=_ROWS),
        source.store.skips(limit=_ROWS),
        [],
        now,
    )
    first, *others = seen.status.standings
    body = [
        _hero(seen, first),
        _curves(source, first, seen.plots),
        *(_aside(one, now) for one in others),
        _servers(seen.status),
        _schedule(seen),
        _probes(seen),
        _skips(seen),
        _logs(seen.status),
    ]
    return frame.page(seen.status, seen.status.verdict, body, seen.plots, now=now)


def _hero(seen: Seen, one: Standing) -> str:
    cause = f' <span class="cause">{html.text(_CAUSES[one.cause])}</span>' if one.cause else ""
    rows = [
        ("For", html.text(_subject(one))),
        ("Why", f"{html.text(_sentence(one.reason))}{_figures(one)}"),
    ]
    if one.remedy:
        rows.append(("Do", html.text(one.remedy)))
        rows.append(("Who", html.text(_sentence(one.acts))))
    listed = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in rows)
    return (
        f'<section class="card verdict hero {one.verdict}" aria-label="verdict">'
        f'<p class="word {one.verdict}"><span class="sign" aria-hidden="true">{SIGNS[one.verdict]}</span>'
        f'<strong id="verdict">{one.verdict}</strong>{_since(one, seen.now)}</p>'
        f'<p class="plain">{_PLAIN[one.verdict] if one.measured else "Nothing was measured yet."}{cause}</p>'
        f"<dl>{listed}</dl></section>"
    )


def _since(one: Standing, now: float) -> str:
    if one.since is None:
        return ""
    return f' <span class="quiet">for {words.span(now - one.since)}, since {words.moment(one.since)}</span>'


def _subject(one: Standing) -> str:
    """For whom: the stack in its mode, and who says so."""
    found = words.stack(one.versions, one.stack) if one.versions else "an unknown stack"
    mode = f" in mode {one.mode} ({one.mode_source})" if one.mode else ""
    by = f", by {words.EVIDENCE[one.evidence]}" if one.measured else ""
    return f"servers with {found}{mode}{by}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _figures(one: Standing) -> str:
    """The numbers that the verdict rests on."""
    found: list[tuple[str, str]] = []
    copies, seconds = one.growth.copies, one.growth.seconds
    if copies is not None:
        found.append((words.amount(copies.estimate), "H2D copies each capture"))
    if seconds is not None:
        found.append((f"{seconds.estimate * 1e3:+.3g} ms", "time each capture"))
    if one.impact and one.impact.seconds_per_load is not None:
        found.append(
            (
                f"{one.impact.seconds_per_load:,.3g} s",
                f"more for a load of {one.impact.graphs} graphs",
            )
        )
    if one.matches_law is not None:
        found.append(("met" if one.matches_law else "not met", "law of the growth, (P + S)·k²"))
    if one.control is not None:
        found.append((f"{one.control}", "copies seen by the control"))
    if not found:
        return ""
    listed = "".join(
        f"<li><b>{html.text(value)}</b> {html.text(what)}</li>" for value, what in found
    )
    return f'<ul class="figures">{listed}</ul>'


def _curves(source: Source, one: Standing, plots: list[Chart]) -> str:
    judged = source.view().state.judged
    report = next(
        (r for kind, r in judged if (kind, stack_id(r.stack)) == (one.evidence, one.stack)), None
    )
    kinds = charts.kinds(report) if report else []
    if report is None or not kinds:
        return ""
    collective, graphs = kinds[0]
    return (
        f"<h2>Each capture, {html.text(collective)}, graphs {html.text(graphs)}</h2>"
        + curves.pair(charts.captures(report, kinds[0]), plots)
        + '<p class="quiet">The kind that grows most, its worst rank, one curve for each expansion mode tried; '
        "capture 1 carries set-up and is left out.</p>"
    )


def _aside(one: Standing, now: float) -> str:
    remedy = f" {html.text(one.remedy)}" if one.remedy else ""
    return (
        f'<section class="card verdict aside {one.verdict}"><p><span class="badge {one.verdict}">'
        f"{SIGNS[one.verdict]} {one.verdict}</span> by {words.EVIDENCE[one.evidence]}{_since(one, now)}. "
        f"{html.text(_sentence(one.reason))}{remedy}</p></section>"
    )


def _servers(status: Status) -> str:
    if not status.servers:
        return ""
    headings = [
        *(Cell("server", "words"), Cell("stack", "stack"), Cell("mode"), Cell("expected")),
        Cell("why", "words"),
    ]
    rows = [
        [
            Cell(f"{one.engine} {one.role}, {one.pod or f'pid {one.pid}'}", "words"),
            Cell(words.stack(one.versions), "stack"),
            Cell(f"{one.mode or 'not known'} ({one.mode_source})"),
            Cell(one.outlook, "when"),
            Cell(one.reason, "words"),
        ]
        for one in status.servers
    ]
    about = {
        True: "What our probes find holds for them.",
        False: "They run another hcomm than we do: what our probes find says nothing of them.",
        None: "Whether what our probes find holds for them is not known.",
    }[status.about_servers]
    return (
        f'<h2>Servers here</h2><div class="card">{html.table(headings, rows, "")}'
        f'<p class="quiet">{about}</p></div>'
    )


def _schedule(seen: Seen) -> str:
    status, now = seen.status, seen.now
    if status.running_since is not None:
        coming = f"<b>running now</b>, for {words.span(now - status.running_since)}"
    elif status.next_probe is None:
        coming = "none is planned"
    elif status.next_probe <= now:
        coming = "<b>due now</b>"
    else:
        coming = (
            f"in <b>{words.span(status.next_probe - now)}</b>, {words.moment(status.next_probe)}"
        )
    last = "none yet"
    if status.last_run is not None:
        last = f"<b>{words.span(now - status.last_run)}</b> ago, {words.moment(status.last_run)}"
    return (
        f'<ul class="strip card"><li><span class="quiet">Next probe</span> {coming}</li>'
        f'<li><span class="quiet">Last probe</span> {last}</li></ul>'
    )


def _probes(seen: Seen) -> str:
    headings = [
        *(Cell("when", "when"), Cell("verdict"), Cell("by"), Cell("copies", "number")),
        *(Cell("ms", "number"), Cell("took", "number"), Cell("why", "words")),
    ]
    rows = [
        [
            Cell(f"{words.span(seen.now - one.at)} ago", "when"),
            Cell(f"{SIGNS[one.verdict]} {one.verdict}", f"badge {one.verdict}"),
            Cell(one.evidence),
            Cell(words.amount(one.copies), "number"),
            Cell(words.amount(one.seconds, 1e3), "number"),
            Cell(f"{one.took:.1f} s", "number"),
            Cell(one.reason, "words"),
        ]
        for one in seen.probes
    ]
    table = html.table(headings, rows, "No probe was made yet.")
    return f'<h2>Last probes</h2><div class="card">{table}</div>'


def _skips(seen: Seen) -> str:
    if not seen.skips:
        return ""
    headings = [Cell("last", "when"), Cell("times", "number"), Cell("reason"), Cell("", "words")]
    rows = [
        [
            Cell(f"{words.span(seen.now - one.last)} ago", "when"),
            Cell(str(one.count), "number"),
            Cell(one.reason),
            Cell(one.detail, "words"),
        ]
        for one in seen.skips
    ]
    return f'<h2>Probes not made</h2><div class="card">{html.table(headings, rows, "")}</div>'


def _logs(status: Status) -> str:
    if not status.logs:
        return ""
    headings = [Cell("file", "words"), Cell("verdict"), Cell("why", "words")]
    rows: Sequence[Sequence[Cell]] = [
        [
            Cell(name, "words"),
            Cell(f"{SIGNS[found.verdict]} {found.verdict}", f"badge {found.verdict}"),
            Cell(found.reason, "words"),
        ]
        for name, found in sorted(status.logs.items())
    ]
    return f'<h2>Logs of servers</h2><div class="card">{html.table(headings, rows, "")}</div>'
