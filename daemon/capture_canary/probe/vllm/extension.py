"""What is put into vLLM's workers (`worker_extension_cls`): a round of captures, and what each of them cost.

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


class Recorder:
    """Times every capture of the process between NPUGraph's begin and end, whoever makes it."""

    def __init__(self) -> None:
        """Wrap the two functions, once a process."""
        self.captures: list[Capture] = []
        self.round: int | None = None
        """The round under way; outside of one, captures are not kept."""
        self.trace = OwnTrace()
        at_start = self.trace.last_capture()
        self._order = at_start.order if at_start else 0
        """Captures so far: those that vLLM made when it started have filled HCCL's lists as well."""
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
        self._order += 1
        self.captures.append(
            Capture(
                order=self._order,
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
        """Forget all graphs and capture them again; return the captures and the mode as HCCL read it."""
        recorder = self._capture_canary
        recorder.round, recorder.captures = number, []
        importlib.import_module("torch").npu.synchronize()
        names.forget_graphs()
        names.capture(self)
        recorder.round = None
        importlib.import_module("torch").npu.synchronize()
        return {
            "mode": recorder.trace.mode(),
            "captures": [msgspec.to_builtins(capture) for capture in recorder.captures],
        }


def _version(name: str) -> str:
    metadata = importlib.import_module("importlib.metadata")
    return str(metadata.version(name.replace("_", "-")))
