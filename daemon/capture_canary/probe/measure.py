"""One probe from its first arm to its report: which arms run, when each may end, what the records come to."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from capture_canary.model import ArmName, Capture, Fact, GraphsFate, Report, Series, Stack
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.messages import Captured, Collective, Control, Kind, Record, Spec, Started
from capture_canary.probe.plan import plan
from capture_canary.probe.runner import FailureKind, run_arm
from capture_canary.stack.cann import read_stack
from capture_canary.stack.exposure import effective_mode
from capture_canary.trend import stop, verdict
from capture_canary.trend.report import report_of

COLLECTIVES: tuple[Collective, ...] = ("AllReduce", "AllGather")
FATES: tuple[GraphsFate, ...] = ("destroyed", "kept")
TWO = 2
ALL_KINDS = tuple(Kind(collective=c, graphs=g) for c in COLLECTIVES for g in FATES)
UNKNOWN = Fact(value=None, source="nothing")
MODE_OF_ARM: dict[ArmName, str] = {"aiv": "AIV", "ai_cpu": "AI_CPU"}


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe captures, and within which bounds."""

    workload: str = "acl"
    devices: tuple[int, ...] = (0, 1)
    """NPUs, one a rank, as the runtime numbers them here. HCCL's AICPU path needs two ranks or more."""
    collectives: int = 16
    """Collectives a graph: with k = 16 and one peer each capture makes 256 copies more than the one before."""
    rounds: int = 4
    shapes: tuple[int, ...] = (256, 1024, 4096)
    """Elements (fp32) of a payload: as small as in decoding, where AIV stays in force on A3."""
    kinds: tuple[Kind, ...] = ALL_KINDS
    arms: tuple[ArmName, ...] | None = None
    """Arms to run; None: `as_configured`, then the one that attributes what it shows."""
    mode: str | None = None
    """The expansion mode of `as_configured`; None: HCCL's own default."""
    mode_source: str = "default of the SoC"
    budget_seconds: float = 60.0
    """Deadline of the whole probe."""
    buffer_mb: int = 1
    """HBM of each of a communicator's two buffers, MB: HCCL's least."""
    graphs_per_load: int = 35
    """Graphs that the impact is projected to: the capture sizes of a usual vLLM start."""
    collectives_per_graph: int = 129
    """Collectives in each of those: a model of 64 layers has two a layer and one for its embedding."""
    floor_seconds: float = verdict.FLOOR_SECONDS
    floor_ratio: float = verdict.FLOOR_RATIO
    full: bool = False
    """Run every series to its end, where a verdict is known before."""


class ArmStarted(msgspec.Struct, frozen=True):
    """Progress: an arm begins."""

    arm: ArmName
    mode: str | None
    kinds: tuple[Kind, ...]
    """The series that it will have, which `Captured.series` counts."""


Observer = Callable[[ArmStarted | Record], None]


class _Arm:
    """One arm's records, put into series while they arrive."""

    def __init__(self, name: ArmName, mode: str | None, settings: ProbeSettings) -> None:
        self.name: ArmName = name
        self.mode = mode
        self.settings = settings
        self.started: dict[int, Started] = {}
        self.control: dict[int, int | None] = {}
        self.failure: str | None = None
        self._mode_seen: str | None = None
        self._captures: dict[tuple[int, int], list[Capture]] = {}

    def take(self, record: Record) -> None:
        match record:
            case Started():
                self.started[record.rank] = record
            case Control():
                self.control[record.rank] = record.copies
            case Captured():
                self._mode_seen = record.mode or self._mode_seen
                self._captures.setdefault((record.series, record.rank), []).append(record.capture)

    def series(self) -> list[Series]:
        return [
            Series(
                arm=self.name,
                mode=self._mode_seen or self.mode,
                collective=self.settings.kinds[kind].collective,
                graphs=self.settings.kinds[kind].graphs,
                collectives=self.settings.collectives,
                rank=rank,
                device=self.settings.devices[rank],
                # A ring links two peers, a mesh all; between two ranks both link one.
                peers=1 if len(self.settings.devices) == TWO else None,
                captures=captures,
            )
            for (kind, rank), captures in sorted(self._captures.items())
        ]

    def may_end(self, record: Record) -> bool:
        """Whether no further series of this arm could change the verdict; a series that grows is finished first.

        Its last captures are what the growth of time and the curves are made of, and cost milliseconds.
        """
        if self.settings.full or not isinstance(record, Captured):
            return False
        kind = self.settings.kinds[record.series]
        ranks = range(len(self.settings.devices))
        made = [len(self._captures.get((record.series, rank), ())) for rank in ranks]
        planned = plan(kind.graphs, rounds=self.settings.rounds, shapes=self.settings.shapes)
        if min(made) < len([*planned]):
            return False
        return stop.decided(
            self.series(),
            ranks=len(ranks),
            arm=self.name,
            kinds=[(k.collective, k.graphs) for k in self.settings.kinds],
        )


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
    ) -> None:
        """Prepare; `base` is the environment that names the CANN, the rest is as `run_arm` takes it."""
        self._settings = settings
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
        self._arms: list[_Arm] = []

    def run(self) -> Report:
        """Run the arms that are wanted, and judge."""
        wanted = self._settings.arms or ("as_configured",)
        for name in wanted:
            self._run_arm(name, self._settings.kinds)
        while self._settings.arms is None and not self._ended() and (arm := self._next()):
            self._run_arm(arm, self._kinds(arm))
        return self._report()

    def _run_arm(self, name: ArmName, kinds: tuple[Kind, ...]) -> None:
        mode = MODE_OF_ARM.get(name, self._settings.mode)
        arm = _Arm(name, mode, msgspec.structs.replace(self._settings, kinds=kinds))
        self._arms.append(arm)
        self._observe(ArmStarted(name, mode, kinds))

        def on_record(record: Record) -> bool:
            arm.take(record)
            self._observe(record)
            return not arm.may_end(record)

        left = self._deadline - time.monotonic()
        if left <= 0:
            arm.failure = f"the probe's {self._settings.budget_seconds:g} s were used up"
            return
        run = run_arm(
            self._spec(name, kinds, left),
            self._base,
            mode=mode,
            on_record=on_record,
            cancel=self._cancel,
            inherit=self._inherit,
        )
        arm.failure = run.failure
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
            kinds=kinds,
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
                        stack[name] = Fact(value=version, source="aclsysGetVersionStr")
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
            graphs_per_load=settings.graphs_per_load,
            collectives_per_graph=settings.collectives_per_graph,
            floor_seconds=settings.floor_seconds,
            floor_ratio=settings.floor_ratio,
        )
        seen = [copies for copies in control if copies is not None]
        return report_of(
            judgement,
            emulated=self._emulated,
            mode=effective_mode(settings.mode, self._soc()),
            mode_source=settings.mode_source,
            stack=stack,
            control=min(seen) if seen else None,
            series=series,
        )
