"""Run in an environment with vLLM, not in ours: what a server does until it serves, its graphs captured once.

usage: vllm_server.py MODEL
"""
# pyright: reportMissingImports=false

import sys

from vllm import LLM

if __name__ == "__main__":
    LLM(
        model=sys.argv[1],
        load_format="dummy",
        skip_tokenizer_init=True,
        tensor_parallel_size=2,
        distributed_executor_backend="mp",
        max_model_len=128,
        max_num_batched_tokens=128,
        num_gpu_blocks_override=64,
        gpu_memory_utilization=0.5,
        compilation_config={
            "cudagraph_mode": "FULL",
            "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 24],
        },
    )
