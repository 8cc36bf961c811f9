"""What answers over a socket: Prometheus, kubelet, API server, Docker Engine, and children that ask them."""

import contextlib
import functools
import io
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import docker
import msgspec

from capture_canary import fetch, foreign
from capture_canary.kubernetes import jobs
from capture_canary.kubernetes.exchange import Request
from capture_canary.kubernetes.feature import Caller
from capture_canary.report import page, prometheus, story
from capture_canary.stack import docker_child, helpers, kubelet_child, kubernetes_child
from capture_canary.stack.command import Command
from capture_canary.stack.environ import ALLOWED
from capture_canary.stack.helpers import Answer
from capture_canary.stack.kubernetes_child import PodList
from tests.commands.test_story_afar import DEGRADED, series, vector
from tests.fuzz.target import Target
from tests.fuzz.targets.pages import harmless
from tests.stack.test_helpers import RESPONSE
from tests.stack.test_kubernetes_child import FROM, ID, MODE, TOKEN, pod

NOW = 1_790_000_000.0
SKIPPED = [series("probe_skips_total", 3, reason="npu_busy")]
OURS = {"job": "capture-canary"}
TEMPLATE: dict[str, Any] = {
    "metadata": {"generateName": "capture-canary-", "labels": OURS},
    "spec": {
        "ttlSecondsAfterFinished": 600,
        "activeDeadlineSeconds": 300,
        "template": {"metadata": {}, "spec": {}},
    },
}


def past(data: bytes) -> None:
    """The same answer to each of the queries, and what is made of them."""
    with mock.patch.object(fetch, "get", return_value=data):
        found = prometheus.read("http://p:9090", "worker-1", since=NOW - 9e6, now=NOW)
    harmless(page.page(found, node="worker-1", now=NOW, version="0.1.0"))
    assert all(line.isprintable() for line in story.tell(found, node="worker-1", now=NOW))
    assert all(
        one.verdict in {"healthy", "degraded", "mitigated", "unknown"} for one in found.present
    )


def kubelet(data: bytes) -> None:
    for one in kubelet_child.pods(data):
        assert one.devices
        assert all(0 <= device <= 9999 for device in one.devices)
        msgspec.json.encode(one)


def pods(data: bytes) -> None:
    found = kubernetes_child.containers(foreign.decode(data, PodList))
    assert all(set(one.variables) <= ALLOWED for one in found.values())
    msgspec.json.encode(Answer(containers=found))


class _Api:
    """An API server that says one thing."""

    namespace = "ours"

    def __init__(self, objects: Any) -> None:
        self._objects = objects

    def found(self, _kind: object, _labels: Mapping[str, str]) -> Any:
        return self._objects

    def create(self, *_: object) -> None:
        pass

    delete_job = create


def job(data: bytes) -> None:
    """Jobs and pods as an API server tells of them; whatever they are, the loop goes on."""
    objects = [one for one in foreign.decode(data, list[Any]) if isinstance(one, dict)]
    made = jobs.Jobs(_Api(objects), TEMPLATE, node="n1", at_once=3)  # type: ignore[arg-type]  # all of it that Jobs call
    caller = Caller("jobs")
    answers: list[Any] = []
    with contextlib.redirect_stdout(io.StringIO()):
        caller.call(lambda: answers.append(made.begin(Request(id="1", at=NOW))))
        Caller("jobs").call(lambda: answers.append(made.look(jobs.Flight("capture-canary-0", "1"))))
    for one in answers:
        if not isinstance(one, jobs.Flight):
            msgspec.json.encode(one)


@functools.cache
def _client() -> Any:
    return docker.APIClient(base_url="unix:///nowhere", version="1.43")


@contextlib.contextmanager
def _engine(data: bytes) -> Iterator[None]:
    """The SDK's own client, with an Engine's answer for what it receives."""
    response = mock.Mock(status_code=200, headers={})
    response.json = lambda: json.loads(data)  # as requests does
    client = _client()
    with (
        mock.patch.object(type(client), "_get", return_value=response),
        mock.patch.object(docker, "APIClient", return_value=client),
    ):
        yield


def engine(data: bytes) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw)
    with _engine(data), mock.patch.object(sys, "stdout", out):
        docker_child.main(["/run/docker.sock", ID])
    answer = foreign.decode(raw.getvalue(), Answer)
    assert all(set(one) <= ALLOWED for one in answer.environments.values())


def child(data: bytes) -> None:
    """What a child that asks prints, first its exit code."""
    with mock.patch.object(Command, "run", return_value=(data[0] & 1 if data else 0, data[1:])):
        answer = helpers._ask("docker_child", [])  # noqa: SLF001  # where a child's word becomes ours
    assert answer.error is None or (answer.error.isprintable() and len(answer.error) < 500)


CONDITION = {
    "type": "Failed",
    "status": "True",
    "reason": "DeadlineExceeded",
    "lastTransitionTime": "2026-11-30T10:00:00Z",
}
JOB = {
    "metadata": {
        "name": "capture-canary-0",
        "creationTimestamp": "2026-11-30T09:00:00Z",
        "labels": {jobs.LABEL: "x"},
    },
    "status": {"conditions": [CONDITION]},
    "spec": {"nodeName": "n1"},
}
ENDED = {
    "state": {"terminated": {"reason": "Error", "exitCode": 1, "message": '{"took":1,"devices":2}'}}
}
POD = {
    "metadata": {"name": "p"},
    "spec": {"nodeName": "n1"},
    "status": {"containerStatuses": [ENDED]},
}
TARGETS = (
    Target(
        "prometheus", "answers of Prometheus, and the pages made of them", past, json=True, longest=4096,
        seeds=lambda: [vector(DEGRADED), vector([*DEGRADED[:3], *SKIPPED]), vector([]), vector([*DEGRADED[2:], series("verdict_settled_info", 1, verdict="degraded", evidence="trace")])],
        raises=(prometheus.UnreadableError,), tokens=(b'"+Inf"', b'"NaN"', b'"-1"', b'"1e308"', b"capture_canary_"),
    ),
    Target(
        "kubelet", "the kubelet's answers", kubelet, lambda: [RESPONSE, RESPONSE[:60], b"\x0a\x02\x0a\x00"],
        raises=(ValueError,), tokens=(b"huawei.com/", b"Ascend910-4", b"npu-7", b"\xff\xff\xff\xff\x0f"), longest=1024,
    ),
    Target(
        "pods", "lists of pods", pods, json=True, raises=(ValueError,), longest=4096,
        seeds=lambda: [msgspec.json.encode({"items": [pod(MODE, TOKEN), pod(FROM)]}), msgspec.json.encode({"items": []})],
    ),
    Target("jobs", "Jobs and their pods", job, json=True, raises=(ValueError,), longest=4096, seeds=lambda: [msgspec.json.encode([JOB]), msgspec.json.encode([POD, JOB]), b"[]"],
        tokens=(b'"0001-01-01T00:00:00"', b'"9999-12-31T23:59:59-23:00"')),
    Target(
        "engine", "answers of the Docker Engine", engine, json=True, longest=1024,
        seeds=lambda: [b'{"Id":"x","Config":{"Env":["HCCL_OP_EXPANSION_MODE=AIV","HF_TOKEN=x"]}}', b'{"Config":{"Env":null}}'],
    ),
    Target(
        "child", "children that ask for us", child, longest=2048,
        seeds=lambda: [b"\0" + msgspec.json.encode(Answer(environments={ID: {"HCCL_OP_EXPANSION_MODE": "AIV"}})), b"\1Traceback\nx: y\n", b"\0" + msgspec.json.encode(Answer(error="no"))],
        tokens=(b'{"error":"\\u001b[2J"}', b'"pods":[{"namespace":"a","name":"b","devices":[1]}]', b"[" * 1200),
    ),
)  # fmt: skip
