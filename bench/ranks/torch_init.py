"""Run in an environment with torch-npu: one rank that imports it and makes one HCCL communicator, nothing else.

usage: torch_init.py RANK RANKS STORE
"""
# pyright: reportMissingImports=false

import sys

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # brings torch.npu

rank, ranks, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.npu.set_device(rank)
dist.init_process_group("hccl", init_method=f"file://{store}", rank=rank, world_size=ranks)
dist.all_reduce(torch.zeros(256, device="npu"))
torch.npu.synchronize()
