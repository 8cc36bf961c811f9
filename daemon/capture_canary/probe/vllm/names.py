"""The private names of vllm-ascend and vLLM by which graphs are forgotten and captured again, as each version has them.

What is asked for is a name, not a version: releases are many, and forks call themselves what they like.

| vllm-ascend | its graphs are in | and found by |
| --- | --- | --- |
| 0.9.1 - 0.10.0 | `NPUPiecewiseBackend.concrete_size_entries` | all objects |
| 0.10.1 - 0.20.2 | `ACLGraphWrapper.concrete_aclgraph_entries` | all objects |
| 0.21.0 - 0.22.1 | the same | `ACLGraphWrapper._all_instances` |
| 0.23.0 - 0.30.0 | the same | `acl_graph._acl_graph_wrappers` |
| the V2 model runner of any | `cudagraph_manager.graphs` as well | the model runner |
"""

import gc
import importlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

ACL_GRAPH = "vllm_ascend.compilation.acl_graph"
PIECEWISE = "vllm_ascend.compilation.piecewise_backend"
WRAPPER, BACKEND = "ACLGraphWrapper", "NPUPiecewiseBackend"
MTP_PARAMS = "_mtp_graph_params"
PARAMS = ("_graph_params", MTP_PARAMS, "_draft_graph_params", "_draft_graph_prefill_params")


class UnknownVersionError(RuntimeError):
    """A name that is needed is not there; the message says which."""


class Forgotten(NamedTuple):
    """What was forgotten, and where it lay."""

    graphs: int
    place: str


def forget_graphs(runner: Any) -> Forgotten:
    """Forget every captured graph of this process, and what attention noted for its replay.

    Raises:
        UnknownVersionError: no class that is known to keep graphs is there, or it does not keep them as it is known to.
    """
    try:
        return _forget_all(runner)
    except AttributeError as error:
        raise UnknownVersionError(f"this vllm-ascend is not as any known one: {error}") from error


def _forget_all(runner: Any) -> Forgotten:
    module = _module(ACL_GRAPH)
    if module is not None and hasattr(module, WRAPPER):
        forgotten = sum(_forget(wrapper) for wrapper in _wrappers(module)) + _forget_managed(runner)
        for name in PARAMS:
            _reset(getattr(module, name, None))
        return Forgotten(forgotten, f"{ACL_GRAPH}.{WRAPPER}")
    piecewise = _module(PIECEWISE)
    if piecewise is not None and hasattr(piecewise, BACKEND):
        backends = _objects(piecewise.NPUPiecewiseBackend)
        return Forgotten(sum(map(_forget_piecewise, backends)), f"{PIECEWISE}.{BACKEND}")
    raise UnknownVersionError(
        f"this vllm-ascend has neither {ACL_GRAPH}.{WRAPPER} nor {PIECEWISE}.{BACKEND}"
    )


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _wrappers(module: ModuleType) -> Iterable[Any]:
    for known in (
        getattr(module, "_acl_graph_wrappers", None),
        getattr(module.ACLGraphWrapper, "_all_instances", None),
    ):
        if known is not None:
            return list(known)
    return _objects(module.ACLGraphWrapper)


def _objects(kind: type) -> list[Any]:
    return [one for one in gc.get_objects() if type(one) is kind]


def _forget(wrapper: Any) -> int:
    count = len(wrapper.concrete_aclgraph_entries)
    wrapper.concrete_aclgraph_entries.clear()
    wrapper.first_run_finished = False
    return count


def _forget_managed(runner: Any) -> int:
    """Forget the graphs of a V2 model runner, which keeps those of the whole model itself."""
    manager = getattr(runner, "cudagraph_manager", None)
    if manager is None:
        return 0
    count = len(manager.graphs)
    manager.graphs.clear()
    if hasattr(manager, "_graphs_captured"):
        manager._graphs_captured = False  # noqa: SLF001  # as vllm-ascend's own wake-up does
    return count


def _forget_piecewise(backend: Any) -> int:
    entries = [one for one in backend.concrete_size_entries.values() if one.aclgraph is not None]
    for entry in entries:
        entry.aclgraph = None
        entry.num_finished_warmup = 0
    return len(entries)


def _reset(params: Any) -> None:
    """Empty what attention appended for each graph, as vllm-ascend does before it captures anew."""
    if not is_dataclass(params):
        return
    for field in fields(params):
        by_size = getattr(params, field.name)
        if isinstance(by_size, dict):
            for size, value in by_size.items():
                if isinstance(value, list):
                    by_size[size] = []
                elif field.name == "workspaces":
                    by_size[size] = None


def capture(worker: Any) -> None:
    """Have the worker's model runner capture all its graphs, with vLLM's own warm-up before each.

    From vLLM 0.18 on without what `capture_model` does around it, which takes a second; before, and with a V2 runner,
    by `capture_model`.

    Raises:
        UnknownVersionError: the runner has no `capture_model` either.
    """
    runner = worker.model_runner
    dispatcher: Any = getattr(runner, "cudagraph_dispatcher", None)
    config = importlib.import_module("vllm.config")
    with config.set_current_vllm_config(worker.vllm_config):
        if hasattr(dispatcher, "get_capture_descs") and hasattr(runner, "_capture_cudagraphs"):
            _capture_described(runner, dispatcher)
        else:
            _capture_model(runner)


def _capture_described(runner: Any, dispatcher: Any) -> None:
    monitor = importlib.import_module("vllm.compilation.monitor")
    module = importlib.import_module("vllm_ascend.worker.model_runner_v1")
    with module.graph_capture(device=runner.device):
        monitor.set_cudagraph_capturing_enabled(True)
        try:
            for mode, descriptors in dispatcher.get_capture_descs():
                runner._capture_cudagraphs(  # noqa: SLF001  # the one step that captures and does nothing else
                    batch_descriptors=descriptors, cudagraph_runtime_mode=mode
                )
        finally:
            monitor.set_cudagraph_capturing_enabled(False)


def _capture_model(runner: Any) -> None:
    if not hasattr(runner, "capture_model"):
        kind = type(runner)
        raise UnknownVersionError(f"{kind.__module__}.{kind.__name__} has no capture_model")
    module = _module(ACL_GRAPH)
    if hasattr(runner, "initialize_aclgraph_capture") and hasattr(module, MTP_PARAMS):
        # 0.12 and 0.13.0rc1 make these in every capture_model, and refuse to make them twice.
        for name in ("_graph_params", MTP_PARAMS):
            setattr(module, name, None)
    runner.capture_model()
