"""The dashboards hold against the rules of grafana/dashboard-linter, and ask for nothing that is not exported."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.monitoring.linting import lint, panels, queries

ROOT = Path(__file__).parents[2]
BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in (ROOT / "grafana").glob("*.json")
}


def test_there_are_two():
    assert {"fleet", "node"} == set(BOARDS)
    assert {"capture-canary-fleet", "capture-canary-node"} == {b["uid"] for b in BOARDS.values()}


EXCEPT = {
    # A total since the start is what tells that something was ever skipped: no rate says that.
    "fleet": {"target-counter-agg-rule: Coverage"},
    "node": set[str](),
}


@pytest.mark.parametrize("name", BOARDS)
def test_it_holds_against_the_linter(name: str):
    assert EXCEPT[name] == set(lint(BOARDS[name]))


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str):
    ids = [panel["id"] for panel in BOARDS[name]["panels"]]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for panel in BOARDS[name]["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("name", BOARDS)
def test_it_asks_for_what_is_documented_or_recorded(name: str):
    known = set(re.findall(r"`(capture_canary_\w+)`", (ROOT / "docs" / "metrics.md").read_text()))
    recorded = set(
        re.findall(r"record: (\S+)", (ROOT / "rules" / "capture-canary.yml").read_text())
    )
    for title, expr in queries(BOARDS[name]):
        for metric in re.findall(r"((?:instance:)?capture_canary_\w+(?::\w+)?)\{", expr):
            assert re.sub(r"_bucket$", "", metric) in known | recorded, title


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("uneditable-dashboard", lambda board: board.update(editable=True)),
        ("panel-units-rule", lambda b: panels(b)[0]["fieldConfig"]["defaults"].pop("unit")),
        ("panel-title-description-rule", lambda b: panels(b)[0].pop("description")),
        ("panel-datasource-rule", lambda b: panels(b)[0]["datasource"].update(uid="mine")),
        ("panel-no-targets-rule", lambda b: panels(b)[0].update(targets=[])),
        ("target-job-rule", lambda b: ask(b, 'x{instance=~"$instance"}')),
        ("target-instance-rule", lambda b: ask(b, 'x{job=~"$job"}')),
        ("target-promql-rule", lambda b: ask(b, "capture_canary_verdict")),
        ("target-rate-interval-rule", lambda b: ask(b, f"rate(x{{{SCOPE}}}[5m])")),
        ("target-counter-agg-rule", lambda b: ask(b, f"capture_canary_x_total{{{SCOPE}}}")),
        ("template-job-rule", lambda b: variable(b, "job").update(multi=False)),
        ("template-instance-rule", lambda b: variable(b, "instance").update(allValue=".*")),
        ("template-datasource-rule", lambda b: variable(b, "datasource").update(query="loki")),
        (
            "template-on-time-change-reload-rule",
            lambda b: variable(b, "problem").update(refresh=1),
        ),
    ],
)
def test_the_lint_finds_what_it_is_for(rule: str, spoil: Any):
    board = json.loads(json.dumps(BOARDS["fleet"]))
    spoil(board)
    assert any(one.startswith(rule) for one in set(lint(board)) - EXCEPT["fleet"])


SCOPE = 'job=~"$job", instance=~"$instance"'


def ask(board: dict[str, Any], expr: str) -> None:
    panels(board)[0]["targets"][0]["expr"] = expr


def variable(board: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(v for v in board["templating"]["list"] if v["name"] == name)
    return found
