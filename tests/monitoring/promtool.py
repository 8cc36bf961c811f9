"""Scenarios for promtool: a node's series while all is well and while something is wrong."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

RULES = Path(__file__).parents[2] / "rules" / "capture-canary.yml"
PROMTOOL = shutil.which("promtool")
Sample = float | None
Series = dict[str, Sequence[Sample]]
"""A sample a minute from time 0 on, by metric and labels; None: absent."""


def promtool(*command: str | Path) -> subprocess.CompletedProcess[str]:
    if PROMTOOL is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("promtool is missing")
    return subprocess.run(
        [PROMTOOL, *command], capture_output=True, check=False, timeout=300, text=True
    )


def selector(name: str, labels: Mapping[str, str]) -> str:
    inner = ",".join(f"{key}={json.dumps(text)}" for key, text in sorted(labels.items()))
    return f"{name}{{{inner}}}"


def named(metric: str, instance: str, **labels: str) -> str:
    """A series of ours as a scrape brings it; `metric` may have labels of its own: `verdict{verdict="unknown"}`."""
    name, _, own = metric.partition("{")
    if not name.startswith(("kube_", "npu_")):
        name = f"capture_canary_{name}"
    text = selector(name, {"instance": instance, "job": "canary", **labels})
    return text if not own else text[:-1] + "," + own


def text(samples: Sequence[Sample]) -> str:
    """The values in promtool's notation."""
    runs: list[str] = []
    for value, group in groupby(samples):
        n = len(list(group))
        runs.append(f"_x{n}" if value is None else f"{value:.15g}x{n - 1}")
    return " ".join(runs)


def case(series: Series, expected: Iterable[tuple[int, str, Sequence[Mapping[str, Any]]]]) -> Any:
    """One test: at a minute an expression has these samples (`labels`, `value`)."""
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": text(v)} for key, v in series.items()],
        "promql_expr_test": [
            {"expr": expr, "eval_time": f"{minute}m", "exp_samples": list(samples)}
            for minute, expr, samples in expected
        ],
    }


def passes(folder: Path, test: Any, *, rules: Path = RULES, every: str = "1m") -> None:
    """Have promtool run the test, with so much time from one evaluation to the next."""
    document = {"rule_files": [str(rules)], "evaluation_interval": every, "tests": [test]}
    path = folder / "test.yml"
    path.write_text(json.dumps(document))  # JSON is YAML
    ran = promtool("test", "rules", path)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-6000:]
