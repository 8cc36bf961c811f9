"""The rule files, by Prometheus' own promtool: what fires, what does not, and with which share."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

RULES = Path(__file__).parents[2] / "rules"
COMMON = RULES / "common-cause.yml"
PROMTOOL = shutil.which("promtool")
NODES = 20
HOURS = 4
"""How long the fleet is looked at; asked at the end, with a sample a minute."""


def promtool(*command: str | Path) -> subprocess.CompletedProcess[str]:
    if PROMTOOL is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("promtool is missing")
    return subprocess.run(
        [PROMTOOL, *command], capture_output=True, check=False, timeout=60, text=True
    )


def since(hours: float) -> str:
    """A series that is 1 from so many hours before the end on, and absent until then."""
    absent = round(60 * (HOURS - hours))
    return f"_x{absent} 1x{60 * HOURS - absent}"


def fleet(
    onsets: Mapping[int, float],
    *,
    nodes: int = NODES,
    cause: str = "time_only",
    emulated: bool = False,
    scraped: Mapping[int, float] | None = None,
) -> list[dict[str, str]]:
    """Series of nodes with one stack; `onsets` and `scraped` are hours before the end, by node."""
    series: list[dict[str, str]] = []
    for node in range(nodes):
        common = f'evidence="probe",instance="node-{node}",stack="abc"'
        always = since((scraped or {}).get(node, HOURS))
        for verdict in ("degraded", "healthy"):
            name = f'capture_canary_verdict{{{common},verdict="{verdict}"}}'
            series.append({"series": name, "values": always})
        build = f'capture_canary_build_info{{emulated="{str(emulated).lower()}",instance="node-{node}",version="1"}}'
        series.append({"series": build, "values": always})
        if node in onsets:
            info = f'capture_canary_verdict_info{{cause="{cause}",{common}}}'
            series.append({"series": info, "values": since(onsets[node])})
    return series


def run(tmp_path: Path, series: list[dict[str, str]], share: float | None, alerts: Any) -> None:
    """Compare with the share of nodes that turned (None: no onset) and the alerts that fire at the end."""
    samples = (
        []
        if share is None
        else [{"labels": 'stack:capture_canary_time_only_onset:ratio{stack="abc"}', "value": share}]
    )
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": "stack:capture_canary_time_only_onset:ratio",
                "eval_time": f"{HOURS}h",
                "exp_samples": samples,
            }
        ],
        "alert_rule_test": [
            {
                "eval_time": f"{HOURS}h",
                "alertname": "CaptureCanaryCommonCause",
                "exp_alerts": alerts,
            }
        ],
    }
    document = {"rule_files": [str(COMMON)], "evaluation_interval": "1m", "tests": [test]}
    path = tmp_path / "test.yml"
    path.write_text(json.dumps(document))  # JSON is YAML
    ran = promtool("test", "rules", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def alert(share: str) -> list[dict[str, Any]]:
    return [
        {
            "exp_labels": {"severity": "info", "stack": "abc"},
            "exp_annotations": {
                "summary": f"Captures got slower on {share} of the nodes with one stack within an hour.",
                "description": f"By time alone, copies were not counted, {share} of the nodes with the stack abc "
                "turned degraded within an hour. Look for what they share (a rollout, power, a clock, a network) "
                "before looking at any of them, and take it as one incident. capture_canary_stack_info says what the "
                "stack is.",
            },
        }
    ]


@pytest.mark.real
@pytest.mark.parametrize("path", sorted(RULES.glob("*.yml")), ids=lambda path: path.name)
def test_promtool_takes_the_rules(path: Path):
    ran = promtool("check", "rules", "--lint-fatal", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.real
@pytest.mark.parametrize(
    ("turned", "share"), [(2, "10%"), (NODES, "100%")], ids=["two of twenty", "all"]
)
def test_nodes_that_turn_at_once_have_a_common_cause(tmp_path: Path, turned: int, share: str):
    onsets = {node: 0.25 + 0.5 * node / NODES for node in range(turned)}
    run(tmp_path, fleet(onsets), turned / NODES, alert(share))


@pytest.mark.real
@pytest.mark.parametrize(
    ("series", "share"),
    [
        (fleet({}), None),
        (fleet({3: 0.5}), 0.05),
        (fleet({3: 0.5}, nodes=4), 0.25),
        (fleet({3: 0.5, 4: 0.6}, nodes=40), 0.05),
        (fleet({0: 0.5, 1: 1.5, 2: 2.5, 3: 3.5}), 0.05),
        (fleet({0: 1.5, 1: 1.5, 2: 1.5}), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, cause="aicpu_resource_list"), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, emulated=True), None),
        (fleet({0: 0.5, 1: 0.5, 2: 0.5}, scraped=dict.fromkeys(range(NODES), 0.9)), None),
    ],
    ids=[
        "none turned",
        "one of twenty",
        "one alone, of four",
        "two of forty",
        "one after the other",
        "longer ago",
        "another cause",
        "emulated",
        "new to Prometheus",
    ],
)
def test_others_have_not(tmp_path: Path, series: list[dict[str, str]], share: float | None):
    run(tmp_path, series, share, [])


@pytest.mark.real
def test_emulated_nodes_do_not_dilute_the_fleet(tmp_path: Path):
    real, emulated = fleet({0: 0.5, 1: 0.5}), fleet({}, nodes=100, emulated=True)
    for one in emulated:
        one["series"] = one["series"].replace("node-", "emulated-")
    run(tmp_path, real + emulated, 0.1, alert("10%"))
