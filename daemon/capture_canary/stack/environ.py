"""From another process's environment: the few variables that matter here, and nothing else of it.

An environment holds passwords and tokens. Only names of ALLOWED are taken out; no other value is kept, logged or sent.
"""

from collections.abc import Iterable

import msgspec

MODE = "HCCL_OP_EXPANSION_MODE"
DETERMINISTIC = "HCCL_DETERMINISTIC"
PRELOAD = "LD_PRELOAD"
TRACE_DIR = "CAPTURE_CANARY_TRACE_DIR"
PROBE = "CAPTURE_CANARY_PROBE"
"""In the environment of every process of a probe of ours."""
ALLOWED = frozenset(
    {
        MODE,
        DETERMINISTIC,
        PRELOAD,
        TRACE_DIR,
        PROBE,
        "HCCL_BUFFSIZE",
        "ASCEND_HOME_PATH",
        "ASCEND_TOOLKIT_HOME",
        "ASCEND_RT_VISIBLE_DEVICES",
        "ASCEND_VISIBLE_DEVICES",
        "TASK_QUEUE_ENABLE",
        "VLLM_USE_V2_MODEL_RUNNER",
        "VIRTUAL_ENV",
    }
)
MAX_BYTES = 1 << 20
"""Read of an environ file. The kernel allows 2 MiB and more; what lies behind is not known, not unset."""
MAX_VALUE = 256

_NAMES = {name.encode(): name for name in ALLOWED}


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What was allowed to be read."""

    values: dict[str, str]
    complete: bool
    """What is not in `values` was not set when the process started."""


def parse(data: bytes, *, whole: bool = True) -> Environment:
    """Return the allowed variables of a /proc/PID/environ; not complete where a title has overwritten it."""
    values: dict[str, str] = {}
    items = data.split(b"\0")
    if not whole:
        items.pop()  # cut somewhere
    any_name = False
    for item in items:
        name, separator, value = item.partition(b"=")
        any_name = any_name or bool(separator and name)
        known = _NAMES.get(name)
        # getenv takes the first of two.
        if known and separator and known not in values:
            values[known] = _text(value)
    return Environment(values=values, complete=whole and any_name)


def of_pairs(pairs: Iterable[tuple[str, str]], *, complete: bool = True) -> Environment:
    """Return the allowed ones of a container's or a pod's variables."""
    return Environment(
        values={name: _text(value.encode()) for name, value in pairs if name in ALLOWED},
        complete=complete,
    )


def _text(value: bytes) -> str:
    # Blanks at the ends stay: HCCL compares exactly, and "AIV " is not AIV.
    text = value[: 4 * MAX_VALUE].decode(errors="replace")[:MAX_VALUE]
    return "".join(c if c.isprintable() else "?" for c in text)
