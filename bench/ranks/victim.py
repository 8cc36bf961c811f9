"""One rank of a victim of bench/interference: for each order it captures graphs, then replays one, and says its cost.

usage: victim.py torch|acl RANK RANKS FOLDER     torch: run with torch-npu; acl: where we are installed
"""
# pyright: reportMissingImports=false

import ctypes
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

K = 16
"""Collectives a graph, as a model of seven or eight layers has."""
COUNT = 256
BUFFER_MB = 1


class Torch:
    """Graphs by torch.npu, on a process group that each block makes anew: what grows, grows within a block only."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        """Take the NPU."""
        import torch  # noqa: PLC0415  # not where acl runs
        import torch.distributed as dist  # noqa: PLC0415  # the same
        import torch_npu  # noqa: F401, PLC0415  # the same

        self._torch, self._dist = torch, dist
        torch.npu.config.allow_internal_format = False
        torch.npu.set_device(rank)
        store = f"file://{folder}/store"
        dist.init_process_group("hccl", init_method=store, rank=rank, world_size=ranks)
        self._ranks = [*range(ranks)]
        self._tensor = torch.ones(COUNT, device="npu")
        self._stream = torch.npu.Stream()

    def begin(self, _block: int) -> None:
        """Make the group, and one eager collective on it."""
        self._group = self._dist.new_group(self._ranks)
        self._dist.all_reduce(self._tensor, group=self._group)
        self._torch.npu.synchronize()

    def capture(self) -> Any:
        """Return a graph of collectives."""
        graph = self._torch.npu.NPUGraph()
        with self._torch.npu.stream(self._stream):
            # Not by torch.npu.graph, whose gc.collect() is not the capture's cost.
            graph.capture_begin()
            for _ in range(K):
                self._dist.all_reduce(self._tensor, group=self._group)
            graph.capture_end()
        return graph

    def replay(self, graph: Any) -> None:
        """Run a graph to its end."""
        with self._torch.npu.stream(self._stream):
            graph.replay()
        self._stream.synchronize()

    def destroy(self, graph: Any) -> None:
        """Destroy a graph."""
        graph.reset()

    def end(self) -> None:
        """Destroy the group."""
        self._dist.destroy_process_group(self._group)


class Acl:
    """The same through CANN's C interface alone."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        """Take the NPU."""
        from capture_canary.probe.cann import Cann  # noqa: PLC0415  # not in an environment with torch-npu

        self._cann, self._rank, self._size = Cann(Path(os.environ["ASCEND_HOME_PATH"])), rank, ranks
        self._execute = ctypes.CDLL("libascendcl.so").aclmdlRIExecuteAsync
        self._cann.open(rank)
        self._stream = self._cann.create_stream()
        self._send, self._receive = (self._cann.malloc(COUNT * 4) for _ in range(2))
        self._folder = folder

    def begin(self, block: int) -> None:
        """Make the communicator, and one eager collective on it."""
        place = self._folder / f"root-{block}"
        if self._rank == 0:
            fresh = place.with_suffix(".new")
            fresh.write_bytes(self._cann.root_info())
            fresh.rename(place)
        while not place.exists():
            time.sleep(0.001)
        self._comm = self._cann.create_communicator(
            root=place.read_bytes(), rank=self._rank, ranks=self._size, buffer_mb=BUFFER_MB
        )
        self._put()
        self._cann.synchronize(self._stream)

    def _put(self) -> None:
        self._cann.all_reduce(self._send, self._receive, COUNT, self._comm, self._stream)

    def capture(self) -> Any:
        """Return a graph of collectives."""
        self._cann.capture_begin(self._stream)
        for _ in range(K):
            self._put()
        return self._cann.capture_end(self._stream)

    def replay(self, graph: Any) -> None:
        """Run a graph to its end."""
        assert self._execute(graph, self._stream) == 0
        self._cann.synchronize(self._stream)

    def destroy(self, graph: Any) -> None:
        """Destroy a graph."""
        self._cann.destroy_graph(graph)

    def end(self) -> None:
        """Destroy the communicator."""
        self._cann.destroy_communicator(self._comm)


def cost(steps: Iterator[None]) -> dict[str, float]:
    """Take steps; return their seconds, the median step's, their CPU seconds (all threads), and switches of cores.

    A switch: the rank was put off its core for somebody else.
    """
    switched = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    times, cpu = [time.monotonic()], time.process_time()
    times.extend(time.monotonic() for _ in steps)
    each = [then - before for before, then in pairwise(times)]
    return {
        "seconds": sum(each),
        "typical": statistics.median(each),
        "cpu": time.process_time() - cpu,
        "switched": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switched,
    }


def block(victim: Torch | Acl, number: int, captures: int, replays: int) -> dict[str, object]:
    """Capture graphs, each destroyed before the next, then replay the last."""
    last: list[Any] = []

    def capture() -> Iterator[None]:
        for _ in range(captures):
            if last:
                victim.destroy(last.pop())
            last.append(victim.capture())
            yield

    def replay() -> Iterator[None]:
        for _ in range(replays):
            victim.replay(last[0])
            yield

    victim.begin(number)
    found = {"capture": cost(capture()), "replay": cost(replay())}
    victim.destroy(last.pop())
    victim.end()
    return {**found}


def main() -> None:
    """Make blocks as standard input orders them, by lines of numbers: block, captures, replays."""
    kinds: dict[str, type[Torch | Acl]] = {"torch": Torch, "acl": Acl}
    kind = kinds[sys.argv[1]]
    victim = kind(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    print("{}", flush=True)
    for line in sys.stdin:
        number, captures, replays = (int(word) for word in line.split())
        print(json.dumps(block(victim, number, captures, replays)), flush=True)


if __name__ == "__main__":
    main()
