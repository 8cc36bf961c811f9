"""Run in an environment with torch-npu, not in ours: one rank of `ranks`, graphs of collectives.

usage: npu_rank.py RANK RANKS STORE COLLECTIVE FATE K CAPTURES     prints what it saw as JSON
"""

import json
import sys

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # brings torch.npu

COUNT = 256

rank, ranks, store, collective, fate, k, captures = sys.argv[1:]
torch.npu.config.allow_internal_format = False
torch.npu.set_device(int(rank))
dist.init_process_group(
    "hccl", init_method=f"file://{store}", rank=int(rank), world_size=int(ranks)
)
mine = torch.full((COUNT,), float(int(rank) + 1))
send = mine.npu()
gathered = torch.zeros(COUNT * int(ranks)).npu()


def run() -> None:
    if collective == "AllReduce":
        dist.all_reduce(send)
    else:
        dist.all_gather_into_tensor(gathered, send)


def result() -> list[float]:
    """Return the ends of what the collective made, after the NPU is done."""
    torch.npu.synchronize()
    made = (send if collective == "AllReduce" else gathered).cpu()
    return [made[0].item(), made[-1].item()]


run()
seen = {"eager": result(), "replayed": []}
kept = []
for _ in range(int(captures)):
    send.copy_(mine)
    gathered.copy_(torch.zeros(COUNT * int(ranks)))
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        for _ in range(int(k)):
            run()
    graph.replay()
    seen["replayed"].append(result())
    if fate == "kept":
        kept.append(graph)
    else:
        graph.reset()
json.dump(seen, sys.stdout)
sys.stdout.flush()
dist.destroy_process_group()
