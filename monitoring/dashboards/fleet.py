"""The fleet: who is degraded, what runs where, what probing costs, and what is not known."""

from grafana_foundation_sdk.builders import dashboard

from monitoring.dashboards.panels import (
    SCOPE,
    Panel,
    base,
    choice,
    filled,
    metric,
    now,
    over_time,
    rows,
)

_VERDICT = metric("verdict")
_KNOWN = "max by (job, instance) (" + metric("verdict", 'verdict!="unknown"') + ") == 1"
_DEVICE_SECONDS = metric("probe_device_seconds_total")


def fleet() -> dashboard.Dashboard:
    """Return the dashboard."""
    board = base(
        "fleet",
        "Capture Canary / Fleet",
        "Does graph capture get slower, where, and what is not known.",
    ).with_variable(
        choice("problem", "label_values(instance:capture_canary_problem:info, problem)")
    )
    return filled(
        board,
        {
            "Verdicts": _verdicts(),
            "Evidence": _evidence(),
            "Cost of probing": _cost(),
            "Coverage": _coverage(),
        },
    )


def _verdicts() -> list[Panel]:
    return [
        now(
            "Daemons by verdict",
            "How many hold each verdict; one with several kinds of evidence counts once for each.",
            {"{{verdict}} ({{evidence}})": f"count by (verdict, evidence) ({_VERDICT} == 1)"},
            width=8,
        ),
        over_time(
            "Verdicts",
            "The same over time.",
            {"{{verdict}} ({{evidence}})": f"count by (verdict, evidence) ({_VERDICT} == 1)"},
            unit="short",
            width=16,
        ),
        rows(
            "Stacks and CANN lines",
            "What runs, and on how many nodes. The stack is what metrics and alerts name.",
            "count by (stack, soc, cann, hcomm, driver, torch_npu, vllm_ascend) "
            f"({metric('stack_info')})",
            value="daemons",
            width=24,
        ),
        rows(
            "Problems",
            "What alerts are about, daemon by daemon, before they wait; the worst first.",
            "sort_desc(max by (problem, stack, node, instance, namespace, workload, pool) "
            f'(instance:capture_canary_problem:info{{{SCOPE}, problem=~"$problem"}}))',
            value="how bad",
            width=24,
        ),
    ]


def _evidence() -> list[Panel]:
    return [
        now(
            "Exposed stacks",
            "Stacks on nodes that have the fault by SoC and hcomm, and those among them whose mode prevents it.",
            {
                "exposed": f"sum({metric('exposed')})",
                "mitigated": f"count(({metric('exposed')} == 1) and on (job, instance, stack) "
                f"({metric('mitigation')} == 1))",
            },
        ),
        rows(
            "Expansion modes of servers",
            "Processes that capture, by the mode in force and who says so.",
            f"sum by (mode, source) ({metric('servers')})",
            value="processes",
            width=6,
        ),
        over_time(
            "Worst growth",
            "H2D copies that each further capture adds, as configured; the five worst daemons.",
            {
                "{{instance}} {{stack}}": "topk(5, max by (instance, stack) ("
                + metric("rtmemcpy_growth", 'arm="as_configured"')
                + "))"
            },
            unit="short",
        ),
        over_time(
            "Worst impact",
            "Seconds that the growth adds to one load of a server; the five worst daemons.",
            {
                "{{instance}} {{stack}}": "topk(5, max by (instance, stack) "
                f"({metric('load_impact_seconds')}))"
            },
            unit="s",
        ),
        over_time(
            "Worst growth in time",
            "Seconds that each further capture adds, as configured; the five worst daemons.",
            {
                "{{instance}} {{stack}}": "topk(5, max by (instance, stack) ("
                + metric("capture_growth_seconds", 'arm="as_configured"')
                + "))"
            },
            unit="s",
        ),
    ]


def _cost() -> list[Panel]:
    return [
        over_time(
            "NPU time of probes",
            "NPUs held by probes times seconds, of each second.",
            {"all daemons": f"sum(rate({_DEVICE_SECONDS}[$__rate_interval]))"},
            unit="s",
            width=8,
        ),
        over_time(
            "Probes",
            "Probes that ran, and those that came to no verdict.",
            {
                "run": f"sum(increase({metric('probe_runs_total')}[$__rate_interval]))",
                "without a verdict: {{reason}}": "sum by (reason) "
                f"(increase({metric('probe_failures_total')}[$__rate_interval]))",
            },
            unit="short",
            width=8,
        ),
        over_time(
            "Skipped probes",
            "Probes that were due and not run, by the gate's reason.",
            {
                "{{reason}}": "sum by (reason) "
                f"(increase({metric('probe_skips_total')}[$__rate_interval]))"
            },
            unit="short",
            width=8,
        ),
    ]


def _coverage() -> list[Panel]:
    everybody = f"group by (job, instance) ({metric('build_info')})"
    skipped = f"(sum by (job, instance) ({metric('probe_skips_total')}) > 0)"
    return [
        now(
            "Coverage",
            "Daemons with a verdict; without one as probes are skipped; and without one for another reason.",
            {
                "known": f"count({_KNOWN})",
                "skipped": f"count({skipped} unless on (job, instance) ({_KNOWN}))",
                "unknown": f"count({everybody} unless on (job, instance) ({_KNOWN}) "
                f"unless on (job, instance) {skipped})",
            },
            width=8,
        ),
        now(
            "Versions",
            "Daemons by release; emulated ones are none of the fleet's.",
            {
                "{{version}}, emulated: {{emulated}}": "count by (version, emulated) "
                f"({metric('build_info')})"
            },
            width=8,
        ),
        now(
            "Age of the last probe",
            "Of the median daemon, and of the one in ten that waits longest.",
            {
                "median": f"quantile(0.5, time() - {metric('probe_last_run_timestamp_seconds')})",
                "one in ten": "quantile(0.9, time() - "
                f"{metric('probe_last_run_timestamp_seconds')})",
            },
            unit="s",
            width=8,
        ),
    ]
