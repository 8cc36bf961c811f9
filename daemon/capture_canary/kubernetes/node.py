"""What is shown on the Node object: the condition CaptureCanaryProbeStale, and an Event when a verdict changes.

No taint, no cordon: the fault is in an image, not in the node.
"""

import time
import uuid
from datetime import datetime, timezone
from typing import Any, Final

from capture_canary.kubernetes.api import Api, Event
from capture_canary.kubernetes.exchange import Standing

CONDITION: Final = "CaptureCanaryProbeStale"
HEARTBEAT: Final = 300.0
"""Seconds after which an unchanged condition is said again."""
NAMESPACE: Final = "default"
"""Events of what has no namespace live here."""
MAX_TEXT = 500


class NodeCondition:
    """Keeps the condition; what the node has from before a restart stays until something else is known."""

    def __init__(self, api: Api, node: str) -> None:
        """Bind to the node."""
        self._api = api
        self._node = node
        self._known: tuple[str, str] | None = None
        """Status and time of the last transition, as the node has them."""
        self._asked = False
        self._said_at = 0.0

    def show(self, standing: Standing, now: float) -> None:
        """Say it, where it is new or was not said for a while.

        Raises:
            ApiError: the API server did not answer, or said no.
        """
        status, reason, message = condition_of(standing, now)
        if not self._asked:
            before = next(
                (c for c in self._api.conditions(self._node) if c.get("type") == CONDITION), None
            )
            self._asked = True
            if before:
                self._known = str(before.get("status")), str(before.get("lastTransitionTime"))
        changed = self._known is None or self._known[0] != status
        if not changed and time.monotonic() - self._said_at < HEARTBEAT:
            return
        stamp = _stamp(now)
        since = stamp if changed or self._known is None else self._known[1]
        self._api.set_condition(
            self._node,
            {
                "type": CONDITION,
                "status": status,
                "reason": reason,
                "message": message[:MAX_TEXT],
                "lastHeartbeatTime": stamp,
                "lastTransitionTime": since,
            },
        )
        self._known = status, since
        self._said_at = time.monotonic()


def condition_of(standing: Standing, now: float) -> tuple[str, str, str]:
    """Return the condition's status, reason and message."""
    if standing.stale_after is None:
        return "Unknown", "NoProbesPlanned", "No probes are planned on this node."
    if now <= standing.stale_after:
        if standing.last_success is None:
            return "Unknown", "NoProbeYet", "No probe has come to a verdict yet."
        return "False", "ProbesComeToVerdicts", "The last probes came to a verdict."
    return "True", "NoVerdictForTwoIntervals", f"Probes come to no verdict: {standing.reason}"


class VerdictEvents:
    """One Event for each change of the verdict; a change that could not be told is overtaken by the next."""

    def __init__(self, api: Api, node: str, reporter: str) -> None:
        """Bind to the node; `reporter` is our pod's name."""
        self._api = api
        self._node = node
        self._reporter = reporter
        self._told: str | None = None

    def show(self, standing: Standing, now: float) -> None:
        """Say that the verdict changed, if it did.

        Raises:
            ApiError: the API server did not answer, or said no.
        """
        if self._told is None or self._told == standing.verdict:
            self._told = standing.verdict  # what a restart finds is no change
            return
        self._api.create(Event, self._event(standing, self._told, now), NAMESPACE)
        self._told = standing.verdict

    def _event(self, standing: Standing, before: str, now: float) -> dict[str, Any]:
        emulated = " (emulated)" if standing.emulated else ""
        stamp = _stamp(now)
        return {
            "metadata": {"name": f"capture-canary.{uuid.uuid4().hex}", "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Node",
                "name": self._node,
                "uid": self._node,
            },
            "type": "Warning" if standing.verdict == "degraded" else "Normal",
            "reason": f"GraphCapture{standing.verdict.capitalize()}",
            "message": f"Graph capture was {before} and is {standing.verdict}{emulated}: {standing.reason}"[
                :MAX_TEXT
            ],
            "source": {"component": "capture-canary", "host": self._node},
            "reportingComponent": "capture-canary",
            "reportingInstance": self._reporter,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }


def _stamp(now: float) -> str:
    return (
        datetime.fromtimestamp(now, timezone.utc)
        .isoformat(timespec="seconds")
        .replace("+00:00", "Z")
    )
