"""What a probe captures, and within which bounds."""

import sys

import msgspec

from capture_canary.model import ArmName, GraphsFate
from capture_canary.probe.messages import Collective, Kind
from capture_canary.probe.vllm import tiny
from capture_canary.trend import verdict

COLLECTIVES: tuple[Collective, ...] = ("AllReduce", "AllGather")
FATES: tuple[GraphsFate, ...] = ("destroyed", "kept")
ALL_KINDS = tuple(Kind(collective=c, graphs=g) for c in COLLECTIVES for g in FATES)


class ProbeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe captures, and within which bounds."""

    workload: str = "acl"
    python: str = sys.executable
    """The interpreter of the ranks: that of a serving image or of an environment, for what it has installed."""
    model: str | None = None
    """Folder of the model that vLLM captures; None: a tiny one, whose layers `collectives` tells."""
    graph_mode: str | None = None
    """What vLLM captures, its cudagraph_mode; None: the one of the largest graphs that its version has."""
    profile: str | None = None
    """Folder for profiles of rank 0 by torch-npu's profiler, one an arm; None: none are made."""
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
    preload: bool = True
    """Count copies, by a tracer preloaded into the ranks. Without, time decides: more rounds, destroyed graphs only."""
    seed: int | None = None
    """Of the order of shapes within rounds; None: a new one."""


TIME_ROUNDS = 120
"""Rounds of a series that time alone is to decide, at least; it ends as soon as it is decided."""


def by_time(settings: ProbeSettings) -> ProbeSettings:
    """Return the settings of a probe that counts no copies: kept graphs are too few for a verdict by time."""
    kinds = tuple(kind for kind in settings.kinds if kind.graphs == "destroyed") or settings.kinds
    return msgspec.structs.replace(settings, kinds=kinds, rounds=max(settings.rounds, TIME_ROUNDS))


VLLM_AT_START = (Kind(collective="AllReduce", graphs="kept"),)
"""The series of a vLLM that is not told to capture again: the graphs of its start, all of which it keeps."""
VLLM_KINDS = (Kind(collective="AllReduce", graphs="destroyed"), *VLLM_AT_START)
"""Its graphs, forgotten and captured again; else those of its start."""
VLLM_SIZES = (1, 2, 4, 8)


def of_vllm(
    settings: ProbeSettings,
    *,
    layers: int,
    model: str | None = None,
    graph_mode: str | None = None,
    at_start: bool = False,
) -> ProbeSettings:
    """Return settings for the workload `vllm` in place of those that only a probe's own graphs have.

    `at_start`: as many sizes, each once, in place of rounds of a few; vLLM captures them when it starts.
    """
    sizes = tuple(range(1, settings.rounds * len(VLLM_SIZES) + 1)) if at_start else VLLM_SIZES
    return msgspec.structs.replace(
        settings,
        model=model,
        graph_mode=graph_mode,
        collectives=tiny.collectives(layers),
        rounds=1 if at_start else settings.rounds,
        shapes=sizes,
        kinds=VLLM_AT_START if at_start else VLLM_KINDS,
    )
