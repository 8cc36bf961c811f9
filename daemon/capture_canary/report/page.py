"""The report: one HTML file that needs nothing else."""

from capture_canary.report import charts, frame, html, words
from capture_canary.report.advice import remedy, who
from capture_canary.report.html import Cell
from capture_canary.report.past import Past
from capture_canary.store import Change, Probe


def page(past: Past, *, node: str, now: float, version: str) -> str:
    """Return the whole page."""
    plots: list[charts.Chart] = []
    body = [
        _header(past, node=node, now=now, version=version),
        _verdicts(past, now),
        _last_probe(past.latest, plots),
        _growth(past, plots),
        _probes(past),
        _changes(past),
        _skips(past),
        _stacks(past),
    ]
    return frame.document(f"Capture Canary: {node}", body, plots)


def _header(past: Past, *, node: str, now: float, version: str) -> str:
    aside = f"report of {words.moment(now)}, version {version}"
    return frame.header(f"Capture Canary: {node}", aside, emulated=past.emulated)


def _verdicts(past: Past, now: float) -> str:
    if not past.present:
        return '<div class="card verdict"><span class="badge">unknown</span><p>Nothing was judged yet.</p></div>'
    return "\n".join(_verdict(past, change, now) for change in past.present)


def _verdict(past: Past, change: Change, now: float) -> str:
    cause = f" ({change.cause})" if change.cause else ""
    newest = past.newest(change)
    stack = words.stack(past.stack(change.stack), change.stack)
    since = f"since {words.moment(change.since)} ({words.span(now - change.since)})"
    source = f'<span class="quiet">{since}, by {words.EVIDENCE[change.evidence]}</span>'
    lines = [
        f'<span class="badge {change.verdict}">{change.verdict}</span> <span>{cause}</span>',
        f"<p><strong>{html.text(stack)}</strong> {source}</p>",
        f"<p>{html.text(newest.reason if newest else change.reason)}</p>",
    ]
    if newest and newest.impact and change.verdict == "degraded":
        lines.append(f"<p>Adds about {newest.impact:,.3g} s to one load of a server.</p>")
    advice = remedy(past, change)
    if advice:
        lines.append(
            f"<p><strong>What to do:</strong> {html.text(advice)} "
            f'<span class="quiet">Who: {html.text(who(change))}.</span></p>'
        )
    return f'<div class="card verdict {change.verdict}">{"".join(lines)}</div>'


def _last_probe(latest: Probe | None, plots: list[charts.Chart]) -> str:
    if latest is None or latest.report is None:
        return '<h2>Last probe</h2><p class="quiet">No probe with captures is kept.</p>'
    worst, *others = charts.kinds(latest.report)
    parts = [
        f"<h2>Last probe: {html.text(_kind(worst))}, arms side by side</h2>",
        f'<p class="quiet">Probe {latest.id}, {words.moment(latest.at)}; capture 1, with its set-up, is left out.</p>',
        frame.pair(charts.captures(latest.report, worst), plots),
    ]
    if others:
        parts.append("<details><summary>Other collectives and graphs of this probe</summary>")
        for kind in others:
            parts.append(f"<h2>{html.text(_kind(kind))}</h2>")
            parts.append(frame.pair(charts.captures(latest.report, kind), plots, height=180))
        parts.append("</details>")
    return "\n".join(parts)


def _kind(kind: tuple[str, str]) -> str:
    return f"{kind[0]}, graphs {kind[1]}"


def _growth(past: Past, plots: list[charts.Chart]) -> str:
    drawn = charts.growth(past.probes, past.events, past.stacks)
    marks = [mark for mark in drawn[0].marks if mark.kind == "stack"]
    restarts = sum(1 for mark in drawn[0].marks if mark.kind == "restart")
    changed = "; ".join(f"{words.moment(mark.x)}: {mark.label}" for mark in marks) or "never"
    legend = (
        "Points are probes, coloured by verdict; the area is between the bounds. "
        f"Dashed lines: restarts of the daemon ({restarts}). "
        f"Solid lines: what runs here changed ({changed})."
    )
    return (
        f"<h2>Growth over days</h2>{frame.pair(drawn, plots, height=280)}"
        f'<p class="quiet">{html.text(legend)}</p>'
    )


def _probes(past: Past) -> str:
    headings = [
        *(Cell("when", "when"), Cell("verdict"), Cell("stack"), Cell("evidence")),
        *(Cell("copies more", "number"), Cell("ms more", "number"), Cell("took", "number")),
        Cell("why", "words"),
    ]
    rows = [
        [
            Cell(words.moment(one.at), "when"),
            Cell(one.verdict, f"badge {one.verdict}"),
            Cell(words.stack(past.stack(one.stack), one.stack), "stack"),
            Cell(words.EVIDENCE[one.evidence]),
            Cell(words.amount(one.copies), "number"),
            Cell(words.amount(one.seconds, 1e3), "number"),
            Cell(f"{one.took:.1f} s", "number"),
            Cell(one.reason, "words"),
        ]
        for one in past.probes[:50]
    ]
    table = html.table(headings, rows, "No probe was made in this time.")
    return f'<h2>Last probes</h2><div class="card">{table}</div>'


def _changes(past: Past) -> str:
    headings = [Cell("when", "when"), Cell("verdict"), Cell("cause"), Cell("stack"), Cell("why")]
    rows = [
        [
            Cell(words.moment(one.at), "when"),
            Cell("gone" if one.retired else one.verdict, f"badge {one.verdict}"),
            Cell(one.cause or ""),
            Cell(words.stack(past.stack(one.stack), one.stack), "stack"),
            Cell(one.reason, "words"),
        ]
        for one in past.changes[:50]
    ]
    table = html.table(headings, rows, "The verdict did not change in this time.")
    return f'<h2>Changes of the verdict</h2><div class="card">{table}</div>'


def _skips(past: Past) -> str:
    headings = [Cell("from", "when"), Cell("to", "when"), Cell("times", "number"), Cell("reason")]
    rows = [
        [
            Cell(words.moment(one.first), "when"),
            Cell(words.moment(one.last), "when"),
            Cell(str(one.count), "number"),
            Cell(f"{one.reason}: {one.detail}" if one.detail else one.reason, "words"),
        ]
        for one in past.skips[:50]
    ]
    table = html.table(headings, rows, "No probe was skipped in this time.")
    return f'<h2>Probes not made</h2><div class="card">{table}</div>'


def _stacks(past: Past) -> str:
    headings = [Cell("stack"), Cell("part"), Cell("version"), Cell("who says so")]
    rows = [
        [
            Cell(name if first else ""),
            Cell(words.label(part)),
            Cell(fact.value or "unknown"),
            Cell(fact.source, "words"),
        ]
        for name, stack in (past.stacks[0].stacks if past.stacks else {}).items()
        for first, (part, fact) in zip([True] + [False] * len(stack), stack.items(), strict=False)
    ]
    table = html.table(headings, rows, "Nothing is known of what runs here.")
    return f'<h2>What runs here</h2><div class="card">{table}</div>'
