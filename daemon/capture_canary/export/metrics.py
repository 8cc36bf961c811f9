"""Prometheus metrics of a state: families built anew for each scrape, so that nothing outlives what it tells of."""

from collections.abc import Callable, Iterator
from typing import get_args

from prometheus_client.core import (
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from capture_canary.export import families
from capture_canary.export.state import FailureReason, State, cumulative
from capture_canary.model import Evidence, Report, Stack, VerdictName
from capture_canary.stack.exposure import exposure, mitigates
from capture_canary.stack.identity import PARTS, stack_id
from capture_canary.stack.servers import Server
from capture_canary.trend import growth
from capture_canary.trend.settle import Settled

MAX_GROUPS = 8
"""Kinds of servers (stack, mode, source) that get series of their own; a node runs one or two."""
_CACHED = "Of the last probe: probes are too dear to run at each scrape."


class StateCollector(Collector):
    """Asks for the state at each scrape."""

    def __init__(self, state: Callable[[], State]) -> None:
        """Export what `state` returns."""
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        state = self._state()
        yield from _identity(state)
        yield _verdicts(state)
        yield _causes(state)
        yield _settled(state)
        yield from _growths(state)
        yield from _consequences(state)
        yield from _servers(state)
        yield from _copies(state)
        yield from _probes(state)
        yield from _configuration(state)

    def describe(self) -> list[Metric]:
        """Name nothing in advance: registering must not need a state."""
        return []


def _identity(state: State) -> Iterator[Metric]:
    yield InfoMetricFamily(
        f"{families.PREFIX}build",
        "Version of Capture Canary, and whether all that it exports comes from an emulated node.",
        value={"version": state.version, "emulated": str(state.emulated).lower()},
    )
    info = InfoMetricFamily(
        f"{families.PREFIX}stack",
        "Versions of each stack that a verdict speaks of.",
        labels=["stack", *PARTS],
    )
    stacks = {stack_id(stack): stack for stack in [state.stack, *_stacks(state)]}
    for name, stack in stacks.items():
        info.add_metric([name, *(_version(stack, part) for part in PARTS)], {})
    yield info


def _verdicts(state: State) -> Metric:
    family = families.gauge(
        "verdict",
        "1 for the verdict in force, 0 for the others; unknown until something was measured.",
        "stack",
        "evidence",
        "verdict",
    )
    to_come = [
        (evidence, state.stack, "unknown")
        for evidence in state.sources
        if evidence not in state.reports
    ]
    judged = [(evidence, report.stack, report.verdict) for evidence, report in state.judged]
    for evidence, stack, found in [*judged, *to_come]:
        for name in get_args(VerdictName):
            family.add_metric([stack_id(stack), evidence, name], float(name == found))
    return family


def _causes(state: State) -> Metric:
    family = families.gauge(
        "verdict_info",
        "1 with the cause of the verdict in force; absent where it has none.",
        "stack",
        "evidence",
        "cause",
    )
    for evidence, report in state.judged:
        if report.cause is not None:
            family.add_metric([stack_id(report.stack), evidence, report.cause], 1.0)
    return family


def _settled(state: State) -> Metric:
    family = families.gauge(
        "verdict_settled_info",
        "1 with the verdict that two in a row agree on, what alerts go by; of a trace the last one.",
        "stack",
        "evidence",
        "verdict",
        "cause",
    )
    further: list[tuple[Evidence, Settled]] = [("trace", one) for one in state.settled_further]
    for evidence, settled in [*state.settled.items(), *further]:
        labels = [settled.stack, evidence, settled.verdict, settled.cause or ""]
        family.add_metric(labels, 1.0)
    return family


def _growths(state: State) -> Iterator[Metric]:
    labels = ("stack", "arm", "evidence")
    worst = "of the series that grows most. " + _CACHED
    seconds = families.gauge(
        "capture_growth_seconds", f"Seconds that each further capture adds, {worst}", *labels
    )
    lower = families.gauge(
        "capture_growth_lower_seconds", f"Lower bound of that growth, {worst}", *labels
    )
    upper = families.gauge(
        "capture_growth_upper_seconds", f"Upper bound of that growth, {worst}", *labels
    )
    copies = families.gauge(
        "rtmemcpy_growth", f"H2D copies that each further capture adds, {worst}", *labels
    )
    first = families.gauge(
        "rtmemcpy_first", f"H2D copies in the first capture judged, {worst}", *labels
    )
    last = families.gauge(
        "rtmemcpy_last", f"H2D copies in the last capture judged, {worst}", *labels
    )
    for evidence, report in state.judged:
        for arm in dict.fromkeys(series.arm for series in report.series):
            values = [stack_id(report.stack), arm, evidence]
            found = growth.worst(report.series, arm=arm)
            families.add(seconds, values, found.seconds, "estimate")
            families.add(lower, values, found.seconds, "lower")
            families.add(upper, values, found.seconds, "upper")
            families.add(copies, values, found.copies, "estimate")
            if found.copies is not None and found.series is not None:
                counts = growth.counted(report.series[found.series])
                first.add_metric(values, counts[0].copies)
                last.add_metric(values, counts[-1].copies)
    yield from (seconds, lower, upper, copies, first, last)


def _consequences(state: State) -> Iterator[Metric]:
    load = families.gauge(
        "load_impact_seconds",
        "Seconds that the growth adds to one load of a server. " + _CACHED,
        "stack",
    )
    mitigation = families.gauge(
        "mitigation",
        "Whether the expansion mode in force keeps collectives off the AICPU.",
        "stack",
        "mode",
        "source",
    )
    exposed = families.gauge(
        "exposed",
        "Whether the stack has the fault by its versions; absent where not known.",
        "stack",
    )
    modes: dict[tuple[str, ...], bool] = {}
    exposures: dict[str, bool | None] = {}
    for stack, report in _by_stack(state).items():
        seconds = _impact(report)
        if seconds is not None:
            load.add_metric([stack], seconds)
        mode = families.label(report.mode or "unknown")
        modes[stack, mode, families.label(report.mode_source)] = mitigates(report.mode)
        exposures[stack] = exposure(
            soc=_version(report.stack, "soc"),
            hcomm=_version(report.stack, "hcomm"),
            mode=report.mode,
        ).exposed
    for (stack, mode, source), servers in _serving(state).items():
        effective = all(mitigates(one.mode.in_force) and one.mode.effective for one in servers)
        modes[stack, mode, source] = effective
        exposures.setdefault(stack, servers[0].exposed)
    for labels, mitigated in modes.items():
        mitigation.add_metric(list(labels), float(mitigated))
    for stack, found in exposures.items():
        if found is not None:
            exposed.add_metric([stack], float(found))
    yield from (load, mitigation, exposed)


def _servers(state: State) -> Iterator[Metric]:
    """What serves on this node, and whether a probe of ours is about it."""
    count = families.gauge(
        "servers",
        "Processes that capture graphs for a model server, or hold an NPU.",
        "stack",
        "mode",
        "source",
    )
    missing = families.gauge(
        "servers_untraced",
        "Of these, those that were started to be traced and have no trace: nothing is known of their captures.",
        "stack",
    )
    untraced: dict[str, int] = {}
    for labels, servers in _serving(state).items():
        count.add_metric(list(labels), float(len(servers)))
        lacking = sum(1 for one in servers if one.untraced)
        untraced[labels[0]] = untraced.get(labels[0], 0) + lacking
    for stack, number in untraced.items():
        missing.add_metric([stack], float(number))
    yield from (count, missing)
    yield from families.known(
        "probe_about_servers",
        "1 where the servers run the hcomm that probes run, 0 where a probe says nothing of them; absent if not known.",
        None if state.about_servers is None else float(state.about_servers),
    )


def _serving(state: State) -> dict[tuple[str, str, str], list[Server]]:
    """The processes that capture by stack, mode and source of the mode; the first few of these."""
    groups: dict[tuple[str, str, str], list[Server]] = {}
    for server in state.servers.servers:
        if server.captures:
            mode = families.label(server.mode.in_force or "unknown")
            labels = (stack_id(server.stack), mode, f"servers: {server.mode.source}")
            if labels in groups or len(groups) < MAX_GROUPS:
                groups.setdefault(labels, []).append(server)
    return groups


def _copies(state: State) -> Iterator[Metric]:
    totals = state.totals
    copies = families.counter("rtmemcpy", "H2D copies made while a capture was active.", "evidence")
    seconds = families.counter("rtmemcpy_seconds", "Time spent in those copies.", "evidence")
    for evidence in state.sources:
        copies.add_metric([evidence], totals.copies.get(evidence, 0))
        seconds.add_metric([evidence], totals.copy_seconds.get(evidence, 0.0))
    durations = HistogramMetricFamily(
        f"{families.PREFIX}capture_duration_seconds", "Time from the begin of a capture to its end."
    )
    durations.add_metric([], cumulative(totals.capture_buckets), totals.capture_seconds)
    yield from (copies, seconds, durations)


def _probes(state: State) -> Iterator[Metric]:
    totals = state.totals
    yield families.single_counter("probe_runs", "Probes that were run.", totals.runs)
    reasons = dict.fromkeys(get_args(FailureReason), 0) | totals.failures
    yield families.by_reason("probe_failures", "Probes that came to no verdict.", reasons)
    yield families.by_reason("probe_skips", "Probes that were due and not run.", totals.skips)
    yield families.single_counter(
        "probe_device_seconds",
        "NPU time that probes took: NPUs held times seconds.",
        totals.device_seconds,
    )
    yield families.single_counter("probe_captures", "Graphs that probes captured.", totals.captures)
    yield from families.known(
        "probe_duration_seconds", "How long the last probe took.", state.last_seconds
    )
    yield from families.known(
        "probe_last_run_timestamp_seconds", "End of the last probe.", state.last_run
    )
    yield from families.known(
        "probe_last_success_timestamp_seconds",
        "End of the last probe that came to a verdict.",
        state.last_success,
    )


def _configuration(state: State) -> Iterator[Metric]:
    yield from families.known(
        "config_last_reload_successful",
        "Whether the settings in the file are those in force.",
        float(state.config_ok),
    )


def _stacks(state: State) -> list[Stack]:
    serving = [servers[0].stack for servers in _serving(state).values()]
    return [*(report.stack for _, report in state.judged), *serving]


def _by_stack(state: State) -> dict[str, Report]:
    """The report that speaks for each stack: of two, the one by the better evidence."""
    order: tuple[Evidence, ...] = ("log", "trace", "probe")
    return {
        stack_id(report.stack): report
        for wanted in order
        for evidence, report in state.judged
        if evidence == wanted
    }


def _impact(report: Report) -> float | None:
    """A stack that does not grow costs nothing; what one that was not judged costs is not known."""
    if report.verdict in ("healthy", "mitigated"):
        return 0.0
    return report.impact.seconds_per_load if report.impact else None


def _version(stack: Stack, part: str) -> str:
    return families.label((stack[part].value or "") if part in stack else "")
