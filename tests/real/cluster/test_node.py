"""What is shown on the node, what the chart's roles allow, and an API server that goes away."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.real.cluster.beside import SERVICE, Beside, install
from tests.real.cluster.kube import Cluster
from tests.running import until

pytestmark = pytest.mark.real
ACCOUNT = f"{SERVICE}:canary"
NODE = "node-c"
SHOW = ("--set", "kubernetes.nodeCondition=true", "--set", "kubernetes.events=true")


@pytest.fixture
def shown(cluster: Cluster) -> Iterator[Cluster]:
    install(cluster, "--set", "mode=observe", *SHOW)
    cluster.node(NODE)
    yield cluster
    cluster.kubectl("delete", "node", NODE)
    cluster.kubectl("delete", "events", "--all", "-n", "default")
    cluster.helm("uninstall", "canary", "-n", SERVICE, "--wait")


def standing(verdict: str = "healthy", *, stale: bool = False, reason: str = "r") -> dict[str, Any]:
    now = time.time()
    return {
        "verdict": verdict,
        "reason": reason,
        "emulated": False,
        "probes": True,
        "last_success": now - 100.0,
        "stale_after": now + (-10.0 if stale else 10_000.0),
    }


def condition(cluster: Cluster) -> dict[str, Any]:
    conditions = cluster.get("node", NODE)["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == "CaptureCanaryProbeStale"), {})


def events(cluster: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.get("events", "-n", "default")["items"]
    return [one for one in found if one["source"].get("component") == "capture-canary"]


def test_the_condition_is_patched_and_read_back(shown: Cluster, tmp_path: Path):
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "m"}
    shown.patch_status(f"/api/v1/nodes/{NODE}", {"conditions": [ready]})
    beside = Beside(shown, tmp_path / "kubernetes", NODE, "--node-condition")
    try:
        beside.write("standing", standing())
        until(lambda: condition(shown).get("status") == "False")
        before = condition(shown)
        assert "ProbesComeToVerdicts" == before["reason"]
        beside.write("standing", standing(stale=True, reason="NPUs are busy"))
        until(lambda: condition(shown)["status"] == "True")
        assert "NPUs are busy" in condition(shown)["message"]
        kinds = [one["type"] for one in shown.get("node", NODE)["status"]["conditions"]]
        assert sorted(kinds) == ["CaptureCanaryProbeStale", "Ready"]
    finally:
        assert 0 == beside.end()


def test_a_restart_neither_resets_nor_moves_the_condition(shown: Cluster, tmp_path: Path):
    then = "2026-01-01T00:00:00Z"
    old = {
        "type": "CaptureCanaryProbeStale", "status": "True", "reason": "x", "message": "old",
        "lastTransitionTime": then, "lastHeartbeatTime": then,
    }  # fmt: skip
    shown.patch_status(f"/api/v1/nodes/{NODE}", {"conditions": [old]})
    beside = Beside(shown, tmp_path / "kubernetes", NODE, "--node-condition")
    try:
        until(lambda: beside.file("life"))  # it looked, and had nothing to say
        assert old.items() <= condition(shown).items()
        beside.write("standing", standing(stale=True))
        until(lambda: condition(shown)["message"] != "old")
        assert (then, "True") == (
            condition(shown)["lastTransitionTime"],
            condition(shown)["status"],
        )
    finally:
        assert 0 == beside.end()


def test_an_event_tells_of_a_change_once(shown: Cluster, tmp_path: Path):
    beside = Beside(shown, tmp_path / "kubernetes", NODE, "--events", "--node-condition")
    try:
        beside.write("standing", standing("healthy"))
        until(lambda: condition(shown))  # what it begins with is no change
        beside.write("standing", standing("degraded", reason="copies grow"))
        until(lambda: events(shown))
        (event,) = events(shown)
        assert ("Warning", "GraphCaptureDegraded") == (event["type"], event["reason"])
        assert "was healthy and is degraded: copies grow" in event["message"]
        assert NODE == event["involvedObject"]["name"]
        status = Path(f"/proc/{beside.process.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        assert int(resident.split()[1]) < 45 * 1024, resident
    finally:
        assert 0 == beside.end()


def test_what_is_denied_is_off_and_the_rest_works(shown: Cluster, tmp_path: Path):
    install(shown, "--set", "mode=observe", "--set", "kubernetes.nodeCondition=true")
    beside = Beside(shown, tmp_path / "kubernetes", NODE, "--events", "--node-condition")
    try:
        beside.write("standing", standing("healthy"))
        until(lambda: condition(shown))
        beside.write("standing", standing("degraded", stale=True))
        until(lambda: condition(shown)["status"] == "True")
        life = until(lambda: (beside.file("life") or {}).get("off") and beside.file("life"))
        assert life
        assert ["events"] == list(life["off"])
        assert {"events": 1, "node_condition": 0} == life["failures"]
        (said,) = beside.events("denied")
        assert "events" == said["feature"]
        assert "403" in said["why"]
    finally:
        assert 0 == beside.end()


def test_an_api_server_that_was_away_is_told_how_it_is_now(shown: Cluster, tmp_path: Path):
    beside = Beside(shown, tmp_path / "kubernetes", NODE, "--events", "--node-condition")
    try:
        beside.write("standing", standing("healthy"))
        until(lambda: condition(shown))
        shown.stop_server()
        try:
            for verdict in ("degraded", "unknown", "mitigated"):
                beside.write("standing", standing(verdict, stale=True))
                until(lambda: len(beside.events("api_failed")) == 2)  # once a feature
            assert beside.process.poll() is None
        finally:
            shown.start_server()
        until(lambda: condition(shown)["status"] == "True")
        until(lambda: events(shown))
        (event,) = events(shown)  # the two between are history
        assert "was healthy and is mitigated" in event["message"]
    finally:
        assert 0 == beside.end()


MAY: dict[str, list[tuple[str, ...]]] = {
    "jobs": [("create", "jobs.batch"), ("delete", "jobs.batch"), ("list", "jobs.batch"), ("list", "pods")],
    "condition": [("get", "nodes", "--subresource=status"), ("patch", "nodes", "--subresource=status")],
}  # fmt: skip
NEVER = [
    *((verb, "secrets") for verb in ("get", "list", "watch")),
    *((verb, "pods") for verb in ("create", "delete", "patch")),
    ("create", "pods", "--subresource=exec"),
    *((verb, "nodes") for verb in ("patch", "update", "delete")),
    *((verb, "jobs.batch") for verb in ("patch", "update", "deletecollection")),
    ("create", "daemonsets.apps"),
    ("create", "clusterrolebindings"),
    ("get", "configmaps"),
]


def may(cluster: Cluster, *what: str, namespace: str = SERVICE) -> bool:
    return cluster.may(ACCOUNT, what[0], what[1], *what[2:], "-n", namespace)


@pytest.mark.parametrize(
    ("options", "granted"),
    [
        (("--set", "mode=observe"), []),
        ((), MAY["jobs"]),
        (("--set", "mode=observe", "--set", "kubernetes.nodeCondition=true"), MAY["condition"]),
    ],
    ids=["observe", "job", "node condition"],
)
def test_roles_are_enough_and_no_more(
    cluster: Cluster, options: tuple[str, ...], granted: list[tuple[str, ...]]
):
    install(cluster, *options)
    try:
        for what in [*MAY["jobs"], *MAY["condition"]]:
            assert may(cluster, *what) == (what in granted), what
            if what in MAY["jobs"]:
                assert not may(cluster, *what, namespace="default"), what
        for what in NEVER:
            assert not may(cluster, *what), what
        assert not may(cluster, "create", "events", namespace="default")
    finally:
        cluster.helm("uninstall", "canary", "-n", SERVICE, "--wait")


def test_events_may_be_made_in_default_alone(shown: Cluster):
    assert may(shown, "create", "events", namespace="default")
    assert not may(shown, "create", "events")
    assert not may(shown, "delete", "events", namespace="default")
