"""Panels in the shapes that both dashboards use."""

from collections.abc import Mapping
from typing import Any

from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as queries

SCOPE = 'job=~"$job", instance=~"$instance"'
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
Panel = stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel


def metric(name: str, labels: str = "") -> str:
    """Return a selector of a metric of ours, within what the dashboard's variables choose."""
    return f"capture_canary_{name}{{{SCOPE}{', ' if labels else ''}{labels}}}"


def target(expr: str, legend: str = "__auto", *, now: bool = False) -> prometheus.Dataquery:
    """Return a query over the dashboard's time, or of its end only."""
    query = prometheus.Dataquery().datasource(SOURCE).expr(expr).legend_format(legend)
    if now:
        return query.instant().format(queries.PromQueryFormat.TABLE)
    return query.range()


def over_time(
    title: str, description: str, exprs: Mapping[str, str], *, unit: str, width: int = 12
) -> timeseries.Panel:
    """Return curves: expressions by legend."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .height(8)
        .span(width)
        .fill_opacity(10)
        .min(0)
    )
    for letter, (legend, expr) in zip("ABCDEFGH", exprs.items(), strict=False):
        panel = panel.with_target(target(expr, legend).ref_id(letter))
    return panel


def now(
    title: str, description: str, exprs: Mapping[str, str], *, unit: str = "short", width: int = 6
) -> stat.Panel:
    """Return figures of this moment: expressions by legend."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .height(6)
        .span(width)
        .no_value("none")
    )
    for letter, (legend, expr) in zip("ABCDEFGH", exprs.items(), strict=False):
        query = target(expr, legend).instant().ref_id(letter)
        panel = panel.with_target(query)
    return panel


def rows(
    title: str,
    description: str,
    expr: str,
    *,
    value: str,
    unit: str = "short",
    width: int = 12,
) -> table.Panel:
    """Return a table of the series of this moment: a column a label, and one for the value."""
    organise: dict[str, Any] = {
        "excludeByName": dict.fromkeys(("Time", "__name__", "job"), True),
        "renameByName": {"Value": value},
    }
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .height(8)
        .span(width)
        .no_value("none")
        .with_target(target(expr, now=True).ref_id("A"))
        .with_transformation(models.DataTransformerConfig(id_val="organize", options=organise))
    )


def history(title: str, description: str, expr: str, legend: str) -> statetimeline.Panel:
    """Return what held when."""
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit("short")
        .height(7)
        .span(24)
        .with_target(target(expr, legend).ref_id("A"))
    )


def base(name: str, title: str, description: str) -> boards.Dashboard:
    """Return a dashboard with the variables that all have."""
    refresh = models.VariableRefresh.ON_TIME_RANGE_CHANGED
    return (
        boards.Dashboard(title)
        .uid(f"capture-canary-{name}")
        .description(description)
        .tags(["capture-canary", "ascend"])
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time("now-24h", "now")
        .refresh("1m")
        .timezone("browser")
        .with_variable(
            boards.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
        .with_variable(
            _chosen("job", "label_values(capture_canary_build_info, job)").refresh(refresh)
        )
        .with_variable(
            _chosen(
                "instance", 'label_values(capture_canary_build_info{job=~"$job"}, instance)'
            ).refresh(refresh)
        )
    )


def _chosen(name: str, query: str) -> boards.QueryVariable:
    everything = models.VariableOption(selected=True, text="All", value="$__all")
    return (
        boards.QueryVariable(name)
        .label(name.capitalize())
        .datasource(models.DataSourceRef(type_val="prometheus", uid="${datasource}"))
        .query(query)
        .multi(True)
        .include_all(True)
        .all_value(".+")
        .current(everything)
    )


def choice(name: str, query: str) -> boards.QueryVariable:
    """Return a variable of the dashboard's own."""
    return _chosen(name, query).refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)


def filled(board: boards.Dashboard, content: Mapping[str, list[Panel]]) -> boards.Dashboard:
    """Return the dashboard with rows of panels, by the rows' titles."""
    for title, panels in content.items():
        board = board.with_row(boards.Row(title))
        for panel in panels:
            board = board.with_panel(panel)
    return board


def dashboard(board: boards.Dashboard) -> tuple[str, str]:
    """Return the name and the text of a dashboard's file."""
    built = board.build()
    for number, panel in enumerate(built.panels or [], start=1):
        panel.id_val = number
    name = str(built.uid).removeprefix("capture-canary-")
    return f"{name}.json", JSONEncoder(sort_keys=True, indent=2).encode(built) + "\n"
