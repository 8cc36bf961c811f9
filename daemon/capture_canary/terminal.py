"""What a probe looks like in a terminal: a live line, a table, two curves, the verdict."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import plotext
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from capture_canary.model import ArmName, Impact, Report, Series, VerdictName
from capture_canary.probe.measure import ArmStarted, Event, Observer
from capture_canary.probe.messages import Captured, Kind
from capture_canary.trend import advice
from capture_canary.trend.growth import copies_growth, seconds_growth

STYLES: dict[VerdictName, str] = {
    "healthy": "green",
    "mitigated": "cyan",
    "degraded": "red",
    "unknown": "yellow",
}
ARMS: dict[ArmName, str] = {
    "as_configured": "as configured",
    "aiv": "AIV",
    "ai_cpu": "AI_CPU",
}
_COLOURS: dict[ArmName, str] = {"as_configured": "red", "aiv": "cyan", "ai_cpu": "orange"}
_PLOT_WIDTH, _PLOT_HEIGHT = 58, 12


@contextmanager
def progress(console: Console) -> Iterator[Observer]:
    """Follow a probe in one live line; in silence where the output is no terminal."""
    if not console.is_terminal:
        yield lambda _event: None
        return
    with console.status("starting") as status:
        arm: ArmStarted | None = None

        def follow(event: Event) -> None:
            nonlocal arm
            if isinstance(event, ArmStarted):
                arm = event
                status.update(f"{ARMS[arm.arm]}: starting one process per rank")
            elif isinstance(event, Captured) and arm is not None:
                status.update(f"{ARMS[arm.arm]}: {_now(event, arm.kinds[event.series])}")

        yield follow


def _now(event: Captured, kind: Kind) -> str:
    copies = event.capture.h2d_copies
    counted = "copies not counted" if copies is None else f"{copies:,} copies"
    return (
        f"{kind.collective}, graphs {kind.graphs}: capture {event.capture.order}, {counted}, "
        f"{event.capture.seconds * 1e3:.1f} ms"
    )


def show(console: Console, report: Report) -> None:
    """Print a report."""
    worst = report.series[report.growth.series] if report.growth.series is not None else None
    if report.series:
        console.print(_table(report))
    if worst is not None:
        console.print(_plots(report, worst, console.width))
    console.print(_verdict(report))


def _table(report: Report) -> Table:
    table = Table(
        title=_title(report),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("arm", "graphs"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "H2D copies", "each", "ms", "each"):
        table.add_column(heading, justify="right", no_wrap=True)
    for series in worst_ranks(report.series):
        copies, seconds = copies_growth(series), seconds_growth(series)
        table.add_row(
            ARMS[series.arm],
            f"{series.collective} {series.graphs}",
            str(len(series.captures)),
            _span([capture.h2d_copies for capture in series.captures]),
            "?" if copies is None else f"{copies.estimate:+,.0f}",
            _span([capture.seconds * 1e3 for capture in series.captures], ".2f"),
            "?" if seconds is None else f"{seconds.estimate * 1e3:+.2f}",
        )
    return table


def _title(report: Report) -> str:
    what = [f"{name} {fact.value}" for name, fact in report.stack.items() if fact.value]
    counts = {series.collectives for series in report.series}
    k = f"; {counts.pop()} collectives a graph" if len(counts) == 1 else ""
    return f"{'EMULATED ' if report.emulated else ''}{', '.join(what)}{k}"


def _span(values: Sequence[float | None], form: str = ",.0f") -> str:
    known = [value for value in values[1:] if value is not None]
    return f"{known[0]:{form}} → {known[-1]:{form}}" if known else "-"


def worst_ranks(series: Sequence[Series]) -> list[Series]:
    """Return one series of each kind and arm, that of the rank which copied most."""
    best: dict[tuple[str, str, str], Series] = {}
    for one in series:
        key = (one.arm, one.collective, one.graphs)
        if key not in best or _total(one) > _total(best[key]):
            best[key] = one
    return list(best.values())


def _total(series: Series) -> int:
    return sum(capture.h2d_copies or 0 for capture in series.captures)


def _plots(report: Report, worst: Series, width: int) -> RenderableType:
    """Two curves, beside each other where there is room: copies and time per capture of the worst kind, every arm."""
    arms = [
        one
        for one in worst_ranks(report.series)
        if (one.collective, one.graphs) == (worst.collective, worst.graphs)
    ]
    beside = width >= 2 * _PLOT_WIDTH + 2
    size = _PLOT_WIDTH if beside else min(width, 2 * _PLOT_WIDTH)
    copies = _plot(
        "H2D copies per capture", [(s, [c.h2d_copies for c in s.captures]) for s in arms], size
    )
    times = _plot(
        "ms per capture", [(s, [c.seconds * 1e3 for c in s.captures]) for s in arms], size
    )
    if not beside:
        return Group(copies, times)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(copies, times)
    return grid


def _plot(title: str, curves: Sequence[tuple[Series, Sequence[float | None]]], width: int) -> Text:
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, _PLOT_HEIGHT)
    plotext.title(title)
    plotext.xlabel("capture")
    for series, values in curves:
        # Capture 1 carries set-up and would set the scale.
        points = [(n, v) for n, v in enumerate(values, 1) if v is not None and n > 1]
        if points:
            plotext.plot(
                *zip(*points, strict=True),
                marker="braille",
                color=_COLOURS[series.arm],
                label=ARMS[series.arm],
            )
    plotext.ylim(0, None)
    return Text.from_ansi(plotext.build(), no_wrap=True)


def _size(impact: Impact) -> str:
    return f" of {impact.collectives} collectives each" if impact.collectives else " like these"


def _verdict(report: Report) -> Panel:
    style = STYLES[report.verdict]
    heading = report.verdict.upper() + (f" ({report.cause})" if report.cause else "")
    lines = [
        Text(heading, style=f"bold {style}"),
        Text(f"{report.reason[:1].upper()}{report.reason[1:]}."),
    ]
    if report.impact and report.impact.seconds_per_load is not None:
        lines.append(
            Text(
                f"Impact: about {report.impact.seconds_per_load:.3g} s more for a load that captures "
                f"{report.impact.graphs} graphs{_size(report.impact)}."
            )
        )
    soc = report.stack["soc"].value if "soc" in report.stack else None
    if remedy := advice.remedy(report, soc=soc, mode=report.mode):
        lines.append(Text(f"Remedy: {remedy}"))
    evidence = [f"mode {report.mode or 'unknown'} ({report.mode_source})"]
    if report.matches_law is not None:
        evidence.append(f"growth law {'met exactly' if report.matches_law else 'not met'}")
    evidence.append(
        "positive control not seen"
        if not report.control
        else f"positive control: {report.control} copies seen"
    )
    lines.append(Text("Evidence: " + "; ".join(evidence) + ".", style="dim"))
    if report.emulated:
        lines.append(Text("EMULATED: this says nothing of any real NPU.", style="bold magenta"))
    return Panel(Group(*lines), border_style=style, expand=False)
