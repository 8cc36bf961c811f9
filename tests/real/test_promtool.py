"""Prometheus' own linter on what we export."""

import os
import shutil
import subprocess

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.export.test_metrics import DEGRADED, START

from capture_canary.export.metrics import StateCollector
from capture_canary.export.state import State

PROMTOOL = shutil.which("promtool")


@pytest.mark.real
@pytest.mark.parametrize("state", [START, DEGRADED.after_skip("busy")], ids=["start", "degraded"])
def test_promtool_has_nothing_to_say(state: State):
    if PROMTOOL is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("promtool is missing")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(lambda: state))
    ran = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=generate_latest(registry),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, b"")
