"""All that `doctor` finds, as one object: what is shown on the screen and printed as JSON."""

import os
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from capture_canary import __version__
from capture_canary.config.model import Config
from capture_canary.gate.collect import holders_of, look_at_npus
from capture_canary.gate.collect import look as gate_look
from capture_canary.gate.decide import decide
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.gate.model import Decision, Place, Snapshot
from capture_canary.lock import holder_pid
from capture_canary.service.settings import configured_mode, exporter_of, gate_rules, helpers
from capture_canary.stack import npu_smi
from capture_canary.stack.exposure import family
from capture_canary.stack.identity import stack_id
from capture_canary.stack.node import Node, Places, look_at_node
from capture_canary.stack.npus import Npus, NpusUnknownError
from capture_canary.stack.processes import Finder, traced
from capture_canary.stack.servers import Server, outlook
from capture_canary.trace.folder import TraceFolder
from capture_canary.trend.advice import Serving, for_server
from capture_canary.trend.texts import LANGUAGES, Language


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What would be said of one server, nothing measured yet."""

    pid: int
    outlook: str
    reason: str
    advice: dict[Language, str]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the node by `doctor`."""

    schema_version: int = 1
    version: str
    emulated: bool
    place: Place
    stack_id: str
    node: Node
    expected: tuple[Expected, ...]
    gate: Decision
    """Whether a probe may run now."""
    probe_mode: str | None
    """The mode that a probe would measure as configured."""
    probe_mode_source: str
    unseen: tuple[str, ...]
    """What could not be seen, each with what would show it."""


def find(
    config: Config,
    base: Mapping[str, str],
    *,
    places: Places = Places(),  # noqa: B008  # immutable
) -> Findings:
    """Look at the node once.

    Args:
        config: the settings; `servers.inspect` is taken as given by whoever typed the command.
        base: the environment that names the CANN to use.
        places: where to look.
    """
    smi = npu_smi.NpuSmi(npu_smi.command(base), env=base)
    shown = _Once(smi.read, exporter_of(config))
    folder = TraceFolder(config.trace_dir)
    folder.poll()
    facts = traced(one.file.facts for one in folder.processes.values())
    finder = Finder(places.proc, inspect=True)
    node = look_at_node(
        base, shown.read, finder, helpers(config, base), places=places, traces=facts
    )
    folder.close()
    snapshot = gate_look(
        _known(config, node),
        gate_rules(config),
        shown.read,
        holders=lambda _: holders_of(finder.opened, places.proc),
    )
    if snapshot.emulated:  # how busy this host is says nothing of a node that is not there
        snapshot = msgspec.structs.replace(snapshot, load=None)
    mode, source = configured_mode(config, base, node.servers.servers)
    return Findings(
        version=__version__,
        emulated=config.emulate is not None,
        place=snapshot.place,
        stack_id=stack_id(node.stack),
        node=node,
        expected=tuple(expected(one, node.soc) for one in node.servers.servers if one.captures),
        gate=decide(gate_rules(config), snapshot),
        probe_mode=mode,
        probe_mode_source=source,
        unseen=_unseen(node, config),
    )


def expected(server: Server, soc: str | None) -> Expected:
    """Return what would be said of a server."""
    name, reason = outlook(server)
    flaws = " ".join(server.mode.doubts)
    serving = Serving(
        who=who(server),
        expected=name,
        reason=reason,
        hcomm=server.stack["hcomm"].value if "hcomm" in server.stack else None,
        soc=family(soc) or soc,
        mode=server.mode.in_force,
        deterministic="HCCL_DETERMINISTIC" in flaws,
        several_communicators=server.several_communicators,
    )
    return Expected(
        pid=server.pid,
        outlook=name,
        reason=reason,
        advice={language: for_server(serving, None, language) for language in LANGUAGES},
    )


def who(server: Server) -> str:
    """Return a server's process as one names it."""
    pod = f", pod {server.pod.name}" if server.pod and server.pod.name else ""
    engine = "" if server.engine == "unknown" else f"{server.engine} "
    return f"{engine}{server.role} (pid {server.pid}{pod})"


class _Once:
    """What npu-smi shows, with npu-exporter's counts where configured; asked for once: it may take seconds."""

    def __init__(
        self, npu_smi_: Callable[[], Npus], exporter: Callable[[], Npus] | None = None
    ) -> None:
        self._look = partial(look_at_npus, npu_smi_, exporter)
        self._answer: tuple[Npus | None, str, str | None] | None = None

    def read(self) -> Npus:
        if self._answer is None:
            self._answer = self._look()
        npus, why, _ = self._answer
        if npus is None:
            raise NpusUnknownError(why)
        return npus


def _known(config: Config, node: Node) -> Snapshot:
    """What the gate takes from elsewhere, as far as a command knows it beside a daemon."""
    pid = holder_pid(config.lock_file)
    stack = node.stack
    return Snapshot(
        emulated=config.emulate is not None,
        paused="paused in the configuration" if config.paused else None,
        latched=Latch(LatchFile(config.state_dir / "probe-latch.json")).why(),
        locked=f"a probe of pid {pid}" if pid else None,
        cann=stack["cann"].value,
        driver=stack["driver"].value if "driver" in stack else None,
        soc=family(node.soc),
    )


def _unseen(node: Node, config: Config) -> tuple[str, ...]:
    unseen = list(node.servers.unseen)
    if node.npus is None:
        unseen.append(
            f"NPUs and SoC: {node.npus_error}; mount npu-smi and the driver's libraries (docs/permissions.md)"
        )
    if not node.nodes and config.emulate is None:
        unseen.append("device nodes: there is no /dev/davinciN here")
    if not os.access(config.trace_dir, os.R_OK | os.X_OK):
        unseen.append(
            f"traces: {config.trace_dir} cannot be read; mount it, and start servers by `capture-canary exec`"
        )
    return tuple(unseen)
