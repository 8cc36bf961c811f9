"""Every alert has what it needs, and times are scaled for tests as they should be."""

from pathlib import Path

import pytest
from monitoring.alerts import ALERTS
from monitoring.model import Pace


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_is_named_and_told_as_the_field_does(alert):
    assert alert.name.startswith("CaptureCanary")
    assert alert.summary[0].isupper()
    assert alert.summary.endswith(".")
    assert "{{" not in alert.summary


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        ("increase(x[1h]) > 0", "increase(x[36s]) > 0"),
        ("x offset 1h", "x offset 36s"),
        ("time() - x > <1d>", "time() - x > 864"),
        ('x{a="1d"} + 5', 'x{a="1d"} + 5'),
    ],
)
def test_times_are_scaled_and_nothing_else(expr: str, wanted: str):
    assert wanted == Pace(scale=0.01).expr(expr)


def test_a_scaled_time_has_its_least():
    fast = Pace(scale=1e-6, least=3)
    assert ("3s", "0s", "5m") == (fast.span("5m"), fast.span("0s"), Pace().span("5m"))


def test_the_page_lists_every_alert_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    for alert in ALERTS:
        wait = "at once" if alert.wait == "0s" else alert.wait
        row = f"| [{alert.name}](runbooks/{alert.name}.md) | {alert.severity} | {wait} | {alert.summary} |"
        assert row in page
