"""Read what the tracer wrote (docs/tracer.md)."""

import ctypes
from pathlib import Path

from capture_canary.trace.header import Communicator, Library, ProcessFacts
from capture_canary.trace.identity import own_identity
from capture_canary.trace.reader import TraceFile, TraceState
from capture_canary.trace.record import Eager, TracedCapture

__all__ = [
    "Communicator",
    "Eager",
    "Library",
    "ProcessFacts",
    "TraceFile",
    "TraceState",
    "TracedCapture",
    "own_trace",
    "tracer_loaded",
]


def tracer_loaded() -> bool:
    """Return whether this process runs with the tracer preloaded."""
    try:
        ctypes.c_uint32.in_dll(ctypes.CDLL(None), "captureTraceVersion")
    except ValueError:
        return False
    return True


def own_trace(trace_dir: Path) -> TraceFile | None:
    """Open the trace of this very process; None before HCCL starts or a capture begins, or where nothing is traced."""
    try:
        return TraceFile(trace_dir / own_identity().file_name)
    except OSError:
        return None
