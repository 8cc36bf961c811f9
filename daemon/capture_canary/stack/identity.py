"""A short stable name for a stack, to tell stacks apart in metrics."""

import hashlib

from capture_canary.model import Stack
from capture_canary.stack.exposure import family

PARTS = (
    "cann",
    "hcomm",
    "hccl",
    "runtime",
    "driver",
    "soc",
    "torch_npu",
    "vllm",
    "vllm_ascend",
    "image",
)
"""What makes two stacks different. Adding a part renames every stack that has it: say so in the CHANGELOG."""
LENGTH = 12


def stack_id(stack: Stack) -> str:
    """Return the name: the same for the same versions, whoever said them and in whatever order."""
    known = [
        f"{name}={_value(name, stack)}" for name in PARTS if name in stack and stack[name].value
    ]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:LENGTH]


def _value(name: str, stack: Stack) -> str | None:
    """A SoC has several names, by who tells; its family is one."""
    value = stack[name].value
    return (family(value) or value) if name == "soc" else value
