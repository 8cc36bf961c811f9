"""The recording rules: which daemons count, what is degraded, and the fleet in figures."""

from capture_canary.trend.impact import NEGLIGIBLE_SECONDS
from monitoring.model import NODE, Recording

WATCHED = "instance:capture_canary_watched:info"
SEEN = "instance:capture_canary_seen:info"
OUT = "node:capture_canary_out_of_service:info"
DEGRADED = "instance:capture_canary_degraded:seconds"
REAL = 'emulated="false"'
"""In scope; `emulated()` widens it to emulated nodes."""


def emulated(expr: str) -> str:
    """Return the expression with emulated nodes in its scope."""
    return expr.replace(REAL, 'emulated=~"true|false"')


def _named(metric: str, labels: str) -> str:
    """The metric with a `node`: the scrape's, or else the instance."""
    return (
        f'    {metric}{{{labels}, node!=""}}\n'
        f'    or label_replace({metric}{{{labels}, node=""}}, "node", "$1", "instance", "(.+)")'
    )


def _joined(by: str, exprs: list[str]) -> str:
    return f"{by} (\n" + "\nor ".join(exprs) + "\n)"


def _reason(expr: str, reason: str) -> str:
    return f'label_replace(group by (cluster, node) ({expr}), "reason", "{reason}", "", "")'


# What others know of a node: kube-state-metrics and npu-exporter, where they are scraped and say `node`.
_OUT = "\nor ".join(
    [
        _reason('kube_node_status_condition{condition="Ready", status="true"} == 0', "not_ready"),
        _reason("kube_node_spec_unschedulable == 1", "cordoned"),
        _reason('kube_node_spec_taint{key=~".*maintenance.*"} == 1', "maintenance"),
        _reason('npu_chip_info_health_status{node!=""} == 0', "npu_unhealthy"),
    ]
)

# `topk` keeps one where a target was replaced a moment ago, as two would fail the rules for everybody.
_WATCHED = f"""\
topk by ({NODE}) (1,
  group by ({NODE}, namespace, workload, pool, node) (
{_named("capture_canary_build_info", REAL)}
  )
  unless on (cluster, node) {OUT}
)"""

_SEEN = f"""\
group by ({NODE}, namespace, workload, pool, node, emulated) (
{_named("capture_canary_build_info", 'emulated!=""')}
)"""

# An impact of 0 is another evidence's, which found nothing: it says nothing of this one.
_DEGRADED = f"""\
(
  (
    capture_canary_verdict_settled_info{{verdict="degraded"}}
    * on ({NODE}, stack) group_left () max by ({NODE}, stack) (capture_canary_load_impact_seconds)
    or capture_canary_verdict_settled_info{{verdict="degraded"}} * 0
  )
  unless on ({NODE}, stack) (capture_canary_load_impact_seconds > 0 < {NEGLIGIBLE_SECONDS:g})
)
* on ({NODE}) group_left (node) {WATCHED}"""

_TIME_ONLY = 'capture_canary_verdict_info{evidence="probe", cause="time_only"}'
# Nodes that were not scraped an hour ago cannot have turned since.
_ONSETS = f"""\
count by (cluster, stack) (
  group by (stack, {NODE}) ({_TIME_ONLY})
  and on ({NODE}) {WATCHED}
  and on ({NODE}) capture_canary_verdict{{evidence="probe"}} offset 1h
  unless on (stack, {NODE}) {_TIME_ONLY} offset 1h
)"""
_ONSET_SHARE = f"""\
stack:capture_canary_time_only_onset:count
/ on (cluster, stack) count by (cluster, stack) (
  group by (stack, {NODE}) (capture_canary_verdict{{evidence="probe"}})
  and on ({NODE}) {WATCHED}
)"""


def _version(part: str) -> str:
    return f"""\
label_replace(
  group by (cluster, namespace, workload, {part}) (
    capture_canary_stack_info{{{part}!="", workload!=""}}
    and on ({NODE}, stack) capture_canary_servers > 0
    and on ({NODE}) {WATCHED}
  ), "version", "{part} $1", "{part}", "(.+)"
)"""


VERSION = "workload:capture_canary_version:info"
_PARTS = ("cann", "hcomm", "torch_npu", "vllm", "vllm_ascend")
_VERSIONS = _joined(
    "group by (cluster, namespace, workload, part, version)",
    [f'label_replace({_version(part)}, "part", "{part}", "", "")' for part in _PARTS],
)
_KNOWN = f'(max by ({NODE}) (capture_canary_verdict{{verdict!="unknown"}}) == 1)'
_SKIPPED = f"(sum by ({NODE}) (capture_canary_probe_skips_total) > 0)"
_COVERAGES = {
    "known": f"{_KNOWN}\n  and on ({NODE}) {WATCHED}",
    "skipped": f"{_SKIPPED}\n  unless on ({NODE}) {_KNOWN}\n  and on ({NODE}) {WATCHED}",
    "unknown": f"group by ({NODE}) ({WATCHED})\n  unless on ({NODE}) {_KNOWN}\n  unless on ({NODE}) {_SKIPPED}",
}
_COVERAGE = _joined(
    "count by (cluster, coverage)",
    [
        f'label_replace(\n  {expr}, "coverage", "{name}", "", ""\n)'
        for name, expr in _COVERAGES.items()
    ],
)


def _of_watched(by: str, expr: str) -> str:
    return f"{by} (\n  {expr}\n  and on ({NODE}) {WATCHED}\n)"


RECORDINGS = (
    Recording(record=OUT, expr=_OUT),
    Recording(record=WATCHED, expr=_WATCHED),
    Recording(record=DEGRADED, expr=_DEGRADED),
    Recording(record=VERSION, expr=_VERSIONS),
    Recording(record="stack:capture_canary_time_only_onset:count", expr=_ONSETS),
    Recording(record="stack:capture_canary_time_only_onset:ratio", expr=_ONSET_SHARE),
    Recording(
        record="stack:capture_canary_verdict:count",
        expr=_of_watched(
            "count by (cluster, stack, evidence, verdict)", "(capture_canary_verdict == 1)"
        ),
    ),
    Recording(
        record="stack:capture_canary_load_impact_seconds:max",
        expr=_of_watched("max by (cluster, stack)", "capture_canary_load_impact_seconds"),
    ),
    Recording(
        record="stack:capture_canary_rtmemcpy_growth:max",
        expr=_of_watched(
            "max by (cluster, stack, arm, evidence)", "capture_canary_rtmemcpy_growth"
        ),
    ),
    Recording(
        record="cluster:capture_canary_probe_device_seconds:rate1h",
        expr=_of_watched("sum by (cluster)", "rate(capture_canary_probe_device_seconds_total[1h])"),
    ),
    Recording(record="cluster:capture_canary_coverage:count", expr=_COVERAGE),
)

MEMORY = (Recording(record=SEEN, expr=_SEEN),)
"""Recorded seldom, as it is looked back on for a day."""
