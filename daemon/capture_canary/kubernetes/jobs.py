"""`job` mode: a Job pinned to this node asks the scheduler for NPUs; what its pod said when it ended is the result.

A Job's name is one of as many as may run at once in the fleet: the API server itself sees to it that there are no more.
"""

import copy
import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from capture_canary import foreign
from capture_canary.kubernetes.api import Api, ExistsError, Job, Pod
from capture_canary.kubernetes.exchange import Answer, Request, Result
from capture_canary.kubernetes.result import MAX_MESSAGE

LABEL: Final = "capture-canary/node"
"""On every Job; its value is short for the node's name, which may be longer than a label's value."""


class Flight(NamedTuple):
    """A Job of this node that was not answered yet."""

    name: str
    request: str
    seen_running: bool = False
    since: float = 0.0
    """By the monotonic clock."""


class Jobs:
    """Makes Jobs and reads what came of them."""

    def __init__(self, api: Api, template: Mapping[str, Any], *, node: str, at_once: int) -> None:
        """Args: the Job without name and node, whose `generateName` begins every name; the most at once in a fleet."""
        self._api = api
        self._template = template
        self._prefix: str = template["metadata"]["generateName"]
        self._labels: dict[str, str] = template["metadata"]["labels"]
        self._node = node
        self._short = hashlib.sha256(node.encode()).hexdigest()[:16]
        self._at_once = at_once
        self._keep = float(template["spec"]["ttlSecondsAfterFinished"])
        self.deadline = float(template["spec"]["activeDeadlineSeconds"])

    def begin(self, request: Request) -> Flight | Answer:
        """Make a Job for a request, or take over the one that this node has; else say why there is none.

        Raises:
            ApiError: the API server did not answer, or said no.
        """
        there = {one["metadata"]["name"]: one for one in self._api.found(Job, self._labels)}
        for name, job in there.items():
            if job["metadata"].get("labels", {}).get(LABEL) == self._short:
                return Flight(name, request.id, since=time.monotonic())
        self._sweep(there)
        for name in self._names():
            if name in there:
                continue
            try:
                self._api.create(Job, self._job(name), self._api.namespace)
            except ExistsError:
                continue  # another node was faster
            return Flight(name, request.id, since=time.monotonic())
        detail = f"{self._at_once} probes run in the fleet already"
        return Answer(id=request.id, refusal="fleet_limit", detail=detail)

    def look(self, flight: Flight) -> Flight | Answer:
        """Return what came of a Job, or the flight as it is now.

        Raises:
            ApiError: the API server did not answer, or said no.
        """
        pods = self._api.found(Pod, {"job-name": flight.name})
        for pod in pods:
            if answer := _of_pod(flight, pod):
                return answer
        running = flight.seen_running or any(_placed(pod) for pod in pods)
        flight = flight._replace(seen_running=running)
        job = next(
            (
                one
                for one in self._api.found(Job, {**self._labels, LABEL: self._short})
                if one["metadata"]["name"] == flight.name
            ),
            None,
        )
        if job is None:
            return Answer(id=flight.request, refusal="kubernetes", detail="the Job was deleted")
        why = _failed(job)
        if why is None:
            return flight
        if not running:
            detail = f"no NPUs within {self.deadline:.0f} s"
            return Answer(id=flight.request, refusal="no_npus", detail=detail)
        return Answer(id=flight.request, failure="timeout", detail=f"the Job failed: {why}")

    def end(self, flight: Flight) -> None:
        """Delete the Job, so that another node may have its name.

        Raises:
            ApiError: the API server did not answer, or said no.
        """
        self._api.delete_job(flight.name)

    def _sweep(self, there: dict[str, dict[str, Any]]) -> None:
        """Delete what is over and was not removed: clusters before 1.21 have no TTL, and nodes die."""
        for name, job in list(there.items()):
            if _over(job, time.time(), self._keep, self.deadline):
                self._api.delete_job(name)
                del there[name]

    def _names(self) -> list[str]:
        """All names, another first on each node, so that nodes which begin at once seldom collide."""
        first = int(self._short, 16) % self._at_once
        return [f"{self._prefix}{(first + n) % self._at_once}" for n in range(self._at_once)]

    def _job(self, name: str) -> dict[str, Any]:
        job: dict[str, Any] = copy.deepcopy(dict(self._template))
        job["metadata"].pop("generateName")
        job["metadata"]["name"] = name
        job["metadata"]["labels"][LABEL] = self._short
        pod = job["spec"]["template"]
        # Not `nodeName`: that would go past the scheduler, who alone knows whose the NPUs are.
        match = {"key": "metadata.name", "operator": "In", "values": [self._node]}
        terms = [{"matchFields": [match]}]
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["spec"]["affinity"] = {"nodeAffinity": affinity}
        return job


def _of_pod(flight: Flight, pod: Mapping[str, Any]) -> Answer | None:
    """The answer that a pod gave; None while it has not ended."""
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        ended = (status.get("state") or {}).get("terminated")
        if ended is None:
            continue
        message = str(ended.get("message") or "")
        try:
            if len(message.encode()) > MAX_MESSAGE:
                raise ValueError("it is longer than a termination message")  # noqa: TRY301  # as other nonsense
            return Answer(id=flight.request, result=foreign.decode(message, Result))
        except ValueError as error:
            said = f"{ended.get('reason')}, exit code {ended.get('exitCode')}, {error}"
            return Answer(id=flight.request, failure="child", detail=said[:300])
    return None


def _placed(pod: Mapping[str, Any]) -> bool:
    """Whether the scheduler found NPUs for it."""
    return bool((pod.get("spec") or {}).get("nodeName"))


def _failed(job: Mapping[str, Any]) -> str | None:
    """Why a Job ended without a pod that told; None while it has not."""
    for one in (job.get("status") or {}).get("conditions") or []:
        if one.get("type") in ("Failed", "Complete") and one.get("status") == "True":
            return f"{one.get('reason') or one['type']} {one.get('message') or ''}".strip()[:200]
    return None


def _over(job: Mapping[str, Any], now: float, keep: float, deadline: float) -> bool:
    """Whether nobody can still wait for a Job: its time to be read is over, as is its time to run."""
    made = _unix(job["metadata"].get("creationTimestamp"))
    if made is None:
        return False
    if _failed(job) is None:
        return now - made > deadline + keep
    ended = [_unix(one.get("lastTransitionTime")) for one in job["status"]["conditions"]]
    return now - max((one for one in ended if one), default=made) > keep


def _unix(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
