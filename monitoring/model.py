"""What a rule file is made of, and how its times are scaled for a test."""

import re
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


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast time goes; a test lets a day pass in a minute."""

    scale: float = 1.0
    least: int = 1
    """Seconds that no scaled duration falls under."""

    def span(self, text: str) -> str:
        """Return a duration such as 5m, scaled."""
        return text if self.scale == 1 or text == "0s" else f"{self.seconds(text)}s"

    def seconds(self, text: str) -> int:
        """Return the seconds of a duration, scaled."""
        return max(self.least, round(seconds(text) * self.scale))

    def expr(self, text: str) -> str:
        """Return an expression with every range, offset and `<1d>` scaled."""

        def one(found: re.Match[str]) -> str:
            duration = found["n"] + found["unit"]
            if found["before"] == "<":
                return str(self.seconds(duration))
            return found["before"] + self.span(duration) + found["after"]

        return _SPAN.sub(one, text)


def seconds(text: str) -> int:
    """Return the seconds of a duration such as 5m."""
    return int(text[:-1]) * _UNITS[text[-1]]
