"""After a probe: are its chips as they were? If not, no further probe may make it worse."""

import threading
import time
from collections.abc import Callable, Collection

import msgspec

from capture_canary.stack.npus import Npus, NpusUnknownError, Process

SETTLE = 30.0
_LOOK_EVERY = 1.0
_HBM_SLACK_MB = 256
"""An idle chip's HBM wanders by this much between two looks."""


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chips came back. Not shown to be back is not back."""

    ok: bool
    sentence: str


def released(
    before: Npus, after: Npus, devices: Collection[int], ours: Collection[int], *, same_pids: bool
) -> Released:
    """Compares two looks at the probe's chips.

    `ours` are the pids of the probe's processes, and `same_pids` says that the table counts pids
    as we do (host, hostPID). A newcomer that is certainly not ours is a server that started
    meanwhile: nothing is wrong then, and HBM says nothing about us any more.
    """
    was = {p.pid for n in devices for p in before.on(n)}
    came = [p for n in devices for p in after.on(n) if p.pid not in was]
    for process in came:
        comparable = same_pids or process.pid_in_container is not None
        if not comparable or _pids(process) & set(ours):
            return _no(f"pid {process.pid} holds davinci{process.phy_id} since the probe")
    if came:
        text = f"pid {came[0].pid} {came[0].name}, not the probe's, took davinci{came[0].phy_id}"
        return Released(ok=True, sentence=text)
    now = {c.phy_id: c for c in after.chips}
    for old in (c for c in before.chips if c.phy_id in devices):
        new = now.get(old.phy_id)
        if new is None or new.hbm_used_mb is None or old.hbm_used_mb is None:
            return _no(f"davinci{old.phy_id} is not shown with its HBM any more")
        if new.processes and not old.processes:
            return _no(f"davinci{old.phy_id} has {new.processes} processes since the probe")
        if new.hbm_used_mb > old.hbm_used_mb + _HBM_SLACK_MB:
            kept = new.hbm_used_mb - old.hbm_used_mb
            return _no(f"davinci{old.phy_id} has {kept} MB of HBM more in use than before")
    return Released(ok=True, sentence="its chips are as they were")


def wait_released(
    compare: Callable[[Npus], Released],
    look: Callable[[], Npus],
    stop: threading.Event,
    settle: float = SETTLE,
    clock: Callable[[], float] = time.monotonic,
) -> Released:
    """Looks every second until the chips are back, `settle` has gone, or `stop` is set. Blocks."""
    end = clock() + settle
    while True:
        try:
            answer = compare(look())
        except NpusUnknownError as error:
            answer = _no(str(error))
        if answer.ok or clock() >= end or stop.wait(_LOOK_EVERY):
            return answer


def _pids(process: Process) -> set[int]:
    inner = {process.pid_in_container} if process.pid_in_container is not None else set()
    return {process.pid, *inner}


def _no(sentence: str) -> Released:
    return Released(ok=False, sentence=sentence)
