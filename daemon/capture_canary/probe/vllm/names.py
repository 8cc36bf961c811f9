"""The private names of vllm-ascend and vLLM by which graphs are forgotten and captured again, as each version has them.

What is asked for is a name, not a version: releases are many, and forks call themselves what they like.

| vllm-ascend | its graphs are in | and found by |
| --- | --- | --- |
| 0.9.0 - 0.10.0 | `NPUPiecewiseBackend.concrete_size_entries` | all objects |
| 0.10.1 - 0.20.2 | `ACLGraphWrapper.concrete_aclgraph_entries` | all objects |
| 0.21.0 - 0.22.1 | the same | `ACLGraphWrapper._all_instances` |
| 0.23.0 - 0.30.0 | the same | `acl_graph._acl_graph_wrappers` |
"""

import gc
import importlib
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

ACL_GRAPH = "vllm_ascend.compilation.acl_graph"
PIECEWISE = "vllm_ascend.compilation.piecewise_backend"
PARAMS = (
    "_graph_params",
    "_mtp_graph_params",
    "_draft_graph_params",
    "_draft_graph_prefill_params",
)


class UnknownVersionError(RuntimeError):
    """A name that is needed is not there; the message says which."""


def forget_graphs() -> int:
    """Forget every captured graph of this process, and what attention noted for its replay; return how many.

    Raises:
        UnknownVersionError: no class that is known to keep graphs is there.
    """
    module = _module(ACL_GRAPH)
    if module is not None and hasattr(module, "ACLGraphWrapper"):
        forgotten = sum(_forget(wrapper) for wrapper in _wrappers(module))
        for name in PARAMS:
            _reset(getattr(module, name, None))
        return forgotten
    piecewise = _module(PIECEWISE)
    if piecewise is not None and hasattr(piecewise, "NPUPiecewiseBackend"):
        return sum(_forget_piecewise(one) for one in _objects(piecewise.NPUPiecewiseBackend))
    raise UnknownVersionError(
        f"this vllm-ascend has neither {ACL_GRAPH}.ACLGraphWrapper nor {PIECEWISE}.NPUPiecewiseBackend"
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

    From vLLM 0.18 on without what `capture_model` does around it, which takes a second; before, by `capture_model`.

    Raises:
        UnknownVersionError: the runner has no `capture_model` either.
    """
    runner = worker.model_runner
    dispatcher: Any = getattr(runner, "cudagraph_dispatcher", None)
    if not hasattr(dispatcher, "get_capture_descs") or not hasattr(runner, "_capture_cudagraphs"):
        _capture_model(worker)
        return
    monitor = importlib.import_module("vllm.compilation.monitor")
    module = importlib.import_module("vllm_ascend.worker.model_runner_v1")
    with _current_config(worker), module.graph_capture(device=runner.device):
        monitor.set_cudagraph_capturing_enabled(True)
        try:
            for mode, descriptors in dispatcher.get_capture_descs():
                runner._capture_cudagraphs(  # noqa: SLF001  # the one step that captures and does nothing else
                    batch_descriptors=descriptors, cudagraph_runtime_mode=mode
                )
        finally:
            monitor.set_cudagraph_capturing_enabled(False)


def _capture_model(worker: Any) -> None:
    if not hasattr(worker.model_runner, "capture_model"):
        raise UnknownVersionError(
            f"{type(worker.model_runner).__module__}.{type(worker.model_runner).__name__} has no capture_model"
        )
    module = _module(ACL_GRAPH)
    if hasattr(worker.model_runner, "initialize_aclgraph_capture") and module is not None:
        # 0.12 and 0.13.0rc1 make these in every capture_model, and refuse to make them twice.
        for name in ("_graph_params", "_mtp_graph_params"):
            if hasattr(module, name) and hasattr(module, "_mtp_graph_params"):
                setattr(module, name, None)
    with _current_config(worker):
        worker.model_runner.capture_model()


def _current_config(worker: Any) -> Any:
    config = importlib.import_module("vllm.config")
    if hasattr(config, "set_current_vllm_config"):
        return config.set_current_vllm_config(worker.vllm_config)
    return nullcontext()
