"""The settings: one typed model of the configuration.

docs/configuration.md, docs/config.schema.json and the names of environment variables are made from it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from capture_canary.config import checks
from capture_canary.config.about import about, default
from capture_canary.config.probing import Probe
from capture_canary.config.sections import Gate, History, Servers, Verdict, Web

Mode = Literal["observe", "probe", "job"]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of Capture Canary."""

    mode: Annotated[
        Mode,
        about(
            "`observe` opens no NPU: traces, logs and the installed stack only. `probe` also captures on NPUs that are "
            "given to its container. `job` asks the scheduler for NPUs for the length of a probe."
        ),
    ] = "observe"
    unmanaged: Annotated[
        bool,
        about(
            "Bare metal: no scheduler hands out NPUs, so every NPU of the node may be probed once the gate agrees."
        ),
    ] = False
    paused: Annotated[
        bool, about("No probe starts; everything else goes on. One ConfigMap pauses a fleet.")
    ] = False
    listen: Annotated[
        str,
        about(
            "Address of pages and metrics; without a host all addresses.",
            check=checks.listen,
            expects="HOST:PORT or :PORT",
            restart=True,
        ),
    ] = ":9877"
    state_dir: Annotated[
        Path,
        about("Folder of what must outlive a restart: history, schedule, latches.", restart=True),
    ] = default(Path, "/var/lib/capture-canary")
    trace_dir: Annotated[
        Path,
        about(
            "Folder in which tracers write and which the daemon reads. Tracers read the same variable.",
            restart=True,
        ),
    ] = default(Path, "/run/capture-canary/traces")
    lock_file: Annotated[
        Path,
        about(
            "One probe at a time holds this; share it between all containers of a node.",
            restart=True,
        ),
    ] = default(Path, "/run/capture-canary/probe.lock")
    logs: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=4096)], ...],
        about(
            "Globs of vLLM servers' log files. What they tell is a suspicion, never a verdict.",
            max_length=64,
        ),
    ] = ()
    probe: Annotated[Probe, about("What a probe does, and when.")] = msgspec.field(
        default_factory=Probe
    )
    gate: Annotated[Gate, about("What must be true before a probe may open an NPU.")] = (
        msgspec.field(default_factory=Gate)
    )
    servers: Annotated[Servers, about("What may be read of this node's servers.")] = msgspec.field(
        default_factory=Servers
    )
    verdict: Annotated[Verdict, about("Where a measured growth starts to matter.")] = msgspec.field(
        default_factory=Verdict
    )
    history: Annotated[History, about("How much is remembered.")] = msgspec.field(
        default_factory=History
    )
    web: Annotated[Web, about("Pages and metrics, and what a client may take of them.")] = (
        msgspec.field(default_factory=Web)
    )
    emulate: Annotated[
        str | None,
        about(
            "Run on an emulated CANN, `key=value,…`: cann, hcomm, soc, npus, hbm, peers, scratch, roce. Whatever it "
            "prints, shows or exports says so.",
            check=checks.emulate,
            expects="key=value,… such as cann=8.5.0,soc=a3",
            restart=True,
        ),
    ] = None


def conflicts(config: Config) -> Iterator[tuple[str, str]]:
    """Yield key and message of each setting that another one contradicts."""
    probe = config.probe
    if probe.cron is None and probe.deadline > probe.interval / 2:
        yield (
            "probe.deadline",
            f"{probe.deadline} is more than half of probe.interval ({probe.interval})",
        )
    if probe.cron is None and probe.jitter > probe.interval:
        yield "probe.jitter", f"{probe.jitter} is more than probe.interval ({probe.interval})"
    if probe.devices and len(probe.devices) < probe.ranks:
        yield "probe.devices", f"names fewer NPUs than probe.ranks ({probe.ranks}) needs"
    if config.gate.budget < probe.ranks * probe.deadline:
        yield (
            "gate.budget",
            f"{config.gate.budget} does not allow one probe (probe.ranks times probe.deadline)",
        )
    if config.web.textfile is not None and config.web.textfile.suffix != ".prom":
        yield "web.textfile", "must end in .prom: node_exporter reads no other"
