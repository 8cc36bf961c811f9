"""What the API answers: types from which its OpenAPI document is made."""

from collections.abc import Mapping

import msgspec

from capture_canary.export.source import Source, Standing, standings
from capture_canary.gate.model import Decision
from capture_canary.model import Cause, Evidence, Judgement, Stack, VerdictName
from capture_canary.stack.servers import Outlook, Server, outlook
from capture_canary.store import Change, Probe, Skip
from capture_canary.trend.explain import SeriesFacts, Step, series_facts, steps


class ServerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A process that serves on this node and captures graphs."""

    pid: int
    engine: str
    role: str
    pod: str | None
    npus: tuple[int, ...]
    mode: str | None
    """The expansion mode in force."""
    mode_source: str
    versions: Stack
    outlook: Outlook
    """What one expects of its captures before anything is measured."""
    reason: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """This node at a glance."""

    version: str
    emulated: bool
    """True: no word of this is about real hardware."""
    node: str
    mode: str
    verdict: VerdictName
    """The worst in force."""
    standings: list[Standing]
    """By kind of evidence, the worst first."""
    stack: Stack
    """What runs here now."""
    paused: bool
    latched: str | None
    """Why probing is latched off here."""
    history_problem: str | None
    """Why the history is only in memory."""
    config_ok: bool
    running_since: float | None
    next_probe: float | None
    last_run: float | None
    last_success: float | None
    logs: Mapping[str, Judgement]
    """What each followed log file says."""
    servers: list[ServerSeen]
    about_servers: bool | None
    """Whether what our probes find holds for them; null where nobody knows."""


class Probes(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first, without their series."""

    probes: list[Probe]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of the verdict, newest first."""

    changes: list[Change]


class Skips(msgspec.Struct, frozen=True, kw_only=True):
    """Probes that were due and not made, newest first."""

    skips: list[Skip]


class GateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's last answer to whether a probe may run."""

    decided_at: float | None
    decision: Decision | None
    """None: it was not asked yet."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How a verdict came about."""

    evidence: Evidence
    verdict: VerdictName
    cause: Cause | None
    reason: str
    rows: list[Step]
    """Of the table of docs/verdict.md; empty where the report does not keep enough to ask them again."""
    series: list[SeriesFacts]


class Explanations(msgspec.Struct, frozen=True, kw_only=True):
    """Every decision of gate and verdict."""

    gate: GateAnswer
    explanations: list[Explanation]
    """By kind of evidence."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    error: str


def status(source: Source) -> Status:
    """Return this node at a glance."""
    view = source.view()
    state = view.state
    found = standings(view, source.store.present())
    return Status(
        version=state.version,
        emulated=state.emulated,
        node=source.node,
        mode=view.mode,
        verdict=found[0].verdict if found else "unknown",
        standings=found,
        stack=state.stack,
        paused=view.paused,
        latched=view.latched,
        history_problem=view.history_problem,
        config_ok=state.config_ok,
        running_since=view.running_since,
        next_probe=view.next_probe,
        last_run=state.last_run,
        last_success=state.last_success,
        logs=view.logs,
        servers=[_seen(one) for one in state.servers.servers if one.captures],
        about_servers=state.about_servers,
    )


def _seen(server: Server) -> ServerSeen:
    expected, reason = outlook(server)
    return ServerSeen(
        pid=server.pid,
        engine=server.engine,
        role=server.role,
        pod=server.pod.name if server.pod else None,
        npus=server.npus,
        mode=server.mode.in_force,
        mode_source=str(server.mode.source),
        versions=server.stack,
        outlook=expected,
        reason=reason,
    )


def gate_answer(source: Source) -> GateAnswer:
    """Return the gate's last answer."""
    view = source.view()
    return GateAnswer(decided_at=view.decided_at, decision=view.decision)


def explain(source: Source) -> Explanations:
    """Return how the verdicts in force came about."""
    return Explanations(
        gate=gate_answer(source),
        explanations=[
            Explanation(
                evidence=evidence,
                verdict=report.verdict,
                cause=report.cause,
                reason=report.reason,
                rows=steps(report, evidence),
                series=[series_facts(one) for one in report.series],
            )
            for evidence, report in source.view().state.judged
        ],
    )
