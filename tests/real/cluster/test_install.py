"""Install, upgrade, roll back, uninstall on a real API server."""

import pytest
import yaml
from tests.real.cluster.kube import CHART, Cluster

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
