"""The parent of a probe: starts one arm's child, reads its records while it runs, and leaves nothing behind.

Whatever the child does, hang, die, write garbage, flood or fork, the arm ends within its deadline with a reason.
"""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

import capture_canary
from capture_canary import spawn
from capture_canary.native import tracer_path
from capture_canary.probe import children, workfolder
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.messages import Failed, Record, Spec
from capture_canary.probe.watch import TIMED_OUT, OnRecord, Watch
from capture_canary.stack.npus import printable

WORKER = ("-m", "capture_canary.probe.worker")
"""The child, as arguments of a Python; it need not be ours, but have what the workload imports, and msgspec."""

FailureKind = Literal["start", "timeout", "child"]
"""An NPU or CANN could not be had, something hung, or a process died or wrote nonsense."""


class ArmRun(msgspec.Struct, kw_only=True):
    """What came of one arm's child."""

    records: list[Record]
    failure: str | None
    """Why it did not run to its end; None where it did, or was asked to stop."""
    kind: FailureKind | None
    """The failure in a word, for metrics."""
    code: int | None
    """What CANN returned where that is the failure."""
    seconds: float
    leftover: list[int]
    """Processes of it that could not be ended: the NPU may still be held."""


def arm_environment(
    base: Mapping[str, str], *, mode: str | None, work: Path, preload: bool = True
) -> dict[str, str]:
    """Return the child's environment: the CANN of `base`, the arm's mode, and no other HCCL setting.

    A probe beside a server must meet neither its ports nor its rank table; CANN's own logs go where they are removed.
    """
    kept = {
        name: value
        for name, value in base.items()
        if not name.startswith(("HCCL_", "RANK_TABLE", "LD_PRELOAD"))
    }
    libraries = [f"{base['ASCEND_HOME_PATH']}/lib64"] if "ASCEND_HOME_PATH" in base else []
    kept |= {
        "LD_LIBRARY_PATH": _joined([*libraries, base.get("LD_LIBRARY_PATH")]),
        "CAPTURE_CANARY_TRACE_DIR": str(work),
        "ASCEND_PROCESS_LOG_PATH": str(work / "log"),
        "PYTHONPATH": _joined([str(work / "python"), base.get("PYTHONPATH")]),
        "HCCL_HOST_SOCKET_PORT_RANGE": "auto",
        "HCCL_NPU_SOCKET_PORT_RANGE": "auto",
    }
    if preload:
        kept["LD_PRELOAD"] = str(tracer_path())
    if mode is not None:
        kept["HCCL_OP_EXPANSION_MODE"] = mode
    return kept


def _joined(folders: Sequence[str | None]) -> str:
    return ":".join(folder for folder in folders if folder)


def _lend_package(work: Path) -> None:
    """Put this package, alone of all that is beside it, where a Python that does not have it finds it."""
    (work / "python").mkdir()
    (work / "python" / "capture_canary").symlink_to(Path(capture_canary.__file__).parent)


def run_arm(
    spec: Spec,
    base: Mapping[str, str],
    *,
    mode: str | None,
    on_record: OnRecord,
    cancel: Cancel | None = None,
    inherit: tuple[int, ...] = (),
    preload: bool = True,
    command: Sequence[str] = (sys.executable, *WORKER),
) -> ArmRun:
    """Run one arm to its end, its stop or its deadline (`spec.deadline_seconds`).

    `cancel`, once requested, gives the child `CANCEL_GRACE` seconds to release its NPUs. `inherit` are descriptors that
    it keeps open, such as the node's lock. `command` is the child, to which the number of the records' descriptor is
    added. Without `preload` its copies are not counted.
    """
    mark = uuid.uuid4().hex
    begin = time.monotonic()
    with contextlib.ExitStack() as undo:
        try:
            work = workfolder.make(undo)
            environment = arm_environment(base, mode=mode, work=work, preload=preload)
            _lend_package(work)
            children.adopt_orphans()
            child, records_read = _start(
                [*command], environment | {children.MARK: mark}, inherit, undo
            )
        except OSError as error:
            return _not_started(error, time.monotonic() - begin)
        watch = Watch(child, records_read, on_record, begin + spec.deadline_seconds, cancel)
        try:
            watch.start(spec)
            watch.read()
        finally:
            ended = watch.ended_itself or watch.cancelled  # that had its grace
            leftover = (children.sweep if ended else children.end_child)(child, mark)
            watch.close()
            if child.pid in leftover:
                spawn.abandon(child)
        failures = [record for record in watch.records if isinstance(record, Failed)]
        # Who died comes first: what his peers say is that he did not answer.
        failed = min(failures, key=lambda one: not one.died, default=None)
        return ArmRun(
            records=watch.records,
            failure=_why(watch, failed, child.returncode, leftover),
            kind=_kind(watch, failed),
            code=next((one.code for one in failures if one.code is not None), None),
            seconds=time.monotonic() - begin,
            leftover=leftover,
        )


def _start(
    command: list[str],
    environment: dict[str, str],
    inherit: tuple[int, ...],
    undo: contextlib.ExitStack,
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the child; return it with the descriptor that its records come from."""
    records_read, records_write = os.pipe()
    undo.callback(os.close, records_read)
    try:
        child = spawn.start(
            [*command, str(records_write)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(records_write, *inherit),
            env=environment,
            cwd="/",  # `-m` would import from a hostile working directory first
            start_new_session=True,
        )
    finally:
        os.close(records_write)
    _first_to_go(child.pid)
    return child, records_read


def _first_to_go(pid: int) -> None:
    """Where memory runs out, in our container or on the node, the kernel is to end the probe and nobody else."""
    with contextlib.suppress(OSError):  # it ended already, or /proc may not be written
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _not_started(error: OSError, seconds: float) -> ArmRun:
    return ArmRun(
        records=[],
        failure=f"its child could not be started: {error}",
        kind="start",
        code=None,
        seconds=seconds,
        leftover=[],
    )


def _kind(watch: Watch, failed: Failed | None) -> FailureKind | None:
    if watch.failure == TIMED_OUT or (failed and failed.silent):
        return "timeout"
    if failed and failed.step == "Open":
        return "start"
    return None if watch.good else "child"


def _why(
    watch: Watch, failed: Failed | None, status: int | None, leftover: list[int]
) -> str | None:
    """Return why a child did not run to its end, from what it left."""
    if leftover:
        return f"processes {leftover} of it could not be ended"
    if watch.failure and not (
        failed and watch.failure == TIMED_OUT
    ):  # which rank says more than that
        return watch.failure
    if failed:
        return f"rank {failed.rank} failed in {failed.step}: {failed.reason}"
    if watch.good:
        return None
    return f"its child ended with status {status}{_tail(watch.stderr)}"


def _tail(stderr: bytes) -> str:
    text = stderr.decode(errors="replace").strip().splitlines()
    return f": {printable(text[-1], 300)}" if text else ""
