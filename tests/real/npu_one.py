"""Run in an environment with torch-npu, not in ours: one process, one NPU. Prints what it saw as JSON."""

# pyright: reportMissingImports=false

import json
import sys

import torch
import torch_npu

torch.npu.config.allow_internal_format = False
torch.npu.set_device(0)
data = torch.arange(4096, dtype=torch.float32)
there = data.npu()
total = there + there
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    captured = there * 2
graph.replay()
torch.npu.synchronize()
graph.reset()
json.dump(
    {
        "torch": torch.__version__.split("+")[0],
        "torch_npu": torch_npu.__version__,
        "available": torch.npu.is_available(),
        "npus": torch.npu.device_count(),
        "eager": [list(total.shape), str(total.dtype), str(total.device)],
        "captured": [list(captured.shape), str(captured.dtype), str(captured.device)],
        "came_back": bool(torch.equal(there.cpu(), data)),
        "name": torch.npu.get_device_name(0),
    },
    sys.stdout,
)
