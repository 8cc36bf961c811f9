"""What ranks do in the tests of HCCL's resource lists. Run as a module, it is the process of one rank or of several."""

import ctypes
import itertools
import json
import sys
import time
from ctypes import c_uint64, c_void_p
from typing import Any

from tests.emulator.hccl_client import COUNTED, FP32, PROD, SUM, Job, Rank, comm_config, main, say


class Counter:
    """The preloaded counter of this thread's copies."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        for name in ("Copies", "Bytes", "ToHost", "Frames", "Mallocs"):
            getattr(self._library, f"counted{name}").restype = c_uint64

    def reset(self) -> None:
        self._library.countFromZero()

    def read(self, *names: str) -> list[int]:
        return [getattr(self._library, f"counted{name}")() for name in names]


def launch(rank: Rank, kind: str, send: int, recv: int, options: dict[str, Any]) -> None:
    count = options.get("count", 8)
    if kind == "AllReduce":
        rank.all_reduce(send, recv, count, FP32, options.get("reduce", SUM))
    elif kind == "AllGather":
        rank.all_gather(send, recv, count)
    elif kind == "AlltoAll":
        part = (c_uint64(count // rank.ranks), FP32)
        buffers = (c_void_p(send), *part, c_void_p(recv), *part)
        rank.cann.call("HcclAlltoAll", *buffers, rank.comm, rank.stream)
    else:
        count //= rank.ranks
        arguments = (c_void_p(send), c_void_p(recv), c_uint64(count), FP32, SUM)
        rank.cann.call("HcclReduceScatter", *arguments, rank.comm, rank.stream)


def captures(rank: Rank, root: bytes, options: dict[str, Any]) -> list[list[int]]:
    """Eager operations of all ranks, then captures of k each by rank 0: what was counted (COUNTED) in each.

    Capturing meets no other rank, so one rank's captures tell.
    """
    counter = Counter()
    rank.join(root, comm_config(**options["config"]) if "config" in options else None)
    size = 4 * options.get("count", 8) * rank.ranks
    send, recv = rank.malloc(size), rank.malloc(size)
    counter.reset()
    for kind in options.get("eager", [options["op"]]):
        launch(rank, kind, send, recv, options)
    answers = [counter.read(*COUNTED)]
    rank.sync()
    kept: list[c_void_p] = []

    def work() -> None:
        for _ in range(options["k"]):
            launch(rank, options["op"], send, recv, options)

    for _ in range(options["captures"] if rank.rank == 0 else 0):
        counter.reset()
        kept.append(rank.capture(work))
        answers.append(counter.read(*COUNTED))
        if options.get("destroyed"):
            rank.cann.call("aclmdlRIDestroy", kept.pop())
    for graph in kept:
        rank.cann.call("aclmdlRIDestroy", graph)
    rank.leave()
    for pointer in (send, recv):
        rank.cann.call("aclrtFree", c_void_p(pointer))
    return answers


def growth(rank: Rank, job: Job) -> list[list[int]]:
    return captures(rank, job.root(rank), job.options)


def engines(rank: Rank, job: Job) -> dict[str, bool]:
    """Which kinds of collectives make H2D copies that grow from capture to capture."""
    answers: dict[str, bool] = {}
    large = 4 << 20  # elements
    kinds: dict[str, dict[str, Any]] = {
        "AllReduce": {"op": "AllReduce"},
        "AllGather": {"op": "AllGather"},
        "AlltoAll": {"op": "AlltoAll"},
        "large AllReduce": {"op": "AllReduce", "count": large},
        "product": {"op": "AllReduce", "reduce": PROD},
    }
    for name, kind in kinds.items():
        points = captures(rank, job.root(rank), {"k": 2, "captures": 3, **kind, **job.options})
        copies = [point[0] for point in points]
        if rank.rank == 0:
            answers[name] = len(copies) == 4 and copies[3] > copies[2] > 0
            assert answers[name] == (copies[0] > 0) or job.options.get("fixed"), copies
    return answers


GROWS, PR2405, FIXED = range(3)


def serve(rank: Rank, job: Job) -> None:
    """Run `growth` for each line of stdin, under the settings it gives, until its end: one process, any settings."""
    requests = job.folder / "requests"
    for number in itertools.count():
        file = requests.with_suffix(f".{number}")
        if rank.rank == 0:
            line = sys.stdin.readline() or "null"
            file.with_suffix(".part").write_text(line)
            file.with_suffix(".part").rename(file)
        while not file.exists():
            time.sleep(0.0005)
        request = json.loads(file.read_text())
        if request is None:
            return
        if rank.rank == 0:
            settings = rank.cann.settings()
            for name, value in request["settings"].items():
                setattr(settings, name, value.encode() if isinstance(value, str) else value)
        answers = captures(rank, job.root(rank), request)
        if rank.rank == 0:
            say(answers)


if __name__ == "__main__":
    main(growth, engines, serve)
