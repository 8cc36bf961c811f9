"""The workload of torch-npu: graphs of `torch.distributed` collectives, captured by `torch.npu.graph`.

The leader imports this module, and torch with it, before it forks its ranks, which so share it. torch-npu, which loads
CANN, is imported by each rank.
"""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capture_canary.probe.cann import EXPANSION_AI_CPU
from capture_canary.probe.messages import Kind, Spec
from capture_canary.probe.workloads.acl import CONTROLS
from capture_canary.probe.workloads.profiled import Profiler

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ["TASK_QUEUE_ENABLE"] = (
    "1"  # 0 fails each capture after the first, 2 is refused under capture
)
os.environ.pop("ASCEND_LAUNCH_BLOCKING", None)  # refuses capture
os.environ.setdefault("OMP_NUM_THREADS", "1")  # what runs on the CPU here is not worth a thread

import torch  # reads the above while it is imported
import torch.distributed as dist

STORE = "store"
"""File in the arm's own folder by which ranks find each other."""


class TorchWorkload:
    """One rank's graphs: `spec.collectives` collectives of a shape each, on one process group a series."""

    def __init__(self, spec: Spec, rank: int) -> None:
        """Bind to the rank's NPU; nothing is opened yet."""
        self._spec = spec
        self._rank = rank
        self._ranks = len(spec.devices)
        self._device = spec.devices[rank]
        self._graphs: list[Any] = []
        self._profiler: Profiler | None = None

    def open(self) -> tuple[str, dict[str, str]]:
        """Import torch-npu, take the NPU and two buffers.

        Raises:
            ImportError: torch-npu is not there, is another torch's, or finds no CANN.
            RuntimeError: too few NPUs, or the NPU cannot be opened.
        """
        import torch_npu  # noqa: PLC0415  # loads CANN, which the leader stays clear of

        count = torch.npu.device_count()
        if count <= self._device:
            raise RuntimeError(
                f"NPU {self._device} is wanted, and torch-npu sees {count} NPU(s) here"
            )
        torch.npu.config.allow_internal_format = False
        torch.npu.set_device(self._device)
        self._options = torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options  # noqa: SLF001  # as torch-npu documents
        self._timed = _timed_graph()
        largest = max(self._spec.shapes)
        self._send = torch.zeros(largest, device="npu")
        self._receive = torch.zeros(largest * self._ranks, device="npu")
        if self._spec.profile and self._rank == 0:
            self._profiler = Profiler(self._spec.profile)
        versions = {"torch": str(torch.__version__), "torch_npu": torch_npu.__version__}
        return torch.npu.get_device_name(self._device), versions

    def root_info(self) -> bytes:
        """Return the path of the file by which the ranks meet; a group of theirs needs no more."""
        folder = os.environ.get("CAPTURE_CANARY_TRACE_DIR") or tempfile.gettempdir()
        return str(Path(folder, STORE)).encode()

    def eager(self, root: bytes) -> Callable[[], None]:
        """Make an AI_CPU group; the returned function runs one eager AllGather on it and destroys it.

        The first group of all joins the ranks; torch-npu makes a communicator with a group's first collective only.
        """
        dist.init_process_group(
            "hccl",
            store=dist.FileStore(root.decode(), self._ranks),
            rank=self._rank,
            world_size=self._ranks,
        )
        self._group = self._new_group(EXPANSION_AI_CPU)

        def run() -> None:
            self._all_gather(min(self._spec.shapes))
            torch.npu.synchronize()
            dist.destroy_process_group(self._group)

        return run

    def begin(self, kind: Kind, root: bytes) -> None:  # noqa: ARG002  # all groups meet in the one store
        """Make the group of a series, and with one eager collective its communicator."""
        self._kept = kind.graphs == "kept"
        self._group = self._new_group(0)
        self._put = {"AllReduce": self._all_reduce, "AllGather": self._all_gather}[kind.collective]
        self._put(min(self._spec.shapes))
        torch.npu.synchronize()

    def control(self) -> float:
        """Capture copies on the NPU in place of the collectives; the least of a few, as in the workload `acl`."""
        return min(self._one_control() for _ in range(CONTROLS))

    def _one_control(self) -> float:
        graph = self._captured(lambda: self._receive[:1].copy_(self._send[:1]))
        graph.reset()
        return _seconds(graph)

    def capture(self, shape: int) -> tuple[int, float]:
        """Capture one graph of the series' collectives."""
        graph = self._captured(lambda: self._put(shape))
        if self._kept:
            self._graphs.append(graph)
        else:
            graph.reset()
        return graph.begin_ns, _seconds(graph)

    def _captured(self, put: Callable[[], object]) -> Any:
        """Return a graph of `put`, as often as there are collectives in one."""
        graph = self._timed()
        with torch.npu.graph(graph):
            for _ in range(self._spec.collectives):
                put()
        return graph

    def end(self) -> None:
        """Reset graphs before their communicator goes."""
        while self._graphs:
            self._graphs.pop().reset()
        dist.destroy_process_group(self._group)

    def close(self) -> str | None:
        """Leave the ranks; the NPU goes with the process."""
        torch.npu.synchronize()
        dist.destroy_process_group()
        return self._profiler.end() if self._profiler else None

    def _new_group(self, expansion_mode: int) -> Any:
        """Return a group; `expansion_mode` 0 leaves the choice to HCCL_OP_EXPANSION_MODE."""
        config = {"hccl_buffer_size": self._spec.buffer_mb}
        if expansion_mode:
            config["hccl_op_expansion_mode"] = expansion_mode
        options = self._options()
        options.hccl_config = config
        return dist.new_group(list(range(self._ranks)), pg_options=options)

    def _all_reduce(self, shape: int) -> None:
        dist.all_reduce(self._send[:shape], group=self._group)

    def _all_gather(self, shape: int) -> None:
        whole = self._receive[: shape * self._ranks]
        dist.all_gather_into_tensor(whole, self._send[:shape], group=self._group)


def _seconds(graph: Any) -> float:
    """How long a capture took; what torch-npu does around it, older ones collect garbage, is not in it."""
    return float(graph.end_ns - graph.begin_ns) / 1e9


def _timed_graph() -> type[Any]:
    """Return an NPUGraph that notes when its capture began and ended; a class of torch-npu, which is imported late."""

    class TimedGraph(torch.npu.NPUGraph):  # type: ignore[misc]  # no types where torch-npu is not installed
        begin_ns = end_ns = 0

        def capture_begin(self, *args: Any, **named: Any) -> None:
            self.begin_ns = time.monotonic_ns()
            super().capture_begin(*args, **named)

        def capture_end(self) -> None:
            super().capture_end()
            self.end_ns = time.monotonic_ns()

    return TimedGraph
