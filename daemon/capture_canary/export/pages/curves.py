"""Charts in a page: drawn by charts.js, and tables of the same numbers where no script runs."""

from collections.abc import Sequence

from capture_canary.report import html
from capture_canary.report.charts import Chart
from capture_canary.report.html import Cell

_MOST = 40
"""Rows of such a table."""


def pair(drawn: Sequence[Chart], plots: list[Chart], *, height: int = 240) -> str:
    """Return charts side by side; their data join `plots`, for the page's block of data."""
    cards = []
    for chart in drawn:
        unit = f" ({chart.unit})" if chart.unit else ""
        cards.append(
            f'<div class="card"><h3>{html.text(chart.title + unit)}</h3>'
            f'<div class="plot" data-chart="{len(plots)}" data-height="{height}">{_table(chart)}</div></div>'
        )
        plots.append(chart)
    return f'<div class="pair">{"".join(cards)}</div>'


def _table(chart: Chart) -> str:
    orders = sorted({x for one in chart.lines for x, _ in one.points})[:_MOST]
    values = [dict(one.points) for one in chart.lines]
    headings = [Cell("capture"), *(Cell(one.label, "number") for one in chart.lines)]
    rows = [
        [Cell(f"{x:g}"), *(Cell(_number(one.get(x)), "number") for one in values)] for x in orders
    ]
    return html.table(headings, rows, "nothing measured")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if value % 1 else f"{value:,.0f}"
