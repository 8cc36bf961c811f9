"""Run in an environment with torch-npu, not in ours: one rank, graphs of AllReduce, then of AllGather.

usage: npu_rank.py RANK RANKS STORE kept|destroyed K CAPTURES     prints what came out as JSON
"""
# pyright: reportMissingImports=false

import json
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # brings torch.npu

COUNT = 256

rank, ranks = int(sys.argv[1]), int(sys.argv[2])
store, fate = sys.argv[3:5]
k, captures = int(sys.argv[5]), int(sys.argv[6])

mine = torch.full((COUNT,), float(rank + 1))
zeros = torch.zeros(COUNT * ranks)
kept: list[object] = []


def ends(tensor: torch.Tensor) -> list[float]:
    """Return the first and the last element, after the NPU is done."""
    torch.npu.synchronize()
    here = tensor.cpu()
    return [here[0].item(), here[-1].item()]


def series(collective: Callable[[], object], made: torch.Tensor, fresh: torch.Tensor) -> object:
    """Run a collective eagerly once, then in graphs, each replayed on fresh data."""
    collective()
    eager = ends(made)
    replayed = []
    for _ in range(captures):
        made.copy_(fresh)
        torch.npu.synchronize()
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            for _ in range(k):
                collective()
        graph.replay()
        replayed.append(ends(made))
        if fate == "kept":
            kept.append(graph)
        else:
            graph.reset()
    return {"eager": eager, "replayed": replayed}


torch.npu.config.allow_internal_format = False
torch.npu.set_device(rank)
dist.init_process_group("hccl", init_method=f"file://{store}", rank=rank, world_size=ranks)
# Each series on a communicator of its own: the lists that grow are a communicator's.
second = dist.new_group(list(range(ranks)))
reduced, sent, gathered = mine.npu(), mine.npu(), zeros.npu()
seen = {
    "AllReduce": series(lambda: dist.all_reduce(reduced), reduced, mine),
    "AllGather": series(
        lambda: dist.all_gather_into_tensor(gathered, sent, group=second), gathered, zeros
    ),
}
json.dump(seen, sys.stdout)
sys.stdout.flush()
dist.destroy_process_group()
