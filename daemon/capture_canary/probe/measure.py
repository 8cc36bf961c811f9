"""One probe from its first arm to its report: which arms run, when each may end, what the records come to."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from capture_canary.model import ArmName, Fact, Report, Series, Stack
from capture_canary.probe.arm import Arm
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.messages import Kind, Record, Spec, Started
from capture_canary.probe.runner import WORKER, FailureKind, run_arm
from capture_canary.probe.settings import ProbeSettings, by_time
from capture_canary.stack.cann import read_stack
from capture_canary.stack.exposure import effective_mode
from capture_canary.trend import stop, verdict
from capture_canary.trend.report import report_of

__all__ = ["ArmEnded", "ArmStarted", "Event", "Observer", "Probe", "ProbeSettings"]

UNKNOWN = Fact(value=None, source="nothing")
CANN = "aclsysGetVersionStr"
PACKAGES = ("torch", "torch_npu", "vllm", "vllm_ascend")
VERSION_SOURCES = {name: f"{name}.__version__" for name in PACKAGES}
MODE_OF_ARM: dict[ArmName, str] = {"aiv": "AIV", "ai_cpu": "AI_CPU"}


class ArmStarted(msgspec.Struct, frozen=True):
    """Progress: an arm begins."""

    arm: ArmName
    mode: str | None
    kinds: tuple[Kind, ...]
    """The series that it will have, which `Captured.series` counts."""


class ArmEnded(msgspec.Struct, frozen=True):
    """Progress: an arm ended by itself, or was ended at its deadline."""

    arm: ArmName
    failure: str | None
    """Why it was not measured to its end."""


Event = ArmStarted | ArmEnded | Record
Observer = Callable[[Event], None]
Earlier = Callable[[Stack], float | None]
"""How many seconds ago a probe of this stack found its time growing; None where none did."""


class Probe:
    """A probe under way."""

    def __init__(
        self,
        settings: ProbeSettings,
        base: Mapping[str, str],
        *,
        emulated: bool,
        observe: Observer,
        cancel: Cancel | None = None,
        inherit: tuple[int, ...] = (),
        earlier: Earlier = lambda _stack: None,
        made: Mapping[ArmName, Sequence[Record]] | None = None,
    ) -> None:
        """Prepare; `base` is the environment that names the CANN, the rest is as `run_arm` takes it.

        `made` are the records of arms that an earlier process measured to their end: they are not run again.
        """
        self._settings = settings if settings.preload else by_time(settings)
        self._seed = secrets.randbits(32) if settings.seed is None else settings.seed
        self._earlier = earlier
        self._made = made or {}
        self._base = base
        self._emulated = emulated
        self._observe = observe
        self._cancel = cancel
        self._inherit = inherit
        self.code: int | None = None
        """What CANN returned, where an arm failed for it."""
        self.failure: FailureKind | None = None
        """Why an arm failed, in a word."""
        self.pids: set[int] = set()
        """Every process that was a rank."""
        self.leftover: list[int] = []
        """Processes that could not be ended."""
        self._deadline = time.monotonic() + settings.budget_seconds
        self._arms: list[Arm] = []

    def run(self) -> Report:
        """Run the arms that are wanted, and judge."""
        wanted = self._settings.arms or ("as_configured",)
        for name in wanted:
            self._run_arm(name, self._settings.kinds)
        while self._settings.arms is None and not self._ended() and (arm := self._next()):
            self._run_arm(arm, self._kinds(arm))
        last = self._arms[-1]
        if len(self._arms) > 1 and last.failure and (self._ended() or not last.begun):
            self._arms.pop()  # it was not the stack that cut it short
        return self._report()

    def _run_arm(self, name: ArmName, kinds: tuple[Kind, ...]) -> None:
        mode = MODE_OF_ARM.get(name, self._settings.mode)
        arm = Arm(name, mode, msgspec.structs.replace(self._settings, kinds=kinds))
        self._arms.append(arm)
        if name in self._made:
            for record in self._made[name]:
                arm.take(record)
            return
        self._observe(ArmStarted(name, mode, kinds))

        def on_record(record: Record) -> bool:
            arm.take(record)
            self._observe(record)
            return not arm.may_end(record)

        left = self._deadline - time.monotonic()
        if left <= 0 or self._ended():
            used_up = f"the probe's {self._settings.budget_seconds:g} s were used up"
            arm.failure = self._cancel.why if self._cancel and self._ended() else used_up
            self._observe(ArmEnded(name, arm.failure))
            return
        run = run_arm(
            self._spec(name, kinds, left),
            self._base,
            mode=mode,
            on_record=on_record,
            cancel=self._cancel,
            inherit=self._inherit,
            preload=self._settings.preload,
            command=(self._settings.python, *WORKER),
        )
        arm.failure = run.failure
        arm.begun = bool(run.records) or run.kind != "start"
        self._observe(ArmEnded(name, run.failure))
        self.failure = run.kind or self.failure
        self.code = self.code if run.code is None else run.code
        self.leftover += run.leftover
        self.pids |= {record.pid for record in run.records if isinstance(record, Started)}

    def _ended(self) -> bool:
        return self._cancel is not None and self._cancel.requested

    def _spec(self, name: ArmName, kinds: tuple[Kind, ...], seconds: float) -> Spec:
        settings = self._settings
        return Spec(
            workload=settings.workload,
            arm=name,
            devices=settings.devices,
            collectives=settings.collectives,
            shapes=settings.shapes,
            rounds=settings.rounds,
            seed=self._seed,
            kinds=kinds,
            model=settings.model,
            graph_mode=settings.graph_mode,
            profile=f"{settings.profile}/{name}" if settings.profile else None,
            buffer_mb=settings.buffer_mb,
            deadline_seconds=seconds,
        )

    def _next(self) -> ArmName | None:
        return stop.next_arm(
            self._series(),
            configured_mode=self._settings.mode,
            soc=self._soc(),
            hcomm=self._stack().get("hcomm", UNKNOWN).value,
            arm_failures=self._failures(),
        )

    def _kinds(self, arm: ArmName) -> tuple[Kind, ...]:
        """AIV need only run what grew; AI_CPU is asked whether anything does."""
        if arm != "aiv":
            return self._settings.kinds
        grown = stop.growing_kinds(self._series())
        return tuple(
            kind for kind in self._settings.kinds if (kind.collective, kind.graphs) in grown
        )

    def _series(self) -> list[Series]:
        return [series for arm in self._arms for series in arm.series()]

    def _failures(self) -> dict[ArmName, str]:
        return {arm.name: arm.failure for arm in self._arms if arm.failure}

    def _soc(self) -> str | None:
        return next(
            (one.soc for arm in self._arms for one in arm.started.values() if one.soc), None
        )

    def _stack(self) -> Stack:
        """What is installed, by its files; where these are silent, what the loaded CANN says of itself."""
        home = self._base.get("ASCEND_HOME_PATH")
        stack = read_stack(Path(home)) if home else {}
        for arm in self._arms:
            for started in arm.started.values():
                for name, version in started.versions.items():
                    if stack.get(name, UNKNOWN).value is None:
                        stack[name] = Fact(value=version, source=VERSION_SOURCES.get(name, CANN))
        if soc := self._soc():
            stack["soc"] = Fact(value=soc, source="aclrtGetSocName")
        return stack

    def _report(self) -> Report:
        settings, stack, series = self._settings, self._stack(), self._series()
        control = [
            arm.control.get(rank) for arm in self._arms if arm.started for rank in arm.started
        ]
        judgement = verdict.judge(
            series,
            ranks=len(settings.devices),
            hcomm=stack.get("hcomm", UNKNOWN).value,
            soc=self._soc(),
            configured_mode=settings.mode,
            mode_source=settings.mode_source,
            control=control or None,
            arm_failures=self._failures(),
            copies_expected=settings.preload,
            # A vLLM has the one kind of series, as a server has.
            evidence="trace" if settings.workload == "vllm" else "probe",
            repeated_after=None if settings.preload else self._earlier(stack),
            rounds=settings.rounds,
            graphs_per_load=settings.graphs_per_load,
            collectives_per_graph=settings.collectives_per_graph,
            floor_seconds=settings.floor_seconds,
            floor_ratio=settings.floor_ratio,
        )
        seen = [copies for copies in control if copies is not None]
        notes = dict.fromkeys(note for arm in self._arms for note in arm.notes)
        reason = "; ".join([judgement.reason, *notes])
        return report_of(
            msgspec.structs.replace(judgement, reason=reason),
            emulated=self._emulated,
            mode=effective_mode(settings.mode, self._soc()),
            mode_source=settings.mode_source,
            stack=stack,
            control=min(seen) if seen else None,
            series=series,
            seed=self._seed,
        )
