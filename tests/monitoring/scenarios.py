"""What makes each alert fire: how a node differs from one where all is well."""

from dataclasses import dataclass, field

BEGIN = 30
"""The minute that something goes wrong."""
STACK = 'stack="abc"'
WELL: dict[str, float | None] = {
    'build_info{emulated="false",version="1"}': 1,
    f'stack_info{{{STACK},cann="8.5.0",hcomm="8.5.0",soc="a3"}}': 1,
    f'verdict{{{STACK},evidence="probe",verdict="healthy"}}': 1,
    f'verdict{{{STACK},evidence="probe",verdict="unknown"}}': 0,
    f'verdict_settled_info{{{STACK},evidence="probe",verdict="healthy",cause=""}}': 1,
    f"load_impact_seconds{{{STACK}}}": 0,
    f"exposed{{{STACK}}}": 0,
    f'servers{{{STACK},mode="AIV",source="servers: trace"}}': 1,
    f'mitigation{{{STACK},mode="AIV",source="servers: trace"}}': 1,
    f"servers_untraced{{{STACK}}}": 0,
    "probing_paused": 0,
    "probing_latched": 0,
    "config_last_reload_successful": 1,
    "probe_next_timestamp_seconds": 1e9,
    "probe_last_run_timestamp_seconds": 1e8,
    "probe_last_success_timestamp_seconds": 1e8,
    'probe_skips_total{reason="budget"}': 0,
    'probe_failures_total{reason="timeout"}': 0,
}
"""A real node with a healthy stack; times lie ahead, so that nothing is old."""
HERE: dict[str, str] = {}
ABC = {"stack": "abc"}


@dataclass(frozen=True)
class Wrong:
    """How a node differs while something is wrong."""

    changes: dict[str, float | None]
    labels: dict[str, str] = field(default_factory=dict)
    """Of the alert, beside its name and severity."""
    scrape: dict[str, str] = field(default_factory=dict)
    """Labels of the target."""
    beside: dict[str, float | None] = field(default_factory=dict)
    """How a second node, with the same scrape labels, differs all the time."""
    lead: int = 0
    """Minutes until the cause counts, before `for` begins."""
    counter: str | None = None
    """A counter that counts once in five minutes while it is wrong."""
    restarts: bool = True
    """Whether a restart of the daemon leaves the alert alone; else it is what the alert tells of."""
    severity: str = "warning"


def degraded(cause: str, impact: float | None = 12.0) -> dict[str, float | None]:
    return {
        f'verdict{{{STACK},evidence="probe",verdict="healthy"}}': 0,
        f'verdict{{{STACK},evidence="probe",verdict="degraded"}}': 1,
        f'verdict_settled_info{{{STACK},evidence="probe",verdict="healthy",cause=""}}': None,
        f'verdict_settled_info{{{STACK},evidence="probe",verdict="degraded",cause="{cause}"}}': 1,
        f"load_impact_seconds{{{STACK}}}": impact,
    }


UNKNOWN: dict[str, float | None] = {
    f'verdict{{{STACK},evidence="probe",verdict="healthy"}}': 0,
    f'verdict{{{STACK},evidence="probe",verdict="unknown"}}': 1,
    f"load_impact_seconds{{{STACK}}}": None,
}
BARE: dict[str, float | None] = {
    f'mitigation{{{STACK},mode="AIV",source="servers: trace"}}': None,
    f'mitigation{{{STACK},mode="AI_CPU",source="servers: trace"}}': 0,
    f"exposed{{{STACK}}}": 1,
}
WORKLOAD = {"namespace": "serving", "workload": "llm"}
OTHER_VERSION: dict[str, float | None] = {
    f'stack_info{{{STACK},cann="8.5.0",hcomm="8.5.0",soc="a3"}}': None,
    f'stack_info{{{STACK},cann="9.0.0",hcomm="9.0.0",soc="a3"}}': 1,
}

WRONG = {
    "CaptureCanaryDegraded": Wrong(degraded("aicpu_resource_list"), ABC),
    "CaptureCanaryDegradedDespiteMode": Wrong(degraded("mode_not_effective"), ABC),
    "CaptureCanaryDegradedOnFixedCann": Wrong(degraded("regression"), ABC, severity="info"),
    "CaptureCanaryDegradedByTimeOnly": Wrong(degraded("time_only", None), ABC, severity="info"),
    "CaptureCanaryMitigationMissing": Wrong(BARE, ABC, severity="info"),
    "CaptureCanaryVersionSkew": Wrong(
        OTHER_VERSION, WORKLOAD, scrape=WORKLOAD, beside=dict(WELL), severity="info"
    ),
    "CaptureCanaryUnknown": Wrong(UNKNOWN, severity="info"),
    "CaptureCanaryTracerMissing": Wrong({f"servers_untraced{{{STACK}}}": 2}, ABC),
    "CaptureCanaryProbeFailing": Wrong({"probe_last_run_timestamp_seconds": 2e8}),
    "CaptureCanaryProbeSkipped": Wrong(
        {
            "probe_last_run_timestamp_seconds": 60.0 * BEGIN,
            "probe_next_timestamp_seconds": 60.0 * BEGIN,
        },
        lead=1445,
        severity="info",
    ),
    "CaptureCanaryProbingLatched": Wrong({"probing_latched": 1}),
    "CaptureCanaryBudgetExceeded": Wrong(
        {}, counter='probe_skips_total{reason="budget"}', lead=5, severity="info"
    ),
    "CaptureCanaryAbsent": Wrong(
        dict.fromkeys(WELL), {"job": "canary", "pool": "a3"}, {"pool": "a3"}, restarts=False
    ),
    "CaptureCanaryConfigReloadFailed": Wrong({"config_last_reload_successful": 0}),
}
"""By alert; CaptureCanaryCommonCause takes a fleet."""
