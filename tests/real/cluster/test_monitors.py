"""What the Prometheus operator reads: by its own schemas, and the rules by promtool."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.real.cluster import kube
from tests.real.cluster.rendering import Helm, of_kind

pytestmark = pytest.mark.real
RULES = kube.CHART / "files" / "rules.yaml"
ALL = (
    "--set", "podMonitor.enabled=true,podMonitor.sidecars=true,serviceMonitor.enabled=true,rules.enabled=true",
)  # fmt: skip
ALERT = "CaptureCanaryDegraded"


def validate(objects: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    node = kube.need_program("node")
    script = kube.TOOLS / "validate-operator.cjs"
    models = kube.tool("get-operator-models")
    return subprocess.run(
        [node, script, models],
        capture_output=True,
        check=False,
        input=json.dumps(objects),
        text=True,
    )


def rule(helm: Helm, *options: str) -> dict[str, Any]:
    (found,) = of_kind(helm.template(*ALL, *options), "PrometheusRule")
    return found


def alerts(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        one["alert"]: one
        for group in found["spec"]["groups"]
        for one in group["rules"]
        if "alert" in one
    }


def test_the_operators_schemas_take_all_kinds(helm: Helm):
    objects = [
        one for one in helm.template(*ALL) if one["apiVersion"].startswith("monitoring.coreos.com")
    ]
    assert ["PodMonitor", "PodMonitor", "PrometheusRule", "ServiceMonitor"] == sorted(
        one["kind"] for one in objects
    )
    ran = validate(objects)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("PodMonitor", {"podMetricsEndpoints": [{"interval": "often"}]}),
        ("PrometheusRule", {"groups": [{"name": "x", "rules": [{"alert": "A"}]}]}),
        ("ServiceMonitor", {"endpoints": "none"}),
    ],
)
def test_the_schemas_refuse_what_is_wrong(helm: Helm, kind: str, change: dict[str, Any]):
    one = of_kind(helm.template(*ALL), kind)[0]
    one["spec"].update(change)
    ran = validate([one])
    assert ran.returncode == 1
    assert kind in ran.stdout


def test_promtool_takes_the_rules_as_rendered(helm: Helm, tmp_path: Path):
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rule(helm)["spec"]))
    ran = subprocess.run(
        [kube.need_program("promtool"), "check", "rules", path],
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_unchanged_the_rules_are_those_of_the_file(helm: Helm):
    file = yaml.safe_load(RULES.read_text())
    found = rule(helm)["spec"]
    assert [one["name"] for one in file["groups"]] == [one["name"] for one in found["groups"]]
    for before, after in zip(file["groups"], found["groups"], strict=True):
        assert before["rules"] == after["rules"]


def test_an_alert_can_be_switched_timed_and_labelled(helm: Helm):
    before = alerts(rule(helm))
    changed = alerts(
        rule(
            helm,
            "--set",
            f"rules.alerts.{ALERT}.forDuration=1h,rules.alerts.{ALERT}.keepFiringFor=2h"
            f",rules.alerts.{ALERT}.labels.severity=critical,rules.alertLabels.team=npu",
        )
    )
    assert ("1h", "2h") == (changed[ALERT]["for"], changed[ALERT]["keep_firing_for"])
    assert "critical" == changed[ALERT]["labels"]["severity"]
    assert all("npu" == one["labels"]["team"] for one in changed.values())
    without = alerts(rule(helm, "--set", f"rules.alerts.{ALERT}.enabled=false"))
    assert before.keys() - {ALERT} == without.keys()


def test_links_follow_the_values(helm: Helm):
    found = alerts(rule(helm, "--set", "rules.runbookUrl=https://r/,rules.dashboardUrl=https://g/"))
    for name, one in found.items():
        assert f"https://r/{name}.md" == one["annotations"]["runbook_url"]
        assert one["annotations"]["dashboard_url"].startswith("https://g/d/")


def test_emulated_nodes_alert_when_they_are_asked_to(helm: Helm):
    without, asked = (
        "".join(
            one["expr"] for group in rule(helm, *more)["spec"]["groups"] for one in group["rules"]
        )
        for more in ((), ("--set", "rules.emulated=true"))
    )
    assert 'emulated="false"' in without
    assert 'emulated="false"' not in asked
    assert without.count('emulated="false"') == asked.count('emulated=~"true|false"')


def test_an_alert_that_does_not_exist_is_refused(helm: Helm):
    ran = helm.run(
        "template", "x", kube.CHART, "--api-versions", "monitoring.coreos.com/v1/PrometheusRule",
        "--set", "rules.enabled=true,rules.alerts.Nonsense.enabled=false",
    )  # fmt: skip
    assert ran.returncode != 0
    assert "rules.alerts.Nonsense" in ran.stderr
    assert ALERT in ran.stderr


@pytest.mark.parametrize("key", ["podMonitor", "serviceMonitor", "rules"])
def test_a_cluster_without_the_operator_is_told(helm: Helm, key: str):
    assert f"{key}.enabled" in helm.refusal("--set", f"{key}.enabled=true")


def test_dashboards_come_as_they_are(helm: Helm):
    files = {path.name: path for path in (kube.CHART / "files/dashboards").glob("*.json")}
    found = {
        name: text
        for one in of_kind(helm.template("--set", "dashboards.enabled=true"), "ConfigMap")
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in one["data"].items()
    }
    assert files.keys() == found.keys()
    for name, text in found.items():
        assert json.loads(files[name].read_text()) == json.loads(text)
