"""The sections of the settings: each key with its type, default, bounds and why it exists."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from capture_canary.config import checks
from capture_canary.config.units import Duration, Size

Policy = Literal["idle-only", "prefer-idle"]
ExpansionMode = Literal[
    "HOST", "HOST_TS", "AI_CPU", "AICPU_CacheDisable", "AICPU_TS", "AIV", "CCU_MS", "CCU_SCHED"
]


def about(
    why: str,
    *,
    least: str | None = None,
    most: str | None = None,
    check: Callable[[str], None] | None = None,
    expects: str | None = None,
    restart: bool = False,
    **bounds: Any,
) -> msgspec.Meta:
    """Describe a key: `least` and `most` bound a duration or size, `bounds` are msgspec's own."""
    extra = {"least": least, "most": most, "check": check, "expects": expects, "restart": restart}
    return msgspec.Meta(description=why, extra=extra, **bounds)


def default(parse: Callable[[str], Any], text: str) -> Any:
    """Give a field a default, as text: the model shows it as a file would have it."""
    return msgspec.field(default_factory=partial(parse, text))


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


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be true before a probe may open an NPU."""

    policy: Annotated[
        Policy,
        about(
            "`idle-only` probes while the host is idle. `prefer-idle` accepts the busier a host the older the last "
            "probe is. Neither ever probes on a chip that a process holds."
        ),
    ] = "idle-only"
    patience: Annotated[
        Duration,
        about(
            "Age of the last probe from which `prefer-idle` probes on any host.",
            least="1m",
            most="90d",
        ),
    ] = default(Duration.parse, "24h")
    retry: Annotated[
        Duration,
        about("Time until a probe that the gate refused is tried again.", least="10s", most="1d"),
    ] = default(Duration.parse, "5m")
    budget: Annotated[
        Duration,
        about(
            "Device-seconds (NPUs times time) that probes may take in 24 hours; what they cost stays known.",
            most="7d",
        ),
    ] = default(Duration.parse, "30m")
    reserve_hbm: Annotated[
        Size,
        about("HBM that must stay free on each NPU beyond what the probe takes.", most="1TiB"),
    ] = default(Size.parse, "2GiB")
    idle_hbm: Annotated[
        Size,
        about(
            "HBM in use up to which an NPU without processes counts as idle: CANN itself holds about 3 GB.",
            most="1TiB",
        ),
    ] = default(Size.parse, "4GiB")
    reserve_streams: Annotated[
        int,
        about(
            "Streams that must stay free on each NPU. All processes share about 2,000; servers capture with them.",
            ge=0,
            le=2048,
        ),
    ] = 128
    assume_exclusive: Annotated[
        bool,
        about(
            "NPUs are handed to one container only: probe quiet ones where not every process can be seen."
        ),
    ] = False
    any_driver: Annotated[
        bool,
        about("Probe even where the vendor's table says that CANN and driver do not go together."),
    ] = False
    npu_exporter: Annotated[
        str | None,
        about(
            "URL of npu-exporter's metrics: it counts processes that a container's `npu-smi` does not show.",
            check=checks.url,
            expects="an http or https URL",
        ),
    ] = None
    npu_exporter_max_age: Annotated[
        Duration,
        about("Metrics older than this say nothing.", least="1s", most="1h"),
    ] = default(Duration.parse, "30s")
    settle: Annotated[
        Duration,
        about(
            "Time after a probe until processes and HBM must be as before; else probing is latched off on this node.",
            least="1s",
            most="10m",
        ),
    ] = default(Duration.parse, "30s")
    device_errors: Annotated[
        int,
        about("Device errors in a row that latch probing off.", ge=1, le=100),
    ] = 2


class Servers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be read to know which stack and expansion mode this node's servers have; each is an opt-in."""

    interval: Annotated[
        Duration,
        about(
            "Time from one look at the node's processes to the next.",
            least="5s",
            most="1d",
            restart=True,
        ),
    ] = default(Duration.parse, "1m")
    inspect: Annotated[
        bool,
        about(
            "Read the installed versions and a few named variables of other processes through /proc. In a container "
            "that takes hostPID and CAP_SYS_PTRACE.",
            restart=True,
        ),
    ] = False
    docker_socket: Annotated[
        Path | None,
        about(
            "Ask the Docker Engine for the variables of a container whose processes do not tell, e.g. "
            "/var/run/docker.sock. Whoever may write to that socket owns the host.",
            restart=True,
        ),
    ] = None
    kubernetes: Annotated[
        bool,
        about(
            "Ask the Kubernetes API for this node's pods: names, and variables that pod specs spell out. Takes `list` "
            "on pods and the variable NODE_NAME.",
            restart=True,
        ),
    ] = False
    kubelet_socket: Annotated[
        Path | None,
        about(
            "Ask the kubelet which pod has which NPU, e.g. /var/lib/kubelet/pod-resources/kubelet.sock.",
            restart=True,
        ),
    ] = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a measured growth starts to matter."""

    floor_seconds: Annotated[
        Duration,
        about("Time per capture up to which growth of time is none.", most="1h"),
    ] = default(Duration.parse, "1ms")
    floor_ratio: Annotated[
        float,
        about(
            "The same as a share of what a capture takes; the greater of the two holds. Copies need no floor: they "
            "are counted.",
            ge=0.0,
            le=1.0,
        ),
    ] = 0.01
    graphs_per_load: Annotated[
        int,
        about("Graphs that a server's load captures, where no server has told.", ge=1, le=100_000),
    ] = 35
    collectives_per_graph: Annotated[
        int,
        about(
            "Collectives in each of those graphs, where no server has told: a model of 64 layers has 129. The growth "
            "goes with its square.",
            ge=1,
            le=100_000,
        ),
    ] = 129


class History(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much is remembered."""

    max_age: Annotated[
        Duration,
        about("Probes, skips and changes older than this are forgotten.", least="1d", most="3650d"),
    ] = default(Duration.parse, "90d")
    max_size: Annotated[
        Size,
        about(
            "Size of the history above which its oldest entries go first.",
            least="1MiB",
            most="10GiB",
        ),
    ] = default(Size.parse, "64MiB")


class Web(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pages and metrics, and what a client may take of them."""

    config_file: Annotated[
        Path | None,
        about("Web config file as other exporters have it: TLS and basic auth.", restart=True),
    ] = None
    max_connections: Annotated[
        int,
        about(
            "Connections at once; for a further one the one that idles longest is closed.",
            ge=1,
            le=10_000,
            restart=True,
        ),
    ] = 64
    max_header: Annotated[
        Size, about("Size of a request's header.", least="1KiB", most="1MiB", restart=True)
    ] = default(Size.parse, "16KiB")
    request_timeout: Annotated[
        Duration,
        about(
            "Time for a request and its answer, so that slow clients hold nothing.",
            least="1s",
            most="5m",
            restart=True,
        ),
    ] = default(Duration.parse, "10s")
    idle_timeout: Annotated[
        Duration,
        about("Time that an idle connection is kept.", least="1s", most="1h", restart=True),
    ] = default(Duration.parse, "75s")
    textfile: Annotated[
        Path | None,
        about(
            "Also write the metrics to this file, for node_exporter's textfile collector (its name ends in .prom)."
        ),
    ] = None
