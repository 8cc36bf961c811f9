"""What time alone says wakes nobody: until there is a corpus of noise from real NPUs it is information."""

from monitoring.alerts import ALERTS
from monitoring.recordings import DEGRADED


def test_alerts_on_time_alone_are_of_severity_info():
    found = {alert.name: alert.severity for alert in ALERTS if "time_only" in alert.problem}

    assert {"CaptureCanaryDegradedByTimeOnly", "CaptureCanaryCommonCause"} <= found.keys()
    assert {"info"} == set(found.values())


def test_no_other_alert_takes_degraded_of_any_cause():
    for alert in ALERTS:
        if DEGRADED in alert.problem:
            assert f'{DEGRADED}{{cause=~"' in alert.problem, alert.name
