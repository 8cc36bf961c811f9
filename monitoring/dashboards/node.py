"""One node: what was measured and when, what serves on it, and what changed."""

from grafana_foundation_sdk.builders import dashboard

from monitoring.dashboards.panels import (
    SCOPE,
    SOURCE,
    Panel,
    base,
    filled,
    history,
    metric,
    now,
    over_time,
    rows,
)

_STACKS = f"count by (instance, stack, cann, hcomm, driver) ({metric('stack_info')})"


def node() -> dashboard.Dashboard:
    """Return the dashboard."""
    board = base(
        "node", "Capture Canary / Node", "What one node's daemon found; choose it by its instance."
    ).annotation(
        dashboard.AnnotationQuery()
        .name("Stack changes")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("purple")
        .expr(f"({_STACKS}) unless ({_STACKS.replace('})', '} offset 5m)')})")
    )
    return filled(
        board,
        {
            "Verdicts": _verdicts(),
            "Evidence": _evidence(),
            "Servers": _servers(),
            "Probes": _probes(),
        },
    )


def _verdicts() -> list[Panel]:
    return [
        history(
            "Verdict history",
            "Which verdict held when, by evidence.",
            f"max by (instance, evidence, verdict) ({metric('verdict')}) == 1",
            "{{instance}} {{evidence}}: {{verdict}}",
        ),
        rows(
            "Cause and what alerts go by",
            "The verdict that two probes in a row agree on, with its cause.",
            f"max by (instance, stack, evidence, verdict, cause) ({metric('verdict_settled_info')})",
            value="settled",
        ),
        rows(
            "Problems",
            "What alerts are about on this node.",
            f"max by (instance, problem, stack) (instance:capture_canary_problem:info{{{SCOPE}}})",
            value="how bad",
        ),
    ]


def _evidence() -> list[Panel]:
    arms = "instance, arm, evidence"
    legend = "{{arm}} ({{evidence}})"
    return [
        over_time(
            "Copies that a further capture adds",
            "H2D copies, by how the expansion mode was set; of the series that grows most.",
            {legend: f"max by ({arms}) ({metric('rtmemcpy_growth')})"},
            unit="short",
        ),
        over_time(
            "Copies of the first and the last capture judged",
            "What a capture copies to begin with, and in the end.",
            {
                f"first: {legend}": f"max by ({arms}) ({metric('rtmemcpy_first')})",
                f"last: {legend}": f"max by ({arms}) ({metric('rtmemcpy_last')})",
            },
            unit="short",
        ),
        over_time(
            "Time that a further capture adds",
            "With its 95 % interval, by how the expansion mode was set.",
            {
                legend: f"max by ({arms}) ({metric('capture_growth_seconds')})",
                f"{legend} lower": f"max by ({arms}) ({metric('capture_growth_lower_seconds')})",
                f"{legend} upper": f"max by ({arms}) ({metric('capture_growth_upper_seconds')})",
            },
            unit="s",
        ),
        over_time(
            "Time of a capture",
            "From its begin to its end: median and one in twenty.",
            {
                "median": "histogram_quantile(0.5, sum by (le) (rate("
                f"{metric('capture_duration_seconds_bucket')}[$__rate_interval])))",
                "one in twenty": "histogram_quantile(0.95, sum by (le) (rate("
                f"{metric('capture_duration_seconds_bucket')}[$__rate_interval])))",
            },
            unit="s",
        ),
        now(
            "Impact on a load",
            "Seconds that the growth adds to one load of a server.",
            {"{{stack}}": f"max by (stack) ({metric('load_impact_seconds')})"},
            unit="s",
        ),
        now(
            "Copies and their time",
            "H2D copies in captures, of each second, and the share of time that they took.",
            {
                "copies/s ({{evidence}})": "sum by (evidence) "
                f"(rate({metric('rtmemcpy_total')}[$__rate_interval]))",
                "s/s ({{evidence}})": "sum by (evidence) "
                f"(rate({metric('rtmemcpy_seconds_total')}[$__rate_interval]))",
            },
        ),
    ]


def _servers() -> list[Panel]:
    return [
        rows(
            "Processes and their modes",
            "Processes that capture graphs, by stack, expansion mode and who says so.",
            f"max by (instance, stack, mode, source) ({metric('servers')})",
            value="processes",
        ),
        rows(
            "Stacks",
            "What runs here.",
            "max by (instance, stack, soc, cann, hcomm, hccl, runtime, driver, torch_npu, vllm, vllm_ascend, image) "
            f"({metric('stack_info')})",
            value="",
        ),
    ]


def _probes() -> list[Panel]:
    last = metric("probe_last_run_timestamp_seconds")
    following = metric("probe_next_timestamp_seconds")
    return [
        now(
            "Last probe, next probe",
            "How long ago the last one ended, and how long until the next.",
            {
                "ago ({{instance}})": f"time() - {last}",
                "until the next ({{instance}})": f"{following} - time()",
            },
            unit="s",
            width=8,
        ),
        over_time(
            "Duration of probes",
            "Of the last one.",
            {"{{instance}}": metric("probe_duration_seconds")},
            unit="s",
            width=8,
        ),
        over_time(
            "Failed and skipped probes",
            "Probes that came to no verdict, and those that the gate did not let run.",
            {
                "failed: {{reason}}": "sum by (reason) "
                f"(increase({metric('probe_failures_total')}[$__rate_interval]))",
                "skipped: {{reason}}": "sum by (reason) "
                f"(increase({metric('probe_skips_total')}[$__rate_interval]))",
            },
            unit="short",
            width=8,
        ),
        now(
            "Latched, paused, settings refused, history in memory",
            "1 where it is so.",
            {
                "latched": f"max({metric('probing_latched')})",
                "paused": f"max({metric('probing_paused')})",
                "settings refused": f"1 - min({metric('config_last_reload_successful')})",
                "history in memory": f"max({metric('history_in_memory')})",
            },
            width=12,
        ),
    ]
