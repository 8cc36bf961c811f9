"""What the checks of assumptions rest on: the installed files, npu-smi, and one short probe behind the gate."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from capture_canary.config.model import Config
from capture_canary.doctor import elf
from capture_canary.doctor.findings import Findings, find
from capture_canary.doctor.ports import listened_on
from capture_canary.lock import LockBusyError, LockUnusableError, acquire
from capture_canary.model import ArmName, Capture, Report, Series
from capture_canary.probe.measure import Event, Probe, ProbeSettings
from capture_canary.probe.messages import Captured, Started
from capture_canary.service.settings import runtime_numbers
from capture_canary.stack import npu_smi
from capture_canary.stack.npus import Npus, NpusUnknownError

BUDGET_SECONDS = 45.0
_LIBRARIES = ("libacl_rt", "libacl_rt_impl", "libruntime", "libhccl", "libhcomm", "libhccl_plf")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One short probe: every arm, small graphs."""

    report: Report
    settings: ProbeSettings
    devices: tuple[int, ...]
    """N of the /dev/davinciN that it took."""
    during: Npus | None
    """npu-smi while its communicators were open."""
    after: Npus | None
    ports: frozenset[int]
    """TCP ports that its ranks listened on."""
    failure: str | None

    def series(self, arm: ArmName) -> list[Series]:
        """Return the series of an arm."""
        return [one for one in self.report.series if one.arm == arm]

    def captures(self, arm: ArmName) -> list[Capture]:
        """Return all captures of an arm."""
        return [capture for one in self.series(arm) for capture in one.captures]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    findings: Findings
    home: Path | None
    libraries: dict[str, elf.Library]
    flaws: dict[str, str]
    """Why a library could not be read."""
    measured: Measured | None
    why_not: str
    """Why nothing was measured."""

    def version(self, name: str) -> str | None:
        """Return a version of our stack."""
        stack = self.findings.node.stack
        return stack[name].value if name in stack else None


def gather(config: Config, base: Mapping[str, str]) -> Evidence:
    """Look, and probe once if the gate lets us: under a minute."""
    findings = find(config, base)
    home = Path(base["ASCEND_HOME_PATH"]) if base.get("ASCEND_HOME_PATH") else None
    libraries, flaws = _libraries(home)
    measured, why_not = _measure(config, base, findings)
    return Evidence(
        findings=findings,
        home=home,
        libraries=libraries,
        flaws=flaws,
        measured=measured,
        why_not=why_not,
    )


def _libraries(home: Path | None) -> tuple[dict[str, elf.Library], dict[str, str]]:
    found: dict[str, elf.Library] = {}
    flaws: dict[str, str] = {}
    for name in _LIBRARIES if home else ():
        path = Path(str(home), "lib64", f"{name}.so")
        try:
            found[name] = elf.read(path)
        except (OSError, ValueError) as error:
            flaws[name] = str(error)
    return found, flaws


def _measure(
    config: Config, base: Mapping[str, str], findings: Findings
) -> tuple[Measured | None, str]:
    if not findings.gate.allowed:
        return None, findings.gate.sentence
    if "ASCEND_HOME_PATH" not in base:
        return None, "no CANN is installed here"
    try:
        lock = acquire(config.lock_file)
    except (LockBusyError, LockUnusableError) as error:
        return None, str(error)
    try:
        return _probe(base, findings, lock.fd), ""
    finally:
        lock.release()


def _probe(base: Mapping[str, str], findings: Findings, lock: int) -> Measured:
    devices = findings.gate.devices
    smi = npu_smi.NpuSmi(npu_smi.command(base), env=base)
    during: list[Npus] = []
    pids: set[int] = set()
    ports: set[int] = set()

    def observe(event: Event) -> None:
        if isinstance(event, Started):
            pids.add(event.pid)
        if isinstance(event, Captured) and event.capture.order == 1 and not event.rank:
            ports.update(listened_on(pids))
            with contextlib.suppress(NpusUnknownError):
                during.append(smi.read())

    settings = ProbeSettings(
        devices=runtime_numbers(devices, frozenset(findings.node.nodes)),
        arms=("as_configured", "aiv", "ai_cpu"),
        full=True,
        rounds=2,
        budget_seconds=BUDGET_SECONDS,
    )
    probe = Probe(settings, base, emulated=findings.emulated, observe=observe, inherit=(lock,))
    report = probe.run()
    after = None
    with contextlib.suppress(NpusUnknownError):
        after = smi.read()
    return Measured(
        report=report,
        settings=settings,
        devices=devices,
        during=max(during, key=_used, default=None),
        after=after,
        ports=frozenset(ports),
        failure=report.reason if probe.failure else None,
    )


def _used(npus: Npus) -> int:
    return sum(chip.hbm_used_mb or 0 for chip in npus.chips)
