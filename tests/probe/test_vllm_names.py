"""Forgetting and capturing graphs by the names of each vllm-ascend, against fakes that have those and no others."""
# ruff: noqa: SLF001  # private names are what these are about

import sys
import weakref
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from capture_canary.probe.vllm import names


@dataclass
class Params:
    """As GraphParams: by batch size."""

    events: dict[int, list[int]] = field(default_factory=lambda: {8: [1, 2]})
    workspaces: dict[int, Any] = field(default_factory=lambda: {8: object()})


def wrapper_class() -> type:
    class ACLGraphWrapper:
        def __init__(self) -> None:
            self.concrete_aclgraph_entries = {"a": object(), "b": object()}
            self.first_run_finished = True

    return ACLGraphWrapper


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made: Any = ModuleType(names.ACL_GRAPH)
    made.ACLGraphWrapper = wrapper_class()
    made._graph_params = Params()
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, "vllm_ascend.compilation", ModuleType("c"))
    monkeypatch.setitem(sys.modules, names.ACL_GRAPH, made)
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize("version", ["0.10.1", "0.21.0", "0.23.0"])
def test_wrappers_are_found_and_emptied(module: Any, version: str):
    wrappers = [module.ACLGraphWrapper() for _ in range(3)]
    if version == "0.21.0":
        module.ACLGraphWrapper._all_instances = weakref.WeakSet(wrappers)
    if version == "0.23.0":
        module._acl_graph_wrappers = weakref.WeakSet(wrappers)

    assert 6 == names.forget_graphs()

    for wrapper in wrappers:
        assert ({}, False) == (wrapper.concrete_aclgraph_entries, wrapper.first_run_finished)
    assert {8: []} == module._graph_params.events
    assert {8: None} == module._graph_params.workspaces


def test_the_piecewise_backend_of_0_9(monkeypatch: pytest.MonkeyPatch):
    class NPUPiecewiseBackend:
        def __init__(self) -> None:
            entry = SimpleNamespace(aclgraph=object(), num_finished_warmup=2)
            self.concrete_size_entries = {4: entry, 8: SimpleNamespace(aclgraph=None)}

    made: Any = ModuleType(names.PIECEWISE)
    made.NPUPiecewiseBackend = NPUPiecewiseBackend
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, "vllm_ascend.compilation", ModuleType("c"))
    monkeypatch.setitem(sys.modules, names.PIECEWISE, made)
    backend = NPUPiecewiseBackend()

    assert 1 == names.forget_graphs()

    assert backend.concrete_size_entries[4].aclgraph is None
    assert 0 == backend.concrete_size_entries[4].num_finished_warmup


def test_a_version_without_the_names_says_which(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, names.ACL_GRAPH, ModuleType("empty"))
    monkeypatch.setitem(sys.modules, names.PIECEWISE, ModuleType("empty"))

    with pytest.raises(names.UnknownVersionError, match="ACLGraphWrapper"):
        names.forget_graphs()


class Runner:
    """As a model runner before 0.13: it makes graph parameters in every capture, and refuses to make them twice."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.captured = 0

    def initialize_aclgraph_capture(self) -> None:
        if self.module._graph_params is not None:
            raise ValueError("Graph parameters have already been set!")
        self.module._graph_params = Params()

    def capture_model(self) -> None:
        self.initialize_aclgraph_capture()
        self.captured += 1


def test_0_12_captures_twice(module: Any, monkeypatch: pytest.MonkeyPatch):
    module._mtp_graph_params = None
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.config", ModuleType("vllm.config"))
    worker = SimpleNamespace(model_runner=Runner(module), vllm_config=None)

    for _ in range(2):
        names.forget_graphs()
        names.capture(worker)

    assert 2 == worker.model_runner.captured


def test_a_runner_that_cannot_capture_is_named():
    worker = SimpleNamespace(model_runner=SimpleNamespace(), vllm_config=None)

    with pytest.raises(names.UnknownVersionError, match=r"SimpleNamespace has no capture_model"):
        names.capture(worker)
