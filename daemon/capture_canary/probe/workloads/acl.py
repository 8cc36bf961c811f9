"""The torch-free workload: graphs of HCCL collectives, captured through CANN's C interface alone."""

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path

from capture_canary.probe.cann import EXPANSION_AI_CPU, Cann, CannError
from capture_canary.probe.messages import Kind, Spec

FP32_BYTES = 4
CONTROLS = 3
"""Control captures beside each capture."""
_Pointer = ctypes.c_void_p


class AclWorkload:
    """One rank's graphs: `spec.collectives` collectives of a shape each, on one communicator a series."""

    def __init__(self, spec: Spec, rank: int) -> None:
        """Bind to the rank's NPU; nothing is opened yet."""
        self._spec = spec
        self._rank = rank
        self._ranks = len(spec.devices)
        self._device = spec.devices[rank]
        self._graphs: list[_Pointer] = []

    def open(self) -> tuple[str, dict[str, str]]:
        """Load CANN from ASCEND_HOME_PATH, take the NPU, a stream and two buffers.

        Raises:
            CannError: no CANN, too few NPUs, or the NPU cannot be opened.
        """
        home = os.environ.get("ASCEND_HOME_PATH")
        if not home:
            raise CannError("no CANN here: ASCEND_HOME_PATH is not set")
        self._cann = Cann(Path(home))
        count = self._cann.device_count()
        if count <= self._device:
            raise CannError(f"NPU {self._device} is wanted, and CANN sees {count} NPU(s) here")
        self._cann.open(self._device)
        self._stream = self._cann.create_stream()
        largest = max(self._spec.shapes) * FP32_BYTES
        self._send = self._cann.malloc(largest)
        self._receive = self._cann.malloc(largest * self._ranks)
        return self._cann.soc_name(), self._cann.versions()

    def root_info(self) -> bytes:
        """Return the root info of a new communicator (rank 0)."""
        return self._cann.root_info()

    def eager(self, root: bytes) -> Callable[[], None]:
        """Make an AI_CPU communicator; the returned function runs one eager AllGather on it and destroys it.

        AllGather, because AI_CPU covers it on A2 as well; the override, because the arm's own mode may be one that
        makes no copies.
        """
        communicator = self._communicator(root, EXPANSION_AI_CPU)
        shape = min(self._spec.shapes)

        def run() -> None:
            self._cann.all_gather(self._send, self._receive, shape, communicator, self._stream)
            self._cann.synchronize(self._stream)
            self._cann.destroy_communicator(communicator)

        return run

    def begin(self, kind: Kind, root: bytes) -> None:
        """Make the communicator of a series: resource lists outlive their graphs, so each series has its own.

        One eager collective first, so that the set-up of a communicator is not in the first capture.
        """
        self._kept = kind.graphs == "kept"
        self._comm = self._communicator(root, 0)
        self._collective = {
            "AllReduce": self._cann.all_reduce,
            "AllGather": self._cann.all_gather,
        }[kind.collective]
        self._put(min(self._spec.shapes))
        self._cann.synchronize(self._stream)

    def control(self) -> float:
        """Capture copies on the NPU in place of the collectives: what the machine does to captures, it does to these.

        The least of a few: the capture before has left caches cold, the more so the longer it took.
        """
        return min(self._one_control() for _ in range(CONTROLS))

    def _one_control(self) -> float:
        begin_ns = time.monotonic_ns()
        self._cann.capture_begin(self._stream)
        for _ in range(self._spec.collectives):
            self._cann.copy_on_device(self._receive, self._send, FP32_BYTES, self._stream)
        graph = self._cann.capture_end(self._stream)
        seconds = (time.monotonic_ns() - begin_ns) / 1e9
        self._cann.destroy_graph(graph)
        return seconds

    def capture(self, shape: int) -> tuple[int, float]:
        """Capture one graph of the series' collectives."""
        begin_ns = time.monotonic_ns()
        self._cann.capture_begin(self._stream)
        for _ in range(self._spec.collectives):
            self._put(shape)
        graph = self._cann.capture_end(self._stream)
        seconds = (time.monotonic_ns() - begin_ns) / 1e9
        if self._kept:
            self._graphs.append(graph)
        else:
            self._cann.destroy_graph(graph)
        return begin_ns, seconds

    def end(self) -> None:
        """Destroy graphs before their communicator, as hcomm's aclgraph introduction (2.4) demands."""
        while self._graphs:
            self._cann.destroy_graph(self._graphs.pop())
        self._cann.destroy_communicator(self._comm)

    def close(self) -> None:
        """Give buffers, stream and NPU back."""
        self._cann.free(self._receive)
        self._cann.free(self._send)
        self._cann.destroy_stream(self._stream)
        self._cann.close(self._device)

    def _communicator(self, root: bytes, expansion_mode: int) -> _Pointer:
        return self._cann.create_communicator(
            root=root,
            rank=self._rank,
            ranks=self._ranks,
            buffer_mb=self._spec.buffer_mb,
            expansion_mode=expansion_mode,
        )

    def _put(self, shape: int) -> None:
        self._collective(self._send, self._receive, shape, self._comm, self._stream)
