"""Forgetting and capturing graphs by the names of each vllm-ascend, against fakes that have those and no others."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.probe import vllm_versions
from tests.probe.vllm_versions import PIECES, SIZES

from capture_canary.probe.vllm import names

ROUNDS = 3


@pytest.mark.parametrize("version", vllm_versions.VERSIONS)
def test_every_round_captures_all_graphs_again(version: str, monkeypatch: pytest.MonkeyPatch):
    fake = vllm_versions.fake(version, monkeypatch)
    names.capture(fake.worker)  # as vLLM does when it starts
    at_start = [*fake.captured]

    for _ in range(ROUNDS):
        fake.captured.clear()
        forgotten = names.forget_graphs(fake.worker.model_runner)
        names.capture(fake.worker)

        assert sorted(at_start) == sorted(fake.captured)
        assert len(at_start) <= forgotten.graphs  # a V2 runner keeps some of its own beside
        params = getattr(fake.acl_graph, "_graph_params", None)
        if params is not None:  # nothing of earlier rounds, which a replay would find
            assert len({len(notes) for notes in params.events.values()}) == 1
            assert len(params.events[SIZES[0]]) <= 2
    assert PIECES * len(SIZES) == len(at_start)
    assert {"configuration"} == set(fake.config)


def test_a_version_without_the_names_says_which(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, names.ACL_GRAPH, ModuleType("empty"))
    monkeypatch.setitem(sys.modules, names.PIECEWISE, ModuleType("empty"))

    with pytest.raises(names.UnknownVersionError, match=r"ACLGraphWrapper nor .*NPUPiecewiseB"):
        names.forget_graphs(SimpleNamespace())


def test_graphs_kept_by_another_name_are_said(monkeypatch: pytest.MonkeyPatch):
    fake = vllm_versions.fake("0.23.0", monkeypatch)
    piece: Any = fake.pieces[0]
    del piece.concrete_aclgraph_entries

    with pytest.raises(names.UnknownVersionError, match="concrete_aclgraph_entries"):
        names.forget_graphs(fake.worker.model_runner)


def test_a_runner_that_cannot_capture_is_named(monkeypatch: pytest.MonkeyPatch):
    fake = vllm_versions.fake("0.23.0", monkeypatch)
    fake.worker.model_runner = SimpleNamespace()

    with pytest.raises(names.UnknownVersionError, match=r"SimpleNamespace has no capture_model"):
        names.capture(fake.worker)
