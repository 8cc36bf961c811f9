"""What the loop writes and the pages read: one place, replaced piece by piece under a lock."""

import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from capture_canary.export.state import State
from capture_canary.gate.model import Decision
from capture_canary.kubernetes.exchange import Life
from capture_canary.model import Evidence, Judgement


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A consistent look at the daemon, for pages and metrics."""

    state: State
    decision: Decision | None = None
    """The gate's last answer, with every check."""
    decided_at: float | None = None
    next_probe: float | None = None
    """Unix time; None where none is planned."""
    running_since: float | None = None
    """Begin of the probe under way, Unix time."""
    logs: Mapping[str, Judgement] = {}
    """What each followed log file says."""
    latched: str | None = None
    paused: bool = False
    mode: str = "observe"
    history_problem: str | None = None
    kubernetes: Life | None = None
    """The last sign of life of `capture-canary k8s`; None where it does not run beside us."""


class Board:
    """Holds the view; safe to use from any thread."""

    def __init__(self, view: View) -> None:
        """Begin with a view."""
        self._lock = threading.Lock()
        self._view = view
        self._beat = time.monotonic()
        self._beats = False

    @property
    def begun(self) -> bool:
        """Whether the loop has beaten once."""
        return self._beats

    @property
    def view(self) -> View:
        """The view as it is now."""
        with self._lock:
            return self._view

    def change(self, **fields: object) -> None:
        """Replace fields of the view."""
        with self._lock:
            self._view = msgspec.structs.replace(self._view, **fields)

    def state(self, change: Callable[[State], State]) -> None:
        """Replace the exported state by what `change` makes of it."""
        with self._lock:
            self._view = msgspec.structs.replace(self._view, state=change(self._view.state))

    def beat(self) -> None:
        """Note that the loop is alive."""
        self._beat = time.monotonic()
        self._beats = True

    def late(self) -> float:
        """Return how long ago the loop was last alive, s."""
        return time.monotonic() - self._beat


def sources(logs: tuple[str, ...], *, probes: bool) -> tuple[Evidence, ...]:
    """Return where verdicts are to come from: each of them is unknown until it has come."""
    found: list[Evidence] = ["probe"] if probes else []
    found.append("trace")
    if logs:
        found.append("log")
    return tuple(found)
