"""What every report has around its content: one HTML file that needs nothing else, its head, its charts."""

from collections.abc import Sequence

from capture_canary.export import static
from capture_canary.report import charts, html

_START = "CanaryCharts.drawAll();"


def document(title: str, body: Sequence[str], plots: Sequence[charts.Chart]) -> str:
    """Return the whole file. `body` is HTML; the charts that it has places for (`pair`) come along as data."""
    styles = static.styles()
    scripts = (*static.scripts(), _START)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{html.text(html.policy(scripts, styles))}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{html.text(title)}</title>",
            f"<style>{styles}</style></head><body>",
            *body,
            html.data("charts", plots),
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def header(title: str, aside: str, *, emulated: bool) -> str:
    """Return what stands above all: the title, when and by what it was made, whether it is of an emulated node."""
    banner = (
        '<div class="banner">EMULATED: this says nothing of any real NPU.</div>' if emulated else ""
    )
    return (
        f'<header><h1>{html.text(title)}</h1><span class="quiet">{html.text(aside)}</span>'
        f"</header>{banner}<noscript><p>The charts need JavaScript; the tables say the same.</p></noscript>"
    )


def pair(drawn: Sequence[charts.Chart], plots: list[charts.Chart], *, height: int = 260) -> str:
    """Return places for charts, two beside each other, and put the charts into `plots`."""
    cards = []
    for chart in drawn:
        cards.append(
            f'<div class="card"><h3>{html.text(chart.title)}</h3>'
            f'<div data-chart="{len(plots)}" data-height="{height}"></div></div>'
        )
        plots.append(chart)
    return f'<div class="pair">{"".join(cards)}</div>'
