"""`job` mode on a real API server with the real Job controller: this test plays scheduler and kubelet."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.real.cluster.beside import SERVICE, Beside, install, template
from tests.real.cluster.kube import Cluster
from tests.running import Running, until

pytestmark = pytest.mark.real
JOBS = ("jobs", "-n", SERVICE, "-l", "app.kubernetes.io/component=probe")
PODS = ("pods", "-n", SERVICE, "-l", "app.kubernetes.io/component=probe")


@pytest.fixture
def released(cluster: Cluster) -> Iterator[Cluster]:
    install(cluster)
    yield cluster
    cluster.kubectl("delete", *JOBS[:3], "--all", "--wait")
    cluster.helm("uninstall", "canary", "-n", SERVICE, "--wait")


def pod_of(cluster: Cluster) -> dict[str, Any]:
    """The pod that the Job controller made."""
    pods = until(lambda: cluster.get(*PODS)["items"])
    assert len(pods) == 1
    pod: dict[str, Any] = pods[0]
    return pod


def run_as_kubelet(pod: dict[str, Any], folder: Path) -> str:
    """Run the container's own words, and return its termination message."""
    message = folder / "termination-log"
    words = [
        one.replace("/dev/termination-log", str(message))
        for one in pod["spec"]["containers"][0]["args"]
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "capture_canary.cli", *words],
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return message.read_text()


def test_a_daemons_probe_runs_in_a_job_and_its_result_is_exported(
    released: Cluster, tmp_path: Path
):
    (tmp_path / "d").mkdir()
    daemon = Running(tmp_path / "d", "mode=job", "probe.interval=1h")
    beside = Beside(
        released, tmp_path / "d/state/kubernetes", "node-a", f"--job={template(released, tmp_path)}"
    )
    try:
        pod = pod_of(released)
        terms = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}] == (
            terms["nodeSelectorTerms"][0]["matchFields"]
        )
        assert "nodeName" not in pod["spec"]
        assert "2" == pod["spec"]["containers"][0]["resources"]["limits"]["huawei.com/Ascend910"]
        assert -1000 == pod["spec"]["priority"]
        assert "Never" == pod["spec"]["preemptionPolicy"]
        released.node("node-a")
        released.bind(SERVICE, pod["metadata"]["name"], "node-a")
        released.end_pod(SERVICE, pod["metadata"]["name"], message=run_as_kubelet(pod, tmp_path))
        until(lambda: daemon.verdict("degraded"))
        assert daemon.metric("probe_runs_total") == 1
        assert (daemon.metric("probe_device_seconds_total") or 0) > 0
        until(lambda: not released.get(*JOBS)["items"])  # another node may have its place
    finally:
        ended = [beside.end(), daemon.end()]  # both, whatever the first one says
    assert [0, 0] == ended


def test_the_place_of_a_job_is_the_fleets_limit(released: Cluster, tmp_path: Path):
    job = f"--job={template(released, tmp_path)}"
    nodes = [
        Beside(released, tmp_path / name / "kubernetes", name, job, "--max-at-once=1")
        for name in ("node-a", "node-b")
    ]
    try:
        nodes[0].write("request", {"id": "1", "at": 0.0})
        pod = pod_of(released)
        nodes[1].write("request", {"id": "2", "at": 0.0})
        assert "fleet_limit" == nodes[1].answer("2")["refusal"]
        released.node("node-a")
        released.bind(SERVICE, pod["metadata"]["name"], "node-a")
        released.end_pod(SERVICE, pod["metadata"]["name"], message="{", code=1)
        answer = nodes[0].answer("1")
        assert "child" == answer["failure"]
        assert "exit code 1" in answer["detail"]
        until(lambda: not released.get(*JOBS)["items"])
        nodes[1].write("request", {"id": "3", "at": 0.0})
        until(lambda: released.get(*JOBS)["items"])
    finally:
        assert [0, 0] == [one.end() for one in nodes]


def test_no_npus_within_the_deadline_is_no_failure(released: Cluster, tmp_path: Path):
    job = template(released, tmp_path, activeDeadlineSeconds=3)
    beside = Beside(released, tmp_path / "kubernetes", "node-a", f"--job={job}")
    try:
        beside.write("request", {"id": "1", "at": 0.0})
        assert "no_npus" == beside.answer("1")["refusal"]
    finally:
        assert 0 == beside.end()


def test_a_job_under_way_is_taken_over_after_a_restart(released: Cluster, tmp_path: Path):
    job = f"--job={template(released, tmp_path)}"
    first = Beside(released, tmp_path / "kubernetes", "node-a", job)
    first.write("request", {"id": "1", "at": 0.0})
    pod = pod_of(released)
    assert 0 == first.end()
    second = Beside(released, tmp_path / "kubernetes", "node-a", job)
    try:
        second.write("request", {"id": "2", "at": 0.0})
        released.node("node-a")
        released.bind(SERVICE, pod["metadata"]["name"], "node-a")
        released.end_pod(SERVICE, pod["metadata"]["name"], message=run_as_kubelet(pod, tmp_path))
        assert "degraded" == second.answer("2")["result"]["report"]["verdict"]
    finally:
        assert 0 == second.end()


def test_a_job_that_somebody_deletes_is_a_skip(released: Cluster, tmp_path: Path):
    beside = Beside(
        released, tmp_path / "kubernetes", "node-a", f"--job={template(released, tmp_path)}"
    )
    try:
        beside.write("request", {"id": "1", "at": 0.0})
        pod_of(released)
        released.kubectl("delete", *JOBS[:3], "--all", "--wait")
        answer = beside.answer("1")
        assert ("kubernetes", "the Job was deleted") == (answer["refusal"], answer["detail"])
    finally:
        assert 0 == beside.end()


def test_without_permission_jobs_are_off_and_that_is_said_once(released: Cluster, tmp_path: Path):
    install(released, "--set", "rbac.create=false")
    beside = Beside(
        released, tmp_path / "kubernetes", "node-a", f"--job={template(released, tmp_path)}"
    )
    try:
        for number in ("1", "2", "3"):
            beside.write("request", {"id": number, "at": 0.0})
            answer = beside.answer(number)
            assert "kubernetes" == answer["refusal"]
            assert "403" in answer["detail"]
        assert 1 == len(beside.events("denied"))
        life = until(lambda: (beside.file("life") or {}).get("off") and beside.file("life"))
        assert life
        assert "403" in life["off"]["jobs"]
        assert {"jobs": 1} == life["failures"]
    finally:
        assert 0 == beside.end()
