"""The section `probe` of the settings: what a probe does, and when."""

from typing import Annotated, Literal

import msgspec

from capture_canary.config import checks
from capture_canary.config.about import about, default
from capture_canary.config.units import Duration

ExpansionMode = Literal[
    "HOST", "HOST_TS", "AI_CPU", "AICPU_CacheDisable", "AICPU_TS", "AIV", "CCU_MS", "CCU_SCHED"
]


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a probe does, and when."""

    interval: Annotated[
        Duration,
        about(
            "Time from one scheduled probe to the next. Growth is a property of the installed stack, which changes on "
            "upgrades: a few probes a day find it.",
            least="1s",
            most="30d",
        ),
    ] = default(Duration.parse, "6h")
    cron: Annotated[
        str | None,
        about(
            "Probe at these times (UTC) instead of every `interval`: minute, hour, day of month, month, weekday by "
            "name, such as `30 3 * * mon-fri`.",
            check=checks.cron,
            expects="a cron line of five fields",
        ),
    ] = None
    jitter: Annotated[
        Duration,
        about(
            "Each node probes later by a share of this that its name decides, so that a fleet spreads out and a "
            "restart changes nothing.",
            most="7d",
        ),
    ] = default(Duration.parse, "10m")
    deadline: Annotated[
        Duration,
        about(
            "A probe that has no verdict by then is ended and its NPUs are released.",
            least="1s",
            most="1h",
        ),
    ] = default(Duration.parse, "2m")
    workload: Annotated[
        Literal["acl", "torch", "vllm"],
        about(
            "Who captures: `acl` needs CANN alone, `torch` torch-npu, `vllm` a vLLM server's image."
        ),
    ] = "acl"
    ranks: Annotated[
        int,
        about(
            "NPUs that a probe takes, one rank each. One rank never takes the path that grows.",
            ge=2,
            le=64,
        ),
    ] = 2
    devices: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=0, le=1023)], ...],
        about(
            "Numbers of the NPUs to probe on (N of /dev/davinciN); none: any of those that are ours.",
            max_length=64,
        ),
    ] = ()
    collectives: Annotated[
        int,
        about(
            "Collectives in each captured graph. Copies grow with its square: 16 show growth in three captures.",
            ge=1,
            le=256,
        ),
    ] = 16
    kinds: Annotated[
        tuple[Literal["AllReduce", "AllGather"], ...],
        about(
            "Collectives to capture. A stack with half of the fix grows in AllGather alone.",
            min_length=1,
            max_length=2,
        ),
    ] = ("AllReduce", "AllGather")
    graphs: Annotated[
        tuple[Literal["kept", "destroyed"], ...],
        about(
            "What happens to a graph before the next capture. A stack with half of the fix grows with graphs kept.",
            min_length=1,
            max_length=2,
        ),
    ] = ("destroyed", "kept")
    rounds: Annotated[
        int,
        about(
            "How often a series captures all of `shapes`, at most; it ends as soon as it knows.",
            ge=1,
            le=1000,
        ),
    ] = 4
    shapes: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=1, le=1 << 24)], ...],
        about(
            "Elements (fp32) of a collective's payload, one graph each. Small as a decode step's: large ones leave "
            "AIV on A3. At most six, as HCCL allows six graphs at once on an NPU.",
            min_length=1,
            max_length=6,
        ),
    ] = (256, 1024, 4096)
    expansion_mode: Annotated[
        ExpansionMode | None,
        about(
            "HCCL_OP_EXPANSION_MODE of the arm `as_configured` where the node's servers do not tell theirs; null: "
            "the daemon's environment.",
        ),
    ] = None
    preload: Annotated[
        bool,
        about(
            "Count copies, by a tracer preloaded into the probe's own processes. Without, time alone decides: more "
            "captures, and `degraded` only once two probes an hour apart agree.",
        ),
    ] = True
    attribute: Annotated[
        bool,
        about(
            "When copies grow, run again with AIV to tell the cause. Turn off where AIV hangs; growth is then told "
            "from the law alone."
        ),
    ] = True
