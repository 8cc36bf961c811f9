"""Facts of the node that need no NPU opened: device nodes, where we run, who holds what."""

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from capture_canary.gate.decide import decide
from capture_canary.gate.model import Holders, Place, Rules, Snapshot
from capture_canary.stack.devices import device_nodes, opened_by
from capture_canary.stack.npus import Chip, Npus, NpusUnknownError
from capture_canary.stack.patience import Patience

_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's PROC_PID_INIT_INO: the namespace in which every process of the node has a number."""
_PATIENCE: Patience[int] = Patience()
"""What a process calls /dev/davinciN may be a file of a file system of its own, which need not answer a stat."""
_PLAIN_CONTAINER = "an ordinary container's npu-smi shows the processes of such containers only"


def place(root: Path = Path("/"), environ: dict[str, str] | None = None) -> Place:
    """Host, ordinary container, or a container with every capability."""
    env = os.environ if environ is None else environ
    marked = (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
    if not marked and "KUBERNETES_SERVICE_HOST" not in env and "container" not in env:
        return "host"
    try:
        status = (root / "proc/self/status").read_text("ascii", "replace")
        last = int((root / "proc/sys/kernel/cap_last_cap").read_text("ascii"))
    except (OSError, ValueError):
        return "container"
    effective = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    full = (1 << (last + 1)) - 1
    return "privileged" if effective and int(effective[1], 16) & full == full else "container"


def open_devices(nodes: dict[int, int], proc: Path = Path("/proc")) -> Holders:
    """Which processes have a /dev/davinciN open, read off /proc without touching a device."""
    by_number = {number: n for n, number in nodes.items()}
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdecimal()]  # noqa: PTH208  # of thousands
    except OSError as error:
        return Holders(pids={}, complete=False, why=f"{proc}: {error.strerror}")
    opened, hung = _PATIENCE.each(pids, lambda pid: opened_by(f"{proc}/{pid}/fd", by_number))
    return holders_of({**opened, **dict.fromkeys(hung)}, proc)


def holders_of(opened: Mapping[int, Collection[int] | None], proc: Path = Path("/proc")) -> Holders:
    """Who holds which NPU, from those that each process of `proc` has open; None: it could not be looked at."""
    found: dict[int, list[int]] = {}
    for pid in sorted(opened):
        for n in opened[pid] or ():
            found.setdefault(n, []).append(pid)
    try:
        everyone = 1 in opened and str((proc / "self/ns/pid").readlink()) == _FIRST_PID_NAMESPACE
    except OSError:
        everyone = False
    unreadable = sum(1 for npus in opened.values() if npus is None)
    why = "every process of the node was looked at"
    if not everyone:  # hidepid hides the others' without an error
        why = "only this container's processes are visible (no hostPID)"
    elif unreadable:
        why = f"{unreadable} processes may not be looked at (CAP_SYS_PTRACE is missing), or hang a look"
    return Holders(
        pids={n: tuple(held) for n, held in found.items()},
        complete=everyone and not unreadable,
        why=why,
    )


def load_a_cpu() -> float | None:
    """Runnable tasks a CPU, mean of 5 minutes."""
    try:
        return os.getloadavg()[1] / (os.cpu_count() or 1)
    except OSError:
        return None


def look_at_npus(
    npu_smi: Callable[[], Npus], exporter: Callable[[], Npus] | None
) -> tuple[Npus | None, str, str | None]:
    """What npu-smi shows, with npu-exporter's counts where it is configured and fresh.

    Returns what was seen, why nothing was, and why the exporter was not believed.
    """
    counted, exporter_error = _try(exporter) if exporter else (None, None)
    shown, error = _try(npu_smi)
    if shown is None and counted is None:
        return None, error or "not looked at", exporter_error
    if shown is None or counted is None:
        return shown or counted, "", exporter_error
    return merged(shown, counted), "", None


def look(
    known: Snapshot,
    rules: Rules,
    npu_smi: Callable[[], Npus],
    exporter: Callable[[], Npus] | None = None,
    holders: Callable[[dict[int, int]], Holders] = open_devices,
) -> Snapshot:
    """Adds what the node shows to what the daemon knows of itself (pause, latch, lock, budget, …).

    Where the answer is no already, nothing is run. Blocks for as long as npu-smi may take.
    """
    if decide(rules, known).reason not in {None, "npus_unknown"}:
        return known
    npus, error, exporter_error = look_at_npus(npu_smi, exporter)
    nodes = device_nodes()
    where = place()
    everyone, why = sees_all(
        where, exporter_believed=exporter is not None and exporter_error is None
    )
    return replace(
        known,
        npus=npus,
        npus_error=error,
        exporter_error=exporter_error,
        place=where,
        nodes=frozenset(nodes),
        holders=None if known.emulated else holders(nodes),
        sees_all=everyone,
        sees_all_why=why,
        load=load_a_cpu(),
    )


def _try(read: Callable[[], Npus]) -> tuple[Npus | None, str | None]:
    try:
        return read(), None
    except NpusUnknownError as error:
        return None, str(error)


def merged(shown: Npus, counted: Npus) -> Npus:
    """npu-smi's chips; a process counts that either of the two sees."""
    counts = {c.phy_id: c for c in counted.chips}

    def busier(chip: Chip) -> Chip:
        other = counts.get(chip.phy_id)
        if other is None:  # the one that sees everything didn't speak of it
            return replace(chip, processes=chip.processes or None)
        known = [n for n in (chip.processes, other.processes) if n is not None]
        health = chip.health if other.health in {"OK", "unknown"} else other.health
        return replace(
            chip,
            processes=max(known, default=None),
            health=health,
            bus_id=chip.bus_id or other.bus_id,
            vdie_id=other.vdie_id,
        )

    return replace(
        shown,
        source=f"{shown.source} and {counted.source}",
        chips=tuple(busier(c) for c in shown.chips),
        processes=shown.processes or counted.processes,
    )


def sees_all(where: Place, *, exporter_believed: bool) -> tuple[bool, str]:
    """Does the process table hold every process of the node? And how that is known."""
    if exporter_believed:
        return True, "npu-exporter runs privileged and counts every process"
    if where == "container":
        return False, _PLAIN_CONTAINER
    return True, f"npu-smi in a {where} context shows every process"
