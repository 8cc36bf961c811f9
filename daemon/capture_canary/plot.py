"""A probe's curves as a picture: copies and time per capture, arms side by side."""

from pathlib import Path

from matplotlib.figure import Figure

from capture_canary.model import ArmName, Report, Series
from capture_canary.terminal import ARMS, worst_ranks

_COLOURS: dict[ArmName, str] = {"as_configured": "#c4314b", "aiv": "#1f77b4", "ai_cpu": "#8c564b"}


def save(report: Report, path: Path) -> None:
    """Write the curves of a report to `path`, in the format that its suffix names.

    Raises:
        OSError: the file cannot be written.
    """
    figure = Figure(figsize=(10, 4), layout="constrained")
    copies, times = figure.subplots(1, 2)
    for series in worst_ranks(report.series):
        points = series.captures[1:]  # capture 1 carries set-up
        orders = [capture.order for capture in points]
        style = {
            "color": _COLOURS[series.arm],
            "linestyle": "-" if series.graphs == "destroyed" else "--",
            "marker": "o" if series.collective == "AllReduce" else "s",
            "markersize": 3,
            "label": _label(series),
        }
        if all(capture.h2d_copies is not None for capture in points):
            copies.plot(orders, [capture.h2d_copies for capture in points], **style)
        times.plot(orders, [capture.seconds * 1e3 for capture in points], **style)
    for axes, title in ((copies, "H2D copies per capture"), (times, "ms per capture")):
        axes.set_title(title)
        axes.set_xlabel("capture")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    copies.legend(fontsize="small")
    figure.suptitle(_title(report))
    figure.savefig(path)


def _label(series: Series) -> str:
    return f"{ARMS[series.arm]}: {series.collective}, {series.graphs}"


def _title(report: Report) -> str:
    stack = ", ".join(f"{name} {fact.value}" for name, fact in report.stack.items() if fact.value)
    cause = f" ({report.cause})" if report.cause else ""
    return f"{'EMULATED ' if report.emulated else ''}{stack}: {report.verdict}{cause}"
