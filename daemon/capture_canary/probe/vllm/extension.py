"""What is put into vLLM's workers (`worker_extension_cls`): rounds of captures, or those of its start, and their cost.

Lives in the worker's process, on a Python that is not ours; returns what JSON has.
"""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import importlib
import os
import time
from typing import Any

import msgspec

from capture_canary.model import Capture
from capture_canary.probe.cann import EXPANSION_AI_CPU
from capture_canary.probe.tracing import OwnTrace
from capture_canary.probe.vllm import names

CONTROL_ELEMENTS = 256
MAX_REASON = 500
MISSING = (names.UnknownVersionError, AttributeError, TypeError, ImportError)
"""What a version raises that does not have a name, or has it otherwise."""


class Recorder:
    """Times every capture of the process between NPUGraph's begin and end, whoever makes it."""

    def __init__(self) -> None:
        """Wrap the two functions, once a process."""
        self.captures: list[Capture] = []
        self.round: int | None = None
        """The round under way; outside of one, captures are not kept."""
        self.trace = OwnTrace()
        self.at_start = [one for one in self.trace.captures() if one.collectives]
        """What vLLM captured when it started: known by the tracer alone, which does not know sizes."""
        self.order = self.at_start[-1].order if self.at_start else 0
        """Captures so far: those of the start have filled HCCL's lists as well."""
        self._begin_ns = 0
        torch = importlib.import_module("torch")
        graph = torch.npu.NPUGraph
        begin, end = graph.capture_begin, graph.capture_end

        def capture_begin(this: Any, *args: Any, **named: Any) -> None:
            self._begin_ns = time.monotonic_ns()
            begin(this, *args, **named)

        def capture_end(this: Any) -> None:
            end(this)
            self._ended(time.monotonic_ns())

        graph.capture_begin, graph.capture_end = capture_begin, capture_end

    def eager_copies(self) -> int | None:
        """Return the H2D copies outside captures; an empty capture has the tracer write their number."""
        torch = importlib.import_module("torch")
        graph = torch.npu.NPUGraph()
        # As vLLM's own captures are: what torch keeps of the first one belongs to inference mode.
        with torch.inference_mode(), torch.npu.graph(graph):
            torch.zeros(1, device="npu")
        graph.reset()
        return self.trace.eager_copies()

    def _ended(self, now: int) -> None:
        if self.round is None:
            return
        seen = self.trace.last_capture()
        self.order += 1
        self.captures.append(
            Capture(
                order=self.order,
                round=self.round,
                shape=_size(),
                begin_ns=self._begin_ns,
                seconds=(now - self._begin_ns) / 1e9,
                h2d_copies=seen.h2d_copies if seen else None,
                h2d_bytes=seen.h2d_bytes if seen else None,
                copy_seconds=seen.copy_seconds if seen else None,
                collectives=seen.collectives if seen else {},
                ambiguous=seen.ambiguous if seen else False,
            )
        )


def _size() -> int:
    """Return the batch size under capture; 0 where this vLLM does not tell."""
    context = importlib.import_module("vllm.forward_context").get_forward_context()
    descriptor = getattr(context, "batch_descriptor", None)
    return int(getattr(descriptor, "num_tokens", 0))


class CaptureCanaryRounds:
    """Methods that a vLLM worker gets; `self` is the worker."""

    model_runner: Any
    vllm_config: Any

    def capture_canary_open(self) -> dict[str, Any]:
        """Say who this worker is, and start recording."""
        torch = importlib.import_module("torch")
        found = {"torch": str(torch.__version__)}
        for name in ("torch_npu", "vllm", "vllm_ascend"):
            found[name] = str(
                getattr(importlib.import_module(name), "__version__", "")
            ) or _version(name)
        self._capture_canary = Recorder()
        return {
            "rank": torch.distributed.get_rank(),
            "pid": os.getpid(),
            "device": torch.npu.current_device(),
            "soc": torch.npu.get_device_name(),
            "versions": found,
            "graph_mode": _graph_mode(self),
        }

    def capture_canary_control(self) -> int | None:
        """Make one eager AllGather on an AI_CPU communicator; return the H2D copies that were seen."""
        torch = importlib.import_module("torch")
        dist, torch_npu = torch.distributed, importlib.import_module("torch_npu")
        options = torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()  # noqa: SLF001  # as torch-npu documents
        options.hccl_config = {"hccl_buffer_size": 1, "hccl_op_expansion_mode": EXPANSION_AI_CPU}
        group = dist.new_group(backend="hccl", pg_options=options)
        before = self._capture_canary.eager_copies()
        own = torch.zeros(CONTROL_ELEMENTS, device="npu")
        whole = torch.zeros(CONTROL_ELEMENTS * dist.get_world_size(), device="npu")
        dist.all_gather_into_tensor(whole, own, group=group)
        torch.npu.synchronize()
        after = self._capture_canary.eager_copies()
        dist.destroy_process_group(group)
        return None if before is None or after is None else after - before

    def capture_canary_round(self, number: int) -> dict[str, Any]:
        """Forget all graphs and capture them again; return the captures, or by `missing` why that cannot be."""
        recorder = self._capture_canary
        recorder.round, recorder.captures = number, []
        importlib.import_module("torch").npu.synchronize()
        try:
            forgotten = names.forget_graphs(self.model_runner)
            if recorder.order and not forgotten.graphs:
                raise names.UnknownVersionError(f"the graphs are not in {forgotten.place}")
            names.capture(self)
        except MISSING as error:
            return {"missing": f"{error}"[:MAX_REASON]}
        finally:
            recorder.round = None
        importlib.import_module("torch").npu.synchronize()
        return _found(recorder, recorder.captures)

    def capture_canary_start(self) -> dict[str, Any]:
        """Return the captures of vLLM's own start."""
        return _found(self._capture_canary, self._capture_canary.at_start)


def _found(recorder: Recorder, captures: list[Capture]) -> dict[str, Any]:
    """Return captures, with the expansion mode as HCCL read it."""
    return {
        "mode": recorder.trace.mode(),
        "captures": [msgspec.to_builtins(capture) for capture in captures],
    }


def _graph_mode(worker: Any) -> str | None:
    """Return the cudagraph_mode in force: platforms put another in place of one that they do not have."""
    mode = getattr(worker.vllm_config.compilation_config, "cudagraph_mode", None)
    return None if mode is None else str(mode.name)


def _version(name: str) -> str:
    metadata = importlib.import_module("importlib.metadata")
    return str(metadata.version(name.replace("_", "-")))
