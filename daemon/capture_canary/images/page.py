"""The report of a comparison of images: one HTML file that needs nothing else."""

from capture_canary.images.compare import Compared, Comparison, Row
from capture_canary.report import charts, frame, html, words
from capture_canary.report.html import Cell

INTRODUCTION = (
    "The same probe in each image, one after the other on this node. "
    "More: with each further capture, of the series that grows most."
)
HEADINGS = ("image", "CANN", "mode", "verdict", "copies more", "ms more", "law")


def page(found: Comparison, *, now: float, version: str) -> str:
    """Return the whole page."""
    plots: list[charts.Chart] = []
    aside = f"report of {words.moment(now)}, version {version}"
    body = [
        frame.header("Capture Canary: images compared", aside, emulated=found.emulated),
        f'<p class="quiet">{html.text(INTRODUCTION)}</p>',
        _table(found),
        *(_image(one, plots) for one in found.images),
    ]
    return frame.document("Capture Canary: images compared", body, plots)


def cells(one: Compared, row: Row) -> tuple[str, ...]:
    """Return a row's texts in the order of `HEADINGS`."""
    return (
        words.plain(one.image),
        words.plain(one.cann or "unknown"),
        mode(row),
        row.verdict,
        words.amount(row.copies.estimate if row.copies else None),
        words.amount(row.seconds.estimate if row.seconds else None, 1e3),
        {True: "met exactly", False: "not met", None: "-"}[row.matches_law],
    )


def mode(row: Row) -> str:
    """Return the mode in words."""
    return words.plain(row.mode or "default")


def why(one: Compared) -> str:
    """Return why there is nothing to show of an image."""
    return one.problem or (one.report.reason if one.report else "")


def _table(found: Comparison) -> str:
    styles = ("stack", "", "", "badge", "number", "number", "")
    rows = []
    for one in found.images:
        for row in one.rows:
            texts = zip(cells(one, row), styles, strict=True)
            rows.append(
                [
                    Cell(text, f"badge {text}" if style == "badge" else style)
                    for text, style in texts
                ]
            )
        if not one.rows:
            known = [Cell(one.image, "stack"), Cell(one.cann or "unknown"), Cell("")]
            nothing = [
                Cell("unknown", "badge unknown"),
                Cell(""),
                Cell(""),
                Cell(why(one), "words"),
            ]
            rows.append([*known, *nothing])
    headings = [Cell(text, style) for text, style in zip(HEADINGS, styles, strict=True)]
    return f'<div class="card">{html.table(headings, rows, "No image was compared.")}</div>'


def _image(one: Compared, plots: list[charts.Chart]) -> str:
    if one.report is None:
        return ""
    said = [f"<h2>{html.text(one.image)}</h2>"]
    said += [f"<p><strong>{html.text(text)}.</strong></p>" for text in one.contradictions]
    said.append(
        f"<p>{html.text(words.stack(one.report.stack))}: {html.text(one.report.reason)}</p>"
    )
    said.append(f'<p class="quiet">{html.text(one.id or "")}</p>')
    for kind in charts.kinds(one.report)[:1]:
        said.append(f'<p class="quiet">{html.text(f"{kind[0]}, graphs {kind[1]}")}</p>')
        said.append(frame.pair(charts.captures(one.report, kind), plots, height=200))
    return "\n".join(said)
