"""The nouns: what a capture, a series, a growth, a stack and a verdict are.

Everything that crosses a process border (worker to runner, `probe --json`, history) is made of these.
Field names are a contract: docs/probe.schema.json is generated from them.
"""

from typing import Literal

import msgspec

ArmName = Literal["as_configured", "aiv", "ai_cpu"]
"""How the expansion mode of a series was set."""

GraphsFate = Literal["kept", "destroyed"]
"""What happens to a captured graph before the next capture of its series."""

Outcome = Literal["ok", "failed"]
VerdictName = Literal["healthy", "degraded", "mitigated", "unknown"]
Cause = Literal[
    "aicpu_resource_list",
    "mode_not_effective",
    "regression",
    "copies_unattributed",
    "other",
    "time_only",
    "suspect",
    "tracer_blind",
]
Evidence = Literal["probe", "trace", "log"]
TimeDecision = Literal["grows", "flat", "open", "unfit"]
"""Of time alone: above the floor, not above it, undecided, or not to be judged."""


class Capture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """One graph captured: what it cost and what was copied to the device while it was active."""

    order: int
    """Position in its series, from 1. Capture 1 carries set-up: reported, never judged."""
    round: int
    """How often the series had gone through its shapes before, from 0."""
    shape: int
    """Elements of each collective's payload (probe), or the batch size of the graph (vLLM)."""
    begin_ns: int
    """CLOCK_MONOTONIC at the begin of the capture, ns."""
    seconds: float
    """From the begin of the capture to its end, s."""
    h2d_copies: int | None
    """Synchronous host-to-device copies while it was active; None where they were not counted."""
    h2d_bytes: int | None
    """Bytes of those copies."""
    copy_seconds: float | None
    """Time spent inside those copies, s."""
    collectives: dict[str, int] = {}
    """Collectives captured by kind, e.g. {"AllReduce": 16}; their sum is the k of the growth law."""
    outcome: Outcome = "ok"
    ambiguous: bool = False
    """Other captures of the process overlapped and the copies could not be told apart."""
    control_seconds: float | None = None
    """Time of a control capture made just before, of as many nodes without a collective, s; None without one."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The captures of one rank in order, on one communicator, under one arm, of one kind."""

    arm: ArmName
    mode: str | None
    """The expansion mode in force, as HCCL spells it; None where nobody knows."""
    collective: str
    """Kind of the collectives, as HCCL names it: "AllReduce", "AllGather"; "mixed" for a server's."""
    graphs: GraphsFate
    collectives: int | None
    """Collectives a graph (k); None where graphs differ or were not counted."""
    rank: int
    device: int
    peers: int | None
    """Peers that the collective links (P of the growth law); None where not known."""
    captures: list[Capture]


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A growth per capture with its bounds."""

    estimate: float
    lower: float
    upper: float
    n: int
    """Captures judged."""
    method: str
    """How it was found, e.g. "integer-steps" or "theil-sen"."""


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How much more a further capture costs, of the worst series."""

    copies: Estimate | None
    """H2D copies per capture."""
    seconds: Estimate | None
    """Seconds per capture."""
    series: int | None
    """Index of the worst series in the report."""


class Impact(msgspec.Struct, frozen=True, kw_only=True):
    """What the growth adds to one load of a server."""

    seconds_per_load: float | None
    graphs: int
    """Graphs that the load is assumed to capture."""
    collectives: int | None = None
    """Collectives that each of them is assumed to have; None: as many as the measured ones."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the file, call or package that said so."""

    value: str | None
    source: str


Stack = dict[str, Fact]
"""What runs here, by name: cann, hcomm, hccl, runtime, driver, soc, torch_npu, vllm, …"""


class ShapeGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """How much longer a further capture takes graphs of one shape, with a 95 % interval for this shape alone."""

    shape: int
    estimate: float
    """Seconds per capture of the series, relative to the controls."""
    lower: float
    upper: float
    n: int
    """Captures that took part."""


class TimeTest(msgspec.Struct, frozen=True, kw_only=True):
    """What a series' times say, and what that rests on (docs/statistics.md)."""

    decision: TimeDecision
    reason: str
    series: int
    """Index in the report."""
    statistic: float
    """Logarithm of the evidence for growth above the floor."""
    bound: float
    """Statistic from which growth is believed: log(1/alpha)."""
    n: int
    """Captures that took part."""
    units: int
    """Values judged: rounds, or as many as make three captures."""
    dropped: int
    """Captures after warm-up that could not be used."""
    alpha: float
    """This series' share of the verdict's chance to call noise a growth."""
    beta: float
    """Chance to call a growth worth finding none."""
    alpha_empirical: float
    """Upper bound (95 %) of false alarms a series that our own corpus of noise proves."""
    floor: float
    """Growth, s per capture, up to which there is none to speak of."""
    noise: float | None
    """Deviation of one capture's time, s."""
    autocorrelation: float | None
    """Of a unit with the next."""
    paired: bool
    """Control captures were made; without, time alone never convicts."""
    growth: Estimate | None
    """Seconds per capture, relative to the controls, with a 95 % interval: all shapes pooled."""
    shapes: list[ShapeGrowth] = []
    """The same shape by shape, the smallest first, of those captured often enough."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with what it rests on."""

    verdict: VerdictName
    cause: Cause | None
    reason: str
    """One sentence an operator can act on."""
    impact: Impact | None
    matches_law: bool | None
    growth: Growth
    time: TimeTest | None = None
    """What time alone says, of the series that says most."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One probe: the object that `probe --json` prints."""

    schema_version: int = 1
    emulated: bool
    verdict: VerdictName
    cause: Cause | None
    reason: str
    impact: Impact | None
    mode: str | None
    mode_source: str
    matches_law: bool | None
    growth: Growth
    stack: Stack
    control: int | None
    """Copies that the eager positive control made; None where it did not run."""
    series: list[Series]
    time: TimeTest | None = None
    """What time alone says, of the series that says most."""
    seed: int | None = None
    """Seed of the order of sizes within rounds; None where they came in the order given."""
