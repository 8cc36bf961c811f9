"""The report of a reproduction: one HTML file that needs nothing else, and the same charts as a picture."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

import capture_canary
from capture_canary.model import Report, Series
from capture_canary.report import advice, frame, html, words
from capture_canary.report.charts import ARMS, Chart
from capture_canary.report.html import Cell
from capture_canary.reproduction import drawn, said
from capture_canary.reproduction.measure import Reproduction
from capture_canary.reproduction.outcome import Compared, Outcome, outcomes
from capture_canary.trend import advice as trend_advice
from capture_canary.trend.line import Line


def page(
    found: Reproduction,
    compared: Sequence[Compared] = (),
    *,
    node: str,
    version: str,
    command: str,
) -> str:
    """Return the whole page."""
    plots: list[Chart] = []
    arms = outcomes(found.report)
    each, by_round = drawn.captures(found), drawn.rounds(arms)
    title = f"Capture Canary: reproduction on {node}"
    aside = f"measured from {words.moment(found.header.begun)} to {words.moment(found.ended)}, version {version}"
    body = [
        frame.header(title, aside, emulated=found.report.emulated),
        _verdict(found.report),
        _figures(found, arms),
        "<h2>Every capture, and the line through them</h2>",
        frame.pair(each, plots, height=320),
        _note(found),
        "<h2>Round by round</h2>",
        frame.pair(by_round, plots, height=220),
        _beside(arms),
        _lines(arms),
        _restarts(found),
        _images(found, compared, plots),
        _stack(found.report),
        _settings(found, command),
    ]
    return frame.document(title, body, plots)


def picture(found: Reproduction, compared: Sequence[Compared], path: Path, *, node: str) -> None:
    """Write the page's charts as a picture, in the format of the file's suffix.

    Raises:
        ImportError: matplotlib is not there.
        OSError: the file cannot be written.
    """
    from capture_canary.report.picture import save_charts  # noqa: PLC0415  # needs the extra `report`

    report = found.report
    emulated = "EMULATED, " if report.emulated else ""
    title = f"{emulated}{words.plain(node, 80)}, {words.stack(report.stack)}: {said.called(report)}"
    save_charts(drawn.rows(found, compared), title, path)


def write(
    folder: Path, found: Reproduction, compared: Sequence[Compared], *, node: str, command: str
) -> list[Path]:
    """Write the page, its picture where matplotlib is there, and the report; return the files.

    Raises:
        OSError: one of them cannot be written.
    """
    text = page(
        found,
        compared,
        node=node,
        version=capture_canary.__version__,
        command=command,
    )
    files = [folder / "report.html", folder / "report.json"]
    files[0].write_text(text, encoding="utf-8")
    files[1].write_bytes(msgspec.json.format(msgspec.json.encode(found.report)) + b"\n")
    with contextlib.suppress(ImportError):
        picture(found, compared, folder / "report.png", node=node)
        files.append(folder / "report.png")
    return files


def _verdict(report: Report) -> str:
    cause = f" ({report.cause})" if report.cause else ""
    soc, hcomm = (
        report.stack[name].value if name in report.stack else None for name in ("soc", "hcomm")
    )
    mode = f"mode {report.mode or 'unknown'} ({report.mode_source})"
    stack = html.text(words.stack(report.stack))
    lines = [
        f'<span class="badge {report.verdict}">{report.verdict}</span> <span>{cause}</span>',
        f'<p><strong>{stack}</strong> <span class="quiet">{html.text(mode)}</span></p>',
        f"<p>{html.text(report.reason[:1].upper() + report.reason[1:])}.</p>",
    ]
    if report.impact and report.impact.seconds_per_load is not None:
        size = (
            f" of {report.impact.collectives} collectives each"
            if report.impact.collectives
            else " like these"
        )
        lines.append(
            f"<p>Adds about {report.impact.seconds_per_load:,.3g} s to a load that captures "
            f"{report.impact.graphs} graphs{html.text(size)}.</p>"
        )
    remedy = trend_advice.remedy(report, soc=soc, mode=report.mode, hcomm=hcomm)
    if remedy:
        lines.append(
            f"<p><strong>What to do:</strong> {html.text(remedy)} "
            f'<span class="quiet">Who: {html.text(advice.who(report))}.</span></p>'
        )
    return f'<div class="card verdict {report.verdict}">{"".join(lines)}</div>'


def _figures(found: Reproduction, arms: Sequence[Outcome]) -> str:
    """What one reads first: how much more each capture copies, in each arm, and whether that is the law."""
    items = []
    for one in arms:
        arm = ARMS[one.series.arm]
        more = "?" if one.copies is None else f"{one.copies.slope:+,.4g}"
        straight = (
            "" if one.copies is None or one.copies.r2 is None else f", R² {one.copies.r2:.4f}"
        )
        items.append(f"{html.text(arm)}: <b>{more}</b> copies with each capture{straight}")
    items.append(f"growth law <b>{said.LAW[found.report.matches_law]}</b>")
    control = found.report.control
    items.append(f"positive control: <b>{control or 'none'}</b> copies seen")
    captures = sum(len(one.series.captures) for one in arms)
    items.append(f"<b>{captures:,}</b> captures on the rank shown")
    return f'<ul class="figures">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _note(found: Reproduction) -> str:
    before = (
        " Grey: measured before a restart; new processes begin with empty lists, so such an arm began anew."
        if any(one.outcome for one in found.restarts)
        else ""
    )
    return (
        '<p class="quiet">A point is a capture, on the rank of each arm that copied most; numbers count all captures '
        "of the process, those of vLLM's own start too. Dashed: least squares through all points."
        f"{before}</p>"
    )


def _beside(arms: Sequence[Outcome]) -> str:
    numbers = sorted({one.number for outcome in arms for one in outcome.shown})
    headings = [
        *(Cell("arm"), Cell("of each graph")),
        *(Cell(f"round {number}", "number") for number in numbers),
    ]
    rows = []
    for outcome in arms:
        by_number = {one.number: one for one in outcome.shown}
        for first, (what, of) in enumerate(said.ROWS.items()):
            arm = "" if first else ARMS[outcome.series.arm]
            cells = [of(by_number[n]) if n in by_number else "-" for n in numbers]
            rows.append([Cell(arm), Cell(what), *(Cell(cell, "number") for cell in cells)])
    title = ", ".join(map(str, numbers[:-1])) + (f" and {numbers[-1]}" if numbers else "")
    return (
        f"<h2>Rounds {title} side by side</h2>"
        f'<div class="card">{html.table(headings, rows, "Nothing was captured.")}</div>'
        f"<details><summary>The same by batch size</summary>"
        f'<div class="card">{_by_size(arms, numbers)}</div></details>'
    )


def _by_size(arms: Sequence[Outcome], numbers: Sequence[int]) -> str:
    headings = [Cell("arm"), Cell("batch size", "number")]
    for number in numbers:
        headings += [Cell(f"round {number}, ms", "number"), Cell("copies", "number")]
    rows = [
        [
            Cell("" if place else ARMS[outcome.series.arm]),
            Cell(str(size), "number"),
            *(cell for number in numbers for cell in _cells(outcome.series, size, number)),
        ]
        for outcome in arms
        for place, size in enumerate(sorted({one.shape for one in outcome.series.captures}))
    ]
    return html.table(headings, rows, "Nothing was captured.")


def _cells(series: Series, size: int, number: int) -> tuple[Cell, Cell]:
    found = next(
        (one for one in series.captures if one.shape == size and one.round == number - 1), None
    )
    if found is None:
        return Cell("-", "number"), Cell("-", "number")
    copies = "?" if found.h2d_copies is None else f"{found.h2d_copies:,}"
    return Cell(f"{found.seconds * 1e3:.2f}", "number"), Cell(copies, "number")


def _lines(arms: Sequence[Outcome]) -> str:
    headings = [
        *(Cell("arm"), Cell("of a capture"), Cell("with each further one", "number")),
        *(Cell("95 % from", "number"), Cell("to", "number"), Cell("R²", "number")),
        Cell("captures", "number"),
    ]
    rows = [
        [Cell("" if place else ARMS[one.series.arm]), Cell(what), *_line(fitted, scale)]
        for one in arms
        for place, (what, fitted, scale) in enumerate(
            (("H2D copies", one.copies, 1.0), ("ms", one.seconds, 1e3))
        )
    ]
    return f'<h2>The lines</h2><div class="card">{html.table(headings, rows, "Nothing was captured.")}</div>'


def _line(found: Line | None, scale: float) -> list[Cell]:
    if found is None:
        return [Cell("too few captures", "number"), *[Cell("-", "number")] * 4]
    numbers = [f"{value * scale:+.4g}" for value in (found.slope, found.lower, found.upper)]
    r2 = "-" if found.r2 is None else f"{found.r2:.4f}"
    return [Cell(text, "number") for text in (*numbers, r2, f"{found.n:,}")]


def _restarts(found: Reproduction) -> str:
    if not found.restarts:
        return ""
    items = "".join(f"<li>{html.text(said.restarted(one))}</li>" for one in found.restarts)
    return f'<h2>Ended, and begun anew</h2><div class="card"><ul>{items}</ul></div>'


def _images(found: Reproduction, compared: Sequence[Compared], plots: list[Chart]) -> str:
    if not compared:
        return ""
    styles = ("words", "stack", "", "number", "number", "number", "", "")
    headings = [Cell(*pair) for pair in zip(said.IMAGE_COLUMNS, styles, strict=True)]
    rows = [
        [Cell(*pair) for pair in zip(row, (*styles[:6], f"badge {verdict}", ""), strict=True)]
        for verdict, row in said.images(found, compared)
    ]
    charts = frame.pair(drawn.images(found, compared), plots, height=280)
    return (
        f'<h2>The same in other images</h2><div class="card">{html.table(headings, rows, "")}</div>'
        f"{charts}"
    )


def _stack(report: Report) -> str:
    headings = [Cell("part"), Cell("version"), Cell("who says so")]
    rows = [
        [Cell(words.label(name)), Cell(fact.value or "unknown"), Cell(fact.source, "words")]
        for name, fact in report.stack.items()
    ]
    table = html.table(headings, rows, "Nothing is known of what ran here.")
    return f'<h2>What ran</h2><div class="card">{table}</div>'


def _settings(found: Reproduction, command: str) -> str:
    settings = found.header.settings
    pairs = {
        "command": command,
        "model": settings.model or f"made up, {settings.collectives} collectives a graph",
        "graphs": settings.graph_mode or "as this vLLM has them",
        "rounds": str(settings.rounds),
        "batch sizes": ", ".join(map(str, settings.shapes)),
        "NPUs, one a rank": ", ".join(map(str, settings.devices)),
        "mode as configured": f"{settings.mode or 'none set'} ({settings.mode_source})",
    }
    rows = [[Cell(name), Cell(value, "words")] for name, value in pairs.items()]
    return f'<h2>Settings</h2><div class="card">{html.table([Cell("what"), Cell("as")], rows, "")}</div>'
