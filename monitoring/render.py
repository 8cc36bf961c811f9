"""From recordings and alerts to a rule file."""

from typing import Any

import yaml

from monitoring.alerts import ALERTS
from monitoring.model import Alert, Pace, Recording, seconds
from monitoring.recordings import MEMORY, RECORDINGS, emulated

PROBLEM = "instance:capture_canary_problem:info"
"""One series a daemon and problem, whichever alert tells of it: what dashboards list and runbooks ask for."""
HEADER = """\
# Made by `python -m monitoring` from monitoring/alerts.py and monitoring/recordings.py: change those.
# docs/alerts.md says what each alert is for. Needs Prometheus 2.42 (keep_firing_for).
"""
REAL_TIME = Pace()
GAP = "10m"
"""Without a sample for so long, a problem is still there."""
_MEMORY_EVERY = "5m"
_LINE = 90
"""Characters of a text that stays on its key's line."""


def document(*, pace: Pace = REAL_TIME, with_emulated: bool = False) -> dict[str, Any]:
    """Return the rule file's content.

    Args:
        pace: how fast time goes.
        with_emulated: whether emulated nodes count, too.
    """
    groups: list[dict[str, Any]] = [
        {
            "name": "capture-canary-memory",
            "interval": pace.span(_MEMORY_EVERY),
            "rules": [_recording(r) for r in MEMORY],
        },
        {"name": "capture-canary-fleet", "rules": [_recording(r) for r in RECORDINGS]},
        {"name": "capture-canary-problems", "rules": [_recording(_problem(a)) for a in ALERTS]},
        {"name": "capture-canary-alerts", "rules": [_alert(a, pace) for a in ALERTS]},
    ]
    for rule in (rule for group in groups for rule in group["rules"]):
        text = pace.expr(rule["expr"])
        rule["expr"] = emulated(text) if with_emulated else text
    return {"groups": groups}


def text(content: dict[str, Any]) -> str:
    """Return it as YAML that people read: long texts in blocks, every key in its order."""
    return HEADER + yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True
    )


def _recording(rule: Recording) -> dict[str, Any]:
    found: dict[str, Any] = {"record": rule.record, "expr": rule.expr}
    return found | ({"labels": rule.labels} if rule.labels else {})


def _problem(alert: Alert) -> Recording:
    return Recording(record=PROBLEM, expr=alert.problem, labels={"problem": alert.name})


def _alert(alert: Alert, pace: Pace) -> dict[str, Any]:
    having = _bridged(alert, f'{PROBLEM}{{problem="{alert.name}"}}')
    expr = f"count by ({alert.by}) (group by ({alert.by}, node) ({having})) > 0"
    if alert.instead:
        expr += f"\nor on () ({alert.instead})"
    return {
        "alert": alert.name,
        "expr": expr,
        "for": pace.span(alert.wait),
        "keep_firing_for": pace.span(alert.keep),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": pace.expr(_description(alert)),
            "runbook_url": f"docs/runbooks/{alert.name}.md",
            "dashboard_url": f"/d/capture-canary-fleet/capture-canary-fleet?var-problem={alert.name}",
        },
    }


def _bridged(alert: Alert, selector: str) -> str:
    """Of a long wait one scrape that is missed, or a restart, is not to begin it anew."""
    long = seconds(alert.wait) >= seconds("1h")
    return f"last_over_time({selector}[{GAP}])" if long else selector


def _description(alert: Alert) -> str:
    """How many nodes and which three, of whom, what it costs, what to do, who acts."""
    labels = alert.by.split(", ")
    matchers = "".join(f",{label}=%q" for label in labels)
    values = " ".join(f"$labels.{label}" for label in labels)
    these = _bridged(alert, f'{PROBLEM}{{problem="{alert.name}"{matchers}}}')
    having = f"{{{{ $these := printf `{these}` {values} }}}}"
    nodes = (
        '{{ with query (printf "sort_desc(topk(3, max by (node) (%s)))" $these) }}'
        "{{ $value }} node{{ if gt $value 1.0 }}s{{ end }} ("
        "{{ range $n, $one := . }}{{ if $n }}, {{ end }}{{ $one.Labels.node }}{{ end }}"
        "{{ if gt $value 3.0 }}, …{{ end }}){{ else }}No node is left{{ end }}"
    )
    return " ".join(
        [
            having + nodes + _place(alert) + f": {alert.meaning}.",
            *([_STACK] if "stack" in labels else []),
            *([_IMPACT] if alert.problem.startswith("instance:capture_canary_degraded") else []),
            f"To do: {alert.do}",
            f"Who acts: {alert.who}",
        ]
    )


def _place(alert: Alert) -> str:
    parts = {
        "workload": " of {{ $labels.namespace }}/{{ . }}",
        "pool": " in the pool {{ . }}",
        "cluster": " of the cluster {{ . }}",
    }
    return "".join(
        f"{{{{ with $labels.{label} }}}}{words}{{{{ end }}}}"
        for label, words in parts.items()
        if label in alert.by.split(", ")
    )


_STACK = (
    "{{ with $labels.stack }}Stack {{ . }}"
    "{{ with query (printf `topk(1, capture_canary_stack_info{stack=%q})` .) }}{{ with index . 0 }}"
    " (SoC {{ .Labels.soc }}, CANN {{ .Labels.cann }}, hcomm {{ .Labels.hcomm }}){{ end }}{{ end }}.{{ end }}"
)
_IMPACT = (
    '{{ with query (printf "max(%s) > 0" $these) }}A load of a server takes {{ . | first | value | humanizeDuration }}'
    " longer, by measured copies.{{ else }}What it costs a load is not known.{{ end }}"
)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else ">" if len(value) > _LINE else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
