"""What a rule file is made of, and how its times are scaled for a test."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["warning", "info"]
"""`warning`: somebody should act this week; `info`: look when you are here. Slow loading pages nobody."""

BY = "cluster, namespace, workload, pool, stack"
"""What an alert is about: one for each of these, however many nodes it holds for."""
HERE = "cluster, namespace, workload, pool"
"""The same, of what has nothing to do with a stack."""
NODE = "cluster, job, instance"
"""What tells one daemon from another, wherever the rules run."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(?P<before>\[|offset |<)(?P<n>\d+)(?P<unit>[smhd])(?P<after>\]|>|\b)")


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A recording rule. In `expr`, `<1d>` stands for that many seconds."""

    record: str
    expr: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """An alert: the daemons with a problem, and what to tell of those that have it in common."""

    name: str
    problem: str
    """Selects the daemons, with the labels of their scrape and `node`; the greater the value, the worse."""
    by: str = BY
    instead: str = ""
    """Fires, without a node to name, where no daemon is selected."""
    wait: str = "5m"
    """`for`."""
    keep: str = "15m"
    """`keep_firing_for`: longer than a daemon takes to restart."""
    severity: Severity
    summary: str
    meaning: str
    """What is wrong, after the words that say where."""
    do: str
    who: str
    dashboard: Literal["fleet", "node"] = "fleet"


Span = Callable[[str], str]


def span(text: str, scale: float) -> str:
    """Return a duration such as 5m, scaled; never under 1 s but for 0."""
    if scale == 1 or text == "0s":
        return text
    return f"{max(1, round(seconds(text) * scale))}s"


def seconds(text: str) -> int:
    """Return the seconds of a duration such as 5m."""
    return int(text[:-1]) * _UNITS[text[-1]]


def scaled(expr: str, scale: float) -> str:
    """Return an expression with every range, offset and `<1d>` scaled."""

    def one(found: re.Match[str]) -> str:
        text = found["n"] + found["unit"]
        if found["before"] == "<":
            return str(max(1, round(seconds(text) * scale)))
        return found["before"] + span(text, scale) + found["after"]

    return _SPAN.sub(one, expr)
