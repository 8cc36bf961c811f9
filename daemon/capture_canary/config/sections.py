"""The other sections of the settings: each key with its type, default, bounds and why it exists."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from capture_canary.config import checks
from capture_canary.config.about import about, default
from capture_canary.config.units import Duration, Size

Policy = Literal["idle-only", "prefer-idle"]


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
