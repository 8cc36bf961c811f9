"""Fakes of vllm-ascend: each version's names for graphs and for capturing them, and no other version's.

As read in the wheels of these versions. A fake captures as the real one does: a size whose graph is there is replayed.
"""
# ruff: noqa: SLF001  # private names are what these are about

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from capture_canary.probe.vllm import names

SIZES = (8, 4, 2)
PIECES = 3


@dataclass
class GraphParams:
    """By batch size, what attention appended for each graph, and a workspace."""

    events: dict[int, list[int]] = field(default_factory=lambda: {size: [] for size in SIZES})
    workspaces: dict[int, Any] = field(default_factory=lambda: dict.fromkeys(SIZES))


class ACLGraphWrapper:
    """Keeps a graph a size; replays one that is there."""

    def __init__(self, captured: list[int]) -> None:
        self.concrete_aclgraph_entries: dict[int, object] = {}
        self.first_run_finished = False
        self._captured = captured

    def __call__(self, size: int) -> None:
        if size not in self.concrete_aclgraph_entries:
            self.concrete_aclgraph_entries[size] = object()
            self._captured.append(size)
        self.first_run_finished = True


class NPUPiecewiseBackend:
    """The same before 0.10.1; it warms up before it captures."""

    def __init__(self, captured: list[int]) -> None:
        self.concrete_size_entries = {
            size: SimpleNamespace(aclgraph=None, num_finished_warmup=0) for size in SIZES
        }
        self._captured = captured

    def __call__(self, size: int) -> None:
        entry = self.concrete_size_entries[size]
        if entry.aclgraph is None and entry.num_finished_warmup < 1:
            entry.num_finished_warmup += 1
        elif entry.aclgraph is None:
            entry.aclgraph = object()
            self._captured.append(size)


class Fake:
    """A worker of one version, and the modules that it has."""

    def __init__(self, install: Callable[[str, ModuleType], None]) -> None:
        self.captured: list[int] = []
        self.pieces: list[Any] = []
        self.acl_graph: Any = None
        self._install = install
        self.worker = SimpleNamespace(vllm_config="configuration", model_runner=None)
        for name in ("vllm_ascend", "vllm_ascend.compilation", "vllm_ascend.worker", "vllm"):
            self.module(name)
        self.config: list[Any] = []
        self.module("vllm.config", set_current_vllm_config=self._current)

    def module(self, name: str, **content: Any) -> Any:
        made: Any = ModuleType(name)
        vars(made).update(content)
        self._install(name, made)
        return made

    @contextmanager
    def _current(self, config: Any) -> Iterator[None]:
        self.config.append(config)
        yield

    def run(self, size: int) -> None:
        """A forward pass: every piece, and attention's notes."""
        for piece in self.pieces:
            piece(size)
        params = getattr(self.acl_graph, "_graph_params", None)
        if params is not None:
            params.events[size].append(1)
            params.workspaces[size] = object()

    def backends(self) -> None:
        """0.9.1 and 0.10.0."""
        self.module(names.PIECEWISE, NPUPiecewiseBackend=NPUPiecewiseBackend)
        self.pieces = [NPUPiecewiseBackend(self.captured) for _ in range(PIECES)]
        self.worker.model_runner = Runner(self)

    def wrappers(self, **content: Any) -> None:
        """From 0.10.1 on."""
        kind = type("ACLGraphWrapper", (ACLGraphWrapper,), {})
        self.acl_graph = self.module(names.ACL_GRAPH, ACLGraphWrapper=kind, **content)
        self.pieces = [kind(self.captured) for _ in range(PIECES)]
        self.worker.model_runner = Runner(self)


class Runner:
    """A model runner up to 0.17, and of 0.10.1 to 0.11 in all: `capture_model` is the one name there is."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake

    def capture_model(self) -> None:
        for size in SIZES:
            for _ in range(2):  # to warm up, and to capture
                self.fake.run(size)


class RefusingRunner(Runner):
    """Of 0.12 and 0.13.0rc1: makes graph parameters in every `capture_model`, and refuses to make them twice."""

    def initialize_aclgraph_capture(self) -> None:
        for name in ("_graph_params", "_mtp_graph_params"):
            if getattr(self.fake.acl_graph, name) is not None:
                raise ValueError("Graph parameters have already been set!")
            setattr(self.fake.acl_graph, name, GraphParams())

    def capture_model(self) -> None:
        self.initialize_aclgraph_capture()
        super().capture_model()


class DescribingRunner(Runner):
    """From 0.18 on: a dispatcher says what to capture."""

    device = "npu:0"

    def __init__(self, fake: Fake) -> None:
        super().__init__(fake)
        self.cudagraph_dispatcher = SimpleNamespace(get_capture_descs=lambda: [("FULL", SIZES)])
        self.enabled = False
        monitor = "vllm.compilation.monitor"
        fake.module("vllm.compilation")
        fake.module(monitor, set_cudagraph_capturing_enabled=self._enable)
        fake.module("vllm_ascend.worker.model_runner_v1", graph_capture=self._graph_capture)

    def _enable(self, enabled: bool) -> None:  # noqa: FBT001  # as vLLM calls it
        self.enabled = enabled

    @contextmanager
    def _graph_capture(self, device: str) -> Iterator[None]:
        assert self.device == device
        yield

    def _capture_cudagraphs(self, batch_descriptors: Any, cudagraph_runtime_mode: str) -> None:
        assert ("FULL", True) == (cudagraph_runtime_mode, self.enabled)
        for size in batch_descriptors:
            self.fake.run(size)

    def capture_model(self) -> None:
        raise AssertionError("takes a second, and is not needed")


class ManagingRunner(Runner):
    """The V2 model runner: keeps the graphs of the whole model itself, and refuses to capture one twice."""

    def __init__(self, fake: Fake) -> None:
        super().__init__(fake)
        self.cudagraph_manager = SimpleNamespace(graphs={}, _graphs_captured=False)

    def capture_model(self) -> None:
        manager = self.cudagraph_manager
        assert not manager._graphs_captured
        for size in SIZES:
            assert size not in manager.graphs, f"Graph already captured for {size}"
            manager.graphs[size] = object()
            self.fake.run(size)
        manager._graphs_captured = True


def _0_9(fake: Fake) -> None:
    fake.backends()


def _0_10_1(fake: Fake) -> None:
    fake.wrappers()


def _0_11(fake: Fake) -> None:
    fake.wrappers(_graph_params=GraphParams())


def _0_12(fake: Fake) -> None:
    fake.wrappers(_graph_params=None, _mtp_graph_params=None)
    fake.worker.model_runner = RefusingRunner(fake)


def _0_13(fake: Fake) -> None:
    fake.wrappers(_graph_params=GraphParams(), _draft_graph_params=None)


def _0_18(fake: Fake) -> None:
    _0_13(fake)
    fake.worker.model_runner = DescribingRunner(fake)


def _0_21(fake: Fake) -> None:
    _0_18(fake)
    fake.acl_graph.ACLGraphWrapper._all_instances = weakref.WeakSet(fake.pieces)


def _0_23(fake: Fake) -> None:
    _0_18(fake)
    fake.acl_graph._draft_graph_prefill_params = GraphParams()
    fake.acl_graph._acl_graph_wrappers = weakref.WeakSet(fake.pieces)


def _v2(fake: Fake) -> None:
    _0_23(fake)
    fake.worker.model_runner = ManagingRunner(fake)


VERSIONS: dict[str, Callable[[Fake], None]] = {
    "0.9.1": _0_9,
    "0.10.0rc1": _0_9,
    "0.10.1rc1": _0_10_1,
    "0.11.0": _0_11,
    "0.12.0rc1": _0_12,
    "0.13.0rc1": _0_12,
    "0.13.0": _0_13,
    "0.18.0": _0_18,
    "0.21.0rc1": _0_21,
    "0.23.0": _0_23,
    "0.30.0rc2": _0_23,
    "0.30.0rc2, V2 runner": _v2,
}
"""The first of each set of names, and the ends of the span that is known."""


def fake(version: str, monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake(lambda name, module: monkeypatch.setitem(sys.modules, name, module))
    VERSIONS[version](made)
    return made
