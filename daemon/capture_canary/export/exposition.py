"""The metrics as text, made once for each change: scrapes in between get the same bytes."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from capture_canary.export.metrics import StateCollector
from capture_canary.export.operation import OperationCollector
from capture_canary.service.board import View

_FORMATS = 4
"""Kept at a time: real scrapers ask for one or two."""


class Exposition:
    """What a scrape gets; used by one thread."""

    def __init__(self, view: Callable[[], View]) -> None:
        """Export what `view` returns."""
        self._view = view
        self._shown = view()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(StateCollector(lambda: self._shown.state))
        self._registry.register(OperationCollector(lambda: self._shown))
        self._made: dict[str, bytes] = {}

    def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics in the format that `accept` asks for, and its content type."""
        view = self._view()
        # The state is immutable and replaced whole: the same object is the same content.
        if view.state is not self._shown.state or _marks(view) != _marks(self._shown):
            self._shown = view
            self._made.clear()
        try:
            return self._text(accept)
        except (
            TypeError
        ):  # the library compares the version asked for as numbers, and it may be none
            return self._text("")

    def _text(self, accept: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(accept)
        if content_type not in self._made:
            if len(self._made) >= _FORMATS:  # the library takes any version for one of its own
                self._made.clear()
            self._made[content_type] = encode(self._registry)
        return self._made[content_type], content_type


def _marks(view: View) -> object:
    """What OperationCollector shows of a view."""
    return view.paused, view.latched, view.history_problem, view.next_probe, view.kubernetes
