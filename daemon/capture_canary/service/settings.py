"""From the configuration to the settings of the parts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capture_canary.config.model import Config
from capture_canary.gate.model import Rules
from capture_canary.schedule import Plan, plan_for
from capture_canary.stack.exposure import mitigates
from capture_canary.stack.helpers import Helpers
from capture_canary.stack.servers import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from capture_canary.probe.measure import ProbeSettings
    from capture_canary.stack.npus import Npus

MB = 1 << 20


def gate_rules(config: Config) -> Rules:
    """Return the gate's rules."""
    gate, probe = config.gate, config.probe
    return Rules(
        devices=probe.ranks,
        only=probe.devices,
        unmanaged=config.unmanaged,
        assume_exclusive=gate.assume_exclusive,
        any_driver=gate.any_driver,
        policy=gate.policy,
        patience=float(gate.patience),
        budget=float(gate.budget),
        probe_device_seconds=float(probe.deadline) * probe.ranks,
        reserve_hbm_mb=int(gate.reserve_hbm) // MB,
        idle_hbm_mb=int(gate.idle_hbm) // MB,
        reserve_streams=gate.reserve_streams,
    )


def probe_settings(
    config: Config,
    devices: tuple[int, ...],
    environ: Mapping[str, str],
    servers: tuple[Server, ...] = (),
) -> "ProbeSettings":
    """Return what to probe, on these NPUs (numbered as the runtime sees them in this container)."""
    from capture_canary.probe.measure import ProbeSettings  # noqa: PLC0415  # `doctor` starts without it
    from capture_canary.probe.messages import Kind  # noqa: PLC0415  # the same
    from capture_canary.probe.settings import of_vllm  # noqa: PLC0415  # the same
    from capture_canary.probe.vllm import tiny  # noqa: PLC0415  # the same

    probe = config.probe
    mode, source = configured_mode(config, environ, servers)
    settings = ProbeSettings(
        workload=probe.workload,
        devices=devices,
        collectives=probe.collectives,
        rounds=probe.rounds,
        shapes=probe.shapes,
        kinds=tuple(Kind(collective=c, graphs=g) for c in probe.kinds for g in probe.graphs),
        mode=mode,
        mode_source=source,
        budget_seconds=float(probe.deadline),
        graphs_per_load=config.verdict.graphs_per_load,
        collectives_per_graph=config.verdict.collectives_per_graph,
        floor_seconds=float(config.verdict.floor_seconds),
        floor_ratio=config.verdict.floor_ratio,
        arms=None if probe.attribute else ("as_configured",),
        preload=probe.preload,
    )
    if probe.workload != "vllm":
        return settings
    layers = tiny.EMULATED_LAYERS if config.emulate is not None else tiny.LAYERS
    return of_vllm(settings, layers=layers)


def configured_mode(
    config: Config, environ: Mapping[str, str], servers: tuple[Server, ...] = ()
) -> tuple[str | None, str]:
    """Return the expansion mode that a probe measures, and who said so: the node's servers, if they tell."""
    told = [one.mode for one in servers if one.speaks and one.mode.source != "unknown"]
    if told:
        # Of several modes the one that is least safe: a probe is to find what may be wrong.
        worst = min(told, key=lambda mode: (mitigates(mode.in_force), mode.in_force or ""))
        several = " (of several modes)" if len({mode.in_force for mode in told}) > 1 else ""
        return worst.set_to, f"servers: {worst.source}{several}"
    if config.probe.expansion_mode:
        return config.probe.expansion_mode, "probe.expansion_mode"
    if mode := environ.get("HCCL_OP_EXPANSION_MODE"):
        return mode, "HCCL_OP_EXPANSION_MODE"
    return None, "default of the SoC"


def helpers(config: Config, environ: Mapping[str, str]) -> Helpers:
    """Return whom the settings allow to be asked about servers."""
    servers = config.servers
    return Helpers(
        docker=servers.docker_socket,
        kubelet=servers.kubelet_socket,
        node=environ.get("NODE_NAME", "") if servers.kubernetes else None,
    )


def exporter_of(config: Config) -> "Callable[[], Npus] | None":
    """Return what reads npu-exporter's page, where one is configured."""
    if config.gate.npu_exporter is None:
        return None
    from capture_canary.stack.npu_exporter import NpuExporter  # noqa: PLC0415  # brings HTTP, TLS and a parser

    return NpuExporter(
        config.gate.npu_exporter, max_age=float(config.gate.npu_exporter_max_age)
    ).read


def probes(config: Config) -> bool:
    """Whether probes are made at all, here or in Jobs; an emulated daemon does without being told."""
    return config.mode != "observe" or config.emulate is not None


def runtime_numbers(devices: tuple[int, ...], visible: frozenset[int]) -> tuple[int, ...]:
    """Return the runtime's numbers of /dev/davinciN: it counts those that the container sees, from 0.

    An emulated node has no device nodes; its chips keep their numbers.
    """
    order = sorted(visible) if visible else range(max(devices) + 1)
    return tuple(order.index(device) for device in devices)


def plan_of(config: Config, node: str) -> Plan:
    """Return when this node probes."""
    probe = config.probe
    return plan_for(
        interval=float(probe.interval), cron=probe.cron, jitter=float(probe.jitter), node=node
    )
