"""The alerts: of which daemons, from when on, and what to tell whom."""

from monitoring.model import HERE, NODE, Alert
from monitoring.recordings import DEGRADED, OUT, REAL, SEEN, VERSION, WATCHED

_OWNER = "The owner of the serving image: the fault is in the image, not in the node."
_OPERATOR = "Whoever runs Capture Canary here."
_STARTED = "capture_canary_probe_next_timestamp_seconds"
"""Daemons that plan probes."""
_PAUSED = "(capture_canary_probing_paused == 1)"
_LATCHED = "(capture_canary_probing_latched == 1)"
_RUN = "capture_canary_probe_last_run_timestamp_seconds"
_SUCCESS = "capture_canary_probe_last_success_timestamp_seconds"


def _watched(expr: str) -> str:
    """Of the daemons that count, with their node."""
    return f"(\n  {expr}\n)\n* on ({NODE}) group_left (node) {WATCHED}"


def _by_cause(causes: str) -> str:
    return f'{DEGRADED}{{cause=~"{causes}"}}'


_VERDICTS = (
    Alert(
        name="CaptureCanaryDegraded",
        problem=_by_cause("aicpu_resource_list|copies_unattributed|other"),
        severity="warning",
        summary="Graph capture gets slower with every graph captured.",
        meaning="each further capture of a graph takes longer, most often as HCCL's AICPU resource lists grow and are "
        "copied whole to the device",
        do="Move the image to CANN 9.1.0 or newer, or set HCCL_OP_EXPANSION_MODE=AIV once it is validated with the "
        "model. `capture-canary doctor` on a node says which.",
        who=_OWNER,
    ),
    Alert(
        name="CaptureCanaryDegradedDespiteMode",
        problem=_by_cause("mode_not_effective"),
        severity="warning",
        summary="Graph capture gets slower although an expansion mode is set that should prevent it.",
        meaning="the copies grow with AIV or HOST set: the mode does not reach every collective",
        do="Look for a fallback by size, a variable set after HCCL was initialised, or a communicator's own setting: "
        "`capture-canary doctor` on a node.",
        who=_OWNER,
    ),
    Alert(
        name="CaptureCanaryDegradedOnFixedCann",
        problem=_by_cause("regression"),
        severity="info",
        summary="Graph capture gets slower on a CANN that is believed to be fixed.",
        meaning="the copies grow with hcomm 9.1.0 or newer, which should not be",
        do="Confirm it with `capture-canary probe` on another node, then report it with `capture-canary bundle`.",
        who=_OWNER,
    ),
    Alert(
        name="CaptureCanaryDegradedByTimeOnly",
        problem=_by_cause("time_only"),
        severity="info",
        summary="Graph capture got slower by time alone; copies were not counted.",
        meaning="captures take longer in two probes an hour apart, and no copies were counted that would say why",
        do="Have copies counted: `capture-canary doctor` says why they were not. Until then take it as a hint.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryCommonCause",
        problem=_watched('capture_canary_verdict_info{evidence="probe", cause="time_only"}')
        + "\nand on (cluster, stack) (stack:capture_canary_time_only_onset:ratio > 0.05)"
        "\nand on (cluster, stack) (stack:capture_canary_time_only_onset:count > 1)",
        by="cluster, stack",
        wait="0s",
        severity="info",
        summary="Captures got slower on many nodes with one stack within an hour.",
        meaning="by time alone, more than 5 % of the nodes with this stack turned degraded within an hour",
        do="Look for what they share (a rollout, power, a clock, a network) before looking at any of them, and take it "
        "as one incident.",
        who="Whoever changed what they share.",
    ),
    Alert(
        name="CaptureCanaryMitigationMissing",
        problem=_watched(
            '(capture_canary_mitigation{source=~"servers: .*", mode!="unknown"} == 0)\n'
            f"  and on ({NODE}, stack) (capture_canary_exposed == 1)"
        ),
        wait="1h",
        severity="info",
        summary="Servers run an exposed stack with nothing that prevents the growth.",
        meaning="by what is known of SoC, hcomm and expansion mode these servers have the fault, before anything is "
        "measured",
        do="Plan CANN 9.1.0 or newer, or HCCL_OP_EXPANSION_MODE=AIV once it is validated with the model.",
        who=_OWNER,
    ),
    Alert(
        name="CaptureCanaryVersionSkew",
        problem=_watched(
            'capture_canary_stack_info{workload!=""}\n'
            f"  and on (cluster, namespace, workload) (count by (cluster, namespace, workload, part) ({VERSION}) > 1)"
        ),
        by="cluster, namespace, workload",
        wait="1h",
        severity="info",
        summary="The ranks of one server run different versions.",
        meaning="its pods differ in CANN, hcomm, torch-npu, vLLM or vllm-ascend",
        do="Give all of them one image, by its digest. A rollout that takes longer than an hour looks the same.",
        who=_OWNER,
    ),
)

_PROBING = (
    Alert(
        name="CaptureCanaryUnknown",
        problem=_watched(
            f'(min by ({NODE}, namespace, workload, pool) (capture_canary_verdict{{verdict="unknown"}}) == 1)\n'
            f"  and on ({NODE}) (capture_canary_servers > 0 or {_STARTED})\n"
            f"  unless on ({NODE}) {_PAUSED}"
        ),
        by=HERE,
        wait="1d",
        severity="info",
        summary="Nothing has been known of graph capture for a day.",
        meaning="there are servers, or probes are planned, and every verdict is `unknown`",
        do="`capture-canary doctor` and `capture-canary story` on a node say what is missing: a tracer in the server, "
        "NPUs for a probe, or a server that is started again.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryTracerMissing",
        problem=_watched("capture_canary_servers_untraced > 0"),
        wait="15m",
        severity="warning",
        summary="Servers asked for the tracer and do not have it.",
        meaning="the tracer is in LD_PRELOAD, or `capture-canary exec` started the server, and its captures are not "
        "recorded",
        do="See that the library is in the container, for its architecture and libc, and that the trace folder can be "
        "written: `capture-canary doctor` on the node.",
        who=_OWNER,
    ),
    Alert(
        name="CaptureCanaryProbeFailing",
        problem=_watched(f"({_RUN} > {_SUCCESS})\n  or ({_RUN} unless {_SUCCESS})"),
        by=HERE,
        wait="7h",
        severity="warning",
        summary="Probes run and come to no verdict.",
        meaning="the last two probes ended without a verdict",
        do="`capture-canary story` on a node says why; "
        "`capture_canary_probe_failures_total` by `reason` says how often.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryProbeSkipped",
        # A skipped probe is tried again within minutes; one that is not due yet is skipped by nobody.
        problem=_watched(
            f"(\n    (time() - {_RUN} > <1d>)\n"
            f"    or (sum by ({NODE}, namespace, workload, pool) (capture_canary_probe_skips_total > 0) * 0)"
            f" unless on ({NODE}) {_RUN}\n  )\n"
            f"  and on ({NODE}) ({_STARTED} - time() < <30m>)\n"
            f"  unless on ({NODE}) {_PAUSED}\n  unless on ({NODE}) {_LATCHED}"
        ),
        by=HERE,
        wait="1h",
        severity="info",
        summary="Probes are due and have been skipped for a day.",
        meaning="the gate has let no probe run for a day; most often the NPUs are in use, which is as it should be",
        do="On nodes that are always busy, read the server's own trace (sidecar), or use `mode: job`. "
        "`capture_canary_probe_skips_total` by `reason` says what was in the way.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryProbingLatched",
        problem=_watched(_LATCHED),
        by=HERE,
        severity="warning",
        summary="Probing is latched off after a probe that left something behind or met device errors.",
        meaning="no probe runs here again until somebody has looked",
        do="Read why on the node's page or in `capture-canary story`, see that its NPUs are free and healthy, then "
        "release the latch as docs/gate.md says.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryBudgetExceeded",
        problem=_watched('increase(capture_canary_probe_skips_total{reason="budget"}[1h]) > 0'),
        by=HERE,
        wait="15m",
        severity="info",
        summary="Probes have used up the day's NPU time.",
        meaning="a probe was due and the day's budget of device-seconds did not allow it",
        do="Probe less often (`probe.interval`), or allow more (`gate.budget`). A budget that was "
        "never exceeded before means that probes take longer: look at capture_canary_probe_duration_seconds.",
        who=_OPERATOR,
    ),
)

_DAEMON = (
    Alert(
        name="CaptureCanaryAbsent",
        problem=f'last_over_time({SEEN}{{{REAL}, workload=""}}[1d])\n'
        "unless on (cluster, job, pool) capture_canary_build_info\n"
        f"unless on (cluster, node) {OUT}",
        by="cluster, job, namespace, pool",
        instead="absent(capture_canary_build_info) "
        f"unless on () group (last_over_time({SEEN}[1d]))",
        wait="15m",
        keep="0s",
        severity="warning",
        summary="No daemon of a pool answers.",
        meaning="all daemons of a pool (a DaemonSet, a CANN line) have gone from Prometheus within a day",
        do="See whether the pods run (`kubectl get pods -l app.kubernetes.io/name=capture-canary -o wide`) and whether "
        "Prometheus' target page shows them. A pool that was removed on purpose is forgotten after a day.",
        who=_OPERATOR,
    ),
    Alert(
        name="CaptureCanaryConfigReloadFailed",
        problem=_watched("capture_canary_config_last_reload_successful == 0"),
        by=HERE,
        wait="10m",
        severity="warning",
        summary="A changed configuration was refused, the one before it is in force.",
        meaning="the file of the configuration has a mistake",
        do="`capture-canary config check FILE` names the line. The daemon's log has it too (`config_kept`).",
        who=_OPERATOR,
    ),
)

ALERTS = (*_VERDICTS, *_PROBING, *_DAEMON)
