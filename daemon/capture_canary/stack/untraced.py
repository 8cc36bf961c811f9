"""Whether a process has the tracer that it was started to have: asked for by its environment, seen by its memory."""

from collections.abc import Iterable

from capture_canary.stack.environ import PRELOAD, PROBE, TRACE_DIR, Environment
from capture_canary.stack.proc import ProcessFolder

LIBRARY = "libcapturetrace.so"


def asked(environments: Iterable[Environment]) -> bool:
    """Whether a process, or the server that it belongs to, was started to be traced; a probe reads its own traces."""
    return any(
        PROBE not in one.values
        and (LIBRARY in one.values.get(PRELOAD, "") or TRACE_DIR in one.values)
        for one in environments
    )


def untraced(
    folder: ProcessFolder, environments: Iterable[Environment], *, traced: bool, npus: bool
) -> str | None:
    """Return why a process that was to be traced is not; None where it is, or need not be.

    Args:
        folder: the process.
        environments: its own and its parents', as far as they could be read.
        traced: a trace of it lies in our folder.
        npus: it holds an NPU, so HCCL should have started in it, or will.
    """
    if traced or not asked(environments):
        return None
    try:
        loaded = folder.loaded(LIBRARY)
    except OSError as error:
        return f"whether {LIBRARY} is in it cannot be seen: {error.strerror or error}"
    if not loaded:
        return f"{LIBRARY} is not loaded: another LD_PRELOAD replaced ours, or the file is not in its container"
    if npus:
        return f"{LIBRARY} is loaded and wrote nothing into our trace_dir: another {TRACE_DIR}, or it is switched off"
    return None  # a process that starts no HCCL writes nothing
