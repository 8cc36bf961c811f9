"""What every test gets: an emulated node of its own, and real components or a named reason to skip."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings

from capture_canary.store import Store

# How long an example takes is the machine's matter, not the code's.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same few examples each time, a failure told as it is: `python -m bench.mutation` asks for it thousands of times.
settings.register_profile(
    "mutants",
    parent=settings.get_profile("any-machine"),
    max_examples=30,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("any-machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it starts in the background ignore Ctrl-C, and commands under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an emulated node of its own: others' processes, HBM and streams are not on it."""
    node = tmp_path / "node"
    monkeypatch.setenv("CAPTURE_CANARY_EMULATE_NODE", str(node))
    for name in [*os.environ]:
        if (
            name.startswith(("HCCL_", "CAPTURE_CANARY_EMULATE"))
            and name != "CAPTURE_CANARY_EMULATE_NODE"
        ):
            monkeypatch.delenv(name)
    return node


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Undo what a command under test set up: its log may go to a stream that closes with the test."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def own_stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the histories that a test opened: from 3.13 on, Python complains of those that it collects open."""
    opened: list[Store] = []
    begin = Store.__init__

    def note(store: Store, *args: Any, **options: Any) -> None:
        begin(store, *args, **options)
        opened.append(store)

    monkeypatch.setattr(Store, "__init__", note)
    yield
    for store in opened:
        store.close()
