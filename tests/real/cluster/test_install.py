"""Install, upgrade, roll back, uninstall on a real API server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.real.cluster.kube import CHART, Cluster
from tests.real.cluster.rendering import CASES, Helm, of_kind

pytestmark = pytest.mark.real
NAME = ("-n", "canary")


def test_install_upgrade_rollback_uninstall(cluster: Cluster):
    cluster.helm("install", "canary", CHART, *NAME, "--create-namespace")
    first = cluster.get("daemonset", "canary-capture-canary", *NAME)
    cluster.helm("upgrade", "canary", CHART, *NAME, "--set", "config.probe.interval=12h")
    second = cluster.get("daemonset", "canary-capture-canary", *NAME)
    config = cluster.get("configmap", "canary-capture-canary", *NAME)["data"]["config.yaml"]
    cluster.helm("rollback", "canary", "1", *NAME)
    third = cluster.get("daemonset", "canary-capture-canary", *NAME)
    cluster.helm("uninstall", "canary", *NAME, "--wait")

    assert {"interval": "12h"} == yaml.safe_load(config)["probe"]
    templates = [one["spec"]["template"] for one in (first, second, third)]
    assert templates[0] == templates[2] != templates[1]
    left = cluster.get(
        "all,configmaps,secrets,serviceaccounts", *NAME, "-l", "app.kubernetes.io/instance=canary"
    )
    assert [] == left["items"]


def test_a_pause_restarts_nothing(cluster: Cluster):
    cluster.helm("install", "pause", CHART, *NAME, "--create-namespace")
    before = cluster.get("daemonset", "pause-capture-canary", *NAME)
    cluster.helm("upgrade", "pause", CHART, *NAME, "--set", "paused=true")
    after = cluster.get("daemonset", "pause-capture-canary", *NAME)
    config = cluster.get("configmap", "pause-capture-canary", *NAME)["data"]["config.yaml"]
    cluster.helm("uninstall", "pause", *NAME, "--wait")

    assert before["metadata"]["generation"] == after["metadata"]["generation"]
    assert yaml.safe_load(config)["paused"] is True


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_a_real_1_20_takes_every_case(cluster: Cluster, helm: Helm, values: Path):
    objects = [
        one
        for one in helm.template("--values", values, "--namespace", "default", version="1.20.2")
        if not one["apiVersion"].startswith("monitoring.coreos.com")  # has no such kinds
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    cluster.kubectl(
        "apply", "--dry-run=server", "-n", "default", "-f", "-", given=json.dumps(listed)
    )


def test_helm_test_is_content(helm: Helm):
    """Its pod's own words, run as the pod would."""
    (pod,) = of_kind(helm.template(), "Pod")
    words = pod["spec"]["containers"][0]["args"]
    command = [sys.executable, "-m", "capture_canary.cli", *words]
    ran = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, ran.stderr
