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


def completed(stack: Stack, known: Stack) -> Stack:
    """Return a stack with what it lacks as it was known before, unless anything says that it is another one.

    A probe that fails before it has opened an NPU learns less than others: that makes no other stack.
    """
    told = {name for name, fact in stack.items() if fact.value}
    before = {name: fact for name, fact in known.items() if fact.value}
    if any(_value(name, stack) != _value(name, known) for name in told & {*before} & {*PARTS}):
        return stack
    return {**stack, **{name: fact for name, fact in before.items() if name not in told}}


def _value(name: str, stack: Stack) -> str | None:
    """A SoC has several names, by who tells; its family is one."""
    value = stack[name].value
    return (family(value) or value) if name == "soc" else value
