"""The parent of a probe: starts one arm's child, reads its records while it runs, and leaves nothing behind.

Whatever the child does, hang, die, write garbage, flood or fork, the arm ends within its deadline with a reason.
"""

import contextlib
import os
import selectors
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, cast

import msgspec

import capture_canary
from capture_canary import spawn
from capture_canary.native import tracer_path
from capture_canary.probe import children, workfolder
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.messages import (
    MAX_LINE,
    Ended,
    Failed,
    Record,
    Spec,
    decode_record,
    encode,
)

MAX_OUTPUT = 8 << 20
"""Bytes of records or of stderr after which a child counts as flooding: a long probe writes under 1 MiB."""
_RECORD = 1024
"""Bytes of a capture's record, twice what one has: a reproduction of thousands over many ranks may have as many."""
CANCEL_GRACE = 1.0
"""Seconds that a cancelled child has to end in good order; the daemon promises its own end within 2 s."""
LEADER_LEAD = 2.0
"""Seconds by which the leader gives up before its runner: it can say which rank did not answer, and in which step."""
CANCELLED = "it was cancelled"
TIMED_OUT = "it did not end within its deadline"
_STDERR_TAIL = 2000
_READ = 65536
_POLL = 0.2

WORKER = ("-m", "capture_canary.probe.worker")
"""The child, as arguments of a Python; it need not be ours, but have what the workload imports, and msgspec."""

FailureKind = Literal["start", "timeout", "child"]
"""An NPU or CANN could not be had, something hung, or a process died or wrote nonsense."""

OnRecord = Callable[[Record], bool]
"""Called with each record as it arrives; False asks the child to stop."""


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
        watch = _Watch(child, records_read, on_record, begin + spec.deadline_seconds, cancel)
        try:
            watch.start(spec)
            watch.read()
        finally:
            ended = watch.ended_itself or watch.failure == CANCELLED  # that had its grace
            leftover = (children.sweep if ended else children.end_child)(child, mark)
            watch.close()
            if child.pid in leftover:
                spawn.abandon(child)
        failed = next((record for record in watch.records if isinstance(record, Failed)), None)
        return ArmRun(
            records=watch.records,
            failure=_why(watch, failed, child.returncode, leftover),
            kind=_kind(watch, failed),
            code=failed.code if failed else None,
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


class _Watch:
    """Reads one child until it closes its records, or until it breaks a bound."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        records: int,
        on_record: OnRecord,
        deadline: float,
        cancel: Cancel | None,
    ) -> None:
        self.records: list[Record] = []
        self.failure: str | None = None
        self.ended_itself = False
        self.stderr = b""
        self._child = child
        self._stdin = cast("IO[bytes]", child.stdin)
        self._stderr = cast("IO[bytes]", child.stderr)
        self._pipe = records
        self._on_record = on_record
        self._deadline = deadline
        self._cancel = cancel
        self._rest = b""
        self._bytes = {"records": 0, "stderr": 0}
        self._most = {"records": MAX_OUTPUT, "stderr": MAX_OUTPUT}
        self._stopped = False
        self._cancelled = False

    def start(self, spec: Spec) -> None:
        captures = len(spec.kinds) * len(spec.devices) * spec.rounds * len(spec.shapes)
        self._most["records"] = max(MAX_OUTPUT, captures * _RECORD)
        with contextlib.suppress(BrokenPipeError):  # its death is noticed by its records
            own = max(spec.deadline_seconds - LEADER_LEAD, spec.deadline_seconds * 3 / 4)
            self._stdin.write(encode(msgspec.structs.replace(spec, deadline_seconds=own)))
            self._stdin.flush()

    def read(self) -> None:
        """Read until the child has closed both pipes, failed, or run out of time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ, "records")
            selector.register(self._stderr, selectors.EVENT_READ, "stderr")
            if self._cancel:
                selector.register(self._cancel, selectors.EVENT_READ, "cancel")
            while self.failure is None and {"records", "stderr"} & _names(selector):
                left = self._deadline - time.monotonic()
                ready = selector.select(max(0.0, min(left, _POLL)))
                if left <= 0:
                    self.failure = CANCELLED if self._cancelled else TIMED_OUT
                if not ready and self._child.poll() is not None:
                    break  # a stray holds the pipes open
                for key, _ in ready:
                    self._read_one(selector, key)
        self.ended_itself = self.failure is None
        if self._cancelled:
            self.failure = CANCELLED

    def _read_one(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        if key.data == "cancel":
            selector.unregister(key.fileobj)
            self._cancelled = True
            self._deadline = min(self._deadline, time.monotonic() + CANCEL_GRACE)
            self.stop()
        elif data := os.read(key.fd, _READ):
            if self.failure is None:
                self._take(str(key.data), data)
        else:
            selector.unregister(key.fileobj)

    def _take(self, pipe: str, data: bytes) -> None:
        self._bytes[pipe] += len(data)
        if self._bytes[pipe] > self._most[pipe]:
            most = self._most[pipe] >> 20
            self.failure = f"its child flooded its {pipe} with more than {most} MiB"
        elif pipe == "stderr":
            self.stderr = (self.stderr + data)[-_STDERR_TAIL:]
        else:
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._record(line)
            if len(self._rest) > MAX_LINE:
                self.failure = f"its child wrote a line of more than {MAX_LINE} bytes"

    def _record(self, line: bytes) -> None:
        if self.failure is not None:
            return
        try:
            record = decode_record(line)
        except msgspec.MsgspecError as error:
            self.failure = f"its child wrote what is no record ({error}): {line[:80]!r}"
            return
        self.records.append(record)
        if not self._on_record(record) and not self._stopped:
            self._stopped = True
            self.stop()

    @property
    def good(self) -> bool:
        """Whether the leader ended all its ranks in good order."""
        return any(isinstance(record, Ended) for record in self.records)

    def stop(self) -> None:
        """Ask the child to end in good order: the end of its input says so."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        self.stop()
        self._stderr.close()


def _names(selector: selectors.BaseSelector) -> set[str]:
    return {str(key.data) for key in selector.get_map().values()}


def _kind(watch: _Watch, failed: Failed | None) -> FailureKind | None:
    if watch.failure == TIMED_OUT or (failed and failed.silent):
        return "timeout"
    if failed and failed.step == "Open":
        return "start"
    return None if watch.good else "child"


def _why(
    watch: _Watch, failed: Failed | None, status: int | None, leftover: list[int]
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
    return f": {text[-1][:300]}" if text else ""
