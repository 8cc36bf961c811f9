"""The charts as a PNG or SVG file, drawn by matplotlib (the extra `report`)."""

from collections.abc import Sequence
from datetime import timezone
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from capture_canary.model import Report
from capture_canary.report import charts, words
from capture_canary.report.charts import Chart, Line
from capture_canary.report.past import Past

_COLOURS: dict[charts.Colour, str] = {
    "as_configured": "#cf222e",
    "aiv": "#1f6feb",
    "ai_cpu": "#b35900",
    "healthy": "#1a7f37",
    "mitigated": "#0b7285",
    "degraded": "#cf222e",
    "unknown": "#9a6700",
    "muted": "#626c78",
}


def save(past: Past, path: Path, *, node: str, now: float) -> None:
    """Write the last probe's curves and the growth over days, in the format of the file's suffix.

    Raises:
        OSError: the file cannot be written.
    """
    rows = [charts.growth(past.probes, past.events, past.stacks)]
    report = past.latest.report if past.latest else None
    if report is not None:
        rows.insert(0, charts.captures(report, charts.kinds(report)[0]))
    emulated = "EMULATED, " if past.emulated else ""
    save_charts(rows, f"{emulated}{words.plain(node, 80)}, {words.moment(now)}", path)


def save_report(report: Report, path: Path) -> None:
    """Write one probe's curves, in the format of the file's suffix.

    Raises:
        OSError: the file cannot be written.
    """
    kinds = charts.kinds(report)
    stack = ", ".join(f"{name} {fact.value}" for name, fact in report.stack.items() if fact.value)
    emulated = "EMULATED " if report.emulated else ""
    cause = f" ({report.cause})" if report.cause else ""
    title = f"{emulated}{words.plain(stack, 200)}: {report.verdict}{cause}"
    save_charts([charts.captures(report, kind) for kind in kinds[:1]], title, path)


def save_charts(rows: Sequence[Sequence[Chart]], title: str, path: Path) -> None:
    """Write charts, two beside each other, in the format of the file's suffix.

    Raises:
        OSError: the file cannot be written.
    """
    figure = Figure(figsize=(12, 4 * max(1, len(rows))), layout="constrained")
    if rows:
        grid = figure.subplots(len(rows), 2, squeeze=False)
        for places, row in zip(grid, rows, strict=True):
            for axes, chart in zip(places, row, strict=True):
                _draw(axes, chart)
    figure.suptitle(title.replace("$", r"\$"), wrap=True)  # a dollar sign would start a formula
    figure.savefig(path)


def _draw(axes: Axes, chart: Chart) -> None:
    lines = list(chart.lines)
    while lines:
        line = lines.pop(0)
        if line.drawn == "band" and lines and lines[0].drawn == "band":
            _band(axes, chart, line, lines.pop(0))
        else:
            _curve(axes, chart, line)
    for mark in chart.marks:
        stack = mark.kind == "stack"
        axes.axvline(
            _x(chart, mark.x),
            color="#8250df" if stack else "#aab2bd",
            linestyle="-" if stack else "--",
            linewidth=1.5 if stack else 0.8,
            label=words.plain(mark.label, 60).replace("$", r"\$") if stack else None,
        )
    axes.set_title(f"{chart.title}{f' ({chart.unit})' if chart.unit else ''}")
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if chart.x != "time":
        axes.set_xlabel(chart.x)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.xaxis_date(tz=timezone.utc)
        axes.tick_params(axis="x", labelrotation=20)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _curve(axes: Axes, chart: Chart, line: Line) -> None:
    points = [(_x(chart, x), y) for x, y in line.points if y is not None]
    dots = line.drawn in {"points", "dots"}
    marked = line.drawn != "fit" and (dots or chart.x != "time")
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color="black" if line.drawn == "fit" else _COLOURS[line.colour],
        linestyle="none" if dots else "--" if line.drawn == "fit" else "-",
        linewidth=1.8 if line.drawn == "line" else 0.9,
        marker="o" if marked else "",
        markersize=2 if line.drawn == "dots" else 4,
        label=None if line.drawn == "course" else line.label,
    )


def _band(axes: Axes, chart: Chart, upper: Line, lower: Line) -> None:
    both = [
        (_x(chart, x), high, low)
        for (x, high), (_, low) in zip(upper.points, lower.points, strict=True)
        if high is not None and low is not None
    ]
    axes.fill_between(
        [x for x, _, _ in both],
        [low for _, _, low in both],
        [high for _, high, _ in both],
        color=_COLOURS["muted"],
        alpha=0.15,
        linewidth=0,
    )


def _x(chart: Chart, x: float) -> float:
    """Matplotlib counts dates in days."""
    return x / 86400 if chart.x == "time" else x
