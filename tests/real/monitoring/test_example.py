"""The example for Alertmanager, by amtool: it is taken, and every alert finds its receiver."""

import subprocess
from pathlib import Path

import pytest
from monitoring.alerts import ALERTS
from tests.real.monitoring.watching import EXAMPLE, need

pytestmark = pytest.mark.real
OPERATORS = "Whoever runs"


def amtool(*arguments: str | Path) -> str:
    done = subprocess.run(
        [need("amtool"), *arguments], capture_output=True, check=False, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_amtool_takes_it():
    assert "SUCCESS" in amtool("check-config", EXAMPLE)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_finds_who_acts(alert):
    labels = [f"alertname={alert.name}", f"severity={alert.severity}"]
    receiver = amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels)
    acting = "operators" if alert.who.startswith(OPERATORS) else "image-owners"
    assert receiver == ("look-when-you-are-here" if alert.severity == "info" else acting)
