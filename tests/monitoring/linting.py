"""The rules of grafana/dashboard-linter, for a dashboard's JSON; PromQL is parsed by a real Prometheus elsewhere."""

import re
from collections.abc import Iterator
from typing import Any

VARIABLES = {"job": ".+", "instance": ".+", "problem": ".+", "__rate_interval": "10s"}
_SELECTOR = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\{([^}]*)\}")
_BARE = re.compile(r"\b(?:instance:)?capture_canary_\w+(?![\w{])")
_COUNTER = re.compile(r"(\w+\()?\s*capture_canary_\w+_(?:total|bucket)\{")


def filled(expr: str) -> str:
    """The query as Grafana sends it, with everything chosen."""
    for name, value in VARIABLES.items():
        expr = expr.replace(f"${name}", value)
    return expr


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each panel's title and query, and those of annotations."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in board["annotations"].get("list", []):
        yield f"annotation {annotation['name']}", annotation["expr"]


def lint(board: dict[str, Any]) -> list[str]:
    """What the linter would complain of."""
    found = [] if board.get("editable") is False else ["uneditable-dashboard"]
    return [*found, *_template(board), *_panels(board), *_targets(board)]


def _template(board: dict[str, Any]) -> Iterator[str]:
    variables = {one["name"]: one for one in board["templating"]["list"]}
    source = variables.get("datasource", {})
    if (source.get("type"), source.get("query")) != ("datasource", "prometheus"):
        yield "template-datasource-rule"
    if source.get("label") != "Data source":
        yield "template-datasource-rule: label"
    for name in ("job", "instance"):
        one = variables.get(name, {})
        wanted = {
            "type": "query",
            "label": name.capitalize(),
            "multi": True,
            "allValue": ".+",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
        }
        for key, value in wanted.items():
            if one.get(key) != value:
                yield f"template-{name}-rule: {key}"
    for name, one in variables.items():
        if one["type"] == "query" and one.get("refresh") != 2:
            yield f"template-on-time-change-reload-rule: {name}"


def _panels(board: dict[str, Any]) -> Iterator[str]:
    for panel in panels(board):
        title = panel.get("title")
        if not title or not panel.get("description"):
            yield f"panel-title-description-rule: {title}"
        if panel.get("datasource", {}).get("uid") != "${datasource}":
            yield f"panel-datasource-rule: {title}"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"panel-units-rule: {title}"
        if not panel.get("targets"):
            yield f"panel-no-targets-rule: {title}"


def _targets(board: dict[str, Any]) -> Iterator[str]:
    for title, expr in queries(board):
        selectors = _SELECTOR.findall(expr)
        if not selectors or _BARE.search(re.sub(_SELECTOR, "", expr)):
            yield f"target-promql-rule: {title}: a metric without matchers"
        for name in ("job", "instance"):
            if not all(f'{name}=~"${name}"' in one for one in selectors):
                yield f"target-{name}-rule: {title}"
        ranges = re.findall(r"\[([^\]]+)\]", expr)
        if set(ranges) - {"$__rate_interval"}:
            yield f"target-rate-interval-rule: {title}"
        for found in _COUNTER.finditer(expr):
            if found[1] not in ("rate(", "irate(", "increase("):
                yield f"target-counter-agg-rule: {title}"
